"""The tour of a page: its presets as numbered stops, each with a caption over the stage."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence

import panel as pn
import panel_material_ui as pmui

from app.ui.legend import coloured

PROMPT = "Choose one thing to see …"
CSS = """
.caption { margin: 0; font-size: 19px; font-weight: 600; line-height: 1.25; color: var(--mui-palette-text-primary); }
.about { margin: 0; font-size: 15px; line-height: 1.4; color: var(--mui-palette-text-secondary); max-width: 62em }
.lecture { font-size: clamp(24px, 2.55vw, 38px); }
"""


class Tour:
    """A select of the stops, buttons for the one before and the next, and the caption.

    Args:
        stops: dicts of "name", "caption" (at most 60 characters) and "text".
        go: go(stop) opens one; it returns sentences about what of its link is refused.
    """

    def __init__(self, stops: Sequence[dict], go: Callable[[dict], list[str]]):
        self.stops, self.go, self.large = stops, go, False
        self.at, self.said, self.stale = -1, (), False
        names = [PROMPT, *(f"{i}. {stop['name']}" for i, stop in enumerate(stops, 1))]
        self.select = pmui.Select(
            label=f"Tour of {len(stops)} stops", options=names, value=PROMPT, size="small", width=220, margin=(4, 4)
        )
        self.select.param.watch(lambda event: self.open(names.index(event.new) - 1), "value")
        small = {"size": "small", "margin": (8, 0), "width": 36, "height": 36}
        self.before = pmui.IconButton(
            icon="chevron_left", description="The stop before", on_click=lambda event: self.move(-1), **small
        )
        self.after = pmui.IconButton(
            icon="chevron_right", description="The next stop", on_click=lambda event: self.move(1), **small
        )
        self.text = pn.pane.HTML("", stylesheets=[CSS], margin=(4, 8), styles={"flex": "1 1 300px"})
        self.about = pn.pane.HTML("", stylesheets=[CSS], margin=(0, 8), sizing_mode="stretch_width")

    def move(self, by: int) -> None:
        """Go to the next stop (1) or to the one before (-1), round the end."""
        self.open((self.at + by) % len(self.stops) if self.at >= 0 else 0 if by > 0 else len(self.stops) - 1)

    def open(self, index: int) -> None:
        """Open a stop; -1 is none, and changes nothing but the caption."""
        if index == self.at:
            return
        self.at, self.stale = index, False
        self.said = tuple(self.go(self.stops[index])) if index >= 0 else ()
        self.show()

    def at_stop(self, index: int) -> None:
        """Say that what runs is this stop, without opening it."""
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
        self.open(-1)

    def changed(self) -> None:
        """Take the caption away: a knob was turned, and it may no longer be true. The place in the tour stays."""
        self.stale = True
        if self.at >= 0:
            name = html.escape(self.stops[self.at]["name"])
            self._write(f"{name}, changed")
            self.about.object = ""

    def _write(self, caption: str) -> None:
        number = f"{self.at + 1} / {len(self.stops)} · " * self.large
        self.text.object = f'<p class="caption{" lecture" * self.large}">{number}{caption}</p>'

    def lecture(self, on: bool) -> None:
        """Write the caption large, or not."""
        self.large = on
        self.show()

    def show(self) -> None:
        """Show the caption of the stop."""
        self.select.value = self.select.options[self.at + 1]
        if self.at < 0:
            self.text.object = self.about.object = ""
            return
        if self.stale:
            return self.changed()
        stop = self.stops[self.at]
        about = html.escape(" ".join([stop["text"], *self.said]))  # this server may allow less than the stop asks for
        self._write(coloured(stop["caption"]))
        self.about.object = f'<p class="about">{about}</p>'
