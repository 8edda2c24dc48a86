"""Lecture mode of a page: the stage fills the screen, text and lines are twice as large, the presets are a tour."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import panel as pn
import panel_material_ui as pmui

from app.stage.tour import Tour
from app.ui import link

SWITCH = link.switch("lecture", "lecture in the link", ("off", "on"), attribute="on")
QUIET = {"variant": "text", "size": "small", "margin": (8, 0), "height": 36}
NO_PHONE = {"@media (max-width: 600px)": {"display": "none"}}


@dataclass(frozen=True)
class Shown:
    """What a link says of the lecture."""

    on: bool = False


class Lecture:
    """Turn lecture mode on and off.

    Args:
        shell: the frame of the page.
        tour: the presets of the page.
        turned: each is called with True or False when the mode changes.
        on: whether the page opens in this mode.

    Attributes:
        around: components that a lecture does not show.
        only: components that nothing but a lecture shows.
    """

    def __init__(self, shell, tour: Tour, *turned: Callable[[bool], None], on: bool = False):
        self.shell, self.tour, self.turned, self.on = shell, tour, turned, on
        self.talk = pmui.Button(label="Lecture (P)", icon="slideshow", on_click=self.toggle, sx=NO_PHONE, **QUIET)
        self.leave = pmui.IconButton(
            icon="close", description="Leave the lecture (P)", on_click=self.toggle, visible=False
        )
        self.around: list = [tour.select, tour.about, self.talk]
        self.only: list = [self.leave]

    @classmethod
    def of_query(cls, query: Mapping[str, str]) -> tuple[bool, dict[str, str], list[str]]:
        """Return whether a link opens the lecture, the rest of its fields, and what in it is wrong."""
        own, rest = link.split((SWITCH,), query)
        shown, problems = link.read((SWITCH,), own, Shown())
        return shown.on, rest, [*problems.values()]

    def to_query(self, query: str) -> str:
        """Return a page's query with the field of the lecture, if that is on."""
        return "&".join(filter(None, (query, link.write((SWITCH,), Shown(self.on), Shown()))))

    def alone(self) -> None:
        """Keep the tour for the lecture: the page has its presets elsewhere."""
        self.around = [self.talk]
        self.only += [self.tour.text, self.tour.before, self.tour.after]
        for each in (*self.only, self.tour.select, self.tour.about):
            each.visible = False

    def row(self, *more) -> pmui.FlexBox:
        """Return the caption, what else a page has, the buttons of the tour and those of the lecture."""
        tour = self.tour
        return pmui.FlexBox(
            tour.text, *more, pmui.Row(tour.before, tour.select, tour.after, margin=0), self.talk, self.leave,
            align_items="center", sizing_mode="stretch_width", margin=0,
        )  # fmt: skip

    def toggle(self, event=None) -> None:
        """Start the lecture, or leave it."""
        self.turn(not self.on)

    def turn(self, on: bool) -> None:
        """Let the stage fill the screen, with text and lines of twice the size, or not."""
        self.on = on
        for call in (*self.turned, self.tour.lecture, self.shell.lecture):
            call(on)
        for each in self.around:
            each.visible = not on
        for each in self.only:
            each.visible = on

    def show(self) -> None:
        """Show the lecture if it is on: its page comes on screen."""
        if self.on:
            self.turn(True)

    def hide(self) -> None:
        """Give the bar back: the page leaves the screen."""
        if self.on:
            self.shell.lecture(False)

    def keys(self) -> dict[str, Callable[[], None]]:
        """Return what the keys do here; a page adds its own."""
        move = {"right": lambda: self.tour.move(1), "left": lambda: self.tour.move(-1)} if self.on else {}
        return {"p": self.toggle, **move}


def large(pane: pn.viewable.Viewable, size: int = 26) -> pn.viewable.Viewable:
    """Give a legend the text size of a lecture."""
    pane.stylesheets = [
        *pane.stylesheets,
        f".legend {{ font-size: {size}px }} .legend svg {{ width: 2em; height: 1em }}",
    ]
    return pane
