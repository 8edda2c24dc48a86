"""Two small problems for Bayesian networks: a regression with a gap, and five classes on a ring.

D'Angelo, Fortuin & Wenzel 2021 (On Stein variational neural network ensembles), app. D. All weights and biases are
N(0, prior_scale^2), and layers are not scaled by their width.
"""

from __future__ import annotations

from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

from stein_core.base.networks import mlp
from stein_core.base.noise import normal
from stein_core.contract.functions import Functions, Points, Rows
from stein_core.contract.knobs import Knob, Option, PointsKnob
from stein_core.contract.known import Start
from stein_core.contract.registry import TARGETS
from stein_core.contract.target import Target

WIDTHS, DEPTHS = range(1, 129), range(1, 4)
BLOBS = ((1.5, 2.5), (4.5, 6.0))  # of the regression's inputs
LINE = (0.0, 7.0)  # shown
GRID = np.linspace(*LINE, 141)
CLASSES, RADIUS = 5, 5.0  # of the ring
FAR = (11.0, 30.0)  # radii of points that belong to no class
HANDLES = (16, 48)  # padded numbers of points where functions repel
SEED = 42


@lru_cache(maxsize=1)
def gap_data() -> np.ndarray:
    """Return (90, 2): x and y = x sin(x) + N(0, 0.25^2) of the regression, 45 in each blob, by the published code.

    The paper prints N(0, 0.25) for the noise; in its code 0.25 is the standard deviation.
    """
    draw = np.random.RandomState(SEED)
    x = np.concatenate([draw.uniform(*blob, 45) for blob in BLOBS])
    return np.stack([x, x * np.sin(x) + 0.25 * draw.randn(90)], axis=1)


def ring_means() -> np.ndarray:
    """Return (5, 2) the means of the classes, on a circle of radius 5."""
    angle = np.pi / 2 + 2 * np.pi * np.arange(CLASSES) / CLASSES
    return RADIUS * np.stack([np.cos(angle), np.sin(angle)], axis=1)


