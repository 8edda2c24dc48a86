"""What a loop tells its page before the first frame: the density, exact draws, and the names of the coordinates."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from stein_core import Spec, Target
from steinlab.stage.scene import density_of

GHOSTS = 150  # exact draws behind the particles
COLOUR = ("#7A3E9D", "#C79BE3")  # of the particles, on a light page and on a dark one


def about_of(spec: Spec | None, target: Target | None, title: str) -> dict[str, Any]:
    """Return what stands still, for `pipe.put`. A loop without a target has a title and a colour."""
    said = {"title": title, "accent": COLOUR}
    if target is None:
        return said
    truth, (x0, x1, y0, y1) = target.truth, target.extent
    center, scale = np.asarray(target.start.center, float), np.asarray(target.start.scale, float)
    spans = [[float(at - 4.5 * wide), float(at + 4.5 * wide)] for at, wide in zip(center, scale)]
    spans[:2] = [[x0, x1], [y0, y1]][: target.dim]
    return {
        **said,
        "coordinates": list(target.coordinates),
        "spans": spans,
        "background": {**density_of(spec), "draws": None},
        "variance": None if truth.variance is None else float(np.mean(truth.variance)),
        "dim": target.dim,
    }


def ghosts_of(target: Target | None) -> np.ndarray:
    """Return exact draws (GHOSTS, d), or none if the target has no sampler."""
    if target is None or target.truth.sample is None:
        return np.empty((0, 0))
    return np.asarray(target.truth.sample(jax.random.key(0), GHOSTS))
