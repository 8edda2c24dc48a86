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

from stein_core import keep_compiled
from steinlab.lesson.chart import SHADES, Chart
from steinlab.lesson.host import current_host
from steinlab.lesson.live_stage import LiveStage
from steinlab.lesson.output import Output, prose
from steinlab.lesson.reading import read_lesson, texts
from steinlab.lesson.recorded import recorded
from steinlab.stage.setup import Setup
from steinlab.ui.colours import look_of
from steinlab.ui.text import markdown_html
from steinlab.ui.theme import TOKENS

__all__ = ["chart", "colour", "hidden", "recorded", "shades", "stage", "start", "steps", "table"]

# It looks again when something changes, since a text that is drawn again has another field.
FIELDS = """
const open = () => document.querySelectorAll(".jp-RenderedMarkdown input[type=text]:disabled").forEach(field => {
  field.disabled = false;
});
window.steinlabFields ??= new MutationObserver(open);
window.steinlabFields.observe(document.body, {childList: true, subtree: true});
open();
"""


def start() -> None:
    """Load what the outputs need, once at the top of a notebook. Nothing comes from the internet."""
    keep_compiled()
    host = current_host()
    if host.lesson:  # the page has loaded it all
        return
    if host.jupyter:
        stay_offline()
        open_fields()
    else:
        pn.extension()
        # Under `panel serve` this is the file of the notebook, whose text Panel does not show.
        path = sys._getframe(1).f_globals.get("__file__", "")
        host.texts = texts(read_lesson(Path(path))) if path.endswith(".ipynb") else []


def stay_offline() -> None:
    """Load Panel's extension for Jupyter without anything from the internet.

    With `inline=True` Panel still links the style sheets of a design and of a spinner on its CDN
    (https://github.com/holoviz/panel/issues/5167). So there is no design, and the spinner's sheet is a comment.
    """
    panel.reactive.get_dist_path = lambda cdn="auto": "data:text/css,/*"
    pn.extension(inline=True, design=pn.theme.Design)


def open_fields() -> None:
    """Let a reader type into the fields of the texts: JupyterLab disables what a text holds."""
    from IPython.display import Javascript, display

    display(Javascript(FIELDS))


def stage(
    setup: Setup | str,
    sliders: Sequence[str] = ("method.alpha",),
    marks: Sequence[str] | None = None,
    metrics: Sequence[str] = ("sample_variance", "attraction", "repulsion"),
    play: bool = False,
) -> LiveStage:
    """Return the live stage of page Particles with Play, Step, Reset and the named knobs.

    Args:
        setup: a Setup, or the link text of page Particles: "target=banana&methods=svgd,smi&method.particles=50".
        sliders: names of the knobs.
        marks: what is drawn at first, of "attract", "repulse", "guides", "trails" and "draws" (exact draws);
            by default the first three.
        metrics: names of the diagnostics that are shown.
        play: start at once instead of waiting for Play.
    """
    return LiveStage(setup, sliders, marks, metrics, play)


def chart(draw: Callable[..., Any], title: str = "", equal: bool = False, **controls: tuple | list) -> Chart:
    """Return a figure that is drawn again when a control moves.

    Args:
        draw: draw(**values) returns a HoloViews element or a Bokeh figure. It runs on a thread of its own.
        title: heading of the figure.
        equal: whether both axes share a unit; then they show all that is drawn.
        controls: name=(low, high, default) for a slider (in whole numbers if all three are whole),
            name=(low, high, default, "log") for a logarithmic one, name=[options] for a select.
    """
    return Chart(draw, title, controls, equal)


def colour(name: str) -> str:
    """Return the colour of a method ("svgd") or of a force ("attract", "repulse").

    It is the one of a light page; on a dark page the figure of a `chart` gets the other one.
    """
    if name in ("attract", "repulse"):
        return TOKENS["light"][name]
    look = look_of(name)
    if look is None:
        raise ValueError(f"Method {name!r} has no colour of its own.")
    return look.colour


def shades() -> list[str]:
    """Return the colours of a density, from nothing to dark."""
    return SHADES["light"]


def table(rows: Sequence[dict[str, Any]], caption: str = "") -> Output:
    """Return a small table.

    Args:
        rows: a dict for each row; the keys of the first one are the heads.
        caption: text above the table.
    """
    names = list(rows[0]) if rows else []
    head = "".join(f"<th{_kind(rows[0][name])}>{html.escape(str(name))}</th>" for name in names)
    body = "".join("<tr>" + "".join(_cell(row.get(name, "")) for name in names) + "</tr>" for row in rows)
    caption = f"<caption>{html.escape(caption)}</caption>" * bool(caption)
    return Output(
        prose(f'<div class="wide"><table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>')
    )


def hidden(title: str, markdown: str) -> Output:
    """Return a closed block that unfolds, for the solution of an exercise."""
    made = Output(prose(f"<details><summary>{html.escape(title)}</summary>{markdown_html(markdown)}</details>"))
    made.markdown = f"<details><summary>{html.escape(title)}</summary>\n\n{markdown}\n\n</details>"
    return made


def steps(count: int) -> int:
    """Return `count`, or a tenth of it if the environment variable STEINLAB_FAST is set (the tests set it)."""
    return max(2, count // 10) if os.environ.get("STEINLAB_FAST") else count


def _kind(value: Any) -> str:
    """Return the class of a cell: numbers stand on the right."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool) or hasattr(value, "dtype")
    return ' class="number"' if number else ""


def _cell(value: Any) -> str:
    if isinstance(value, float) or hasattr(value, "dtype") and value.dtype.kind == "f":
        text = f"{float(value):.4g}"
    else:
        text = f"{value:,}" if _kind(value) else html.escape(str(value))
    return f"<td{_kind(value)}>{text.replace('-', '−') if _kind(value) else text}</td>"
