"""Lecture mode of a page: what it is about fills the screen, with text and lines of twice the size."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import panel as pn
import panel_material_ui as pmui

from steinlab.ui import link

SWITCH = link.switch("lecture", "lecture in the link", ("off", "on"), attribute="on")
QUIET = {"variant": "text", "size": "small", "margin": (8, 0), "height": 36}


@dataclass(frozen=True)
class Shown:
    """What a link says of the lecture."""

    on: bool = False


class Lecture:
    """Turn lecture mode on and off.

    Args:
        shell: the frame of the page.
        move: move(1) goes on, to an answer or to what comes next, and move(-1) back.
        turned: each is called with True or False when the mode changes.
        on: whether the page opens in this mode.

    Attributes:
        around: components that a lecture does not show.
        only: components that nothing but a lecture shows.
        stripped: each is called when the page is part of another one (`ui=min` in its link), beside hiding `around`.
    """

    def __init__(self, shell, move: Callable[[int], None], *turned: Callable[[bool], None], on: bool = False):
        self.shell, self.move, self.turned, self.on = shell, move, turned, on
        self.leave = pmui.IconButton(
            icon="close", description="Leave the lecture (P)", on_click=self.toggle, visible=False
        )
        self.around: list = []
        self.only: list = [self.leave]
        self.stripped: list[Callable[[], None]] = []

    @classmethod
    def of_query(cls, query: Mapping[str, str]) -> tuple[bool, dict[str, str], list[str]]:
        """Return whether a link opens the lecture, the rest of its fields, and what in it is wrong."""
        own, rest = link.split((SWITCH,), query)
        shown, problems = link.read((SWITCH,), own, Shown())
        return shown.on, rest, [*problems.values()]

    def to_query(self, query: str) -> str:
        """Return a page's query with the field of the lecture, if that is on."""
        return "&".join(filter(None, (query, link.write((SWITCH,), Shown(self.on), Shown()))))

    def toggle(self, event=None) -> None:
        """Start the lecture, or leave it. A part of another page gives none."""
        if self.shell.short:
            return
        self.turn(not self.on)
        if not self.on:
            self.shell.presentation.end()

    def turn(self, on: bool) -> None:
        """Let the picture fill the screen, with text and lines of twice the size, or not."""
        self.on = on
        for call in (*self.turned, self.shell.lecture):
            call(on)
        for each in self.around:
            each.visible = not on
        for each in self.only:
            each.visible = on

    def show(self) -> None:
        """Show the lecture if it is on: its page comes on screen."""
        if self.shell.short:
            self.shell.strip()
            for call in self.stripped:
                call()
            for each in self.around:
                each.visible = False
        elif self.on:
            self.turn(True)

    def hide(self) -> None:
        """Give the bar back: the page leaves the screen."""
        if self.on:
            self.shell.lecture(False)


def hide(component: pn.viewable.Viewable, on: bool) -> None:
    """Leave a component's place empty, or show it again."""
    component.styles = {**component.styles, "visibility": "hidden" if on else "visible"}


def large(pane: pn.viewable.Viewable, size: int = 26) -> pn.viewable.Viewable:
    """Give a legend the text size of a lecture."""
    pane.stylesheets = [
        *pane.stylesheets,
        f".legend {{ font-size: {size}px }} .legend svg {{ width: 2em; height: 1em }}",
    ]
    return pane
