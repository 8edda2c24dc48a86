"""Whether draws are spread over the modes as the density says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import chdtri

from stein_core.contract.known import Mode

FEWEST = 40  # draws that make up the mass of a mode: of fewer the error is not known
INSIDE = 0.9  # mass of a normal in the ellipsoid that stands for a mode


class Weights(NamedTuple):
    """Hold the weights of modes.

    Args:
        draws: (k,) shares of the draws that are nearest to each mode.
        density: (k,) shares that the density implies.
        errors: (k,) standard errors of the difference for exact draws; infinite if too few draws count.
    """

    draws: np.ndarray
    density: np.ndarray
    errors: np.ndarray


def distances(modes: Sequence[Mode], draws: np.ndarray) -> np.ndarray:
    """Return the squared distances (k, n) of draws (n, d) from each mode, in the units of its curvature."""
    return np.array([np.sum(np.linalg.solve(mode.root, (draws - mode.place).T) ** 2, axis=0) for mode in modes])


def weights_of(modes: Sequence[Mode], draws: np.ndarray, log_p: np.ndarray, effective) -> Weights:
    """Compare the weights of modes in the draws with those of the density.

    N_k is the normal of Laplace's approximation at mode k, cut off at an ellipsoid. For draws of p the mean of N_k / p
    is the same number for all k, whatever shape the modes have. It is larger for a mode that has too many draws: by
    the share of the draws over that of the density. The mean is a reciprocal importance estimate of a mass (Gelfand
    and Dey 1994), cut off as by Robert and Wraith 2009.

    Args:
        modes: k of them.
        draws: (n, d).
        log_p: (n,) log densities, not normalised.
        effective: terms (n,) -> their effective number.
    """
    far, (n, d) = distances(modes, draws), draws.shape
    volumes = np.array([np.linalg.slogdet(mode.root)[1] for mode in modes])
    logs = -0.5 * far - volumes[:, None]
    nearest = np.argmax(logs + np.log([[mode.share] for mode in modes]), axis=0)
    inside = far < chdtri(d, 1 - INSIDE)
    ratios = np.where(inside, logs - log_p, -np.inf)
    terms = np.exp(ratios - ratios.max())
    means = terms.mean(axis=1)
    errors = np.array([row.std() / max(row.mean(), 1e-300) / math.sqrt(effective(row)) for row in terms])
    few = terms.sum(axis=1) ** 2 < FEWEST * (terms**2).sum(axis=1)  # draws count that make up the mean (Kish)
    share = np.bincount(nearest, minlength=len(modes)) / n
    density = share / np.maximum(means, 1e-300)
    density /= density.sum()
    others = np.sum((density * errors) ** 2) - (density * errors) ** 2
    each = density * np.sqrt(((1 - density) * errors) ** 2 + others)
    return Weights(share, density, np.full(len(modes), np.inf) if few.any() else each)
