"""Guides: what one particle stands for. A guide is a factory (dim, mask, **options, **knobs) -> Guide.

mask (dim,) is 0 in padded coordinates, whose density must not count, or None.
"""

import jax
import jax.numpy as jnp
import numpy as np

from stein_core.base.distances import EXACT_DIFFERENCES, center
from stein_core.contract.knobs import Knob, Option
from stein_core.contract.registry import GUIDES
from stein_core.contract.types import Array, Guide


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
DENSITY = Option(
    "density",
    "once",
    choices=("once", "twice"),
    label="scale of the density",
    help="twice: as in NumPyro 0.16-0.22, a fault for teaching",
)


def _unconstrained(width, like):
    """Return u with softplus(u) = width, in the shape of `like`."""
    return jnp.full_like(like, width + jnp.log(-jnp.expm1(-width)))


@GUIDES.register(
    "normal",
    label="Diagonal normal",
    reference="SMI paper, sec. 6",
    knobs=(WIDTH,),
    options=(DENSITY,),
    former={"normal_twice": {"density": "twice"}},
    size=lambda d, density: 2 * d,
)
def normal(dim, mask=None, *, width, density):
    """A normal with its own location and standard deviations: psi = (location, u) with sd = softplus(u).

    With density "twice", draws have sd = softplus(u), but their density is taken at softplus(softplus(u)). One guide on
    N(0, 1) then stops where softplus(sd) = 1, at sd = log(e - 1) = 0.54132.
    """
    real = True if mask is None else mask > 0

    def split(psi):
        return psi[..., :dim], jax.nn.softplus(psi[..., dim:])

    def init(locations):
        return jnp.concatenate([locations, _unconstrained(width, locations)], axis=-1)

    def sample(psi, eps):
        location, scale = split(psi)
        return location + scale * eps

    def log_density(psi, theta):
        location, scale = split(psi)
        scale = jax.nn.softplus(scale) if density == "twice" else scale
        constant = -jnp.sum(jnp.log(scale) + 0.5 * jnp.log(2 * jnp.pi), axis=-1, where=real)
        return constant - 0.5 * _square(theta, location, scale)

    return Guide(init, sample, log_density, lambda psi: split(psi)[0], lambda psi: split(psi)[1])


def _square(theta, location, scale):
    """Return sum_k ((theta_ik - location_jk) / scale_jk)^2 as an (N, n) matrix."""
    if theta.shape[-1] <= EXACT_DIFFERENCES:
        return jnp.sum(((theta[:, None, :] - location) / scale) ** 2, axis=-1)
    origin = center(location)  # two matmuls instead of an (N, n, d) tensor
    theta, location, precision = theta - origin, location - origin, scale**-2
    square = theta**2 @ precision.T - 2 * theta @ (location * precision).T
    return square + jnp.sum(location**2 * precision, axis=-1)


@GUIDES.register(
    "full",
    label="Full normal",
    reference="Kucukelbir et al. 2017",
    knobs=(WIDTH,),
    size=lambda d: d + d * (d + 1) // 2,
    mean_field=False,
)
def full(dim, mask=None, *, width):
    """A normal with any covariance L L^T: psi = (location, u, the entries of L below its diagonal), with diagonal
    softplus(u). One is exact on any Gaussian."""
    below = np.tril_indices(dim, -1)
    real = jnp.ones(dim) if mask is None else mask

    def split(psi):
        """Return location (..., d) and L (..., d, d); rows of padding have their diagonal only."""
        location, u, rest = psi[..., :dim], psi[..., dim : 2 * dim], psi[..., 2 * dim :]
        root = jax.nn.softplus(u)[..., None] * jnp.eye(dim)
        return location, root.at[..., below[0], below[1]].set(rest * real[below[0]])

    def init(locations):
        entries = jnp.zeros((*locations.shape[:-1], len(below[0])), locations.dtype)
        return jnp.concatenate([locations, _unconstrained(width, locations), entries], axis=-1)

    def sample(psi, eps):
        location, root = split(psi)
        return location + root @ eps

    def log_density(psi, theta):
        location, root = split(psi)
        apart = jnp.moveaxis(theta[:, None, :] - location, 0, -1)  # (n, d, N)
        standard = jax.scipy.linalg.solve_triangular(root, apart, lower=True)
        scale = jnp.diagonal(root, axis1=-2, axis2=-1)
        constant = -jnp.sum(jnp.log(scale) + 0.5 * jnp.log(2 * jnp.pi), axis=-1, where=real > 0)
        return constant - 0.5 * jnp.sum(standard**2, axis=1).T

    return Guide(
        init,
        sample,
        log_density,
        lambda psi: psi[..., :dim],
        lambda psi: jnp.linalg.norm(split(psi)[1], axis=-1),
        factor=lambda psi: split(psi)[1],
    )


