"""Means and sds that scores imply, by Stein's identity with many test functions: control functionals."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

MOST = 1200  # test functions
STEPS = (-1.5, 0.0, 1.5)  # sds, at which a bounded test function rises
RIDGE = 1e-3  # of the features' mean square


class Implied(NamedTuple):
    """Hold what control functionals find of each coordinate. NaN: they do not determine it.

    Args:
        ratios: (d,) sd of the draws over the implied one.
        shifts: (d,) mean of the draws minus the implied one, in implied sds.
        errors: (2, d) standard errors of both for exact and independent draws.
    """

    ratios: np.ndarray
    shifts: np.ndarray
    errors: np.ndarray


def control_functionals(draws: np.ndarray, scores: np.ndarray, ess: float, most: int = MOST) -> Implied | None:
    """Regress x_j and x_j^2 on functions whose mean under the posterior is 0: the intercept is their mean there.

    These functions are s_j f + df/dx_j in whitened coordinates, with f = 1, x_k, x_j x_k and tanh(x_j - c). A normal
    posterior is fitted but for a ridge, and so is a funnel. The ridge is small if the draws are about as wide as the
    posterior in every direction: for draws of N(0, I) and a posterior with correlations of 0.9 it is not. Unlike f = 1
    and x alone, these functions see flat tails, in so far as the draws reach into them. Sources: Oates, Girolami and
    Chopin 2017 (control functionals); South, Karvonen, Nemeth, Girolami and Oates 2022 (an intercept beside a
    polynomial part).

    Args:
        draws: (n, d).
        scores: (n, d), finite.
        ess: effective number of draws.
        most: test functions. Of d (d + 9) / 2 + d (d - 1), those with f = x_j x_k are left out first, then f = x_k.

    Returns:
        None if the draws do not span all coordinates, or if even 5 d functions are too many.
    """
    (n, d), mean, unit = draws.shape, draws.mean(axis=0), draws.std(axis=0)
    if n < d + 2 or 5 * d > most or not (unit > 0).all():
        return None
    u = (draws - mean) / unit
    values, vectors = np.linalg.eigh(np.atleast_2d(u.T @ u / n))
    if values[0] < 1e-10 * values[-1]:
        return None
    z, s = u @ vectors / np.sqrt(values) @ vectors.T, scores * unit @ vectors * np.sqrt(values) @ vectors.T
    parts = [s]
    pairs = d * (d + 9) // 2
    if pairs <= most:
        rows, columns = np.tril_indices(d)
        parts.append(s[:, rows] * z[:, columns] + s[:, columns] * z[:, rows] + 2.0 * (rows == columns))
    else:
        parts.append(s * z + 1.0)
    if pairs + d * (d - 1) <= most:  # how the spread of one coordinate depends on another: a funnel
        one, other = np.nonzero(~np.eye(d, dtype=bool))
        parts.append(z[:, one] * (s[:, other] * z[:, other] + 1.0))
    for step in STEPS:
        bounded = np.tanh(z - step)
        parts.append(s * bounded + 1.0 - bounded**2)
    features = np.concatenate(parts, axis=1)
    features /= np.sqrt(np.mean(features**2, axis=0))
    center, goals = features.mean(axis=0), np.concatenate([u, u**2], axis=1)
    apart = features - center
    gram = apart.T @ apart / n + RIDGE * np.eye(len(center))
    slopes = np.linalg.solve(gram, apart.T @ (goals - goals.mean(axis=0)) / n)
    off = center @ slopes  # mean over the draws minus the intercept
    noise = (apart @ slopes).std(axis=0) / np.sqrt(ess)
    with np.errstate(invalid="ignore", divide="ignore"):
        sd = np.sqrt(1.0 - off[d:] - off[:d] ** 2)
        sd = np.where(sd > 1e-3, sd, np.nan)
        return Implied(1.0 / sd, off[:d] / sd, np.stack([noise[d:] / (2 * sd**3), noise[:d] / sd]))
