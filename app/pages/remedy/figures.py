"""Figures of page "Which remedy": the variance against the dimension, and the force against gradients."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np
from bokeh.models import ColumnDataSource, CustomJSTickFormatter, FixedTicker, HoverTool, NoOverlap, Range1d
from bokeh.plotting import figure

from stein_core import METHODS
from steinlab.pages.remedy.view import Seen
from steinlab.ui.colours import GREY, TICKS, darken, dress, looks_of, mapper

KEPT = 1500  # points of a curve
DIMS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)  # of the axis
HEIGHT = 270


def _figure(dark: bool, **more):
    made = figure(
        height=HEIGHT, sizing_mode="stretch_width", tools="pan,box_zoom,wheel_zoom,reset,save",
        toolbar_location="above", **more,
    )  # fmt: skip
    made.toolbar.active_scroll, made.toolbar.logo = None, None
    made.axis.formatter = CustomJSTickFormatter(code=TICKS)
    made.axis.major_label_policy = NoOverlap(min_distance=6)
    return made


def _dressed(made, dark: bool):
    made.add_layout(made.legend[0], "below")
    made.legend.orientation, made.legend.ncols, made.legend.padding, made.legend.spacing = "horizontal", 2, 0, 0
    dress(made)
    darken(made, dark)
    return made


class Reach:
    """Draw the variance against the dimension: laws as lines, shipped runs as hollow marks, the run on screen as full
    ones."""

    def __init__(self, dark: bool):
        self.laws = ColumnDataSource({name: [] for name in ("xs", "ys", "colour", "label")})
        self.points = ColumnDataSource(
            {name: [] for name in ("x", "y", "colour", "marker", "fill", "size", "label", "what")}
        )
        made = _figure(
            dark, x_axis_type="log", x_axis_label="dimension d", title="Variance kept, as a share of the exact one",
            x_range=Range1d(0.9, 1100.0), y_range=Range1d(0.0, 1.25),
        )  # fmt: skip
        made.xaxis.ticker = FixedTicker(ticks=DIMS, minor_ticks=[])
        colour = {"field": "colour", "transform": mapper(dark)}
        made.line([0.5, 2000], [1, 1], line_color=GREY, line_dash="dotdash", line_width=1.5)
        made.multi_line("xs", "ys", source=self.laws, line_color=colour, line_width=2, legend_field="label")
        dots = made.scatter(
            "x", "y", source=self.points, marker="marker", size="size", line_color=colour, fill_color=colour,
            fill_alpha="fill", line_width=1.8,
        )  # fmt: skip
        made.add_tools(HoverTool(renderers=[dots], tooltips="<b>@label</b><br>@what", limit=2, visible=False))
        self.figure = _dressed(made, dark)

    def draw(
        self,
        moments: Sequence[Seen],
        dim: int,
        laws: Mapping[str, tuple[list[int], list[float]]],
        shipped: Sequence[Mapping],
    ) -> None:
        """Show these.

        Args:
            moments: of the run on screen.
            dim: its dimension.
            laws: method -> (dimensions, variances).
            shipped: rows of a sweep, of which `method`, `dim`, `sample_variance` and `stopped` are read.
        """
        methods = [one.method for one in moments]
        looks = dict(zip(methods, looks_of(methods)))
        lines = [(*laws[name], looks[name].colour, f"{METHODS[name].label}: law") for name in methods if name in laws]
        self.laws.data = {key: [line[i] for line in lines] for i, key in enumerate(self.laws.data)}
        rows = []
        for row in shipped:
            if (name := row["method"]) in looks:
                look, value = looks[name], row["sample_variance"]
                what = f"shipped: {value:.3f} at d = {row['dim']}, n = {row['particles']}, {row['steps']:,} steps"
                rows.append((row["dim"], value, look.colour, look.marker, 0.0, 9, METHODS[name].label, what))
        for one in moments:
            if np.isfinite(one.variance):
                look, what = looks[one.method], f"this run: {one.variance:.3f} at step {one.step:,}"
                rows.append((dim, one.variance, look.colour, look.marker, 1.0, 14, METHODS[one.method].label, what))
        self.points.data = {key: [row[i] for row in rows] for i, key in enumerate(self.points.data)}


class Road:
    """Draw the force against the gradients that it took, as a share of the first force."""

    def __init__(self, dark: bool):
        self.source = ColumnDataSource({name: [] for name in ("xs", "ys", "colour", "label")})
        made = _figure(
            dark, x_axis_type="log", y_axis_type="log", x_axis_label="gradients of the target, all particles",
            title="Force that is left, as a share of the first", x_range=Range1d(10.0, 1e4), y_range=Range1d(1e-4, 3.0),
        )  # fmt: skip
        colour = {"field": "colour", "transform": mapper(dark)}
        made.multi_line("xs", "ys", source=self.source, line_color=colour, line_width=2, legend_field="label")
        self.figure = _dressed(made, dark)
        self.clear()

    def clear(self) -> None:
        """Begin another run."""
        self.curves: dict[str, deque] = {}
        self.begun = 0

    def add(self, moments: Sequence[Seen]) -> None:
        """Add a point to each curve; what came later than its step never happened."""
        if moments and moments[0].begun != self.begun:
            self.clear()
            self.begun = moments[0].begun
        for one in moments:
            curve = self.curves.setdefault(one.method, deque(maxlen=KEPT))
            while curve and curve[-1][0] >= one.step:
                curve.pop()
            if np.isfinite(one.force) and one.force > 0:
                curve.append((one.step, one.gradients, one.force))

    def draw(self, moments: Sequence[Seen]) -> None:
        """Show the curves."""
        methods = [one.method for one in moments]
        lines, most, least = [], 100.0, 0.1
        for name, look in zip(methods, looks_of(methods)):
            if len(curve := self.curves.get(name, ())) > 1:
                _, gradients, forces = map(np.array, zip(*curve))
                shares = forces / forces[0]
                lines.append((np.maximum(gradients, 1).tolist(), shares.tolist(), look.colour, METHODS[name].label))
                most, least = max(most, gradients[-1]), min(least, shares.min())
        self.source.data = {key: [line[i] for line in lines] for i, key in enumerate(self.source.data)}
        self.figure.x_range.end = 1.2 * most
        self.figure.y_range.start = max(least / 2, 1e-8)
