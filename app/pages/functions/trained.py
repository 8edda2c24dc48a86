"""The default run of page "Function space", shipped trained: `python -m steinlab.pages.functions.trained` makes it."""

from __future__ import annotations

import numpy as np

from stein_core import State, Stepper
from steinlab.pages.functions.seen import Line, line_of, look
from steinlab.pages.functions.setup import STEPS, FunctionSetup
from steinlab.server.folders import ASSETS
from steinlab.stage.trained import Trained

SHIPPED = Trained(
    lambda method: ASSETS / f"functions_{method}.npz",
    FunctionSetup(),
    STEPS[False],
    ("ring", "width", "seed", "knobs", "data", "handles"),
    short=True,
)


def seen_before(setup: FunctionSetup, step: int) -> dict[str, Line]:
    """Return what the shipped methods of a setup show at their last step, without any program; {} at another one."""
    if not SHIPPED.is_shipped(setup) or step != SHIPPED.steps:
        return {}
    found = {}
    for method in setup.methods:
        if method in SHIPPED.plain.methods:
            particles, curves, forces = (SHIPPED.extra(method, name) for name in ("2", "curves", "forces"))
            about = {"step": step, "diverged": False, "rate": 0.0, "forces": tuple(map(float, forces))}
            found[method] = line_of(particles, curves, about)
    return found


def extra(stepper: Stepper, state: State) -> dict[str, np.ndarray]:
    """Return the curves of a method, and the mean length of both forces on a particle."""
    method, plain = stepper.spec.method, SHIPPED.plain
    frame = stepper.look(state, plain.knobs_of(method), False)
    forces = [np.linalg.norm(force, axis=1).mean() for force in (frame.attract, frame.repulse)]
    about = {"step": int(state.step), "diverged": False, "rate": 0.0, "forces": tuple(forces)}
    return {"curves": look(stepper.spec, state.particles, plain, method, **about).curves, "forces": np.array(forces)}


if __name__ == "__main__":
    SHIPPED.make(extra)
