"""SVGD with particle resampling."""

import jax
import jax.numpy as jnp
import numpy as np

from stein_core.base.distances import squared_distances
from stein_core.contract.knobs import Knob
from stein_core.contract.registry import METHODS, Registry
from stein_core.contract.types import Method, State
from stein_core.forces.interaction import Forces, distances_and_bandwidth, gradients
from stein_core.forces.sums import kernel_forces

READINGS = Registry("resampled force")
ROUNDS = 250  # stored sets: beyond them a step only draws again


@READINGS.register("driving", label="driving force", reference="Ba et al. 2022, sec. 4.2 (text)")
def driving(stored, own):
    "The driving force comes from the stored set, the repulsion from the moving particles themselves."
    return Forces(stored.attract, own.repulse)


@READINGS.register("both", label="both, as printed", reference="Ba et al. 2022, alg. 1, first line")
def both(stored, own):
    "Both sums run over the stored set: the first line of the algorithm as it is printed."
    return stored


@READINGS.register("repulsion", label="repulsion", reference="Ba et al. 2022, alg. 1, second line")
def repulsion(stored, own):
    "The repulsion comes from the stored set, the driving force from the particles themselves: it still collapses."
    return Forces(own.attract, stored.repulse)


RESAMPLED = Knob("resampled", "driving", label="resampled", choices=READINGS, help="which force sees the stored sets")


@METHODS.register(
    "resampled",
    label="Resampled SVGD",
    reference="Ba et al. 2022, alg. 1",
    guides=("point",),
    knobs=(RESAMPLED,),
    rounds=ROUNDS,
    colour=("#02471E", "#AAE1A9"),
    marker="circle_cross",
)
def resampled(problem, *, resampled):
    """One step is a whole round: round s draws new particles and pushes them s times, once with each stored set. It
    costs as much as s steps of SVGD. Memory holds 250 sets, so each later round costs 250 steps."""

    def forces(key, x, stored):
        n = x.shape[0]
        weights = problem.weights(n)
        squared, sigma = distances_and_bandwidth(problem, x)  # the bandwidth of the particles that move

        def from_(sources, squared):
            return kernel_forces(problem, sources, weights, gradients(problem, key, sources).guide, x, squared, sigma)

        parts = from_(stored, squared_distances(stored, x, weights)), from_(x, squared)
        return READINGS.pick(resampled, *parts)

    def init(key, n):
        x = problem.start(key, n)
        return State(jnp.int32(0), key, x, jnp.zeros((ROUNDS, *x.shape)))

    def step(key, state):
        active = problem.active(state.particles.shape[0])[:, None]
        now = forces(key, state.particles, state.particles)
        stored = jnp.where(state.step < ROUNDS, state.memory.at[state.step].set(state.particles), state.memory)

        def push(t, carry):
            x, memory = carry
            phi = forces(key, x, stored[t])
            move, memory = problem.optimizer.update(-(phi.attract + phi.repulse), memory, x)
            return x + jnp.where(active, move, 0.0), memory

        x = problem.start(key, state.particles.shape[0])
        x, _ = jax.lax.fori_loop(0, jnp.minimum(state.step + 1, ROUNDS), push, (x, problem.optimizer.init(x)))
        return State(state.step + 1, state.key, x, stored), now

    def per_particle(function, memory):  # the stored sets come first
        return np.moveaxis(function(np.moveaxis(memory, 1, 0)), 0, 1)

    return Method(init, step, per_particle)
