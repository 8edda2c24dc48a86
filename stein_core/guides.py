"""Guides: what one particle stands for. A guide is a factory (dim, **knobs) -> Guide."""

import jax
import jax.numpy as jnp

from stein_core.forces import EXACT_DIFFERENCES
from stein_core.registry import GUIDES, Knob
from stein_core.types import Guide


@GUIDES.register("point", label="Point mass", reference="Liu & Wang 2016")
def point(dim):
    "A single point; the particles themselves are the sample."
    return Guide(
        init=lambda locations: locations,
        sample=lambda psi, eps: psi,
        log_density=None,
        location=lambda psi: psi,
        scale=jnp.zeros_like,
    )


WIDTH = Knob("width", 0.1, 1e-3, 10.0, "log", "initial width", "standard deviation of each guide at the start")


@GUIDES.register("normal", label="Diagonal normal", reference="SMI paper, sec. 6", knobs=(WIDTH,))
def normal(dim, *, width):
    "A normal with its own location and standard deviations: psi = (location, u) with sd = softplus(u)."

    def split(psi):
        return psi[..., :dim], jax.nn.softplus(psi[..., dim:])

    def init(locations):
        u = width + jnp.log(-jnp.expm1(-width))  # the inverse of softplus
        return jnp.concatenate([locations, jnp.full_like(locations, u)], axis=-1)

    def sample(psi, eps):
        location, scale = split(psi)
        return location + scale * eps

    def log_density(psi, theta):
        location, scale = split(psi)
        constant = -jnp.sum(jnp.log(scale), axis=-1) - 0.5 * dim * jnp.log(2 * jnp.pi)
        if dim <= EXACT_DIFFERENCES:
            standard = (theta[:, None, :] - location) / scale
            return constant - 0.5 * jnp.sum(standard**2, axis=-1)
        origin = jnp.mean(location, axis=0)  # two matmuls instead of an (N, n, d) tensor
        theta, location, precision = theta - origin, location - origin, scale**-2
        square = theta**2 @ precision.T - 2 * theta @ (location * precision).T
        return constant - 0.5 * (square + jnp.sum(location**2 * precision, axis=-1))

    return Guide(
        init=init,
        sample=sample,
        log_density=log_density,
        location=lambda psi: split(psi)[0],
        scale=lambda psi: split(psi)[1],
    )
