"""The methods that are trained on page "1-D wave", each from its own start."""

from __future__ import annotations

from app.pages.wave.setup import STEPS, WaveSetup
from app.pages.wave.trained import is_shipped, shipped_state
from app.stage.training import TrainingRun
from stein_core import State, Stepper


class WaveRun(TrainingRun):
    """A TrainingRun. When the run that ships is at its last step, a method begins with its shipped state."""

    def start_of(self, stepper: Stepper) -> State:
        method = stepper.spec.method
        if method not in self.methods and self.clock >= STEPS and is_shipped(self.setup):
            return shipped_state(stepper, method)
        return super().start_of(stepper)


def first_step(setup: WaveSetup) -> int:
    """The step at which a setup begins: the last one of the run that ships, unless its link asks for an earlier one."""
    return STEPS if is_shipped(setup) and not 0 < setup.steps < STEPS else 0
