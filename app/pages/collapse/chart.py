"""Figures of page "Variance collapse" in plain Bokeh: one glyph for all points, so that an update is one message."""

from __future__ import annotations

from itertools import chain
from math import isfinite
from typing import Callable

import numpy as np
from bokeh.models import (
    ColumnDataSource,
    CustomJSTickFormatter,
    FixedTicker,
    HoverTool,
    LegendItem,
    NoOverlap,
    Range1d,
    TapTool,
)
from bokeh.plotting import figure

from stein_core import FORCE_SCALES
from steinlab.pages.collapse.grid import AXES, QUANTITIES, RESVGD, Grid
from steinlab.pages.collapse.laws import Curve
from steinlab.pages.collapse.series import Point, Series, names_of, place
from steinlab.ui.colours import GREY, TICKS, dress, looks_of, mapper

PUBLISHED = (("dim", "gaussian"), ("gamma", "gaussian"))  # axes and target of RESVGD's published means
DASHES = {"law": "solid", "limit": "dashed", "exact": "dotdash", "draws": "dotdash"}
TOOLTIP = """<div style="font-size: 13px; max-width: 300px"><b>@label</b>, d = @d, n = @n<br>@value; exact law: @law<br>
@settings<br>@runs</div>"""
HEIGHT = 430
POINTS = tuple("x y low high colour marker fill size label d n settings value law runs".split())
LINES = ("xs", "ys", "colour", "dash", "width")
ENDS = {"converged": "converged", "steps": "not converged", "diverged": "diverged"}


