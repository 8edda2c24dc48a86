"""Stein transport: particles follow a path of densities from the start to the posterior, and arrive at time 1.

Along p_t, proportional to p_0^(1-t) p^t, mass moves as it must if the field v solves S v = -(l - mean l), with
l = log p - log p_0 and Stein's operator S v = s_t . v + div v. In the space of the kernel that is

    v(x) = (1/n) sum_j w_j [s_t(x_j) k(x_j, x) + grad_1 k(x_j, x)],      (U / n + lambda I) w = -(l - mean l),

with the Stein kernel U of p_t.
"""

import jax
import jax.numpy as jnp

from stein_core.contract.knobs import Knob
from stein_core.contract.registry import METHODS
from stein_core.contract.spec import target_of
from stein_core.contract.types import Forces, Method, State
from stein_core.forces.gram import gram_of
from stein_core.forces.interaction import distances_and_bandwidth
from stein_core.forces.problem import log_density_of
from stein_core.forces.sums import pair_slopes
from stein_core.methods.ksdd import stein_kernel

RIDGE = Knob("ridge", 1e-3, 1e-6, 10.0, "log", "ridge", "lambda, added to the Stein kernel's matrix / n")


def check(spec, knobs):
    "Refuse a target whose start has no density that is known."
    if target_of(spec).start.draw is not None:
        raise ValueError(
            f"target {spec.target!r} has a start of its own, whose density is not known; method 'transport' allows "
            "targets that start from a normal distribution."
        )


@METHODS.register(
    "transport",
    label="Stein transport",
    reference="Nuesken 2024",
    guides=("point",),
    optimizers=("sgd",),
    knobs=(RIDGE,),
    check=check,
    slot="forces",
    formula="a weight for each particle, of (U / n + λ I)⁻¹",
    moves_rest=True,
    colour=("#00546B", "#7FC9DE"),
    marker="inverted_triangle_dot",
)
def transport(problem, *, ridge):
    """The step size is a step of time, from 0 to 1. Then particles have arrived, and nothing moves any more. It needs
    no rest, but each step solves n equations."""

    def init(key, n):
        return State(jnp.int32(0), key, problem.start(key, n), (jnp.zeros(()), *problem.start_normal))

    def step(key, state):
        x, (t, centre, scale) = state.particles, state.memory
        m, active = problem.m, problem.active(len(x))
        both = active[:, None] & active
        log_p, score = jax.vmap(jax.value_and_grad(log_density_of(problem.target, key)))(x)
        wide = scale > 0
        standard = jnp.where(wide, (x - centre) / jnp.where(wide, scale, 1.0), 0.0)
        gap = jnp.where(active, log_p + 0.5 * jnp.sum(standard**2, axis=1), 0.0)
        gap = jnp.where(active, gap - jnp.sum(gap) / m, 0.0)
        of_start = jnp.where(wide, -standard / jnp.where(wide, scale, 1.0), 0.0)
        score = jnp.where(active[:, None], (1 - t) * of_start + t * score, 0.0)
        x0 = jnp.where(active[:, None], x, 0.0)
        squared, sigma = distances_and_bandwidth(problem, x)
        stein = jnp.where(both, sum(stein_kernel(problem, x0, score, squared, sigma)), 0.0)
        w = jnp.linalg.solve(stein / m + ridge * jnp.eye(len(x)), -gap)
        k = jnp.where(both, gram_of(problem, x), 0.0) * w[:, None] / m
        slope, inner = pair_slopes(problem, x, squared, sigma)
        slope = jnp.where(both, slope, 0.0) * w[:, None] / m
        total = jnp.sum(slope, axis=0)[:, None]
        repulse = jnp.where(inner, total * x0, slope.T @ x0 - total * x0)
        there = 1 - t > 1e-5  # the sum of many steps is rounded
        forces = Forces(*(jnp.where(there & active[:, None], f, 0.0) for f in (k.T @ score, repulse)))
        dt = jnp.where(there, jnp.minimum(problem.step_size, 1 - t), 0.0)
        moved = x + dt * (forces.attract + forces.repulse)
        return State(state.step + 1, state.key, moved, (t + dt, centre, scale)), forces

    return Method(init, step)
