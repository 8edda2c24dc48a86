"""Squared distances between particles, without loss of digits."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

LEAST = 1e-30  # smaller values count as 0 in float32
ROUNDING = 4.2  # rounding error of a squared distance, relative to the squared norms, in machine epsilons
DENSE = 4096  # up to this many particles, arrays of all pairs are formed; more are summed in blocks
EXACT_DIFFERENCES = 16  # up to this many coordinates, differences are formed one by one: exact, as fast as a matmul


def center(x: Array, weights: Array | None = None) -> Array:
    """Return a point (p,) amid the rows of x. Differences to it lose few digits.

    The point is a mean. Each row is weighted once more by 1 / its squared distance from the plain mean, so that a
    single distant row moves it little.

    Args:
        x: (n, p) rows.
        weights: (n,), equal ones by default; rows of weight 0 do not count.
    """
    weights = jnp.full(len(x), 1.0 / len(x)) if weights is None else weights
    mean = weights @ x
    apart = x - mean
    near = weights / (jnp.sum(apart**2, axis=1) + LEAST)
    return jax.lax.optimization_barrier(mean + near @ apart / jnp.sum(near))  # else XLA computes it for every row


def squared_distances(x: Array, y: Array, weights: Array | None = None) -> Array:
    """Return |x_i - y_j|^2 as an (n, m) matrix.

    Args:
        x: (n, p) rows.
        y: (m, p) rows.
        weights: (n,) weights of x, for its `center`.
    """
    origin = 0.0 if x.shape[1] <= EXACT_DIFFERENCES else center(x, weights)
    return squared_distances_around(origin, x, y)


def squared_distances_around(origin: Array | float, x: Array, y: Array) -> Array:
    """Return what `squared_distances` does, with a point amid the rows that is known already."""
    if x.shape[1] <= EXACT_DIFFERENCES:  # term by term: a sum over so short an axis is no vector operation on a CPU
        return sum((x[:, None, k] - y[None, :, k]) ** 2 for k in range(x.shape[1]))
    x, y = x - origin, y - origin
    norms = jnp.sum(x * x, 1)[:, None] + jnp.sum(y * y, 1)[None, :]
    square = norms - 2.0 * (x @ y.T)
    least = ROUNDING * jnp.finfo(square.dtype).eps
    return jnp.where(square > least * norms, square, 0.0)  # a smaller value is rounding error of 0


def stein_matrix(x, scores, squared, dim, among=None):
    """Return the Stein kernel of all pairs of draws, with the kernel k = (1 + |x - y|^2)^(-1/2).

    u(x, y) = <s(x), s(y)> k + <s(x), grad_y k> + <s(y), grad_x k> + tr(grad_x grad_y k). Source: Gorham & Mackey 2017,
    eq. 5, with c = 1 and beta = -1/2.

    Args:
        x, scores: (n, d) draws and gradients of the log density, arrays of NumPy or of JAX.
        squared: (n, n) squared distances of the draws.
        among: the y and their scores, (m, d) each; None if they are x. Then `squared` is (n, m), and so is the result.
        dim: number of coordinates; those of x beyond it are 0.

    Returns:
        (n, n), in units of 1 / x^2.
    """
    base = 1.0 + squared
    k = base**-0.5
    if among is None:
        cross = scores @ x.T  # <s(x_i), x_j>
        along = cross.diagonal()[:, None] - cross  # <s(x_i), x_i - x_j>; grad_y k = (x - y) k / base = -grad_x k
        products, along = scores @ scores.T, along + along.T
    else:
        y, theirs = among
        products, along = scores @ theirs.T, (scores * x).sum(1)[:, None] - scores @ y.T - x @ theirs.T
        along = along + (theirs * y).sum(1)
    return k * (products + along / base + (dim - 3.0 * squared / base) / base)
