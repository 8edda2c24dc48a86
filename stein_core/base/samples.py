"""Numbers of a sample: its distance to another one, its shares by mode, its Stein traces. NumPy only."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular

DIRECTIONS = 200


def sliced_wasserstein(
    x: np.ndarray, y: np.ndarray, power: float = 2.0, directions: int = DIRECTIONS, seed: int = 0
) -> float:
    """Return the sliced Wasserstein distance of two samples: (mean over directions of W_p^p)^(1/p).

    Each direction compares the two quantile functions at as many levels as the larger sample has points. For samples
    of one size that is exact. Source: Bonneel et al. 2015.

    Args:
        x: (n, d).
        y: (m, d).
        power: p.
        directions: random directions, the same for one seed.
        seed: of the directions.
    """
    along = np.random.default_rng(seed).normal(size=(np.shape(x)[1], directions))
    along /= np.linalg.norm(along, axis=0)
    levels = (np.arange(max(len(x), len(y))) + 0.5) / max(len(x), len(y))
    ends = [np.sort(np.asarray(a, float) @ along, axis=0)[(levels * len(a)).astype(int)] for a in (x, y)]
    return float(np.mean(np.abs(ends[0] - ends[1]) ** power) ** (1 / power))


def shares(x: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Return the share (k,) of a sample (n, d) that is nearest to each of the centres (k, d)."""
    squared = np.sum((np.asarray(x)[:, None, :] - np.asarray(centers)) ** 2, axis=-1)
    return np.bincount(np.argmin(squared, axis=1), minlength=len(centers)) / len(x)


def width_ratios(x: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Return the eigenvalues (d,) of Sigma^-1/2 C Sigma^-1/2, the smallest first, C the covariance of the sample with
    1/(n - 1).

    Each is the sample's variance along a direction, as a ratio to the exact one, and no direction is outside their
    range. Fewer than d + 1 points have no width in some directions: zeros are among the ratios of exact draws too.

    Args:
        x: (n, d), n at least 2.
        covariance: Sigma, (d, d).
    """
    apart = (np.asarray(x, float) - np.mean(x, axis=0)).T
    white = solve_triangular(np.linalg.cholesky(np.asarray(covariance, float)), apart, lower=True)
    found = np.linalg.svd(white, compute_uv=False) ** 2 / (len(x) - 1)
    return np.sort(np.concatenate([found, np.zeros(max(0, len(white) - len(found)))]))


def stein_traces(x: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return r_j (d,) = -sum_l s_lj (x_lj - mean_j) / (n - 1). Exact draws have 1; the mean is the Stein trace r.

    Args:
        x: (n, d) draws.
        scores: (n, d) gradients of the log density there.
    """
    return -np.sum(scores * (x - x.mean(axis=0)), axis=0) / max(len(x) - 1, 1)
