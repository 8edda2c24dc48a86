"""The report that page "Your posterior" opens with: two fits of a regression, computed before.

`python -m steinlab.pages.posterior.example` computes them anew.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from stein_core import TARGETS
from steinlab.pages.posterior.choice import WAYS, Choice, command
from steinlab.pages.posterior.shown import Shown
from steinlab.server.folders import ASSETS

FILE = ASSETS / "posterior_example.json"
CHOICE = Choice("stackloss", "few")
BESIDE = ("smi",)  # what else was measured


def example() -> list[Shown]:
    """Return the results as the page holds them, the one that is looked at first."""
    found = json.loads(FILE.read_text(encoding="utf-8"))
    of, target = TARGETS[CHOICE.posterior].label, CHOICE.posterior
    return [
        Shown(
            report, report["page"], f"{WAYS[way][0]}, an example", of, way, target, command(target, way), example=True
        )
        for way, report in found.items()
    ]


def make() -> None:
    """Write the results: what `fit` says, and its report as HTML."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for way in (CHOICE.way, *BESIDE):
            page = Path(folder, f"{way}.html")
            words = [sys.executable, "-m", "stein_core", *command(CHOICE.posterior, way), "--json", "--out", str(page)]
            said = subprocess.run(words, stdout=subprocess.PIPE, text=True)  # it ends with 4 if the fit is wrong
            found[way] = {**json.loads(said.stdout), "page": page.read_text(encoding="utf-8")}
    FILE.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    make()
