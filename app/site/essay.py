"""The essay of the site: its text with figures that run, predictions and links."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from stein_core.theory import simplex_variance
from steinlab.lesson.failures import FAILURES
from steinlab.lesson.predictions import field_html, read_prediction, scores_html
from steinlab.lesson.recorded import recorded
from steinlab.site.figures import Figure, Place, chart_html, figure_html, filled
from steinlab.ui.colours import look_of
from steinlab.ui.text import markdown_html

TEXT = Path(__file__).parent / "essay.md"
ROUND, FIFTY = Place("gaussian"), Place("gaussian", 50)


CALM = {"method.particles": 20, "method.step_size": 0.2}
FIGURES = {
    "one": Figure(
        Place("banana"), ("svgd", "map"), {"method.particles": 1, "init.shift": 1.8, "init.spread": 0.0},
        ("method.alpha",),
    ),
    "two": Figure(Place("gaussian", 1), ("svgd",), {"method.particles": 2}, ("method.alpha",)),
    "alpha": Figure(ROUND, ("svgd",), {"method.particles": 30}, ("method.alpha", "method.particles")),
    "kernel": Figure(
        Place("three_modes"), ("svgd",), {"method.particles": 30}, ("bandwidth.factor", "method.particles"), speed=2
    ),
    "fifty": Figure(FIFTY, ("svgd",), {"method.particles": 20}, ("method.particles",), speed=2),
    "road": Figure(Place("gaussian", 50, "sgd"), ("svgd", "accelerated"), CALM, ("method.particles",), speed=2),
    "guides": Figure(
        FIFTY, ("svgd", "smi"), {"method.particles": 20, "method.alpha": 0.05}, ("method.particles", "method.alpha")
    ),
    "ring": Figure(
        Place("ring"), ("svgd", "smi"), {"method.particles": 5, "method.alpha": 0.05},
        ("method.particles", "method.alpha"),
    ),
    "remedy": Figure(
        Place("gaussian", 50, "sgd"), ("svgd", "two_kernels", "random_subspace"), CALM, ("method.particles",), speed=2
    ),
    "blocks": Figure(
        Place("autoregression", 10, "sgd"), ("svgd", "blocks"), {"method.particles": 32, "method.step_size": 0.05},
        ("target.rho",), ("attract", "repulse", "draws"), 2,
    ),
}  # fmt: skip
"""By name. A place with "sgd" takes plain steps, since Adam would hide how fast a method is."""


def choice(ask: str, because: str, answer: int, *choices: str) -> dict[str, Any]:
    return {"ask": ask, "because": because, "answer": answer, "choices": choices}


def amount(ask: str, because: str, answer: float, right: tuple, low: float, high: float, **more: Any) -> dict[str, Any]:
    return {"ask": ask, "because": because, "answer": answer, "right": right, "low": low, "high": high, **more}


PREDICTIONS = {
    "one": choice(
        "Where does one particle end?", "One particle does not push itself.", 0,
        "At the top", "On the slope, where the repulsion holds it", "It walks around the hill",
    ),
    "two": amount(
        "How far from the middle does each settle?", "It is the square root of ln 2.", 0.8326, (0.75, 0.91), 0, 2
    ),
    "alpha": choice(
        "You double alpha, the weight of the repulsion. The points",
        "Pull grows with the size of the cloud, push falls.", 1,
        "move apart a little", "spread to twice the variance", "fly away",
    ),
    "kernel": choice(
        "You make the kernel a hundred times as narrow. The points", "Nobody is felt, so nobody is pushed.", 2,
        "spread out more", "stay where they are", "climb to the nearest top",
    ),
    "fifty": amount(
        "How much of the variance do 20 points keep? The truth is 1.", "It is ln(20) / 50, times 20/19.", 0.0631,
        (0.045, 0.09), 0.01, 2, log=True,
    ),
    "law": amount(
        "How much do 50 points keep in 50 dimensions?",
        "Two and a half times as many points, and little more variance.", 0.0798,
        (0.06, 0.11), 0.01, 2, log=True,
    ),
    "road": choice(
        "With momentum the points rest", "Only the road is shorter.", 1,
        "at a larger variance", "at the same variance, sooner", "at a smaller variance",
    ),
    "guides": amount(
        "What is the variance of the twenty guides' mixture?", "The target holds the width of each guide.", 1.02,
        (0.8, 1.3), 0.01, 5, log=True,
    ),
    "ring": choice(
        "Five guides on a ring lie", "Their mixture covers it.", 0,
        "along it, like beads", "all in the middle", "all at one place",
    ),
    "remedy": choice(
        "Which keeps more than half of the variance?", "Two kernels keep 15 %, the random line 76 %.", 1,
        "Two kernels", "The random line", "Both", "Neither",
    ),
    "blocks": choice(
        "With a kernel for each coordinate, the Stein trace is 0.94; exact draws have 1. The posterior is",
        "The widest direction keeps about 1 %.", 2,
        "right within 5 %", "a little too narrow everywhere", "nearly lost in one direction",
    ),
}  # fmt: skip
FOUND = Place("gaussian", 50, "sgd")  # where Newton and the other remedies rest


def law() -> dict[str, Any]:
    """Return the chart of the law: curves for several counts of points, with the recorded runs."""
    sets = []
    for n in (5, 10, 20, 50, 100, 1000):
        dims = sorted({*range(max(2, n - 1), 60), *(round(10 ** (k / 12)) for k in range(12, 41))})
        at = [(d, round(simplex_variance(d, n), 5)) for d in dims if n - 1 <= d <= 2000]
        try:
            runs = [(d, round(v, 5)) for d, v in recorded("svgd", 1.0, n).items() if d >= 2]
        except ValueError:  # none were recorded for this many
            runs = []
        points = [{"colour": look_of("svgd")[:2], "at": each} for each in runs]
        lines = [{"colour": look_of("svgd")[:2], "name": f"SVGD, {n} points", "at": at}]
        sets.append({"name": str(n), "lines": lines, "points": points})
    label = "Variance that is left against dimension; the truth is 1"
    axes = {"x": (2, 2000), "y": (0.001, 2), "labels": ("dimension d", "variance")}
    return axes | {"sets": sets, "start": 2, "slider": "points", "label": label}


def scores() -> str:
    """Return the score card."""
    return scores_html([f"essay.{name}" for name in PREDICTIONS], "Your predictions")


def onward(lab: str, lessons: str) -> str:
    """Return the last paragraphs: the lessons, the lab, and how to get the app."""
    return lessons + markdown_html(f"""
