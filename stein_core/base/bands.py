"""What a fitted regression says between its data: function values, bands, log predictive density and coverage.

A band is one of the mean function f(x) or, with noise, of a new observation y at x.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Mapping, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.diagnostics import hpdi, split_gelman_rubin
from scipy.special import logsumexp

from stein_core.contract.recipe import knobs_of
from stein_core.contract.registry import TARGETS
from stein_core.contract.spec import Spec, target_of
from stein_core.runs.assembly import arguments_of, problem_of

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


@lru_cache(maxsize=32)
def _drawer(spec: Spec, entry, draws: int):
    """Compile (particles, knobs, x, key) -> outputs (capacity * draws, k, c) and which particles count."""

    def values(particles, knobs, x, key):
        problem = problem_of(spec, target_of(spec), knobs)
        count = 1 if problem.guide.log_density is None else draws
        eps = problem.draw(key, (spec.capacity, count))
        theta = jax.vmap(jax.vmap(problem.guide.sample, (None, 0)))(particles, eps)
        flat = theta.reshape(-1, spec.dim)
        outputs = problem.target.functions.outputs
        found = jax.lax.map(lambda t: outputs(t, x), flat, batch_size=256)
        return found, problem.active(spec.capacity)

    return jax.jit(values)


def outputs_at(
    spec: Spec, particles: np.ndarray, knobs: Mapping[str, Any], x: np.ndarray, draws: int = 40, seed: int = 0
) -> np.ndarray:
    """Return the outputs at x for a run's particles: (m * draws, k, c), or (m, k, c) for point masses.

    The draws are the same at every call with a seed, so that a band moves with the particles and does not flicker.

    Args:
        spec, knobs: of the run.
        particles: (capacity, p).
        x: (k, ...) inputs.
        draws: draws of each guide.
        seed: of the draws.

    Raises:
        ValueError: the target has no functions.
    """
    if target_of(spec).functions is None:
        raise ValueError(f"target {spec.target!r} has no regression function; allowed: 'wave', say.")
    draw = _drawer(spec, TARGETS[spec.target], draws)
    with jax.default_matmul_precision("highest"):
        arguments = arguments_of(knobs_of(spec, knobs))
        values, active = draw(particles, arguments, jnp.asarray(x, float), jax.random.PRNGKey(seed))
    values = np.asarray(values)
    values = values.reshape(spec.capacity, -1, *values.shape[1:])
    return values[np.asarray(active)].reshape(-1, *values.shape[2:])


def function_values(
    spec: Spec, particles: np.ndarray, knobs: Mapping[str, Any], x: np.ndarray, draws: int = 40, seed: int = 0
) -> np.ndarray:
    """Return f at x, the first output of `outputs_at`: (m * draws, k), or (m, k) for point masses."""
    return outputs_at(spec, particles, knobs, x, draws, seed)[..., 0]


def disagreement(chains: np.ndarray) -> np.ndarray:
    """Return split R-hat of function values (chains, draws, k) at each grid point (Gelman & Rubin 1992, split form)."""
    return np.asarray(split_gelman_rubin(np.asarray(chains, float)))
