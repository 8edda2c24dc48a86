"""Targets whose directions differ: an autoregression, and a density of the plane among independent normals."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

from stein_core.base.noise import normal
from stein_core.contract.knobs import Knob
from stein_core.contract.registry import TARGETS
from stein_core.targets.closed_forms import HIGH, _masked, _names, _target, banana, cross

CHAIN = {**HIGH, "default_dim": 10}
BESIDE = {**HIGH, "dims": (2, 1000)}
RHO = Knob("rho", 0.9, -0.99, 0.99, label="rho", help="correlation of neighbouring coordinates")


@TARGETS.register("autoregression", label="Autoregression", reference="closed form", knobs=(RHO,), **CHAIN)
def autoregression(dim, mask=None, *, rho):
    """A stationary AR(1) chain: each coordinate has variance 1, and two that are k apart have correlation rho^k. At rho
    = 0.9 in 10 dimensions the widest direction has 135 times the variance of the narrowest."""
    spread = jnp.sqrt(1.0 - rho**2)
    apart = np.abs(np.subtract.outer(np.arange(dim), np.arange(dim)))

    def log_density(theta):
        steps = norm.logpdf(theta[1:], rho * theta[:-1], spread)
        return _masked(jnp.concatenate([norm.logpdf(theta[:1]), steps]), mask)

    def sample(key, n):
        root = jnp.tril(rho**apart) * jnp.where(jnp.arange(dim) == 0, 1.0, spread)
        return normal(key, (n,), dim) @ root.T

    return _target(log_density, sample, variance=1.0, covariance=rho**apart, dim=dim)


def beside_normals(plane, dim, mask):
    """Return the target in the first two coordinates, and N(0, 1) in the others."""
    two, others = plane(2), np.arange(dim) >= 2

    def log_density(theta):
        return two.log_density(theta[:2]) + _masked(jnp.where(others, norm.logpdf(theta), 0.0), mask)

    def sample(key, n):
        for_two, for_others = jax.random.split(key)
        return jnp.where(
            others, normal(for_others, (n,), dim), jnp.pad(two.truth.sample(for_two, n), [(0, 0), (0, dim - 2)])
        )

    def among(value, plain):
        return np.concatenate([np.broadcast_to(value, (2,)), np.full(dim - 2, plain)])

    covariance = None
    if two.truth.covariance is not None:
        covariance = np.eye(dim)
        covariance[:2, :2] = two.truth.covariance
    return _target(
        log_density,
        sample,
        extent=two.extent,
        coordinates=(*two.coordinates, *_names(dim)[2:]),
        mean=among(two.truth.mean, 0.0),
        variance=among(two.truth.variance, 1.0),
        covariance=covariance,
        dim=dim,
    )


@TARGETS.register("banana_beside", label="Banana beside normals", reference="after Haario et al. 1999", **BESIDE)
def banana_beside(dim, mask=None):
    "The banana in the first two coordinates, and independent N(0, 1) in all others."
    return beside_normals(banana, dim, mask)


@TARGETS.register("cross_beside", label="X beside normals", reference="closed form", **BESIDE)
def cross_beside(dim, mask=None):
    "The X shape in the first two coordinates, and independent N(0, 1) in all others."
    return beside_normals(cross, dim, mask)
