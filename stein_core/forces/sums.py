"""Kernel sums over particles, for the kernel of a problem: the two forces, and the matrices of values and slopes."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from stein_core.base.devices import COLUMNS as BY_COLUMNS, ROWS as BY_ROWS, WHOLE, shared
from stein_core.base.distances import EXACT_DIFFERENCES, LEAST, center, squared_distances_around
from stein_core.contract.types import Array, Forces
from stein_core.forces.kernels import KERNELS
from stein_core.forces.near import near_forces
from stein_core.forces.problem import Problem

ROWS = 256  # sources per block of kernel values
COLUMNS = 2048  # particles per block, if there are too many for an array of all pairs


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


def in_blocks(of, rows: int, *arrays: Array):
    """Return of(*arrays), whose results are row by row as its arguments are, computed `rows` at a time."""
    n = len(arrays[0])
    blocks = [jnp.pad(a, ((0, -n % rows), *((0, 0),) * (a.ndim - 1))).reshape(-1, rows, *a.shape[1:]) for a in arrays]
    found = jax.lax.map(lambda some: of(*some), blocks)
    return jax.tree.map(lambda each: each.reshape(-1, *each.shape[2:])[:n], found)


def apart(origin: Array | float, x: Array, rows: Array, y: Array, columns: Array) -> Array:
    """Return the squared distances between rows x and y of one array. rows, columns: their places in it."""
    return jnp.where(rows[:, None] == columns, 0.0, squared_distances_around(origin, x, y))


def kernel_forces(
    problem: Problem, x: Array, weights: Array, g: Array, y: Array, squared: Array | None, sigma: Array
) -> Forces:
    """Return the forces of sources x on y: both sums of the first formula of `forces`, with alpha = 1.

    Args:
        problem: has the kernel.
        x: (N, p) sources.
        weights: (N,) of the sources.
        g: (N, p) gradients of the sources.
        y: (n, p) particles that feel the forces.
        squared: (N, n) |x_i - y_l|^2. None if there are too many pairs: y is x then, and the sums go block by block.
        sigma: bandwidth.
    """
    if squared is None and problem.near is not None:
        return near_forces(x, weights, g, sigma, problem.near)

    def radial(profile):
        values = _radial(profile)
        # Close pairs with a steep slope need exact differences: the sums of the matmul below would cancel.
        exact = is_singular(profile) and x.shape[1] <= EXACT_DIFFERENCES

        def act(x, weights, g, sigma, y, own, squared):
            origin = center(x, weights)  # small differences of large coordinates would lose digits

            def onto(y, squared_of, pairs):
                def of(weights, x, g, pairs):
                    f, slope = values(squared_of(x, pairs), None, sigma)
                    sources = jnp.concatenate([x - origin, jnp.ones((len(x), 1))], axis=1)
                    if squared is None and not exact:  # a product for each source, not for each pair
                        g, sources = weights[:, None] * g, weights[:, None] * sources
                    else:
                        f, slope = weights[:, None] * f, weights[:, None] * slope
                    if exact:
                        return g.T @ f, jnp.stack([jnp.sum(slope * (s[:, None] - r), axis=0) for s, r in zip(x.T, y.T)])
                    return g.T @ f, sources.T @ slope  # in this order it is several times as fast for small p

                attract, pushed = (total.T for total in summed(of, weights, x, g, pairs))
                return (attract, pushed) if exact else (attract, pushed[:, :-1] - pushed[:, -1:] * (y - origin))

            if squared is not None:
                return onto(y, lambda x, squared: squared, squared)
            every = jnp.arange(len(x))
            some = lambda y, own: onto(y, lambda x, rows: apart(origin, x, rows, y, own), every)  # noqa: E731
            return in_blocks(some, COLUMNS, y, own)

        return act

    def inner(values):
        def act(x, weights, g, sigma, y, own, squared):
            def onto(y):
                def of(weights, x, g):
                    f, slope = values(None, x @ y.T, sigma)
                    return f.T @ (weights[:, None] * g), weights @ slope

                attract, slope = summed(of, weights, x, g)
                return attract, slope[:, None] * y

            return in_blocks(onto, COLUMNS, y) if squared is None else onto(y)

        return act

    branch = lambda entry: inner(_inner(entry.make)) if is_inner(entry) else radial(entry.make)  # noqa: E731
    act = lambda kernel, *arguments: KERNELS.pick(kernel, *arguments, branch=branch)  # noqa: E731
    specs = (*[WHOLE] * 5, BY_ROWS, BY_ROWS, BY_COLUMNS)
    own = jnp.arange(len(y))  # places of the particles among all
    return Forces(*shared(problem.mesh, act, specs, problem.kernel, x, weights, g, sigma, y, own, squared))


def kernel_matrix(
    problem: Problem, particles: Array, squared: Array, sigma: Array, sources: Array | None = None
) -> tuple[Array, Array]:
    """Return k(psi_i, psi_l) and |grad_1 k(psi_i, psi_l)|^2, (n, n) each.

    Args:
        problem: has the kernel.
        particles: (n, p).
        squared, sigma: of `distances_and_bandwidth`.
        sources: (N, p), the psi_i, whose rows `squared` has; None for all particles.
    """
    inner = (particles if sources is None else sources) @ particles.T
    norms = jnp.diagonal(inner) if sources is None else jnp.sum(particles**2, axis=1)
    norms = jnp.broadcast_to(norms, inner.shape)

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
