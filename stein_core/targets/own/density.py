"""A target of a plain log density; log densities and scores of any target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from stein_core.base.errors import short
from stein_core.contract.target import Target
from stein_core.targets.own.starts import find_start


def from_density(log_density: Callable, start: Any, names: Sequence[str] | None = None, seed: int = 0) -> Target:
    """Make a Target of a log density on R^d.

    `center` and `scale` are found as in `from_numpyro`: Laplace's approximation from several starts in float64, or a
    short run of NUTS if that is far from the density. `note` then says so.

    Args:
        log_density: theta (d,) -> scalar, in JAX and differentiable twice. It need not be normalised. A constrained
            parameter needs its log-Jacobian.
        start: (d,) where the search begins.
        names: of the d coordinates; by default theta[0], theta[1] ...
        seed: of the other starts, and of NUTS.

    Raises:
        ValueError: a start or names of another shape, or a density that is finite at no point that was tried.
    """
    with jax.enable_x64():
        points = start_points(start, log_density)
        d = points.shape[1]
        names = tuple(names or thetas(d))
        if len(names) != d:
            raise ValueError(f"names has {len(names)} entries; allowed: {d}, as many as `start`.")
        found = find_start(log_density, points, seed)
    return Target(
        log_density=log_density,
        start=found,
        **plain(names),
        name=getattr(log_density, "__name__", "").replace("<lambda>", ""),
    )


def start_points(start: Any, log_density: Callable) -> np.ndarray:
    """Return a start as the one row (1, d) from which a search begins.

    Raises:
        ValueError: no d finite numbers, or a log density that is no scalar there.
    """
    start = np.asarray(start, float)
    if start.ndim != 1 or not len(start) or not np.isfinite(start).all():
        raise ValueError(f"start = {short(start.tolist())}; allowed: d finite numbers.")
    shape = jax.eval_shape(log_density, jnp.asarray(start)).shape
    if shape != ():
        raise ValueError(f"log_density returns an array of shape {shape}; allowed: a scalar.")
    return start[None]


def thetas(d: int) -> tuple[str, ...]:
    """Return the names of d coordinates without a name."""
    return tuple(f"theta[{i}]" for i in range(d))


def plain(names: Sequence[str]) -> dict[str, Any]:
    """Return the fields of a Target whose values are its coordinates themselves."""
    return {
        "coordinates": tuple(names),
        "constrain": lambda theta: {name: theta[..., i] for i, name in enumerate(names)},
        "unconstrain": lambda values: jnp.stack([jnp.asarray(values[name], float) for name in names], axis=-1),
    }


def log_densities(target: Target, draws: np.ndarray, batch: int = 500) -> tuple[np.ndarray, np.ndarray]:
    """Return log densities (n,) and scores (n, d) of a target at draws (n, d)."""
    with in_precision_of(target):
        both = jax.jit(lambda rows: jax.lax.map(jax.value_and_grad(target.log_density), rows, batch_size=batch))
        values, slopes = both(jnp.asarray(draws, float))
    return np.asarray(values, float), np.asarray(slopes, float)


def in_precision_of(target: Target):
    """Return a context in which JAX computes in float64, or in float32 if the target was recorded in it."""
    with jax.enable_x64():
        try:
            jax.eval_shape(target.log_density, jax.ShapeDtypeStruct((target.dim,), jnp.result_type(float)))
        except TypeError:
            return jax.enable_x64(False)
    return jax.enable_x64()
