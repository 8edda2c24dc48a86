"""Noise that a Gram matrix shapes: correlated between particles.

With plain steps, the forces of a kernel and the Cholesky factor of its Gram matrix K,

    x <- x + epsilon phi + sqrt(2 epsilon / m) chol(K) Z,   Z standard normal (n, p),

all particles together sample the posterior (Gallego & Insua 2018).
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp

from stein_core.base.noise import normal
from stein_core.base.streams import Stream
from stein_core.contract.knobs import Knob
from stein_core.contract.registry import Registry
from stein_core.forces.gram import elementwise_root, gram_of, gram_root

# A noise is a function (problem, particles or outputs, z (n, p)) -> (added to the force, added to the particles).
FORCE_NOISES = Registry("noise")


@FORCE_NOISES.register("none", label="none", reference="closed form")
def none(problem, compared, z):
    "No noise."
    return jnp.zeros_like(z), jnp.zeros_like(z)


@FORCE_NOISES.register("cholesky", label="Cholesky factor of K", reference="Gallego & Insua 2018")
def cholesky(problem, compared, z):
    "sqrt(2 epsilon / m) chol(K) Z on the particles. With plain steps it samples the posterior; with Adam it does not."
    return jnp.zeros_like(z), jnp.sqrt(2 * problem.step_size / problem.m) * (gram_root(problem, compared) @ z)


@FORCE_NOISES.register("elementwise", label="elementwise, as printed", reference="D'Angelo et al. 2021, eq. 2")
def elementwise(problem, compared, z):
    "The square root of each entry of K in place of the Cholesky factor: not a sampler, the variance is too large."
    return jnp.zeros_like(z), jnp.sqrt(2 * problem.step_size / problem.m) * (elementwise_root(problem, compared) @ z)


@FORCE_NOISES.register("through", label="through the optimiser, as coded", reference="D'Angelo et al. 2021, code")
def through(problem, compared, z):
    """Noise of the same size for each particle alone, on the gradient that the optimiser takes. Adam rescales it: on
    N(0, 1) the variance is sqrt(epsilon / 2), so this is diversity and no sampler."""
    gram = gram_of(problem, compared)
    total = jnp.sum(jnp.where(problem.active(len(z)), jnp.maximum(gram, 0.0), 0.0), axis=1)
    return jnp.sqrt(2 * total / (problem.m * problem.step_size))[:, None] * z, jnp.zeros_like(z)


KNOB = Knob(
    "added_noise", "none", label="noise", choices=FORCE_NOISES, help="beta = 1; only the Cholesky factor samples"
)


def shaken(problem, compared, noise, noises=FORCE_NOISES):
    """Return the noise that `interaction.flow` takes.

    Args:
        problem: step size and number of active particles.
        compared: (key, State) -> (problem of the kernel, what it compares (n, k)).
        noise: index in `noises`.
        noises: the registry.
    """

    def draw(key, state):
        among, what = compared(key, state)
        n, p = state.particles.shape

        def some():
            z = normal(jax.random.fold_in(key, Stream.NOISE), (n,), p)
            return jnp.where(problem.active(n)[:, None], z, 0.0).astype(state.particles.dtype)

        if "none" in noises:  # a million normal numbers cost as much as the step of a network: draw none without noise
            z = jax.lax.cond(noise != noises.index("none"), some, lambda: jnp.zeros_like(state.particles))
        else:
            z = some()
        return noises.pick(noise, branch=lambda entry: partial(entry.make, among, what, z))

    return draw
