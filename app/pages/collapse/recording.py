"""One run of a sweep, recorded step by step, and the small figures that show its particles becoming a simplex."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from bokeh.models import ColumnDataSource, CustomJSTickFormatter, Span
from bokeh.plotting import figure

from stein_core import Recipe
from stein_core.papers.recording import Recording, Shot, load_recording
from steinlab.server.jobs import Job
from steinlab.ui.colours import GREY, TICKS, darken, dress, looks_of
from steinlab.ui.theme import TOKENS

FORCES = TOKENS["light"]


class RecordJob(Job):
    """A run of a sweep, repeated; recording: what has come of it, or None."""

    label = "a recording"

    def __init__(self, recipe: Recipe, steps: int):
        super().__init__(steps, [recipe])
        self.recording: Recording | None = None

    def arguments(self, folder: Path) -> list[str]:
        return ["record", "--recipe=-", f"--steps={self.total}", f"--out={folder / 'run.npz'}"]

    def collect(self, folder: Path) -> None:
        self.recording = load_recording(folder / "run.npz")


class Figures:
    """Four small figures of one recorded run: norms, angles and forces over the steps, and the first two coordinates at
    the step that is looked at."""

    def __init__(self, dark: bool = False):
        something = [1.0, 2.0]  # Bokeh warns of axes without data

        def source(*names):
            return ColumnDataSource({name: something for name in names})

        self.spread = {name: source("step", "low", "q1", "mid", "q3", "high") for name in ("norms", "cosines")}
        self.forces = source("step", "attract", "repulse", "total")
        self.plane, self.circle = source("x", "y"), source("x", "y")
        self.cursors, self.goals, self.own = [], {}, []  # own: what has the colour of the method
        self.all = [
            self._over_steps("norms", "norm |x| / √d"),
            self._over_steps("cosines", "cosine of pairs"),
            self._forces(),
            self._plane(),
        ]
        self.darken(dark)

    def _small(self, title: str, **options):
        made = figure(
            height=230,
            min_width=240,
            sizing_mode="stretch_width",
            title=title,
            tools="pan,reset,save",
            toolbar_location=None,
            **options,
        )
        dress(made)
        return made

    def _timed(self, title: str, **options):
        made = self._small(title, x_axis_type="log", **options)
        made.xaxis.formatter = CustomJSTickFormatter(code=TICKS)
        made.xaxis.axis_label = "step"
        cursor = Span(dimension="height", line_color=GREY, line_width=1.5)
        made.add_layout(cursor)
        self.cursors.append(cursor)
        return made

    def _over_steps(self, name: str, title: str):
        made = self._timed(title)
        source = self.spread[name]
        self.own += [
            made.varea("step", "low", "high", source=source, fill_alpha=0.3).glyph,
            made.varea("step", "q1", "q3", source=source, fill_alpha=0.5).glyph,
            made.line("step", "mid", source=source, line_width=2).glyph,
        ]
        self.goals[name] = Span(dimension="width", line_color=GREY, line_dash="dashed", line_width=2, visible=False)
        made.add_layout(self.goals[name])
        return made

    def _forces(self):
        made = self._timed("size of the forces", y_axis_type="log")
        made.yaxis.formatter = CustomJSTickFormatter(code=TICKS)
        looks = {
            "attract": ("attraction", FORCES["attract"], "dashed"),
            "repulse": ("repulsion", FORCES["repulse"], "dotted"),
            "total": ("sum", GREY, "solid"),
        }
        for name, (label, colour, dash) in looks.items():
            made.line(
                "step", name, source=self.forces, line_color=colour, line_dash=dash, line_width=2, legend_label=label
            )
        legend = made.legend[0]
        legend.location, legend.padding, legend.spacing = "bottom_left", 2, -4
        dress(made)
        return made

    def _plane(self):
        made = self._small("first two coordinates", match_aspect=True)
        made.line("x", "y", source=self.circle, line_color=GREY, line_dash="dashed", line_width=1.5)
        self.own.append(made.scatter("x", "y", source=self.plane, size=7, fill_alpha=0.7).glyph)
        return made

    def darken(self, on: bool) -> None:
        """Use the dark theme, or the light one."""
        self.dark = on
        for made in self.all:
            darken(made, on)

    def show(self, recording: Recording, norm: float | None, cosine: float | None) -> None:
        """Draw a recording. norm, cosine: where the simplex has them, or None."""
        (look,) = looks_of([recording.recipe.spec.method])
        for glyph in self.own:
            for name in {"fill_color", "line_color"} & glyph.properties():
                setattr(glyph, name, look.dark if self.dark else look.colour)
        shots = [shot for shot in recording.shots if shot.step > 0]  # the axis is logarithmic
        for name, source in self.spread.items():
            usable = [shot for shot in shots if not np.isnan(getattr(shot, name)).any()]
            levels = [getattr(shot, name) for shot in usable]
            columns = zip(("low", "q1", "mid", "q3", "high"), np.array(levels).reshape(-1, 5).T.tolist())
            source.data = {"step": [shot.step for shot in usable], **dict(columns)}
        for name, goal in (("norms", norm), ("cosines", cosine)):
            self.goals[name].update(visible=goal is not None, location=goal or 0.0)
        self.forces.data = {
            "step": [shot.step for shot in shots],
            "attract": [shot.attraction or np.nan for shot in shots],
            "repulse": [shot.repulsion or np.nan for shot in shots],
            "total": [shot.force or np.nan for shot in shots],
        }
        if recording.sd is not None:
            turn = np.linspace(0, 2 * np.pi, 73)
            self.circle.data = {"x": recording.sd[0] * np.cos(turn), "y": recording.sd[1] * np.sin(turn)}

    def look(self, shot: Shot) -> None:
        """Show one step."""
        self.plane.data = {"x": shot.plane[:, 0], "y": shot.plane[:, 1]}
        for cursor in self.cursors:
            cursor.location = max(shot.step, 1)
