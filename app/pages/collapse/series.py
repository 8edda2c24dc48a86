"""Points and series of the page "Variance collapse", as plain values.

A series is what one colour shows: a method with its settings. Along the x axis runs the dimension d, gamma = d / n at a
fixed n, or the particle count n at a fixed d.
"""

from __future__ import annotations

import csv
import io
from itertools import product
from typing import Any, Iterable, Mapping, NamedTuple

import numpy as np

from stein_core import FORCE_SCALES, METHODS
from stein_core.sweep.keys import idle_knobs
from steinlab.pages.collapse.grid import Grid, text_of


class Series(NamedTuple):
    """One colour. n is None if the x axis runs over it, else d is. alpha, kernel, rule and force_scale are None if the
    method has none."""

    method: str
    d: int | None
    n: int | None
    alpha: float | None
    kernel: str | None
    rule: str | None
    force_scale: str | None


class Point(NamedTuple):
    """Runs that differ in the seed alone. low, high: mean -+ the standard deviation over seeds (two seeds: their two
    values; one: the mean). rows: the runs. shipped: they are those of the reference file."""

    series: Series
    d: int
    n: int
    mean: float
    low: float
    high: float
    rows: list[dict]
    shipped: bool

    @property
    def stopped(self) -> str:
        """The worst end of its runs."""
        return max((row["stopped"] for row in self.rows), key=("converged", "steps", "diverged").index)

    @property
    def spread(self) -> str:
        """The error bar in words."""
        if len(self.rows) < 2:
            return ""
        if len(self.rows) == 2:
            return f" ({self.low:.4g} to {self.high:.4g})"
        return f" ± {self.high - self.mean:.2g}"


def series_of(row: Mapping[str, Any], axis: str) -> Series:
    """The series that a row belongs to."""
    knobs = row["recipe"]["knobs"]
    scales = {knob.default for knob in METHODS[row["method"]].knobs if knob.name == "force_scale"}
    scale = knobs.get("method.force_scale", *scales) if scales else None
    along = (row["dim"], None) if axis == "particles" else (None, row["particles"])
    idle = idle_knobs(row["method"])  # a stored row may have any value there
    kernel, rule = (
        None if knob in idle else row[name] for knob, name in (("kernel.name", "kernel"), ("bandwidth.rule", "rule"))
    )
    return Series(row["method"], *along, row["alpha"], kernel, rule, scale)


def points_of(rows: Iterable[Mapping], quantity: str, axis: str, shipped: bool = False) -> list[Point]:
    """The points of rows, by series and along the axis; a row without the quantity gives none. Methods with a single
    particle have no n, and so no place on the axes gamma and n."""
    groups: dict[tuple, list] = {}
    for row in rows:
        if row.get(quantity) is None or axis != "dim" and METHODS[row["method"]].facts.single:
            continue
        groups.setdefault((series_of(row, axis), row["dim"], row["particles"]), []).append(row)
    points = []
    for (series, d, n), group in groups.items():
        group.sort(key=lambda row: row["seed"])
        values = np.array([row[quantity] for row in group if row["stopped"] != "diverged"] or [group[0][quantity]])
        mean = values.mean()
        spread = values.std(ddof=1) if len(values) > 2 else 0.0
        low, high = (values.min(), values.max()) if len(values) == 2 else (mean - spread, mean + spread)
        points.append(Point(series, d, n, mean, low, high, group, shipped))
    order = list(METHODS)
    return sorted(points, key=lambda p: (order.index(p.series.method), str(p.series), p.d, p.n))


def place(axis: str, d: float, n: float) -> float:
    """Where a run stands on the x axis."""
    return {"dim": d, "gamma": d / n, "particles": n}[axis]


def all_series(grid: Grid, axis: str) -> tuple[Series, ...]:
    """Every series that the grid gives, in the order of its methods, whether there are rows of it or not."""
    found = {}
    for method in grid.methods:
        entry = METHODS[method]
        if axis != "dim" and entry.facts.single:
            continue
        own, idle = {knob.name for knob in entry.knobs}, idle_knobs(method)
        counts = (1,) if entry.facts.single else grid.particles
        along = [(d, None) for d in grid.dims] if axis == "particles" else [(None, n) for n in counts]
        alphas = grid.alphas if "alpha" in own else (None,)
        kernels = (None,) if "kernel.name" in idle else grid.kernels
        rules = (None,) if "bandwidth.rule" in idle else grid.rules
        scales = grid.force_scales if "force_scale" in own else (None,)
        for scale, (d, n), *rest in product(scales, along, alphas, kernels, rules):
            found[Series(method, d, n, *rest, scale)] = None
    return tuple(found)


def names_of(series: Iterable[Series]) -> dict[Series, str]:
    """A label for each: the method, and what differs among the series of one method."""
    names = {}
    for one in series:
        others = [s for s in series if s.method == one.method]
        parts = [METHODS[one.method].label]
        for field, text in (
            ("d", "d = "),
            ("n", "n = "),
            ("alpha", "alpha "),
            ("kernel", ""),
            ("rule", ""),
            ("force_scale", ""),
        ):
            if len({getattr(s, field) for s in others}) > 1:
                value = getattr(one, field)
                parts.append(FORCE_SCALES[value].label if field == "force_scale" else f"{text}{text_of(value)}")
        names[one] = ", ".join(parts)
    return names


def table_of(rows: Mapping[str, Iterable[Mapping[str, Any]]]) -> io.StringIO:
    """Rows, by where they come from, as a CSV file."""
    out = io.StringIO()
    rows = [{"source": source, **row} for source, found in rows.items() for row in found]
    names = dict.fromkeys(name for row in rows for name in row if name not in ("key", "recipe", "seconds"))
    writer = csv.DictWriter(out, names, extrasaction="ignore")
    writer.writeheader()
    writer.writerows(rows)
    out.seek(0)
    return out
