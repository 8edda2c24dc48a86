"""Ranks of true values among draws: are they uniform, and if not, what is wrong with the draws?"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from scipy.special import bdtr, ndtri

from stein_core.posterior.checks import percent

SURE = 0.05  # chance that any of the curves of a calibrated procedure leaves its band
REPEATS = 4000  # simulated curves, from which the band is taken
POINTS = 100  # at most, at which a curve is compared with its band
CLEAR = 2.0  # standard errors, from which on a shift or a width is named
ENDS = 0.2  # share of ranks at an end, from which on a width can only be bounded


class Band(NamedTuple):
    """Hold where the empirical distribution of uniform numbers lies: at (k,), and low and high (k,) of it there."""

    at: np.ndarray
    low: np.ndarray
    high: np.ndarray


class Named(NamedTuple):
    """Hold what the ranks of one parameter say.

    Args:
        kind: "calibrated", "shifted", "too narrow", "too wide" or "other".
        shift: mean of (truth - mean of the draws) in sds of the draws.
        width: sd of the draws over the right one; at most that if `bound`.
        bound: whether many truths lie beyond all draws.
        sentence: the same in words.
    """

    kind: str
    shift: float
    width: float
    bound: bool
    sentence: str


@lru_cache(maxsize=64)
def band(n: int, curves: int = 1, chance: float = SURE) -> Band:
    """Return the simultaneous band of the empirical distribution of n uniform numbers.

    At each of some places the count of smaller numbers is binomial. All places share one pointwise chance, so that a
    curve leaves the band anywhere with the given chance. That chance is found by simulation (seed 0). Source:
    Säilynoja, Bürkner and Vehtari 2022, algorithm 1.

    Args:
        n: how many numbers.
        curves: how many curves are looked at together (Bonferroni).
        chance: that one of them leaves the band.
    """
    at = np.linspace(0, 1, min(n, POINTS) + 1)[1:-1]
    uniform = np.sort(np.random.default_rng(0).random((REPEATS, n)), axis=1)
    counts = np.stack([np.searchsorted(row, at, side="right") for row in uniform])
    below = bdtr(np.arange(n + 1)[:, None], n, at)  # chance of at most so many, (n + 1, k)
    above = 1 - np.concatenate([np.zeros((1, len(at))), below[:-1]])  # of at least so many
    column = np.arange(len(at))
    tails = 2 * np.minimum(below[counts, column], above[counts, column]).min(axis=1)
    gamma = np.quantile(tails, chance / curves)
    low, high = ((below < tail).sum(axis=0) for tail in (gamma / 2, 1 - gamma / 2))  # quantiles of the count
    return Band(at, low / n, high / n)


def places(ranks: np.ndarray, most: int, seed: int = 0) -> np.ndarray:
    """Return ranks 0 to `most` as numbers between 0 and 1, uniform if the ranks are: each is spread over its share."""
    return (ranks + np.random.default_rng(seed).random(ranks.shape)) / (most + 1)


def curve(u: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Return the empirical distribution of numbers u (n,) at some places."""
    return np.searchsorted(np.sort(u), at, side="right") / len(u)


def named(ranks: np.ndarray, most: int, curves: int = 1) -> Named:
    """Say what the ranks (n,) of one parameter mean.

    In normal scores a truth is (truth - mean) / sd of the draws. So their mean is a shift, and their sd is the inverse
    of the width. This is exact for normal posteriors, and it says the direction for others.

    Args:
        ranks: numbers of draws below the truth.
        most: number of draws, the largest rank.
        curves: how many parameters are looked at.
    """
    u, n = places(ranks, most), len(ranks)
    here = band(n, curves)
    inside = curve(u, here.at)
    calibrated = bool(((inside >= here.low) & (inside <= here.high)).all())
    score = ndtri(u)
    shift, spread = float(score.mean()), float(score.std(ddof=1))
    away, apart = abs(shift) * math.sqrt(n) / spread, abs(math.log(spread)) * math.sqrt(2 * n)
    bound = bool(np.mean((ranks == 0) | (ranks == most)) > ENDS)
    width = 1 / spread
    if calibrated:
        return Named("calibrated", shift, width, bound, "Calibrated.")
    if max(away, apart) < CLEAR:
        return Named("other", shift, width, bound, "Not calibrated, though neither shifted nor of a wrong width.")
    side = "high" if shift < 0 else "low"
    words = {
        "shifted": f"Shifted: the draws are {abs(shift):.2g} of their sds too {side}.",
        "too narrow": f"Too narrow: {'at most ' * bound}{percent(width)} of the right width.",
        "too wide": f"Too wide: {percent(width)} of the right width.",
    }
    of_width = "too narrow" if spread > 1 else "too wide"
    order = ["shifted", of_width] if away > apart else [of_width, "shifted"]
    clear = [kind for kind, by in zip(order, sorted((away, apart), reverse=True)) if by >= CLEAR]
    return Named(order[0], shift, width, bound, " ".join(words[kind] for kind in clear))
