"""The choice of sums over near particles only, with how far off they are at most."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import panel_material_ui as pmui

from stein_core.base.distances import DENSE
from stein_core.forces.near import KERNEL
from steinlab.stage.setup import Setup, room_for
from steinlab.ui.knob_widgets import SELECT

OFFERED = (1e-2, 1e-3, 1e-4, 1e-6)  # kernel values that may be left out
HELP = "Particles far from each other do not interact: their kernel value is left out. The sums are then much quicker."


class NearSums:
    """A select and the bound of the error. It shows for many particles whose methods and kernel allow it.

    Args:
        chosen: chosen(near=value) is called; None stands for sums over all pairs.
    """

    def __init__(self, chosen: Callable):
        self.select = pmui.Select(
            label="Near sums only (kernel cut-off)",
            options=named(),
            value=0.0,
            description=HELP,
            visible=False,
            **SELECT,
        )
        self.text = pmui.Typography("", variant="caption", margin=(0, 10, 4, 10), visible=False)
        self.select.param.watch(lambda event: chosen(near=event.new or None), "value")
        self.allowed, self.knobs = False, {}

    @property
    def near(self) -> float | None:
        """What is left out, or None."""
        return self.select.value or None

    def show(self, setup: Setup) -> None:
        """Show the choice of a setup."""
        self.allowed, self.knobs = setup.may_be_near(), {"method.particles": setup.particles}
        near = setup.near or 0.0
        self.select.param.update(options=named(near), value=near)
        self.text.object = bound(near) if near else ""
        self.turn(setup.knobs)

    def turn(self, knobs: Mapping[str, Any]) -> None:
        """Take these knobs: the number of particles and the kernel say whether there is a choice."""
        self.knobs = {**self.knobs, **knobs}
        many = room_for(self.knobs["method.particles"]) > DENSE
        vanishes = self.knobs.get("kernel.name", KERNEL) == KERNEL
        self.select.visible = self.near is not None or self.allowed and many and vanishes
        self.text.visible = self.near is not None


def named(near: float = 0.0) -> dict[str, float]:
    """Return what can be left out by its label; a link may have another value."""
    return {f"below {value:g}" if value else "off": value for value in sorted({0.0, near, *OFFERED})}


def bound(near: float) -> str:
    """Say how far off the sums are at most, see `stein_core.forces.near`."""
    repulsion = near * math.sqrt(2 * math.log(1 / near))
    return (
        f"The attraction is off by at most {near:g} of the mean slope, the repulsion by at most {repulsion:.2g} "
        f"divided by the bandwidth. Up to {DENSE:,} particles all pairs count."
    )
