"""Closed forms to compare particles with, each with its source and where it holds; NaN outside.

The target is a standard normal in d dimensions unless said otherwise; n is the number of particles, gamma = d / n.
`v` is the per-dimension variance with 1/(n-1) (the diagnostic `sample_variance`); with 1/n it is (n-1)/n times that.
f is a radial kernel's profile, k = f(u) with u = r^2 / (2 sigma^2) and f(0) = 1.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Callable

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import brentq

from stein_core.contract.registry import BANDWIDTHS, KERNELS

RULES = ("median", "median_log", "numpyro", "liuwang", "fixed", "root_dim")


def profile(kernel: str):
    """Return (f, f') of a registered radial kernel, as functions of a float or an array in float64; None for an
    inner-product kernel.

    Raises:
        UnknownName: the kernel is not registered. The laws below that take a kernel raise it too.
    """
    return _profile(KERNELS[kernel])


@lru_cache(maxsize=64)
def _profile(entry):
    if entry.facts.argument == "inner":
        return None

    def at(function):
        compiled = jax.jit(jnp.vectorize(function))  # a root takes hundreds of calls

        def value(u):
            with jax.enable_x64():
                found = np.asarray(compiled(np.asarray(u, np.float64)))
            return found if found.ndim else float(found)

        return value

    return at(entry.make), at(jax.grad(entry.make))


def simplex_variance(
    d: int,
    n: int,
    kernel: str = "rbf",
    rule: str = "median_log",
    alpha: float = 1.0,
    damping: float = 1.0,
    factor: float = 1.0,
) -> float:
    """Return v of SVGD at its fixed point, the regular simplex, where all pairs are at the same u:

        v = -alpha (n/d) u f'(u) / (lambda - f(u)),       u = v d / sigma^2, or what the bandwidth rule makes of it.

    It is exact for 2 <= n <= d + 1 (a simplex of n points needs n - 1 dimensions) and linear in alpha for the median
    rules. It holds for any radial profile. RBF with `median_log` gives v (n-1)/n = alpha ln(n) / d. Without repulsion,
    alpha = 0, it is 0. Elsewhere it is NaN.

    Source: the force balance written out for equal distances. With u = 1 it is Ba et al. 2022, Prop. 3. With sigma^2 =
    d it is their Prop. 5, which they state for n, d -> infinity.

    Args:
        d, n: dimension and number of particles.
        kernel, rule: registered names.
        alpha: weight of the repulsion.
        damping: lambda; 1 is plain SVGD.
        factor: bandwidth factor.

    Raises:
        UnknownName: the kernel or the rule is not registered.
    """
    balance = balance_of(d, n, kernel, damping)
    if balance is None:
        BANDWIDTHS[rule]
        return np.nan
    return simplex_root(d, n, rule, factor, alpha, balance)


def balance_of(d: int, n: int, kernel: str, damping: float = 1.0) -> Callable[[float], float] | None:
    """Return u -> -(n/d) u f'(u) / (lambda - f(u)), the v at which SVGD's forces balance; None for an inner-product
    kernel."""
    functions = profile(kernel)
    if functions is None:
        return None
    f, slope = functions

    def balance(u):
        gap = damping - f(u)
        return -n / d * u * slope(u) / gap if abs(gap) > 1e-12 else np.inf

    return balance


def simplex_root(d: int, n: int, rule: str, factor: float, alpha: float, balance: Callable[[float], float]) -> float:
    """Return the v of a regular simplex that solves v = alpha balance(u), with the u that a bandwidth rule gives at v.

    Args:
        d, n: dimension and number of particles; NaN unless 2 <= n <= d + 1.
        rule, factor: bandwidth rule, NaN for one that is not in RULES, and bandwidth factor.
        alpha: weight of the repulsion; v is 0 without any.
        balance: u of every pair -> v at which a method's forces balance with alpha = 1.

    Raises:
        UnknownName: the rule is not registered.
    """
    BANDWIDTHS[rule]
    if rule not in RULES or not 2 <= n <= d + 1 or factor <= 0:
        return np.nan
    if alpha == 0:
        return 0.0
    if (u := pair_argument(n, rule, factor)) is not None:
        v = alpha * balance(u)
        return v if 0 <= v < np.inf else np.nan
    per_v = d / factor**2 if rule == "fixed" else 1.0 / factor**2  # u = per_v * v

    def gap(log_v):
        return np.exp(log_v) - alpha * balance(per_v * np.exp(log_v))

    return root_of(gap)


def pair_argument(n: int, rule: str, factor: float = 1.0) -> float | None:
    """Return u of every pair of n particles at equal distances, if a median rule makes sigma follow them; else None."""
    log_n, log_1 = np.log(n), np.log(n + 1)
    at_median = {
        "median": 1.0,
        "median_log": log_n,
        "numpyro": log_n if n > 2 else 4 * log_n,
        "liuwang": log_1 if n > 2 else 2 * log_1,
    }
    return at_median[rule] / factor**2 if rule in at_median else None


def root_of(gap: Callable[[float], float]) -> float:
    """Return exp of the root of `gap` that is nearest to 0 from above, or NaN."""
    grid = np.linspace(np.log(1e-8), np.log(1e4), 400)
    values = np.array([gap(x) for x in grid])
    rising = np.flatnonzero((values[:-1] < 0) & (values[1:] >= 0))
    return float(np.exp(brentq(gap, grid[rising[0]], grid[rising[0] + 1], xtol=1e-12))) if rising.size else np.nan


def proposition_3(gamma: float, kernel: str = "rbf") -> float:
    """Return v of SVGD with rule `median`: f'(1) / ((f(1) - f(0)) gamma), for n, d -> infinity, gamma > 1.

    Source: Ba et al. 2022, Prop. 3. Cor. 4, 1 / ((e-1) gamma), is the RBF kernel. For gamma <= 1 the proposition
    predicts nothing: NaN.
    """
    functions = profile(kernel)
    if functions is None or gamma <= 1:
        return np.nan
    f, slope = functions
    return slope(1.0) / (f(1.0) - 1.0) / gamma


def corollary_4(gamma: float) -> float:
    """Return v of SVGD with the RBF kernel and rule `median`: 1 / ((e - 1) gamma), gamma > 1. Ba et al. 2022, Cor.
    4."""
    return 1 / ((np.e - 1) * gamma) if gamma > 1 else np.nan


def proposition_5(gamma: float, kernel: str = "rbf") -> float:
    """Return v of SVGD with sigma^2 = d (rule `root_dim`): the root of f'(v) = gamma (f(v) - f(0)), gamma > 1.

    It holds for any radial f. Source: Ba et al. 2022, Prop. 5.
    """
    functions = profile(kernel)
    if functions is None or gamma <= 1:
        return np.nan
    f, slope = functions
    return root_of(lambda x: slope(np.exp(x)) - gamma * (f(np.exp(x)) - 1.0))


def proposition_5_rbf(gamma: float) -> float:
    """Return Prop. 5 solved for the RBF kernel: log(1 + 1/gamma). Ba et al. 2022, app. C.3."""
    return np.log1p(1 / gamma) if gamma > 1 else np.nan


def proposition_5_imq(gamma: float) -> float:
    """Return Prop. 5 solved for the IMQ kernel: with w = (1+v)^(1/2), w^3 - w^2 = 1 / (2 gamma).

    Its one real root above 1 is the cubic formula that Ba et al. 2022, app. C.3, print.
    """
    if gamma <= 1:
        return np.nan
    roots = np.roots([1.0, -1.0, 0.0, -0.5 / gamma])
    return float(roots[np.abs(roots.imag) < 1e-9].real.max() ** 2 - 1)


def corollary_6(d: float, n: float, alpha: float = 1.0, factor: float = 1.0) -> float:
    """Return v of SVGD with the IMQ kernel and sigma = factor (rule `fixed`). It falls as d^(-1/3) at fixed gamma:

        v ~ ((alpha factor n)^2 / 4)^(1/3) / d,      the limit of `simplex_variance` for v d >> factor^2; d > n.

    The rate is Ba et al. 2022, Cor. 6, with alpha = factor = 1. Its constant follows from the simplex law with
    -f'(u) ~ u^(-3/2) / 2, f(u) << 1.
    """
    return ((alpha * factor * n) ** 2 / 4) ** (1 / 3) / d if d > n else np.nan


def proposition_7(d: int, n: int) -> float:
    """Return the variance (1/n) of MMD-descent with the RBF kernel and a median rule: (n-1)/(n+1).

    It holds for fixed n and d -> infinity: Ba et al. 2022, Prop. 7, for rule `median`. It is exact in that limit for
    every n, every rule of a median and every bandwidth factor, for which the u of a pair cancels. NaN for d < n.
    `mmd_variance` is the root at finite d.
    """
    return (n - 1) / (n + 1) if 2 <= n <= d else np.nan


def mmd_variance(d: int, n: int, rule: str = "median", factor: float = 1.0) -> float:
    """Return v of MMD-descent with the closed-form driving force and the RBF kernel, at the regular simplex:

        (s/(1+s))^(d/2) exp(-|x|^2 / (2+2s)) / (1+s) = f(u) / s,      s = sigma^2 = v d / u, |x|^2 = v d (n-1)/n.

    It is exact for 2 <= n <= d + 1: the force balance along x for equal distances (attraction of the whole target
    against the repulsion of n - 1 particles). NaN elsewhere.

    Args:
        d, n: dimension and number of particles.
        rule, factor: bandwidth rule and factor; rule `median` has u = 1 / factor^2.

    Raises:
        UnknownName: the rule is not registered.
    """

    BANDWIDTHS[rule]
    if rule not in RULES or not 2 <= n <= d + 1 or factor <= 0:
        return np.nan
    u = pair_argument(n, rule, factor)

    def gap(log_v):
        v = np.exp(log_v)
        s = v * d / u if u is not None else factor**2 * (1.0 if rule == "fixed" else d)
        driving = -0.5 * d * np.log1p(1 / s) - v * d * (n - 1) / n / (2 + 2 * s) - np.log1p(s)
        return driving - (-v * d / s - np.log(s))

    return root_of(gap)


def damping(gamma: float, kernel: str = "rbf", factor: float = 1.0) -> float:
    """Return lambda = min(1, f(u) - u f'(u) / gamma) with u = 1 / factor^2, at which rule `median` gives v = 1.

    Source: Ba et al. 2022, eq. 5, with factor = 1.
    """
    functions = profile(kernel)
    if functions is None or gamma <= 0 or factor <= 0:
        return np.nan
    (f, slope), u = functions, factor**-2
    return min(1.0, f(u) - u * slope(u) / gamma)


def langevin_variance(step_size: float) -> float:
    """Return the variance of unadjusted Langevin with step size epsilon: 1 / (1 - epsilon / 2), epsilon < 2, else NaN.

    Source: the variance of the autoregression x <- (1 - epsilon) x + sqrt(2 epsilon) noise.
    """
    return 1 / (1 - step_size / 2) if 0 < step_size < 2 else np.nan


def mean_band(d: int, n: int, variance: float = 1.0) -> float:
    """Return the standard deviation of the diagnostic `mean_location` for n independent draws: sqrt(variance / (n d)).

    The target has this variance in each of d independent coordinates. A mean within two of these is no bias.
    """
    return np.sqrt(variance / (n * d))


def noise_of_s1(d: int, sigma: float, norm: float) -> float:
    """Return the mean squared error of S1(y, x) = -y k(x, y) over y ~ N(0, I), RBF kernel, at |x| = norm.

    With s = sigma^2 it is

        c (4 |x|^2 / (2+s)^2 + d s / (2+s)) - |mu|^2,     c = (s/(2+s))^(d/2) exp(-|x|^2 / (2+s)),
        |mu|^2 = (s/(1+s))^d exp(-|x|^2 / (1+s)) |x|^2 / (1+s)^2.

    It is of order d if sigma^2 and |x|^2 are of order d: Ba et al. 2022, Prop. 2. The printed proof has 2 |x|^2 /
    (2+s); the Gaussian integral gives 4 |x|^2 / (2+s)^2. The order is the same.
    """
    c, square, mu = _noise_parts(d, sigma, norm)
    s = sigma**2
    return c * (4 * square / (2 + s) ** 2 + d * s / (2 + s)) - mu


def noise_of_s2(d: int, sigma: float, norm: float) -> float:
    """Return the mean squared error of S2(y, x) = (x - y) k(x, y) / sigma^2 over y ~ N(0, I), RBF kernel, at |x| =
    norm:

        c (|x|^2 / (2+s)^2 + d / (s (2+s))) - |mu|^2,       c, mu and s as for `noise_of_s1`.

    It is of order 1/d: Ba et al. 2022, Prop. 2. Its last printed line has +3 |mu|^2 and c (d + |x|^2) / (s (2+s))
    instead. The order is the same.
    """
    c, square, mu = _noise_parts(d, sigma, norm)
    s = sigma**2
    return c * (square / (2 + s) ** 2 + d / (s * (2 + s))) - mu


def _noise_parts(d, sigma, norm):
    s, square = sigma**2, norm**2
    c = np.exp(-0.5 * d * np.log1p(2 / s) - square / (2 + s))
    mu = np.exp(-d * np.log1p(1 / s) - square / (1 + s)) * square / (1 + s) ** 2
    return c, square, mu
