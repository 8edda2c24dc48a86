"""The default run of page "1-D wave", shipped trained. `python -m steinlab.pages.wave.trained` makes the file."""

from __future__ import annotations

import numpy as np

from stein_core import State, Stepper
from stein_core.base.bands import Band
from steinlab.pages.wave.measures import Evaluation, Readout, evaluate
from steinlab.pages.wave.setup import STEPS, TRAINED, WaveSetup
from steinlab.server.folders import ASSETS
from steinlab.stage.trained import Trained

SHIPPED = Trained(
    lambda method: ASSETS / "wave_trained.npz",
    WaveSetup(methods=TRAINED),
    STEPS,
    ("width", "draws", "seed", "knobs", "data"),
)


def seen_before(setup: WaveSetup, step: int) -> dict[str, Evaluation]:
    """Return what the shipped methods of a setup show at their last step, without any program; {} at another one."""
    plain = SHIPPED.plain
    usual = (setup.probability, setup.noisy) == (plain.probability, plain.noisy)
    if not usual or not SHIPPED.is_shipped(setup) or step != SHIPPED.steps:
        return {}
    found = {}
    for method in setup.methods:
        if method in plain.methods:
            bands, curves, numbers = (SHIPPED.extra(method, name) for name in ("bands", "curves", "numbers"))
            *lppd, inside, between, gap, coverage = map(float, numbers)
            readout = Readout(tuple(lppd), inside, between, gap, coverage)
            found[method] = Evaluation(step, Band(*bands[:3]), Band(*bands[3:]), curves, readout, 0.0, False)
    return found


def extra(stepper: Stepper, state: State) -> dict[str, np.ndarray]:
    """Return the bands of a method, its curves and its numbers."""
    method = stepper.spec.method
    seen = evaluate(stepper.spec, state.particles, SHIPPED.plain, method, int(state.step), 0.0, False)
    numbers = [*seen.readout.lppd, *(getattr(seen.readout, name) for name in ("inside", "between", "gap", "coverage"))]
    return {
        "bands": np.float32([*seen.wide, *seen.half]),
        "curves": np.float32(seen.curves),
        "numbers": np.array(numbers),
    }


if __name__ == "__main__":
    SHIPPED.make(extra)
