"""The methods that are trained on page "1-D wave", each from its own start."""

from __future__ import annotations

from app.pages.wave.setup import STEPS, WaveSetup, all_knobs
from app.pages.wave.trained import is_shipped, shipped_state
from app.stage.run import Run
from stein_core import State, Stepper


class WaveRun(Run):
    """A Run whose methods may lag: one that compiles later catches up, and one that diverges stops alone. When the run
    that ships is at its last step, a method begins with its shipped state."""

    together = False

    def __init__(self, setup: WaveSetup, clock: int = 0):
        super().__init__(setup, clock=clock)
        self.use(setup)

    def use(self, setup: WaveSetup) -> None:
        """Train by other settings."""
        self.setup = setup
        self.knobs = {name: setup.value(name) for name in all_knobs()} | {"target.data": setup.data}

    def start_of(self, stepper: Stepper) -> State:
        method = stepper.spec.method
        if method not in self.methods and self.clock >= STEPS and is_shipped(self.setup):
            return shipped_state(stepper, method)
        return stepper.reset(self.setup.seed, self.setup.knobs_of(method))


def first_step(setup: WaveSetup) -> int:
    """The step at which a setup begins: the last one of the run that ships, unless its link asks for an earlier one."""
    return STEPS if is_shipped(setup) and not 0 < setup.steps < STEPS else 0
