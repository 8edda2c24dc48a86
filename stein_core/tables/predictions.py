"""Errors of predictions on test data."""

from __future__ import annotations

import jax
import numpy as np


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


def outputs_of(apply, weights: np.ndarray, x: np.ndarray) -> jax.Array:
    """Return the first output (s, k) of a network for each of the weights (s, p), one after the other."""
    return jax.lax.map(lambda w: apply(w, x)[:, 0], weights)
