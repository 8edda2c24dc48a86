"""The moving part of a stage, packed as one float32 vector for each frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stein_core import Frame
from steinlab.stage.crowd import DRAWN, MANY, density


class Panel(NamedTuple):
    """Hold what moves on one card.

    Args:
        step: number of the step.
        metrics: K floats, NaN if undefined.
        rows: (m, 9) of x, y, sd_x, sd_y, attract_x, attract_y, repulse_x, repulse_y, correlation of x and y; positions
            and sds in the units of the extent, forces in any one unit.
        has_scale: whether the sd columns are used.
        background: index of the scene's background under it.
        fixed: (k, 2) exact fixed points to mark.
        noisy: whether the forces are estimates from draws; the browser then draws their mean over recent frames.
    """

    step: int
    metrics: Sequence[float]
    rows: np.ndarray
    has_scale: bool
    background: int = 0
    fixed: np.ndarray = np.empty((0, 2))
    noisy: bool = False


def pack(panels: Sequence[Panel], run: int = 0) -> np.ndarray:
    """Pack one frame as a float32 vector; element 0 is left for the `Streamer`.

    Of more than `MANY` rows it has the density, see `crowd.density`, and the first `DRAWN` rows.

    Args:
        panels: one for each card.
        run: a number that changes with each run, so that the browser fits the scale of the arrows again.
    """
    parts = [[0, len(panels), run]]
    for panel in panels:
        crowd, drawn = (), panel.rows
        if len(drawn) > MANY:
            crowd, drawn = density(drawn[:, :2]), drawn[:DRAWN]
        flags = panel.has_scale + 2 * panel.noisy + 4 * bool(len(crowd))
        head = [len(drawn), panel.step, flags, panel.background, len(panel.metrics), len(panel.fixed)]
        parts += [head, panel.metrics, np.ravel(panel.fixed), crowd, np.ravel(drawn)]
    return np.concatenate(parts).astype(np.float32)


def rows(frame: Frame, axes: tuple[int, int] = (0, 1)) -> np.ndarray:
    """Return what the stage draws of a frame, (m, 9): position, sd, attraction, repulsion in two coordinates, and the
    correlation of the two, which is known of the first two alone."""
    d = frame.locations.shape[1]
    shown = list(axes)[: min(d, 2)]
    flat = np.zeros((len(frame.locations), 4, 2), np.float32)
    for k, values in enumerate((frame.locations, frame.scales, frame.attract[:, :d], frame.repulse[:, :d])):
        flat[:, k, : len(shown)] = values[:, shown]
    return np.column_stack([flat.reshape(-1, 8), frame.correlation])
