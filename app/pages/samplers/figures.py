"""Figures of page "Samplers": what is minimised beside what one wants, mass by mode, the line of z, and the ladder."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import contourpy
import jax
import jax.numpy as jnp
import numpy as np
from bokeh.models import ColumnDataSource, PointDrawTool, Range1d
from bokeh.plotting import figure

from stein_core import METHODS
from stein_core.contract.target import Target
from steinlab.pages.samplers.view import SMOOTH, Seen
from steinlab.ui.colours import GREY, darken, dress, looks_of, mapper

KEPT = 1500  # points of a curve
LEAST = 1e-5  # of a logarithmic axis
DASHES = {"loss": "solid", "distance": "dashed", "mmd": "dotted"}
NAMES = {"loss": "loss", "distance": "sliced W₂", "mmd": "MMD"}
SIDES = {1: "left", 2: "right"}  # two modes
LINE_ENDS = 3.0  # of the plane of z


def dressed(made, dark: bool):
    """Give a figure the sizes and colours of the page, and return it."""
    dress(made)
    darken(made, dark)
    made.toolbar.logo = None
    return made


class Course:
    """Draw loss, sliced W2 and MMD of one or two methods over the steps, on one logarithmic axis."""

    def __init__(self, dark: bool):
        self.source = ColumnDataSource({name: [] for name in ("xs", "ys", "colour", "dash", "label")})
        self.floor = ColumnDataSource({"x": [], "y": []})
        made = figure(
            height=300, sizing_mode="stretch_width", y_axis_type="log", tools="pan,box_zoom,wheel_zoom,reset,save",
            toolbar_location="above", title="Loss, and distances to exact draws",
            x_axis_label="step (a loss of 0 or less is at the bottom)",
            y_range=Range1d(LEAST / 2, 10.0), x_range=Range1d(0, 100),
        )  # fmt: skip
        made.toolbar.active_scroll = None
        colour = {"field": "colour", "transform": mapper(dark)}
        made.multi_line(
            "xs", "ys", source=self.source, line_color=colour, line_dash="dash", line_width=2, legend_field="label"
        )
        made.line("x", "y", source=self.floor, line_color=GREY, line_width=1.5, legend_label="W₂ of exact draws")
        made.add_layout(made.legend[0], "below")
        made.legend.orientation, made.legend.ncols, made.legend.padding = "horizontal", 2, 0
        self.figure = dressed(made, dark)
        self.clear()

    def clear(self) -> None:
        """Begin another run."""
        self.curves: dict[tuple[str, str], deque] = {}
        self.recent: dict[str, deque] = {}

    def add(self, moments: Sequence[Seen]) -> None:
        """Add one point to each curve; what came later than its step never happened."""
        for one in moments:
            recent = self.recent.setdefault(one.method, deque(maxlen=SMOOTH))
            if np.isfinite(one.loss):
                recent.append(one.loss)
            values = {"loss": np.mean(recent) if recent else np.nan, "distance": one.distance, "mmd": one.mmd}
            for name, value in values.items():
                curve = self.curves.setdefault((one.method, name), deque(maxlen=KEPT))
                while curve and curve[-1][0] >= one.step:
                    curve.pop()
                if np.isfinite(value):
                    curve.append((one.step, max(float(value), LEAST)))

    def draw(self, moments: Sequence[Seen]) -> None:
        """Show the curves."""
        colours = {one.method: look.colour for one, look in zip(moments, looks_of([m.method for m in moments]))}
        data = {name: [] for name in self.source.data}
        for (method, name), curve in self.curves.items():
            if curve and method in colours:
                xs, ys = zip(*curve)
                row = (xs, ys, colours[method], DASHES[name], f"{METHODS[method].label}: {NAMES[name]}")
                for key, value in zip(data, row):
                    data[key].append(value)
        self.source.data = data
        floors = [one.floor for one in moments if np.isfinite(one.floor)]
        ends = [max((one.step for one in moments), default=0)]
        self.figure.x_range.end = max(100, *(1.02 * end for end in ends))
        self.floor.data = {"x": [0, *ends], "y": [floors[0]] * 2} if floors else {"x": [], "y": []}


class Masses:
    """Draw the share of the draws in each mode as bars, with a tick at the truth."""

    def __init__(self, dark: bool):
        self.bars = ColumnDataSource({name: [] for name in ("x", "top", "colour", "width")})
        self.ticks = ColumnDataSource({name: [] for name in ("x0", "x1", "y")})
        made = figure(
            height=220, sizing_mode="stretch_width", x_range=Range1d(0.4, 2.6),
            y_range=Range1d(0, 1.02), tools="save", toolbar_location=None,
            x_axis_label="mode, from left to right", title="Share of the mass in each mode (tick: exact)",
        )  # fmt: skip
        colour = {"field": "colour", "transform": mapper(dark)}
        made.vbar("x", "width", "top", source=self.bars, fill_color=colour, line_color=None, fill_alpha=0.75)
        made.segment("x0", "y", "x1", "y", source=self.ticks, line_color=GREY, line_width=4)
        made.xaxis.ticker = list(range(1, 9))
        made.xaxis.major_label_overrides = SIDES
        made.xgrid.visible = False
        self.figure = dressed(made, dark)

    def draw(self, moments: Sequence[Seen]) -> None:
        """Show the newest shares."""
        known = [one for one in moments if one.mass is not None]
        looks = looks_of([one.method for one in known])
        width = 0.7 / max(len(known), 1)
        bars = {name: [] for name in self.bars.data}
        for i, (one, look) in enumerate(zip(known, looks)):
            for k, share in enumerate(one.mass):
                place = k + 1 + (i - (len(known) - 1) / 2) * width
                for key, value in zip(bars, (place, float(share), look.colour, 0.9 * width)):
                    bars[key].append(value)
        self.bars.data = bars
        count = max((len(one.mass) for one in known), default=2)
        self.figure.x_range.end = count + 0.6
        self.figure.xaxis.major_label_overrides = SIDES if count == 2 else {}
        self.figure.y_range.end = min(1.02, 1.5 * max(bars["top"], default=1.0))
        truth = next((one.truth for one in known if one.truth is not None), [])
        at = np.arange(1, len(truth) + 1)
        self.ticks.data = {"x0": at - 0.4, "x1": at + 0.4, "y": np.asarray(truth)}


class Latent:
    """Draw the plane of z_1 and z_2 with the line of the curve, whose end can be dragged.

    Args:
        turned: turned(angle in degrees) is called when the end was dragged.
    """

    def __init__(self, turned: Callable[[float], None], dark: bool):
        self.turned, self.quiet = turned, False
        self.end = ColumnDataSource({"x": [LINE_ENDS], "y": [0.0]})
        self.line = ColumnDataSource({"x": [-LINE_ENDS, LINE_ENDS], "y": [0.0, 0.0]})
        made = figure(
            height=280, width=280, x_range=Range1d(-3.6, 3.6), y_range=Range1d(-3.6, 3.6), tools="",
            toolbar_location=None, title="Drag the dot: the line of z", x_axis_label="z₁", y_axis_label="z₂",
        )  # fmt: skip
        for radius in (1, 2, 3):
            made.circle(0, 0, radius=radius, fill_color=None, line_color=GREY, line_alpha=0.4)
        made.line("x", "y", source=self.line, line_width=2, line_color=GREY)
        dot = made.scatter("x", "y", source=self.end, size=16, fill_color=GREY, line_color=GREY)
        tool = PointDrawTool(renderers=[dot], add=False)
        made.add_tools(tool)
        made.toolbar.active_tap = tool
        self.figure = dressed(made, dark)
        self.end.on_change("data", self._dragged)

    def _dragged(self, name, old, new) -> None:
        if self.quiet or not len(new["x"]):
            return
        self.turned(float(np.round(np.rad2deg(np.arctan2(new["y"][0], new["x"][0])), 1)))

    def show(self, angle: float) -> None:
        """Show the line at an angle in degrees."""
        x, y = LINE_ENDS * np.cos(np.deg2rad(angle)), LINE_ENDS * np.sin(np.deg2rad(angle))
        self.quiet = True
        self.end.data = {"x": [x], "y": [y]}
        self.line.data = {"x": [-x, x], "y": [-y, y]}
        self.quiet = False


class Ladder:
    """Draw the layers of a hierarchy side by side: the draws of each over the contours of its own density."""

    SIZE, CELLS = 200, 60

    def __init__(self, layers: int, dark: bool):
        look = looks_of(["hksivi"])[0]
        self.draws = [ColumnDataSource({"x": [], "y": []}) for _ in range(layers)]
        self.lines = [ColumnDataSource({"xs": [], "ys": []}) for _ in range(layers)]
        self.figures = []
        for draws, lines in zip(self.draws, self.lines):
            made = figure(
                height=self.SIZE, min_width=160, sizing_mode="stretch_width", tools="", toolbar_location=None,
                x_range=Range1d(-4, 4), y_range=Range1d(-4, 4),
            )  # fmt: skip
            made.multi_line("xs", "ys", source=lines, line_color=GREY, line_alpha=0.7)
            colour = look.colour
            made.scatter("x", "y", source=draws, size=5, fill_color=colour, line_color=None, fill_alpha=0.7)
            self.figures.append(dressed(made, dark))

    def contours(self, target: Target, base_sd: float) -> None:
        """Draw the density p^s base^(1-s) of each layer, s from 1/T to 1."""
        x0, x1, y0, y1 = target.extent
        x, y = np.linspace(x0, x1, self.CELLS), np.linspace(y0, y1, self.CELLS)
        points = np.float32(np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2))
        log_p = np.asarray(jax.vmap(target.log_density)(jnp.asarray(points)), float)
        base = -0.5 * np.sum(((points - target.start.center) / (base_sd * target.start.scale)) ** 2, axis=1)
        for t, (made, source) in enumerate(zip(self.figures, self.lines), 1):
            share = t / len(self.figures)
            mixed = (share * log_p + (1 - share) * base).reshape(self.CELLS, self.CELLS)
            mass = np.exp(mixed - mixed.max())
            ranked = np.sort(mass.ravel())[::-1]
            levels = [
                ranked[np.searchsorted(np.cumsum(ranked) / ranked.sum(), level)] for level in (0.3, 0.6, 0.9, 0.98)
            ]
            lines = [line for level in levels for line in contourpy.contour_generator(x, y, mass).lines(level)]
            source.data = {"xs": [line[:, 0] for line in lines], "ys": [line[:, 1] for line in lines]}
            made.x_range.update(start=x0, end=x1)
            made.y_range.update(start=y0, end=y1)

    def draw(self, one: Seen) -> None:
        """Show the newest draws, with the loss of each layer in its title."""
        for t, (made, source) in enumerate(zip(self.figures, self.draws)):
            source.data = {"x": one.layers[t, :, 0], "y": one.layers[t, :, 1]}
            made.title.text = f"layer {t + 1}: KSD² {one.layer_losses[t]:.2g}"
