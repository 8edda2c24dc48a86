"""The jobs of page "Your posterior": a fit, or a check of an uploaded file, each in a process of its own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from app.server.jobs import Job
from stein_core import Recipe, Spec
from stein_core.cli.posterior import EXAMPLE

RUN = "recipe.json"  # the name of a file of the job, and of the posterior that it says


class PosteriorJob(Job):
    """Run `fit` or `diagnose`.

    Args:
        words: the command, with the name of a file where it is to be read.
        target: the posterior, or "" for a file alone.
        files: contents of these files.
        recipes: of the run of a stage.

    Attributes:
        result: what the command says, `Report.to_dict` and more; None before it has ended.
        report: the report as one HTML page.
    """

    label = "a fit"

    def __init__(
        self,
        words: Sequence[str],
        target: str = "",
        files: Mapping[str, bytes] = {},
        recipes: Sequence[Recipe] = (),
    ):
        if target == RUN and not recipes:
            recipes = [Recipe.from_dict(json.loads(files[RUN]))]
        elif target and target != RUN and not target.startswith(EXAMPLE):
            recipes = [Recipe(Spec(target, method="svgd"))]
        super().__init__(1, list(recipes))  # their files have to be imported
        self.words, self.target, self.files = tuple(words), target, dict(files)
        self.result: dict[str, Any] | None = None
        self.report = ""

    def arguments(self, folder: Path) -> list[str]:
        for name, content in self.files.items():
            (folder / name).write_bytes(content)
        words = [str(folder / word) if word in self.files else word for word in self.words]
        return [*words, "--json", "--out", str(folder / "report.html")]

    def on_news(self, news: dict[str, Any]) -> None:
        if "verdict" in news:
            self.result = news
        else:
            super().on_news(news)

    def collect(self, folder: Path) -> None:
        self.report = (folder / "report.html").read_text(encoding="utf-8")
