"""One run, recorded at about 60 steps: what its particles' norms, angles and forces do on the way to a simplex."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Callable, NamedTuple

import numpy as np

from stein_core.contract.recipe import Recipe
from stein_core.contract.spec import target_of
from stein_core.runs.cache import stream

SHOTS = 60  # kept of a run, geometrically spaced: most happens at first
LOOKS = 600  # frames that they are picked from
LEVELS = (0.0, 0.25, 0.5, 0.75, 1.0)  # the quantiles of a shot


class Shot(NamedTuple):
    """One step of a recording.

    Locations are relative to the target's mean. norms, cosines (5,): LEVELS of |x| / sqrt(d), and of the cosines of all
    pairs, NaN for a single particle. plane (m, 2): the first two coordinates. attraction, repulsion, force: sizes.
    """

    step: int
    norms: np.ndarray
    cosines: np.ndarray
    plane: np.ndarray
    attraction: float
    repulsion: float
    force: float


class Recording(NamedTuple):
    """A run's shots in order. sd (2,): the target's standard deviations in the first two coordinates, or None."""

    recipe: Recipe
    shots: list[Shot]
    sd: np.ndarray | None


def record(recipe: Recipe, steps: int, report: Callable[[int], None] = lambda step: None) -> Recording:
    """Repeat a run for `steps` steps, and keep shots at geometric steps.

    Args:
        recipe: what to repeat, its changes included.
        steps: how many steps.
        report: report(step) is called with each frame that is looked at, at most 601.

    Raises:
        ValueError: the recipe adds or removes particles, or the program does not fit into memory.
    """
    if edits := [name for _, name, _ in recipe.changes if name in ("add", "remove")]:
        raise ValueError(f"changes: {edits[0]!r} changes the number of particles; allowed: knobs and moves.")
    target = target_of(recipe.spec)
    mean = target.start.center if target.truth.mean is None else target.truth.mean
    marks = {0, *np.geomspace(1, max(steps, 1), SHOTS).round().astype(int).tolist()}
    due, shots = 0, []
    for frame in stream(recipe, steps, max(1, steps // LOOKS), measure=("attraction", "repulsion", "force")):
        report(frame.step)
        passed = sum(mark <= frame.step for mark in marks)
        if passed > due:
            due = passed
            shots.append(shot_of(frame, mean))
    sd = None if target.truth.variance is None else np.sqrt(np.resize(target.truth.variance, 2))
    return Recording(recipe, shots, sd)


def shot_of(frame, mean) -> Shot:
    """What a recording keeps of a frame."""
    x = frame.locations - mean
    norms = np.linalg.norm(x, axis=1)
    unit = x / np.maximum(norms, 1e-30)[:, None]
    cosines = (unit @ unit.T)[np.triu_indices(len(x), 1)]
    plane = np.zeros((len(x), 2))
    plane[:, : min(2, x.shape[1])] = x[:, :2]
    sizes = (frame.metrics[name] for name in ("attraction", "repulsion", "force"))
    quantiles = np.quantile(cosines, LEVELS) if len(cosines) else np.full(len(LEVELS), np.nan)
    return Shot(frame.step, np.quantile(norms / np.sqrt(x.shape[1]), LEVELS), quantiles, plane, *sizes)


def save_recording(path: str | Path, recording: Recording) -> None:
    """Write an .npz with one array a field of Shot, first axis the shot, the sd, and the recipe as JSON text."""
    columns = {name: np.array(column) for name, column in zip(Shot._fields, zip(*recording.shots))}
    sd = [] if recording.sd is None else recording.sd
    np.savez_compressed(path, **columns, sd=sd, recipe=json.dumps(recording.recipe.to_dict()))


def load_recording(path: str | Path) -> Recording:
    """Read what `save_recording` wrote; nothing is unpickled."""
    with np.load(io.BytesIO(Path(path).read_bytes()), allow_pickle=False) as file:
        columns = [file[name].tolist() if file[name].ndim == 1 else file[name] for name in Shot._fields]
        recipe = Recipe.from_dict(json.loads(str(file["recipe"])))
        return Recording(recipe, [Shot(*row) for row in zip(*columns)], file["sd"] if len(file["sd"]) else None)
