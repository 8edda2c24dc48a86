"""Targets with closed forms. A target is a factory (dim) -> Target, registered with the range of dims it allows.

A target with the fact `pads` is a factory (dim, mask): mask (dim,) is 1 for a coordinate and 0 for padding, or None.
Padded coordinates add nothing to the density, so that one compiled program serves several dimensions.

Every density here is normalised (`log_normalizer` = 0) and has an exact sampler; gradients are never written by hand.
"""

from dataclasses import replace
from functools import wraps

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm, t
from scipy import special

from stein_core.base.noise import normal
from stein_core.contract.known import Start, Truth
from stein_core.contract.registry import TARGETS
from stein_core.contract.target import Target

SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
HIGH = {"dims": (1, 1000), "pads": True, "default_dim": 2}
PLANE = {"dims": (2, 1000), "dim_step": 2, "pads": True, "default_dim": 2}


def _names(dim):
    return tuple(f"θ{i + 1}".translate(SUBSCRIPTS) for i in range(dim))


def _target(
    log_density, sample, *, half=4.0, extent=None, coordinates=None, mean=0.0, variance=None, dim=2, **known
) -> Target:
    truth = Truth(
        sample=sample,
        mean=np.broadcast_to(mean, (dim,)),
        variance=None if variance is None else np.broadcast_to(variance, (dim,)),
        log_normalizer=0.0,
        **known,
    )
    return Target(
        log_density=log_density,
        start=Start(np.zeros(dim), np.ones(dim)),
        coordinates=coordinates or _names(dim),
        constrain=lambda theta: {"theta": theta},
        truth=truth,
        extent=extent or (-half, half, -half, half),
    )


def _keys(key, count):
    """Return a key for each coordinate (or copy). It does not depend on how many follow."""
    return jax.vmap(jax.random.fold_in, (None, 0))(key, jnp.arange(count))


def _masked(terms, mask):
    """Return the sum of the coordinates' terms without the padded ones."""
    return jnp.sum(terms if mask is None else terms * mask)


def stacked(make):
    """Turn a 2-D factory into a factory (dim, mask) of dim / 2 independent copies (Ba et al. 2022, fig. 5)."""

    @wraps(make)
    def copies(dim, mask=None):
        plane = make(2)
        if dim == 2 and mask is None:
            return plane
        count = dim // 2
        first_of_pair = None if mask is None else mask[::2]

        def log_density(theta):
            return _masked(jax.vmap(plane.log_density)(theta.reshape(count, 2)), first_of_pair)

        def sample(key, n):
            return jnp.moveaxis(jax.vmap(plane.truth.sample, (0, None))(_keys(key, count), n), 0, 1).reshape(n, dim)

        def tiled(values):
            return None if values is None else np.tile(values, count)

        covariance = None if plane.truth.covariance is None else np.kron(np.eye(count), plane.truth.covariance)
        truth = replace(
            plane.truth,
            sample=sample,
            mean=tiled(plane.truth.mean),
            variance=tiled(plane.truth.variance),
            covariance=covariance,
            mode_centers=plane.truth.mode_centers if dim == 2 else None,
        )
        return replace(
            plane,
            log_density=log_density,
            start=Start(tiled(plane.start.center), tiled(plane.start.scale)),
            coordinates=_names(dim),
            constrain=lambda theta: {"theta": theta},
            truth=truth,
        )

    return copies


@TARGETS.register("gaussian", label="Gaussian", reference="SMI paper, sec. 6.1", **HIGH)
def gaussian(dim, mask=None):
    "Standard normal in any dimension: where SVGD's variance has an exact law."
    return _target(
        lambda theta: _masked(norm.logpdf(theta), mask),
        lambda key, n: normal(key, (n,), dim),
        variance=1.0,
        dim=dim,
    )


