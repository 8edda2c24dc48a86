"""KSD descent: gradient descent of points on the kernel Stein discrepancy."""

from functools import partial

import jax
import jax.numpy as jnp

from stein_core.base.distances import LEAST, squared_distances
from stein_core.contract.registry import METHODS
from stein_core.forces.interaction import Forces, distances_and_bandwidth, flow
from stein_core.forces.kernels import KERNELS
from stein_core.forces.problem import log_density_of
from stein_core.forces.sums import is_inner, is_singular


def stein_kernel(problem, x, score, squared, sigma):
    """Return the Stein kernel u_p(x_i, x_l) in two parts (n, n): with the scores, and the trace without any.

    Args:
        problem: has the kernel.
        x: (n, d) points.
        score: (n, d) grad log p.
        squared: (n, n) squared distances.
        sigma: the kernel's length.
    """
    d, cross = problem.d, score @ x.T  # <s_i, x_l>
    own = jnp.diagonal(cross)

    def twice(profile, at):
        first = lambda t: jax.jvp(profile, (t,), (jnp.ones_like(t),))[1]  # noqa: E731
        return profile(at), first(at), jax.jvp(first, (at,), (jnp.ones_like(at),))[1]

    def radial(profile, squared):
        apart = squared > LEAST
        k, slope, bend = twice(profile, jnp.where(apart, squared, LEAST) / (2.0 * sigma**2))
        if is_singular(profile):
            slope, bend = jnp.where(apart, slope, 0.0), jnp.where(apart, bend, 0.0)
        across = own[:, None] - cross.T - cross + own[None, :]  # <s_i - s_l, x_i - x_l>
        return score @ score.T * k - slope * across / sigma**2, -(bend * squared / sigma**2 + slope * d) / sigma**2

    def inner(profile, squared):
        product = x @ x.T
        k, slope, bend = twice(profile, product / sigma**2)
        ends = own[:, None] + own[None, :]  # <s_i, x_i> from grad_y k = f' x / sigma^2
        return score @ score.T * k + slope * ends / sigma**2, (bend * product / sigma**2 + slope * d) / sigma**2

    branch = lambda entry: partial(inner if is_inner(entry) else radial, entry.make)  # noqa: E731
    return KERNELS.pick(problem.kernel, squared, branch=branch)


@METHODS.register(
    "ksdd",
    label="KSD descent",
    reference="Korba et al. 2021, eq. 10",
    guides=("point",),
    colour=("#9C2F6B", "#F2A0CB"),
    marker="triangle_dot",
)
def ksdd(problem):
    """Points descend their own kernel Stein discrepancy, with the bandwidth held fixed. A point on a line of symmetry
    between two modes never leaves it. A kernel that is not smooth has no such discrepancy: its diagonal is left out."""

    def field(key, state):
        weights, active = problem.weights(len(state.particles)), problem.active(len(state.particles))[:, None]
        _, sigma = distances_and_bandwidth(problem, state.particles)
        score_of = jax.vmap(jax.grad(log_density_of(problem.target, key)))

        def part(which):
            def total(x):
                x = jnp.where(active, x, 0.0)
                squared = squared_distances(x, x, weights)
                both = stein_kernel(problem, x, jnp.where(active, score_of(x), 0.0), squared, sigma)
                return weights @ both[which] @ weights

            return -problem.m * jax.grad(total)(state.particles)

        return Forces(part(0), part(1))

    return flow(problem, field)
