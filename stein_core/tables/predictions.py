"""Errors of predictions on test data."""

from __future__ import annotations

import jax
import numpy as np

AT_ONCE = 10  # networks whose outputs are computed at once


def normal_log_density(y: np.ndarray, mean: np.ndarray, precision: np.ndarray) -> np.ndarray:
    """Return log N(y; mean, 1 / precision), elementwise."""
    return 0.5 * (np.log(precision) - np.log(2 * np.pi) - precision * (y - mean) ** 2)


def log_mean_exp(values: np.ndarray, axis: int = 0) -> np.ndarray:
    """Return log mean exp along an axis without overflow."""
    most = values.max(axis=axis)
    return most + np.log(np.mean(np.exp(values - np.expand_dims(most, axis)), axis=axis))


def mixture_log_likelihood(y: np.ndarray, means: np.ndarray, precisions: np.ndarray) -> float:
    """Return the mean over the rows y (k,) of log mean_i N(y; means_i, 1 / precisions_i).

    Args:
        y: (k,).
        means: (m, k) of the members.
        precisions: (m,).
    """
    return float(np.mean(log_mean_exp(normal_log_density(y, means, precisions[:, None]))))


def rmse(y: np.ndarray, mean: np.ndarray) -> float:
    """Return the root of the mean squared difference over all entries; y is broadcast against mean."""
    return float(np.sqrt(np.mean((mean - y) ** 2)))


def outputs_of(apply, weights: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the outputs (s, k, c) of a network for each of the weights (s, p). It compiles no program of its own."""
    many = jax.vmap(lambda w: apply(w, x))
    pieces = np.array_split(weights, -(-len(weights) // AT_ONCE))
    return np.concatenate([np.asarray(many(piece)) for piece in pieces])


def classification(p: np.ndarray, labels: np.ndarray, bins: int = 100, weighted: bool = False) -> dict[str, float]:
    """Return six numbers on one table of probabilities.

    Args:
        p: (k, c) probabilities.
        labels: (k,) true classes.
        bins: of equal width for the calibration errors.
        weighted: whether the expected calibration error weighs each bin by its share; else all bins that are not
            empty count alike, as in the code of the SMI paper.

    Returns:
        conf: mean of the largest probability. acc: accuracy. nll: mean of -log p(label). log mean: -log of the mean
        p(label). brier: mean over rows of the sum over classes. ece, mce: mean and largest gap of accuracy and
        confidence over the bins.
    """
    own, confidence = p[np.arange(len(labels)), labels], p.max(axis=1)
    right = p.argmax(axis=1) == labels
    bin_of = np.minimum((confidence * bins).astype(int), bins - 1)
    counts = np.bincount(bin_of, minlength=bins)
    full = counts > 0
    gaps = np.abs(np.bincount(bin_of, right - confidence, bins)[full]) / counts[full]
    shares = counts[full] / len(labels) if weighted else np.full(full.sum(), 1.0 / full.sum())
    return {
        "conf": float(confidence.mean()),
        "acc": float(right.mean()),
        "nll": float(-np.mean(np.log(np.maximum(own, 1e-12)))),
        "log mean": float(-np.log(np.mean(own))),
        "brier": float(np.mean(np.sum((p - np.eye(p.shape[1])[labels]) ** 2, axis=1))),
        "ece": float(shares @ gaps),
        "mce": float(gaps.max()),
    }
