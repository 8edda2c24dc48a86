"""Fit a posterior in one call: coordinates, step sizes and stop are chosen here."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import jax
import numpy as np
from tqdm import tqdm

from stein_core.base.errors import short, unknown
from stein_core.base.machine import keep_compiled
from stein_core.contract.common_knobs import MAX_CAPACITY
from stein_core.contract.recipe import Recipe
from stein_core.contract.registry import METHODS, TARGETS
from stein_core.contract.spec import Spec, capacity_for, target_of, whole_number
from stein_core.contract.target import KINDS, Target, in_raw, movable, root_of
from stein_core.contract.types import Frame, State
from stein_core.posterior.fitted import Fit, draws_of
from stein_core.runs.cache import compile
from stein_core.runs.force_left import force_left
from stein_core.runs.runner import Stepper
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
    kwargs: Mapping[str, Any] | None = None,
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
        method: name of a method, for example "smi" or "svgd".
        particles: how many; by default 100 points for SVGD, else 20.
        steps: of a round. Each quarter has a smaller step size: 0.1, 0.03, 0.01, 0.003 standard deviations.
        coordinates: "whitened", "scaled" or "raw".
        knobs: further knob values, for example `{"method.alpha": 0.1}`.
        guide: name of the guide; by default the method's own.
        seed: of the run, and of the start that is sought for a model.
        progress: show a bar; or what is called with the steps that are done, and all that are known to come.
        kwargs: further keyword arguments of the model, which may have the names of these settings: {"seed": 3}.

    Returns:
        The Fit.

    Raises:
        ValueError: a wrong name or value; a model without a start, see `from_numpyro`; a run that diverges; a
            target with more coordinates than a covariance is made of, unless coordinates are raw.
    """
    began, chosen = time.perf_counter(), choices_of(method, particles, guide, coordinates, knobs, seed)
    _keep_programs()
    with jax.enable_x64():
        target = _target(model, arguments, {**keywords, **(kwargs or {})}, seed)
    if target.dim > MOST_DIMS and coordinates != "raw":
        raise ValueError(
            f"the target has {target.dim} coordinates; coordinates = {short(coordinates)!r} needs their covariance. "
            f"Allowed: at most {MOST_DIMS}, or coordinates = 'raw'."
        )
    shared = _Shared(
        method, guide, coordinates, chosen, seed, steps, progress if callable(progress) else _bar(progress)
    )
    with in_precision_of(target):
        whole = target.start.root is not None or coordinates == "raw"
        known = target if whole else replace(target, start=replace(target.start, root=np.diag(target.start.scale)))
        for number in range(1, ROUNDS + 1):
            try:
                done = _round(shared, known, number)
            except Diverged as error:
                along = flat_direction(target)
                raise ValueError(f"{error} {said(along) if along else OTHERWISE}") from None
            again, can = _contradicted(done.z) if coordinates != "raw" else (False, False)
            if not (again and can) or number == ROUNDS or done.log_q is None:
                break
            known = _moved(known, coordinates, done.z)
        left = force_left(done.stepper, done.state, done.knobs)
        shared.tell(number * steps, number * steps)
        draws, log_q = _raw(known, coordinates, done)
        note = target.start.note
        if not jax.config.jax_enable_x64:
            note = f"{note} The target was made in float32, and is fitted in float32.".strip()
    seconds = time.perf_counter() - began
    return Fit(target, draws, log_q, done.recipe, done.frame, left, shared.history, number, not again, seconds, note)


@dataclass
class _Shared:
    """What all rounds of a fit share; stepper has their programs after the first."""

    method: str
    guide: str | None
    coordinates: str
    chosen: dict[str, Any]
    seed: int
    steps: int
    tell: Callable[[int, int], None]
    history: list[dict[str, Any]] = field(default_factory=list)
    stepper: Stepper | None = None


class _Round(NamedTuple):
    """What a round has reached: where its run ended, and draws z (n, d) with their log densities."""

    stepper: Stepper
    recipe: Recipe
    frame: Frame
    state: State
    knobs: Mapping[str, Any]
    z: np.ndarray
    log_q: np.ndarray | None


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


def _measured(spec: Spec) -> tuple[str, ...]:
    """Return the names of the metrics that the history of a fit has."""
    return ("force", "mixture_elbo") if spec.has_density else ("force",)


def _round(shared: _Shared, known: Target, number: int) -> _Round:
    """Run one round in the coordinates that `known` says: a quarter of the steps for each step size."""
    steps, coordinates = shared.steps, shared.coordinates
    standard = known if coordinates == "raw" else movable(known, coordinates)
    capacity = capacity_for(shared.chosen["method.particles"])
    spec = Spec(standard, method=shared.method, guide=shared.guide, draws=20, capacity=capacity)
    at = [quarter * steps // len(STEP_SIZES) for quarter in range(len(STEP_SIZES))]
    changes = [(step, "method.step_size", size) for step, size in zip(at, STEP_SIZES)]
    recipe = Recipe(spec, shared.chosen, shared.seed, tuple(changes))
    shared.stepper = shared.stepper or compile(spec, measure=_measured(spec))
    stepper = shared.stepper.sharing(spec)
    state, now = stepper.reset(recipe.seed, recipe.knobs), dict(recipe.knobs)
    for begin in range(0, steps, piece := max(1, steps // LOOKS)):
        while changes and changes[0][0] <= begin:
            state, now = stepper.change(state, now, *changes.pop(0)[1:])
        goal = min(begin + piece, steps)
        state = stepper.advance(state, now, goal - begin)
        frame = stepper.look(state, now, _measured(spec))
        shared.history.append({"round": number, "step": goal, "step_size": now["method.step_size"], **frame.metrics})
        if not frame.finite or int(state.step) < goal:
            raise Diverged(f"the run diverged at step {int(state.step)}.")
        shared.tell((number - 1) * steps + goal, number * steps)
    return _Round(stepper, recipe, frame, state, now, *draws_of(recipe, frame.particles, shared.seed))


def _contradicted(z: np.ndarray) -> tuple[bool, bool]:
    """Return whether draws (n, d) have other means or spreads than their coordinates say, and whether new coordinates
    can be found from them."""
    eigen = np.sqrt(np.clip(np.linalg.eigvalsh(np.atleast_2d(np.cov(z.T))), 0.0, None))
    other = np.abs(z.mean(axis=0)).max() > FAR or eigen.max() > APART or eigen.min() < 1 / APART
    return bool(other), len(z) > 2 * z.shape[1] and eigen.min() > 1e-3


def _moved(known: Target, coordinates: str, z: np.ndarray) -> Target:
    """Return the target with the mean and the covariance of draws z (n, d) as those of its start."""
    root = root_of(known, coordinates)
    new = root @ np.linalg.cholesky(np.atleast_2d(np.cov(z.T)))
    center = np.asarray(known.start.center, float) + root @ z.mean(axis=0)
    return replace(
        known,
        start=replace(known.start, center=center, scale=np.linalg.norm(new, axis=1), root=new),
        truth=replace(known.truth, variance=None, covariance=None),
    )


def _raw(known: Target, coordinates: str, done: _Round) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the draws of a round in the target's own coordinates, and their log densities."""
    if coordinates == "raw":
        return done.z, done.log_q
    volume = np.linalg.slogdet(root_of(known, coordinates))[1]
    return in_raw(known, coordinates, done.z), None if done.log_q is None else done.log_q - volume
