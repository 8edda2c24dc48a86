"""Damped SVGD."""

import math
from functools import partial

import jax
import jax.numpy as jnp

from stein_core import theory
from stein_core.contract.knobs import Knob
from stein_core.contract.registry import KERNELS, METHODS, Registry
from stein_core.forces.interaction import flow, interact
from stein_core.forces.sums import is_inner
from stein_core.methods.svgd import ALPHA

DAMPINGS = Registry("damping rule")


def predicted(profile, gamma, factor=1.0):
    """Return lambda = min(1, (f(u) - u f'(u) / gamma) / f(0)), f(0) = 1, u = 1 / factor^2.

    With this lambda and bandwidth factor the law of `theory.simplex_variance` gives variance 1 for gamma = d / n > 1,
    rule `median` and alpha = 1. Source: Ba et al. 2022, eq. 5, which has factor = 1.
    """
    u = jnp.asarray(factor, float) ** -2
    f, scaled = jax.jvp(profile, (u,), (u,))
    return jnp.minimum(1.0, f - scaled / gamma)


@DAMPINGS.register("ba", label="Ba et al.", reference="Ba et al. 2022, eq. 5")
def ba(problem, chosen):
    "The lambda of Ba et al., made for a standard normal and rule `median`; no damping for inner-product kernels."
    gamma = problem.d / problem.m
    table = [1.0 if is_inner(e) else predicted(e.make, gamma, problem.factor) for e in KERNELS.entries()]
    return jnp.stack([jnp.asarray(value, float) for value in table])[problem.kernel.astype(jnp.int32)]


@DAMPINGS.register("free", label="free", reference="Ba et al. 2022, app. A.3")
def free(problem, chosen):
    "The knob `method.lambda_`."
    return chosen


KNOBS = (
    ALPHA,
    Knob("damping", "ba", label="damping", choices=DAMPINGS, help="where lambda comes from"),
    Knob("lambda_", 0.5, 0.0, 1.0, label="lambda", help="factor on a particle's own attraction, with damping `free`"),
)


def law(d, n, knobs):
    "The variance at the regular simplex with the damping's factor; NaN for a damping rule of somebody's own."
    kernel, rule, factor = (knobs[name] for name in ("kernel.name", "bandwidth.rule", "bandwidth.factor"))
    lambdas = {"ba": theory.damping(d / n, kernel, factor), "free": knobs["method.lambda_"]}
    own = lambdas.get(knobs["method.damping"], math.nan)
    return theory.simplex_variance(d, n, kernel, rule, knobs["method.alpha"], own, factor)


@METHODS.register(
    "damped",
    label="Damped SVGD",
    reference="Ba et al. 2022, eq. 5",
    guides=("point",),
    linear=True,
    knobs=KNOBS,
    stack="svgd",
    law=law,
    simplex=True,
    colour=("#3B727C", "#83DDEC"),
    marker="inverted_triangle",
)
def damped(problem, *, alpha, damping, lambda_):
    "SVGD in which a particle's attraction by its own score is weakened by lambda, which undoes the collapse."

    def field(key, state):
        factor = DAMPINGS.pick(damping, lambda_, branch=lambda entry: partial(entry.make, problem))
        return interact(problem, key, state.particles, alpha, damping=factor)

    return flow(problem, field)
