"""Guides: what one particle stands for. A guide is a factory (dim, mask, **knobs) -> Guide.

mask (dim,) is 0 in padded coordinates, whose density must not count, or None.
"""

import jax
import jax.numpy as jnp

from stein_core.distances import EXACT_DIFFERENCES, center
from stein_core.knobs import Knob
from stein_core.registry import GUIDES
from stein_core.types import Guide


@GUIDES.register("point", label="Point mass", reference="Liu & Wang 2016", size=lambda d: d, has_density=False)
def point(dim, mask=None):
    "A single point; the particles themselves are the sample."
    return Guide(
        init=lambda locations: locations,
        sample=lambda psi, eps: psi,
        log_density=None,
        location=lambda psi: psi,
        scale=jnp.zeros_like,
    )


WIDTH = Knob("width", 0.1, 1e-3, 10.0, "log", "initial width", "standard deviation of each guide at the start")


@GUIDES.register("normal", label="Diagonal normal", reference="SMI paper, sec. 6", knobs=(WIDTH,), size=lambda d: 2 * d)
def normal(dim, mask=None, *, width):
    "A normal with its own location and standard deviations: psi = (location, u) with sd = softplus(u)."
    return _diagonal(dim, mask, width, density_scale=lambda scale: scale)


@GUIDES.register(
    "normal_twice",
    label="Normal, scale constrained twice (NumPyro 0.16-0.22)",
    reference="NumPyro 0.22, steinvi.py: constrain_fn after particle_transform_fn",
    knobs=(WIDTH,),
    size=lambda d: 2 * d,
)
def normal_twice(dim, mask=None, *, width):
    """A fault for teaching: draws have sd = softplus(u), but their density is taken at sd = softplus(softplus(u)).

    One guide on N(0, 1) then stops where softplus(sd) = 1, at sd = log(e - 1) = 0.54132.
    """
    return _diagonal(dim, mask, width, density_scale=jax.nn.softplus)


def _diagonal(dim, mask, width, density_scale):
    """Return the normal guide whose log density has the standard deviation density_scale(sd)."""
    real = True if mask is None else mask > 0

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
        scale = density_scale(scale)
        constant = -jnp.sum(jnp.log(scale) + 0.5 * jnp.log(2 * jnp.pi), axis=-1, where=real)
        if dim <= EXACT_DIFFERENCES:
            standard = (theta[:, None, :] - location) / scale
            return constant - 0.5 * jnp.sum(standard**2, axis=-1)
        origin = center(location)  # two matmuls instead of an (N, n, d) tensor
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
