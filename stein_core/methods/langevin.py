"""Langevin dynamics."""

import jax.numpy as jnp

from stein_core import theory
from stein_core.contract.registry import METHODS
from stein_core.contract.types import Method, State
from stein_core.forces.interaction import Forces, gradients


def chains(problem, epsilon_at) -> Method:
    """Return the Method theta <- theta + epsilon grad log p + sqrt(2 epsilon) noise, with epsilon = epsilon_at(step).

    A target with mini-batches has an estimate for its gradient.
    """

    def init(key, n):
        return State(jnp.int32(0), key, problem.start(key, n), ())

    def step(key, state):
        n, epsilon = state.particles.shape[0], epsilon_at(state.step)
        forces = Forces(gradients(problem, key, state.particles).guide, jnp.zeros_like(state.particles))
        noise = jnp.where(problem.active(n)[:, None], problem.normal(key, (n,)), 0.0)
        moved = state.particles + epsilon * forces.attract + jnp.sqrt(2 * epsilon) * noise
        return State(state.step + 1, state.key, moved, ()), forces

    return Method(init, step)


@METHODS.register(
    "langevin",
    label="Langevin",
    reference="Roberts & Tweedie 1996",
    guides=("point",),
    linear=True,
    optimizers=("sgd",),
    kernel=False,
    noisy=lambda choices: True,
    stages=1,
    law=lambda d, n, knobs: theory.langevin_variance(knobs["method.step_size"]),
    colour=("#40558C", "#A7BAFE"),
    marker="plus",
    least=lambda knobs: 10 / knobs["method.step_size"],
)
def langevin(problem):
    """theta <- theta + epsilon grad log p + sqrt(2 epsilon) noise: independent chains, unadjusted. On a standard
    normal their variance is therefore 1 / (1 - epsilon / 2)."""
    return chains(problem, lambda step: problem.step_size)
