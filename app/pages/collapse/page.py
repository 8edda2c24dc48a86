"""Page "Variance collapse": how much variance is left, against the dimension, with the theory's curves through it."""

from __future__ import annotations

import html
import io
from types import SimpleNamespace

import panel as pn
import panel_material_ui as pmui

from app.pages.collapse.chart import Chart
from app.pages.collapse.grid import AXES, PRESETS, QUANTITIES, Grid, presets, read_link, shipped
from app.pages.collapse.laws import curves_of, laws_of
from app.pages.collapse.replay import Replay
from app.pages.collapse.series import Point, all_series, points_of, table_of
from app.pages.collapse.settings import CHOICE, Settings
from app.server.background import in_background
from app.server.jobs import JOBS, SweepJob, store
from app.server.loop import soon
from app.server.streaming import Mailbox
from app.ui.browser import Arrival
from app.ui.job_bar import progress

BUTTON = {"size": "small", "margin": (4, 4)}
DAMAGED = "The file of the runs computed on this machine was damaged: it is set aside, and a new one is begun."
OWN = "Your own settings"
PRESS = "Press Run for the points that are not there yet."
KEY = (
    "Solid: the exact law. Dashed: Ba et al.'s limit. {grey}Dotted: guides the eye. Pale large markers "
    "are the shipped reference of {made}, small full ones were computed here; hollow ones did not converge, a cross "
    "diverged. Bars: one standard deviation over the seeds, or both values of two seeds. Click a point to open its run."
)
GREY = {
    "Variance": "Grey: the exact variance. ",
    "Frobenius distance": "Grey: what n exact draws give. ",
    "Mean location": "Band: two standard deviations of the mean of n exact draws. ",
    "Near-orthogonality": "",
}