def ring_data(test: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return x (200, 2) and y (200,), 40 points of unit variance for each class; 20 each for the test."""
    draw = np.random.RandomState(SEED)
    means, found = ring_means(), []
    for count in (40, 20):
        x = np.concatenate([mean + draw.randn(count, 2) for mean in means])
        found.append((x, np.repeat(np.arange(CLASSES), count)))
    return found[test]


def far_points(count: int = 200, seed: int = 0) -> np.ndarray:
    """Return (count, 2) points, uniform on the annulus of radii 11 to 30, that belong to no class."""
    draw = np.random.RandomState(seed)
    radius = np.sqrt(draw.uniform(FAR[0] ** 2, FAR[1] ** 2, count))
    angle = draw.uniform(0, 2 * np.pi, count)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def nngp(x, y, width: int, depth: int, prior_scale=1.0, xp=jnp):
    """Return the covariance (k, l) of outputs at x (k, i) and y (l, i) under the prior of a ReLU network.

    It is exact as the width tends to infinity, with the variance of each hidden layer times the present width: the
    layers are not scaled. Source: Cho & Saul 2009, the arc-cosine kernel of order 1.

    Args:
        x, y: inputs.
        width, depth: of the hidden layers.
        prior_scale: standard deviation of each weight and bias.
        xp: `jax.numpy` or `numpy`.
    """
    square = prior_scale**2
    xx, yy = (square * (xp.sum(a * a, axis=1) + 1) for a in (x, y))
    xy = square * (x @ y.T + 1)
    for _ in range(depth):
        size = xp.sqrt(xx[:, None] * yy[None, :])
        cosine = xp.clip(xy / size, -1.0, 1.0)
        angle = xp.arccos(cosine)
        arc = size * (xp.sqrt(xp.maximum(1 - cosine**2, 0.0)) + (np.pi - angle) * cosine) / (2 * np.pi)
        xy = square * (width * arc + 1)
        xx, yy = (square * (width * a / 2 + 1) for a in (xx, yy))
    return xy


def nngp_posterior(data, at, width: int, depth: int, prior_scale: float, noise: float):
    """Return mean (k,) and standard deviation (k,) of f at `at` under the NNGP prior and Gaussian noise, exactly.

    Args:
        data: (N, 2) pairs x, y.
        at: (k,) inputs.
        width, depth, prior_scale: see `nngp`.
        noise: known standard deviation of the observations.
    """
    data = np.asarray(data, float)
    at, x = np.asarray(at, float)[:, None], data[:, :1]
    between = lambda a, b: nngp(a, b, width, depth, prior_scale, np)  # noqa: E731
    root = np.linalg.cholesky(between(x, x) + noise**2 * np.eye(len(x)))
    across = np.linalg.solve(root, between(x, at))
    mean = across.T @ np.linalg.solve(root, data[:, 1])
    variance = np.diag(between(at, at)) - np.sum(across**2, axis=0)
    return mean, np.sqrt(np.maximum(variance, 0.0))


def handles(low, high, count, second=None) -> tuple[tuple[float, float], ...]:
    """Return `count` points from low to high on the axis, or a square grid of them in the plane."""
    line = np.linspace(low, high, count)
    if second is None:
        return tuple((round(float(x), 3), 0.0) for x in line)
    return tuple((round(float(x), 3), round(float(y), 3)) for y in line for x in line)


def _size(inputs, outputs, width, depth):
    return (inputs + 1) * width + (depth - 1) * (width + 1) * width + (width + 1) * outputs


OPTIONS = (
    Option("width", 50, WIDTHS[0], WIDTHS[-1], label="width", help="units of each hidden layer"),
    Option("depth", 2, DEPTHS[0], DEPTHS[-1], label="depth", help="number of hidden layers"),
    Option("batch_size", 64, 1, 512, label="mini-batch", help="rows of a step; all rows if there are no more"),
)
NOISE = Knob("noise", 1.0, 0.01, 5.0, "log", "noise sd", "known standard deviation of the observations")
PRIOR = Knob("prior_scale", 1.0, 0.05, 5.0, "log", "prior sd", "standard deviation of every weight under the prior")
ON_ROWS = Knob("on_rows", 1, 0, 1, "integer", "repel at the data too", "0: at the handles only")


def without_replacement(every: Rows, batch: int):
    """Return key -> Rows of a mini-batch, drawn without replacement from the rows of weight above 0; None -> all.

    Args:
        every: all rows.
        batch: rows of a mini-batch.
    """
    every = jax.tree.map(jnp.asarray, every)
    size = len(every.weights)

    def rows(key):
        if key is None or batch >= size:
            return every
        order = jax.random.uniform(key, (size,), jnp.float32) + (every.weights <= 0)
        chosen = jax.lax.top_k(-order, batch)[1]
        count = jnp.sum(every.weights > 0)
        few = jnp.minimum(batch, count)
        weights = jnp.where(every.weights[chosen] > 0, count / few, 0.0)
        return Rows(every.x[chosen], every.y[chosen], weights)

    return rows


def network_target(
    inputs, outputs, width, depth, *, log_likelihood, rows, batched, prior_scale, axes, points, extent, scale=None
) -> Target:
    """Return the Target of a network's weights.

    Args:
        inputs, outputs: of the network.
        width, depth: hidden layers.
        log_likelihood, rows, axes, points: see `Functions`.
        batched: whether a step takes a mini-batch.
        prior_scale: of every weight; may be traced.
        extent: of the stage.
        scale: (p,) spread of the start; None for 1.
    """
    network = mlp(inputs, outputs, width, depth)
    dim = network.size

    def log_prior(theta):
        return jnp.sum(norm.logpdf(theta, 0.0, prior_scale))

    def density(key):
        some = rows(key)
        return lambda theta: log_prior(theta) + log_likelihood(network.apply(theta, some.x), some)

    return Target(
        log_density=lambda theta: density(None)(theta),
        start=Start(np.zeros(dim), np.ones(dim) if scale is None else scale),
        extent=extent,
        coordinates=tuple(f"w{i}" for i in range(dim)),
        constrain=lambda theta: {"weights": theta},
        minibatch=(lambda key, joint: density(key)) if batched else None,
        functions=Functions(
            outputs=network.apply,
            log_likelihood=log_likelihood,
            log_prior=log_prior,
            rows=rows,
            prior_sample=lambda key, n: prior_scale * normal(key, (n,), dim),
            prior_covariance=lambda x, y: nngp(x, y, width, depth, prior_scale),
            axes=axes,
            points=points,
        ),
    )


def class_likelihood(outputs, rows: Rows):
    """Return the weighted sum of log softmax(outputs)[y] over the rows."""
    every = jax.nn.log_softmax(outputs, axis=1)
    return rows.weights @ jnp.take_along_axis(every, rows.y.astype(jnp.int32)[:, None], axis=1)[:, 0]


@TARGETS.register(
    "gap_regression",
    label="Regression with a gap, network",
    listed=False,  # page Function space has it
    reference="D'Angelo et al. 2021, app. D.1",
    options=OPTIONS,
    knobs=(
        NOISE,
        PRIOR,
        PointsKnob("data", tuple(map(tuple, gap_data().round(6).tolist())), label="data", help="points (x, y)"),
        PointsKnob("handles", handles(*LINE, 15), label="repulsion points", help="(x, 0) each", rows=HANDLES),
        ON_ROWS,
    ),
    dims=(_size(1, 1, 1, 1), _size(1, 1, WIDTHS[-1], DEPTHS[-1])),
    default_dim=_size(1, 1, 50, 2),
    dim_of=lambda width, depth, batch_size: _size(1, 1, width, depth),
    sampled=False,
)
def gap_regression(dim, *, width, depth, batch_size, noise, prior_scale, data, handles, on_rows):
    "A ReLU network on 90 points in two blobs; y = x sin x with noise 0.25, of which the likelihood assumes `noise`."
    every = Rows(data[:, :1], data[:, 1], data[:, 2])
    return network_target(
        1,
        1,
        width,
        depth,
        log_likelihood=lambda f, rows: rows.weights @ norm.logpdf(rows.y, f[:, 0], noise),
        rows=without_replacement(every, batch_size),
        batched=batch_size < len(data),
        prior_scale=prior_scale,
        axes=((*LINE, "x"),),
        points=lambda key: Points(handles[:, :1], handles[:, 2], on_rows),
        extent=(-3.0, 3.0, -3.0, 3.0),
    )


@TARGETS.register(
    "ring_classes",
    label="Five classes on a ring, network",
    listed=False,
    reference="D'Angelo et al. 2021, app. D.2",
    options=OPTIONS,
    knobs=(
        PRIOR,
        PointsKnob(
            "handles", handles(-15.0, 15.0, 4, True), label="repulsion points", help="(x1, x2) each", rows=HANDLES
        ),
        ON_ROWS,
    ),
    data=lambda **options: tuple(np.asarray(a, np.float32) for a in ring_data()),
    dims=(_size(2, CLASSES, 1, 1), _size(2, CLASSES, WIDTHS[-1], DEPTHS[-1])),
    default_dim=_size(2, CLASSES, 50, 2),
    dim_of=lambda width, depth, batch_size: _size(2, CLASSES, width, depth),
    sampled=False,
)
def ring_classes(dim, *, width, depth, batch_size, prior_scale, handles, on_rows, data):
    "A ReLU network on 200 points of five classes whose means lie on a circle of radius 5."
    x, y = (jnp.asarray(a, float) for a in data)
    return network_target(
        2,
        CLASSES,
        width,
        depth,
        log_likelihood=class_likelihood,
        rows=without_replacement(Rows(x, y, jnp.ones(len(x))), batch_size),
        batched=batch_size < len(x),
        prior_scale=prior_scale,
        axes=((-20.0, 20.0, "x₁"), (-20.0, 20.0, "x₂")),
        points=lambda key: Points(handles[:, :2], handles[:, 2], on_rows),
        extent=(-3.0, 3.0, -3.0, 3.0),
    )
