"""The buttons that compute the runs of a grid, and how far they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import panel_material_ui as pmui

from stein_core.sweep.keys import is_complete
from steinlab.pages.collapse.grid import Grid
from steinlab.server.jobs import JOBS, SweepJob
from steinlab.ui.job_bar import BUTTON, MIDDLE, TEXT, Bar, progress


class Computing:
    """Run, Cancel and progress.

    Args:
        recipes: returns the grid and its recipes by key.
        started: called when the runs begin.
        failed: called with what is to be said if the runs fail.

    Attributes:
        job: the runs under way, or those that ended and are of the grid on screen; or None.
    """

    def __init__(
        self, recipes: Callable[[], tuple[Grid, dict]], started: Callable[[], None], failed: Callable[[str], None]
    ):
        self._recipes, self._started, self._failed = recipes, started, failed
        self.job: SweepJob | None = None
        self._ran: Grid | None = None  # the job's grid
        self.run = pmui.Button(label="Run", icon="play_arrow", variant="contained", on_click=self.start, **BUTTON)
        self.cancel = pmui.Button(
            label="Cancel", icon="stop", on_click=lambda event: self.job.cancel(), visible=False, **TEXT
        )
        self.bar = Bar("runs")
        self.reading = pmui.Typography("", variant="body2", margin=(4, 8), **MIDDLE)
        self.widgets = self.run, self.cancel, self.bar, self.reading

    def forget(self, grid: Grid) -> None:
        """Drop a job that has ended and is not about this grid."""
        if self.job and not self.job.active and self._ran != grid:
            self.job = None

    def start(self, event) -> None:
        """Compute what is missing."""
        grid, recipes = self._recipes()
        # The second of two quick clicks, or a message that no button sends.
        if self.job and self.job.active or grid.refusal():
            return
        self.job, self._ran = SweepJob(list(recipes.values())), grid
        JOBS.add(self.job)
        self._started()

    def show(self, valid: bool, shipped: int, local: Iterable[dict]) -> None:
        """Say how many runs there are and what the button does.

        Args:
            valid: whether the settings make a grid.
            shipped: number of shipped rows.
            local: rows that this machine has computed.
        """
        grid, recipes = self._recipes()
        local, job = list(local), self.job
        missing = len(recipes) - sum(map(is_complete, local))
        active = bool(job and job.active)
        runs = f"{missing} run{'s' * (missing > 1)}"
        again = missing and shipped == len(recipes)
        label = f"Recompute {runs} here" if again else f"Run {runs}" if missing else "All runs are computed"
        if active:  # of these settings or of earlier ones
            earlier = " of the earlier settings" * (self._ran != grid)
            label = f"Running {job.total} run{'s' * (job.total > 1)}{earlier}"
        refusal = grid.refusal() if missing else ""
        self.run.param.update(label=label, disabled=active or not missing or not valid or bool(refusal))
        self.cancel.visible = self.bar.visible = active
        counts = f"{shipped} of {len(recipes)} runs shipped, {len(local)} computed here"
        text = f"{counts}. {refusal}" if refusal else counts
        if active:
            self.bar.show(job)
            text = progress(job, "runs")
        elif job and job.state == "cancelled" and self._ran == grid:
            text = f"Cancelled: {job.done} of {job.total} runs are kept."
        elif job and job.state == "failed":
            self._failed(job.error)
            self.job = None
        self.reading.object = text
