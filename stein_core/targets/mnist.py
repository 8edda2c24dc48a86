"""A Bayesian network on MNIST: the model of the SMI paper."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

from stein_core.base.networks import mlp
from stein_core.contract.knobs import Option
from stein_core.contract.known import Start
from stein_core.contract.registry import TARGETS
from stein_core.targets.data import downloads
from stein_core.targets.own.rows import BATCH, target_of_rows

ROOM = 128  # rows that a mini-batch has room for: the paper takes as many
PIXELS, CLASSES = 784, 10
OPTIONS = (
    Option("width", 100, 1, 200, label="units", help="hidden units of each layer"),
    Option("layers", 1, 1, 2, label="layers", help="hidden layers"),
)


def network_of(width: int, layers: int):
    """Return the network of these options: pixels to ten logits."""
    return mlp(PIXELS, CLASSES, width, layers)


def data_of(**options):
    """Return the training images, bytes, and their labels."""
    images, labels = downloads.images("mnist", "train")
    return images, np.int32(labels)


@TARGETS.register(
    "mnist",
    label="MNIST",
    reference="SMI paper, app. C.3",
    dims=(1, 200_000),
    default_dim=79_510,
    dim_of=lambda **options: network_of(**options).size,
    options=OPTIONS,
    knobs=(replace(BATCH, default=ROOM, high=ROOM),),
    data=data_of,
    sampled=False,
    listed=False,
)
def mnist(dim, *, data, batch, width, layers):
    "A ReLU network of one or two hidden layers on 60,000 digits; weights and biases N(0, 1), start U[-0.1, 0.1]."
    network = network_of(width, layers)

    def log_likelihood(theta, rows):
        images, labels = rows
        logits = jax.nn.log_softmax(network.apply(theta, images.astype(float) / 255.0))
        return jnp.take_along_axis(logits, labels[:, None], axis=1)[:, 0]

    def start(key, n):
        keys = jax.vmap(jax.random.fold_in, (None, 0))(key, jnp.arange(n))
        return jax.vmap(lambda k: jax.random.uniform(k, (dim,), jnp.float32, -0.1, 0.1))(keys)

    return target_of_rows(
        lambda theta: jnp.sum(norm.logpdf(theta)),
        log_likelihood,
        data,
        batch=batch,
        most=ROOM,
        start=Start(np.zeros(dim), np.full(dim, 0.1), start),
        extent=(-1.0, 1.0, -1.0, 1.0),
        coordinates=tuple(f"weight {i}" for i in range(dim)),
        constrain=lambda theta: {"weights": theta},
    )
