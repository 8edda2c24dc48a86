"""The panel "You are here": one run of a sweep, repeated and scrubbed through."""

from __future__ import annotations

import html
from typing import Callable

import numpy as np
import panel as pn
import panel_material_ui as pmui

from app.pages.collapse.laws import variance_law
from app.pages.collapse.recording import Figures, Recording, record
from app.pages.collapse.series import Point
from app.server.background import RECORDERS, STOPPING, Breaks, giving_way, in_background
from app.server.limits import LIMITS
from app.stage.setup import Setup
from stein_core import METHODS, TARGETS, Recipe
from stein_core.sweep.grids import canonical


class Replay:
    """open: repeat the run of a point on a thread, whose news goes through `post` to `told`, on the event loop."""

    def __init__(self, post: Callable[[dict], None]):
        self.post = post
        self.opened = 0  # counts the clicks: only the last one's recording is shown
        self.recording, self.progress, self.figures = None, "", Figures()
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
        self.reading = pmui.Typography("", variant="body2", margin=(4, 10))
        self.onward = pn.pane.HTML("", margin=(4, 10))
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
        self.opened += 1
        number, self.recording, self.point = self.opened, None, point
        self.title.object = (
            f"You are here: {METHODS[row['method']].label} on {TARGETS[row['target']].label}, d = {row['dim']}, "
            f"n = {row['particles']}, seed {row['seed']}"
        )
        self.scrub.visible = self.four.visible = False
        self.panel.visible = True
        if problem := LIMITS.refusal(row["dim"], row["particles"]):
            self.progress, self.onward.object = "", ""
            self.reading.object = f"It is not repeated here: {problem}"
            return
        self.progress = self.reading.object = "waiting …"
        self.onward.object = f'<a href="?{html.escape(link_of(recipe))}" target="_blank">Open in Particles</a>'

        breaks = Breaks()

        def at(step):
            self.progress = f"step {step:,} of {row['steps']:,}{giving_way()}"

        def wanted():
            return self.opened == number and not STOPPING.is_set()

        def unwanted():
            breaks.take(lambda: not wanted())
            return not wanted()

        def work():
            self.progress = "compiling …"
            return record(recipe, row["steps"], at, unwanted)

        in_background(
            work,
            lambda recording: self.post({"recorded": (number, recording)}),
            lambda text: self.post({"unrecorded": (number, text)}),
            wanted,
            RECORDERS,
        )

    def refresh(self) -> None:
        """Say how far the recording is."""
        if self.progress and self.recording is None:
            self.reading.object = self.progress

    def told(self, number: int, recording: Recording) -> None:
        """A recording is there; one of an earlier click is dropped."""
        if number != self.opened:
            return
        self.recording = recording
        self.figures.show(recording, *goals_of(self.point))
        last = len(recording.shots) - 1
        self.scrub.param.update(end=last, value=last, visible=True)
        self._scrubbed()
        self.four.visible = True

    def failed(self, number: int, text: str) -> None:
        """There will be no recording."""
        if number == self.opened:
            self.progress = self.reading.object = f"this run could not be repeated: {text}"

    def close(self) -> None:
        """Nobody looks any more: a recording that runs stops."""
        self.opened += 1

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
    """|x| / sqrt(d) and the cosine of pairs at the regular simplex, where the law says that a run ends there; else None."""
    series, d, n, row = point.series, point.d, point.n, point.rows[0]
    if not METHODS[series.method].facts.simplex or not 2 <= n <= d + 1 or row["target"] != "gaussian":
        return None, None
    knobs = tuple(canonical(Recipe.from_dict(row["recipe"]))["knobs"].items())
    variance = variance_law(series.method, d, n, series.kernel, series.rule, series.alpha, knobs)
    if not np.isfinite(variance):
        return None, None
    return (variance * (n - 1) / n) ** 0.5, -1 / (n - 1)
