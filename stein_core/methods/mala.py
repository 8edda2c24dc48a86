"""Metropolis-adjusted Langevin dynamics."""

import jax
import jax.numpy as jnp

from stein_core.base.noise import normal
from stein_core.base.streams import Stream
from stein_core.contract.registry import METHODS
from stein_core.contract.types import Method, State
from stein_core.forces.interaction import Forces


@METHODS.register(
    "mala",
    label="MALA",
    reference="Roberts & Tweedie 1996",
    guides=("point",),
    linear=True,
    optimizers=("sgd",),
    kernel=False,
    noisy=lambda choices: True,
    stages=1,
    colour=("#24506B", "#9CC7DD"),
    marker="y",
    least=lambda knobs: 10 / knobs["method.step_size"],
)
def mala(problem):
    """Langevin chains with a Metropolis test, which makes them exact in the long run, for a density of all data. The
    best step accepts about 57 % of the proposals."""
    density = jax.vmap(jax.value_and_grad(problem.target.log_density))

    def init(key, n):
        return State(jnp.int32(0), key, problem.start(key, n), ())

    def proposal(key, state):
        """Return the proposed points (n, d), the probability of taking each (n,), and the scores (n, d)."""
        x, epsilon = state.particles, problem.step_size
        log_p, score = density(x)
        there = x + epsilon * score + jnp.sqrt(2 * epsilon) * problem.normal(key, (len(x),))
        log_there, score_there = density(there)
        gap = lambda end, start, score: jnp.sum((end - start - epsilon * score) ** 2, axis=1)  # noqa: E731
        backwards = (gap(there, x, score) - gap(x, there, score_there)) / (4 * epsilon)
        chance = jnp.exp(jnp.minimum(0.0, log_there - log_p + backwards))
        return there, jnp.where(jnp.isfinite(chance) & jnp.all(jnp.isfinite(there), axis=1), chance, 0.0), score

    def step(key, state):
        active = problem.active(len(state.particles))
        there, chance, score = proposal(key, state)
        level = jax.scipy.stats.norm.cdf(normal(jax.random.fold_in(key, Stream.OWN), (len(there),), 1)[:, 0])
        moved = jnp.where((active & (level < chance))[:, None], there, state.particles)
        forces = Forces(jnp.where(active[:, None], score, 0.0), jnp.zeros_like(score))
        return State(state.step + 1, state.key, moved, ()), forces

    def extra(key, state):
        _, chance, _ = proposal(key, state)
        return {"acceptance": problem.weights(len(chance)) @ jnp.where(problem.active(len(chance)), chance, 0.0)}

    return Method(init, step, extra=extra)
