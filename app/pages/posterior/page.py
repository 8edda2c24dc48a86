"""Page "Your posterior": is it right, as wide as its density says, and what to change."""

from __future__ import annotations

import html
import io
import json
from dataclasses import dataclass

import panel as pn
import panel_material_ui as pmui

from app.pages.posterior.drawing import CSS, answer
from app.pages.posterior.jobs import PosteriorJob
from app.server.jobs import JOBS
from app.ui import link
from app.ui.colours import look_of
from app.ui.job_bar import BUTTON, MIDDLE, TEXT, Bar, progress
from app.ui.text import Text
from app.ui.upload import LONGEST, Upload
from stein_core import TARGETS
from stein_core.cli.posterior import EXAMPLE
from stein_core.errors import unknown
from stein_core.experiments.posteriordb import POSTERIORS, folder

WAYS = {  # key -> (label, method, words of the command)
    "smi": ("SMI, 20 guides, alpha 0.05", "smi", ()),
    "svgd": ("SVGD, 100 points, rule median", "svgd", ()),
    "few": (
        "SVGD, 20 points, rule median_log",
        "svgd",
        ("--particles", "20", "--set", "bandwidth.rule=median_log"),
    ),
    "vi": ("One guide (VI)", "vi", ()),
}
INTRO = (
    "<h1>Is this posterior right?</h1><p>Choose a posterior and a method, and fit it. Or upload draws of your own, "
    "with their scores. The page asks three questions, gives a verdict, and measures what a change would do.</p>"
)
UPLOAD = (
    "An .npz with draws (n, d) and scores (n, d); or an .npz, a .csv or ArviZ's .nc with values of each site of the "
    f"posterior on the left; at most {LONGEST:,} bytes. The file is only read."
)
STARTS = {b"PK": ".npz", b"\x89HDF": ".nc", b"CDF": ".nc"}  # of files, with the suffix of each
SIZE = {"size": "small", "margin": (4, 8), "width": 300}


def posteriors() -> dict[str, str]:
    """Return what can be fitted: label -> name."""
    own = {entry.label: entry.name for entry in TARGETS.listed()}
    there = [name for name in POSTERIORS if (folder() / f"{name}.npz").is_file()]
    return own | {f"posteriordb: {name}": EXAMPLE + name for name in there}


def posterior_of(text: str) -> str:
    """Read the name of a posterior."""
    if text not in posteriors().values():
        raise unknown("posterior", text, posteriors().values())
    return text


@dataclass(frozen=True)
class Choice:
    """What is fitted, and how: a key of WAYS."""

    posterior: str
    way: str = "smi"


LINK = (
    link.Field("posterior", posterior_of, always=True),
    link.Field("way", link.one_of("way", WAYS), always=True),
)


