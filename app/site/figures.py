"""Stages of the site: their posterior, methods and numbers, and the element that `figures.js` turns into one."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from stein_core import TARGETS, Spec
from steinlab.ui.text import markdown_html

PART = re.compile(r"^\[\[(\w+) ?(\w*)\]\]$", re.MULTILINE)


@dataclass(frozen=True)
class Place:
    """Hold a posterior in some dimension, and what makes a step of a force."""

    target: str
    dim: int = 2
    optimizer: str = "adam"

    @property
    def key(self) -> str:
        """Part of the names of files: "gaussian-50-sgd"."""
        dim = f"-{self.dim}" if self.dim != 2 else ""
        return f"{self.target}{dim}{f'-{self.optimizer}' if self.optimizer != 'adam' else ''}"

    @property
    def label(self) -> str:
        """What a menu says."""
        return TARGETS[self.target].label + (f", {self.dim} dimensions" if self.dim != 2 else "")

    def spec(self, method: str, capacity: int) -> Spec:
        """Return the spec of a program, as page Particles has it."""
        own = {"target": self.target, "dim": self.dim, "optimizer": self.optimizer}
        return Spec.fitting(method=method, draws=10, capacity=capacity, **own)


@dataclass(frozen=True)
class Figure:
    """Hold a stage.

    Args:
        place: its posterior.
        methods: side by side.
        values: knobs.
        sliders: knobs that are shown.
        marks: what is drawn.
        speed: steps a frame.
        seed: of its random numbers.
        steps: made before it shows.
        pick: what a visitor may choose as the second method; empty for no choice.
    """

    place: Place
    methods: tuple[str, ...]
    values: dict[str, float] = field(default_factory=dict)
    sliders: tuple[str, ...] = ()
    marks: tuple[str, ...] = ("attract", "repulse", "guides", "trails")
    speed: int = 1
    seed: int = 0
    steps: int = 0
    pick: tuple[str, ...] = ()

    @property
    def shown(self) -> tuple[str, ...]:
        """Every method that it can show."""
        return tuple(dict.fromkeys((*self.methods, *self.pick)))


def figure_html(name: str, figure: Figure) -> str:
    """Return the element that `figures.js` turns into a stage."""
    facts = html.escape(json.dumps(asdict(figure) | {"place": figure.place.key}))
    return f'<figure id="figure-{name}" data-figure="{facts}"></figure>'


def chart_html(name: str, facts: dict[str, Any]) -> str:
    """Return the element that `figures.js` turns into a chart of curves."""
    return f'<figure id="figure-{name}" data-chart="{html.escape(json.dumps(facts))}"></figure>'


def filled(text: str, makers: Mapping[str, Callable[[str], str]]) -> str:
    """Return Markdown as HTML. A line `[[kind name]]` becomes what the maker of its kind returns for its name."""
    made, at = [], 0
    for match in PART.finditer(text):
        made += [markdown_html(text[at : match.start()]), makers[match[1]](match[2])]
        at = match.end()
    return "".join([*made, markdown_html(text[at:])])
