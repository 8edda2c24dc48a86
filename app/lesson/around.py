"""What is around an idea of a lesson, as HTML: the list of lessons, the bars of ideas, its code."""

from __future__ import annotations

import base64
import html
from functools import lru_cache

from steinlab.lesson.ideas import Idea, ideas_of
from steinlab.lesson.reading import Lesson, lessons
from steinlab.ui.text import code_html

CSS = """
.lessons { list-style: none; margin: 0; padding: 0; font-size: 15px; }
.lessons a { display: flex; gap: 10px; padding: 8px 10px; border-radius: 8px; text-decoration: none; }
.lessons a:hover, .lessons [aria-current] { background: var(--mui-palette-surface-main); }
.lessons [aria-current] { font-weight: 700; }
.lessons span { min-width: 18px; text-align: right; font-weight: 400; color: var(--mui-palette-text-secondary); }
.bars { display: flex; justify-content: center; }
.bars a { flex: 0 1 40px; min-width: 14px; height: 44px; padding: 0 3px; display: flex; align-items: center; }
.bars a::before { content: ""; height: 6px; width: 100%; border-radius: 3px;
  background: var(--mui-palette-line-main); }
.bars .seen::before { background: var(--mui-palette-edge-main); }
.bars [aria-current]::before { background: var(--mui-palette-text-primary); }
.foot details { display: inline-block; vertical-align: top; margin: 0 24px 0 0; font-size: 15px; }
.foot details[open] { display: block; }
.foot summary { font-weight: 400; min-height: 36px; box-sizing: border-box; }
"""


def listing(current: str, far: dict[str, int]) -> str:
    """Return the list of lessons as HTML.

    Args:
        current: key of the open lesson.
        far: lesson -> the most ideas seen.
    """
    rows = []
    for lesson in lessons().values():
        read = far.get(lesson.key, 0) == len(ideas_of(lesson)) and lesson.key != current
        here = ' aria-current="page"' if lesson.key == current else ""
        mark = '<span aria-label="read">✓</span>' if read else f"<span>{int(lesson.key)}</span>"
        target = f"?page=lessons&amp;lesson={lesson.key}"
        rows.append(
            f'<li><a href="{target}"{here} title="{lesson.minutes} min">{mark}{html.escape(lesson.title)}</a></li>'
        )
    return f'<ol class="lessons">{"".join(rows)}</ol>'


def bars(lesson: str, ideas: tuple[Idea, ...], shown: int, far: int) -> str:
    """Return a bar for each idea as HTML: those that were read, the one on screen and those to come."""
    parts = []
    for i, idea in enumerate(ideas):
        facts = ' aria-current="step"' if i == shown else ' class="seen"' * (i < far)
        name = html.escape(f"Idea {i + 1}: {idea.question}")
        target = f"?page=lessons&amp;lesson={lesson}&amp;idea={i + 1}"
        parts.append(f'<a href="{target}" aria-label="{name}" title="{name}"{facts}></a>')
    return f'<nav class="bars" aria-label="Ideas">{"".join(parts)}</nav>'


@lru_cache(maxsize=128)
def foot(lesson: Lesson, idea: Idea) -> str:
    """Return what is beneath an idea as HTML: its code, folded, and the way to Jupyter."""
    code = ""
    if idea.lines:
        lines = f"{idea.lines} line{'s' * (idea.lines > 1)}"
        code = f'<details data-remember="code"><summary>Show code <small>{lines}</small></summary>'
        code += f"{code_html(idea.code)}</details>"
    name, held = lesson.path.name, base64.b64encode(lesson.path.read_bytes()).decode()
    jupyter = (
        "<details><summary>Open in Jupyter</summary><p>In the folder of Steinlab:</p>"
        f"<pre>.venv/bin/jupyter lab notebooks/{name}</pre>"
        f'<p><a download="{name}" href="data:application/x-ipynb+json;base64,{held}">Download the notebook</a></p>'
        "</details>"
    )
    return f'<div class="foot">{code}{jupyter}</div>'
