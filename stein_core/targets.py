"""Targets with closed forms. A target is a factory (dim) -> Target, registered with the range of dims it allows.

Every density here is normalised (`log_normalizer` = 0) and has an exact sampler; gradients are never written by hand.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm, t
from scipy import special

from stein_core.registry import TARGETS
from stein_core.types import Target

SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
PLANE = {"dims": (2, 2), "default_dim": 2}


def _target(log_density, sample, *, half=4.0, mean=0.0, variance=None, dim=2, **known) -> Target:
    known.setdefault("coordinates", tuple(f"θ{i + 1}".translate(SUBSCRIPTS) for i in range(dim)))
    known.setdefault("extent", (-half, half, -half, half))
    return Target(
        log_density=log_density,
        sample=sample,
        center=np.zeros(dim),
        scale=np.ones(dim),
        constrain=lambda theta: {"theta": theta},
        mean=np.broadcast_to(mean, (dim,)),
        variance=None if variance is None else np.broadcast_to(variance, (dim,)),
        log_normalizer=0.0,
        **known,
    )


@TARGETS.register("gaussian", label="Gaussian", reference="SMI paper, sec. 6.1", dims=(1, 1000), default_dim=2)
def gaussian(dim):
    "Standard normal in any dimension: where SVGD's variance has an exact law."
    return _target(
        lambda theta: jnp.sum(norm.logpdf(theta)),
        lambda key, n: jax.random.normal(key, (n, dim)),
        variance=1.0,
        dim=dim,
    )


@TARGETS.register("correlated", label="Correlated Gaussian", reference="closed form", **PLANE)
def correlated(dim):
    "Unit variances, correlation 0.8: diagonal guides cannot follow it alone."
    return _mixture([1.0], [[0.0, 0.0]], [[[1.0, 0.8], [0.8, 1.0]]])


@TARGETS.register("banana", label="Banana", reference="after Haario et al. 1999", **PLANE)
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
        standard = jnp.einsum("kij,kj->ki", inverse.astype(np.float32), theta - means.astype(np.float32))
        return jax.nn.logsumexp(constant.astype(np.float32) - 0.5 * jnp.sum(standard**2, axis=1))

    def sample(key, n):
        which, noise = jax.random.split(key)
        k = jax.random.choice(which, len(weights), (n,), p=jnp.asarray(weights))
        eps = jax.random.normal(noise, (n, 2))
        return jnp.asarray(means)[k] + jnp.einsum("nij,nj->ni", jnp.asarray(roots)[k], eps)

    mean = weights @ means
    variance = weights @ (np.diagonal(covariances, axis1=1, axis2=2) + means**2) - mean**2
    return _target(log_density, sample, half=float(np.abs(means).max() + 3.0), mean=mean, variance=variance)


@TARGETS.register("cross", label="X shape", reference="closed form", **PLANE)
def cross(dim):
    "Two crossing ridges, correlation +0.9 and -0.9."
    ridge = 1.5 * np.array([[1.0, 0.9], [0.9, 1.0]])
    return _mixture([0.5, 0.5], [[0, 0], [0, 0]], [ridge, ridge * [[1, -1], [-1, 1]]])


@TARGETS.register("two_modes", label="Two modes (1:2)", reference="Liu & Wang 2016, fig. 1", **PLANE)
def two_modes(dim):
    "1/3 N((-2, 0), I) + 2/3 N((2, 0), I): the first coordinate is the SVGD paper's example."
    return _mixture([1 / 3, 2 / 3], [[-2, 0], [2, 0]], [np.eye(2)] * 2)


@TARGETS.register("three_modes", label="Three modes", reference="closed form", **PLANE)
def three_modes(dim):
    "Three equal normals, sd 0.6, on a circle of radius 2.5: far enough apart to trap particles."
    angles = np.pi / 2 + np.arange(3) * 2 * np.pi / 3
    return _mixture([1 / 3] * 3, 2.5 * np.stack([np.cos(angles), np.sin(angles)], 1), [0.36 * np.eye(2)] * 3)


@TARGETS.register("ring", label="Ring", reference="closed form", **PLANE)
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
def funnel(dim):
    "v ~ N(0, 1.5^2), x | v ~ N(0, exp(v)): the scale of x changes with v."
    spread = 1.5

    def sample(key, n):
        v, noise = jax.random.normal(key, (2, n))
        return jnp.stack([jnp.exp(0.5 * spread * v) * noise, spread * v], axis=1)

    return _target(
        lambda theta: norm.logpdf(theta[1], 0, spread) + norm.logpdf(theta[0], 0, jnp.exp(0.5 * theta[1])),
        sample,
        extent=(-7.0, 7.0, -5.0, 5.0),
        coordinates=("x", "v"),
        variance=[np.exp(0.5 * spread**2), spread**2],
    )


@TARGETS.register("student", label="Student-t product", reference="closed form", **PLANE)
def student(dim):
    "Two independent Student-t coordinates with 5 degrees of freedom: heavy tails."
    freedom = 5.0
    return _target(
        lambda theta: jnp.sum(t.logpdf(theta, freedom)),
        lambda key, n: jax.random.t(key, freedom, (n, 2)),
        half=5.0,
        variance=freedom / (freedom - 2),
    )
