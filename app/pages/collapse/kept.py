"""A sweep that is kept: one page that plays how its curves fill in, run by run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from steinlab.pages.collapse.chart import Chart
from steinlab.pages.collapse.grid import AXES, QUANTITIES, Grid
from steinlab.pages.collapse.laws import Curve
from steinlab.pages.collapse.parts import legend_of
from steinlab.pages.collapse.series import all_series, place, points_of, series_of
from steinlab.stage.replay import DATA, chart_page
from steinlab.ui.colours import pairs

LASTS, RATE = 8, 30  # seconds that a replay lasts at least, and its most frames a second
LINES = {"solid": "none", "dashed": "6 3", "dotdash": "6 3 1.5 3"}  # Bokeh's names of dashes, as SVG has them


def replay_of(
    grid: Grid,
    axis: str,
    quantity: str,
    rows: Mapping[bool, Iterable[dict[str, Any]]],
    curves: Sequence[Curve],
    dark: bool,
) -> tuple[str, int]:
    """Return a page that plays a sweep, and how many runs it has.

    Args:
        grid, axis, quantity: what is shown.
        rows: the runs that shipped (True), and those of this machine (False) in the order in which they came.
        curves: of `steinlab.pages.collapse.laws.curves_of`.
        dark: the theme.

    Raises:
        ValueError: no run has a point on this chart.
    """
    shipped = sorted(rows[True], key=lambda row: (place(axis, row["dim"], row["particles"]), row["seed"]))
    series, chart = all_series(grid, axis), Chart(QUANTITIES[quantity][3], lambda point: None)
    chart.take(grid, series, quantity, axis)
    cells, points = [], {}
    for row, before in [*((row, True) for row in shipped), *((row, False) for row in rows[False])]:
        name = before, series_of(row, axis), row["dim"], row["particles"]
        group = points.setdefault(name, [len(points), []])
        group[1].append(row)
        for point in points_of(group[1], quantity, axis, before):
            if point.mean > 0 or not chart.log:
                drawn = chart.row(point)
                place_of = [_short(drawn[end]) for end in ("x", "y", "low", "high")]
                cross = int(drawn["marker"] == "x" and point.stopped == "diverged")
                cells.append([group[0], chart.order[point.series], *place_of, drawn["fill"], drawn["size"] / 2, cross])
    if not cells:
        raise ValueError(f"{quantity} has no value in any of these runs; allowed: another y, or more runs.")
    flags = (True, False)
    chart.show([p for flag in flags for p in points_of(rows[flag], quantity, axis, flag)], list(curves), {})
    ends = {(x, y): text for x, y, text in zip(*chart.labels.data.values())}
    known, lawful = pairs(), {curve.series for curve in curves}
    kept = {
        "scene": {
            "panels": [{"label": "Variance collapse"}],
            "x": _ends(chart.figure.x_range),
            "y": _ends(chart.figure.y_range),
            "linear": not chart.log,
            "truth": 0,
            "labels": [AXES[axis]],
            "label": f"{QUANTITIES[quantity][1]} against {AXES[axis]}",
            "title": f"{QUANTITIES[quantity][1]} · {grid.common()}",
            "names": [{"name": chart.names[one], "colour": _both(chart.looks[one])} for one in series],
            "series": [{"colour": _both(chart.looks[one]), "joins": one not in lawful} for one in series],
            "lines": [
                {
                    "at": _at(xs, ys),
                    "colour": [colour, known[colour]],
                    "dash": LINES[dash],
                    "width": width,
                    "name": ends.get((xs[-1], ys[-1]), ""),
                }
                for xs, ys, colour, dash, width in zip(*chart.lines.data.values())
                if dash in LINES
            ],
            "areas": [_at(xs, ys) for xs, ys in zip(*chart.band.data.values())],
            "others": [
                {"at": _at([x], [y])[0], "colour": ["#888888"] * 2, "cross": 1}
                for x, y in zip(*chart.published.data.values())
            ],
        },
        "cells": cells,
        "rate": min(RATE, len(cells) / LASTS),
        "legend": legend_of(quantity),
        "dark": dark,
    }
    text = json.dumps(kept, separators=(",", ":"), allow_nan=False).replace("</", "<\\/")
    return chart_page().replace(DATA, text, 1), len(cells)


def _ends(range_) -> list[float]:
    return [range_.start, range_.end]


def _both(look) -> list[str]:
    return [look.colour, look.dark]


def _at(xs: Sequence[float], ys: Sequence[float]) -> list[list[float]]:
    return [[_short(x), _short(y)] for x, y in zip(xs, ys)]


@lru_cache(maxsize=4096)
def _short(value: float) -> float:
    return float(np.format_float_scientific(value, 4))
