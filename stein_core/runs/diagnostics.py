"""Diagnostics: numbers read off one state. A diagnostic is a function (view) -> scalar; NaN means undefined.

Whoever looks at a state says which of them to compute. `log=True` asks a plot for a log axis. `live=False` keeps a
diagnostic out of the read-outs beside a moving stage.
"""

from __future__ import annotations

from collections.abc import Collection

import jax
import jax.numpy as jnp
import numpy as np

from stein_core.base.distances import center, squared_distances, squared_distances_around, stein_matrix
from stein_core.base.streams import Stream
from stein_core.contract.registry import DIAGNOSTICS
from stein_core.contract.types import Forces, State
from stein_core.forces.interaction import distances_and_bandwidth, gradients
from stein_core.forces.problem import Problem
from stein_core.forces.sums import ROWS, in_blocks, summed
from stein_core.runs.view import View

EXACT_DRAWS = 256  # exact samples that MMD compares with


@DIAGNOSTICS.register("mixture_elbo", label="mixture ELBO", reference="SMI paper, eq. 2", needs=("density",))
def mixture_elbo(view):
    "Lower bound on log p(data), from this step's draws (so it is noisy); point masses have none."
    return view.gradients.elbo


@DIAGNOSTICS.register("components", label="effective components", reference="SMI paper, sec. 4", live=False)
def components(view):
    """exp(L - L_up), with L the mixture ELBO and L_up the mean of the guides' own. L - L_up is the mutual information
    of theta and the guide's number, so this counts guides that do not overlap. It is between 1 and m. The estimate
    from this step's draws is cut to that range."""
    return jnp.clip(jnp.exp(view.gradients.elbo - view.gradients.component_elbo), 1.0, view.problem.m)


@DIAGNOSTICS.register(
    "marginal_variance", label="variance, all 1/n", reference="SMI paper, sec. 6.1", log=True, live=False
)
def marginal_variance(view):
    "Marginal variance within + between guides, mean over coordinates (1/n form)."
    return within_variance(view) + between_variance(view)


@DIAGNOSTICS.register(
    "within_variance", label="within guides", reference="law of total variance", log=True, needs=("density",)
)
def within_variance(view):
    "Mean variance of the guides, mean over coordinates."
    return view.average(view.moments()[0])


@DIAGNOSTICS.register(
    "between_variance",
    label="between guides",
    reference="law of total variance",
    log=True,
    needs=("density", "several"),
)
def between_variance(view):
    "Variance of the guides' locations (1/n), mean over coordinates."
    return view.average(view.moments()[1])


@DIAGNOSTICS.register(
    "sample_variance",
    label="variance",
    reference="Ba et al. 2022, Prop. 3; SMI paper, sec. 6.1",
    log=True,
)
def sample_variance(view):
    """Variance that the particles give a posterior. Points are a sample, so theirs has 1/(n-1), as the laws of `theory`
    have it. Guides are a mixture, whose variance is within + between with 1/n. One point has 0."""
    m = view.problem.m
    if view.problem.guide.log_density is not None:
        return marginal_variance(view)
    return between_variance(view) * m / jnp.maximum(m - 1, 1)


@DIAGNOSTICS.register(
    "covariance_error", label="Frobenius distance", reference="SMI paper, fig. 4 (text)", log=True, live=False
)
def covariance_error(view):
    "|C - Sigma|_F between the mixture's covariance (1/n between guides) and the exact one, all entries."
    target = view.problem.target
    if target.truth.variance is None:
        return jnp.asarray(jnp.nan)
    location = view.problem.guide.location(view.particles)
    root = jnp.sqrt(view.weights)[:, None] * (location - view.weights @ location)
    if view.problem.guide.factor is not None:
        columns = jnp.sqrt(view.weights)[:, None, None] * view.problem.guide.factor(view.particles)
        root = jnp.concatenate([root, jnp.moveaxis(columns, -1, 1).reshape(-1, root.shape[1])])
    gram = root @ root.T if len(root) <= root.shape[1] else root.T @ root  # both have the sum of squares of B = R^T R
    off_diagonal = jnp.sum(gram**2) - jnp.sum(jnp.sum(root**2, axis=0) ** 2)
    if target.truth.covariance is not None:
        exact = jnp.asarray(target.truth.covariance - np.diag(target.truth.variance), float)
        real = view.real(jnp.ones(target.dim))
        off_diagonal += real @ exact**2 @ real - 2 * jnp.sum((root @ exact) * root)
    return jnp.sqrt(jnp.maximum(off_diagonal, 0.0) + diagonal_error(view) ** 2)


