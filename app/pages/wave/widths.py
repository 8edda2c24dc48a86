"""Small figure of page "1-D wave": width of the band between the clusters against the number of weights."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, CustomJSTickFormatter, Range1d
from bokeh.plotting import figure
from panel.io import unlocked

from stein_core import METHODS
from stein_core.targets.wave import dim_of
from steinlab.pages.wave.setup import TWO_ROWS, shown
from steinlab.server.folders import ASSETS
from steinlab.ui.colours import GREY, TICKS, darken, dress, looks_of, mapper

NARROWS = {"svgd": True, "annealed": True, "smi": False}  # what the SMI paper says of each band
DOTS = ("x", "y", "low", "high", "colour", "marker", "fill", "label")

Spread = tuple[float, float]  # mean and standard deviation over the seeds


class Widths:
    """Draw the mean width of the 90 % band of f between the clusters: of the shipped sweep, with its spread, and of
    this visit."""

    def __init__(self, dark: bool = False):
        colour = {"field": "colour", "transform": mapper(dark)}
        self.figure = made = figure(
            height=300,
            sizing_mode="stretch_width",
            x_axis_type="log",
            y_axis_type="log",
            title="90 % band between the clusters",
            x_range=Range1d(3, 2e4),
            y_range=Range1d(0.02, 20),
            tools="save",
            toolbar_location=None,
        )
        made.axis.minor_tick_line_color = None
        made.xaxis.axis_label, made.yaxis.axis_label = "number of weights", "mean width of f"
        made.axis.formatter = CustomJSTickFormatter(code=TICKS)
        self.lines = ColumnDataSource({"xs": [], "ys": [], "colour": []})
        self.dots = ColumnDataSource({name: [] for name in DOTS})
        made.multi_line("xs", "ys", source=self.lines, line_color=colour, line_width=1.5, line_alpha=0.7)
        made.segment("x", "low", "x", "high", source=self.dots, line_color=colour, line_width=2)
        made.scatter(
            "x",
            "y",
            source=self.dots,
            marker="marker",
            size=8,
            fill_color=colour,
            line_color=colour,
            fill_alpha="fill",
            legend_field="label",
        )
        legend = made.legend[0]
        made.add_layout(legend, "below")
        legend.ncols, legend.location = 3, "center"
        legend.padding, legend.spacing, legend.margin = 0, 0, 0
        dress(made)
        self.drawn = None

    def darken(self, on: bool) -> None:
        """Use the dark theme, or the light one."""
        darken(self.figure, on)

    def show(
        self, shipped: dict[str, dict[int, Spread]], here: dict[str, dict[int, float]], nuts: dict[int, float]
    ) -> None:
        """Draw the widths, if they differ from what is drawn.

        Args:
            shipped: method -> number of weights -> width with its spread, of the shipped sweep.
            here: method -> number of weights -> width, of this visit.
            nuts: number of weights -> width, of NUTS.
        """
        if (shipped, here, nuts) == self.drawn:
            return
        self.drawn = (shipped, {name: dict(found) for name, found in here.items()}, nuts)
        lines, dots = {"xs": [], "ys": [], "colour": []}, {name: [] for name in DOTS}

        def series(known: dict[int, Spread], colour, marker, fill, label):
            known = {dim: one for dim, one in sorted(known.items()) if one[0] > 0}  # the axis is logarithmic
            for dim, (mean, sd) in known.items():
                for name, value in zip(
                    DOTS, (dim, mean, max(mean - sd, mean / 20), mean + sd, colour, marker, fill, label)
                ):
                    dots[name].append(value)
            return known

        for name, look in zip(shown(), looks_of(shown())):
            colour, _, marker = look
            old = series(shipped.get(name, {}), colour, marker, 0.3, METHODS[name].label)
            now = {dim: (width, 0.0) for dim, width in here.get(name, {}).items()}
            new = series(now, colour, marker, 1.0, METHODS[name].label)
            joined = old or new
            lines["xs"].append(list(joined)), lines["ys"].append([mean for mean, _ in joined.values()])
            lines["colour"].append(colour)
        known = series({dim: (width, 0.0) for dim, width in nuts.items()}, GREY, "x", 1.0, "NUTS")
        (
            lines["xs"].append(list(known)),
            lines["ys"].append([mean for mean, _ in known.values()]),
            lines["colour"].append(GREY),
        )
        with unlocked():  # after what Panel has still to write: the figure may be among it
            self.lines.data, self.dots.data = lines, dots


@lru_cache(maxsize=2)
def shipped_rows(sweep: str) -> list[dict[str, Any]]:
    """Return the rows of a shipped sweep, "widths" or "recovery"."""
    return json.loads((ASSETS / f"wave_{sweep}.json").read_text())["rows"]


def spreads(rows: list[dict[str, Any]]) -> dict[str, dict[int, Spread]]:
    """Return method -> number of weights -> mean and standard deviation of the width over the seeds."""
    found: dict[str, dict[int, list[float]]] = {}
    for row in rows:
        found.setdefault(row["method"], {}).setdefault(row["dim"], []).append(row["width_between"])
    return {
        method: {dim: (float(np.mean(v)), float(np.std(v, ddof=1)) if len(v) > 1 else 0.0) for dim, v in dims.items()}
        for method, dims in found.items()
    }


def narrowing(rows: list[dict[str, Any]]) -> str:
    """Say whether each method's band narrows from h = 5 to h = 100, and whether the SMI paper agrees.

    The ratio of a seed is its width at h = 100 over that at h = 5. A band narrows if the mean ratio lies two standard
    errors below 1.

    Args:
        rows: of the sweep "widths".
    """
    small, large = (dim_of(width) for width in TWO_ROWS)
    ratios = {}
    for method in NARROWS:
        at = {(row["dim"], row["seed"]): row["width_between"] for row in rows if row["method"] == method}
        both = [
            at[large, seed] / at[small, seed]
            for dim, seed in at
            if dim == small and at.get((large, seed)) and at[small, seed] > 0
        ]
        if len(both) > 1:
            ratios[method] = np.array(both)
    if not ratios:
        return ""
    words, differ = [], []
    for method, found in ratios.items():
        mean, sd = found.mean(), found.std(ddof=1)
        error = sd / len(found) ** 0.5
        narrows, widens = mean + 2 * error < 1, mean - 2 * error > 1
        words.append(
            f"{METHODS[method].label} {mean:.2f} ± {sd:.2f} "
            f"({'narrows' if narrows else 'widens' if widens else 'stays'})"
        )
        if narrows != NARROWS[method]:
            differ.append(f"{METHODS[method].label}'s {'narrows' if narrows else 'does not'}")
    seeds = max(map(len, ratios.values()))
    said = "The SMI paper says that SVGD's and Annealed SVGD's bands narrow and SMI's does not"
    judged = f"**{said}; here {' and '.join(differ)}.**" if differ else f"{said}; our runs agree."
    ratio = f"Width at h = {TWO_ROWS[1]} over that at h = {TWO_ROWS[0]}, mean ± sd of {seeds} seeds"
    return f"{ratio}: {', '.join(words)}. {judged}"