@TARGETS.register("two_gaussians", label="Two Gaussians, 1 apart", reference="Ba et al. 2022, fig. 7(a)", **HIGH)
def two_gaussians(dim, mask=None):
    "1/2 N(-e/2, I) + 1/2 N(e/2, I) in any dimension, e the first unit vector: it has one mode, yet SVGD collapses."
    shift = 0.5 * jnp.eye(1, dim)[0]

    def log_density(theta):
        sides = [_masked(norm.logpdf(theta, side * shift), mask) for side in (-1, 1)]
        return jnp.logaddexp(*sides) - np.log(2)

    def sample(key, n):
        for_side, noise = jax.random.split(key)
        return jax.random.rademacher(for_side, (n, 1), float) * shift + normal(noise, (n,), dim)

    return _target(log_density, sample, dim=dim, variance=1.0 + 0.25 * np.eye(1, dim)[0])


@TARGETS.register("cubic", label="Cubic growth", reference="Ba et al. 2022, fig. 7(b)", **HIGH)
def cubic(dim, mask=None):
    """Product of densities proportional to exp(-|x|^3 / 3). The paper prints the exponent -prod_i (x_i)^3 / 3, whose
    density has no finite integral. The exponent -sum_i |x_i|^3 / 3 gives the factorised density of its
    text."""
    constant = np.log(2 * 3 ** (1 / 3)) + special.gammaln(4 / 3)

    def sample(key, n):
        def coordinate(key):  # |x|^3 / 3 has a Gamma(1/3) distribution
            for_side, size = jax.random.split(key)
            return jax.random.rademacher(for_side, (n,), float) * jnp.cbrt(3 * jax.random.gamma(size, 1 / 3, (n,)))

        return jax.vmap(coordinate, out_axes=1)(_keys(key, dim))

    return _target(
        lambda theta: _masked(-(jnp.abs(theta) ** 3) / 3 - constant, mask),
        sample,
        half=3.0,
        dim=dim,
        variance=3 ** (2 / 3) / special.gamma(1 / 3),
    )


@TARGETS.register("correlated", label="Correlated Gaussian", reference="closed form", **PLANE)
@stacked
def correlated(dim):
    "Unit variances, correlation 0.8: one diagonal guide cannot follow it."
    return _mixture([1.0], [[0.0, 0.0]], [[[1.0, 0.8], [0.8, 1.0]]])


@TARGETS.register("banana", label="Banana", reference="after Haario et al. 1999", **PLANE)
@stacked
def banana(dim):
    "x ~ N(0, 1), y | x ~ N(x^2 - 1, 1/2): a bent ridge."
    scale = 0.5**0.5

    def sample(key, n):
        x, noise = jax.random.normal(key, (2, n))
        return jnp.stack([x, x**2 - 1 + scale * noise], axis=1)

    return _target(
        lambda theta: norm.logpdf(theta[0]) + norm.logpdf(theta[1], theta[0] ** 2 - 1, scale),
        sample,
        extent=(-4.0, 4.0, -4.0, 7.0),
        coordinates=("x", "y"),
        variance=[1.0, 2.5],
    )


def _mixture(weights, means, covariances) -> Target:
    weights, means, covariances = (np.asarray(a, float) for a in (weights, means, covariances))
    roots = np.linalg.cholesky(covariances)
    inverse = np.linalg.inv(roots)
    constant = np.log(weights) - np.log(np.linalg.det(roots)) - np.log(2 * np.pi)

    def log_density(theta):
        standard = jnp.einsum("kij,kj->ki", jnp.asarray(inverse, float), theta - jnp.asarray(means, float))
        return jax.nn.logsumexp(jnp.asarray(constant, float) - 0.5 * jnp.sum(standard**2, axis=1))

    def sample(key, n):
        which, noise = jax.random.split(key)
        k = jax.random.choice(which, len(weights), (n,), p=jnp.asarray(weights))
        eps = jax.random.normal(noise, (n, 2))
        return jnp.asarray(means)[k] + jnp.einsum("nij,nj->ni", jnp.asarray(roots)[k], eps)

    mean = weights @ means
    second = np.einsum("k,kij->ij", weights, covariances + means[:, :, None] * means[:, None, :])
    covariance = second - np.outer(mean, mean)
    return _target(
        log_density,
        sample,
        half=float(np.abs(means).max() + 3.0),
        mean=mean,
        variance=np.diagonal(covariance),
        covariance=covariance,
        mode_centers=means if len(np.unique(means, axis=0)) == len(means) > 1 else None,
    )


