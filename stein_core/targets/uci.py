"""Bayesian networks on UCI regressions: the two models of the SVGD paper and of the SMI paper."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

from stein_core.base.networks import mlp
from stein_core.contract.knobs import Knob, Option
from stein_core.contract.known import Start
from stein_core.contract.registry import TARGETS
from stein_core.targets.data import downloads
from stein_core.targets.own.rows import BATCH, target_of_rows

ROOM = 128  # rows that a mini-batch has room for: both papers take 100
RATE = 0.1  # of the Gamma(1, rate) priors of both models
SPLITS = ("standard", "gap10")
MODELS = ("svgd", "smi")
OPTIONS = (
    Option("dataset", "boston", choices=tuple(downloads.UCI), label="data", help="a UCI regression"),
    Option("splits", "standard", choices=SPLITS, label="splits", help="standard: 90 and 10 %; gap10: one a column"),
    Option("model", "svgd", choices=MODELS, label="model", help="the priors and units of which paper"),
    Option("width", 50, 1, 200, label="units", help="hidden units of each layer"),
    Option("layers", 1, 1, 2, label="layers", help="hidden layers"),
)
SPLIT = Knob("split", 0, 0, 19, "integer", "split", "which of the splits into training and test data")


class Splits(NamedTuple):
    """All splits of a set. Rows are numbers of rows of x and y.

    Args:
        x: (N, D), y: (N,) raw units.
        train: (S, n) rows that a run sees; dev: (S, k) training rows kept aside; test: (S, t) rows.
        mean, sd: (S, D) of the inputs, shift, unit: (S,) of the outputs, by which a model standardises.
    """

    x: np.ndarray
    y: np.ndarray
    train: np.ndarray
    dev: np.ndarray
    test: np.ndarray
    mean: np.ndarray
    sd: np.ndarray
    shift: np.ndarray
    unit: np.ndarray

    def part(self, split: int, rows: str) -> tuple[np.ndarray, np.ndarray]:
        """Return standardised inputs and raw outputs of "train", "dev" or "test"."""
        chosen = getattr(self, rows)[split]
        return (self.x[chosen] - self.mean[split]) / self.sd[split], self.y[chosen]


@lru_cache(maxsize=32)
def splits_of(dataset: str, splits: str, model: str) -> Splits:
    """Return all splits of a set as a model sees them.

    The SVGD paper's code keeps the last tenth of the training rows, at most 500, aside, and standardises the outputs.
    The SMI paper has the outputs in raw units; its `naval` has kMc among the inputs and kMt as the output.
    """
    x, y, extra = downloads.uci(dataset)
    if model == "smi" and dataset == "naval":
        x, y = np.column_stack([x, y]), extra[:, 0]
    train, test = downloads.standard_splits(dataset) if splits == "standard" else downloads.gap_splits(x)
    kept = min(round(0.1 * train.shape[1]), 500) if model == "svgd" else 0
    train, dev = train[:, : train.shape[1] - kept], train[:, train.shape[1] - kept :]
    mean, sd = x[train].mean(axis=1), x[train].std(axis=1)
    raw = np.zeros(len(train)), np.ones(len(train))
    shift, unit = (y[train].mean(axis=1), y[train].std(axis=1)) if model == "svgd" else raw
    return Splits(x, y, train, dev, test, mean, np.where(sd > 1e-8, sd, 1.0), shift, unit)


def inputs_of(dataset: str, model: str) -> int:
    """Return the number of inputs, without reading the data."""
    columns = {"boston": 13, "naval": 16, "power": 4, "protein": 9, "wine": 11, "yacht": 6}
    return columns.get(dataset, 8) + (model == "smi" and dataset == "naval")


def network_of(dataset, model, width, layers, **_):
    """Return the network of these options."""
    return mlp(inputs_of(dataset, model), 1, width, layers)


def dim_of(**options) -> int:
    """Return the dimension of theta: the weights, and one precision or two."""
    return network_of(**options).size + (2 if options["model"] == "svgd" else 1)


def data_of(dataset, splits, model, **_):
    """Return what a program reads of the data, in float32."""
    known = splits_of(dataset, splits, model)
    real = {name: np.float32(getattr(known, name)) for name in ("x", "y", "mean", "sd", "shift", "unit")}
    return {**real, "train": np.int32(known.train)}


def scales(inputs: int, width: int, layers: int) -> np.ndarray:
    """Return the sd of each weight where the SVGD paper's code starts: 1 / sqrt(inputs + 1), and 0 for biases."""
    sizes = [inputs, *[width] * layers, 1]
    parts = [
        part for a, b in zip(sizes, sizes[1:]) for part in (np.full(a * b, 1 / np.sqrt(a + 1)), np.zeros(b))
    ]  # fmt: skip
    return np.concatenate(parts)


