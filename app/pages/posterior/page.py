"""Page "Your posterior": is it right, as wide as its density says, and what to change."""

from __future__ import annotations

import html
import io
import json

import panel as pn
import panel_material_ui as pmui

from stein_core.posterior.drawing import CSS, questions
from stein_core.posterior.weighing import MOST
from steinlab.pages.posterior.aside import CARD, CSS as ASIDE, NUTS, TWICE, WEIGHED, rows, verdict
from steinlab.pages.posterior.calibrated import Calibrated
from steinlab.pages.posterior.choice import LINK, WAYS, Choice, command, posteriors
from steinlab.pages.posterior.example import CHOICE, example
from steinlab.pages.posterior.jobs import UPLOAD, CalibrationJob, PosteriorJob, Turns, check_of_file, checks_of_stage
from steinlab.pages.posterior.shown import Shown
from steinlab.pages.posterior.tables import CSS as TABLES, tables
from steinlab.server.jobs import JOBS
from steinlab.ui import link
from steinlab.ui.colours import look_of
from steinlab.ui.job_bar import BUTTON, MIDDLE, TEXT, Bar, progress
from steinlab.ui.text import Text
from steinlab.ui.upload import LONGEST, Upload

INTRO = (
    "<p>Choose a posterior and a method, and fit it. Or upload draws of your own, "
    "with their scores. The page asks three questions, gives a verdict, and measures what a change would do.</p>"
)
ABOUT = (
    "Upload an .npz with draws (n, d) and scores (n, d). Or upload an .npz, a .csv or ArviZ's .nc with values for each "
    f"site of the chosen posterior. A file has at most {LONGEST:,} bytes."
)
SIZE = {"size": "small", "margin": (10, 8, 4, 8), "width": 300}