@TARGETS.register("cross", label="X shape", reference="closed form", **PLANE)
@stacked
def cross(dim):
    "Two crossing ridges, correlation +0.9 and -0.9."
    ridge = 1.5 * np.array([[1.0, 0.9], [0.9, 1.0]])
    return _mixture([0.5, 0.5], [[0, 0], [0, 0]], [ridge, ridge * [[1, -1], [-1, 1]]])


@TARGETS.register("two_modes", label="Two modes (1:2)", reference="Liu & Wang 2016, fig. 1", **PLANE)
@stacked
def two_modes(dim):
    "1/3 N((-2, 0), I) + 2/3 N((2, 0), I): the first coordinate is the SVGD paper's example."
    return _mixture([1 / 3, 2 / 3], [[-2, 0], [2, 0]], [np.eye(2)] * 2)


@TARGETS.register("three_modes", label="Three modes", reference="closed form", **PLANE)
@stacked
def three_modes(dim):
    "Three equal normals, sd 0.6, on a circle of radius 2.5: far enough apart to trap particles."
    angles = np.pi / 2 + np.arange(3) * 2 * np.pi / 3
    return _mixture([1 / 3] * 3, 2.5 * np.stack([np.cos(angles), np.sin(angles)], 1), [0.36 * np.eye(2)] * 3)


@TARGETS.register("ring", label="Ring", reference="closed form", **PLANE)
@stacked
def ring(dim):
    "Density proportional to exp(-(|x| - 2)^2 / (2 * 0.3^2)): no mean-field guide covers it alone."
    radius, width = 2.0, 0.3
    grid = np.linspace(0, radius + 8 * width, 8193)
    mass = grid * np.exp(-0.5 * ((grid - radius) / width) ** 2)
    cumulative = np.concatenate([[0], np.cumsum((mass[1:] + mass[:-1]) / 2)])
    ratio = radius / width  # integral of r exp(-(r-R)^2 / 2w^2) over r > 0, times 2 pi
    total = width**2 * np.exp(-(ratio**2) / 2) + radius * width * np.sqrt(2 * np.pi) * special.ndtr(ratio)
    second = np.sum(grid**2 * mass) / np.sum(mass)

    def sample(key, n):
        for_radius, for_angle = jax.random.split(key)
        r = jnp.interp(jax.random.uniform(for_radius, (n,)), cumulative / cumulative[-1], grid)
        angle = jax.random.uniform(for_angle, (n,), maxval=2 * jnp.pi)
        return r[:, None] * jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=1)

    def log_density(theta):
        square = jnp.sum(theta**2)
        r = jnp.sqrt(jnp.where(square > 0, square, 1e-12))  # the slope at the centre is 0, not NaN
        return -0.5 * ((r - radius) / width) ** 2 - np.log(2 * np.pi * total)

    return _target(log_density, sample, half=3.5, variance=second / 2)


@TARGETS.register("funnel", label="Funnel", reference="after Neal 2003", **PLANE)
@stacked
def funnel(dim):
    "v ~ N(0, 1.5^2), x | v ~ N(0, exp(v)): the scale of x changes with v."
    spread = 1.5

    def sample(key, n):
        v, noise = jax.random.normal(key, (2, n))
        return jnp.stack([jnp.exp(0.5 * spread * v) * noise, spread * v], axis=1)

    return _target(
        # norm.logpdf squares exp(v / 2), which is infinite in float32 beyond v = 88.
        lambda theta: (
            norm.logpdf(theta[1], 0, spread) + norm.logpdf(theta[0] * jnp.exp(-0.5 * theta[1])) - 0.5 * theta[1]
        ),
        sample,
        extent=(-7.0, 7.0, -5.0, 5.0),
        coordinates=("x", "v"),
        variance=[np.exp(0.5 * spread**2), spread**2],
    )


@TARGETS.register("student", label="Student-t product", reference="closed form", **PLANE)
@stacked
def student(dim):
    "Two independent Student-t coordinates with 5 degrees of freedom: heavy tails."
    freedom = 5.0
    return _target(
        lambda theta: jnp.sum(t.logpdf(theta, freedom)),
        lambda key, n: jax.random.t(key, freedom, (n, 2)),
        half=5.0,
        variance=freedom / (freedom - 2),
    )
