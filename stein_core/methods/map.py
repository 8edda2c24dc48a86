"""Maximum a posteriori: gradient ascent of one point."""

import jax.numpy as jnp

from stein_core.forces import Forces, flow, gradients
from stein_core.registry import METHODS


@METHODS.register("map", label="MAP", reference="Liu & Wang 2016, sec. 3.2", guides=("point",), single=True)
def map(problem):
    "One point climbs to the mode of the model's own density, without the log-Jacobian of constrained parameters."

    def field(key, step, particles):
        g = gradients(problem, key, particles, problem.target.log_joint).guide
        return Forces(g, jnp.zeros_like(particles))

    return flow(problem, field)
