"""The controls of a lecture on page "Variance collapse"."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import panel as pn
import panel_material_ui as pmui

from stein_core import KERNELS
from steinlab.ui.knob_widgets import LARGE

ALPHAS = [0.01, 0.05, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0]
PARTICLES = [5, 10, 20, 50, 100, 200]
SIZE = {"sx": LARGE, "margin": (0, 24), "styles": {"flex": "1 1 200px", "max-width": "460px"}}


class Dials:
    """Hold a slider for alpha, one for the particles, and the kernel; each gives the grid one value.

    Args:
        on_change: on_change(alphas=(1.0,)) is called with the field of the grid that has changed.

    Attributes:
        row: the component.
    """

    def __init__(self, on_change: Callable[..., Any]):
        self.quiet = False
        kernels = {entry.label: entry.name for entry in KERNELS.entries()}
        self.inputs = {
            "alphas": pmui.DiscreteSlider(label="alpha", options=ALPHAS, value=1.0, formatter="%.4g", **SIZE),
            "particles": pmui.DiscreteSlider(label="particles", options=PARTICLES, value=20, **SIZE),
            "kernels": pmui.Select(label="kernel", options=kernels, **SIZE),
        }
        for name, made in self.inputs.items():
            made.param.watch(lambda event, name=name: self.quiet or on_change(**{name: (event.new,)}), "value")
        self.row = pn.FlexBox(
            *self.inputs.values(), align_items="center", justify_content="center", sizing_mode="stretch_width",
            visible=False,
        )  # fmt: skip

    def strip(self) -> None:
        """Show the two sliders: the page is part of another one."""
        self.inputs["kernels"].visible = False
        for each in self.inputs.values():
            each.sx = {}
        self.row.visible = True

    def show(self, grid) -> None:
        """Set the controls to a grid: of several values to the first."""
        self.quiet = True
        for name, known in (("alphas", ALPHAS), ("particles", PARTICLES), ("kernels", None)):
            value, made = getattr(grid, name)[0], self.inputs[name]
            if known and value not in made.options:
                made.options = sorted({*known, value})
            made.value = value
        self.quiet = False
