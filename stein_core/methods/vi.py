"""Ordinary variational inference: one guide."""

import jax.numpy as jnp

from stein_core.forces import Forces, flow, gradients
from stein_core.registry import METHODS


@METHODS.register("vi", label="VI", reference="SMI paper, app. A.3.2", guides=("normal",), single=True)
def vi(problem):
    "One guide climbs the ELBO: SMI with a single particle, where nothing interacts."

    def field(key, step, particles):
        return Forces(gradients(problem, key, particles).guide, jnp.zeros_like(particles))

    return flow(problem, field)