@DIAGNOSTICS.register(
    "diagonal_error",
    label="Frobenius distance, diagonal only",
    reference="SMI paper, fig. 4 (code)",
    log=True,
    live=False,
)
def diagonal_error(view):
    "|diag(C - Sigma)|: what the published code plots as the distance of covariances."
    target = view.problem.target
    if target.truth.variance is None:
        return jnp.asarray(jnp.nan)
    within, between = view.moments()
    return jnp.sqrt(jnp.sum((within + between - view.real(jnp.asarray(target.truth.variance, float))) ** 2))


@DIAGNOSTICS.register("mean_location", label="mean location", reference="SMI paper, fig. 5", live=False)
def mean_location(view):
    "Mean over particles and coordinates of location minus the exact mean; `theory.mean_band` is its i.i.d. noise."
    mean = view.problem.target.truth.mean
    if mean is None:
        return jnp.asarray(jnp.nan)
    return view.average(view.weights @ view.problem.guide.location(view.particles) - jnp.asarray(mean, float))


def _centered(view):
    location = view.problem.guide.location(view.particles)
    return jnp.where(view.weights[:, None] > 0, location - view.weights @ location, 0.0)


@DIAGNOSTICS.register(
    "norm_spread", label="spread of norms", reference="Ba et al. 2022, app. A.2 (i)", log=True, live=False
)
def norm_spread(view):
    "max_i | |x_i|^2 - v d | / sqrt(d) around the particles' mean, v d the mean of |x_i|^2: 0 on a regular simplex."
    norms = jnp.sum(_centered(view) ** 2, axis=1)
    gap = jnp.where(view.weights > 0, jnp.abs(norms - view.weights @ norms), 0.0)
    return jnp.max(gap) / jnp.sqrt(view.problem.d)


@DIAGNOSTICS.register(
    "overlap", label="overlap", reference="Ba et al. 2022, app. A.2 (ii)", log=True, live=False, pairs=True
)
def overlap(view):
    "max |<x_i, x_j>| / sqrt(d) over pairs, around the particles' mean: near 0 if they are nearly orthogonal."
    x, every = _centered(view), jnp.arange(len(view.particles))

    def largest(some, rows):
        return jnp.max(jnp.where(rows[:, None] == every, 0.0, jnp.abs(some @ x.T)), axis=1)

    found = largest(x, every) if view.squared is not None else in_blocks(largest, ROWS, x, every)
    return jnp.max(found) / jnp.sqrt(view.problem.d)


@DIAGNOSTICS.register(
    "driving_noise", label="variance of S1", reference="Ba et al. 2022, Prop. 2", log=True, live=False, pairs=True
)
def driving_noise(view):
    "Variance of k(x_j, x) grad log p(x_j) over particles j, mean over particles x: it grows with d."
    return view.fluctuations[0]


@DIAGNOSTICS.register(
    "repulsion_noise", label="variance of S2", reference="Ba et al. 2022, Prop. 2", log=True, live=False, pairs=True
)
def repulsion_noise(view):
    "Variance of grad_1 k(x_j, x) over particles j, mean over particles x: it falls with d."
    return view.fluctuations[1]


def _size(force, weights):
    return jnp.sqrt(weights @ jnp.sum(force**2, axis=1))


@DIAGNOSTICS.register("attraction", label="attraction", reference="Liu & Wang 2016, eq. 8", log=True)
def attraction(view):
    "Root mean square length of the attraction over the particles."
    return _size(view.forces.attract, view.weights)


@DIAGNOSTICS.register("repulsion", label="repulsion", reference="Liu & Wang 2016, eq. 8", log=True, needs=("kernel",))
def repulsion(view):
    "Root mean square length of the repulsion over the particles."
    return _size(view.forces.repulse, view.weights)


@DIAGNOSTICS.register("force", label="total force", reference="SMI paper, sec. 6", log=True)
def force(view):
    "Root mean square length of the total force: it goes to 0 (or to its noise) at a fixed point."
    return _size(view.forces.attract + view.forces.repulse, view.weights)


