"""Scores of a prior over functions at finitely many inputs: what f-SVGD has instead of a prior of weights."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp

from stein_core.base.distances import squared_distances
from stein_core.base.streams import Stream
from stein_core.contract.knobs import Knob
from stein_core.contract.registry import BANDWIDTHS, Registry
from stein_core.contract.types import Array
from stein_core.forces.interaction import distances_and_bandwidth
from stein_core.forces.kernels import KERNELS
from stein_core.forces.problem import Problem
from stein_core.forces.sums import kernel_forces
from stein_core.methods.parts.function_space import Outputs

JITTER = 1e-3  # on the diagonal of a covariance, relative to its mean
RIDGE = 0.01
DRAWS, AT = 40, 4  # of `moments`

# A prior is a function (problem, key, outputs) -> (n, R, c) scores at the outputs, 0 at spare inputs.
FUNCTIONAL_PRIORS = Registry("prior over functions")


@FUNCTIONAL_PRIORS.register("nngp", label="NNGP", reference="Lee et al. 2018; Cho & Saul 2009")
def nngp(problem, key, outputs):
    "The Gaussian process that the network's prior tends to with its width: -K^-1 F, with K in closed form."
    covariance = problem.target.functions.prior_covariance
    if covariance is None:  # `function_space.check` refuses it
        return jnp.full_like(outputs.values, jnp.nan)
    known = outputs.known
    gram = covariance(outputs.x, outputs.x) * known[:, None] * known
    jitter = JITTER * jnp.trace(gram) / jnp.maximum(jnp.sum(known), 1.0)
    factor = jax.scipy.linalg.cho_factor(gram + jnp.diag(jnp.where(known > 0, jitter, 1.0)))
    n, r, c = outputs.values.shape
    flat = jnp.moveaxis(outputs.values * known[:, None], 1, 0).reshape(r, n * c)
    solved = jax.scipy.linalg.cho_solve(factor, flat).reshape(r, n, c)
    return -jnp.moveaxis(solved, 0, 1) * known[:, None]


@FUNCTIONAL_PRIORS.register("ssge", label="SSGE of prior draws", reference="D'Angelo et al. 2021; Shi et al. 2018")
def ssge(problem, key, outputs):
    """The spectral Stein gradient estimator from as many draws of the prior as there are particles: k(F, Z)
    (K + eta I)^-2 V with eta = 0.01. It is a rough estimate, see the page "Function space"."""
    n = len(outputs.values)
    functions = problem.target.functions
    draws = functions.prior_sample(jax.random.fold_in(key, Stream.PRIOR), n)
    z = jax.vmap(lambda theta: functions.outputs(theta, outputs.x))(draws) * outputs.known[:, None]
    at, z = (outputs.values * outputs.known[:, None]).reshape(n, -1), z.reshape(n, -1)
    return spectral_score(problem, at, z).reshape(outputs.values.shape) * outputs.known[:, None]


@FUNCTIONAL_PRIORS.register("moments", label="Gaussian of prior draws", reference="Wang et al. 2019 (f-POVI)")
def moments(problem, key, outputs):
    "A Gaussian with the mean and covariance of 40 draws of the prior at 4 inputs, chosen at random in each step."
    functions = problem.target.functions
    for_inputs, for_draws = jax.random.split(jax.random.fold_in(key, Stream.PRIOR))
    n, r, c = outputs.values.shape
    scores = jax.random.uniform(for_inputs, (r,), jnp.float32) + outputs.known
    known, chosen = jax.lax.top_k(scores, min(AT, r))
    real = known > 1
    draws = functions.prior_sample(for_draws, DRAWS)
    z = jax.vmap(lambda theta: functions.outputs(theta, outputs.x[chosen]))(draws)  # (draws, 4, c)
    mean = jnp.mean(z, axis=0)
    apart = (z - mean) * real[:, None]

    def score(apart, difference):  # of one output: (draws, 4), (n, 4)
        covariance = apart.T @ apart / (DRAWS - 1)
        jitter = JITTER * jnp.trace(covariance) / jnp.maximum(jnp.sum(real), 1)
        covariance = covariance + jnp.diag(jnp.where(real, jitter, 1.0))
        return -jnp.linalg.solve(covariance, difference.T).T

    difference = (outputs.values[:, chosen] - mean) * real[:, None]
    found = jax.vmap(score, 2, 2)(apart, difference) * real[:, None]
    return jnp.zeros_like(outputs.values).at[:, chosen].set(found)


@FUNCTIONAL_PRIORS.register("none", label="none", reference="closed form")
def none(problem, key, outputs):
    "No prior: the likelihood and the repulsion alone."
    return jnp.zeros_like(outputs.values)


PRIOR_KNOB = Knob(
    "prior", "nngp", label="prior of the functions", choices=FUNCTIONAL_PRIORS, help="instead of a prior of the weights"
)


def spectral_score(problem: Problem, at: Array, z: Array) -> Array:
    """Return the SSGE with all eigenpairs of the density of z, (n, k) scores at `at`.

    The kernel is RBF and the bandwidth that of rule `median_log`, whatever the problem's.

    Args:
        problem: has the number of active rows.
        at: (n, k) where the score is wanted.
        z: (M, k) draws; the first `problem.m` count.
    """
    first = lambda registry, name: jnp.asarray(registry.index(name), float)  # noqa: E731
    rbf = problem._replace(
        kernel=first(KERNELS, "rbf"), rule=first(BANDWIDTHS, "median_log"), factor=jnp.ones_like(problem.factor)
    )
    count, active = len(z), problem.active(len(z))
    squared, sigma = distances_and_bandwidth(rbf, z)
    weights = problem.weights(count)
    repulsion = problem.m * kernel_forces(rbf, z, weights, z, z, squared, sigma).repulse
    both = active[:, None] & active
    gram = jnp.where(both, jnp.exp(-squared / (2 * sigma**2)), jnp.eye(count))
    factor = jax.scipy.linalg.cho_factor(gram + RIDGE * jnp.eye(count))
    solve = lambda right: jax.scipy.linalg.cho_solve(factor, right)  # noqa: E731
    solved = solve(solve(jnp.where(active[:, None], -repulsion, 0.0)))
    across = jnp.exp(-squared_distances(at, z) / (2 * sigma**2))
    return jnp.where(active, across, 0.0) @ jnp.where(active[:, None], solved, 0.0)


def prior_score(problem: Problem, key: Array, outputs: Outputs, prior: Array) -> Array:
    """Return the (n, R, c) score of the prior with this traced index; 0 if the target has no functions."""
    if problem.target.functions is None:
        return jnp.zeros_like(outputs.values)
    return FUNCTIONAL_PRIORS.pick(prior, branch=lambda entry: partial(entry.make, problem, key, outputs))
