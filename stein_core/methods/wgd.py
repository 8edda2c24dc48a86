"""Particle methods that estimate the score of the particles' own density: Stein, KDE, SGE and SSGE."""

import jax
import jax.numpy as jnp
import numpy as np

from stein_core import theory
from stein_core.forces import Forces, distances_and_bandwidth, flow, gradients
from stein_core.gram import gram_of
from stein_core.kernel_sums import kernel_forces
from stein_core.knobs import Knob
from stein_core.methods.svgd import ALPHA
from stein_core.registry import METHODS, Registry

ESTIMATORS = Registry("estimator")
RIDGE = 0.01  # eta, on the diagonal of the Gram matrix


def _solved(gram, right, times=1):
    factor = jax.scipy.linalg.cho_factor(gram + RIDGE * jnp.eye(len(gram)))
    for _ in range(times):
        right = jax.scipy.linalg.cho_solve(factor, right)
    return right


# An estimator is a function (K (n, n), g (n, d), R (n, d), w (n,)) -> (attraction, repulsion), with
# R_l = sum_i grad_1 k(x_i, x_l).


@ESTIMATORS.register("kde", label="KDE", reference="D'Angelo & Fortuin 2021")
def kde(gram, g, repulsion, weights):
    "The score of a kernel density estimate: the repulsion divided by the density at the particle."
    return g, repulsion / (gram @ (weights > 0))[:, None]


@ESTIMATORS.register("sge", label="SGE", reference="Li & Turner 2018; D'Angelo & Fortuin 2021")
def sge(gram, g, repulsion, weights):
    "Stein gradient estimator, (K + eta I)^-1 R with eta = 0.01. With eta = 0 it has SVGD's fixed points."
    return g, _solved(gram, repulsion)


@ESTIMATORS.register("ssge", label="SSGE", reference="Shi et al. 2018; D'Angelo & Fortuin 2021")
def ssge(gram, g, repulsion, weights):
    "Spectral Stein gradient estimator with all eigenpairs, K (K + eta I)^-2 R with eta = 0.01."
    return g, gram @ _solved(gram, repulsion, times=2)


@ESTIMATORS.register("stein", label="Stein (SVGD)", reference="Liu & Wang 2016, eq. 8")
def stein(gram, g, repulsion, weights):
    "SVGD: the kernel averages the scores too, and nothing is divided by the density."
    return gram @ (weights[:, None] * g), jnp.max(weights) * repulsion


def law(d, n, knobs):
    """The variance at the regular simplex, where all pairs are at one u, kappa = f(u) and a = -n u f'(u) / d: SVGD's is
    alpha a / (1 - kappa), that of the other estimators follows from their matrices."""
    functions = theory.profile(knobs["kernel.name"])
    u = theory.pair_argument(n, knobs["bandwidth.rule"], knobs["bandwidth.factor"])
    if functions is None or u is None or not 2 <= n <= d + 1:
        return np.nan
    kappa, slope = functions[0](u), functions[1](u)
    a, left = -knobs["method.alpha"] * n * u * slope / d, 1 - kappa + RIDGE
    by = {
        "kde": 1 / (1 + (n - 1) * kappa),
        "sge": 1 / left,
        "ssge": (1 - kappa) / left**2,
        "stein": 1 / (1 - kappa),
    }
    return a * by.get(knobs["method.estimator"], np.nan)


ESTIMATOR = Knob(
    "estimator", "kde", label="estimator", choices=ESTIMATORS, help="of the score of the particles' density"
)


@METHODS.register(
    "wgd",
    label="Wasserstein descent",
    reference="D'Angelo & Fortuin 2021 (Repulsive deep ensembles)",
    guides=("point",),
    knobs=(ALPHA, ESTIMATOR),
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
        branches = [e.make for e in ESTIMATORS.entries()]
        gram = gram_of(problem, x)
        attract, repulse = jax.lax.switch(estimator.astype(jnp.int32), branches, gram, g, repulsion, weights)
        return Forces(attract, alpha * repulse)

    return flow(problem, field)
