"""The panel "You are here": one run of a sweep, repeated and scrubbed through."""

from __future__ import annotations

import html

import numpy as np
import panel as pn
import panel_material_ui as pmui

from stein_core import METHODS, TARGETS, Recipe
from stein_core.sweep.keys import canonical
from steinlab.pages.collapse.laws import variance_law
from steinlab.pages.collapse.recording import Figures, RecordJob
from steinlab.pages.collapse.series import Point
from steinlab.server.background import is_yielding
from steinlab.server.jobs import RECORDINGS
from steinlab.server.limits import LIMITS
from steinlab.stage.setup import Setup
from steinlab.ui.job_bar import MIDDLE, YIELDING

LINK = {"font-size": "15px"}


class Replay:
    """open: repeat the run of a point by a job; `refresh` shows what comes of it."""

    def __init__(self, dark: bool = False):
        self.job: RecordJob | None = None
        self.recording, self.figures = None, Figures(dark)
        self.title = pmui.Typography("", variant="subtitle2", margin=(8, 10, 0, 10), sizing_mode="stretch_width")
        self.scrub = pmui.Player(
            start=0,
            end=1,
            value=0,
            interval=120,
            loop_policy="once",
            show_loop_controls=False,
            margin=(0, 10),
            visible=False,
        )
        self.scrub.param.watch(self._scrubbed, "value")
        self.reading = pmui.Typography("", variant="body2", margin=(4, 10), **MIDDLE)
        self.onward = pn.pane.HTML("", margin=(4, 10), styles=LINK, **MIDDLE)
        panes = [pn.pane.Bokeh(figure, sizing_mode="stretch_width", margin=2) for figure in self.figures.all]
        self.four = pmui.Grid(
            *[pmui.Grid(pane, size={"xs": 12, "sm": 6, "lg": 3}) for pane in panes],
            container=True,
            sizing_mode="stretch_width",
            visible=False,
        )
        self.panel = pmui.Column(
            self.title,
            pmui.FlexBox(self.scrub, self.reading, self.onward, align_items="center"),
            self.four,
            sizing_mode="stretch_width",
            visible=False,
        )

    def open(self, point: Point) -> None:
        """Repeat the run of a point, its first seed's."""
        row = point.rows[0]
        recipe = Recipe.from_dict(row["recipe"])
        self.close()
        self.job, self.recording, self.point = None, None, point
        self.title.object = (
            f"You are here: {METHODS[row['method']].label} on {TARGETS[row['target']].label}, d = {row['dim']}, "
            f"n = {row['particles']}, seed {row['seed']}"
        )
        self.scrub.visible = self.four.visible = False
        self.panel.visible = True
        if problem := LIMITS.refusal(row["dim"], row["particles"]):
            self.onward.object = ""
            self.reading.object = f"It is not repeated here: {problem}"
            return
        self.job = RecordJob(recipe, row["steps"])
        self.reading.object = "waiting …"
        self.onward.object = f'<a href="?{html.escape(link_of(recipe))}" target="_blank">Open in Particles</a>'
        RECORDINGS.add(self.job)

    def refresh(self) -> None:
        """Say how far the recording is, and show it when it has come."""
        job = self.job
        if job is None:
            return
        if job.state == "running":
            now = f"step {job.done:,} of {job.total:,}{YIELDING * is_yielding()}" if job.done else "compiling …"
            self.reading.object = now
        elif job.state == "failed":
            self.reading.object, self.job = f"this run could not be repeated: {job.error}", None
        elif job.state == "done":
            self.recording, self.job = job.recording, None
            self.figures.show(self.recording, *goals_of(self.point))
            last = len(self.recording.shots) - 1
            self.scrub.param.update(end=last, value=last, visible=True)
            self._scrubbed()
            self.four.visible = True

    def close(self) -> None:
        """Nobody looks any more: a recording that runs stops."""
        if self.job:
            self.job.cancel()

    def _scrubbed(self, event=None):
        if self.recording:
            shot = self.recording.shots[min(self.scrub.value, len(self.recording.shots) - 1)]
            self.figures.look(shot)
            self.reading.object = f"step {shot.step:,}"


def link_of(recipe: Recipe) -> str:
    """The link of page Particles that plays a recipe."""
    spec = recipe.spec
    return Setup(
        spec.target,
        (spec.method,),
        spec.dim,
        spec.guide,
        spec.optimizer,
        spec.draws,
        recipe.seed,
        recipe.knobs,
        recipe.changes,
    ).to_query()


def goals_of(point: Point) -> tuple[float | None, float | None]:
    """Return |x| / sqrt(d) and the cosine of pairs at the regular simplex if the law says that a run ends there."""
    series, d, n, row = point.series, point.d, point.n, point.rows[0]
    if not METHODS[series.method].facts.simplex or not 2 <= n <= d + 1 or row["target"] != "gaussian":
        return None, None
    knobs = tuple(canonical(Recipe.from_dict(row["recipe"]))["knobs"].items())
    variance = variance_law(series.method, d, n, series.kernel, series.rule, series.alpha, knobs)
    if not np.isfinite(variance):
        return None, None
    return (variance * (n - 1) / n) ** 0.5, -1 / (n - 1)
