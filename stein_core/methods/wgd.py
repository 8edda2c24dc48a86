"""Wasserstein gradient descent: each particle's own score, and an estimate of the score of the particles' density."""

import numpy as np

from stein_core import theory
from stein_core.contract.registry import METHODS
from stein_core.forces.gram import gram_of
from stein_core.forces.interaction import Forces, distances_and_bandwidth, flow, gradients
from stein_core.forces.sums import kernel_forces
from stein_core.methods.parts import estimators
from stein_core.methods.parts.estimators import RIDGE, estimate
from stein_core.methods.svgd import ALPHA


def law(d, n, knobs):
    """The variance at the regular simplex, where all pairs are at one u, kappa = f(u) and a = -n u f'(u) / d: SVGD's is
    alpha a / (1 - kappa), that of the other estimators follows from their matrices."""
    functions = theory.profile(knobs["kernel.name"])
    if functions is None or not 2 <= n <= d + 1:
        return np.nan

    def balance(u):
        kappa, slope = functions[0](u), functions[1](u)
        a, left = -n * u * slope / d, 1 - kappa + RIDGE
        by = {
            "kde": 1 / (1 + (n - 1) * kappa),
            "sge": 1 / left,
            "ssge": (1 - kappa) / left**2,
            "stein": 1 / (1 - kappa),
        }
        return a * by.get(knobs["method.estimator"], np.nan)

    rule, factor = knobs["bandwidth.rule"], knobs["bandwidth.factor"]
    return theory.simplex_root(d, n, rule, factor, knobs["method.alpha"], balance)


@METHODS.register(
    "wgd",
    label="Wasserstein descent",
    reference="D'Angelo & Fortuin 2021 (Repulsive deep ensembles)",
    guides=("point",),
    knobs=(ALPHA, estimators.knob("estimator", "kde")),
    law=law,
    simplex=True,
    colour=("#8A4B00", "#F0B36B"),
    marker="square",
)
def wgd(problem, *, alpha, estimator):
    "Each particle follows its own score and leaves where the particles are dense; an estimator says where that is."

    def field(key, state):
        x = state.particles
        weights, g = problem.weights(len(x)), gradients(problem, key, x).guide
        squared, sigma = distances_and_bandwidth(problem, x)
        repulsion = problem.m * kernel_forces(problem, x, weights, g, x, squared, sigma).repulse
        attract, repulse = estimate(estimator, gram_of(problem, x), g, repulsion, weights)
        return Forces(attract, alpha * repulse)

    return flow(problem, field)
