"""The 1-D wave: a Bayesian neural network on data with a gap, as a NumPyro model and a Target.

The network has two hidden tanh layers of width h. All weights are N(0, prior_scale^2), and the noise is known. Without
the second hidden bias there are h^2 + 3h + 1 weights, the counts of the SMI paper's appendix C.2 (41 and 10,301). With
it there are h^2 + 4h + 1, those of the public code (46 and 10,401).
"""

from functools import lru_cache, reduce
from operator import add

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.scipy.stats import norm
from numpyro import handlers

from stein_core.base.bands import band, lppd
from stein_core.base.noise import normal
from stein_core.contract.functions import Functions, Rows
from stein_core.contract.knobs import Knob, Option, PointsKnob, precision
from stein_core.contract.known import Start
from stein_core.contract.registry import TARGETS
from stein_core.contract.target import Target
from stein_core.runs.outputs import function_values
from stein_core.targets.data.datasets import WAVE_CLUSTERS, WAVE_REGIONS, wave_region, wave_training
from stein_core.targets.own.numpyro_models import numpyro_density

WIDTHS = range(1, 101)
NARROW = 10  # up to this width a network is written out unit by unit
GRID = np.linspace(-2, 2, 201)  # where bands are drawn and measured
DRAWS = 400  # of each guide, where a mixture is evaluated
KNOBS = (
    Knob("noise", 0.1, 0.01, 2.0, "log", "noise sd", "known standard deviation of the observations"),
    Knob("prior_scale", 1.0, 0.05, 5.0, "log", "prior sd", "standard deviation of every weight under the prior"),
    PointsKnob("data", tuple(map(tuple, wave_training().T.round(6).tolist())), label="data", help="points (x, y)"),
)


def network(weights: dict, x):
    """Return f(x) for x (k,): tanh(tanh(x w1 + b1) w2 + b2) w3 + b3; b2 may be missing.

    A narrow network is written out unit by unit: XLA runs many small matmuls slower than the sums they stand for.
    """
    w1, b1, w2, b2, w3 = (weights.get(name) for name in ("w1", "b1", "w2", "b2", "w3"))
    if len(w1) > NARROW:
        hidden = jnp.tanh(jnp.tanh(x[:, None] * w1 + b1) @ w2 + (0.0 if b2 is None else b2))
        return hidden @ w3 + weights["b3"]
    first = [jnp.tanh(x * w + b) for w, b in zip(w1, b1)]
    second = [jnp.tanh(_dot(w2[:, i], first) + (0.0 if b2 is None else b2[i])) for i in range(len(w3))]
    return _dot(w3, second) + weights["b3"]


def _dot(weights, units):
    return reduce(add, (w * unit for w, unit in zip(weights, units)))


def wave_model(data, noise, prior_scale, shapes):
    """The NumPyro model.

    Args:
        data: (N, 3) rows of x, y and 1 for a point or 0 for a spare row.
        noise, prior_scale: standard deviations.
        shapes: name -> shape of each weight.
    """
    weights = {
        name: numpyro.sample(name, dist.Normal(0.0, prior_scale).expand(shape).to_event(len(shape)))
        for name, shape in shapes.items()
    }
    with handlers.mask(mask=data[:, 2] > 0):
        numpyro.sample("y", dist.Normal(network(weights, data[:, 0]), noise), obs=data[:, 1])


def shapes_of(width: int, second_bias: bool) -> dict[str, tuple]:
    """Return the shapes of the weights in the order in which they stand in theta (alphabetical)."""
    shapes = {"b1": (width,), "b2": (width,), "b3": (), "w1": (width,), "w2": (width, width), "w3": (width,)}
    return {name: shape for name, shape in shapes.items() if second_bias or name != "b2"}


@lru_cache(maxsize=1024)
def dim_of(width: int, second_bias: bool = False) -> int:
    """Return the number of weights: h^2 + 3h + 1, and h more with the second bias."""
    return sum(int(np.prod(shape)) for shape in shapes_of(width, second_bias).values())


@lru_cache(maxsize=1024)
def width_of(dim: int, second_bias: bool = False) -> int:
    """Return the width that has `dim` weights.

    Raises:
        ValueError: no width has this number; the message names the nearest ones.
    """
    counts = {dim_of(width, second_bias): width for width in WIDTHS}
    if dim not in counts:
        near = sorted(counts, key=lambda count: abs(count - dim))[:2]
        raise ValueError(
            f"dim = {dim} is no number of weights of this network; nearest: "
            + " and ".join(f"{count} (width {counts[count]})" for count in sorted(near))
            + "."
        )
    return counts[dim]


