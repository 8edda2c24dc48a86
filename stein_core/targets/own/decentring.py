"""Targets of hierarchical models in the coordinates in which prior and density agree best."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace

import jax
import numpy as np
from numpyro import handlers
from numpyro.distributions import Distribution, ExpandedDistribution, Independent, constraints
from numpyro.infer.initialization import init_to_uniform
from numpyro.infer.reparam import LocScaleReparam

from stein_core.contract.target import Target, times
from stein_core.targets.own.density import log_densities
from stein_core.targets.own.numpyro_models import ModelWarning, from_numpyro, one_at_a_time
from stein_core.targets.own.recorded import Recorded

BETTER = 0.8  # of the disagreement, below which other coordinates are taken


def best_target(model: Callable, *args, seed: int = 0, kwargs: dict | None = None, **keywords) -> Target:
    """Make the Target of a NumPyro model that particles fit best.

    If the mode is no place to start, a site with a location and a scale may be a funnel: its width depends on other
    latents. NumPyro's `LocScaleReparam` then replaces it by (site - loc) / scale. The prior of this is that of a
    standard distribution, whatever the scale is. The two are compared by how far the normal with the start's moments is
    from the density; see `disagreement`.

    Args:
        model: a callable of NumPyro statements.
        args, keywords: of the model.
        seed, kwargs: as in `from_numpyro`.

    Returns:
        The Target of `from_numpyro`, or that of the decentred model. Its `note` then says so, and its sites have
        NumPyro's names, for example `theta_decentered`. `constrain` returns the model's own ones as well.

    Warns:
        ModelWarning: as `from_numpyro` does, for the Target that is returned.

    Raises:
        ValueError: as `from_numpyro` does.
    """
    kwargs = {**keywords, **(kwargs or {})}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = from_numpyro(model, *args, seed=seed, kwargs=kwargs)
        names = funnels(model, args, kwargs, seed) if found.start.note else ()
    if names:
        other = handlers.reparam(model, config=dict.fromkeys(names, LocScaleReparam(0.0)))
        with warnings.catch_warnings(record=True) as further:
            warnings.simplefilter("always")
            decentred = from_numpyro(other, *args, seed=seed, kwargs=kwargs)
        both = found.start.gradients + decentred.start.gradients
        found, decentred = (replace(each, start=replace(each.start, gradients=both)) for each in (found, decentred))
        if disagreement(decentred, seed) < BETTER * disagreement(found, seed):
            each = ", ".join(names)
            said = f"The width of {each} depends on other sites. So (site - loc) / scale is fitted instead of {each}."
            start = replace(decentred.start, note=f"{said} {decentred.start.note}".strip())
            found, caught = replace(decentred, start=start), further
    for each in caught:
        if each.category is not ModelWarning or str(each.message).endswith("missing?"):
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
    if found.start.note:
        warnings.warn(found.start.note, ModelWarning, stacklevel=2)
    return found


def disagreement(target: Target, seed: int = 0, draws: int = 256) -> float:
    """Return how far a target is from the normal with its start's moments: 0 for a normal target.

    It is the interquartile range of log density minus log normal over draws of the normal, over sqrt(d).

    Args:
        target: from `from_numpyro`.
        seed: of the draws.
        draws: how many.
    """
    z = np.random.default_rng(seed).standard_normal((draws, target.dim))
    root = target.start.scale if target.start.root is None else target.start.root  # of many coordinates: no covariance
    found = log_densities(target, target.start.center + times(z, root))[0] + 0.5 * np.sum(z**2, axis=1)
    low, high = np.percentile(np.where(np.isfinite(found), found, -np.inf), [25, 75])
    return float((high - low) / np.sqrt(target.dim)) if np.isfinite(low) else np.inf


def funnels(model: Callable, args: tuple, kwargs: dict, seed: int = 0) -> tuple[str, ...]:
    """Return the latent sites with a location and a scale whose scale depends on other latents.

    Args:
        model, args, kwargs: the model and its arguments.
        seed: of the two draws of the latents that are compared.
    """

    def scales(key):
        seeded = handlers.substitute(handlers.seed(model, key), substitute_fn=init_to_uniform)
        trace = handlers.trace(seeded).get_trace(*args, **kwargs)
        found = {name: _base(site["fn"]) for name, site in trace.items() if _is_latent(site)}
        return {name: base.scale for name, base in found.items() if _has_scale(base)}

    keys = jax.random.split(jax.random.key(seed))
    with one_at_a_time:
        recorded = Recorded(scales, keys[0])
    drawn = jax.jit(recorded, compiler_options={"xla_backend_optimization_level": 0})
    one, two = (drawn(key) for key in keys)
    return tuple(sorted(name for name in one if not np.array_equal(one[name], two[name])))


def _is_latent(site) -> bool:
    return site["type"] == "sample" and not site["is_observed"]


def _base(fn: Distribution) -> Distribution:
    while isinstance(fn, Independent | ExpandedDistribution):
        fn = fn.base_dist
    return fn


def _has_scale(base: Distribution) -> bool:
    """Say whether `LocScaleReparam` takes a distribution: a real one with no parameters beside loc and scale."""
    return set(base.arg_constraints) == {"loc", "scale"} and base.support is constraints.real
