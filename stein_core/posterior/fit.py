"""Fit a posterior in one call: coordinates, step sizes and stop are chosen here."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import jax
import numpy as np
from tqdm import tqdm

from stein_core.base.errors import short, unknown
from stein_core.base.machine import keep_compiled
from stein_core.contract.common_knobs import MAX_CAPACITY
from stein_core.contract.recipe import Recipe
from stein_core.contract.registry import METHODS, TARGETS
from stein_core.contract.spec import Spec, capacity_for, target_of, whole_number
from stein_core.contract.target import KINDS, Target, in_raw, precondition, root_of
from stein_core.contract.types import Frame
from stein_core.posterior.fitted import Fit, draws_of
from stein_core.runs.cache import alone
from stein_core.runs.force_left import force_left
from stein_core.targets.own.decentring import best_target
from stein_core.targets.own.density import in_precision_of
from stein_core.targets.own.rays import flat_direction, said

STEP_SIZES = (0.1, 0.03, 0.01, 0.003)  # Adam's, in standard deviations; each for a quarter of the steps
MOST_DIMS = 2000  # coordinates, above which no covariance of them is made
ROUNDS = 4  # of new coordinates, at most
LOOKS = 20  # at the metrics, in a round
FAR, APART = 0.5, 1.5  # a mean (in sd) and a ratio of sds from which on the coordinates are found anew
OTHERWISE = "Try a smaller alpha, or other coordinates."
DEFAULTS = {
    "svgd": {"method.particles": 100, "bandwidth.rule": "median"},
    "smi": {"method.particles": 20, "method.alpha": 0.05},
}


class Diverged(Exception):
    """A run has particles that are not finite."""


def fit(
    model: Callable | Target | str,
    *arguments,
    method: str = "smi",
    particles: int | None = None,
    steps: int = 2000,
    coordinates: str = "whitened",
    knobs: Mapping[str, Any] | None = None,
    guide: str | None = None,
    seed: int = 0,
    progress: bool | Callable[[int, int], None] = True,
    **keywords,
) -> Fit:
    """Fit a posterior with a Stein method, in float64 if the target allows that.

    A Target that `from_numpyro` has made in float32 stays in float32; `Fit.note` then says so. A model of which
    `from_numpyro` says that the mode is no place to start is decentred if that helps, see `decentring.best_target`.

    The target is first brought to standardised coordinates by its start (see `from_numpyro`). If the fit then finds
    other means or spreads than these coordinates say, they are found anew from its draws, at most three times.

    Compiled programs are kept in the cache folder, see `machine.keep_compiled`, so that the next process compiles less.

    Args:
        model: a NumPyro model, a Target, or the name of a registered target.
        arguments, keywords: of the model.
        method: name of a method, "smi" or "svgd" say.
        particles: how many; by default 100 points for SVGD, else 20.
        steps: of a round. Each quarter has a smaller step size: 0.1, 0.03, 0.01, 0.003 standard deviations.
        coordinates: "whitened", "scaled" or "raw".
        knobs: further knob values, `{"method.alpha": 0.1}` say.
        guide: name of the guide; by default the method's own.
        seed: of the run, and of the start that is sought for a model.
        progress: show a bar; or what is called with the steps that are done, and all that are known to come.

    Returns:
        The Fit.

    Raises:
        ValueError: a wrong name or value; a model without a start, see `from_numpyro`; a run that diverges; a
            target with more coordinates than a covariance is made of, unless coordinates are raw.
    """
    began, chosen = time.perf_counter(), choices_of(method, particles, guide, coordinates, knobs, seed)
    _keep_programs()
    with jax.enable_x64():
        target = _target(model, arguments, keywords, seed)
    if target.dim > MOST_DIMS and coordinates != "raw":
        raise ValueError(
            f"the target has {target.dim} coordinates; coordinates = {short(coordinates)!r} needs their covariance. "
            f"Allowed: at most {MOST_DIMS}, or coordinates = 'raw'."
        )
    note = target.note
    with in_precision_of(target):
        if not jax.config.jax_enable_x64:
            note = f"{note} The target was made in float32, and is fitted in float32.".strip()
        whole = target.root is not None or coordinates == "raw"
        known = target if whole else replace(target, root=np.diag(target.scale))
        history: list[dict[str, Any]] = []
        tell = progress if callable(progress) else _bar(progress)
        for number in range(1, ROUNDS + 1):
            standard = precondition(known, coordinates)
            spec = Spec(
                standard, method=method, guide=guide, draws=20, capacity=capacity_for(chosen["method.particles"])
            )
            at = [number * steps // len(STEP_SIZES) for number in range(len(STEP_SIZES))]
            changes = tuple((step, "method.step_size", size) for step, size in zip(at, STEP_SIZES))
            recipe = Recipe(spec, chosen, seed, changes)
            try:
                frame, rest = _run(recipe, steps, history, number, tell)
            except Diverged as error:
                along = flat_direction(target)
                raise ValueError(f"{error} {said(along) if along else OTHERWISE}") from None
            z, log_q = draws_of(recipe, frame.particles, seed)
            if coordinates == "raw":
                moved = False
                break
            mean, cov = z.mean(axis=0), np.atleast_2d(np.cov(z.T))
            eigen = np.sqrt(np.clip(np.linalg.eigvalsh(cov), 0.0, None))
            moved = np.abs(mean).max() > FAR or eigen.max() > APART or eigen.min() < 1 / APART
            wide = len(z) > 2 * target.dim and eigen.min() > 1e-3
            if not moved or number == ROUNDS or not wide or log_q is None:
                break
            root, center = root_of(known, coordinates), np.asarray(known.center, float)
            new = root @ np.linalg.cholesky(cov)
            known = replace(
                known,
                center=center + root @ mean,
                root=new,
                scale=np.linalg.norm(new, axis=1),
                variance=None,
                covariance=None,
            )
        left = rest()
        tell(number * steps, number * steps)
        theta, volume = z, 0.0
        if coordinates != "raw":
            theta, volume = in_raw(known, coordinates, z), np.linalg.slogdet(root_of(known, coordinates))[1]
    return Fit(
        target,
        theta,
        None if log_q is None else log_q - volume,
        recipe,
        frame,
        left,
        history,
        number,
        not moved,
        time.perf_counter() - began,
        note,
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


def _keep_programs() -> None:
    """Keep compiled programs, unless JAX has a folder for them already, or shall keep none."""
    if jax.config.jax_enable_compilation_cache and not jax.config.jax_compilation_cache_dir:
        try:
            keep_compiled()
        except OSError as error:
            warnings.warn(f"compiled programs are not kept: {error}.", stacklevel=3)


def _target(model, arguments, keywords, seed) -> Target:
    if isinstance(model, str):
        return replace(target_of(Spec(TARGETS[model].name, method="svgd")), name=model)
    return model if isinstance(model, Target) else best_target(model, *arguments, seed=seed, **keywords)


def _bar(on: bool) -> Callable[[int, int], None]:
    """Return tell(done, total), which moves a bar on a terminal."""
    bar = tqdm(unit="step", disable=None if on else True, leave=False)

    def tell(done, total):
        bar.total = total
        bar.update(done - bar.n)
        if done == total:
            bar.refresh()

    return tell


def _run(recipe: Recipe, steps: int, history: list, number: int, tell: Callable) -> tuple[Frame, Callable]:
    """Take the steps of a recipe, and note its metrics on the way. Return the last frame, and what measures the force
    that is left."""
    stepper, knobs = alone(recipe.spec), dict(recipe.knobs)
    state, changes = stepper.reset(recipe.seed, knobs), list(recipe.changes)
    measure = ("force", "mixture_elbo") if recipe.spec.has_density else ("force",)
    for at in range(0, steps, piece := max(1, steps // LOOKS)):
        while changes and changes[0][0] <= at:
            _, name, value = changes.pop(0)
            knobs[name] = value
        goal = min(at + piece, steps)
        state = stepper.advance(state, knobs, goal - at)
        frame = stepper.look(state, knobs, measure)
        history.append({"round": number, "step": goal, "step_size": knobs["method.step_size"], **frame.metrics})
        if not frame.finite or int(state.step) < goal:
            raise Diverged(f"the run diverged at step {int(state.step)}.")
        tell((number - 1) * steps + goal, number * steps)
    return frame, partial(force_left, stepper, state, knobs)
