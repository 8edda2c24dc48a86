"""What the functions of a run's particles say: the outputs of a network or of a regression at given inputs."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Mapping

import jax
import jax.numpy as jnp
import numpy as np

from stein_core.base.bands import Band, band, coverage, disagreement, lppd  # noqa: F401  (earlier scripts import all here)
from stein_core.contract.recipe import knobs_of
from stein_core.contract.registry import TARGETS
from stein_core.contract.spec import Spec, data_of, target_of
from stein_core.runs.assembly import problem_of


@lru_cache(maxsize=32)
def _drawer(spec: Spec, entry, draws: int):
    """Compile (particles, knobs, data, x, key) -> outputs (capacity * draws, k, c) and which particles count."""

    def values(particles, knobs, data, x, key):
        problem = problem_of(spec, knobs, data)
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
        raise ValueError(f"target {spec.target!r} has no regression function; allowed: for example 'wave'.")
    draw = _drawer(spec, TARGETS[spec.target], draws)
    with jax.default_matmul_precision("highest"):
        traced = knobs_of(spec, knobs).traced
        values, active = draw(particles, traced, data_of(spec), jnp.asarray(x, float), jax.random.PRNGKey(seed))
    values = np.asarray(values)
    values = values.reshape(spec.capacity, -1, *values.shape[1:])
    return values[np.asarray(active)].reshape(-1, *values.shape[2:])


def function_values(
    spec: Spec, particles: np.ndarray, knobs: Mapping[str, Any], x: np.ndarray, draws: int = 40, seed: int = 0
) -> np.ndarray:
    """Return f at x, the first output of `outputs_at`: (m * draws, k), or (m, k) for point masses."""
    return outputs_at(spec, particles, knobs, x, draws, seed)[..., 0]
