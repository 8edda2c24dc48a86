"""The tour of a page: its numbered stops, each with a caption over the stage, and in a lecture a question first."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence

import panel as pn
import panel_material_ui as pmui

from steinlab.ui.legend import coloured

CSS = """
.caption { margin: 0; font-size: 19px; font-weight: 600; line-height: 1.25; color: var(--mui-palette-text-primary); }
.about { margin: 0; font-size: 15px; line-height: 1.4; color: var(--mui-palette-text-secondary); max-width: 62em }
.lecture { font-size: clamp(24px, 2.55vw, 38px); }
"""


class Tour:
    """Hold the stops, buttons for the one before and the next, and the caption.

    Args:
        stops: dicts of "name", "caption" (at most 60 characters) and "text", and if there is a question before the
            answer "ask" (at most 60 characters).
        go: go(stop) opens one; it returns sentences about what of its link is refused.
        hold: hold(True) keeps the picture still, or hidden, while the question stands; hold(False) lets it go.
        forth: what the buttons do, with 1 or -1; `move` if it is None.

    Attributes:
        at: index of the stop, -1 for none.
        asked: whether its question stands and not yet its answer.
        place: number of the stop in a lecture over several pages and how many there are, or None.
    """

    def __init__(
        self,
        stops: Sequence[dict],
        go: Callable[[dict], list[str]],
        hold: Callable[[bool], None] = lambda on: None,
        forth: Callable[[int], None] | None = None,
    ):
        self.stops, self.go, self.hold, self.large = stops, go, hold, False
        self.at, self.said, self.stale, self.asked, self.place = -1, (), False, False, None
        forth = forth or self.move
        small = {"size": "small", "margin": 0, "width": 36, "height": 36}
        self.before = pmui.IconButton(
            icon="chevron_left", description="The stop before", on_click=lambda event: forth(-1), **small
        )
        self.after = pmui.IconButton(
            icon="chevron_right", description="The next stop", on_click=lambda event: forth(1), **small
        )
        self.text = pn.pane.HTML("", stylesheets=[CSS], margin=(4, 8), styles={"flex": "1 1 300px"})
        self.about = pn.pane.HTML("", stylesheets=[CSS], margin=(0, 8), sizing_mode="stretch_width")

    def strip(self) -> None:
        """Offer no other stop: the page is part of another one."""
        self.before.visible = self.after.visible = False

    def row(self, *more) -> pmui.FlexBox:
        """Return the caption, what else a page has, and the buttons."""
        buttons = pmui.Row(self.before, self.after, margin=0)
        return pmui.FlexBox(self.text, *more, buttons, align_items="center", sizing_mode="stretch_width", margin=0)

    @property
    def names(self) -> list[str]:
        """The stops by number and name."""
        return [f"{number}. {stop['name']}" for number, stop in enumerate(self.stops, 1)]

    def move(self, by: int) -> None:
        """Answer the question if one stands, else go to the next stop (1); or to the one before (-1), round the end."""
        if self.asked and by > 0:
            return self.answer()
        self.open((self.at + by) % len(self.stops) if self.at >= 0 else 0 if by > 0 else len(self.stops) - 1)

    def open(self, index: int) -> None:
        """Open a stop; -1 is none, and changes nothing but the caption."""
        if index < 0 and self.at < 0:
            return
        self.at, self.stale = index, False
        self.said = tuple(self.go(self.stops[index])) if index >= 0 else ()
        self.ask()

    def ask(self) -> None:
        """In a lecture show the question of the stop, if it has one, and keep its picture still."""
        asks = self.large and not self.stale and self.at >= 0 and "ask" in self.stops[self.at]
        if asks or self.asked:
            self.hold(asks)
        self.asked = asks
        self.show()

    def answer(self) -> None:
        """Show the caption of the stop in place of its question, and let its picture go."""
        if self.asked:
            self.asked = False
            self.hold(False)
            self.show()

    def at_stop(self, index: int) -> None:
        """Say that what runs is this stop, without opening it."""
        if index != self.at:
            self.answer()
        self.at, self.stale = index, False
        self.show()

    def find(self, index: int) -> None:
        """Say which stop is shown; -1 is none, and the place in the tour stays."""
        if index >= 0:
            self.at_stop(index)
        else:
            self.changed()

    def leave(self) -> None:
        """What is shown is no stop any more."""
        self.answer()
        self.at, self.stale, self.said = -1, False, ()
        self.show()

    def changed(self) -> None:
        """Take the caption away: a knob was turned, and it may no longer be true. The place in the tour stays."""
        self.answer()
        self.stale = True
        if self.at >= 0:
            name = html.escape(self.stops[self.at]["name"])
            self._write(f"{name}, changed")
            self.about.object = ""

    def _write(self, caption: str) -> None:
        at, total = self.place or (self.at + 1, len(self.stops))
        number = f"{at} / {total} · " * self.large
        self.text.object = f'<p class="caption{" lecture" * self.large}">{number}{caption}</p>'

    def lecture(self, on: bool) -> None:
        """Write the caption large, or not."""
        self.large = on
        if not on:
            self.answer()
        self.show()

    def show(self) -> None:
        """Show the caption of the stop, or its question."""
        if self.at < 0:
            self.text.object = self.about.object = ""
            return
        if self.stale:
            return self.changed()
        stop = self.stops[self.at]
        about = html.escape(" ".join([stop["text"], *self.said]))  # this server may allow less than the stop asks for
        self._write(coloured(stop["ask"] if self.asked else stop["caption"]))
        self.about.object = "" if self.asked else f'<p class="about">{about}</p>'
