"""A long job on a page: a button that starts it, and while it waits or runs its progress and a button that stops it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import panel as pn
import panel_material_ui as pmui

from steinlab.server.background import is_yielding
from steinlab.server.jobs import JOBS, Job

MIDDLE = {"align": ("start", "center")}  # of what stands in a line with other things
BUTTON = {"size": "small", "margin": (4, 4), **MIDDLE}
TEXT = {
    "variant": "text",
    "sx": {"fontSize": "14px"},
    **BUTTON,
}  # of every button that is not the one filled one of its screen
BAR = """<div role="progressbar" aria-label="{unit} done" aria-valuemin="0" aria-valuemax="100"
aria-valuenow="{percent}" style="width: 160px; height: 6px; border-radius: 3px;
background: var(--mui-palette-line-main)"><div style="width: {percent}%; height: 100%; border-radius: 3px;
background: var(--mui-palette-primary-main)"></div></div>"""
YIELDING = ". Pages that are playing come first."


def progress(job: Job, unit: str) -> str:
    """What a page says of a job that waits or runs."""
    if waits := JOBS.ahead(job):
        return f"Waiting for {JOBS.running} to finish: position {waits} of {JOBS.waiting} in the queue"
    left = "no estimate yet" if job.left is None else f"about {job.left:,.0f} s left"
    return f"{job.done:,} of {job.total:,} {unit}, {left}{YIELDING * is_yielding()}"


class Bar(pn.pane.HTML):
    """Show how much of a job is done.

    Args:
        unit: what its steps are called.
    """

    def __init__(self, unit: str):
        super().__init__("", visible=False, margin=(4, 8), **MIDDLE)
        self.unit = unit

    def show(self, job: Job) -> None:
        """Show the progress of a job."""
        self.object = BAR.format(unit=self.unit, percent=int(100 * job.done / max(job.total, 1)))


class Pausable(NamedTuple):
    """A page that can play. plays: whether it does."""

    plays: Callable[[], bool]
    pause: Callable[[], None]


STILL = Pausable(lambda: False, lambda: None)


class JobBar:
    """make: the job of a click, None where nothing is left to do. ended: hears of it when it is over, however it ended.
    unit: what its steps are called. page: what the job gives way to while it plays, and what can be paused for it."""

    def __init__(
        self,
        label: str,
        unit: str,
        make: Callable[[], Job | None],
        ended: Callable[[Job], None],
        page: Pausable = STILL,
    ):
        self.unit, self.make, self.ended, self.page = unit, make, ended, page
        self.offered = True  # whether there is anything to start
        self.job: Job | None = None
        self.button = pmui.Button(label=label, icon="play_arrow", variant="outlined", on_click=self._start, **BUTTON)
        self.stop = pmui.Button(
            label="Cancel", icon="stop", on_click=lambda event: self.cancel(), visible=False, **TEXT
        )
        self.bar = Bar(unit)
        self.text = pmui.Typography("", variant="body2", margin=(4, 8), visible=False, **MIDDLE)
        self.pause = pmui.Button(
            label="Pause this page to speed up the job",
            icon="pause",
            variant="outlined",
            on_click=lambda event: page.pause(),
            visible=False,
            **BUTTON,
        )
        self.widgets = [self.button, self.stop, self.bar, self.text, self.pause]

    @property
    def active(self) -> bool:
        """Whether a job of this page waits or runs."""
        return bool(self.job and self.job.active)

    def _start(self, event):
        if self.active or not self.offered:  # the second of two quick clicks
            return
        self.job = self.make()
        if self.job:
            JOBS.add(self.job)
        self.refresh()

    def cancel(self) -> None:
        """Stop the job if there is one."""
        if self.job:
            self.job.cancel()

    def refresh(self) -> None:
        """Say how far it is."""
        job, active = self.job, self.active
        self.button.visible = self.offered and not active
        self.stop.visible = self.bar.visible = self.text.visible = active
        self.pause.visible = active and self.page.plays()
        if active:
            self.bar.show(job)
            self.text.object = progress(job, self.unit)
        elif job:
            self.job = None
            self.ended(job)
