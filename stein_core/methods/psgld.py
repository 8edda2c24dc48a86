"""Preconditioned stochastic gradient Langevin dynamics."""

import jax
import jax.numpy as jnp

from stein_core.contract.knobs import Knob
from stein_core.contract.registry import METHODS
from stein_core.contract.types import Method, State
from stein_core.forces.interaction import Forces, gradients

FADE = Knob("fade", 0.99, 0.0, 1.0, label="memory", help="weight that the mean of squared gradients keeps")
FLOOR = Knob("floor", 1e-5, 1e-8, 10.0, "log", "floor", "added to the root of squared gradients, lambda")


@METHODS.register(
    "psgld",
    label="pSGLD",
    reference="Li et al. 2016, alg. 1",
    guides=("point",),
    linear=True,
    optimizers=("sgd",),
    kernel=False,
    knobs=(FADE, FLOOR),
    noisy=lambda choices: True,
    stages=1,
    colour=("#5D4B1E", "#C9B458"),
    marker="dash",
)
def psgld(problem, *, fade, floor):
    """Langevin chains whose steps are divided by the size of recent gradients. The term Gamma is left out, as usual,
    which biases it: on N(0, 1) with the defaults and epsilon = 0.01 the variance is 1.3."""

    def init(key, n):
        particles = problem.start(key, n)
        return State(jnp.int32(0), key, particles, jnp.zeros_like(particles))

    def step(key, state):
        active, epsilon = problem.active(len(state.particles))[:, None], problem.step_size
        g = gradients(problem, key, state.particles).guide
        squares = fade * state.memory + (1 - fade) * g**2
        scale = 1 / (floor + jnp.sqrt(squares))
        z = problem.normal(key, (len(g),))
        moved = epsilon * scale * g + jnp.sqrt(2 * epsilon * scale) * z
        moved = jnp.where(active, moved, 0.0)
        after = State(state.step + 1, state.key, state.particles + moved, squares)
        return after, Forces(g, jnp.zeros_like(g))

    return Method(init, step, jax.tree.map)
