"""Semi-implicit variational inference by score matching: a critic network estimates the difference of scores."""

import jax
import jax.numpy as jnp
import optax

from stein_core.base.networks import mlp
from stein_core.base.streams import Stream
from stein_core.contract.knobs import Knob, Option
from stein_core.contract.registry import METHODS
from stein_core.methods.parts.sampler import (
    NETWORK,
    TRAINING,
    apply_gradient,
    fallen,
    sampler_of,
    scores,
    trained,
    warmth,
)

CRITIC = Knob("critic_step", 2.0, 0.01, 100.0, "log", "critic's step", "step size of the critic, in step sizes")
SHARE = Knob(
    "score_share",
    0.0,
    0.0,
    1.0,
    label="score in the critic",
    help="share of the target's score that is added to the critic; it falls by 0.4 % every 100 steps",
)
WIDTH = Option("critic_width", 128, 1, 512, label="critic's width", help="units of each of its two hidden layers")


@METHODS.register(
    "sivi_sm",
    label="SIVI-SM",
    reference="Yu & Zhang 2023 (SIVI-SM), eq. 8 of KSIVI",
    guides=("normal",),
    knobs=(CRITIC, SHARE, *TRAINING),
    options=(*NETWORK, WIDTH),
    noisy=lambda choices: True,
    sampler=True,
    optimizers=("adam_99",),
    colour=("#2E6B8A", "#86CFF0"),
    marker="hex",
)
def sivi_sm(problem, *, critic_step, score_share, start_sd, decay_every, annealing, angle, critic_width, **network):
    """The network descends, and a critic f climbs, E[2 <f(x), a> - |f(x)|^2]: a Fisher divergence whose kernel is
    learned. Steps near 0.001 suit it."""
    sampler, d = sampler_of(problem, start_sd, **network), problem.target.dim
    critic, second = mlp(d, d, critic_width, 2), problem.optimize(critic_step * problem.step_size)

    def game(weights, of_critic, key, state):
        drawn = sampler.draw(weights, key, len(state.particles))
        score = warmth(annealing, state.step) * scores(problem, key, drawn.x)
        a = score + drawn.pull
        f = critic.apply(of_critic, drawn.x)
        f = f if problem.mask is None else f * problem.mask
        f = f + score_share * 1.004 ** -jnp.floor(state.step / 100.0) * score  # KSIVI's code on the waveform data
        return problem.weights(len(a)) @ jnp.sum(2.0 * f * a - f**2, axis=1)

    def more(key):
        start = critic.init(jax.random.fold_in(key, Stream.OWN))
        return start, second.init(start)

    def update(key, state, gradient, _):
        factor = fallen(decay_every, state.step)
        memory = apply_gradient(problem, state.memory, gradient, factor)
        of_critic, second_state = memory.more
        up = jax.grad(game, argnums=1)(memory.weights, of_critic, jax.random.fold_in(key, Stream.OWN), state)
        moves, second_state = second.update(-up, second_state, of_critic)
        return memory._replace(more=(optax.apply_updates(of_critic, factor * moves), second_state))

    def loss(weights, key, state):
        return game(weights, state.memory.more[0], key, state), ()

    return trained(sampler, loss, annealing=annealing, decay_every=decay_every, angle=angle, update=update, more=more)
