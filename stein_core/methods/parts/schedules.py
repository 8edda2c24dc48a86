"""Schedules gamma(t) of the attraction: from pure repulsion to the whole method. The knobs are shared."""

import jax.numpy as jnp

from stein_core.contract.knobs import Knob
from stein_core.contract.registry import Registry

SCHEDULES = Registry("schedule")


@SCHEDULES.register("none", label="none", reference="closed form")
def none(step, horizon, cycles, power):
    "1 at every step."
    return jnp.ones_like(horizon)


@SCHEDULES.register("linear", label="linear", reference="D'Angelo et al. 2021, app. D")
def linear(step, horizon, cycles, power):
    "t / T, and 1 from step T on."
    return jnp.minimum(step / horizon, 1.0)


@SCHEDULES.register("hyperbolic", label="hyperbolic", reference="D'Angelo & Fortuin 2021 (Annealed SVGD)")
def hyperbolic(step, horizon, cycles, power):
    "tanh((1.3 t / T)^p), and 1 from step T on. With p = 10 it is below 0.01 during the first half of T."
    return jnp.where(step >= horizon, 1.0, jnp.tanh((1.3 * jnp.minimum(step / horizon, 1.0)) ** power))


@SCHEDULES.register("cyclical", label="cyclical", reference="D'Angelo & Fortuin 2021 (Annealed SVGD), eq. 4")
def cyclical(step, horizon, cycles, power):
    "(mod(t, T/C) / (T/C))^p, and 1 from the last cycle on (t >= (C-1) T/C), so one cycle is plain SVGD."
    period = horizon / cycles
    within = jnp.mod(step, period) / period
    return jnp.where(step >= (cycles - 1) * period, 1.0, within**power)


HORIZON = Knob("horizon", 1000, 1, 1_000_000, "log", "horizon", "steps until the schedule ends and gamma is 1")
CYCLES = Knob("cycles", 5, 1, 20, "integer", "cycles", "sweeps from pure repulsion to all within the horizon")
POWER = Knob("power", 5.0, 0.1, 20.0, "log", "power", "how late in a cycle the attraction returns")


def knobs(default: str) -> tuple[Knob, ...]:
    """Return the choice of a schedule and its numbers as knobs."""
    schedule = Knob("schedule", default, label="annealing", choices=SCHEDULES, help="how the attraction comes on")
    return schedule, HORIZON, CYCLES, POWER


def least(knobs):
    """Return the steps until the schedule has ended, for knobs by their full names: the fact `least` of a method."""
    return 0 if knobs["method.schedule"] == "none" else knobs["method.horizon"]


def gamma(schedule, step, horizon, cycles, power):
    """Return gamma(t), in [0, 1], of the schedule with this traced index.

    Args:
        schedule: index in SCHEDULES.
        step, horizon: in steps.
        cycles, power: see the schedules.
    """
    return SCHEDULES.pick(schedule, step.astype(horizon.dtype), horizon, cycles, power)
