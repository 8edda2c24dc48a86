"""The calibration on page "Your posterior": its controls, and the curves of ranks."""

from __future__ import annotations

import html
import io
from collections.abc import Callable

import panel as pn
import panel_material_ui as pmui

from stein_core.posterior.rank_figure import CSS, figures
from steinlab.pages.posterior.choice import WAYS, why_not
from steinlab.pages.posterior.jobs import CalibrationJob
from steinlab.ui.colours import look_of
from steinlab.ui.job_bar import BUTTON, MIDDLE, TEXT
from steinlab.ui.text import Text

NUMBERS = (50, 100, 200)  # of data sets
ABOUT = "Is the method right on average? It fits data sets that the model itself has made."
WIDE = ".prose > * { max-width: none; }"


class Calibrated:
    """Offer a calibration of the chosen posterior, and show the last one.

    Args:
        start: called with the number of data sets.
    """

    def __init__(self, start: Callable[[int], None]):
        self.job: CalibrationJob | None = None
        self.number = pmui.Select(
            label="Data sets", options=list(NUMBERS), value=NUMBERS[1], size="small", width=110, margin=(10, 8, 4, 8)
        )
        self.button = pmui.Button(
            label="Calibrate", variant="outlined", on_click=lambda event: start(self.number.value), **BUTTON
        )
        self.about = pmui.Typography("", variant="body2", margin=(4, 8), **MIDDLE)
        self.controls = pmui.FlexBox(self.number, self.button, self.about, align_items="center")
        self.text = Text(html="", stylesheets=[CSS, WIDE], sizing_mode="stretch_width", margin=0)
        files = (
            pmui.FileDownload(label=label, callback=call, filename=name, **TEXT)
            for label, name, call in (
                ("Calibration as HTML", "calibration.html", lambda: io.StringIO(self.job.report)),
                ("Ranks as CSV", "ranks.csv", lambda: io.StringIO(self.job.ranks)),
            )
        )
        self.result = pn.Column(
            self.text, pmui.Row(*files, margin=0), visible=False, margin=0, sizing_mode="stretch_width"
        )

    def offer(self, posterior: str) -> None:
        """Offer a calibration of this posterior, or say why there is none."""
        why = why_not(posterior)
        self.number.visible = self.button.visible = not why
        self.about.object = why or ABOUT

    def take(self, job: CalibrationJob, dark: bool) -> None:
        """Show the result of a job."""
        self.job = job
        self.draw(dark)

    def draw(self, dark: bool) -> None:
        """Draw the curves, in the present theme."""
        if self.job is None:
            return
        look = look_of(WAYS[self.job.way][1])
        head = html.escape(f"Calibration of {self.job.title}, on {self.job.of}")
        self.text.html = f"<h2>{head}</h2>{figures(self.job.result, look.dark if dark else look.colour)}"
        self.result.visible = True
