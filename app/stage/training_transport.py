"""Transport of the pages that train networks: what starts, steps and restarts the training, and how far it is."""

from __future__ import annotations

from collections.abc import Callable

import panel_material_ui as pmui

from app.ui.job_bar import MIDDLE, TEXT

ROUND = {"width": "52px", "height": "52px", "boxShadow": "none !important"}


class Transport:
    """Hold the buttons under the panels.

    Args:
        toggle: called by Play and Pause.
        step: called by Step.
        reset: called by Train from scratch.
        speed: speed(steps) is called with the steps per frame that are allowed.
        paces: what may be allowed.
        first: what is allowed at first.
    """

    def __init__(
        self,
        toggle: Callable[[], None],
        step: Callable[[], None],
        reset: Callable[[], None],
        speed: Callable[[int], None],
        paces: list[int],
        first: int,
    ):
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
        self.panel = pmui.FlexBox(
            anew, self.play, one, pace, self.reading, align_items="center", justify_content="center"
        )

    def show(self, playing: bool) -> None:
        """Offer Pause, or Play."""
        self.play.param.update(label="Pause" if playing else "Play", icon="pause" if playing else "play_arrow")

    def say(self, text: str) -> None:
        """Say how far the training is."""
        self.reading.object = text
