"""Stein variational Newton."""

import jax
import jax.numpy as jnp

from stein_core.contract.registry import METHODS
from stein_core.forces.gram import gram_of
from stein_core.forces.interaction import Forces, distances_and_bandwidth, flow, interact
from stein_core.forces.problem import log_density_of
from stein_core.forces.sums import pair_gradients
from stein_core.methods.svgd import ALPHA, law, limit

MOST = 100  # coordinates
FLOOR = 1e-6  # least eigenvalue of a Hessian, and of the matrix that is solved


def check(spec, knobs):
    "Refuse a dimension in which the Hessians of all particles are too dear."
    if spec.dim > MOST:
        raise ValueError(f"dim = {spec.dim} is too large for the Hessians of all particles; allowed: 1 to {MOST}.")


def positive(matrices):
    """Return symmetric matrices (..., d, d) with eigenvalues of at least FLOOR."""
    values, vectors = jnp.linalg.eigh(matrices)
    return (vectors * jnp.maximum(values, FLOOR)[..., None, :]) @ vectors.mT


@METHODS.register(
    "newton",
    label="Stein variational Newton",
    reference="Detommaso et al. 2018, sec. 3, one block a particle",
    guides=("point",),
    optimizers=("sgd",),
    knobs=(ALPHA,),
    check=check,
    slot="front",
    formula="H⁻¹ φ, H the Hessian as the kernel sees it",
    hessians=True,
    moves_rest=False,
    law=law,  # an invertible matrix moves no rest
    limit=limit,
    simplex=True,
    colour=("#5E3C99", "#C2A5F0"),
    marker="star",
)
def newton(problem, *, alpha):
    """The force on particle l is H_l^-1 phi_l, H_l the mean over i of k(x_i, x_l)^2 (-Hessian of log p at x_i) + grad k
    grad k^T. It arrives in fewer steps, at SVGD's own rest."""

    def field(key, state):
        x, m = state.particles, problem.m
        n, p = x.shape
        active = problem.active(n)
        forces = interact(problem, key, x, alpha)
        curved = -jax.vmap(jax.hessian(log_density_of(problem.target, key)))(jnp.where(active[:, None], x, x[0]))
        # Most posteriors are curved downwards at every particle: eigenvalues are dear, and then they change nothing.
        fine = jnp.all(jnp.isfinite(jnp.linalg.cholesky(curved - FLOOR * jnp.eye(p))))
        curved = jax.lax.cond(fine, lambda h: h, positive, curved)
        both = active[:, None] & active
        k = jnp.where(both, gram_of(problem, x), 0.0)
        slopes = jnp.where(both[..., None], pair_gradients(problem, x, *distances_and_bandwidth(problem, x)), 0.0)
        matrix = jnp.einsum("il,ipq->lpq", k**2, curved) + jnp.einsum("ilp,ilq->lpq", slopes, slopes)
        matrix = matrix / m + FLOOR * jnp.eye(p)
        moved = jnp.linalg.solve(matrix, jnp.stack(forces, axis=-1))
        return Forces(moved[..., 0], moved[..., 1])

    return flow(problem, field)