@TARGETS.register(
    "uci",
    label="UCI regression",
    reference="Liu & Wang 2016, sec. 5; SMI paper, app. C.4",
    dims=(1, 100_000),
    default_dim=753,
    dim_of=dim_of,
    options=OPTIONS,
    knobs=(SPLIT, replace(BATCH, high=ROOM)),
    data=data_of,
    sampled=False,
    listed=False,
)
def uci(dim, *, data, split, batch, dataset, splits, model, width, layers):
    """A network with an inferred noise on a UCI regression. Model `svgd`: y standardised, noise precision and weight
    precision Gamma(1, rate 0.1) on the log scale, weights N(0, 1 / weight precision). Model `smi`: y in raw units,
    weights N(0, 1), noise precision Gamma(1, rate 0.1) through softplus."""
    network, own = network_of(dataset, model, width, layers), model == "svgd"
    count = data["train"].shape[0]
    s = jnp.clip(jnp.asarray(split).astype(jnp.int32), 0, count - 1)
    rows = data["train"][s]
    x = (data["x"][rows] - data["mean"][s]) / data["sd"][s]
    y = (data["y"][rows] - data["shift"][s]) / data["unit"][s]
    p = network.size

    def gamma(u):
        """log Gamma(1, rate) of a precision without the Jacobian, and log Jacobian, of its unconstrained u."""
        precision, jacobian = (jnp.exp(u), u) if own else (jax.nn.softplus(u), jax.nn.log_sigmoid(u))
        return np.log(RATE) - RATE * precision, jacobian

    def log_joint_prior(theta):
        sd = jnp.exp(-0.5 * theta[-1]) if own else 1.0
        return jnp.sum(norm.logpdf(theta[:p], 0.0, sd)) + sum(gamma(u)[0] for u in theta[p:])

    def log_prior(theta):
        return log_joint_prior(theta) + sum(gamma(u)[1] for u in theta[p:])

    def log_likelihood(theta, rows):
        inputs, outputs = rows
        precision = jnp.exp(theta[p]) if own else jax.nn.softplus(theta[p])
        residual = outputs - network.apply(theta[:p], inputs)[:, 0]
        return 0.5 * (jnp.log(precision) - np.log(2 * np.pi)) - 0.5 * precision * residual**2

    def start_svgd(key, n):
        keys = jax.vmap(lambda i: jax.random.split(jax.random.fold_in(key, i)))(jnp.arange(n))
        spread = jnp.asarray(scales(inputs_of(dataset, model), width, layers), float)
        weights = spread * jax.vmap(lambda k: jax.random.normal(k, (p,), jnp.float32))(keys[:, 0])
        # The code draws Gamma(1, scale 0.1) where its prior has rate 0.1.
        weight_precision = jax.vmap(lambda k: jnp.log(RATE * jax.random.gamma(k, 1.0, (), jnp.float32)))(keys[:, 1])
        few = slice(0, min(1000, len(rows)))  # the rows of a split have a random order
        noise = jax.vmap(lambda w: jnp.mean((network.apply(w, x[few])[:, 0] - y[few]) ** 2))(weights)
        return jnp.column_stack([weights, -jnp.log(noise), weight_precision])

    def start_smi(key, n):
        keys = jax.vmap(jax.random.fold_in, (None, 0))(key, jnp.arange(n))
        return jax.vmap(lambda k: jax.random.uniform(k, (dim,), jnp.float32, -0.1, 0.1))(keys)

    names = ("noise", "weights") if own else ("noise",)
    return target_of_rows(
        log_prior,
        log_likelihood,
        (x, y),
        batch=batch,
        most=ROOM,
        log_joint_prior=log_joint_prior,
        start=Start(np.zeros(dim), np.full(dim, 0.1), start_svgd if own else start_smi),
        extent=(-1.0, 1.0, -1.0, 1.0),
        coordinates=(*(f"weight {i}" for i in range(p)), *(f"precision of the {name}" for name in names)),
        constrain=lambda theta: {
            "weights": theta[..., :p],
            **{f"precision_{n}": (jnp.exp if own else jax.nn.softplus)(theta[..., p + i]) for i, n in enumerate(names)},
        },
    )
