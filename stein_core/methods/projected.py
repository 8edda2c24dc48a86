"""Projected SVGD: SVGD in the directions that the data inform."""

import jax
import jax.numpy as jnp

from stein_core.contract.knobs import Knob
from stein_core.contract.registry import METHODS
from stein_core.forces.interaction import Forces, flow, forces_from, gradients
from stein_core.methods.parts.subsets import by_width
from stein_core.methods.svgd import ALPHA

RANK = Knob("rank", 2, 1, 1000, "integer", "rank", "r, the number of directions; the dimension or more is plain SVGD")


@METHODS.register(
    "projected",
    label="Projected SVGD",
    reference="Chen & Ghattas 2020 (pSVGD)",
    guides=("point",),
    linear=True,
    knobs=(ALPHA, RANK),
    slot="kernel",
    formula="k(Pᵀx, Pᵀy), P the r directions that data inform",
    moves_rest=True,
    colour=("#A0522D", "#E8B48F"),
    marker="square_x",
)
def projected(problem, *, alpha, rank):
    """SVGD of P^T x, P the first r directions of the mean of s s^T over the particles, s the likelihood's gradient.
    Particles keep their start in all other directions. A target that does not tell its prior counts as all
    likelihood."""
    target = problem.target
    prior = target.log_prior or (target.functions and target.functions.log_prior) or (lambda theta: 0.0 * theta[0])

    def field(key, state):
        x, p = state.particles, state.particles.shape[1]
        active = problem.active(len(x))[:, None]
        g = gradients(problem, key, x).guide
        informed = jnp.where(active, g - jax.vmap(jax.grad(prior))(jnp.where(active, x, x[0])), 0.0)
        directions = jnp.linalg.eigh(informed.T @ informed)[1][:, ::-1]
        together = jnp.minimum(rank, problem.d)
        among = problem._replace(size=lambda d: together)

        def branch(width):
            def forces(x, g):
                basis = jnp.where(jnp.arange(width) < together, directions[:, :width], 0.0)
                seen = forces_from(among, x @ basis, g @ basis, alpha)
                return Forces(*(part @ basis.T for part in seen))

            return forces

        return by_width(rank, p, branch, x, g)

    return flow(problem, field)
