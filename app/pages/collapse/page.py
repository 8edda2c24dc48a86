"""Page "Variance collapse": the variance that is left against the dimension, with the exact laws."""

from __future__ import annotations

import html
import io
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import panel as pn
import panel_material_ui as pmui

from stein_core.sweep.keys import is_complete
from steinlab.pages.collapse.chart import Chart
from steinlab.pages.collapse.computing import Computing
from steinlab.pages.collapse.dials import Dials
from steinlab.pages.collapse.grid import PRESETS, QUANTITIES, Grid, presets, read_link, shipped, write_link
from steinlab.pages.collapse.keeper import Keeper
from steinlab.pages.collapse.kept import replay_of
from steinlab.pages.collapse.laws import curves_of, laws_of
from steinlab.pages.collapse.looking import Looking
from steinlab.pages.collapse.parts import DAMAGED, HINT, KEYS, PRESS, STOPS, legend_of
from steinlab.pages.collapse.replay import Replay
from steinlab.pages.collapse.series import Point, all_series, points_of, table_of
from steinlab.pages.collapse.settings import Settings
from steinlab.server.background import in_background
from steinlab.server.jobs import store
from steinlab.server.loop import soon
from steinlab.server.streaming import Mailbox
from steinlab.stage.lecture import Lecture, hide
from steinlab.stage.tour import Tour
from steinlab.ui.browser import Arrival
from steinlab.ui.colours import darken
from steinlab.ui.job_bar import MIDDLE, TEXT
from steinlab.ui.legend import coloured, legend_pane, sentence_pane

WIDE = {"sizing_mode": "stretch_width"}
AROUND = 200  # pixels of a lecture around the chart: a caption of two lines and the controls


