"""Kernel sums over particles, for the kernel of a problem: the two forces, and the matrices of values and slopes."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from stein_core.base.distances import EXACT_DIFFERENCES, LEAST, center
from stein_core.contract.types import Array, Forces
from stein_core.forces.kernels import KERNELS
from stein_core.forces.problem import Problem

ROWS = 256  # sources per block of kernel values


def _radial(profile):
    """Return f and f' / sigma^2 for k = f(u). Then grad_1 k(x_i, y_l) = f'(u) (x_i - y_l) / sigma^2."""

    def values(squared, inner, sigma):
        u = squared / (2.0 * sigma**2)
        # A profile may have an infinite slope at 0 (Laplace); there the difference is 0 and so is the repulsion.
        f, slope = jax.jvp(profile, (jnp.maximum(u, LEAST),), (jnp.ones_like(u),))
        return f, jnp.where(u > 0, slope, 0.0) / sigma**2

    return values


def _inner(profile):
    """Return f and f' / sigma^2 for k = f(s), s = <x, y> / sigma^2. Then grad_1 k(x_i, y_l) = f'(s) y_l / sigma^2."""

    def values(squared, inner, sigma):
        s = inner / sigma**2
        f, slope = jax.jvp(profile, (s,), (jnp.ones_like(s),))
        return f, slope / sigma**2

    return values


def is_singular(profile) -> bool:
    """Return whether a profile has an infinite slope at 0."""
    with jax.ensure_compile_time_eval():
        return not bool(jnp.isfinite(jax.grad(profile)(0.0)))


def is_inner(entry) -> bool:
    """Return whether the argument of a kernel is the inner product, not the distance."""
    return entry.facts.argument == "inner"


def summed(of, weights: Array, *arrays: Array):
    """Return of(weights, *arrays), a weighted sum over their common first axis.

    Many rows are summed ROWS at a time, so that intermediate matrices stay in the processor's cache.
    """
    n = len(weights)
    if n <= 2 * ROWS:  # they fit, and one large matmul is faster than two
        return of(weights, *arrays)

    def add(i, total):
        start = jnp.minimum(i * ROWS, n - ROWS)
        some = [jax.lax.dynamic_slice_in_dim(a, start, ROWS) for a in (weights, *arrays)]
        new = start + jnp.arange(ROWS) >= i * ROWS  # the last rows overlap with those before
        return jax.tree.map(jnp.add, total, of(some[0] * new, *some[1:]))

    shapes = jax.eval_shape(of, *[a[:ROWS] for a in (weights, *arrays)])
    return jax.lax.fori_loop(0, -(-n // ROWS), add, jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes))


def kernel_forces(
    problem: Problem, x: Array, weights: Array, g: Array, y: Array, squared: Array, sigma: Array
) -> Forces:
    """Return the forces of sources x on y: both sums of the first formula of `forces`, with alpha = 1.

    Args:
        problem: has the kernel.
        x: (N, p) sources.
        weights: (N,) of the sources.
        g: (N, p) gradients of the sources.
        y: (n, p) particles that feel the forces.
        squared: (N, n) |x_i - y_l|^2.
        sigma: bandwidth.
    """

    def radial(profile):
        values = _radial(profile)
        # Close pairs with a steep slope need exact differences: the sums of the matmul below would cancel.
        exact = is_singular(profile) and x.shape[1] <= EXACT_DIFFERENCES

        def act(x, y, squared, sigma):
            origin = center(x, weights)  # small differences of large coordinates would lose digits

            def of(weights, x, g, squared):
                f, slope = (weights[:, None] * each for each in values(squared, None, sigma))
                if exact:
                    return g.T @ f, jnp.stack([jnp.sum(slope * (s[:, None] - r), axis=0) for s, r in zip(x.T, y.T)])
                sources = jnp.concatenate([x - origin, jnp.ones((len(x), 1))], axis=1)
                return g.T @ f, sources.T @ slope  # in this order it is several times as fast for small p

            attract, pushed = (total.T for total in summed(of, weights, x, g, squared))
            return (attract, pushed) if exact else (attract, pushed[:, :-1] - pushed[:, -1:] * (y - origin))

        return act

    def inner(values):
        def act(x, y, squared, sigma):
            def of(weights, x, g):
                f, slope = values(None, x @ y.T, sigma)
                return f.T @ (weights[:, None] * g), weights @ slope

            attract, slope = summed(of, weights, x, g)
            return attract, slope[:, None] * y

        return act

    branch = lambda entry: inner(_inner(entry.make)) if is_inner(entry) else radial(entry.make)  # noqa: E731
    return Forces(*KERNELS.pick(problem.kernel, x, y, squared, sigma, branch=branch))


def kernel_matrix(problem: Problem, particles: Array, squared: Array, sigma: Array) -> tuple[Array, Array]:
    """Return k(psi_i, psi_l) and |grad_1 k(psi_i, psi_l)|^2, (n, n) each.

    Args:
        problem: has the kernel.
        particles: (n, p).
        squared, sigma: of `distances_and_bandwidth`.
    """
    inner = particles @ particles.T
    norms = jnp.broadcast_to(jnp.diagonal(inner), inner.shape)

    def branch(entry):
        values, gap = (_inner(entry.make), norms) if is_inner(entry) else (_radial(entry.make), squared)

        def both(squared, inner, sigma):
            f, slope = values(squared, inner, sigma)
            return f, slope**2 * gap

        return both

    return KERNELS.pick(problem.kernel, squared, inner, sigma, branch=branch)


def pair_gradients(problem: Problem, x: Array, squared: Array, sigma: Array, target=None) -> Array:
    """Return grad_1 k(x_i, x_l) of all pairs, (n, n, p), or (n, p) for one l.

    Args:
        problem: has the kernel.
        x: (n, p).
        squared, sigma: of `distances_and_bandwidth`.
        target: the l, may be traced; None for all.
    """
    column = lambda a: a if target is None else a[:, target]  # noqa: E731
    y = x[None, :] if target is None else x[target]

    def branch(entry):
        values = (_inner if is_inner(entry) else _radial)(entry.make)

        def gradient(squared, inner, sigma):
            slope = column(values(squared, inner, sigma)[1])[..., None]
            return slope * (y if is_inner(entry) else (x[:, None] if target is None else x) - y)

        return gradient

    return KERNELS.pick(problem.kernel, squared, x @ x.T, sigma, branch=branch)


def pair_slopes(problem: Problem, x: Array, squared: Array, sigma: Array) -> tuple[Array, Array]:
    """Return f' / sigma^2 of all pairs (n, n), and whether the kernel is one of the inner product.

    grad_1 k(x_i, x_l) is slope_il (x_i - x_l), or slope_il x_l for a kernel of the inner product.
    """

    def branch(entry):
        values = (_inner if is_inner(entry) else _radial)(entry.make)
        return lambda squared, inner, sigma: (values(squared, inner, sigma)[1], jnp.asarray(is_inner(entry)))

    return KERNELS.pick(problem.kernel, squared, x @ x.T, sigma, branch=branch)