class Chart:
    """Draw points, laws and bands over a logarithmic or linear y axis.

    The figure stays in the page: `take` gives it another grid and view, `show` replaces what is drawn and keeps the
    zoom.

    Args:
        log: whether the y axis is logarithmic.
        chosen: chosen(point) is called when a point is clicked.
    """

    def __init__(self, log: bool, chosen: Callable[[Point], None], dark: bool = False):
        self.log, self.chosen, self.unit = log, chosen, 1
        self.names, self.order, self.looks, self.axis, self.quantity = {}, {}, {}, "dim", "sample_variance"
        self.shown: list[Point] = []
        self.points = ColumnDataSource({name: [] for name in POINTS})
        self.lines = ColumnDataSource({name: [] for name in LINES})
        self.ring = ColumnDataSource({"x": [], "y": []})
        self.band = ColumnDataSource({"xs": [], "ys": []})
        self.labels = ColumnDataSource({"x": [], "y": [], "text": []})
        self.published = ColumnDataSource({"x": [], "y": []})
        self.figure = self._figure(dark)
        self.points.selected.on_change("indices", self._tapped)

    def _figure(self, dark: bool):
        colour = {"field": "colour", "transform": mapper(dark)}
        made = figure(
            height=HEIGHT,
            sizing_mode="stretch_width",
            x_axis_type="log",
            y_axis_type="log" if self.log else "linear",
            x_range=Range1d(1, 10),
            y_range=Range1d(1, 10),
            tools="pan,box_zoom,wheel_zoom,reset,save",
            active_drag="box_zoom",
            toolbar_location="above",
            min_border_right=20,
            title="",
        )
        made.toolbar.logo = None
        made.toolbar.active_scroll = None  # the wheel scrolls the page until the tool is selected
        made.axis.major_label_policy = NoOverlap(min_distance=6)
        made.axis.formatter = CustomJSTickFormatter(code=TICKS)
        made.xaxis.ticker = FixedTicker(minor_ticks=[])
        if self.log:
            made.yaxis.ticker = made.ygrid.ticker = FixedTicker()
        made.patches("xs", "ys", source=self.band, fill_color=GREY, fill_alpha=0.18, line_color=None)
        made.multi_line(
            "xs", "ys", source=self.lines, line_color=colour, line_dash="dash", line_width="width", line_alpha=0.9
        )
        self.text = made.text(
            "x",
            "y",
            "text",
            source=self.labels,
            text_align="right",
            text_baseline="bottom",
            text_color=GREY,
            text_font_size="13px",
        ).glyph
        bars = made.segment("x", "low", "x", "high", source=self.points, line_color=colour, line_width=2)
        dots = made.scatter(
            "x",
            "y",
            source=self.points,
            marker="marker",
            size="size",
            fill_color=colour,
            line_color=colour,
            fill_alpha="fill",
            line_width=1.8,
            legend_field="label",
        )
        self.bars, self.dots = bars.glyph, dots.glyph
        for drawn in (bars, dots):
            drawn.nonselection_glyph = drawn.selection_glyph = None
        made.scatter("x", "y", source=self.ring, size=20, fill_color=None, line_color=GREY, line_width=2)
        crosses = made.scatter("x", "y", source=self.published, marker="x", size=10, line_color=GREY, line_width=2.5)
        made.add_tools(
            HoverTool(renderers=[dots], tooltips=TOOLTIP, limit=2, visible=False),
            TapTool(renderers=[dots], visible=False),
        )
        legend = made.legend[0]
        made.add_layout(legend, "below")
        self.named = LegendItem(label="RESVGD, published, n = 20", renderers=[crosses], visible=False)
        legend.items = [*legend.items, self.named]
        legend.location = "center"
        legend.padding, legend.spacing, legend.margin = 2, 0, 2
        dress(made)
        return made

    def enlarge(self, on: bool, height: int) -> None:
        """Give text, lines and marks twice the size and the figure this height in pixels, or not. Then call `show`."""
        made, self.unit = self.figure, 2 if on else 1
        dress(made, self.unit)
        made.height = height if on else HEIGHT
        made.legend[0].update(glyph_width=20 * self.unit, glyph_height=20 * self.unit)
        made.toolbar.visible = not on
        made.title.visible = not on
        self.text.text_font_size = f"{13 * self.unit}px"
        self.bars.line_width, self.dots.line_width = 2 * self.unit, 1.8 * self.unit
        self._columns()
        self._label()

    def _label(self):
        """Name the axes; in a lecture without what stands in parentheses, which would be cut."""
        whole = QUANTITIES[self.quantity][1]
        self.figure.yaxis.axis_label = whole if self.unit == 1 else whole.partition(" (")[0]

    def _columns(self):
        """Lay the legend out."""
        widest = max(map(len, self.names.values()), default=10)
        self.figure.legend[0].ncols = max(1, min(4, 88 // self.unit // (widest + 6)))

    def take(self, grid: Grid, series: tuple[Series, ...], quantity: str, axis: str) -> None:
        """Prepare for another grid or view. The figure is empty until `show`."""
        self.quantity, self.axis = quantity, axis
        self.names, self.order = names_of(series), {one: i for i, one in enumerate(series)}
        self.looks = dict(zip(series, looks_of([one.method for one in series])))
        made = self.figure
        made.title.text = grid.common()
        made.xaxis.axis_label = AXES[axis]
        self._label()
        places = sorted({place(axis, d, n) for d in grid.dims for n in grid.particles})
        made.xaxis[0].ticker.ticks = places
        self.width = np.log(places[-1] / places[0]) or 1.0
        self._columns()
        means = RESVGD if quantity == "mean_location" and (axis, grid.target) in PUBLISHED else {}
        self.published.data = {"x": [place(axis, d, 20) for d in means], "y": list(means.values())}
        self.named.visible = bool(means)
        self.band.data = {"xs": [], "ys": []}
        self.mark(None)
        self._limits = {}
        self._fit(made.x_range, places, True)

    def _fit(self, range_: Range1d, values: list[float], log: bool) -> None:
        """Show all values, unless the user has zoomed."""
        values = [value for value in values if isfinite(value) and (value > 0 or not log)]
        if not values or self._limits.get(range_.id, (range_.start, range_.end)) != (range_.start, range_.end):
            return
        ends = np.array([min(values), max(values)])
        ends = np.log(ends) if log else ends
        room = max(0.08 * (ends[1] - ends[0]), 0.08 if log else 1e-3)
        start, end = ends + [-room, room]
        start, end = (float(np.exp(start)), float(np.exp(end))) if log else (float(start), float(end))
        range_.update(start=start, end=end, reset_start=start, reset_end=end)
        self._limits[range_.id] = start, end
        if range_ is self.figure.y_range and log:  # Bokeh's own ticks are linear below two decades
            mantissas = (1, 2, 5) if end / start > 30 else (1, 1.2, 1.5, 2, 3, 4, 5, 7)
            self.figure.yaxis[0].ticker.ticks = [m * 10.0**k for k in range(-12, 7) for m in mantissas]

    def _x(self, point: Point) -> float:
        """Return the x coordinate of a point. Points of different series at the same x stand side by side."""
        middle = (len(self.order) - 1) / 2
        aside = (self.order[point.series] - middle) / max(middle, 2) * 0.012 * self.width
        return place(self.axis, point.d, point.n) * float(np.exp(aside))

    def show(self, points: list[Point], curves: list[Curve], laws: dict[tuple, float]) -> None:
        """Draw these and nothing else.

        Args:
            points: the points.
            curves: laws, limits and bands.
            laws: (series, d, n) -> the exact law there, for the tooltip.
        """
        points = [p for p in points if not self.log or p.mean > 0]
        self.shown = sorted(points, key=lambda p: (self.order[p.series], p.shipped))
        rows = [self.row(p, laws.get((p.series, p.d, p.n), np.nan)) for p in self.shown]
        self.points.data = {name: [row[name] for row in rows] for name in POINTS}
        self.lines.data = self._lines([c for c in curves if c.kind != "band"])
        bands = [c for c in curves if c.kind == "band"]
        edges = {"xs": [c.xs + c.xs[::-1] for c in bands], "ys": [c.ys + [-y for y in c.ys[::-1]] for c in bands]}
        self.band.data = edges
        ends = [(c.xs[-1], c.ys[-1], c.label) for c in curves if c.label]
        self.labels.data = {name: [end[i] for end in ends] for i, name in enumerate(("x", "y", "text"))}
        drawn = [*chain(*self.lines.data["ys"], *edges["ys"]), *self.published.data["y"]]
        self._fit(self.figure.y_range, [*drawn, *(row[end] for row in rows for end in ("low", "high"))], self.log)

    def row(self, point: Point, law: float = np.nan) -> dict[str, object]:
        """Return the columns POINTS of one point. law: the exact one there, or NaN."""
        look = self.looks[point.series]
        return {
            "x": self._x(point),
            "y": point.mean,
            "low": max(point.low, point.mean / 20) if self.log else point.low,
            "high": point.high,
            "colour": look.colour,
            "marker": "x" if point.stopped == "diverged" else look.marker,
            "fill": 0.0 if point.stopped != "converged" else 0.3 if point.shipped else 1.0,
            "size": self.unit * (13 if point.shipped else 8),
            "label": self.names[point.series],
            "d": point.d,
            "n": point.n,
            "settings": settings_of(point.series),
            "value": f"{point.mean:.5g}{point.spread}",
            "law": f"{law:.5g}" if isfinite(law) else "none known",
            "runs": ends_of(point),
        }

    def _lines(self, curves: list[Curve]) -> dict[str, list]:
        """Return the columns of all lines: laws and limits, and thin ones through points without a law."""
        lines = []
        for c in curves:
            colour, bold = self.looks[c.series].colour if c.series else GREY, c.series or c.kind == "exact"
            lines.append((c.xs, c.ys, colour, DASHES[c.kind], 2.0 if bold else 1.5))
        for series, xs, ys in self._joined({c.series for c in curves if c.series}):
            lines.append((xs, ys, self.looks[series].colour, "dotted", 1.0))
        columns = {name: [line[i] for line in lines] for i, name in enumerate(LINES)}
        return columns | {"width": [self.unit * width for width in columns["width"]]}

    def _joined(self, lawful: set[Series]) -> list[tuple[Series, list, list]]:
        """Return a thin line (series, xs, ys) through the points of each series without a law."""
        at: dict[Series, dict] = {}
        for point in self.shown:
            if point.series not in lawful and point.stopped != "diverged":
                at.setdefault(point.series, {})[self._x(point)] = point.mean
        return [(series, sorted(ys), [ys[x] for x in sorted(ys)]) for series, ys in at.items() if len(ys) > 1]

    def mark(self, point: Point | None) -> None:
        """Draw a ring around the point whose run is open."""
        self.ring.data = {"x": [self._x(point)], "y": [point.mean]} if point else {"x": [], "y": []}

    def _tapped(self, attribute, old, new):
        if new and new[0] < len(self.shown):
            self.points.selected.indices = []
            self.chosen(self.shown[new[0]])


def settings_of(series: Series) -> str:
    """Return the settings of a series in words."""
    parts = [f"alpha {series.alpha:g}"] if series.alpha is not None else []
    parts += [name for name in (series.kernel, series.rule) if name]
    attraction = [f"attraction: {FORCE_SCALES[series.force_scale].label}"] if series.force_scale else []
    return ", ".join(parts + attraction) or "none"


def ends_of(point: Point) -> str:
    """Return how the runs of a point ended, in words."""
    counts = {end: sum(row["stopped"] == end for row in point.rows) for end in ENDS}
    ended = ", ".join(f"{count} {ENDS[end]}" for end, count in counts.items() if count)
    steps = [row["steps"] for row in point.rows]
    span = " to ".join(f"{step:,}" for step in sorted({min(steps), max(steps)}))
    return f"{'shipped' if point.shipped else 'computed here'}: {ended} after {span} steps"
