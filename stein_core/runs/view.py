"""What a diagnostic reads: one state, with all that several of them need, computed once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import jax
import jax.numpy as jnp

from stein_core.base.distances import center
from stein_core.contract.types import Array, Forces
from stein_core.forces.problem import Gradients, Problem
from stein_core.forces.sums import apart, kernel_forces, kernel_matrix, summed


@dataclass(frozen=True, eq=False)
class View:
    """What a diagnostic may read.

    Args:
        problem: the problem; its optimizer must not be used.
        particles: (n, p).
        weights: (n,), 0 for spare rows.
        forces: at the particles.
        gradients: of the guides.
        squared: (n, n) squared distances of the particles, or None: there are too many for arrays of all pairs.
        sigma: bandwidth.
        draws: (n, d) one draw of each guide.
        key: the run's key.
    """

    problem: Problem
    particles: Array
    weights: Array
    forces: Forces
    gradients: Gradients
    squared: Array | None
    sigma: Array
    draws: Array
    key: Array

    def real(self, values) -> Array:
        """Return (d,) values of the coordinates, with 0 for padding."""
        return values if self.problem.mask is None else values * self.problem.mask

    def average(self, values) -> Array:
        """Return the mean of (d,) values over the coordinates."""
        return jnp.sum(self.real(values)) / self.problem.d

    def moments(self) -> tuple[Array, Array]:
        """Return the variances (d,) within and between the guides; those between have 1/n."""
        location = self.problem.guide.location(self.particles)
        within = self.weights @ self.problem.guide.scale(self.particles) ** 2
        return self.real(within), self.weights @ (location - self.weights @ location) ** 2

    @cached_property
    def scores(self) -> Array:
        """Return grad log p (n, d) at the draws, 0 for spare rows: of all data, never of a mini-batch."""
        scores = jax.vmap(jax.grad(self.problem.target.log_density))(self.draws)
        return jnp.where(self.weights[:, None] > 0, scores, 0.0)

    @cached_property  # XLA would not see that both readers choose the same kernel
    def fluctuations(self) -> list[Array]:
        """Return the variances of attraction and repulsion over their sources, as a mean over the particles."""
        x, w, g, pairs = self.particles, self.weights, self.gradients.guide, (self.squared, self.sigma)
        mean = kernel_forces(self.problem, x, w, g, x, *pairs)
        if self.squared is not None:
            k, slope = kernel_matrix(self.problem, x, *pairs)
            squares = (w * jnp.sum(g**2, axis=1)) @ k**2, w @ slope
        else:
            origin, every = center(x, w), jnp.arange(len(x))

            def of(weights, some, g, rows):
                k, slope = kernel_matrix(self.problem, x, apart(origin, some, rows, x, every), self.sigma, some)
                return (weights * jnp.sum(g**2, axis=1)) @ k**2, weights @ slope

            squares = summed(of, w, x, g, every)
        return [w @ (square - jnp.sum(part**2, axis=1)) for square, part in zip(squares, mean)]
