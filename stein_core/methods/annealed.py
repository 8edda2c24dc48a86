"""SVGD with an annealed attraction."""

import jax.numpy as jnp

from stein_core.forces import Forces, flow, interact
from stein_core.knobs import Knob
from stein_core.methods.svgd import ALPHA, law, limit
from stein_core.registry import METHODS

KNOBS = (
    ALPHA,
    Knob("horizon", 1000, 1, 1_000_000, "log", "horizon", "steps until the schedule ends and plain SVGD goes on"),
    Knob("cycles", 5, 1, 20, "integer", "cycles", "sweeps from pure repulsion to SVGD within the horizon"),
    Knob("power", 5.0, 0.1, 20.0, "log", "power", "how late in a cycle the attraction returns"),
)


def schedule(step, horizon, cycles, power):
    """gamma(t) = (mod(t, T/C) / (T/C))^p, and 1 from the last cycle on (t >= (C-1) T/C), so one cycle is plain SVGD.

    D'Angelo & Fortuin 2021 (Annealed SVGD), eq. 4. step, horizon in steps; returns a number in [0, 1].
    """
    period = horizon / cycles
    within = jnp.mod(step, period) / period
    return jnp.where(step >= (cycles - 1) * period, 1.0, within**power)


@METHODS.register(
    "annealed",
    label="Annealed SVGD",
    reference="D'Angelo & Fortuin 2021, eq. 4",
    guides=("point",),
    knobs=KNOBS,
    least=lambda knobs: knobs["method.horizon"],
    stack="svgd",
    law=law,  # it ends as plain SVGD
    limit=limit,
    simplex=True,
    colour=("#766430", "#FBD365"),
    marker="triangle",
    wave=2,
    narrows=True,
)
def annealed(problem, *, alpha, horizon, cycles, power):
    "The attraction is switched off and on in cycles, so that repulsion can carry particles to other modes."

    def field(key, state):
        forces = interact(problem, key, state.particles, alpha)
        return Forces(schedule(state.step, horizon, cycles, power) * forces.attract, forces.repulse)

    return flow(problem, field)
