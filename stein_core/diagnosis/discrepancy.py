"""The kernel Stein discrepancy of draws, and how likely exact draws have a larger one."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

RESAMPLES = 500


def stein_matrix(x: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return the Stein kernel of all pairs of draws, with the kernel k = (1 + |x - y|^2)^(-1/2).

    u(x, y) = <s(x), s(y)> k + <s(x), grad_y k> + <s(y), grad_x k> + tr(grad_x grad_y k). Source: Gorham & Mackey 2017.

    Args:
        x, scores: (n, d) draws and gradients of the log density.

    Returns:
        (n, n), in units of 1 / x^2.
    """
    square = cdist(x, x, "sqeuclidean")
    base = 1.0 + square
    k = base**-0.5
    cross = scores @ x.T
    along = np.diagonal(cross)[:, None] - cross
    return k * (scores @ scores.T + (along + along.T) / base + (x.shape[1] - 3.0 * square / base) / base)


def discrepancy(x: np.ndarray, scores: np.ndarray, seed: int = 0) -> tuple[float, float]:
    """Return the kernel Stein discrepancy (V-statistic), and its p-value if the draws are independent.

    The p-value is the share of wild bootstrap sums, with signs drawn anew, that are as large: Chwialkowski et al. 2016.

    Args:
        x, scores: (n, d) draws and gradients of the log density.
        seed: of the signs.

    Returns:
        The discrepancy and its p-value.
    """
    u = stein_matrix(x, scores)
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], (RESAMPLES, len(x)))
    value, others = u.mean(), np.einsum("bi,ij,bj->b", signs, u, signs, optimize=True) / len(x) ** 2
    return float(np.sqrt(max(value, 0.0))), float((1 + np.sum(others >= value)) / (1 + RESAMPLES))
