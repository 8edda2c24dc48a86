"""Errors of predictions on test data."""

from __future__ import annotations

import jax
import numpy as np
from scipy.special import logsumexp
from scipy.stats import entropy

from stein_core.base.metrics import binned

AT_ONCE = 10  # networks whose outputs are computed at once


def normal_log_density(y: np.ndarray, mean: np.ndarray, precision: np.ndarray) -> np.ndarray:
    """Return log N(y; mean, 1 / precision), elementwise."""
    return 0.5 * (np.log(precision) - np.log(2 * np.pi) - precision * (y - mean) ** 2)


def mixture_log_likelihood(y: np.ndarray, means: np.ndarray, precisions: np.ndarray) -> float:
    """Return the mean over the rows y (k,) of log mean_i N(y; means_i, 1 / precisions_i).

    Args:
        y: (k,).
        means: (m, k) of the members.
        precisions: (m,).
    """
    return float(np.mean(logsumexp(normal_log_density(y, means, precisions[:, None]), axis=0)) - np.log(len(means)))


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
            empty count alike.

    Returns:
        conf: mean of the largest probability. acc: accuracy. nll: mean of -log p(label). brier: mean over rows of the
        sum over classes. ece, mce: mean and largest gap of accuracy and confidence over the bins.
    """
    confidence, right, bin_of = binned(p, labels, bins)
    counts = np.bincount(bin_of, minlength=bins)
    full = counts > 0
    gaps = np.abs(np.bincount(bin_of, right - confidence, bins)[full]) / counts[full]
    shares = counts[full] / len(labels) if weighted else np.full(full.sum(), 1.0 / full.sum())
    return {
        "conf": float(confidence.mean()),
        "acc": float(right.mean()),
        "nll": float(-np.mean(np.log(np.maximum(p[np.arange(len(labels)), labels], 1e-12)))),
        "brier": float(np.mean(np.sum((p - np.eye(p.shape[1])[labels]) ** 2, axis=1))),
        "ece": float(shares @ gaps),
        "mce": float(gaps.max()),
    }


def classification_as_coded(p: np.ndarray, labels: np.ndarray, bins: int = 100) -> dict[str, float]:
    """Return the numbers that the code of the SMI paper has under these names; its Brier score is the usual one.

    It draws a label from each prediction. Accuracy compares that label with the true one, confidence is its
    probability, and NLL minus the log of that: here their means over all labels that may be drawn. The calibration
    errors are over all bins. By a slip of one index, the first of a run of empty bins has the gap of the next row, and
    that row is missing in its own bin.

    Args:
        p: (k, c) probabilities.
        labels: (k,) true classes.
        bins: of equal width for the calibration errors.
    """
    confidence, right, bin_of = binned(p, labels, bins)
    order = np.argsort(confidence, kind="stable")
    counts = np.bincount(bin_of, minlength=bins)
    ends = np.cumsum(counts) - (counts > 0)  # the slip: an empty bin ends at the row after it
    sums = np.cumsum((right - confidence)[order])[np.minimum(ends, len(labels) - 1)]
    gaps = np.abs(np.diff(sums, prepend=0.0)) / np.maximum(counts, 1)
    return {
        "conf as coded": float(np.mean(np.sum(p**2, axis=1))),
        "acc as coded": float(np.mean(p[np.arange(len(labels)), labels])),
        "nll as coded": float(np.mean(entropy(p, axis=1))),
        "ece as coded": float(gaps.mean()),
        "mce as coded": float(gaps.max()),
    }