class Collapse:
    """Page "Variance collapse"; see `steinlab.contents` for the contract of a page.

    Attributes:
        grid, axis, quantity: what is shown; all of it is in the link.
    """

    key = "collapse"
    presets = STOPS

    def __init__(self, shell, query: dict[str, str]):
        self.shell = shell
        self.quiet = False
        self.valid = True  # the settings make a grid
        self.local: dict[str, dict] = {}  # rows computed on this machine, by key
        self.curves, self.laws = [], {}
        self.found = None  # rows and curves that were looked up but are not drawn yet
        # News may overtake a page on its way to the browser, and Panel drops changes until the document is loaded.
        self.arrived = self.loaded = False
        self.post = Mailbox(soon(pn.state.curdoc), self.on_news)
        talks, query, unread = Lecture.of_query(query)
        self.grid, self.axis, self.quantity, problems = read_link(query)
        problems = [*unread, *problems]
        self._make_controls()
        self.keeper = Keeper()
        self.replay = Replay(shell.frame.dark_theme)
        # Both are there from the start: see app/ui/guard_layout.js.
        self.charts = {log: Chart(log, self._open, shell.frame.dark_theme) for log in (True, False)}
        self.panes = {
            log: pmui.Column(pn.pane.Bokeh(chart.figure, sizing_mode="stretch_width", margin=0), **WIDE)
            for log, chart in self.charts.items()
        }
        warning = pmui.Alert(
            pn.pane.HTML(html.escape(" ".join(problems))), severity="warning", title="In this link", closeable=True
        )
        self.damaged = pmui.Alert(DAMAGED, severity="warning", visible=False, closeable=True)
        self.sidebar = self.settings.groups
        held = [*self.panes.values()]
        self.tour = Tour(STOPS, self._go, lambda on: [hide(pane, on) for pane in held], shell.presentation.forth)
        self.lecture = Lecture(shell, self.tour.move, self._enlarge, self.tour.lecture, on=talks)
        self.dials = Dials(lambda **change: self._take(replace(self.grid, **change), self.axis, self.quantity))
        self.lecture.only += [self.tour.text, self.dials.row]
        self.lecture.stripped += [self.dials.strip, self.tour.strip]
        self.tour.text.visible = False
        rest = pmui.Column(
            self.key,
            pmui.FlexBox(*self.computing.widgets, self.exports, align_items="center"),
            self.about,
            self.shows,
            self.hint,
            self.replay.panel,
            margin=0,
            **WIDE,
        )
        self.lecture.around += [self.sentence, self.looking.panel, rest]
        self.main = [
            pmui.Column(
                *[warning] * bool(problems),
                self.damaged,
                self.error,
                self.tour.row(self.sentence, self.lecture.leave),
                self.looking.panel,
                *self.panes.values(),
                self.dials.row,
                rest,
                Arrival(lambda: self.post({"arrived": True})),
                self.keeper,
                sizing_mode="stretch_width",
                margin=(4, 12),
            )
        ]
        shell.frame.param.watch(self._darken, "dark_theme")
        self._show_settings()
        self._redraw()
        pn.state.on_session_destroyed(lambda context: self._leave())

    def _enlarge(self, on: bool):
        for chart in self.charts.values():
            chart.enlarge(on, self.shell.height_of_window - AROUND)
        self._draw()

    def _darken(self, event):
        for chart in self.charts.values():
            darken(chart.figure, event.new)
        self.replay.figures.darken(event.new)

    # ---- the pieces

    def _make_controls(self):
        self.sentence = sentence_pane()
        self.about = pmui.Typography("", variant="body2", sizing_mode="stretch_width", margin=(4, 10))
        self.error = pmui.Alert("", severity="error", visible=False, sizing_mode="stretch_width", margin=(4, 8))

        self.settings = Settings(lambda grid: self._take(grid, self.axis, self.quantity), self._refuse)
        self.shows = pmui.FlexBox(
            pmui.Typography("See in the curves:", variant="body2", margin=(4, 4, 4, 10), **MIDDLE),
            *[
                pmui.Button(label=preset["shows"], on_click=lambda event, index=index: self.tour.open(index), **TEXT)
                for index, preset in enumerate(PRESETS)
                if "shows" in preset
            ],
            align_items="center",
        )
        self.hint = pmui.Typography(
            f"{HINT} {KEYS}", variant="caption", color="text.secondary", sizing_mode="stretch_width", margin=(0, 10)
        )
        self.key = legend_pane()
        self.computing = Computing(lambda: (self.grid, self.recipes), self._show_job, self._fail)
        self.looking = Looking(self._look)
        self.exports = pmui.FileDownload(
            label="Rows as CSV", callback=self._csv, filename="variance_collapse.csv", **TEXT
        )

    # ---- what the shell asks

    def show(self):
        self.loaded = True
        self.lecture.show()
        self._draw_found()

    def hide(self):
        """Give the bar back. A sweep goes on while another page is shown."""
        self.lecture.hide()

    def refresh(self):
        """Draw new rows, at most twice a second, however fast they are computed."""
        if self.computing.job:
            rows = {row["key"]: row for row in list(self.computing.job.rows)}
            new = rows.keys() & self.recipes.keys() - {key for key, row in self.local.items() if is_complete(row)}
            if new:
                self.local |= {key: rows[key] for key in new}
                self._draw()
            self._show_job()
        self.replay.refresh()

    def link(self) -> str:
        return self.lecture.to_query(write_link(self.grid, self.axis, self.quantity))

    def open(self, query: dict[str, str]):
        """Show the grid and the view of a link."""
        grid, axis, quantity, problems = read_link(Lecture.of_query(query)[1])
        if problems:
            pn.state.notifications.warning(" ".join(problems))
        self._take(grid, axis, quantity)

    # ---- from the user

    def _refuse(self, problems: list[str]):
        """Say why the settings make no grid. The last grid stays on screen, and Run is disabled."""
        self.valid = False
        self.error.param.update(object="<br>".join(map(html.escape, problems)), visible=True)
        self._show_job()

    def _look(self, **view):
        if not self.quiet:
            view = {"axis": self.axis, "quantity": self.quantity, **view}
            self._take(self.grid, view["axis"], view["quantity"])

    def _go(self, stop: dict) -> list[str]:
        """Open a stop of the tour."""
        self._take(*next(shown for shown, preset in presets().items() if preset["name"] == stop["name"]))
        return []

    def _take(self, grid: Grid, axis: str, quantity: str):
        self.grid, self.axis, self.quantity = grid, axis, quantity
        self.valid, self.error.visible = True, False
        self.computing.forget(grid)
        self._show_settings()
        self._redraw()

    @property
    def shares(self) -> dict[str, Callable[[], None]]:
        """What the bar offers to share."""
        return {
            "Copy as Python": lambda: self.shell.browser.copy(self.grid.to_python()),
            "Replay as one page": lambda: self._keep("html"),
            "Film as WebM": lambda: self._keep("webm"),
        }

    def _keep(self, kind: str):
        """Offer how the curves filled in, as a page or a film."""
        dark, rows = self.shell.frame.dark_theme, {True: self.shipped.values(), False: self.local.values()}
        try:
            page, count = replay_of(self.grid, self.axis, self.quantity, rows, self.curves, dark)
        except ValueError as error:
            pn.state.notifications.info(str(error))
        else:
            self.keeper.offer(kind, page, count + 1, dark)

    def _csv(self) -> io.StringIO:
        """Return the rows that are drawn, as a CSV file."""
        return table_of({"shipped": self.shipped.values(), "here": self.local.values()})

    # ---- drawing

    def _show_settings(self):
        """Set the widgets to the grid and the view, without taking that for the user's choice."""
        self.quiet = True
        self.settings.show(self.grid)
        self.dials.show(self.grid)
        self.looking.show(self.quantity, self.axis)
        self.key.object = legend_of(self.quantity)
        shown = presets().get((self.grid, self.axis, self.quantity))
        self.tour.find(PRESETS.index(shown) if shown else -1)
        self.sentence.object = coloured(shown["see"] if shown else "")
        self.about.object = shown["text"] if shown else "" if self.grid.refusal() else PRESS
        self.quiet = False

    def _redraw(self):
        """Draw another grid or view: known rows at once; the rest is looked up on a thread."""
        self.recipes = self.grid.recipes()
        self.shipped = {key: row for key, row in shipped()["rows"].items() if key in self.recipes}
        self.local = {key: row for key, row in self.local.items() if key in self.recipes}
        self.curves, self.laws, self.found = [], {}, None
        series = all_series(self.grid, self.axis)
        log = QUANTITIES[self.quantity][3]
        self.chart = self.charts[log]
        self.chart.take(self.grid, series, self.quantity, self.axis)
        self._draw()
        for scale, pane in self.panes.items():
            pane.visible = scale == log
        requested = self.requested = SimpleNamespace(
            grid=self.grid, quantity=self.quantity, axis=self.axis, keys=list(self.recipes)
        )

        def look_up():
            curves = curves_of(requested.grid, requested.quantity, requested.axis)
            laws = laws_of(requested.grid, requested.quantity, requested.axis)
            return requested, {row["key"]: row for row in store().rows(requested.keys)}, curves, laws

        in_background(
            look_up,
            lambda found: self.post({"found": found}),
            lambda text: self.post({"failed": (requested, text)}),
            lambda: requested is self.requested,
        )
        self._show_job()

    def _draw(self):
        points = points_of(self.shipped.values(), self.quantity, self.axis, shipped=True)
        points += points_of(self.local.values(), self.quantity, self.axis)
        self.chart.show(points, self.curves, self.laws)

    def _show_job(self):
        self.computing.show(self.valid, len(self.shipped), self.local.values())
        if (job := self.computing.job) and job.state == "done":
            self.damaged.visible = self.damaged.visible or bool(job.warnings)

    def _fail(self, text: str):
        self.error.param.update(object=html.escape(text), visible=True)

    def _draw_found(self):
        if self.found and self.arrived and self.loaded:
            (_, rows, self.curves, self.laws), self.found = self.found, None
            self.local |= rows
            self.damaged.visible = store().set_aside is not None
            self._draw()
            self._show_job()

    def on_news(self, news: dict):
        """Take news of the threads. On the event loop."""
        if "failed" in news and news["failed"][0] is self.requested:
            self._fail(news["failed"][1])
        self.arrived |= "arrived" in news
        if "found" in news and news["found"][0] is self.requested:
            self.found = news["found"]
        self._draw_found()

    def resized(self):
        """Fit the lecture to the window, whose height has changed."""
        self.lecture.show()

    def _leave(self):
        """End the sweep and the recording of a closed tab."""
        self.requested = None
        self.replay.close()
        if self.computing.job:
            self.computing.job.cancel()

    def _open(self, point: Point):
        self.chart.mark(point)
        self.replay.open(point)
