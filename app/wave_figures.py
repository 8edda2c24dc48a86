"""The figures of the page "1-D wave", in plain Bokeh: a panel a method, and the width of the band over network sizes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Callable

import numpy as np
from bokeh.models import BoxAnnotation, ColumnDataSource, CustomJS, CustomJSTickFormatter, PointDrawTool, Range1d
from bokeh.plotting import figure

from app.collapse_figures import SHORT
from app.wave_measures import Seen
from app.wave_nuts import Compared
from app.wave_setup import SHOWN, label_of
from stein_core.datasets import WAVE_CLUSTERS
from stein_core.wave import GRID

# Okabe & Ito's colours that are seen on white and on black.
COLOURS = dict(zip(SHOWN, ("#D55E00", "#CC79A7", "#0072B2", "#009E73", "#E69F00", "#56B4E9")))
MARKERS = dict(zip(SHOWN, ("circle", "square", "triangle", "diamond", "star", "hex")))
GREY = "#808080"
SHIPPED = Path(__file__).resolve().parents[1] / "assets" / "wave_widths.json"
BAND = ("mean", "low", "high", "low50", "high50")
EMPTY = [float("nan")] * len(GRID)
# While a point is dragged Bokeh keeps it to itself until the mouse is released; the band should answer at once.
DRAGGED = """const now = Date.now();
if (now - (points.last ?? 0) > 120) { points.last = now; points.setv({data: points.data}, {check_eq: false}) }"""


def style(made) -> None:
    """The looks that the figures share."""
    made.toolbar.logo, made.toolbar.active_scroll = None, None  # the wheel scrolls the page until the tool is chosen
    made.toolbar.autohide = True
    made.title.text_font_size = "13px"
    made.axis.axis_label_text_font_style = "normal"
    made.axis.axis_label_text_font_size, made.axis.major_label_text_font_size = "12px", "11px"
    made.axis.minor_tick_line_color = None
    made.min_border_left, made.min_border_right, made.min_border_bottom = 36, 8, 20


class Wave:
    """All panels, which share axes and data points. touched: hears of the points after the user added, moved or deleted
    one."""

    def __init__(self, touched: Callable[[list[tuple[float, float]]], None]):
        self.touched = touched
        self.x_range, self.y_range = Range1d(-2, 2), Range1d(-9, 11)
        self.points = ColumnDataSource({"x": [], "y": []})
        self.nuts = ColumnDataSource({"x": GRID, "low": EMPTY, "high": EMPTY, "mean": EMPTY})
        self.chains = ColumnDataSource({"xs": [], "ys": []})
        self.bands = {name: ColumnDataSource({"x": GRID} | dict.fromkeys(BAND, EMPTY)) for name in SHOWN}
        self.curves = {name: ColumnDataSource({"xs": [], "ys": []}) for name in SHOWN}
        self.figures = {name: self._panel(name) for name in SHOWN}
        self.points.on_change("data", self._changed)
        self._ours = False

    def _panel(self, name: str):
        made = figure(
            height=270, sizing_mode="stretch_width", x_range=self.x_range, y_range=self.y_range, title=label_of(name),
            tools="pan,box_zoom,wheel_zoom,reset,save", active_drag=None, active_tap=None, toolbar_location="above", name=name,
        )  # fmt: skip
        style(made)
        for left, right in WAVE_CLUSTERS:
            made.add_layout(BoxAnnotation(left=left, right=right, fill_color=GREY, fill_alpha=0.12, line_color=None, level="image"))
        colour, band = COLOURS[name], self.bands[name]
        made.varea("x", "low", "high", source=band, fill_color=colour, fill_alpha=0.25)
        made.varea("x", "low50", "high50", source=band, fill_color=colour, fill_alpha=0.35)
        made.multi_line("xs", "ys", source=self.curves[name], line_color=colour, line_alpha=0.55, line_width=1)
        made.multi_line("xs", "ys", source=self.chains, line_color=GREY, line_dash="dotted", line_width=1.5)
        for side in ("low", "high"):
            made.line("x", side, source=self.nuts, line_color=GREY, line_dash="dashed", line_width=1.8)
        made.line("x", "mean", source=band, line_color=colour, line_width=2.5)
        dots = made.scatter(
            "x", "y", source=self.points, size=6, fill_color=GREY, line_color="#ffffff", line_width=0.6, fill_alpha=0.9,
            selection_fill_color="#000000", selection_line_color="#E69F00", selection_line_width=2.5,
            nonselection_fill_alpha=0.9, nonselection_line_alpha=1.0,
        )  # fmt: skip
        touch = PointDrawTool(renderers=[dots], description="Touch the data: click adds, drag moves, Backspace deletes")
        made.add_tools(touch)
        made.toolbar.active_drag = made.toolbar.active_tap = touch
        made.js_on_event("pan", CustomJS(args={"points": self.points}, code=DRAGGED))
        return made

    def place(self, points) -> None:
        """Show these data. What is there already is left alone: sending it back would end a drag."""
        if [*points] == self._rounded():
            return
        self._ours = True
        self.points.selected.indices = []
        self.points.data = {"x": [x for x, _ in points], "y": [y for _, y in points]}
        self._ours = False

    def _changed(self, attribute, old, new):
        if not self._ours:
            self.touched(self._rounded())

    def _rounded(self) -> list[tuple[float, float]]:
        """The points that are drawn, as a link writes them."""
        data = self.points.data
        return [(float(f"{x:.6f}"), float(f"{y:.6f}")) for x, y in zip(data["x"], data["y"])]

    def show(self, name: str, seen: Seen, note: str) -> None:
        """One method's picture."""
        wide, half = seen.wide, seen.half
        self.bands[name].data = {
            "x": GRID, "mean": wide.mean, "low": wide.low, "high": wide.high, "low50": half.low, "high50": half.high,
        }  # fmt: skip
        self.curves[name].data = {"xs": [GRID] * len(seen.curves), "ys": list(seen.curves)}
        self.figures[name].title.text = f"{label_of(name)}{note}"

    def compare(self, nuts: Compared | None) -> None:
        """Outline NUTS's band in every panel; where its chains disagree, their means too."""
        if nuts is None:
            self.nuts.data = {"x": GRID, "low": EMPTY, "high": EMPTY, "mean": EMPTY}
            self.chains.data = {"xs": [], "ys": []}
            return
        self.nuts.data = {"x": GRID, "low": nuts.wide.low, "high": nuts.wide.high, "mean": nuts.wide.mean}
        where = nuts.disagree
        means = [np.where(where, chain, np.nan) for chain in nuts.chains] if where.any() else []
        self.chains.data = {"xs": [GRID] * len(means), "ys": means}


