"""Accelerated SVGD: Nesterov's momentum in the geometry of SVGD.

With velocities Y = K V / n of the particles, the accelerated flow of Stein & Li is

    dX/dt = Y,
    dY_i/dt = -a Y_i + phi_i + (1/n) sum_j [grad_1 k(x_i, x_j) . (Y_i - Y_j)] V_j
              - (1/n^2) sum_j k(x_i, x_j) sum_l grad_1 k(x_j, x_l) (V_j . V_l).

It follows from d/dt grad Phi(x_i), for the potential Phi with V_i = grad Phi(x_i). At rest Y = 0, so phi = 0: SVGD's
own rest.
"""

import jax
import jax.numpy as jnp

from stein_core.contract.knobs import Knob
from stein_core.contract.registry import METHODS
from stein_core.contract.types import Method, State
from stein_core.forces.gram import gram_of
from stein_core.forces.interaction import distances_and_bandwidth, interact
from stein_core.forces.sums import pair_slopes
from stein_core.methods.svgd import ALPHA, law, limit

RIDGE = Knob("ridge", 0.1, 1e-3, 10.0, "log", "ridge", "added to K / n before it is inverted")


@METHODS.register(
    "accelerated",
    label="Accelerated SVGD",
    reference="Stein & Li 2025 (ASVGD)",
    guides=("point",),
    optimizers=("sgd",),
    knobs=(ALPHA, RIDGE),
    slot="front",
    formula="momentum: dx = Y dt, and φ changes Y",
    moves_rest=False,
    law=law,  # momentum moves no rest
    limit=limit,
    simplex=True,
    colour=("#B03060", "#FF9EBB"),
    marker="triangle_pin",
)
def accelerated(problem, *, alpha, ridge):
    """Particles have a velocity. It arrives in fewer steps, at SVGD's own rest. Momentum begins again when it points
    against the force."""

    def init(key, n):
        x = problem.start(key, n)
        return State(jnp.int32(0), key, x, (jnp.zeros_like(x), jnp.zeros(())))

    def step(key, state):
        x, (y, age) = state.particles, state.memory
        n, m = len(x), problem.m
        active = problem.active(n)[:, None]
        forces = jax.tree.map(lambda f: jnp.where(active, f, 0.0), interact(problem, key, x, alpha))
        phi = forces.attract + forces.repulse
        both = active & active.T
        gram = gram_of(problem, x)
        squared, sigma = distances_and_bandwidth(problem, x)
        v = jnp.where(active, jnp.linalg.solve(gram / m + ridge * jnp.eye(n), y), 0.0)
        k = jnp.where(both, gram, 0.0)
        slope, inner = pair_slopes(problem, x, squared, sigma)
        slope = jnp.where(both, slope, 0.0)  # grad_1 k(x_i, x_j) = slope_ij (x_i - x_j), or slope_ij x_j

        along = y @ x.T  # <Y_i, x_j>
        own = jnp.diagonal(along)
        of_i = jnp.where(inner, along, own[:, None] - along)  # grad_1 k(x_i, x_j) . Y_i, without the slope
        of_j = jnp.where(inner, own[None, :], along.T - own[None, :])
        carried = (slope * (of_i - of_j)) @ v / m
        weights = slope * (v @ v.T)
        bent = jnp.where(inner, weights @ x, jnp.sum(weights, axis=1, keepdims=True) * x - weights @ x)
        change = phi + carried - k @ bent / m**2
        tau = jnp.sqrt(problem.step_size)
        age = jnp.where(jnp.sum(y * phi) < 0, 0.0, age)
        y = jnp.where(active, age / (age + 3.0) * y + tau * change, 0.0)
        return State(state.step + 1, state.key, x + tau * y, (y, age + 1.0)), forces

    return Method(init, step, lambda function, memory: (function(memory[0]), memory[1]))
