"""Deep ensemble: many independent MAP runs."""

import jax.numpy as jnp

from stein_core.forces import Forces, flow, gradients
from stein_core.registry import METHODS


@METHODS.register("ensemble", label="Deep ensemble", reference="D'Angelo et al. 2021, eq. 3", guides=("point",))
def ensemble(problem):
    "Every point climbs alone (kernel = identity, alpha = 0): all variance comes from where they started."

    def field(key, step, particles):
        g = gradients(problem, key, particles, problem.target.log_joint).guide
        return Forces(g, jnp.zeros_like(particles))

    return flow(problem, field)
