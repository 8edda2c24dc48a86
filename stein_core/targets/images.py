"""FashionMNIST and MNIST: networks that classify images, in mini-batches."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import softmax

from stein_core.contract.functions import Points, Rows
from stein_core.contract.knobs import Option
from stein_core.contract.registry import TARGETS
from stein_core.runs.outputs import outputs_at
from stein_core.targets.data import downloads
from stein_core.targets.small_networks import PRIOR, class_likelihood, network_target

SIZE, CLASSES = 784, 10
AT_ONCE = 2000  # images that are classified at once
BLOCK = 5000  # images of a block, when the likelihood of all is wanted
PARTS = {"train": "train", "test": "t10k"}
REPEL = 16  # images at which functions repel, drawn in each step


@lru_cache(maxsize=4)
def images(name: str, part: str = "train") -> tuple[np.ndarray, np.ndarray]:
    """Return x (N, 784) from 0 to 1 and y (N,) of a data set.

    Args:
        name: "fashion_mnist" or "mnist".
        part: "train", 60,000 images, or "test", 10,000.

    Raises:
        ValueError: the files are not there and cannot be downloaded.
    """
    x, y = downloads.images(name, PARTS[part])
    return x.astype(np.float32) / 255, y.astype(np.int32)


def scores(probabilities: np.ndarray, y: np.ndarray, far: np.ndarray) -> dict[str, float]:
    """Return the columns of the table, and the usual forms of those that the code has otherwise.

    Args:
        probabilities: (m, N, C) of test images, with their classes y (N,).
        far: (m, M, C) of images of no class.
    """
    from stein_core.base import metrics  # scikit-learn takes a second to import, and pandas comes with it

    entropies = [metrics.entropy(p, normalised=True) for p in (probabilities, far)]
    apart = [metrics.disagreement(p, as_coded=len(p) > 1) for p in (probabilities, far)]
    return {
        "auroc_entropy": metrics.auroc(*entropies),
        "auroc_disagreement": metrics.auroc(*apart),
        "accuracy": 100 * metrics.accuracy(probabilities, y),
        "separation": metrics.separation(*apart),
        "calibration_error": metrics.calibration_error(probabilities, y),
        "nll_as_coded": metrics.nll(probabilities, y, as_coded=True),
        "nll": metrics.nll(probabilities, y),
    }


def measures(spec, particles, knobs) -> dict[str, float]:
    """Return what a sweep on the images records of final particles; see `scores`."""
    name = spec.options["target.set"]
    (x, y), (far, _) = images(name, "test"), images("mnist" if name == "fashion_mnist" else "fashion_mnist", "test")

    def classify(x):
        parts = [outputs_at(spec, particles, knobs, x[i : i + AT_ONCE]) for i in range(0, len(x), AT_ONCE)]
        return softmax(np.concatenate(parts, axis=1), axis=-1)

    return scores(classify(x), y, classify(far))


def in_blocks(outputs, log_likelihood, rows):
    """Return theta -> log likelihood of all rows, block by block: their activations together are gigabytes.

    Args:
        outputs, log_likelihood: see `Functions`.
        rows: all Rows, a multiple of BLOCK or fewer.
    """
    count = max(1, len(rows.weights) // BLOCK)
    blocks = jax.tree.map(lambda a: a.reshape(count, -1, *a.shape[1:]), rows)

    def total(theta):
        one = jax.checkpoint(lambda sum, some: (sum + log_likelihood(outputs(theta, some.x), some), None))
        return jax.lax.scan(one, jnp.zeros(()), blocks)[0]

    return total


def _size(width, depth):
    return (SIZE + 1) * width + (depth - 1) * (width + 1) * width + (width + 1) * CLASSES


def start_scale(width: int, depth: int) -> np.ndarray:
    """Return (p,) the standard deviation of PyTorch's and equinox's start, 1 / sqrt(3 inputs) for each layer."""
    sizes = [SIZE, *[width] * depth, CLASSES]
    layers = [np.full((a + 1) * b, 1 / np.sqrt(3 * a)) for a, b in zip(sizes, sizes[1:])]
    return np.concatenate(layers)


@TARGETS.register(
    "images",
    label="Images, network",
    reference="D'Angelo et al. 2021, app. D.3",
    options=(
        Option("set", "fashion_mnist", choices=("fashion_mnist", "mnist"), label="images"),
        Option("width", 100, 1, 128, label="width", help="units of each hidden layer"),
        Option("depth", 3, 1, 3, label="depth", help="number of hidden layers"),
        Option("batch_size", 256, 1, 512, label="mini-batch", help="images of a step"),
    ),
    knobs=(PRIOR,),
    data=lambda set, **options: images(set),
    dims=(_size(1, 1), _size(128, 3)),
    default_dim=_size(100, 3),
    dim_of=lambda set, width, depth, batch_size: _size(width, depth),
    sampled=False,
    listed=False,
    measures=measures,
)
def image_classes(dim, *, set, width, depth, batch_size, prior_scale, data):
    """A ReLU network on 60,000 images of ten classes, in mini-batches drawn with replacement. Functions repel at 16
    images, drawn in each step. The start is small, as PyTorch's: at draws of the prior the outputs are in the
    thousands."""
    x, y = jnp.asarray(data[0], float), jnp.asarray(data[1])
    count = len(x)

    def rows(key):
        if key is None:
            return Rows(x, y, jnp.ones(count))
        chosen = jax.random.randint(key, (batch_size,), 0, count, jnp.int32)
        return Rows(x[chosen], y[chosen], jnp.full(batch_size, count / batch_size))

    def points(key):
        return Points(x[jax.random.randint(key, (REPEL,), 0, count, jnp.int32)], jnp.ones(REPEL), jnp.zeros(()))

    target = network_target(
        SIZE,
        CLASSES,
        width,
        depth,
        log_likelihood=class_likelihood,
        rows=rows,
        prior_scale=prior_scale,
        axes=(),
        points=points,
        batched=True,
        scale=start_scale(width, depth),
        extent=(-0.2, 0.2, -0.2, 0.2),
    )
    functions = target.functions
    whole = in_blocks(functions.outputs, functions.log_likelihood, rows(None))
    return replace(target, log_density=lambda theta: functions.log_prior(theta) + whole(theta))
