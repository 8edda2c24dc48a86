"""A figure for a notebook, drawn again on a thread when a control moves."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

import holoviews as hv
import holoviews.plotting.bokeh  # noqa: F401  (the backend)
import numpy as np
import panel as pn
import panel_material_ui as pmui
from bokeh.document import Document
from bokeh.model import Model
from bokeh.models import DataRange1d, Glyph, GridPlot, Label, LabelSet, LinearColorMapper, Plot, Text
from bokeh.plotting import figure

from steinlab.lesson.bokeh_update import remember, take_over
from steinlab.lesson.output import Output
from steinlab.server.background import STOPPING, UI_THROTTLE, Cancelled, Threads, background_work
from steinlab.ui.browser import Arrival
from steinlab.ui.colours import SPARE, darken, dress
from steinlab.ui.knob_widgets import LARGE
from steinlab.ui.text import BUSY
from steinlab.ui.theme import TOKENS

log = logging.getLogger(__name__)
HEIGHT = 340
AROUND = 300  # pixels of a lecture beside a figure: its question, its controls and its caption
FOOT = 470  # the same of a lesson, with its text and the bar below
DRAWERS = Threads(16, "chart")  # most of them yield while pages play
IDLE = '<div style="height: 3px"></div>'

hv.Store.set_current_backend("bokeh")
hv.Curve([0, 1])  # imports pandas if it is installed: see `steinlab.app_hooks`
SERIES = hv.Cycle([look.colour for look in SPARE])
DASHES = hv.Cycle(["solid"] * 4 + ["dashed"] * 4 + ["dotdash"] * 4)  # of many curves, some lie on each other
hv.opts.defaults(*(kind(color=SERIES) for kind in (hv.opts.Scatter, hv.opts.Area)))
hv.opts.defaults(hv.opts.Curve(color=SERIES, line_dash=DASHES))
SHADES = {theme: [f"{c['shade']}{level:02x}" for level in range(0, 200, 2)] for theme, c in TOKENS.items()}
_holoviews = threading.Lock()  # its option trees are shared by all threads


class Chart(Output):
    """Draw a figure as `steinlab.notebook.chart` says.

    Attributes:
        problem: why the last drawing failed, or "".
    """

    def __init__(self, draw: Callable[..., Any], title: str, controls: dict[str, tuple | list], equal: bool = False):
        super().__init__()
        self.draw, self.heading, self.problem, self.dark, self.equal = draw, title, "", False, equal
        self.unit, self.height, self.arriving = 1, HEIGHT, False
        self.shown_at: tuple | None = (1, HEIGHT)  # unit and height of the figure on screen; None: it is a stand-in
        self.controls = self.dials = {
            name: control(name, values, self.host.jupyter) for name, values in controls.items()
        }
        for made in self.controls.values():
            made.param.watch(lambda event: self.request(), "value")
        self.line = pn.pane.HTML(IDLE, sizing_mode="stretch_width", margin=0, height=3)
        self.said = pn.pane.Alert("", alert_type="warning", visible=False, margin=(4, 8))
        self.figure = pn.Column(sizing_mode="stretch_width", min_height=HEIGHT, margin=0)
        heading = [pn.pane.HTML(f'<b style="font-size: 16px">{title}</b>', margin=(6, 8, 0, 8))] * bool(title)
        self.extend(
            [
                *heading,
                pn.FlexBox(*self.controls.values(), sizing_mode="stretch_width"),
                self.line,
                self.figure,
                self.said,
            ]
        )
        self.lock, self.wanted, self.drawing, self.closed = threading.Condition(), None, False, False
        self.newest: tuple | None = None  # drawn but not shown yet: figure, problem, unit and height
        self.request()

    def request(self) -> None:
        """Draw with the present values of the controls, instead of any drawing that still waits."""
        with self.lock:
            self.wanted = {name: made.value for name, made in self.controls.items()}
            if self.drawing or self.closed:
                return
            self.drawing = True
        self.line.object = BUSY
        DRAWERS.submit(self.work)

    def work(self) -> None:
        """Draw until nothing is wanted. On a thread."""
        while True:
            with self.lock:
                values, self.wanted = self.wanted, None
                if values is None or self.closed:
                    self.drawing = False
                    self.lock.notify_all()
                    break
            size = self.unit, self.height
            try:
                with background_work(lambda: self.closed or STOPPING.is_set()):
                    figure, self.problem = rendered(self.draw(**values), self.equal, *size), ""
            except Cancelled:
                continue
            except Exception as error:
                if self.closed:  # so is the lesson whose functions it calls
                    continue
                log.warning("chart", exc_info=error)
                figure, self.problem = None, f"{type(error).__name__}: {error}"
            with self.lock:
                self.newest = figure, self.problem, size
            UI_THROTTLE.run(self.host.later, self.show)
        UI_THROTTLE.run(self.host.later, self.idle)

    def show(self) -> None:
        """Show the newest drawing, or say why it failed and keep the last one. On the event loop."""
        if self.arriving:
            return
        with self.lock:
            newest, self.newest = self.newest, None
        if newest is None or self.closed:
            return
        figure, problem, size = newest
        if figure is not None:
            paint(figure, self.dark)
            alike = len(self.figure) and self.shown_at == size  # a pane keeps the height that it had at first
            if not (alike and take_over(self.figure[0].object, figure)):
                there = [Arrival(lambda: resize(figure, size[0]))] * (size[0] > 1)
                self.figure[:] = [pn.pane.Bokeh(figure, sizing_mode="stretch_width"), *there]
            self.shown_at = size
        self.said.param.update(object=problem, visible=bool(problem))

    def stand_in(self, panes: list) -> None:
        """Show these until the first drawing is there, and a browser has them: Bokeh fails if they leave before."""
        if panes and not len(self.figure) and self.newest is None:
            self.arriving, self.shown_at = True, None
            self.figure[:] = [*panes, Arrival(self.arrived)]

    def arrived(self) -> None:
        """The browser has the stand-in: it may be replaced."""
        self.arriving = False
        UI_THROTTLE.run(self.host.later, self.show)

    def idle(self) -> None:
        """Show that nothing is being drawn, unless a new drawing has begun. On the event loop."""
        self.show()
        if not self.drawing:
            self.line.object = IDLE

    def darken(self, on: bool) -> None:
        self.dark = on
        for pane in self.figure[:1]:
            paint(pane.object, on)

    def enlarge(self, on: bool, height: int) -> None:
        size = (2, max(240, height - AROUND)) if on else (1, height_in(height))
        if size != (self.unit, self.height):
            self.unit, self.height = size
            self.figure.min_height = self.height
            for made in self.controls.values():
                if not self.host.jupyter:
                    made.sx = LARGE if on else {}
            self.request()

    def close(self) -> None:
        self.closed = True

    def settle(self, timeout: float = 60) -> str:
        with self.lock:
            done = self.lock.wait_for(lambda: not self.drawing, timeout)
        return self.problem if done else f"not drawn within {timeout:g} s"


def height_in(window: int) -> int:
    """Return the height of a figure in a window of this height, in pixels: its caption stands above the foot."""
    return min(HEIGHT, max(220, window - FOOT))


def paint(figure: Model, dark: bool) -> None:
    """Give a figure the colours of the dark page, or those of the light one."""
    darken(figure, dark)
    for scale in figure.select({"type": LinearColorMapper}):
        if list(scale.palette) in SHADES.values():
            scale.palette = SHADES["dark" if dark else "light"]


def control(name: str, values: tuple | list, jupyter: bool):
    """Make the widget of one argument of `draw`.

    Args:
        name: of the argument; the label has spaces instead of underscores.
        values: (low, high, default) for a slider, (low, high, default, "log") for a logarithmic one, [options] for a
            select.
        jupyter: use the widgets of panel instead of panel_material_ui.
    """
    kit, naming = (pn.widgets, "name") if jupyter else (pmui, "label")
    shared = {
        naming: name.replace("_", " "),
        "width": 280,
        "min_width": 180,
        "max_width": 290,
        "margin": (4, 8),
        "styles": {"flex": "1 1 180px"},
    }
    if isinstance(values, list):
        return kit.Select(options=values, value=values[0], **shared, **{} if jupyter else {"size": "small"})
    low, high, default, *scale = values
    if scale == ["log"]:
        count = int(round(10 * np.log10(high / low))) + 1
        stops = sorted({float(default), *(float(f"{stop:.3g}") for stop in np.geomspace(low, high, count))})
        return kit.DiscreteSlider(options=stops, value=float(default), formatter="%.3g", **shared)
    if all(isinstance(value, int) for value in (low, high, default)):
        return kit.IntSlider(start=low, end=high, value=default, **shared)
    return kit.FloatSlider(start=low, end=high, value=default, step=round((high - low) / 100, 6), **shared)


def rendered(drawn: Any, equal: bool = False, unit: int = 1, height: int = HEIGHT) -> Model:
    """Return the Bokeh model of a drawing, as wide as the page.

    Args:
        drawn: what `draw` returned, a HoloViews element or a Bokeh model.
        equal: whether both axes share a unit; then they show all that is drawn.
        unit: times the usual size of text, lines and dots.
        height: in pixels, of a plot that says nothing else; in a lecture of every plot.
    """
    if not isinstance(drawn, Model):
        with _holoviews:
            # Without a document of its own it takes the current one, which may be a page, and sets its theme.
            drawn = hv.renderer("bokeh").instance(mode="server").get_plot(drawn, Document()).state
        for plot in drawn.select({"type": Plot}):
            plot.output_backend = "canvas"  # without a GPU WebGL paints a few points ten times slower
    for plot in drawn.select({"type": Plot}):
        plot.sizing_mode = "stretch_width"
        if plot.height in (None, 300) or unit > 1:  # 300: nobody has said
            plot.height = height
        plot.toolbar.logo = plot.toolbar.active_scroll = plot.toolbar.active_drag = None  # they scroll the page
        plot.toolbar_location = None
        if isinstance(plot, figure):
            dress(plot, unit)
        if unit > 1:
            enlarge(plot, unit)
        if equal:
            plot.x_range, plot.y_range = DataRange1d(range_padding=0), DataRange1d(range_padding=0)
            plot.match_aspect = True
    if isinstance(drawn, GridPlot):
        drawn.toolbar_location = None
    if drawn.sizing_mode is None:
        drawn.sizing_mode = "stretch_width"
    remember(drawn)
    return drawn


def resize(drawn: Model, unit: int) -> None:
    """Give the texts of a figure that a browser has their sizes again: the theme of the page has its own."""
    for plot in drawn.select({"type": figure}):
        dress(plot, 1)
        dress(plot, unit)


def enlarge(plot: Plot, unit: int) -> None:
    """Draw the marks and the texts in a plot `unit` times as large."""
    for each in plot.references():
        for name in ("line_width", "size"):
            if isinstance(each, Glyph) and isinstance(value := getattr(each, name, None), (int, float)):
                setattr(each, name, value * unit)
        if isinstance(each, (Label, LabelSet, Text)):
            each.text_font_size = f"{13 * unit}px"
