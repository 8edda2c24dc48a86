"""Lessons for a page without Python: their text, their tables, their stages, and figures that were drawn before."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from steinlab.lesson.chart import Chart
from steinlab.lesson.host import NotebookHost, use_host
from steinlab.lesson.ideas import ideas_of, shown_source
from steinlab.lesson.live_stage import LiveStage
from steinlab.lesson.output import Output
from steinlab.lesson.predictions import scores_html
from steinlab.lesson.reading import Lesson, keys_of, lessons, run, text_html
from steinlab.site.drawings import Control, controls_of, drawings
from steinlab.site.figures import Figure, Place, figure_html
from steinlab.stage.setup import Setup
from steinlab.ui.text import Text

CHOSEN = ("01", "02", "03", "04", "06")
APP = re.compile(r'<a href="\?page=[^"]*">(.*?)</a>')


@dataclass
class LessonPage:
    """Hold a lesson as a page.

    Attributes:
        figures: its stages, by name.
        charts: its figures with their controls, by name.
        body, scores: its HTML, and that of its score card.
    """

    lesson: Lesson
    figures: dict[str, Figure] = field(default_factory=dict)
    charts: dict[str, tuple[Chart, tuple[Control, ...]]] = field(default_factory=dict)
    body: str = ""
    scores: str = ""

    @property
    def file(self) -> str:
        """Name of its page."""
        return file_of(self.lesson)

    @property
    def drawn(self) -> int:
        """Number of its `parts`."""
        return sum(1 + prod(len(one.values) for one in controls) for _, controls in self.charts.values())

    def parts(self) -> Iterator[tuple[str, str]]:
        """Yield (name, JavaScript expression) of what its page loads when it is needed."""
        for name, (chart, controls) in self.charts.items():
            for number, made in enumerate(drawings(chart, controls)):
                yield f"drawings/{name}{f'/{number - 1}' if number else ''}", json.dumps(made, separators=(",", ":"))


def file_of(lesson: Lesson) -> str:
    """Return the name of a lesson's page."""
    return f"lesson-{lesson.key}.html"


def page_of(lesson: Lesson) -> LessonPage:
    """Run a lesson and return its page.

    Raises:
        RuntimeError: a cell failed.
    """
    page, names, parts = LessonPage(lesson), {"__name__": "__main__"}, []
    host = NotebookHost(lambda call: None, lesson=True)
    for idea in ideas_of(lesson):
        cells = range(idea.start, idea.stop)
        runs = any(lesson.cells[i].code and lesson.cells[i].source.startswith("stage(") for i in cells)
        shown = [part for i in cells for part in cell_html(page, i, runs, names, host)]
        parts.append(f"<section>{''.join(shown)}</section>")
    page.body = "".join(parts)
    page.scores = scores_html(keys_of(lesson), f"Your predictions in lesson {int(lesson.key)}")
    return page


def cell_html(page: LessonPage, index: int, runs: bool, names: dict[str, Any], host: NotebookHost) -> Iterator[str]:
    """Run a cell and yield what it shows, as HTML.

    Args:
        page: the lesson so far; what the cell shows is added to it.
        index: the cell.
        runs: whether a stage is near.
        names: what the cells before it have defined.
        host: of their outputs.
    """
    cell, name = page.lesson.cells[index], f"{page.lesson.key}-{index}"
    if not cell.code:
        text = text_html(page.lesson, index, shown_source(page.lesson, index), live=True, runs=runs)
        text = APP.sub(r"\1", text)
        yield f'<div class="text"><div class="prose lesson">{text}</div></div>'
        return
    with use_host(host):
        result = run(cell.source, names)
    if result.problem:
        raise RuntimeError(f"lesson {page.lesson.key}, cell {index}: {result.problem}")
    made = result.shown
    if isinstance(made, LiveStage):
        page.figures[name] = staged(made)
        yield figure_html(name, page.figures[name])
    elif isinstance(made, Chart):
        controls = controls_of(made)
        page.charts[name] = made, controls
        facts = html.escape(json.dumps([control.facts() for control in controls]))
        title = f"<figcaption>{html.escape(made.heading)}</figcaption>" * bool(made.heading)
        yield f'<figure id="figure-{name}" data-drawing="{name}" data-controls="{facts}">{title}</figure>'
    elif isinstance(made, Output):
        yield "".join(f'<div class="prose lesson">{part.html}</div>' for part in made if isinstance(part, Text))


def staged(made: LiveStage) -> Figure:
    """Return the stage of a lesson as the site has it.

    Raises:
        ValueError: its setup has something that the site cannot show.
    """
    setup, shown = made.setup, [name for name in made.stage.show if made.stage.show[name]]
    kept = Setup(setup.target, setup.methods, setup.dim, knobs=setup.knobs, seed=setup.seed, steps=setup.steps)
    if kept != setup:
        raise ValueError(f"stage {setup.to_query()!r}; allowed on a site: target, dim, methods, knobs, seed, steps.")
    spec = setup.spec(setup.methods[0], 2)
    known = {name: knob for method in setup.methods for name, knob in setup.spec(method, 2).knobs().items()}
    values = {name: float(known[name].traced(value)) for name, value in setup.knobs.items()}
    place = Place(setup.target, spec.dim)
    return Figure(place, setup.methods, values, tuple(made.knobs), tuple(shown), 1, setup.seed, setup.steps)


def listing(taught: Sequence[str], current: str = "") -> str:
    """Return the list of lessons as HTML.

    Args:
        taught: keys of those with a page.
        current: key of the open one.
    """
    rows = []
    for key, lesson in lessons().items():
        if key in taught and key != current:
            rows.append(f'<li><a href="{file_of(lesson)}">{lesson.title}</a></li>')
        elif key == current:
            rows.append(f'<li aria-current="page"><b>{lesson.title}</b></li>')
        else:
            rows.append(f"<li>{lesson.title} <small>in the app</small></li>")
    return f'<ol class="lessons">{"".join(rows)}</ol>'
