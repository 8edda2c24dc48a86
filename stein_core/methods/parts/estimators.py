"""Estimators of the particles' attraction and repulsion: Stein, KDE, SGE and SSGE. In weight space they make
Wasserstein gradient descent, in function space f-SVGD and its relatives."""

import jax
import jax.numpy as jnp

from stein_core.contract.knobs import Knob
from stein_core.contract.registry import Registry

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


def knob(name: str, default: str) -> Knob:
    """Return the choice of an estimator as a knob."""
    return Knob(name, default, label="estimator", choices=ESTIMATORS, help="of the score of the particles' density")


def estimate(estimator, gram, g, repulsion, weights):
    """Return (attraction, repulsion) of the estimator with this traced index.

    Args:
        estimator: index in ESTIMATORS.
        gram: (n, n) kernel on active rows, identity on spare ones.
        g: (n, p) gradients of the log density.
        repulsion: (n, k) R_l, the sum over i of grad_1 k(x_i, x_l).
        weights: (n,) 1/m, 0 for a spare row.
    """
    return ESTIMATORS.pick(estimator, gram, g, repulsion, weights)