class Widths:
    """Mean width of the 90 % band of f between the clusters, against the number of weights."""

    def __init__(self):
        self.figure = made = figure(
            height=230, sizing_mode="stretch_width", x_axis_type="log", y_axis_type="log", title="90 % band between the clusters",
            x_range=Range1d(3, 2e4), y_range=Range1d(0.02, 20), tools="pan,reset,save", toolbar_location="above",
        )  # fmt: skip
        style(made)
        made.xaxis.axis_label, made.yaxis.axis_label = "number of weights", "mean width of f"
        made.axis.formatter = CustomJSTickFormatter(code=SHORT)
        self.lines, self.here = {}, {}
        for name in SHOWN:
            colour = COLOURS[name]
            self.lines[name] = ColumnDataSource({"x": [], "y": []})
            self.here[name] = ColumnDataSource({"x": [], "y": []})
            made.line("x", "y", source=self.lines[name], line_color=colour, line_width=1.5, line_alpha=0.6)
            made.scatter("x", "y", source=self.here[name], marker=MARKERS[name], size=8, fill_color=colour, line_color=colour)
        self.nuts = ColumnDataSource({"x": [], "y": []})
        made.line("x", "y", source=self.nuts, line_color=GREY, line_dash="dashed", line_width=1.5)
        made.scatter("x", "y", source=self.nuts, marker="x", size=9, line_color=GREY, line_width=2)

    def show(self, shipped: dict[str, dict[int, float]], here: dict[str, dict[int, float]], nuts: dict[int, float]) -> None:
        """method -> number of weights -> width: of the shipped sweep, and of this visit. nuts: the same of NUTS."""
        for name in SHOWN:
            mine = here.get(name, {})
            mine = {dim: width for dim, width in mine.items() if width > 0}  # the axis is logarithmic
            joined = shipped.get(name, {}) | mine
            self.lines[name].data = {"x": sorted(joined), "y": [joined[dim] for dim in sorted(joined)]}
            self.here[name].data = {"x": list(mine), "y": list(mine.values())}
        self.nuts.data = {"x": sorted(nuts), "y": [nuts[dim] for dim in sorted(nuts)]}


def shipped_widths() -> dict[str, dict[int, float]]:
    """method -> number of weights -> mean width over the seeds, of the shipped sweep; empty without its file."""
    if not SHIPPED.exists():
        return {}
    found: dict[str, dict[int, list[float]]] = {}
    for row in json.loads(SHIPPED.read_text())["rows"]:
        found.setdefault(row["method"], {}).setdefault(row["dim"], []).append(row["width_between"])
    return {method: {dim: float(np.mean(values)) for dim, values in dims.items()} for method, dims in found.items()}
