"""Scene of a stage (density, contours, axes and list of read-outs) and the panels that move on it."""

from __future__ import annotations

import base64
from functools import lru_cache
from typing import Mapping, Sequence

import contourpy
import jax
import jax.numpy as jnp
import numpy as np

from app.stage.run import Run
from app.stage.wire import Panel, pack, rows
from app.ui.colours import Look, looks_of
from stein_core import DIAGNOSTICS, METHODS, Spec, target_of
from stein_core.registry import Entry

GRID = 160
MASSES = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99)  # share of the visible mass inside each contour


class Cards:
    """A view (see `app.stage.session.View`) of cards on a `stage.Stage`.

    A subclass has scene(specs), which returns the `scene` of `stage.Stage` and is called on a compile thread; and
    panels(run, metrics), which returns the panels of `wire.pack` and is called on the session's worker thread.
    """

    def pack(self, run: Run, metrics: Sequence[Mapping[str, float]], begun: int) -> np.ndarray:
        return pack(self.panels(run, metrics), begun)


class SideBySide(Cards):
    """View of page Particles: a card for each method over the target's density.


    Args:
        metrics: names of the read-outs; by default all that are live.
    """

    def __init__(self, metrics: Sequence[str] | None = None):
        self.metrics = live() if metrics is None else [DIAGNOSTICS[name] for name in metrics]

    def scene(self, specs: Sequence[Spec]) -> dict:
        return {
            "cards": [
                card(METHODS[spec.method].label, self.metrics, accent=look)
                for look, spec in zip(looks_of([spec.method for spec in specs]), specs)
            ],
            "backgrounds": [density(specs[0].target, specs[0].dim)],
        }

    def panels(self, run: Run, metrics: Sequence[Mapping[str, float]]) -> list[Panel]:
        return [
            Panel(
                frame.step,
                [values[entry.name] for entry in self.metrics],
                rows(frame),
                stepper.spec.has_density,
                noisy=stepper.spec.has_density,
            )
            for stepper, frame, values in zip(run.steppers, run.frames, metrics)
        ]


def live() -> list[Entry]:
    """Return the diagnostics that a stage shows: those not registered with `live=False`."""
    return [entry for entry in DIAGNOSTICS.entries() if entry.facts.live]


def card(
    title: str, metrics: Sequence[Entry], *, accent: Look, background: int = 0, edit: bool = True, note: str = ""
) -> dict:
    """Return one of a scene's "cards"; see `stage.Stage`."""
    read_outs = [{"name": e.name, "label": e.label, "log": e.facts.log, "help": e.summary} for e in metrics]
    return {
        "title": title,
        "metrics": read_outs,
        "accent": [accent.colour, accent.dark],
        "background": background,
        "edit": edit,
        "note": note,
    }


@lru_cache(maxsize=64)
def density(name: str, dim: int) -> dict:
    """Return a scene's background for a target.

    Its contours hold 10 to 99 % of the visible mass; in one dimension it has the curve of the density instead. Above
    two dimensions it is the slice through the target's centre.

    Args:
        name: of the target.
        dim: its dimension.
    """
    target = target_of(Spec(name, dim))
    x0, x1, y0, y1 = target.extent
    density = jax.jit(jax.vmap(target.log_density))
    x = np.linspace(x0, x1, GRID)
    if dim == 1:
        log_p = np.asarray(density(jnp.float32(x[:, None])), float)
        p = np.exp(log_p - log_p.max())
        curve = np.stack([x, p], axis=1).ravel().round(4).tolist()
        labels = [target.coordinates[0], "density / its maximum"]
        return {"extent": [x0, x1, -0.15, 1.15], "labels": labels, "contours": [], "image": None, "curve": curve}

    y = np.linspace(y0, y1, GRID)
    points = np.tile(np.float32(target.center), (GRID * GRID, 1))
    points[:, :2] = np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2)
    log_p = np.asarray(density(points), float).reshape(GRID, GRID)
    p = np.exp(log_p - log_p.max())
    ranked = np.sort(p.ravel())[::-1]
    shares = np.cumsum(ranked) / ranked.sum()
    levels = [ranked[np.searchsorted(shares, mass)] for mass in MASSES]
    generator = contourpy.contour_generator(x, y, p)
    lines = [line.ravel().round(4).tolist() for level in levels for line in generator.lines(level)]
    shade = np.uint8(255 * np.sqrt(p))  # the square root keeps a wide, low mode visible beside a sharp one
    labels = list(target.coordinates[:2])
    if dim > 2:
        labels[0] += f"   (contours: slice through the centre of {dim} dimensions)"
    image = {"width": GRID, "height": GRID, "data": base64.b64encode(shade.tobytes()).decode()}
    equal = target.log_normalizer is not None  # the coordinates of a posterior have units of their own
    return {
        "extent": [x0, x1, y0, y1],
        "equal": equal,
        "labels": labels,
        "contours": lines,
        "image": image,
        "curve": None,
    }
