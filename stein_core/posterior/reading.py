"""What a user hands in as Evidence: a fit, draws with or without a target, an InferenceData, and a reference."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from stein_core.base.errors import short
from stein_core.contract.registry import METHODS
from stein_core.contract.target import Target
from stein_core.posterior.evidence import Evidence
from stein_core.posterior.fitted import Fit
from stein_core.targets.own.density import in_precision_of, log_densities
from stein_core.targets.own.rays import flat_direction


def evidence_of(what: Any, target: Target | None, scores=None, particles: bool = False) -> Evidence:
    """Return the Evidence of a Fit, of draws with or without a target, or of an InferenceData.

    Args:
        what: a Fit; draws (n, d) or (chains, n, d) of unconstrained theta; named values of a model, (n, ...) each; or
            ArviZ's InferenceData.
        target: whose draws they are; None for a Fit, or if that is not known.
        scores: of the draws, in their shape, if there is no target.
        particles: whether the draws are particles, for example of SVGD, and no random draws. They have no noise.

    Raises:
        ValueError: a shape that does not fit, a row that is not finite, a site without values, or particles in chains.
    """
    if isinstance(what, Evidence):
        return replace(what, chains=0) if particles else what
    if isinstance(what, Fit):
        log_p, found = log_densities(what.target, what.draws)
        chains = 0 if what.log_q is None else 1
        laws = [_law(what, times) if chains == 0 else math.nan for times in (1, 2)]
        known = what.draws, what.target.coordinates, found, log_p, what.log_q, chains, *laws
        noisy = what.log_q is not None or what.target.minibatch is not None
        seen = {"modes": what.target.start.modes or None, "flat": flat_direction(what.target, found)}
        return Evidence(*known, rest=what.rest, noisy=noisy, **seen)
    draws, chains, named = _draws(what, target)
    if particles and chains > 1:
        raise ValueError(f"particles = True, but the draws are {chains} chains; allowed: particles (n, d).")
    chains = 0 if particles else chains
    check_finite("draws", draws)
    names = target.coordinates if target else named or tuple(f"x{i + 1}" for i in range(draws.shape[1]))
    if target is not None:
        log_p, scores = log_densities(target, draws)
        flat = flat_direction(target, scores)
        return Evidence(draws, names, scores, log_p, None, chains, modes=target.start.modes or None, flat=flat)
    if scores is not None:
        scores, shape = np.asarray(scores, float), getattr(what, "shape", draws.shape)
        if scores.shape not in (shape, draws.shape):
            raise ValueError(f"scores have shape {scores.shape}; allowed: that of the draws, {shape}.")
        scores = scores.reshape(draws.shape)
    return Evidence(draws, names, scores, None, None, chains)


def check_finite(name: str, rows: np.ndarray) -> None:
    """Raise a ValueError with the first place of rows (n, d) that is not finite."""
    if len(bad := np.argwhere(~np.isfinite(rows))):
        row, column = bad[0]
        raise ValueError(f"{name}: row {row}, column {column} is {rows[row, column]}; allowed: finite numbers.")


def reference_of(reference: Any, d: int, target: Target | None) -> tuple[np.ndarray, int | None]:
    """Return a reference as (chains, k, d), and how many of its draws ended a diverging trajectory, if that is known.

    Args:
        reference: (k, d) or (chains, k, d); of `reference.nuts`, which counts them; or ArviZ's InferenceData.
        d: coordinates of the draws.
        target: whose draws they are, or None.

    Raises:
        ValueError: another shape, fewer than 4 rows, or a number that is not finite.
    """
    diverging = getattr(reference, "diverging", None)
    if hasattr(reference, "posterior"):
        stats = getattr(reference, "sample_stats", {})
        diverging = int(np.sum(stats["diverging"].values)) if "diverging" in stats else None
        rows, chains, _ = _draws(reference, target)
        reference = rows.reshape(chains, -1, rows.shape[1])
    table = np.asarray(reference, float)
    if table.ndim not in (2, 3) or table.shape[-1] != d or table.size < 4 * d:
        raise ValueError(
            f"reference has shape {table.shape}; allowed: (k, {d}) or (chains, k, {d}), as the draws have {d} "
            "coordinates, and at least 4 rows."
        )
    check_finite("reference", table.reshape(-1, d))
    return table.reshape(-1, *table.shape[-2:]), diverging


def _draws(what, target) -> tuple[np.ndarray, int, tuple[str, ...] | None]:
    """Return draws (n, d), the number of chains, and the names of the columns if the draws have names."""
    posterior = getattr(what, "posterior", None)
    if posterior is not None:  # InferenceData
        known = {str(name): np.asarray(posterior[name].values, float) for name in posterior.data_vars}
        chains = next(iter(known.values())).shape[0]
        what = {name: values.reshape(-1, *values.shape[2:]) for name, values in known.items()}
    elif isinstance(what, Mapping):
        chains, what = 1, {name: np.asarray(values, float) for name, values in what.items()}
    else:
        table = np.asarray(what, float)
        if table.ndim not in (2, 3) or not table.size:
            raise ValueError(f"draws have shape {table.shape}; allowed: (n, d) or (chains, n, d).")
        chains = table.shape[0] if table.ndim == 3 else 1
        table = table.reshape(-1, table.shape[-1])
        if target is not None and table.shape[1] != target.dim:
            raise ValueError(f"draws have {table.shape[1]} columns; {target} has {target.dim} coordinates.")
        return table, chains, None
    if target is None or target.unconstrain is None:
        columns = [values.reshape(len(values), -1) for values in what.values()]
        if len({len(each) for each in columns}) > 1:
            sizes = ", ".join(f"{name} {len(each)}" for name, each in zip(what, columns))
            raise ValueError(f"the sites have different numbers of draws: {sizes}; allowed: the same of each.")
        names = tuple(
            name + (str(list(place)) if place else "")
            for name, values in what.items()
            for place in np.ndindex(*values.shape[1:])
        )
        return np.concatenate(columns, axis=1), chains, names
    with in_precision_of(target):
        try:
            rows = {name: jnp.asarray(values, float) for name, values in what.items()}
            theta = jax.jit(jax.vmap(target.unconstrain))(rows)
        except KeyError as error:
            raise ValueError(f"draws have no values of {short(error)}; there are: {', '.join(what)}.") from None
    return np.asarray(theta), chains, None


def _law(fit: Fit, times: int) -> float:
    """Return the Stein trace of the method's law with so many times the particles; NaN if there is none.

    Only a method that ends as a regular simplex has the Stein trace of its law on other densities too.
    """
    spec = fit.recipe.spec
    facts = METHODS[spec.method].facts
    knobs = {name: knob.default for name, knob in spec.knobs().items()} | dict(fit.recipe.knobs)
    return float(facts.law(spec.dim, times * len(fit.draws), knobs)) if facts.simplex else math.nan
