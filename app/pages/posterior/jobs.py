"""The jobs of page "Your posterior": a fit, a calibration, or a check of draws, each in a process of its own."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stein_core import TARGETS, Recipe, Spec
from stein_core.cli.posterior import EXAMPLE
from steinlab.pages.posterior.choice import WAYS, command, has_scores, posteriors
from steinlab.pages.posterior.shown import Shown
from steinlab.server.jobs import JOBS, Job

RUN = "recipe.json"  # the name of a file of the job, and of the posterior that it says
UPLOAD = "upload"  # the way of a job that checks a file
STARTS = {b"PK": ".npz", b"\x89HDF": ".nc", b"CDF": ".nc"}  # of files, with the suffix of each


class PosteriorJob(Job):
    """Run `fit` or `diagnose`.

    Args:
        words: the command, with the name of a file where it is to be read.
        title: of its result.
        way: its key of WAYS, UPLOAD, or "run" and a method for a run of a stage.
        target: the posterior, or "" for a file alone.
        files: contents of these files.
        recipes: of the run of a stage.
        more: whether the result is compared with what is shown, else it takes its place.

    Attributes:
        result: what the command says, `Report.to_dict` and more; None before it has ended.
        report: the report as one HTML page.
    """

    label, unit = "a fit", "steps"

    def __init__(
        self,
        words: Sequence[str],
        title: str,
        way: str,
        target: str = "",
        files: Mapping[str, bytes] = {},
        recipes: Sequence[Recipe] = (),
        more: bool = False,
    ):
        if target == RUN and not recipes:
            recipes = [Recipe.from_dict(json.loads(files[RUN]))]
        elif target and target != RUN and not target.startswith(EXAMPLE):
            recipes = [Recipe(Spec(target, method="svgd"))]
        super().__init__(1, list(recipes))  # their files have to be imported
        self.words, self.title, self.way, self.more = tuple(words), title, way, more
        self.target, self.files = target, dict(files)
        self.result: dict[str, Any] | None = None
        self.report = ""

    def arguments(self, folder: Path) -> list[str]:
        for name, content in self.files.items():
            (folder / name).write_bytes(content)
        words = [str(folder / word) if word in self.files else word for word in self.words]
        return [*words, "--json", "--out", str(folder / "report.html")]

    def follow(self, folder: Path) -> None:
        try:
            super().follow(folder)
        except ValueError as error:
            raise ValueError(str(error).replace(f"{folder}/", "")) from None  # the user knows the name alone

    def on_news(self, news: dict[str, Any]) -> None:
        if "verdict" in news:
            self.result = news
        else:
            super().on_news(news)

    def collect(self, folder: Path) -> None:
        self.report = (folder / "report.html").read_text(encoding="utf-8")

    @property
    def starts(self) -> str:
        """Return what is done before the first step."""
        return f"Checking {self.title}" if self.way == UPLOAD else "Finding the start, and compiling"

    @property
    def of(self) -> str:
        """Return what the select calls the posterior."""
        if self.target == RUN:
            spec = self.recipes[0].spec
            return f"{TARGETS[spec.target].label}, {spec.dim} coordinates"
        return next((label for label, name in posteriors().items() if name == self.target), self.target)

    @property
    def shown(self) -> Shown:
        """Return the result as the page holds it."""
        return Shown(self.result, self.report, self.title, self.of, self.way, self.target, self.words, self.files)


class CalibrationJob(PosteriorJob):
    """Run `calibrate`.

    Args:
        target: the posterior.
        way: its key of WAYS.
        n: number of data sets.

    Attributes:
        ranks: the ranks as CSV.
    """

    label, unit, starts = "a calibration", "data sets", "Simulating data, and compiling"

    def __init__(self, target: str, way: str, n: int):
        super().__init__((*command(target, way, "calibrate"), "--n", str(n)), WAYS[way][0], way, target, more=True)
        self.ranks = ""

    def arguments(self, folder: Path) -> list[str]:
        return [*super().arguments(folder), "--ranks", str(folder / "ranks.csv")]

    def collect(self, folder: Path) -> None:
        super().collect(folder)
        self.ranks = (folder / "ranks.csv").read_text(encoding="utf-8")


class Turns:
    """The jobs of one page. One runs at a time; the others wait for it.

    Attributes:
        job: the one that runs or has just ended, or None.
        waiting: an upload, or the other runs of a stage.
    """

    def __init__(self):
        self.job: PosteriorJob | None = None
        self.waiting: list[PosteriorJob] = []

    @property
    def active(self) -> bool:
        """Return whether a job runs or waits for a process."""
        return bool(self.job and self.job.active)

    @property
    def upload(self) -> PosteriorJob | None:
        """Return the check of a file that waits, or None."""
        return next((each for each in self.waiting if each.way == UPLOAD), None)

    def start(self, job: PosteriorJob) -> None:
        """Queue a job."""
        self.job = job
        JOBS.add(job)

    def add_upload(self, job: PosteriorJob) -> bool:
        """Take the check of a file in place of an earlier one. Return whether it can start now, else it waits."""
        self.waiting = [each for each in self.waiting if each.way != UPLOAD]
        if self.active and self.job.way != UPLOAD:
            self.waiting.append(job)
            return False
        self.cancel()
        self.job = None
        return True

    def ended(self) -> PosteriorJob | None:
        """Return the job that has ended, once. If it was not done, what belongs to it does not wait any more."""
        job = None if self.active else self.job
        if job:
            self.job = None
            if job.state != "done":
                self.waiting = [each for each in self.waiting if each.way == UPLOAD]
        return job

    def cancel(self) -> None:
        """Cancel the job that runs."""
        if self.job:
            self.job.cancel()


def check_of_file(content: bytes, name: str, posterior: str) -> PosteriorJob:
    """Return the check of an uploaded file: by its scores, or else as draws of a posterior."""
    suffix = next((suffix for start, suffix in STARTS.items() if content.startswith(start)), ".csv")
    file = f"{re.sub(r'[^A-Za-z0-9_-]', '_', Path(name).stem)[:60] or 'draws'}{suffix}"
    words, target = ["diagnose", file, f"--name={name}"], ""
    if not has_scores(content):
        words, target = [*words, "--model", posterior], posterior
    return PosteriorJob(words, name, UPLOAD, target, {file: content})


def checks_of_stage(runs) -> list[PosteriorJob]:
    """Return the checks of what is on a stage: the first is shown, the others are measured beside it.

    Args:
        runs: (label, Recipe, particles (m, p), step) of each method.
    """
    made = []
    for place, (label, recipe, particles, step) in enumerate(runs):
        kept = io.BytesIO()
        np.savez(kept, particles=particles, step=step)
        files = {RUN: json.dumps(recipe.to_dict()).encode(), "run.npz": kept.getvalue()}
        title, way = f"{label}, {len(particles)} particles on the stage", f"run {recipe.spec.method}"
        words = ("diagnose", "run.npz", "--model", RUN, f"--name={title}")
        made.append(PosteriorJob(words, title, way, RUN, files, [recipe], place > 0))
    return made
