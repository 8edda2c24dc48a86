"""Diagnostics: numbers read off one state. A diagnostic is a function (view) -> scalar; NaN where it is undefined.

Every frame carries all of them. `log=True` says that a plot of it wants a log axis.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from stein_core.forces import Problem, squared_distances
from stein_core.registry import DIAGNOSTICS
from stein_core.types import Array, Forces

EXACT_DRAWS = 256  # exact samples that MMD compares with


class View(NamedTuple):
    """What a diagnostic may read. particles (n, p), weights (n,) with 0 for spare rows, forces at the particles,
    sigma: bandwidth, elbo: mixture ELBO or NaN, draws (n, d): one draw of each guide, key: the run's key."""

    problem: Problem
    particles: Array
    weights: Array
    forces: Forces
    sigma: Array
    elbo: Array
    draws: Array
    key: Array


@DIAGNOSTICS.register("mixture_elbo", label="mixture ELBO", reference="SMI paper, eq. 2")
def mixture_elbo(view):
    "Lower bound on log p(data), from this step's draws (so it is noisy); point masses have none."
    return view.elbo


@DIAGNOSTICS.register("marginal_variance", label="variance", reference="SMI paper, sec. 6.1", log=True)
def marginal_variance(view):
    "Marginal variance within + between guides, mean over coordinates (1/n form)."
    return within_variance(view) + between_variance(view)


@DIAGNOSTICS.register("within_variance", label="within guides", reference="law of total variance", log=True)
def within_variance(view):
    "Mean variance of the guides, mean over coordinates."
    return jnp.mean(view.weights @ view.problem.guide.scale(view.particles) ** 2)


@DIAGNOSTICS.register("between_variance", label="between guides", reference="law of total variance", log=True)
def between_variance(view):
    "Variance of the guides' locations (1/n), mean over coordinates."
    location = view.problem.guide.location(view.particles)
    return jnp.mean(view.weights @ (location - view.weights @ location) ** 2)


def _size(force, weights):
    return jnp.sqrt(weights @ jnp.sum(force**2, axis=1))


@DIAGNOSTICS.register("attraction", label="attraction", reference="Liu & Wang 2016, eq. 8", log=True)
def attraction(view):
    "Root mean square length of the attraction over the particles."
    return _size(view.forces.attract, view.weights)


@DIAGNOSTICS.register("repulsion", label="repulsion", reference="Liu & Wang 2016, eq. 8", log=True)
def repulsion(view):
    "Root mean square length of the repulsion over the particles."
    return _size(view.forces.repulse, view.weights)


@DIAGNOSTICS.register("force", label="total force", reference="SMI paper, sec. 6", log=True)
def force(view):
    "Root mean square length of the total force: it goes to 0 (or to its noise) at a fixed point."
    return _size(view.forces.attract + view.forces.repulse, view.weights)


@DIAGNOSTICS.register("bandwidth", label="bandwidth", reference="Ba et al. 2022, sec. 5.2", log=True)
def bandwidth(view):
    "sigma, the kernel's length in the particles' unit."
    return view.sigma


@DIAGNOSTICS.register("ksd", label="Stein discrepancy", reference="Gorham & Mackey 2017, eq. 5", log=True)
def ksd(view):
    """Kernel Stein discrepancy to the target (V-statistic), kernel (1 + r^2)^(-1/2), on one draw of each guide.

    k_p(x, y) = <s(x), s(y)> k + <s(x), grad_y k> + <s(y), grad_x k> + tr(grad_x grad_y k), with c = 1, beta = -1/2.
    """
    x, w = view.draws, view.weights
    d = x.shape[1]
    score = jax.vmap(jax.grad(view.problem.target.log_density))(x)
    score = jnp.where(w[:, None] > 0, score, 0.0)
    base = 1.0 + squared_distances(x, x)
    k = jax.lax.rsqrt(base)
    cross = score @ x.T  # <s(x_i), x_j>
    along = jnp.diagonal(cross)[:, None] - cross  # <s(x_i), x_i - x_j>
    first = (along + along.T) * k / base  # grad_y k = (x - y) k / base, grad_x k = -(x - y) k / base
    second = k / base * (d - 3.0 * (base - 1.0) / base)
    return jnp.sqrt(jnp.maximum(w @ (score @ score.T * k + first + second) @ w, 0.0))


@DIAGNOSTICS.register("mmd", label="MMD to exact", reference="Gretton et al. 2012, eq. 5", log=True)
def mmd(view):
    """Maximum mean discrepancy (V-statistic) between one draw of each guide and 256 exact ones (RBF kernel, bandwidth
    from the exact draws). Even perfect draws do not reach 0: 256 of them give about 0.05."""
    target = view.problem.target
    if target.sample is None:
        return jnp.float32(jnp.nan)
    exact = target.sample(jax.random.fold_in(view.key, 2**31 - 1), EXACT_DRAWS)
    within = squared_distances(exact, exact)
    scale = jnp.mean(within)

    def k(square):
        return jnp.exp(-square / scale)

    x, w = view.draws, view.weights
    square = w @ k(squared_distances(x, x)) @ w - 2 * jnp.mean(w @ k(squared_distances(x, exact))) + jnp.mean(k(within))
    return jnp.sqrt(jnp.maximum(square, 0.0))
