"""What the scores imply of means, widths and directions: the regression of the scores on the draws."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from stein_core.targets.own.rays import in_words

LARGEST = 400  # coordinates, above which no matrix of them is made
FLAT = 1e-10  # of the largest eigenvalue of the correlations: a smaller one is none
LEAST = 0.25  # ratio of variances, below which the spread of terms is not scaled further


class Direction(NamedTuple):
    """Hold what the scores say of the draws along one direction.

    Args:
        ratio: variance of the draws over the implied one. Its mean is 1 for exact draws, also along a chosen direction.
        error: its standard error for exact draws; 0 for particles.
        loadings: (d,) of the coordinates in the direction, each in sds of the draws.
    """

    ratio: float
    error: float
    loadings: np.ndarray

    def words(self, names: tuple[str, ...]) -> str:
        """Return the direction in words: "x1 - 0.8 x2". Coordinates with small loadings are left out."""
        return in_words(self.loadings, names)


class _Whitened(NamedTuple):
    """Hold draws in coordinates with mean 0 and covariance I, x = mean + root y, and the regression there.

    Args:
        mean, unit: (d,) means and sds of the draws.
        root: (d, d).
        values, vectors: eigenvalues, rising, and eigenvectors of A = -E[root^T s y^T], made symmetric. Exact draws have
            A = I by Stein's identity. An eigenvalue is the ratio of variances along one direction.
    """

    mean: np.ndarray
    unit: np.ndarray
    root: np.ndarray
    values: np.ndarray
    vectors: np.ndarray


def _whitened(draws: np.ndarray, scores: np.ndarray) -> _Whitened | None:
    """Return the regression of scores (n, d) on draws (n, d), or None if the draws do not span all coordinates."""
    (n, d), mean = draws.shape, draws.mean(axis=0)
    if n < d + 2 or d > LARGEST:
        return None
    unit = draws.std(axis=0, ddof=1)
    if not (unit > 0).all():
        return None
    values, vectors = np.linalg.eigh(np.cov(draws.T / unit[:, None]).reshape(d, d))
    if values[0] < FLAT * values[-1]:
        return None
    root = unit[:, None] * vectors * np.sqrt(values)
    y = (draws - mean) / unit @ vectors / np.sqrt(values)
    slopes = -(scores @ root).T @ y / (n - 1)
    return _Whitened(mean, unit, root, *np.linalg.eigh((slopes + slopes.T) / 2))


def implied(draws: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return `Evidence.implied` of draws (n, d) and scores (n, d)."""
    found = _whitened(draws, scores)
    if found is None or found.values[0] <= 1e-7 * max(found.values[-1], 1e-300):  # not concave in some direction
        return None
    target = found.root @ (found.vectors / np.sqrt(found.values))  # target @ target^T: the implied covariance
    sd = np.linalg.norm(target, axis=1)
    shift = -target @ (target.T @ scores.mean(axis=0)) / sd
    return np.sqrt(np.sum(found.root**2, axis=1)) / sd, shift


def extremes(
    draws: np.ndarray, scores: np.ndarray, ess: float, halves: np.ndarray | None
) -> tuple[Direction, Direction] | None:
    """Return the directions in which the draws are narrowest and widest beside what their scores imply.

    The extreme eigenvalues of exact draws are far from 1, since they are selected (Marchenko and Pastur 1967). So each
    half of the draws selects a direction, and the other half gives its ratio: -E[(g . s) (u . (x - mean))] = g . u by
    Stein's identity, for any g and u that do not depend on these draws. The ratio is the mean of both.

    A ratio below 1 may be chance: the large terms happen to be missing. Then the terms are too little spread, too, by
    about that ratio. So their spread is divided by it: the error is that of draws with ratio 1.

    Args:
        draws, scores: (n, d).
        ess: effective number of draws.
        halves: (n,) whether a row is of the first half; None for particles, which have no noise.

    Above LARGEST coordinates the directions are sought in sds of the draws, and correlations of the draws stay in them.

    Returns:
        None if the draws, or half of them, do not span all coordinates; above LARGEST, for particles.
    """
    if draws.shape[1] > LARGEST:
        return None if halves is None else _far(draws, scores, ess, halves)
    whole = _whitened(draws, scores)
    parts = [] if halves is None else [(halves, ~halves), (~halves, halves)]
    chosen = [_whitened(draws[mine], scores[mine]) for mine, _ in parts]
    if whole is None or any(each is None for each in chosen):
        return None
    found = []
    for k in (0, -1):
        loadings = whole.unit * np.linalg.solve(whole.root.T, whole.vectors[:, k])
        if halves is None:
            found.append(Direction(float(whole.values[k]), 0.0, loadings))
            continue
        ends = [(np.linalg.solve(one.root.T, one.vectors[:, k]), one.root @ one.vectors[:, k]) for one in chosen]
        found.append(_judged(draws, scores, ess, [other for _, other in parts], ends, loadings))
    return tuple(found)


def _judged(draws, scores, ess, others, ends, loadings) -> Direction:
    """Return what the other half of the draws says of each (direction, slope), as one Direction."""
    ratios, spreads = [], []
    for other, (along, slope) in zip(others, ends):
        place = draws[other] @ along
        terms = -(scores[other] @ slope) * (place - place.mean())
        ratios.append(terms.sum() / (len(terms) - 1))
        spreads.append((terms.std(), math.sqrt(len(terms))))
    ratio = float(np.mean(ratios))
    scale = min(max(ratio, LEAST), 1.0) if ratio > 0 else 1.0
    errors = [max(spread / scale, math.sqrt(2.0)) / root for spread, root in spreads]  # sqrt(2): of a normal
    return Direction(ratio, math.hypot(*errors) / 2 * math.sqrt(len(draws) / ess), loadings)


def _far(draws, scores, ess, halves) -> tuple[Direction, Direction] | None:
    """Return the extremes of draws of many coordinates, without a matrix of them."""
    unit = draws.std(axis=0, ddof=1)
    if not (unit > 0).all():
        return None
    chosen = [_ends((draws[mine] - draws[mine].mean(axis=0)) / unit, scores[mine] * unit) for mine in (halves, ~halves)]
    if any(each is None for each in chosen):
        return None
    ends = [[(each[k] / unit, each[k] * unit) for each in chosen] for k in (0, 1)]
    narrow, wide = (
        _judged(draws, scores, ess, [~halves, halves], ends[k], chosen[0][k]) for k in (0, 1)
    )  # fmt: skip
    return narrow, wide


def _ends(z: np.ndarray, scores: np.ndarray) -> np.ndarray | None:
    """Return the eigenvectors (2, d) of -E[s z^T], made symmetric, with the least and the largest eigenvalue."""
    from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh  # not at the top: it takes a while

    z, scores = np.float32(z), np.float32(scores)
    count, d = z.shape
    start = np.random.default_rng(0).normal(size=d).astype(np.float32)
    applied = lambda v: -(z.T @ (scores @ v) + scores.T @ (z @ v)) / (2 * count)  # noqa: E731
    try:
        _, vectors = eigsh(LinearOperator((d, d), applied, dtype=np.float32), 2, which="BE", tol=0.02, v0=start)
    except ArpackNoConvergence:
        return None
    return np.float64(vectors.T)
