"""Say how much force is left at the end of a run: of points exactly, of guides as a mean over many estimates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from stein_core.contract.registry import METHODS
from stein_core.contract.types import State
from stein_core.runs.runner import Stepper

ESTIMATES = 100  # of the force of guides, whose one estimate is mostly noise


def force_left(stepper: Stepper, state: State, knobs: Mapping[str, Any]) -> float | None:
    """Return the mean force over the attraction of one step, both root mean squares.

    The force of guides is estimated anew from other draws, and what the noise adds to the square of its mean is taken
    off. An optimiser whose steps are noisy does not bring it to 0.

    Args:
        stepper: of the run.
        state: where the run ended.
        knobs: knob values at the end.

    Returns:
        The share; None for a sampler, for a method whose moves are random, and for points without repulsion.
    """
    facts = METHODS[stepper.spec.method].facts
    if facts.sampler or (facts.noisy and facts.noisy(knobs)):
        return None
    count = estimates(stepper)
    total, squares, scale, repels = 0.0, 0.0, 0.0, False  # not the forces themselves: they may be of many particles
    for number in range(count):
        frame = stepper.look(state._replace(key=jax.random.PRNGKey(number)), knobs, False)
        force = np.float64(frame.attract + frame.repulse)
        total, squares, scale = total + force, squares + force**2, scale + np.mean(np.float64(frame.attract) ** 2)
        repels = repels or frame.repulse.any()
    if not scale > 0 or not (count > 1 or repels):
        return None
    noise = (squares - total**2 / count) / (count - 1) / count if count > 1 else 0.0
    return float(np.sqrt(max(np.mean((total / count) ** 2 - noise), 0.0) / (scale / count)))


def estimates(stepper: Stepper) -> int:
    """Return how many estimates of the force are made: many of a noisy one, else one."""
    return ESTIMATES if stepper.spec.has_density or stepper.target.minibatch is not None else 1