class PosteriorPage:
    """Page "Your posterior"; see `app.shell` for the contract of a page."""

    def __init__(self, shell, query: dict[str, str]):
        self.shell = shell
        names = posteriors()
        self.choice, problems = link.read(LINK, query, Choice(next(iter(names.values()))))
        self.shown: dict | None = None
        self.tried: list[dict] = []
        self.report = ""
        self.job: PosteriorJob | None = None
        self.meant: tuple[str, str, bool] = ("", "", False)  # title, way and more of the job, see `start`
        self.posterior = pmui.Select(label="Posterior", options=names, value=self.choice.posterior, **SIZE)
        ways = {label: key for key, (label, *_) in WAYS.items()}
        self.way = pmui.Select(label="Method", options=ways, value=self.choice.way, **SIZE)
        for name in ("posterior", "way"):
            getattr(self, name).param.watch(self.on_choice, "value")
        self.run = pmui.Button(
            label="Fit and check", icon="play_arrow", variant="contained", on_click=lambda event: self.fit(), **BUTTON
        )
        self.stop = pmui.Button(
            label="Cancel", icon="stop", on_click=lambda event: self.job.cancel(), visible=False, **TEXT
        )
        self.bar = Bar("steps")
        self.reading = pmui.Typography("", variant="body2", margin=(4, 8), **MIDDLE)
        self.file = Upload(
            self.upload,
            self.refuse,
            accept=".npz,.csv,.nc",
            label="Upload draws",
            variant="outlined",
            size="small",
            margin=(4, 8),
        )
        self.about = pmui.Typography(
            UPLOAD, variant="caption", color="text.secondary", margin=(0, 10), sizing_mode="stretch_width"
        )
        self.error = pmui.Alert("", severity="error", visible=False, sizing_mode="stretch_width", margin=(8, 8))
        self.text = Text(html=INTRO, stylesheets=[CSS], sizing_mode="stretch_width", margin=(8, 16))
        self.further = pmui.FlexBox(align_items="center", sizing_mode="stretch_width", visible=False)
        page, numbers = (
            pmui.FileDownload(label=f"Report as {kind}", callback=call, filename=f"report.{kind.lower()}", **TEXT)
            for kind, call in (
                ("HTML", lambda: io.StringIO(self.report)),
                ("JSON", lambda: io.StringIO(json.dumps(self.shown, indent=1))),
            )
        )
        self.files = pmui.Row(page, numbers, visible=False)
        self.sidebar = []
        controls = pmui.FlexBox(
            self.posterior, self.way, self.run, self.stop, self.bar, self.reading, self.file, align_items="center"
        )
        self.main = [
            pn.Column(
                pn.Column(controls, self.about, self.error, self.further, self.files, styles=MIDDLE_OF_PAGE),
                self.text,
                sizing_mode="stretch_width",
                margin=(12, 8, 0, 8),
            )
        ]
        if problems:
            self.refuse(" ".join(problems.values()))
        shell.frame.param.watch(lambda event: self.draw(), "dark_theme")
        pn.state.on_session_destroyed(lambda context: self.job and self.job.cancel())

    # ---- what the shell asks

    def show(self):
        """Do nothing before a click: a fit takes seconds."""

    def hide(self):
        """Do nothing: a job goes on while another page is shown."""

    def open(self, query: dict[str, str]) -> None:
        """Show the choice of another link."""
        self.choice, problems = link.read(LINK, query, self.choice)
        self.posterior.value, self.way.value = self.choice.posterior, self.choice.way
        if problems:
            self.refuse(" ".join(problems.values()))

    def link(self) -> str:
        return link.write(LINK, self.choice, self.choice)

    def refresh(self):
        """Show how far the job is, and its result."""
        job = self.job
        active = bool(job and job.active)
        self.run.disabled = self.stop.visible = self.bar.visible = active
        for button in self.further:
            button.disabled = active
        if active:
            self.bar.show(job)
            waits = JOBS.ahead(job) or job.total > 1
            self.reading.object = progress(job, "steps") if waits else "Finding the start, and compiling"
        elif job:
            self.job, self.reading.object = None, "Cancelled." if job.state == "cancelled" else ""
            if job.state == "failed":
                self.refuse(job.error)
            elif job.state == "done":
                self.take(job)

    # ---- from the user

    def on_choice(self, event) -> None:
        """Take another posterior or method. What is shown stays until the next fit."""
        self.choice = Choice(self.posterior.value, self.way.value)

    def fit(self, way: str = "", reference: bool = False) -> None:
        """Fit the chosen posterior and check the fit.

        Args:
            way: another one than that chosen, to compare with what is shown.
            reference: compare with NUTS.
        """
        now = (
            (self.shown["target"], self.shown["way"]) if way or reference else (self.choice.posterior, self.choice.way)
        )
        target, key = now[0], way or now[1]
        label, method, words = WAYS[key]
        words = ("fit", target, "--method", method, *words, *("--reference", "nuts") * reference)
        self.start(PosteriorJob(words, target), label + ", with NUTS" * reference, key, bool(way))

    def upload(self, content: bytes) -> None:
        """Check an uploaded file: by its scores, or else as draws of the chosen posterior."""
        name = "draws" + next((suffix for start, suffix in STARTS.items() if content.startswith(start)), ".csv")
        words, target = ["diagnose", name], ""
        if not has_scores(content):
            words, target = [*words, "--model", self.choice.posterior], self.choice.posterior
        self.start(PosteriorJob(words, target, {name: content}), "Uploaded draws", "", False)

    def start(self, job: PosteriorJob, title: str, way: str, more: bool) -> None:
        """Queue a job, unless one is under way.

        Args:
            job: what to run.
            title: of its result.
            way: its key of WAYS, or "" for a file.
            more: whether it is compared with what is shown, else it takes its place.
        """
        if self.job and self.job.active:
            return
        self.error.visible = False
        self.job, self.meant = job, (title, way, more)
        JOBS.add(job)
        self.refresh()

    def refuse(self, sentence: str) -> None:
        """Say what is wrong; what is shown stays."""
        self.error.param.update(object=html.escape(sentence), visible=True)

    # ---- what is shown

    def take(self, job: PosteriorJob) -> None:
        """Show the result of a job: as the one that is looked at, or as one more that was measured."""
        title, way, more = self.meant
        of = self.label(job.target) if job.target else "uploaded draws"
        result = {**job.result, "title": title, "of": of, "way": way, "target": job.target}
        if more:
            self.tried = [one for one in self.tried if one["title"] != title] + [result]
            if self.shown["ok"] is False and result["ok"]:  # a better one: look at it
                self.shown, self.tried = result, [one for one in self.tried if one is not result] + [self.shown]
                self.report = job.report
        else:
            self.shown, self.tried, self.report = result, [], job.report
        self.draw()

    def draw(self) -> None:
        """Draw the answer, in the present theme."""
        if self.shown is None:
            return
        look = look_of(WAYS[self.shown["way"]][1] if self.shown["way"] else "svgd")
        colour = look.dark if self.shell.frame.dark_theme else look.colour
        self.text.html = answer(self.shown, self.tried, colour)
        self.files.visible = True
        self.further.visible = bool(self.shown["way"])
        if self.shown["way"]:
            others = [key for key in ("smi", "svgd", "vi") if key != self.shown["way"]]
            self.further[:] = [
                pmui.Typography("What would a change do?", variant="body2", margin=(4, 8), **MIDDLE),
                *(
                    pmui.Button(label=WAYS[key][0], on_click=lambda event, key=key: self.fit(way=key), **OUTLINED)
                    for key in others
                ),
                pmui.Button(label="Compare with NUTS", on_click=lambda event: self.fit(reference=True), **OUTLINED),
            ]

    @staticmethod
    def label(target: str) -> str:
        """Return what the select calls a posterior."""
        return next((label for label, name in posteriors().items() if name == target), target)


OUTLINED = {"variant": "outlined", **BUTTON}
MIDDLE_OF_PAGE = {"max-width": "1212px", "margin": "0 auto", "width": "100%"}


def has_scores(content: bytes) -> bool:
    """Say whether an .npz has an array `scores`: the names of its members are at the end."""
    return b"scores.npy" in content[-65_536:]
