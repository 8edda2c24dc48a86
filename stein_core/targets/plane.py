"""Densities in the plane on which the semi-implicit papers compare. Names say where they differ from ours of a like
shape."""

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm, t

from stein_core.base.noise import normal
from stein_core.contract.knobs import Knob
from stein_core.contract.known import Start, Truth
from stein_core.contract.registry import TARGETS
from stein_core.contract.target import Target
from stein_core.targets.closed_forms import _mixture, _target

PLANE = {"dims": (2, 2), "default_dim": 2}
PAPER = "KSIVI, table 1"


@TARGETS.register("ksivi_banana", label="Banana of KSIVI", reference=PAPER, **PLANE)
def ksivi_banana(dim):
    "(x, x^2 + y + 1) is normal with unit variances and correlation 0.9: a sharp bend with a long lower tail."
    covariance = np.array([[1.0, 0.9], [0.9, 1.0]])
    root, inverse = np.linalg.cholesky(covariance), np.linalg.inv(covariance)
    constant = -0.5 * np.log(np.linalg.det(covariance)) - np.log(2 * np.pi)

    def sample(key, n):
        v = normal(key, (n,), 2) @ jnp.asarray(root.T, float)
        return jnp.stack([v[:, 0], v[:, 1] - v[:, 0] ** 2 - 1], axis=1)

    def log_density(theta):
        v = jnp.stack([theta[0], theta[0] ** 2 + theta[1] + 1])
        return constant - 0.5 * v @ jnp.asarray(inverse, float) @ v

    # Var(y) = Var(v2) + Var(v1^2) = 1 + 2, and Cov(x, y) = Cov(v1, v2) - E v1^3 = 0.9.
    known = {"variance": np.array([1.0, 3.0]), "covariance": np.array([[1.0, 0.9], [0.9, 3.0]])}
    return _target(log_density, sample, extent=(-3.5, 3.5, -8.0, 2.0), mean=np.array([0.0, -2.0]), **known)


@TARGETS.register("multimodal", label="Two modes (1:1)", reference=PAPER, **PLANE)
def multimodal(dim):
    "1/2 N((-2, 0), I) + 1/2 N((2, 0), I)."
    return _mixture([0.5, 0.5], [[-2, 0], [2, 0]], [np.eye(2)] * 2)


@TARGETS.register("x_shaped", label="X shape of KSIVI", reference=PAPER, **PLANE)
def x_shaped(dim):
    "Two crossing ridges with variance 2 and covariance +1.8 and -1.8."
    return _mixture([0.5, 0.5], [[0, 0], [0, 0]], [[[2, 1.8], [1.8, 2]], [[2, -1.8], [-1.8, 2]]])


MIX = np.array([[0.28216196, -0.11803875], [-0.11803875, 0.29587176]])  # RandomState(50) of KSIVI's code


@TARGETS.register("student2", label="Student-t, 2 degrees", reference="KSIVI, sec. 6.1 and its code", **PLANE)
def student2(dim):
    "x = A t with two independent Student coordinates of 2 degrees of freedom, whose variance is infinite."
    inverse = np.linalg.inv(MIX)
    constant = np.log(np.linalg.det(inverse))
    return _target(
        lambda theta: jnp.sum(t.logpdf(jnp.asarray(inverse, float) @ theta, 2.0)) + constant,
        lambda key, n: jax.random.t(key, 2.0, (n, 2)) @ jnp.asarray(MIX.T, float),
        half=4.0,
    )


@TARGETS.register(
    "eight_gaussians", label="Eight Gaussians", reference="KSIVI, sec. 7.2; our radius and width", **PLANE
)
def eight_gaussians(dim):
    "Eight equal normals, sd 0.5, on a circle of radius 4. The paper's means are not known to us."
    angles = np.arange(8) * np.pi / 4
    return _mixture([1 / 8] * 8, 4 * np.stack([np.cos(angles), np.sin(angles)], 1), [0.25 * np.eye(2)] * 8)


UNBALANCED = (
    Knob("weight", 0.9, 0.02, 0.98, label="mass on the right", help="the true mass of the right-hand mode"),
    Knob("apart", 4.0, 0.0, 8.0, label="distance of the modes", help="between the two centres; both have sd 0.5"),
)


@TARGETS.register("unbalanced", label="Unbalanced pair", reference="closed form", knobs=UNBALANCED, **PLANE)
def unbalanced(dim, *, weight, apart):
    "Two normals of sd 0.5 on the first axis. Weight and distance are knobs: far modes hide the weight from scores."
    sd, half = 0.5, 0.5 * apart

    def log_density(theta):
        across = norm.logpdf(theta[0], jnp.stack([half, -half]), sd)
        sides = across + jnp.log(jnp.stack([weight, 1.0 - weight]))
        return jnp.logaddexp(sides[0], sides[1]) + norm.logpdf(theta[1], 0.0, sd)

    def sample(key, n):
        for_side, noise = jax.random.split(key)
        side = jnp.where(jax.random.uniform(for_side, (n,)) < weight, half, -half)
        return sd * normal(noise, (n,), 2) + side[:, None] * jnp.eye(1, 2)

    mean = (2.0 * weight - 1.0) * half
    return Target(
        log_density=log_density,
        start=Start(np.zeros(2), np.ones(2)),
        extent=(-4.5, 4.5, -4.5, 4.5),
        coordinates=("θ₁", "θ₂"),
        constrain=lambda theta: {"theta": theta},
        truth=Truth(
            sample=sample,
            mean=mean * jnp.eye(1, 2)[0],
            variance=sd**2 + (half**2 - mean**2) * jnp.eye(1, 2)[0],
            log_normalizer=0.0,
            mode_centers=half * jnp.asarray([[1.0, 0.0], [-1.0, 0.0]]),
        ),
    )
