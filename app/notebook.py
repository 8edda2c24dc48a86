"""What the notebooks import: a live stage, a figure with sliders, a table, a solution to unfold.

Each is a Panel object that works in the app's Lessons page, under `panel serve` and in Jupyter. A notebook's first code
cell imports from here and calls `start()`; a cell that shows something ends with `.servable()`.
"""

from __future__ import annotations

import html
import os
import sys
from pathlib import Path
from typing import Any, Callable, Sequence

import panel as pn
import panel.reactive

from app.lesson.chart import Chart
from app.lesson.host import here
from app.lesson.live_stage import LiveStage
from app.lesson.output import Output, prose
from app.lesson.reading import read_lesson, texts
from app.stage.setup import Setup
from app.ui.text import markdown_html
from stein_core import keep_compiled

__all__ = ["chart", "hidden", "stage", "start", "steps", "table"]


def start() -> None:
    """Load what the outputs need, once at the top of a notebook. Nothing comes from the internet."""
    keep_compiled()
    place = here()
    if place.lesson:  # the page has loaded it all
        return
    if place.jupyter:
        stay_offline()
    else:
        pn.extension()
        path = sys._getframe(1).f_globals.get(
            "__file__", ""
        )  # under `panel serve` that of the notebook, which shows no text
        place.texts = texts(read_lesson(Path(path))) if path.endswith(".ipynb") else []


def stay_offline() -> None:
    """Panel's extension for Jupyter. It would still fetch style sheets from a CDN: those of a design, so there is none, and
    that of a spinner that nobody needs, which becomes an unfinished comment."""
    panel.reactive.get_dist_path = lambda cdn="auto": "data:text/css,/*"
    pn.extension(inline=True, design=pn.theme.Design)


def stage(
    setup: Setup | str,
    sliders: Sequence[str] = ("method.alpha",),
    marks: Sequence[str] | None = None,
    metrics: Sequence[str] = ("marginal_variance", "attraction", "repulsion"),
    play: bool = False,
) -> LiveStage:
    """The live stage of page Particles with Play, Step, Reset and the named knobs. It waits at its start for Play.

    setup: a Setup, or the link text of page Particles: "target=banana&methods=svgd,smi&method.particles=50".
    marks: what is drawn at first, of "attract", "repulse", "guides" and "trails"; all but the trails without it.
    metrics: the read-outs, names of diagnostics. play: start at once instead.
    """
    return LiveStage(setup, sliders, marks, metrics, play)


def chart(draw: Callable[..., Any], title: str = "", **controls: tuple | list) -> Chart:
    """A figure that is drawn again when a control moves.

    draw(**values) returns a HoloViews element or a Bokeh figure; it runs on a thread of its own. controls:
    name=(low, high, default), a slider in whole numbers where all three are, or name=[options], a select.
    """
    return Chart(draw, title, controls)


def table(rows: Sequence[dict[str, Any]], caption: str = "") -> Output:
    """A small table, a row a dict; the first one's keys are the heads."""
    names = list(rows[0]) if rows else []
    head = "".join(f"<th>{html.escape(str(name))}</th>" for name in names)
    body = "".join("<tr>" + "".join(_cell(row.get(name, "")) for name in names) + "</tr>" for row in rows)
    caption = f"<caption>{html.escape(caption)}</caption>" * bool(caption)
    return Output(
        prose(f'<div class="wide"><table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>')
    )


def hidden(title: str, markdown: str) -> Output:
    """A closed block that unfolds: the solution of an exercise."""
    made = Output(prose(f"<details><summary>{html.escape(title)}</summary>{markdown_html(markdown)}</details>"))
    made.markdown = f"<details><summary>{html.escape(title)}</summary>\n\n{markdown}\n\n</details>"
    return made


def steps(count: int) -> int:
    """`count`, or a tenth of it where the environment variable STEINLAB_FAST is set (the tests set it)."""
    return max(2, count // 10) if os.environ.get("STEINLAB_FAST") else count


def _cell(value: Any) -> str:
    if isinstance(value, float) or hasattr(value, "dtype") and value.dtype.kind == "f":
        return f'<td class="number">{float(value):.4g}</td>'
    number = isinstance(value, int) and not isinstance(value, bool) or hasattr(value, "dtype")
    return f'<td class="number">{value:,}</td>' if number else f"<td>{html.escape(str(value))}</td>"