@lru_cache(maxsize=16)
def _density(width, second_bias, rows, real):
    shapes = shapes_of(width, second_bias)
    example = (np.zeros((rows, 3), real), real.type(1), real.type(1))
    return numpyro_density(lambda data, noise, scale: wave_model(data, noise, scale, shapes), example)


def _wave(dim, width, second_bias, noise, prior_scale, data) -> Target:
    density = _density(width, second_bias, data.shape[0], precision())
    shapes = shapes_of(width, second_bias)
    splits = np.cumsum([int(np.prod(shape)) for shape in shapes.values()])[:-1]

    def constrain(theta):
        parts = jnp.split(theta, splits, axis=-1)
        return {name: part.reshape(*theta.shape[:-1], *shape) for part, (name, shape) in zip(parts, shapes.items())}

    return Target(
        log_density=lambda theta: density(theta, data, noise, prior_scale),
        start=Start(np.zeros(dim), np.full(dim, 0.1)),  # small weights: training starts there, far from the posterior
        extent=(-3.0, 3.0, -3.0, 3.0),
        coordinates=tuple(
            f"{name}{list(i) if i else ''}" for name, shape in shapes.items() for i in np.ndindex(*shape)
        ),
        constrain=constrain,
        functions=Functions(
            outputs=lambda theta, x: network(constrain(theta), x)[:, None],
            log_likelihood=lambda f, rows: rows.weights @ norm.logpdf(rows.y, f[:, 0], noise),
            log_prior=lambda theta: jnp.sum(norm.logpdf(theta, 0.0, prior_scale)),
            rows=lambda key: Rows(data[:, 0], data[:, 1], data[:, 2]),
            prior_sample=lambda key, n: prior_scale * normal(key, (n,), dim),
            axes=((-2.0, 2.0, "x"),),
        ),
    )


def measures(spec, particles, knobs) -> dict[str, float]:
    """Return what a sweep on the wave records of final particles.

    These are the log predictive density of the three regions, and the mean width of the 90 % band of f inside and
    between the clusters.
    """
    regions = [wave_region(region) for region in WAVE_REGIONS]
    x = np.concatenate([GRID, *(points[0] for points in regions)])
    values = function_values(spec, particles, knobs, x, draws=DRAWS)
    on_grid, *at_regions = np.split(
        values, np.cumsum([len(GRID), *(points.shape[1] for points in regions)])[:-1], axis=1
    )
    noise = knobs.get("target.noise", KNOBS[0].default)
    found = band(on_grid, 0.9)
    return {
        **{f"lppd_{r.lower()}": lppd(v, p[1], noise) for r, v, p in zip(WAVE_REGIONS, at_regions, regions)},
        "width_inside": float(np.mean([found.width(GRID, cluster) for cluster in WAVE_CLUSTERS])),
        "width_between": found.width(GRID, (WAVE_CLUSTERS[0][1], WAVE_CLUSTERS[1][0])),
    }


OPTIONS = (
    Option("width", 5, WIDTHS[0], WIDTHS[-1], label="width", help="units of each hidden layer"),
    Option(
        "second_bias",
        "no",
        choices=("no", "yes"),
        label="bias in the second layer",
        help="yes: as in the public code, h more weights",
    ),
)


def _has_bias(second_bias: str) -> bool:
    return second_bias == "yes"


@TARGETS.register(
    "wave",
    label="1-D wave, Bayesian network",
    reference="SMI paper, app. C.2",
    knobs=KNOBS,
    options=OPTIONS,
    former={"wave_bias": {"second_bias": "yes"}},
    default_dim=dim_of(5),
    dims=(dim_of(WIDTHS[0]), dim_of(WIDTHS[-1], True)),
    dim_of=lambda width, second_bias: dim_of(width, _has_bias(second_bias)),
    options_of=lambda dim, width=5, second_bias="no": {"width": width_of(dim, _has_bias(second_bias))},
    measures=measures,
    sampled=False,
)
def wave(dim, *, width, second_bias, noise, prior_scale, data):
    "Two tanh layers of width h, h^2 + 3h + 1 weights (41 for h = 5)."
    return _wave(dim, width, _has_bias(second_bias), noise, prior_scale, data)
