"""Unbiased implicit variational inference: Hamiltonian Monte Carlo draws the z that could have made a draw."""

import jax
import jax.numpy as jnp
import optax

from stein_core.base.noise import normal
from stein_core.base.streams import Stream
from stein_core.contract.knobs import Knob, Option
from stein_core.contract.registry import METHODS
from stein_core.methods.parts.sampler import NETWORK, TRAINING, Weights, fallen, sampler_of, scores, trained, warmth

BURN = Option("burn", 5, 0, 100, label="burn-in", help="Hamiltonian moves before the first kept z")
KEPT = Option("kept", 5, 1, 100, label="kept z", help="Hamiltonian moves whose z a step averages over")
LEAPFROGS = Option("leapfrogs", 5, 1, 50, label="leapfrogs", help="of one Hamiltonian move")
LEAP = Knob("leap", 0.2, 1e-3, 2.0, "log", "leapfrog step", "at the next reset; it then adapts to 90 % acceptance")
SIGMA = Knob("sigma_step", 0.2, 0.0, 10.0, "log0", "sigma's step", "step size of sigma, in step sizes")


def reverse(log_density, key, z, leap, weights, burn, kept, leapfrogs):
    """Return draws z' (kept, n, latent) of a density per row, by Hamiltonian Monte Carlo from z, and the adapted step.

    Args:
        log_density: z (n, latent) -> (n,).
        key: of the moves.
        z: (n, latent) starts.
        leap: step of a leapfrog. A burn-in move multiplies it by 1 + 0.01 (acceptance - 0.9) / 0.9.
        weights: (n,) of the rows in the mean acceptance.
        burn, kept, leapfrogs: static numbers.
    """
    slope = jax.grad(lambda z: jnp.sum(log_density(z)))

    def move(carry, number):
        z, leap = carry
        for_speed, for_choice = jax.random.split(jax.random.fold_in(key, number))
        speed = normal(for_speed, (len(z),), z.shape[1])

        def frog(_, at):
            place, half = at
            half = half + 0.5 * leap * slope(place)
            place = place + leap * half
            return place, half + 0.5 * leap * slope(place)

        there, end = jax.lax.fori_loop(0, leapfrogs, frog, (z, speed))
        energy = lambda z, v: -log_density(z) + 0.5 * jnp.sum(v**2, axis=1)  # noqa: E731
        chance = jnp.exp(jnp.minimum(0.0, energy(z, speed) - energy(there, end)))
        chance = jnp.where(jnp.isfinite(chance), chance, 0.0)
        taken = normal(for_choice, (len(z),), 1)[:, 0]
        z = jnp.where((0.5 * jax.scipy.special.erfc(taken / 2**0.5) < chance)[:, None], there, z)
        adapted = leap * (1.0 + 0.01 * (weights @ chance - 0.9) / 0.9)
        return (z, jnp.where(number < burn, adapted, leap)), z

    (_, leap), visited = jax.lax.scan(move, (z, leap), jnp.arange(burn + kept))
    return visited[burn:], leap


@METHODS.register(
    "uivi",
    label="UIVI",
    reference="Titsias & Ruiz 2019",
    guides=("normal",),
    knobs=(LEAP, SIGMA, *TRAINING),
    options=(*NETWORK, BURN, KEPT, LEAPFROGS),
    noisy=lambda choices: True,
    sampler=True,
    optimizers=("adam_99",),
    colour=("#7A6A00", "#E3D26F"),
    marker="diamond",
)
def uivi(
    problem, *, leap, sigma_step, start_sd, decay_every, annealing, angle, burn, kept, leapfrogs, **network
):  # fmt: skip
    """The exact gradient of the ELBO, up to the burn-in of Hamiltonian chains: the score of a draw is the mean of those
    given each z that could have made it. Ten times the cost of KSIVI."""
    sampler = sampler_of(problem, start_sd, **network)

    def loss(weights, key, state):
        held, n = jax.lax.stop_gradient(weights), len(state.particles)
        drawn, sigma = sampler.draw(weights, key, n), sampler.sigma(held)
        x, z, active = jax.lax.stop_gradient((drawn.x, drawn.z, problem.weights(n)))

        def log_density(z):  # of z given x
            return -0.5 * jnp.sum(z**2, 1) - 0.5 * jnp.sum(((x - sampler.mean(held, z)) / sigma) ** 2, 1)

        moves = jax.random.fold_in(key, Stream.OWN)
        visited, leap = reverse(log_density, moves, z, state.memory.more, active, burn, kept, leapfrogs)
        back = jnp.mean((x - jax.vmap(lambda z: sampler.mean(held, z))(visited)) / sigma**2, axis=0)
        g = jax.lax.stop_gradient(warmth(annealing, state.step) * scores(problem, key, x) + back)
        return -active @ jnp.sum(g * drawn.x, axis=1), leap

    def update(key, state, gradient, leap):
        memory, factor = state.memory, fallen(decay_every, state.step)
        moves, optimizer = problem.optimizer.update(gradient, memory.optimizer, memory.weights)
        slower = Weights(factor * moves.network, sigma_step * factor * moves.log_variance)
        return memory._replace(weights=optax.apply_updates(memory.weights, slower), optimizer=optimizer, more=leap)

    return trained(
        sampler,
        loss,
        annealing=annealing,
        decay_every=decay_every,
        angle=angle,
        update=update,
        more=lambda key: jnp.asarray(leap, float),
    )
