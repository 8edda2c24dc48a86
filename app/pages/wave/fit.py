"""One method's training on the page "1-D wave"."""

from __future__ import annotations

from dataclasses import dataclass, field

import jax
import numpy as np

from app.stage.worker import Pace
from stein_core import Spec, State, Stepper


@dataclass
class Fit:
    """One method's training. spent, taken: seconds and steps of late, older ones counting less."""

    spec: Spec
    stepper: Stepper
    state: State
    step: int = 0
    spent: float = 0.0
    taken: float = 0.0
    diverged: bool = False
    pace: Pace = field(default_factory=Pace)

    @property
    def seconds(self) -> float:
        """Of one step; 0 before the first."""
        return self.spent / self.taken if self.taken else 0.0


def moved(old: State, new: State) -> State:
    """The state of a program carried to one of another capacity: particles that both have are kept."""

    def carry(before, after):
        before, after = np.asarray(before), np.array(after)
        if before.ndim == 0:
            return before
        if before.shape == after.shape:
            return before
        rows = min(len(before), len(after))
        after[:rows] = before[:rows]
        return after

    return jax.tree.map(carry, old, new)
