"""Hierarchical KSIVI: a chain of semi-implicit layers from a base to the target. Reconstructed: no code is public."""

import jax
import jax.numpy as jnp

from stein_core.base.networks import mlp
from stein_core.base.streams import Stream
from stein_core.contract.knobs import Knob, Option
from stein_core.contract.registry import METHODS
from stein_core.contract.types import Method, State
from stein_core.forces.problem import log_density_of
from stein_core.methods.ksivi import ENTROPIC, ESTIMATOR, FOLLOW, discrepancy, entropic_term, second_batch, value_of
from stein_core.methods.parts.sampler import (
    DECAY,
    DEPTH,
    FORM,
    START,
    WIDTH,
    Draws,
    Memory,
    Weights,
    apply_gradient,
    fallen,
    scores,
    witness,
)

LAYERS = Option("layers", 5, 1, 10, label="layers", help="T, from the base to the target")
BASE = Knob("base_sd", 1.0, 0.05, 20.0, "log", "sd of the base", "in the target's scale, around its centre")


def bridge(problem, base_sd, share, key, x):
    """Return the scores (n, d) of p^share base^(1 - share) at x (n, d), spare rows too; they need no normaliser."""
    target = problem.target
    center, sd = jnp.asarray(target.start.center, float), base_sd * jnp.asarray(target.start.scale, float)
    base = -(x - center) / sd**2
    base = base if problem.mask is None else base * problem.mask
    return share * jax.vmap(jax.grad(log_density_of(target, key)))(x) + (1.0 - share) * base


@METHODS.register(
    "hksivi",
    label="HKSIVI",
    reference="Cheng et al. 2024 (KSIVI), sec. 7.2, reconstructed",
    guides=("normal",),
    knobs=(ESTIMATOR, FOLLOW, FORM, ENTROPIC, START, BASE, DECAY),
    options=(LAYERS, WIDTH, DEPTH),
    noisy=lambda choices: True,
    sampler=True,
    optimizers=("adam_99",),
    colour=("#8A3B12", "#F4B183"),
    marker="star",
)
def hksivi(
    problem, *, statistic, bandwidth_gradient, form, entropic, start_sd, base_sd, decay_every, layers, width, depth
):
    """T layers, each a Langevin step towards p^s base^(1-s), s from 1/T to 1, plus a network. Each layer descends its
    own discrepancy. The networks start at 0, so that the sampler starts as an unadjusted Langevin chain."""
    d, follow = problem.target.dim, value_of(bandwidth_gradient)
    net = mlp(d, d, width, depth, silent=True)
    center, scale = jnp.asarray(problem.target.start.center, float), jnp.asarray(problem.target.start.scale, float)
    first_sd = start_sd * scale  # sigma of a layer at the start
    shares = jnp.arange(1, layers + 1) / layers

    def sigma(weights):
        found = jnp.exp(0.5 * jnp.maximum(weights.log_variance, -20.0))
        return found if problem.mask is None else jnp.where(problem.mask > 0, found, 1.0)

    def layer(weights, share, key, x, eps):
        """Return the draws of one layer from those (n, d) of the layer before."""
        push = net.apply(weights.network, (x - center) / scale) * scale
        push = push if problem.mask is None else push * problem.mask
        mean = x + 0.5 * first_sd**2 * bridge(problem, base_sd, share, key, x) + push
        return Draws(mean + sigma(weights) * eps, eps / sigma(weights), mean, x)

    def base(key, n):
        return center + base_sd * scale * problem.normal(key, (n,))

    def chain(weights, key, noise, n):
        """Return the draws of all layers, stacked: (T, n, d) arrays. No gradient passes from layer to layer."""

        def go_on(x, each):
            own, share, t = each
            drawn = layer(own, share, key, x, problem.normal(jax.random.fold_in(noise, t + 1), (n,)))
            return jax.lax.stop_gradient(drawn.x), drawn

        return jax.lax.scan(go_on, base(noise, n), (weights, shares, jnp.arange(layers)))[1]

    def losses(weights, key, n):
        """Return the estimate of each layer, (T,)."""

        def batch(number):
            drawn = chain(weights, key, jax.random.fold_in(key, number + 1), n)
            toward = jax.vmap(lambda share, x: bridge(problem, base_sd, share, key, x))(shares, drawn.x)
            return (drawn.x, toward + drawn.pull), toward

        (first, toward), each = batch(0), problem.weights(n)
        second, pairs = second_batch(statistic, lambda: batch(1)[0], first, each)

        def loss(first, second, toward):
            value = discrepancy(problem, form, follow, first, second, pairs)
            return value + entropic_term(entropic, each, first[0], toward)

        return jax.vmap(loss)(first, second, toward)

    def shown(weights, key, run_key, n):
        return chain(weights, key, jax.random.fold_in(run_key, Stream.FIXED_Z), n)

    def particles(weights, key, run_key, n):
        last = jax.tree.map(lambda a: a[-1], weights)
        deviation = sigma(last)
        raw = jnp.where(deviation > 20.0, deviation, jnp.log(jnp.expm1(jnp.minimum(deviation, 20.0))))
        mean = shown(weights, key, run_key, n).mean[-1]
        return jnp.concatenate([mean, jnp.broadcast_to(raw, mean.shape)], axis=1)

    def init(key, n):
        keys = jax.random.split(key, layers)
        networks = jax.vmap(net.init)(keys).astype(float)
        weights = Weights(networks, jnp.broadcast_to(2.0 * jnp.log(first_sd), (layers, d)))
        return State(
            jnp.int32(0), key, particles(weights, key, key, n), Memory(weights, problem.optimizer.init(weights))
        )

    def step(key, state):
        n, weights = len(state.particles), state.memory.weights
        x, pull = (a[-1] for a in shown(weights, key, state.key, n)[:2])
        forces = witness(problem, form, x, scores(problem, key, x), pull)
        gradient = jax.grad(lambda weights: jnp.sum(losses(weights, key, n)))(weights)
        memory = apply_gradient(problem, state.memory, gradient, fallen(decay_every, state.step))
        after = particles(memory.weights, key, state.key, n)
        return State(state.step + 1, state.key, after, memory), forces

    def extra(key, state):
        n, weights = len(state.particles), state.memory.weights
        every, drawn = losses(weights, key, n), shown(weights, key, state.key, n)
        return {"loss": every[-1], "layer_losses": every, "layers": drawn.x, "draws": drawn.x[-1]}

    def draw(key, state, n):
        return chain(state.memory.weights, key, key, n).x[-1]

    return Method(init, step, extra=extra, draw=draw)
