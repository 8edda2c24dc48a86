"""Transport of the pages that train networks: what starts, steps and restarts the training, and how far it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import panel_material_ui as pmui

from stein_core import Knob
from steinlab.stage.transport import SHORT_KNOBS, lecture_knobs
from steinlab.ui.job_bar import MIDDLE, TEXT
from steinlab.ui.knob_widgets import set_value

ROUND = {"width": "52px", "height": "52px", "boxShadow": "none !important"}
LARGE = {"width": "80px", "height": "80px", "& *": {"fontSize": "40px !important"}}


class Transport:
    """Hold the buttons under the panels.

    Args:
        toggle: called by Play and Pause.
        step: called by Step.
        reset: called by Train from scratch.
        speed: speed(steps) is called with the steps per frame that are allowed.
        paces: what may be allowed.
        first: what is allowed at first.
        known: the knobs of the page by name.
        on_knob: on_knob(name, value) is called for a knob that was moved here.
        most: particles that the page allows.
    """

    def __init__(
        self,
        toggle: Callable[[], None],
        step: Callable[[], None],
        reset: Callable[[], None],
        speed: Callable[[int], None],
        paces: list[int],
        first: int,
        known: Mapping[str, Knob],
        on_knob: Callable[[str, Any], Any],
        most: int,
    ):
        self.known, self.quiet = known, False
        self.knobs = lecture_knobs(known, lambda name, value: self.quiet or on_knob(name, value))
        self.knobs["method.particles"].end = most
        self.play = pmui.Fab(
            label="Pause",
            icon="pause",
            color="primary",
            sx=ROUND,
            margin=(4, 8),
            on_click=lambda event: toggle(),
            **MIDDLE,
        )
        one = pmui.Button(label="Step", icon="skip_next", on_click=lambda event: step(), **TEXT)
        anew = pmui.Button(label="Train from scratch", icon="replay", on_click=lambda event: reset(), **TEXT)
        pace = pmui.DiscreteSlider(
            label="steps per frame, at most", options=paces, value=first, width=250, margin=(0, 16), **MIDDLE
        )
        pace.param.watch(lambda event: speed(event.new), "value")
        self.reading = pmui.Typography(
            "", variant="body2", margin=(4, 8), width=300, sx={"fontVariantNumeric": "tabular-nums"}, **MIDDLE
        )
        self.plain = (anew, one, pace, self.reading)
        self.panel = pmui.FlexBox(
            anew, self.play, one, pace, self.reading, *self.knobs.values(),
            align_items="center", justify_content="center",
        )  # fmt: skip

    def lecture(self, on: bool) -> None:
        """Show what a lecture needs, or what a page does."""
        for each in self.plain:
            each.visible = not on
        for each in self.knobs.values():
            each.visible = on
        self.play.sx = {**ROUND, **LARGE} if on else ROUND

    def strip(self) -> None:
        """Show Play and two sliders: the page is part of another one."""
        for each in self.plain:
            each.visible = False
        for name, each in self.knobs.items():
            each.visible, each.sx = name in SHORT_KNOBS, {}

    def turn(self, value: Callable[[str], Any]) -> None:
        """Set the sliders of the lecture without telling the page.

        Args:
            value: value(name) is what the knob of this name has.
        """
        self.quiet = True
        try:
            for name, made in self.knobs.items():
                set_value(made, self.known[name], value(name))
        finally:
            self.quiet = False

    def show(self, playing: bool) -> None:
        """Offer Pause, or Play."""
        self.play.param.update(label="Pause" if playing else "Play", icon="pause" if playing else "play_arrow")

    def say(self, text: str) -> None:
        """Say how far the training is."""
        self.reading.object = text