@DIAGNOSTICS.register("bandwidth", label="bandwidth", reference="Ba et al. 2022, sec. 5.2", log=True, needs=("kernel",))
def bandwidth(view):
    "sigma, the kernel's length in the particles' unit."
    return view.sigma


@DIAGNOSTICS.register(
    "stein_trace", label="Stein trace", reference="integration by parts", reads="draws", full_data=True, ideal=1.0
)
def stein_trace(view):
    """1 for exact draws of any target, below 1 if they are too narrow for their scores: r = -sum_l s_l . (x_l - mean) /
    ((n - 1) d), s the score.

    It is a mean over directions, weighted by precision, and does not see a shift. SVGD's particles at rest have the
    value of `theory.simplex_variance` on any target, if all their distances are about equal. Guides have one draw each,
    and their mixture's mean is known, so that n replaces n - 1.
    """
    m = view.problem.m
    if view.problem.guide.log_density is None:
        mean, count = view.weights @ view.draws, jnp.where(m > 1, m - 1, jnp.nan)
    else:
        mean, count = view.weights @ view.problem.guide.location(view.particles), m
    return -jnp.sum(view.real(view.scores * (view.draws - mean))) / (count * view.problem.d)


@DIAGNOSTICS.register(
    "ksd",
    label="Stein discrepancy",
    reference="Gorham & Mackey 2017, eq. 5",
    log=True,
    pairs=True,
    reads="draws",
    full_data=True,
)
def ksd(view):
    """Kernel Stein discrepancy to the target (V-statistic), kernel (1 + r^2)^(-1/2), on one draw of each guide. Few
    particles in many dimensions can collapse unseen: of 20 in 50 dimensions, SVGD's have 2.1 and exact draws 2.2."""
    w = view.weights
    x = view.draws - center(view.draws, w)
    if view.squared is not None:
        square = w @ stein_matrix(x, view.scores, squared_distances(x, x, w), view.problem.d) @ w
    else:

        def rows(weights, some, scores):
            apart = squared_distances_around(0.0, some, x)
            return weights @ stein_matrix(some, scores, apart, view.problem.d, (x, view.scores)) @ w

        square = summed(rows, w, x, view.scores)
    return jnp.sqrt(jnp.maximum(square, 0.0))


@DIAGNOSTICS.register(
    "mmd",
    label="MMD to exact",
    reference="Gretton et al. 2012, eq. 5",
    log=True,
    pairs=True,
    needs=("sample",),
    reads="draws",
)
def mmd(view):
    """Maximum mean discrepancy (V-statistic) between one draw of each guide and 256 exact ones (RBF kernel, bandwidth
    from the exact draws). Even perfect draws do not reach 0: 256 of them give about 0.05."""
    target = view.problem.target
    if target.truth.sample is None:
        return jnp.asarray(jnp.nan)
    exact = target.truth.sample(jax.random.fold_in(view.key, Stream.EXACT), EXACT_DRAWS)
    exact = view.real(exact)
    within = squared_distances(exact, exact)
    scale = jnp.mean(within)

    def k(square):
        return jnp.exp(-square / scale)

    x, w = view.draws, view.weights
    if view.squared is not None:
        own = w @ k(squared_distances(x, x, w)) @ w
    else:
        origin = center(x, w)
        own = summed(lambda weights, some: weights @ k(squared_distances_around(origin, some, x)) @ w, w, x)
    square = own - 2 * jnp.mean(w @ k(squared_distances(x, exact, w))) + jnp.mean(k(within))
    return jnp.sqrt(jnp.maximum(square, 0.0))


def evaluate(problem: Problem, key, state: State, forces: Forces, names: Collection[str] | None = None):
    """Return diagnostics of a state as one vector, in the registry's order.

    Args:
        problem: the problem.
        key: of this step, so that the draws are those of the step.
        state: the state.
        forces: at the state.
        names: which; None for all.
    """
    g = gradients(problem, key, state.particles)  # the same draws as the step's
    squared, sigma = distances_and_bandwidth(problem, state.particles)
    n = state.particles.shape[0]
    draws = jax.vmap(problem.guide.sample)(state.particles, problem.draw(jax.random.fold_in(key, Stream.SEEN), (n,)))
    view = View(problem, state.particles, problem.weights(n), forces, g, squared, sigma, draws, state.key)
    return jnp.stack(
        [jnp.asarray(e.make(view), float) for e in DIAGNOSTICS.entries() if names is None or e.name in names]
    )
