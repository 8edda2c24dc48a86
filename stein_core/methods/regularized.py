"""Regularized SVGD: SVGD's force through the inverse of the Gram matrix."""

import jax.numpy as jnp

from stein_core.contract.knobs import Knob
from stein_core.contract.registry import METHODS
from stein_core.forces.gram import gram_of
from stein_core.forces.interaction import Forces, flow, interact
from stein_core.methods.svgd import ALPHA, law, limit

NU = Knob("nu", 0.1, 1e-3, 1.0, "log", "nu", "1 is SVGD; towards 0 the force is that of a Wasserstein gradient")


@METHODS.register(
    "regularized",
    label="Regularized SVGD",
    reference="He et al. 2025 (R-SVGD)",
    guides=("point",),
    optimizers=("sgd",),
    knobs=(ALPHA, NU),
    slot="front",
    formula="((1 − ν) K / n + ν I)⁻¹ φ",
    moves_rest=False,
    law=law,  # an invertible matrix moves no rest
    limit=limit,
    simplex=True,
    colour=("#8C2D04", "#FDAE6B"),
    marker="hex",
)
def regularized(problem, *, alpha, nu):
    "The force is ((1 - nu) K / n + nu I)^-1 phi. It arrives in fewer steps, at SVGD's own rest."

    def field(key, state):
        n = len(state.particles)
        forces = interact(problem, key, state.particles, alpha)
        active = problem.active(n)[:, None]
        matrix = (1 - nu) / problem.m * gram_of(problem, state.particles) + nu * jnp.eye(n)
        both = jnp.linalg.solve(matrix, jnp.concatenate([jnp.where(active, f, 0.0) for f in forces], axis=1))
        return Forces(*jnp.split(both, 2, axis=1))

    return flow(problem, field)
