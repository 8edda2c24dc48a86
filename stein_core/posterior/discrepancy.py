"""The kernel Stein discrepancy of draws, and how likely exact draws have a larger one."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from stein_core.base.distances import stein_matrix

RESAMPLES = 500


def gram_of(x: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return the Stein kernel (n, n) of all pairs of draws x (n, d), see `stein_matrix`."""
    return stein_matrix(x, scores, cdist(x, x, "sqeuclidean"), x.shape[1])


def discrepancy(x: np.ndarray, scores: np.ndarray, seed: int = 0) -> tuple[float, float]:
    """Return the kernel Stein discrepancy (V-statistic), and its p-value if the draws are independent.

    The p-value is the share of wild bootstrap sums, with signs drawn anew, that are as large: Chwialkowski et al. 2016.

    Args:
        x, scores: (n, d) draws and gradients of the log density.
        seed: of the signs.

    Returns:
        The discrepancy and its p-value.
    """
    u = gram_of(x, scores)
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], (RESAMPLES, len(x)))
    value, others = u.mean(), np.einsum("bi,ij,bj->b", signs, u, signs, optimize=True) / len(x) ** 2
    return float(np.sqrt(max(value, 0.0))), float((1 + np.sum(others >= value)) / (1 + RESAMPLES))