RANK = Option("rank", 2, 1, 20, label="rank", help="columns of V in the covariance D^2 + V V^T")


@GUIDES.register(
    "low_rank",
    label="Low-rank normal",
    reference="Ong, Nott & Smith 2018",
    knobs=(WIDTH,),
    options=(RANK,),
    size=lambda d, rank: (2 + rank) * d,
    mean_field=False,
)
def low_rank(dim, mask=None, *, rank, width):
    """A normal with covariance D^2 + V V^T, V of few columns: psi = (location, u, V), with D = softplus(u). For many
    dimensions in which few directions are correlated."""
    real = jnp.ones(dim) if mask is None else mask
    waves = np.cos(np.pi * (np.arange(dim) + 0.5) * np.arange(rank)[:, None] / dim)  # at V = 0 no gradient moves it

    def split(psi):
        """Return location (..., d), D (..., d) and V (..., rank, d)."""
        columns = psi[..., 2 * dim :].reshape(*psi.shape[:-1], rank, dim)
        return psi[..., :dim], jax.nn.softplus(psi[..., dim : 2 * dim]), columns * real

    def init(locations):
        columns = jnp.broadcast_to(0.1 * width * waves.ravel(), (*locations.shape[:-1], rank * dim))
        return jnp.concatenate([locations, _unconstrained(width, locations), columns], axis=-1)

    def sample(psi, eps):
        location, scale, columns = split(psi)
        return location + scale * eps[:dim] + eps[dim:] @ columns

    def log_density(psi, theta):
        location, scale, columns = split(psi)
        scaled = columns / scale[:, None, :]  # U = D^-1 V
        inner = jnp.eye(rank) + jnp.einsum("nrd,nsd->nrs", scaled, scaled)  # I + U^T U
        root = jnp.linalg.cholesky(inner)
        weights = scaled / scale[:, None, :]
        if dim <= EXACT_DIFFERENCES:  # U^T D^-1 (theta - location)
            along = jnp.einsum("ind,nrd->nri", theta[:, None, :] - location, weights)
        else:
            origin = center(location)
            along = jnp.einsum("id,nrd->nri", theta - origin, weights)
            along -= jnp.einsum("nd,nrd->nr", location - origin, weights)[..., None]
        along = jax.scipy.linalg.solve_triangular(root, along, lower=True)
        constant = -jnp.sum(jnp.log(scale) + 0.5 * jnp.log(2 * jnp.pi), axis=-1, where=real > 0)
        constant -= jnp.sum(jnp.log(jnp.diagonal(root, axis1=-2, axis2=-1)), axis=-1)
        return constant - 0.5 * (_square(theta, location, scale) - jnp.sum(along**2, axis=1).T)

    def scale(psi):
        _, own, columns = split(psi)
        return jnp.sqrt(own**2 + jnp.sum(columns**2, axis=-2))

    return Guide(
        init,
        sample,
        log_density,
        lambda psi: psi[..., :dim],
        scale,
        noise=rank,
        factor=lambda psi: jnp.swapaxes(split(psi)[2], -1, -2),
    )


def correlation(guide: Guide, particles: Array) -> Array:
    """Return the correlation (n,) of the first two coordinates of each guide; 0 if they are independent."""
    if guide.factor is None or (factor := guide.factor(particles)).shape[1] < 2:
        return jnp.zeros(len(particles))
    scale = guide.scale(particles)
    product = scale[:, 0] * scale[:, 1]
    found = jnp.sum(factor[:, 0] * factor[:, 1], axis=-1) / jnp.where(product > 0, product, 1.0)
    return jnp.clip(jnp.where(product > 0, found, 0.0), -1.0, 1.0)