**[Open the lab]({lab})**: choose the posterior, the methods, the kernel and every number yourself. It runs here, too.

**Get the app** for the lessons, your own posterior, neural networks, and every published table beside what we measure.
You need Python 3.11:

```sh
pip install steinlab && steinlab serve --show
```
""")


def failures(targets: Sequence[str], lab: str, readable: set[str]) -> str:
    """Return the list of runs that go wrong. One that the lab can run has a link."""
    rows = []
    for one in FAILURES:
        fields = dict(parse_qsl(one.query))
        here = one.page == "particles" and fields["target"] in targets and fields.keys() <= readable
        name = f'<a href="{lab}?{html.escape(one.query)}">{one.name}</a>' if here else f"<b>{one.name}</b>"
        rows.append(f"<li>{name}{'' if here else ' <small>in the app</small>'}<br>{html.escape(one.sentence)}</li>")
    return f'<ol class="failures">{"".join(rows)}</ol>'


def body(lab: str, targets: Sequence[str], readable: set[str], lessons: str) -> str:
    """Return the essay as HTML.

    Args:
        lab: address of the lab.
        targets: the posteriors that the lab offers.
        readable: the fields of a link that the lab reads.
        lessons: the list of lessons, as HTML.
    """
    parts = {
        "predict": lambda name: field_html(
            f"essay.{name}", read_prediction(PREDICTIONS[name]), name in FIGURES
        ).replace("<div ", f'<div data-of="figure-{name}" ', 1),
        "figure": lambda name: figure_html(name, FIGURES[name]),
        "chart": lambda name: chart_html(name, law()),
        "failures": lambda name: failures(targets, lab, readable),
        "onward": lambda name: onward(lab, lessons),
    }
    return filled(TEXT.read_text(encoding="utf-8"), parts)
