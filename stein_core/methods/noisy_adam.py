"""Noisy Adam: a deep ensemble whose gradients have noise."""

import jax
import jax.numpy as jnp

from stein_core.base.noise import normal
from stein_core.base.streams import Stream
from stein_core.contract.registry import METHODS
from stein_core.forces.interaction import Forces, flow, gradients


@METHODS.register(
    "noisy_adam",
    label="Noisy Adam",
    reference="D'Angelo et al. 2021, code of its row pSGLD",
    guides=("point",),
    linear=True,
    kernel=False,
    noisy=lambda choices: True,
    colour=("#7D5A50", "#D2A899"),
    marker="y",
)
def noisy_adam(problem):
    """Adam on the score plus N(0, 1 / epsilon). The paper calls it pSGLD, but Adam rescales the noise: on N(0, 1) the
    variance is sqrt(epsilon) / 2 for small epsilon, not 1."""

    def field(key, state):
        g = gradients(problem, key, state.particles).guide
        return Forces(g, jnp.zeros_like(g))

    def noise(key, state):
        z = normal(jax.random.fold_in(key, Stream.NOISE), (len(state.particles),), state.particles.shape[1])
        return z / jnp.sqrt(problem.step_size), jnp.zeros_like(z)

    return flow(problem, field, noise)
