"""Semi-implicit variational inference: a bound from auxiliary draws."""

import jax
import jax.numpy as jnp
import numpy as np

from stein_core.base.distances import squared_distances
from stein_core.base.streams import Stream
from stein_core.contract.knobs import Option
from stein_core.contract.registry import METHODS
from stein_core.forces.problem import log_density_of
from stein_core.methods.parts.sampler import NETWORK, TRAINING, sampler_of, trained, warmth

AUXILIARY = Option("auxiliary", 50, 1, 10_000, label="auxiliary draws", help="K, draws of z that a bound averages over")


def log_marginal(sampler, weights, x, own, others):
    """Return log[(q(x|z) + sum_k q(x|z_k)) / (K + 1)], (n,): for K to infinity the log density of x.

    Args:
        sampler, weights: the family.
        x: (n, d) draws.
        own: (n, d) mu(z) that x came from.
        others: (K, d) mu(z_k), the same for all x.
    """
    sigma = sampler.sigma(weights)
    square = lambda means: squared_distances(x / sigma, means / sigma)  # noqa: E731
    logs = jnp.concatenate([jnp.sum(((x - own) / sigma) ** 2, axis=1)[:, None], square(others)], axis=1)
    constant = jnp.log(1.0 + len(others)) + 0.5 * len(sigma) * np.log(2 * np.pi) + jnp.sum(jnp.log(sigma))
    return jax.nn.logsumexp(-0.5 * logs, axis=1) - constant


@METHODS.register(
    "sivi",
    label="SIVI",
    reference="Yin & Zhou 2018, eq. 3 of KSIVI",
    guides=("normal",),
    knobs=TRAINING,
    options=(*NETWORK, AUXILIARY),
    noisy=lambda choices: True,
    sampler=True,
    optimizers=("adam_99",),
    colour=("#5E35B1", "#C5A8FF"),
    marker="inverted_triangle",
)
def sivi(problem, *, start_sd, decay_every, annealing, angle, auxiliary, **network):
    """A network turns noise into draws and climbs a lower bound of the ELBO, with the density of a draw averaged over K
    fresh z. Steps near 0.001 suit it."""
    sampler = sampler_of(problem, start_sd, **network)

    def loss(weights, key, state):
        drawn = sampler.draw(weights, key, len(state.particles))
        others = sampler.draw(weights, jax.random.fold_in(key, Stream.OWN), auxiliary).mean
        log_q = log_marginal(sampler, weights, drawn.x, drawn.mean, others)
        log_p = jax.vmap(log_density_of(problem.target, key))(drawn.x)
        per_draw = log_q - warmth(annealing, state.step) * log_p
        return jnp.sum(jnp.where(problem.active(len(per_draw)), per_draw, 0.0)) / problem.m, ()

    return trained(sampler, loss, annealing=annealing, decay_every=decay_every, angle=angle)
