"""Gram matrices of particles, and their roots."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from stein_core.contract.types import Array
from stein_core.forces.interaction import distances_and_bandwidth
from stein_core.forces.problem import Problem
from stein_core.forces.sums import kernel_matrix


def gram_of(problem: Problem, particles: Array) -> Array:
    """Return K (n, n) of the kernel on active rows, and the identity on spare ones."""
    active = problem.active(particles.shape[0])
    squared, sigma = distances_and_bandwidth(problem, particles)
    values, _ = kernel_matrix(problem, particles, squared, sigma)
    return jnp.where(active[:, None] & active, values, jnp.eye(len(particles)))


def gram_root(problem: Problem, particles: Array) -> Array:
    """Return the Cholesky factor of `gram_of`, with as much on the diagonal as it takes: 1e-6 times 1, 10 ... 10^4."""
    gram = gram_of(problem, particles)

    def root(jitter):
        return jnp.linalg.cholesky(gram + jitter * jnp.eye(len(gram)))

    def wanting(carry):
        jitter, found = carry
        return (jitter < 0.9e-2) & ~jnp.all(jnp.isfinite(found))

    first = jnp.asarray(1e-6, gram.dtype)
    return jax.lax.while_loop(wanting, lambda carry: (10 * carry[0], root(10 * carry[0])), (first, root(first)))[1]


def elementwise_root(problem: Problem, particles: Array) -> Array:
    """Return the square root of each entry of K, and 0 on spare rows. It is no root of K."""
    active = problem.active(len(particles))
    return jnp.where(active[:, None] & active, jnp.sqrt(jnp.maximum(gram_of(problem, particles), 0.0)), 0.0)
