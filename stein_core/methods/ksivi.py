"""Kernel semi-implicit variational inference."""

from functools import partial

import jax
import jax.numpy as jnp

from stein_core.contract.knobs import Knob
from stein_core.contract.registry import METHODS, Registry
from stein_core.methods.parts.sampler import FORM, NETWORK, TRAINING, kernel_of, sampler_of, scores, trained, warmth

ESTIMATORS = Registry("estimator of the discrepancy")
FOLLOWS = Registry("gradient of the bandwidth")


# An estimator is a function (draw, first, weights) -> the second batch, (x, a) like the first, and weights (n, n) of
# the pairs of both batches. `draw` makes another batch like the first.


@ESTIMATORS.register("u", label="U-statistic", reference="KSIVI, eq. 23")
def u_statistic(draw, first, weights):
    "One batch, all pairs of two different draws."
    pairs = jnp.where(jnp.eye(len(weights), dtype=bool), 0.0, jnp.outer(weights, weights))
    total = jnp.sum(pairs)
    return first, pairs / jnp.where(total > 0, total, 1.0)


@ESTIMATORS.register("vanilla", label="two batches", reference="KSIVI, eq. 22")
def vanilla(draw, first, weights):
    "Two independent batches, all pairs of one draw of each. It costs twice as many scores."
    return draw(), jnp.outer(weights, weights)


@FOLLOWS.register("through", label="through the median", reference="KSIVI, its code (detach: False)")
def through():
    "The bandwidth's gradient counts: the pair of draws at the median carries it."
    return 1.0


@FOLLOWS.register("stopped", label="held fixed", reference="usual for SVGD")
def stopped():
    "The bandwidth is held fixed in the gradient: on the waveform posterior the sample then inflates."
    return 0.0


ESTIMATOR = Knob("statistic", "u", label="estimator", choices=ESTIMATORS, help="of the squared discrepancy")
FOLLOW = Knob(
    "bandwidth_gradient", "through", label="gradient of the bandwidth", choices=FOLLOWS, help="does it count?"
)
ENTROPIC = Knob(
    "entropic",
    0.0,
    0.0,
    10.0,
    "log0",
    "entropic weight",
    "of -E log p, added to the loss: it keeps draws from far tails",
)


def value_of(knob):
    """Return the number, 1 or 0, of a traced choice of `FOLLOWS`."""
    return jnp.asarray([entry.make() for entry in FOLLOWS.entries()])[knob.astype(jnp.int32)]


def second_batch(statistic, draw, first, weights):
    """Return what the estimator with this traced index returns."""
    return ESTIMATORS.pick(statistic, branch=lambda entry: partial(entry.make, draw, first, weights))


def discrepancy(problem, form, follow, first, second, pairs):
    """Return an unbiased estimate of KSD^2, for a bandwidth that is held fixed; it may be negative.

    Args:
        problem: has the kernel.
        form: traced index of its form.
        follow: 1 for a gradient through the bandwidth, 0 for none.
        first, second: batches x (n, d) and a (n, d).
        pairs: (n, n) weights.
    """
    (x, a), (y, b) = first, second
    return jnp.sum(pairs * (a @ b.T) * kernel_of(problem, form, x, y, follow))


def entropic_term(entropic, weights, x, score):
    """Return 0, with the gradient of -entropic E log p.

    The regularisation of Bénard et al. 2023 as KSIVI's code has it. If p has heavy tails, both scores vanish far out,
    and so does the discrepancy of draws there.

    Args:
        entropic: its weight.
        weights: (n,) of the draws.
        x: (n, d) draws.
        score: (n, d) grad log p at the draws.
    """
    held = jax.lax.stop_gradient
    return entropic * jnp.sum(weights[:, None] * held(score) * (held(x) - x))


@METHODS.register(
    "ksivi",
    label="KSIVI",
    reference="Cheng et al. 2024 (KSIVI), eq. 20-23",
    guides=("normal",),
    knobs=(ESTIMATOR, FOLLOW, FORM, ENTROPIC, *TRAINING),
    options=NETWORK,
    noisy=lambda choices: True,
    sampler=True,
    optimizers=("adam_99",),
    colour=("#501B64", "#AE77A3"),
    marker="triangle",
)
def ksivi(
    problem, *, statistic, bandwidth_gradient, form, entropic, start_sd, decay_every, annealing, angle, **network
):
    """A network turns noise into draws and descends the kernel Stein discrepancy, E k(x, x') <a, a'> with a = grad log
    p(x) + eps / sigma. Steps near 0.001 suit it."""
    sampler, follow = sampler_of(problem, start_sd, **network), value_of(bandwidth_gradient)

    def loss(weights, key, state):
        def draw(batch):
            drawn = sampler.draw(weights, jax.random.fold_in(key, batch), len(state.particles))
            score = warmth(annealing, state.step) * scores(problem, key, drawn.x)
            return (drawn.x, score + drawn.pull), score

        (first, score), each = draw(0), problem.weights(len(state.particles))
        second, pairs = second_batch(statistic, lambda: draw(1)[0], first, each)
        value = discrepancy(problem, form, follow, first, second, pairs)
        return value + entropic_term(entropic, each, first[0], score), ()

    return trained(sampler, loss, annealing=annealing, decay_every=decay_every, angle=angle, form=form)