class Collapse:
    """See `app.shell` for the contract of a page. grid, axis, quantity: what is shown; all of it is in the link."""

    def __init__(self, shell, query: dict[str, str]):
        self.shell = shell
        self.quiet = False
        self.valid = True  # the settings make a grid
        self.job: SweepJob | None = None
        self.ran: Grid | None = None  # the job's grid
        self.local: dict[str, dict] = {}  # rows computed on this machine, by key
        self.curves, self.laws = [], {}
        self.found = None  # what was looked up and is not drawn yet
        self.arrived = False  # whether the browser has the page: news can overtake a page that is still on its way,
        self.loaded = False  # and is dropped until the document is loaded
        self.post = Mailbox(soon(pn.state.curdoc), self.told)
        self.grid, self.axis, self.quantity, problems = read_link(query)
        self._make_controls()
        self.replay = Replay()
        # Both are there from the start: a figure that is added later is measured before it is laid out, and Bokeh fails.
        self.charts = {log: Chart(log, self._open) for log in (True, False)}
        self.panes = {
            log: pmui.Column(
                pn.pane.Bokeh(chart.figure, sizing_mode="stretch_width", margin=0), sizing_mode="stretch_width"
            )
            for log, chart in self.charts.items()
        }
        warning = pmui.Alert(
            pn.pane.HTML(html.escape(" ".join(problems))), severity="warning", title="In this link", closeable=True
        )
        self.damaged = pmui.Alert(DAMAGED, severity="warning", visible=False, closeable=True)
        self.sidebar = [self.preset, *self.settings.widgets]
        self.main = [
            pmui.Column(
                *[warning] * bool(problems),
                self.damaged,
                self.shows,
                self.about,
                self.error,
                pmui.FlexBox(self.run, self.cancel, self.bar, self.reading, align_items="center"),
                pmui.FlexBox(self.tabs, self.variant, self.axes, self.exports, align_items="center"),
                *self.panes.values(),
                self.key,
                self.replay.panel,
                Arrival(lambda: self.post({"arrived": True})),
                sizing_mode="stretch_width",
                margin=(4, 12),
            )
        ]
        self._show_settings()
        self._redraw()
        pn.state.on_session_destroyed(lambda context: self._leave())

    # ---- the pieces

    def _make_controls(self):
        self.preset = pmui.Select(label="What to see", options=[OWN, *(preset["name"] for preset in PRESETS)], **CHOICE)
        self.preset.param.watch(lambda event: self._load_preset(event.new), "value")
        self.about = pmui.Typography("", variant="body2", sizing_mode="stretch_width", margin=(2, 10))
        self.error = pmui.Alert("", severity="error", visible=False, sizing_mode="stretch_width", margin=(4, 8))

        self.settings = Settings(lambda grid: self._take(grid, self.axis, self.quantity), self._refuse)
        small = {"variant": "outlined", "size": "small", "margin": (2, 4), "sx": {"textTransform": "none"}}
        self.shows = pmui.FlexBox(
            pmui.Typography("What the curves show:", variant="body2", margin=(6, 4, 2, 10)),
            *[
                pmui.Button(
                    label=preset["shows"], on_click=lambda event, name=preset["name"]: self._load_preset(name), **small
                )
                for preset in PRESETS
                if "shows" in preset
            ],
            align_items="center",
        )
        self.key = pmui.Typography("", variant="caption", sizing_mode="stretch_width", margin=(0, 10))
        self.run = pmui.Button(label="Run", icon="play_arrow", variant="contained", on_click=self._start, **BUTTON)
        self.cancel = pmui.Button(
            label="Cancel", icon="stop", on_click=lambda event: self.job.cancel(), visible=False, **BUTTON
        )
        self.bar = pmui.LinearProgress(value=0, width=160, visible=False, margin=(4, 8))
        self.reading = pmui.Typography("", variant="body2", margin=(4, 8))
        tabs = list(dict.fromkeys(tab for tab, *_ in QUANTITIES.values()))
        group = {
            "size": "small",
            "margin": (4, 4),
            "sx": {
                "flexWrap": "wrap",
                "& .MuiToggleButton-root": {
                    "textTransform": "none",
                    "whiteSpace": "nowrap",
                    "width": "auto !important",
                },
            },
        }
        self.tabs = pmui.RadioButtonGroup(options=tabs, **group)
        self.variant = pmui.RadioButtonGroup(options={}, **group)
        self.axes = pmui.RadioButtonGroup(options={f"against {label}": name for name, label in AXES.items()}, **group)
        self.tabs.param.watch(lambda event: self._look(quantity=self._variants(event.new)[0]), "value")
        self.variant.param.watch(lambda event: self._look(quantity=event.new), "value")
        self.axes.param.watch(lambda event: self._look(axis=event.new), "value")
        export = pmui.MenuButton(
            label="Export", icon="download", items=[{"label": "Copy link"}, {"label": "Copy as Python"}], **BUTTON
        )
        export.on_click(self._export)
        table = pmui.FileDownload(
            label="Rows as CSV", callback=self._csv, filename="variance_collapse.csv", variant="text", **BUTTON
        )
        self.exports = pmui.Row(export, table)

    # ---- what the shell asks

    def show(self):
        self.loaded = True
        self._draw_found()

    def hide(self):
        """A sweep goes on while another page is shown."""

    def refresh(self):
        """Rows come in here, twice a second at most, however fast they are computed."""
        if self.job:
            rows = {row["key"]: row for row in list(self.job.rows)}
            new = rows.keys() & self.recipes.keys() - self.local.keys()
            if new:
                self.local |= {key: rows[key] for key in new}
                self._draw()
            self._show_job()
        self.replay.refresh()

    def link(self) -> str:
        view = [f"x={self.axis}"] * (self.axis != next(iter(AXES))) + [f"y={self.quantity}"] * (
            self.quantity != next(iter(QUANTITIES))
        )
        return "&".join([*[self.grid.to_query()] * bool(self.grid.to_query()), *view])

    # ---- from the user

    def _refuse(self, problems: list[str]):
        """The settings make no grid: the last one stays on screen, and Run waits."""
        self.valid = False
        self.error.param.update(object="<br>".join(map(html.escape, problems)), visible=True)
        self._show_job()

    def _look(self, **view):
        if not self.quiet:
            view = {"axis": self.axis, "quantity": self.quantity, **view}
            self._take(self.grid, view["axis"], view["quantity"])

    def _load_preset(self, name: str):
        if not self.quiet and name != OWN:
            self._take(*next(shown for shown, preset in presets().items() if preset["name"] == name))

    def _take(self, grid: Grid, axis: str, quantity: str):
        self.grid, self.axis, self.quantity = grid, axis, quantity
        self.valid, self.error.visible = True, False
        if self.job and not self.job.active and self.ran != grid:
            self.job = None  # how it ended is no news of this grid
        self._show_settings()
        self._redraw()

    def _start(self, event):
        if (
            self.job and self.job.active or self.grid.refusal()
        ):  # the second of two quick clicks; a message that no button sends
            return
        self.job, self.ran = SweepJob(list(self.recipes.values())), self.grid
        JOBS.add(self.job)
        self._show_job()

    def _export(self, item):
        if item["label"] == "Copy link":
            self.shell.copy_link(self.link())
        else:
            self.shell.browser.copy(self.grid.to_python())

    def _csv(self) -> io.StringIO:
        """The rows that are drawn, as a table."""
        return table_of({"shipped": self.shipped.values(), "here": self.local.values()})

    # ---- drawing

    @staticmethod
    def _variants(tab: str) -> list[str]:
        return [name for name, (of, *_) in QUANTITIES.items() if of == tab]

    def _show_settings(self):
        """The widgets of the grid and the view, without that counting as the user's wish."""
        self.quiet = True
        self.settings.show(self.grid)
        tab = QUANTITIES[self.quantity][0]
        names = self._variants(tab)
        self.key.object = KEY.format(made=shipped()["made"], grey=GREY[tab])
        self.tabs.value, self.axes.value = tab, self.axis
        self.variant.param.update(
            options={QUANTITIES[name][2]: name for name in names}, value=self.quantity, visible=len(names) > 1
        )
        shown = presets().get((self.grid, self.axis, self.quantity))
        self.preset.value = shown["name"] if shown else OWN
        self.about.object = shown["text"] if shown else "" if self.grid.refusal() else PRESS
        self.quiet = False

    def _redraw(self):
        """Another grid or view: what is known is drawn at once, the rest is looked up on a thread."""
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
        asked = self.asked = SimpleNamespace(
            grid=self.grid, quantity=self.quantity, axis=self.axis, keys=list(self.recipes)
        )

        def look_up():
            curves = curves_of(asked.grid, asked.quantity, asked.axis)
            laws = laws_of(asked.grid, asked.quantity, asked.axis)
            return asked, {row["key"]: row for row in store().rows(asked.keys)}, curves, laws

        in_background(
            look_up,
            lambda found: self.post({"found": found}),
            lambda text: self.post({"failed": (asked, text)}),
            lambda: asked is self.asked,
        )
        self._show_job()

    def _draw(self):
        points = points_of(self.shipped.values(), self.quantity, self.axis, shipped=True)
        points += points_of(self.local.values(), self.quantity, self.axis)
        self.chart.show(points, self.curves, self.laws)

    def _show_job(self):
        job, missing = self.job, len(self.recipes) - len(self.local)
        active = bool(job and job.active)
        again = missing and len(self.shipped) == len(self.recipes)
        runs = f"{missing} run{'s' * (missing > 1)}"
        label = f"Recompute {runs} here" if again else f"Run {runs}" if missing else "All runs are here"
        if active:  # of these settings or of earlier ones
            label = (
                f"Running {job.total} run{'s' * (job.total > 1)}{' of the earlier settings' * (self.ran != self.grid)}"
            )
        refusal = self.grid.refusal() if missing else ""
        self.run.param.update(label=label, disabled=active or not missing or not self.valid or bool(refusal))
        self.cancel.visible = self.bar.visible = active
        text = f"{len(self.shipped)} of {len(self.recipes)} runs shipped, {len(self.local)} computed here. {refusal}".removesuffix(
            ". "
        )
        if active:
            self.bar.value = int(100 * job.done / max(job.total, 1))
            text = progress(job, "runs")
        elif job and job.state == "cancelled" and self.ran == self.grid:
            text = f"cancelled: {job.done} of {job.total} runs are kept"
        elif job and job.state == "done":
            self.damaged.visible = self.damaged.visible or bool(job.warnings)
        elif job and job.state == "failed":
            self.error.param.update(object=html.escape(job.error), visible=True)
            self.job = None
        self.reading.object = text

    def _draw_found(self):
        if self.found and self.arrived and self.loaded:
            (_, rows, self.curves, self.laws), self.found = self.found, None
            self.local |= rows
            self.damaged.visible = store().set_aside is not None
            self._draw()
            self._show_job()

    def told(self, news: dict):
        """From the threads, on the event loop."""
        if "failed" in news and news["failed"][0] is self.asked:
            self.error.param.update(object=html.escape(news["failed"][1]), visible=True)
        self.arrived |= "arrived" in news
        if "found" in news and news["found"][0] is self.asked:
            self.found = news["found"]
        self._draw_found()

    def _leave(self):
        """The tab is closed: its sweep and its recording end."""
        self.asked = None
        self.replay.close()
        if self.job:
            self.job.cancel()

    def _open(self, point: Point):
        self.chart.mark(point)
        self.replay.open(point)
