"""What a fitted regression says between its data: function values, bands, log predictive density and coverage.

A band is one of the mean function f(x) or, with noise, of a new observation y at x.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpyro.diagnostics import hpdi, split_gelman_rubin
from scipy.special import logsumexp

NOISY = 400  # least number of draws of y for a band


class Band(NamedTuple):
    """A band on a grid: the narrowest interval that holds `probability` of the values at each point.

    Args:
        mean, low, high: (k,).
    """

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def width(self, x: np.ndarray, between: tuple[float, float]) -> float:
        """Return the mean width over the grid points x within an interval."""
        return float(np.mean((self.high - self.low)[(x > between[0]) & (x < between[1])]))


def band(values: np.ndarray, probability: float, noise: float = 0.0, seed: int = 0) -> Band:
    """Return mean and highest-density interval of function values, by NumPyro's `hpdi`.

    Of m point particles a 90 % interval is nearly their whole range: m values say no more.

    Args:
        values: (S, k), one draw or particle a row.
        probability: mass of the interval, between 0 and 1.
        noise: 0 for the band of f, the observation's standard deviation for the band of y. Noise is added to each
            value. Few values get it several times, so that there are 400 or more y.
        seed: of the noise.

    Raises:
        ValueError: the probability is not between 0 and 1.
    """
    if not 0 < probability < 1:
        raise ValueError(f"probability = {probability} is out of range; allowed: between 0 and 1.")
    values = np.asarray(values, float)
    seen = values
    if noise:
        seen = np.repeat(values, -(-NOISY // len(values)), axis=0)
        seen = seen + noise * np.random.default_rng(seed).normal(size=seen.shape)
    low, high = (np.asarray(side) for side in hpdi(seen, probability))
    return Band(values.mean(axis=0), low, high)


def lppd(values: np.ndarray, y: np.ndarray, noise: float, inflated: bool = False) -> float:
    """Return the log pointwise predictive density, sum_i log (1/S) sum_s N(y_i; f_s(x_i), noise).

    Args:
        values: (S, k) at the x_i.
        y: (k,) observations.
        noise: their standard deviation.
        inflated: leave out the 1/S, as the published code does for SVGD's particles. The result is k log S too high.
    """
    standard = (np.asarray(y, float) - np.asarray(values, float)) / noise
    per_point = logsumexp(-0.5 * standard**2 - np.log(noise) - 0.5 * np.log(2 * np.pi), axis=0)
    return float(np.sum(per_point) - (0.0 if inflated else len(y) * np.log(len(values))))


def coverage(values: np.ndarray, y: np.ndarray, probability: float, noise: float) -> float:
    """Return the share of observations y (k,) within the band of y at their x: `probability` if calibrated."""
    found = band(values, probability, noise)
    return float(np.mean((found.low <= y) & (y <= found.high)))


def disagreement(chains: np.ndarray) -> np.ndarray:
    """Return split R-hat of function values (chains, draws, k) at each grid point (Gelman & Rubin 1992, split form)."""
    return np.asarray(split_gelman_rubin(np.asarray(chains, float)))
