"""What is on a stage, for a page that checks it."""

from __future__ import annotations

import numpy as np

from app.stage.session import Session
from stein_core import METHODS, Recipe
from stein_core.recipe import EDITS


def runs_of(session: Session) -> list[tuple[str, Recipe, np.ndarray]]:
    """Return (label, Recipe with the knobs of this moment, particles (m, p)) of each method on the stage."""
    setup, capacity = session.shown()
    found = []
    for method, frame in zip(setup.methods, session.frames):
        run = setup.recipe(method, capacity)
        turned = {name: value for _, name, value in run.changes if name not in EDITS}
        recipe = Recipe(run.spec, {**run.knobs, **turned}, run.seed)
        found.append((METHODS[method].label, recipe, np.asarray(frame.particles)))
    return found
