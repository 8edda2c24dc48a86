"""Laws of what is said to cure SVGD's collapse, on a standard normal in d dimensions with n particles.

`v` is as in `laws`: the variance of a coordinate with 1/(n-1). A kernel is k = f(u), u = r^2 / (2 sigma^2). All laws
hold for any radial kernel and for the bandwidth rules of `laws.RULES`; elsewhere they are NaN.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Callable

import numpy as np
from scipy.special import betaincinv

from stein_core.theory.laws import balance_of, pair_argument, profile, root_of, simplex_root, simplex_variance

NODES = 4000  # of a quadrature over the share of a distance that a random subspace sees


def argument_at(d: int, n: int, rule: str, factor: float, v: float) -> float:
    """Return u of a pair of a regular simplex of variance v, whose pair distance is r^2 = 2 d v."""
    if (u := pair_argument(n, rule, factor)) is not None:
        return u
    return v * (d if rule == "fixed" else 1.0) / factor**2


def balanced(alpha: float, balance: Callable[[float], float], follows: bool) -> float:
    """Return the v that solves v = alpha balance(v); NaN if there is none.

    Args:
        alpha: weight of the repulsion; v is 0 without any.
        balance: v -> the v at which the forces balance with alpha = 1.
        follows: the bandwidths follow the particles, so that `balance` is constant.
    """
    if alpha == 0:
        return 0.0
    if follows:
        v = alpha * balance(1.0)
        return v if 0 <= v < np.inf else np.nan
    return root_of(lambda log_v: np.exp(log_v) - alpha * balance(np.exp(log_v)))


def noisy_variance(
    d: int,
    n: int,
    beta: float,
    kernel: str = "rbf",
    rule: str = "median_log",
    alpha: float = 1.0,
    factor: float = 1.0,
    step_size: float = 0.0,
) -> float:
    """Return v of noisy SVGD, dx = (phi + s / beta) dt + sqrt(2 / beta) dW, to leading order in 1/n and 1/d.

    For small steps it is (n + b v_S) / (n + b), b = beta (1 - f(u)), with SVGD's own v_S. Source: on a simplex phi is
    -(c - 1/beta) x with c = (1 - f(u)) (1 - v_S / v) / n + 1 / beta, so v is the variance of the autoregression
    x <- (1 - epsilon c) x + sqrt(2 epsilon / beta) noise: 2 c v - epsilon c^2 v = 2 / beta.

    Args:
        d, n, kernel, rule, alpha, factor: as for `simplex_variance`.
        beta: weight of SVGD against Langevin dynamics.
        step_size: epsilon.
    """
    rest = simplex_variance(d, n, kernel, rule, alpha, factor=factor)
    if not np.isfinite(rest):
        return np.nan
    balance, (f, _) = balance_of(d, n, kernel), profile(kernel)

    def gap(log_v):
        v = np.exp(log_v)
        u = argument_at(d, n, rule, factor, v)
        pull = (1.0 - f(u)) * (1.0 - alpha * balance(u) / v) / n + 1.0 / beta
        return 2.0 * pull * v - step_size * pull**2 * v - 2.0 / beta

    return root_of(gap)


def two_kernel_variance(
    d: int,
    n: int,
    scores: tuple[str, str, float] = ("rbf", "median_log", 1.0),
    repulsion: tuple[str, str, float] = ("rbf", "median", 1.0),
    alpha: float = 1.0,
) -> float:
    """Return v of SVGD with a kernel f1 for the scores and f2 for the repulsion, at the regular simplex:

        v = alpha (n/d) u2 (-f2'(u2)) / (1 - f1(u1)),       u1 and u2 of a pair by the two bandwidth rules.

    It is exact for 2 <= n <= d + 1, and `simplex_variance` for equal kernels. With both rules medians it is at most
    n / (e d (1 - f1)) for RBF: it still falls as 1/d. Source: the force balance of `simplex_variance`, with two
    kernels. The method is that of MacDonald, Sisson & Pathiraja 2025.

    Args:
        d, n: dimension and number of particles.
        scores, repulsion: (kernel, rule, factor) of each.
        alpha: weight of the repulsion.
    """
    (k1, rule1, factor1), (k2, rule2, factor2) = scores, repulsion
    if profile(k1) is None or profile(k2) is None:
        return np.nan
    (f1, _), (_, slope2) = profile(k1), profile(k2)

    def balance(v):
        gap = 1.0 - f1(argument_at(d, n, rule1, factor1, v))
        u = argument_at(d, n, rule2, factor2, v)
        return -n / d * u * slope2(u) / gap if gap > 1e-12 else np.inf

    rests = [simplex_root(d, n, rule, factor, 0.0, None) for _, rule, factor in (scores, repulsion)]
    if not np.all(np.isfinite(rests)):
        return np.nan
    follows = None not in (pair_argument(n, rule1, factor1), pair_argument(n, rule2, factor2))
    return balanced(alpha, balance, follows)


def block_variance(
    d: int,
    n: int,
    size: int,
    kernel: str = "rbf",
    rule: str = "median_log",
    alpha: float = 1.0,
    factor: float = 1.0,
) -> float:
    """Return v of SVGD with a kernel for each block of M coordinates: SVGD's own at dimension M, in each block.

    It is exact for n <= M + 1, and NaN beyond, for SVGD itself then has no law. The last block has what is left.

    Args:
        d, n, kernel, rule, alpha, factor: as for `simplex_variance`.
        size: M.
    """
    size = min(int(size), d)
    blocks = [size] * (d // size) + [d % size] * (d % size > 0)
    law = {each: simplex_variance(each, n, kernel, rule, alpha, factor=factor) for each in set(blocks)}
    return sum(each * law[each] for each in blocks) / d


def projected_variance(d: int, n: int, rank: int, *settings) -> float:
    """Return v of SVGD in r directions, with exact draws in all others: (r v_S(n, r) + d - r) / d.

    Args:
        d, n: dimension and number of particles.
        rank: r.
        settings: kernel, rule and alpha, as for `simplex_variance`.
    """
    rank = min(int(rank), d)
    return (rank * simplex_variance(rank, n, *settings) + d - rank) / d


def subspace_variance(
    d: int,
    n: int,
    size: int,
    kernel: str = "rbf",
    rule: str = "median_log",
    alpha: float = 1.0,
    factor: float = 1.0,
) -> float:
    """Return v of SVGD in a new random subspace of M dimensions at each step, for steps small beside n and leading
    order in 1/n:

        v = alpha (n/d) E[-u f'(u)] / (M/d - n E[f(u) chi] / 2 + (n-2) E[f(u) (M - chi)] / (2 (d-1))).

    chi ~ Beta(M/2, (d-M)/2) is the share of a squared distance that the subspace sees; u = u_0 chi / median(chi) for a
    median rule with u_0 at the median pair. For M = d it is `simplex_variance`. It hardly depends on d. Source: for
    equal norms x_i - x_j and x_i + x_j are orthogonal, so the projector acts on the first as chi and on the second as
    (M - chi) / (d - 1) in the mean; the sum over j is that of a simplex, so n <= d + 1. The median of one subspace is
    taken for that of all: up to 3 % at n = 10.

    Args:
        d, n, kernel, rule, alpha, factor: as for `simplex_variance`.
        size: M.
    """
    size = min(int(size), d)
    if size == d or not np.isfinite(simplex_variance(d, n, kernel, rule, alpha, factor=factor)):
        return simplex_variance(d, n, kernel, rule, alpha, factor=factor)
    chi, middle = shares(d, size)
    f, slope = profile(kernel)

    def balance(v):
        if (u := pair_argument(n, rule, factor)) is not None:
            seen = u * chi / middle
        else:
            seen = chi * v * d / factor**2 / (1.0 if rule == "fixed" else size)
        k, push = f(seen), np.mean(-seen * slope(seen))
        pull = size / d - n * np.mean(k * chi) / 2 + (n - 2) * np.mean(k * (size - chi)) / (2 * (d - 1))
        return n / d * push / pull if pull > 1e-12 else np.inf

    return balanced(alpha, balance, pair_argument(n, rule, factor) is not None)


@lru_cache(maxsize=256)
def shares(d: int, size: int) -> tuple[np.ndarray, float]:
    """Return equally likely values of chi ~ Beta(M/2, (d-M)/2), and its median."""
    at = (np.arange(NODES) + 0.5) / NODES
    values = betaincinv(size / 2, (d - size) / 2, np.append(at, 0.5))
    return values[:-1], float(values[-1])
