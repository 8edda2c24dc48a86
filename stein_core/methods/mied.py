"""Mollified interaction energy descent."""

import jax
import jax.numpy as jnp

from stein_core.base.distances import squared_distances
from stein_core.contract.registry import METHODS
from stein_core.forces.interaction import Forces, flow
from stein_core.forces.problem import log_density_of

NEAR = 1e-8  # added to a squared distance


@METHODS.register(
    "mied",
    label="MIED",
    reference="Li et al. 2023, its code",
    guides=("point",),
    kernel=False,
    colour=("#4D6B1F", "#B9DB83"),
    marker="square_dot",
)
def mied(problem):
    """Points descend log sum_ij phi(x_i - x_j) / sqrt(p(x_i) p(x_j)), phi = |x|^-s with s = d + 0.0001. It needs no
    kernel and no bandwidth. The distance of a point to itself is that to its nearest neighbour / (1.3 d)^(1/d)."""

    def field(key, state):
        n, d = len(state.particles), problem.d
        active, power = problem.active(n), 0.5 * (problem.d + 1e-4)
        log_density = jax.vmap(log_density_of(problem.target, key))
        pairs, itself = active[:, None] & active, jnp.eye(n, dtype=bool)

        def energy(x, for_density):
            x = jnp.where(active[:, None], x, 0.0)
            squared = squared_distances(x, x, problem.weights(n))
            nearest = jnp.min(jnp.where(pairs & ~itself, squared, jnp.inf), axis=1, keepdims=True)
            alone = jnp.where(jnp.isfinite(nearest), nearest, 1.0) / (1.3 * d) ** (2.0 / d)
            squared = jnp.where(itself, jax.lax.stop_gradient(alone), squared)
            log_p = jnp.where(active, log_density(for_density), 0.0)
            terms = -power * jnp.log(squared + NEAR) - 0.5 * (log_p[:, None] + log_p)
            return jax.nn.logsumexp(jnp.where(pairs, terms, -jnp.inf))

        repulse, attract = jax.grad(energy, argnums=(0, 1))(state.particles, state.particles)
        return Forces(-problem.m * attract, -problem.m * repulse)

    return flow(problem, field)