class PosteriorPage:
    """Page "Your posterior"; see `steinlab.contents` for the contract of a page."""

    def __init__(self, shell, query: dict[str, str]):
        self.shell = shell
        names = posteriors()
        self.choice, problems = link.read(LINK, query, CHOICE)
        self.shown: Shown | None = None
        self.tried: list[Shown] = []
        self.busy = False
        self.turns = Turns()
        self.posterior = pmui.Select(label="Posterior", options=names, value=self.choice.posterior, **SIZE)
        ways = {label: key for key, (label, *_) in WAYS.items()}
        self.way = pmui.Select(label="Method", options=ways, value=self.choice.way, **SIZE)
        for name in ("posterior", "way"):
            getattr(self, name).param.watch(self.on_choice, "value")
        self.run = pmui.Button(
            label="Fit and check", icon="play_arrow", variant="contained", on_click=lambda event: self.fit(), **BUTTON
        )
        self.stop = pmui.Button(
            label="Cancel", icon="stop", on_click=lambda event: self.turns.cancel(), visible=False, **TEXT
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
            ABOUT, variant="caption", color="text.secondary", margin=(0, 10), sizing_mode="stretch_width"
        )
        self.error = pmui.Alert("", severity="error", visible=False, sizing_mode="stretch_width", margin=(8, 8))
        self.text = Text(html=INTRO, stylesheets=[CSS, WIDE], sizing_mode="stretch_width", margin=0, styles=ANSWER)
        self.verdict = Text(html="", stylesheets=[ASIDE], sizing_mode="stretch_width", margin=(4, 8))
        self.further = pmui.Column(margin=0, sizing_mode="stretch_width")
        page, numbers = (
            pmui.FileDownload(label=f"Report as {kind}", callback=call, filename=f"report.{kind.lower()}", **TEXT)
            for kind, call in (
                ("HTML", lambda: io.StringIO(self.shown.page)),
                ("JSON", lambda: io.StringIO(json.dumps(self.shown.numbers, indent=1))),
            )
        )
        self.files = pmui.Row(page, numbers, margin=0)
        self.aside = pmui.Column(self.verdict, self.further, self.files, visible=False, margin=0, styles=CARD)
        self.calibrated = Calibrated(self.calibrate)
        self.calibrated.offer(self.choice.posterior)
        self.measured = Text(
            html=tables(),
            stylesheets=[TABLES, WIDE],
            sizing_mode="stretch_width",
            margin=(16, 0),
            styles=MIDDLE_OF_PAGE,
        )
        self.sidebar = []
        title = pmui.Typography("Is this posterior right?", variant="h1", sx={"fontSize": "22px", "fontWeight": 600})
        title.margin = (0, 8)
        controls = pmui.FlexBox(
            self.posterior, self.way, self.run, self.file, self.stop, self.bar, self.reading, align_items="center"
        )
        self.main = [
            pn.Column(
                pn.Column(title, controls, self.about, self.calibrated.controls, self.error, styles=MIDDLE_OF_PAGE),
                pn.FlexBox(self.text, self.aside, gap="12px 40px", styles=BELOW, margin=(8, 16)),
                pn.Column(self.calibrated.result, margin=(0, 8), styles=BELOW),
                pn.Column(self.measured, margin=(8, 16), styles=BELOW),
                sizing_mode="stretch_width",
                margin=(12, 8, 0, 8),
            )
        ]
        if problems:
            self.refuse(" ".join(problems.values()))
        elif self.choice == CHOICE:
            self.show_example()
        shell.frame.param.watch(lambda event: self.draw(), "dark_theme")
        pn.state.on_session_destroyed(lambda context: self.turns.cancel())

    # ---- what the shell asks

    def show(self):
        """Do nothing before a click: a fit takes seconds. A job goes on while another page is shown."""

    hide = show

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
        active = self.turns.active
        self.run.disabled = self.calibrated.button.disabled = self.stop.visible = self.bar.visible = active
        if active is not self.busy:
            self.busy = active
            self.text.styles = ANSWER | ({"opacity": OLD} if active and not self.turns.job.more else {})
            self.draw_rows()
        if active:
            self.bar.unit = self.turns.job.unit
            self.bar.show(self.turns.job)
            self.reading.object = self.news(self.turns.job)
        elif job := self.turns.ended():
            self.reading.object = "Cancelled." if job.state == "cancelled" else ""
            if job.state == "failed":
                self.refuse(f"{job.title}: {job.error}" if job.way == UPLOAD else job.error)
            elif job.state == "done":
                self.take(job)
            if self.turns.waiting:
                self.start(self.turns.waiting.pop(0), job.state != "failed")

    def news(self, job: PosteriorJob) -> str:
        """Return how far a job is, and which file comes next."""
        said = progress(job, job.unit) if JOBS.ahead(job) or job.total > 1 else job.starts
        return said + (f". Then {self.turns.upload.title}" if self.turns.upload else "")

    # ---- from the user

    def on_choice(self, event) -> None:
        """Take another posterior or method. What is shown stays until the next fit."""
        self.choice = Choice(self.posterior.value, self.way.value)
        self.calibrated.offer(self.choice.posterior)

    def fit(self, way: str = "", reference: bool = False) -> None:
        """Fit the chosen posterior and check the fit.

        Args:
            way: another one than that chosen, to compare with what is shown.
            reference: compare with NUTS.
        """
        again = way or reference
        target, key = (self.shown.target, way or self.shown.way) if again else (self.choice.posterior, self.choice.way)
        words = (*command(target, key), *("--reference", "nuts") * reference)
        self.start(PosteriorJob(words, WAYS[key][0], key, target, self.shown.files if again else {}, more=bool(way)))

    def calibrate(self, n: int) -> None:
        """Calibrate the chosen method on n data sets that the chosen posterior's model has made."""
        self.start(CalibrationJob(self.choice.posterior, self.choice.way, n))

    def change(self, key: str) -> None:
        """Run a suggestion, or look at its result if it was measured: a key of WAYS, or NUTS."""
        known = next((one for one in self.tried if one.way == key), None)
        if known:
            self.shown, self.tried = known, [self.shown, *(one for one in self.tried if one is not known)]
            self.draw()
        elif key == NUTS and self.shown.way not in WAYS:
            self.again(("--reference", "nuts"), self.shown.title, self.shown.way)
        elif key == NUTS:
            self.fit(reference=True)
        elif key.startswith(TWICE):
            count = str(2 * self.shown.particles)
            self.again(("--particles", count), f"{self.shown.title}, with {count} particles", key, True)
        elif key.startswith(WEIGHED):
            self.again(("--weigh",), f"{self.shown.title}, with Stein weights", key, True)
        else:
            self.fit(way=key)

    def again(self, words: tuple[str, ...], title: str, way: str, more: bool = False) -> None:
        """Run what is shown with further words of the command."""
        shown = self.shown
        self.start(PosteriorJob((*shown.words, *words), title, way, shown.target, shown.files, more=more))

    def check(self, runs) -> None:
        """Check what is on a stage, see `checks_of_stage`."""
        self.turns.waiting += checks_of_stage(runs)
        if self.turns.waiting and not self.turns.active:
            self.start(self.turns.waiting.pop(0))

    def upload(self, content: bytes) -> None:
        """Check an uploaded file. It takes the place of another one, and waits for the end of a fit."""
        job = check_of_file(content, self.file.file or "draws", self.choice.posterior)
        if self.turns.add_upload(job):
            self.start(job)
        else:
            self.reading.object = self.news(self.turns.job)

    def show_example(self) -> None:
        """Show what was computed before for the choice that the page opens with."""
        self.shown, *self.tried = example()
        self.reading.object = "An example. Fit a posterior, or upload draws."
        self.draw()

    def start(self, job: PosteriorJob, right: bool = True) -> None:
        """Queue a job, unless one is under way. right: whether what the last one said is taken off the page."""
        if self.turns.active:
            return
        if right:
            self.error.visible = False
        self.turns.start(job)
        self.refresh()

    def refuse(self, sentence: str) -> None:
        """Say what is wrong; what is shown stays."""
        self.error.param.update(object=html.escape(sentence), visible=True)

    # ---- what is shown

    def take(self, job: PosteriorJob) -> None:
        """Show the result of a job: a calibration, or a fit that is looked at, or one more that was measured."""
        if isinstance(job, CalibrationJob):
            self.reading.object = job.result["verdict"].splitlines()[0] + " See below."
            return self.calibrated.take(job, self.shell.frame.dark_theme)
        if job.more and self.shown:
            self.tried = [one for one in self.tried if one.way != job.way] + [job.shown]
        else:
            same = self.shown and self.shown.repeats(job.shown)
            self.shown, self.tried = job.shown, self.tried if same else []
        self.draw()

    def draw(self) -> None:
        """Draw the answer and the calibration, in the present theme."""
        self.calibrated.draw(self.shell.frame.dark_theme)
        if self.shown is None:
            return
        way = self.shown.way
        look = look_of(method_of(way) or "svgd")
        colour = look.dark if self.shell.frame.dark_theme else look.colour
        self.text.html = f'<div class="answer">{questions(self.shown.report, colour)}</div>'
        self.verdict.html = verdict(self.shown)
        self.aside.visible = True
        self.draw_rows()

    def draw_rows(self) -> None:
        """Draw the suggestions; their buttons rest while something runs."""
        if self.shown is None:
            return
        ways = {key: WAYS[key][0] for key in ("smi", "svgd", "vi")} if self.shown.target else {}
        if self.shown.way in WAYS and self.shown.particles > 1:
            ways[TWICE + WAYS[self.shown.way][1]] = f"Twice as many particles: {2 * self.shown.particles}"
        draws = self.shown.report["about"]["draws"]
        if 2 <= draws <= MOST and "finite" in self.shown.findings and not self.shown.way.startswith(WEIGHED):
            ways[WEIGHED + method_of(self.shown.way)] = "Stein weights for these draws" + SLOW * (draws > MOST / 2)
        head = pmui.Typography("What to change, measured", variant="subtitle2", margin=(8, 8, 0, 8))
        made = rows(self.shown, self.tried, ways, self.change, self.busy) if ways else []
        self.further[:] = [head, *made] if made else []


def method_of(way: str) -> str:
    """Return the method of a way of `Shown`, or ""."""
    return WAYS[way][1] if way in WAYS else way.partition(" ")[2]


ANSWER = {"flex": "1 1 480px"}
OLD = "0.5"  # how visible an answer is while another one is computed
WIDE = ".prose > * { max-width: none; }"
MIDDLE_OF_PAGE = {"max-width": "1212px", "margin": "0 auto", "width": "100%"}
SLOW = ", a minute or two"
BELOW = {**MIDDLE_OF_PAGE, "padding": "0 8px", "box-sizing": "border-box"}  # the controls above have a margin of 8
