"""NUTS on a regression in the background, and the references that it has made on this server."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np

from stein_core import Recipe
from stein_core.papers.wave_nuts import Reference, load_reference
from steinlab.server.jobs import Job

CHAINS, WARMUP, SAMPLES = 4, 500, 500
THINNED = 4  # one draw in so many is kept
KEPT = 20  # references computed here that the server remembers

_made: dict[tuple, Reference] = {}
_lock = threading.Lock()


def made_here(target: str, posterior: tuple) -> Reference | None:
    """Return NUTS's answer to a posterior if a job has computed it on this server.

    Args:
        target: its name.
        posterior: what the answer depends on.
    """
    with _lock:
        return _made.get((target, posterior))


class NutsJob(Job):
    """NUTS on a regression; done and total are steps, and nothing is kept of one that is cancelled.

    Args:
        recipe: of any method on the target, whose knobs of the target count.
        posterior: what the answer depends on.
        x: (k,) the grid of the target.
    """

    label = "NUTS"

    def __init__(self, recipe: Recipe, posterior: tuple, x: np.ndarray):
        super().__init__(WARMUP + SAMPLES, [recipe])
        self.key, self.x = (recipe.spec.target, posterior), x

    def arguments(self, folder: Path) -> list[str]:
        counts = {"chains": CHAINS, "warmup": WARMUP, "samples": SAMPLES, "every": THINNED}
        options = {**counts, "recipe": "-", "out": folder / "nuts.npz"}
        return ["nuts", *(f"--{name}={value}" for name, value in options.items())]

    def follow(self, folder: Path) -> None:
        if made_here(*self.key) is None:  # else another visitor's job has made it
            super().follow(folder)

    def collect(self, folder: Path) -> None:
        made = load_reference(folder / "nuts.npz")
        with _lock:
            _made[self.key] = Reference(self.x, made.values, {**made.about, "made": "computed here"})
            while len(_made) > KEPT:
                del _made[next(iter(_made))]
