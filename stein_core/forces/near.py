"""Kernel sums of near particles only, for a kernel that vanishes far away: the RBF kernel in up to ten coordinates.

Particles are sorted into blocks of neighbours, and pairs of blocks that are further apart than a cut-off are left out.
The cut-off r has exp(-r^2 / (2 sigma^2)) = tolerance. What is left out of the sums at a particle is at most

    attraction: tolerance sum_i w_i |g_i|,    repulsion: tolerance max(r, sigma) / sigma^2,

since every pair left out has |x_i - y|^2 > r^2, and r exp(-r^2 / (2 sigma^2)) falls beyond sigma. `share_of` says how
many pairs are computed; with a kernel as wide as the particles' cloud these are all.
"""

from __future__ import annotations

import math
from functools import partial

import jax
import jax.numpy as jnp

from stein_core.contract.types import Array, Forces

KERNEL = "rbf"
MOST_DIM = 10  # coordinates of a particle: in more, blocks of neighbours are not far from each other
BLOCK = 256  # particles of a block
AT_ONCE = 32  # blocks on a GPU whose sums go side by side


def neighbours(x: Array, active: Array) -> Array:
    """Return an order of rows in which blocks of `BLOCK` rows are neighbours: halves along the widest coordinate, and
    halves of these, and so on.

    Args:
        x: (N, p), N a power of 2 times `BLOCK`.
        active: (N,) booleans; other rows come last.

    Returns:
        (N,) places in x.
    """
    n = len(x)
    parts = n // BLOCK
    largest = partial(jax.ops.segment_max, num_segments=parts, indices_are_sorted=True)

    def halve(level, order):
        part = jnp.arange(n) // (n >> level)
        some, counts = x[order], active[order]
        width = largest(jnp.where(counts[:, None], some, -jnp.inf), part)
        width += largest(jnp.where(counts[:, None], -some, -jnp.inf), part)
        along = jnp.take_along_axis(some, jnp.argmax(width, axis=1)[part][:, None], axis=1)[:, 0]
        return jax.lax.sort((part, jnp.where(counts, along, jnp.inf), order), num_keys=2)[2]

    return jax.lax.fori_loop(0, parts.bit_length() - 1, halve, jnp.arange(n))


def padded(n: int) -> int:
    """Return the rows that n particles are padded to: blocks whose number is a power of 2."""
    return BLOCK * 2 ** math.ceil(math.log2(max(1, n / BLOCK)))


def boxes(x: Array, active: Array) -> tuple[Array, Array]:
    """Return the least and the largest coordinates of each block (N / BLOCK, p); a block without active rows is far."""
    some, counts = x.reshape(-1, BLOCK, x.shape[1]), active.reshape(-1, BLOCK, 1)
    return jnp.min(jnp.where(counts, some, jnp.inf), 1), jnp.max(jnp.where(counts, some, -jnp.inf), 1)


def are_near(low: Array, high: Array, some: Array, sigma: Array, tolerance: float) -> Array:
    """Return which blocks (N,) come within the cut-off of the blocks `some` (k,), as (k, N)."""
    gap = jnp.maximum(jnp.maximum(low[None] - high[some, None], low[some, None] - high[None]), 0.0)
    return jnp.sum(gap**2, axis=2) <= 2.0 * sigma**2 * math.log(1.0 / tolerance)


def near_forces(x: Array, weights: Array, g: Array, sigma: Array, tolerance: float) -> Forces:
    """Return what `sums.kernel_forces` does for the RBF kernel, of all particles on all, without the pairs far apart.

    Args:
        x: (n, p), p up to `MOST_DIM`.
        weights: (n,), 0 for spare rows, on which there is no force.
        g: (n, q) gradients.
        sigma: bandwidth, traced.
        tolerance: kernel values that may be left out.
    """
    (n, p), q, active = x.shape, g.shape[1], weights > 0
    more = ((0, padded(n) - n), (0, 0))
    x, g, weights = jnp.pad(x, more), jnp.pad(g, more), jnp.pad(weights, more[0])
    order = neighbours(x, weights > 0)
    x, g, weights = x[order], g[order], weights[order]
    low, high = boxes(x, weights > 0)
    blocks = len(low)
    at_once = min(blocks, 1 if jax.default_backend() == "cpu" else AT_ONCE)
    # Sums of weights g, of weights x and of weights, each times the kernel.
    sources = (weights[:, None] * jnp.concatenate([g, x, jnp.ones_like(x[:, :1])], axis=1)).reshape(blocks, BLOCK, -1)
    places = x.reshape(blocks, BLOCK, p)

    def of_pair(there, here):
        """Return the sums (q + p + 1, BLOCK) at one block of those of another."""
        origin = places[here, 0]  # small differences of large coordinates would lose digits
        y, z = places[here] - origin, places[there] - origin
        squared = sum((z[:, None, k] - y[None, :, k]) ** 2 for k in range(p))
        moved = sources[there].at[:, q:-1].add(-sources[there][:, -1:] * origin)
        return moved.T @ jnp.exp(-squared / (2.0 * sigma**2))  # in this order it is several times as fast

    def at(some):
        near = are_near(low, high, some, sigma, tolerance)
        lists = jax.vmap(lambda one: jnp.nonzero(one, size=blocks, fill_value=0)[0])(near)
        counts = jnp.sum(near, axis=1)

        def add(j, total):
            own = jax.vmap(of_pair)(lists[:, j], some)
            return total + jnp.where((j < counts)[:, None, None], own, 0.0)

        start = jnp.zeros((len(some), q + p + 1, BLOCK), x.dtype)
        return jax.lax.fori_loop(0, jnp.max(counts), add, start)

    found = jax.lax.map(at, jnp.arange(blocks).reshape(-1, at_once)).reshape(blocks, -1, BLOCK).swapaxes(1, 2)
    away = places - places[:, :1]  # from the origin that `of_pair` has
    attract, moments, mass = found[..., :q], found[..., q:-1], found[..., -1:]
    each = [part.reshape(len(x), -1) for part in (attract, (mass * away - moments) / sigma**2)]
    back = [jnp.zeros_like(part).at[order].set(part)[:n] for part in each]
    return Forces(*(jnp.where(active[:, None], part, 0.0) for part in back))


def share_of(x: Array, weights: Array, sigma: Array, tolerance: float) -> Array:
    """Return the share of all pairs of blocks with particles that `near_forces` computes."""
    more = padded(len(x)) - len(x)
    x, weights = jnp.pad(x, ((0, more), (0, 0))), jnp.pad(weights, (0, more))
    order = neighbours(x, weights > 0)
    low, high = boxes(x[order], weights[order] > 0)
    every = jnp.arange(len(low))
    counts = jax.lax.map(lambda one: jnp.sum(are_near(low, high, one[None], sigma, tolerance)), every)
    return jnp.sum(counts) / jnp.sum(jnp.isfinite(low[:, 0])) ** 2
