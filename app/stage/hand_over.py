"""What is on a stage, for a file and for the page that checks it."""

from __future__ import annotations

import csv
import io

import numpy as np

from stein_core import METHODS, Recipe
from stein_core.contract.recipe import EDITS
from steinlab.stage.session import Session
from steinlab.stage.training import Snapshot


def runs_of(session: Session) -> list[tuple[str, Recipe, np.ndarray, int]]:
    """Return (label, Recipe with the knobs of this moment, particles (m, p), step) of each method on the stage."""
    setup, capacity = session.shown()
    found = []
    for method, frame in zip(setup.methods, session.frames):
        run = setup.recipe(method, capacity)
        turned = {name: value for _, name, value in run.changes if name not in EDITS}
        recipe = Recipe(run.spec, {**run.knobs, **turned}, run.seed)
        found.append((METHODS[method].label, recipe, np.asarray(frame.particles), frame.step))
    return found


def runs_of_training(snapshot: Snapshot | None) -> list[tuple[str, Recipe, np.ndarray, int]]:
    """Return (label, Recipe with the knobs of this moment, particles (m, p), step) of each method that trains."""
    if snapshot is None:
        return []
    setup = snapshot.setup
    return [
        (METHODS[method].label, recipe, np.asarray(particles)[: recipe.knobs.get("method.particles", 1)], snapshot.step)
        for method, particles in snapshot.particles.items()
        for recipe in [setup.recipe(method)]
    ]


def csv_of(session: Session) -> io.StringIO:
    """Return the numbers of the frame on screen, a row for each particle and method."""
    (setup, _), frames, out = session.shown(), session.frames, io.StringIO()
    d = frames[0].locations.shape[1] if frames else 0
    kinds = ("location", "sd", "attraction", "repulsion")
    writer = csv.writer(out)
    writer.writerow(["method", "step", "particle", *(f"{kind}[{i}]" for kind in kinds for i in range(d))])
    for method, frame in zip(setup.methods, frames):
        table = np.hstack([frame.locations, frame.scales, frame.attract[:, :d], frame.repulse[:, :d]])
        writer.writerows([method, frame.step, i, *row] for i, row in enumerate(table.tolist()))
    out.seek(0)
    return out
