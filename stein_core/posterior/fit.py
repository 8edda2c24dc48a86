"""Fit a posterior in one call: coordinates, step sizes and stop are chosen here."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import numpy as np
from tqdm import tqdm

from stein_core.base.errors import unknown
from stein_core.base.machine import keep_compiled
from stein_core.contract.facts import MAX_CAPACITY
from stein_core.contract.recipe import Recipe
from stein_core.contract.registry import METHODS, TARGETS
from stein_core.contract.spec import Spec, capacity_for, target_of, whole_number
from stein_core.contract.target import KINDS, LARGE, Target, in_raw, log_volume, movable, root_of, times
from stein_core.contract.types import State
from stein_core.posterior.fitted import Fit
from stein_core.posterior.regression import implied
from stein_core.posterior.rounds import WIDE, Diverged, Round, Rounds, run_round, spec_of
from stein_core.runs.force_left import estimates, force_left
from stein_core.targets.own.decentring import best_target
from stein_core.targets.own.density import in_precision_of
from stein_core.targets.own.rays import flat_direction, said

FULL_DIMS = 30  # coordinates, up to which guides of SMI are full normals
MOST_ROUNDS = 4  # at most: of new coordinates, or of more steps
FAR, APART = 0.5, 1.5  # a mean (in sd) and a ratio of sds from which on the coordinates are found anew
JUDGED, JUDGED_EACH = 1000, 20  # draws with which the scores must agree, at least; and for each coordinate
SHIFTED, OFF = 0.1, 1.1  # an implied shift (in sd) and a ratio of sds from which on a run goes on
OTHERWISE = "Try a smaller alpha, or other coordinates."
DEFAULTS = {
    "svgd": {"method.particles": 100, "bandwidth.rule": "median"},
    "smi": {"method.particles": 20, "method.alpha": 0.05},
}


def fit(
    model: Callable | Target | str,
    *arguments,
    method: str = "smi",
    particles: int | None = None,
    steps: int | None = None,
    coordinates: str | None = None,
    knobs: Mapping[str, Any] | None = None,
    guide: str | None = None,
    seed: int = 0,
    progress: bool | Callable[[int, int], None] = True,
    kwargs: Mapping[str, Any] | None = None,
    **keywords,
) -> Fit:
    """Fit a posterior with a Stein method, in float64 if the target allows that.

    A Target that `from_numpyro` has made in float32 stays in float32; `Fit.note` then says so. A model of which
    `from_numpyro` says that the mode is no place to start is decentred if that helps, see `decentring.best_target`.

    The target is first brought to standardised coordinates by its start (see `from_numpyro`). If the fit then finds
    other means or spreads than these coordinates say, they are found anew from its draws. If its draws are not yet as
    the scores say, it goes on with more steps, while that helps. Of the last two rounds it keeps the one with the
    larger evidence bound. There are at most four rounds. A run of points ends when it is at rest.

    Compiled programs are kept in the cache folder, see `machine.keep_compiled`, so that the next process compiles less.

    Args:
        model: a NumPyro model, a Target, or the name of a registered target.
        arguments, keywords: of the model.
        method: name of a method, for example "smi" or "svgd".
        particles: how many; by default 100 points for SVGD, else 20.
        steps: of a round; by default 500 for guides, 2,000 for points. The step size falls from 0.05 (guides) or 0.1
            standard deviations to 0.01 or 0.003.
        coordinates: "whitened", "scaled" or "raw"; by default whitened up to 2,000 coordinates, and scaled above.
        knobs: further knob values, for example `{"method.alpha": 0.1}`.
        guide: name of the guide; by default full normals for SMI in at most 30 coordinates, else the method's own.
        seed: of the run, and of the start that is sought for a model.
        progress: show a bar; or what is called with the steps that are done, and all that are known to come.
        kwargs: further keyword arguments of the model, which may have the names of these settings: {"seed": 3}.

    Returns:
        The Fit.

    Raises:
        ValueError: a wrong name or value; a model without a start, see `from_numpyro`; a run that diverges; a
            target with more coordinates than a covariance is made of, unless coordinates are raw.
    """
    steps = None if steps is None else whole_number("steps", steps, 4, 10**7)
    began, chosen = time.perf_counter(), choices_of(method, particles, guide, coordinates or "whitened", knobs, seed)
    keep_programs()
    with jax.enable_x64():
        target = _target(model, arguments, {**keywords, **(kwargs or {})}, seed)
    coordinates = coordinates or ("whitened" if target.dim <= LARGE else "scaled")
    if target.dim > LARGE and coordinates == "whitened":
        raise ValueError(
            f"coordinates = 'whitened' needs a covariance, and the target has {target.dim} coordinates. Allowed: "
            f"'scaled' or 'raw' above {LARGE}."
        )
    spec = partial(spec_of, method, _guide(method, guide, target.dim), chosen["method.particles"])
    chosen = chosen if coordinates == "raw" else WIDE | chosen
    rounds = Rounds(spec, chosen, seed, steps, progress if callable(progress) else _bar(progress))
    with in_precision_of(target):
        whole = target.start.root is not None or coordinates == "raw" or target.dim > LARGE
        known = target if whole else replace(target, start=replace(target.start, root=np.diag(target.start.scale)))
        run = partial(_run, rounds, target)
        done, best = run(known, coordinates, None), None
        for number in range(1, MOST_ROUNDS + 1):
            if done.log_q is None:
                break
            again, can = contradicted(done.z) if coordinates != "raw" else (False, False)
            if again and can and number < MOST_ROUNDS:
                known, best = _moved(known, coordinates, done.z), None
                done = run(known, coordinates, None)
                continue
            gap, elbo = _judged(rounds, done)
            if best and gap >= best[1]:
                done = done if elbo >= best[2] else best[0]
                break
            if gap <= 1 or number == MOST_ROUNDS:
                break
            best = done, gap, elbo
            done = run(known, coordinates, done.state)
        again = coordinates != "raw" and contradicted(done.z)[0]
        left = force_left(done.stepper, done.state, done.knobs)
        rounds.gradients += estimates(done.stepper) * done.stepper.gradients * (left is not None)
        rounds.tell(rounds.all, rounds.all)
        draws, log_q = _raw(known, coordinates, done)
        note = target.start.note
        if not jax.config.jax_enable_x64:
            note = f"{note} The target was made in float32, and is fitted in float32.".strip()
    return Fit(
        target,
        draws,
        log_q,
        done.recipe,
        done.frame,
        left,
        rounds.history,
        rounds.count,
        consistent=not again,
        seconds=time.perf_counter() - began,
        note=note,
        gradients=rounds.gradients + target.start.gradients,
    )


def choices_of(method, particles, guide, coordinates, knobs, seed) -> dict[str, Any]:
    """Return the knobs of a fit, after a check of all that `fit` takes but the model: a search for a start takes long.

    Raises:
        ValueError: a wrong name or value.
    """
    if method not in METHODS:
        raise unknown("method", method, METHODS)
    if coordinates not in KINDS:
        raise unknown("coordinates", coordinates, KINDS)
    chosen = DEFAULTS.get(method, {"method.particles": 20}) | dict(knobs or {})
    count = chosen["method.particles"] if particles is None else particles
    chosen["method.particles"] = whole_number("method.particles", count, 1, MAX_CAPACITY)
    capacity = capacity_for(chosen["method.particles"])
    Recipe(Spec(TARGETS["gaussian"].make(1), method=method, guide=guide, capacity=capacity), chosen, seed)
    return chosen


def keep_programs() -> None:
    """Keep compiled programs, unless JAX has a folder for them already, or shall keep none."""
    if jax.config.jax_enable_compilation_cache and not jax.config.jax_compilation_cache_dir:
        try:
            keep_compiled()
        except OSError as error:
            warnings.warn(f"compiled programs are not kept: {error}.", stacklevel=3)


def _target(model, arguments, keywords, seed) -> Target:
    if isinstance(model, str):
        return replace(target_of(Spec(TARGETS[model].name, method="svgd")), name=model)
    return model if isinstance(model, Target) else best_target(model, *arguments, seed=seed, kwargs=keywords)


def _bar(on: bool) -> Callable[[int, int], None]:
    """Return tell(done, total), which moves a bar on a terminal."""
    bar = tqdm(unit="step", disable=None if on else True, leave=False)

    def tell(done, total):
        bar.total = total
        bar.update(done - bar.n)
        if done == total:
            bar.refresh()

    return tell


def _guide(method: str, guide: str | None, dim: int) -> str | None:
    """Return the guide that was asked for, else full normals for SMI if there are few coordinates."""
    return "full" if guide is None and method == "smi" and dim <= FULL_DIMS else guide


def _run(rounds: Rounds, target: Target, known: Target, coordinates: str, state: State | None) -> Round:
    """Run a round in the coordinates that `known` says, from a state or anew.

    Raises:
        ValueError: it diverges; the message says why if that can be told.
    """
    try:
        return run_round(rounds, known if coordinates == "raw" else movable(known, coordinates), state)
    except Diverged as error:
        along = flat_direction(target)
        raise ValueError(f"{error} {said(along) if along else OTHERWISE}") from None


def _judged(rounds: Rounds, done: Round) -> tuple[float, float]:
    """Return how far the draws of a round are from what their scores say, and the evidence bound E_q[log p - log q].

    The first is the largest implied shift over SHIFTED, or the largest logarithm of an implied ratio of sds over that
    of OFF: above 1, the run should go on.
    """
    z = done.z[: max(JUDGED, JUDGED_EACH * done.z.shape[1])]
    values, scores = rounds.scores(done.recipe.spec.target, z)
    elbo = float(np.mean(values - np.asarray(done.log_q)[: len(z)]))
    elbo = elbo if math.isfinite(elbo) else -math.inf
    if len(z) < z.shape[1] + 2:
        return 0.0, elbo  # too few to tell
    found = implied(z, scores) if np.isfinite(scores).all() else None
    if found is None:
        return math.inf, elbo
    ratio, shift = found
    return float(max(np.abs(shift).max() / SHIFTED, np.abs(np.log(ratio)).max() / math.log(OFF))), elbo


def contradicted(z: np.ndarray) -> tuple[bool, bool]:
    """Return whether draws (n, d) have other means or spreads than their coordinates say, and whether new coordinates
    can be found from them."""
    if len(z) < 2:
        return False, False  # one point has no spread
    if z.shape[1] > LARGE:
        eigen = z.std(axis=0, ddof=1)
    else:
        eigen = np.sqrt(np.clip(np.linalg.eigvalsh(np.atleast_2d(np.cov(z.T))), 0.0, None))
    other = np.abs(z.mean(axis=0)).max() > FAR or eigen.max() > APART or eigen.min() < 1 / APART
    enough = z.shape[1] > LARGE or len(z) > 2 * z.shape[1]
    return bool(other), enough and eigen.min() > 1e-3


def _moved(known: Target, coordinates: str, z: np.ndarray) -> Target:
    """Return the target with the mean and the covariance of draws z (n, d) as those of its start."""
    root = root_of(known, coordinates)
    center = np.asarray(known.start.center, float) + times(z.mean(axis=0), root)
    if root.ndim == 1:
        moved = replace(known.start, center=center, scale=root * z.std(axis=0, ddof=1))
    else:
        new = root @ np.linalg.cholesky(np.atleast_2d(np.cov(z.T)))
        moved = replace(known.start, center=center, scale=np.linalg.norm(new, axis=1), root=new)
    return replace(
        known,
        start=moved,
        truth=replace(known.truth, variance=None, covariance=None),
    )


def _raw(known: Target, coordinates: str, done: Round) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the draws of a round in the target's own coordinates, and their log densities."""
    if coordinates == "raw":
        return done.z, done.log_q
    volume = log_volume(root_of(known, coordinates))
    return in_raw(known, coordinates, done.z), None if done.log_q is None else done.log_q - volume
