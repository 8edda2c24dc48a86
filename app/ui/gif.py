"""A GIF of the run that a page shows: a process records its link, for no browser encodes GIFs."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import panel_material_ui as pmui

from steinlab.server.background import is_yielding
from steinlab.server.jobs import RECORDINGS, Job
from steinlab.ui.job_bar import MIDDLE, TEXT, YIELDING, Bar


class GifJob(Job):
    """`steinlab record LINK`. made: the GIF, once there is one."""

    label = "a GIF"

    def __init__(self, link: str):
        super().__init__(0, [])
        self.link, self.made = link, b""

    def arguments(self, folder: Path) -> list[str]:
        return ["record", self.link, "--out", str(folder / "run.gif")]

    def collect(self, folder: Path) -> None:
        self.made = (folder / "run.gif").read_bytes()


class Gifs:
    """Make a GIF, say how far it is, and offer it with its size.

    Attributes:
        dialog: the component.
    """

    def __init__(self):
        self.job: GifJob | None = None
        self.text = pmui.Typography("", variant="body2", margin=(4, 8), **MIDDLE)
        self.bar = Bar("frames")
        self.stop = pmui.Button(label="Cancel", on_click=lambda event: self.close(), **TEXT)
        self.save = pmui.FileDownload(
            label="Save", callback=lambda: BytesIO(self.job.made), filename="steinlab.gif", visible=False, **TEXT
        )
        self.dialog = pmui.Dialog(
            self.text, self.bar, pmui.Row(self.save, self.stop), title="GIF", open=False, show_close_button=False
        )
        self.dialog.param.watch(lambda event: event.new or self.close(), "open")

    def ask(self, link: str) -> None:
        """Begin a GIF of a link. One that is still made is given up."""
        self.close()
        self.job = GifJob(link)
        self.bar.visible, self.save.visible, self.stop.label = True, False, "Cancel"
        self.dialog.open = True
        RECORDINGS.add(self.job)
        self.refresh()

    def close(self) -> None:
        """Give up the job; nobody looks any more."""
        self.dialog.open = False
        if self.job:
            self.job.cancel()
        self.job = None

    def refresh(self) -> None:
        """Say how far it is."""
        job = self.job
        if job is None or not self.bar.visible:  # or the end has been said
            return
        if job.active:
            self.bar.show(job)
            wait = "waiting or compiling …" if not job.done else f"step {job.done:,} of {job.total:,}"
            self.text.object = (
                f"{'painting …' if job.total and job.done >= job.total else wait}{YIELDING * is_yielding()}"
            )
            return
        self.bar.visible, self.save.visible, self.stop.label = False, bool(job.made), "Close"
        size = f"The GIF has {len(job.made) / 1e6:.2f} MB."
        self.text.object = size if job.made else f"There is no GIF: {job.error}"
