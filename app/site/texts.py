"""The pages of the site that are read: the essay, lessons, and what the scripts of each are."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from bokeh.util.paths import bokehjs_path

from steinlab.site import chapters, essay, lessons
from steinlab.site.lessons import LessonPage
from steinlab.stage.stage import HERE as STAGE
from steinlab.ui.terms import TERMS
from steinlab.ui.text import HERE as UI

HERE = Path(__file__).parent
LINKS = {
    "index.html": "Essay",
    "lesson-01.html": "Lessons",
    "collapse.html": "Variance collapse",
    "remedy.html": "Which remedy",
    "lab.html": "Lab",
}
CHAPTERS = {
    "collapse": ("Variance collapse", "How much of the variance each method keeps, as the dimension grows."),
    "remedy": ("Which remedy?", "Five places in which SVGD can be changed, and what each change moves."),
}
LIBRARY = ("bokeh.min.js", "bokeh-mathjax.min.js")


def texts(targets: Sequence[str], readable: set[str], taught: Sequence[LessonPage]) -> Iterator[tuple[str, str]]:
    """Yield (name, content) of each page that is read, and of its scripts.

    Args:
        targets: what the lab offers.
        readable: fields of a link that the lab reads.
        taught: the lessons.
    """
    keys = [one.lesson.key for one in taught]
    read = lambda name: (UI / f"{name}.js").read_text(encoding="utf-8")
    ours = "\n".join([(STAGE / "chart.js").read_text(encoding="utf-8"), own("figures")])
    yield "essay.js", within("\n".join([read("predict"), ours, own("essay")]))
    terms, text = (
        f"const TERMS = {json.dumps(TERMS)};",
        read("text").replace("export function render", "function renderText"),
    )
    yield "lesson.js", within("\n".join([terms, read("terms"), read("predict"), text, ours, own("lesson")]))
    for name in LIBRARY:
        yield f"lib/{name}", (bokehjs_path() / "js" / name).read_text(encoding="utf-8")
    yield (
        "index.html",
        page(
            "index.html",
            "Why do the particles huddle? Stein particle inference, live",
            "Twenty points stand for a whole posterior, until they shrink to a dot. Eleven figures that run show why.",
            essay.body("lab.html", targets, readable, lessons.listing(keys)) + essay.scores(),
        ),
    )
    for name, (title, about) in CHAPTERS.items():
        yield f"{name}.html", page(f"{name}.html", f"{title}: Steinlab", about, chapters.body(name))
    for one in taught:
        body = f'{one.body}<div class="foot prose lesson">{one.scores}{lessons.listing(keys, one.lesson.key)}</div>'
        yield one.file, page(one.file, f"{one.lesson.title}: a lesson of Steinlab", one.lesson.question, body, "lesson")


def page(file: str, title: str, about: str, body: str, script: str = "essay") -> str:
    """Return a page.

    Args:
        file: its name.
        title, about: for search engines and the browser's tab.
        body: its HTML.
        script: name of its script.
    """
    lesson = script == "lesson"
    here = "lesson-01.html" if lesson else file
    links = "".join(
        f'<a href="{name}"{" aria-current=page" * (name == here)}>{label}</a>' for name, label in LINKS.items()
    )
    parts = {"title": html.escape(title), "about": html.escape(about), "kind": "taught" * lesson, "links": links}
    parts |= {"prose": "" if lesson else "prose lesson", "body": body, "script": script}
    text = (HERE / "text.html").read_text(encoding="utf-8")
    for name, part in parts.items():
        text = text.replace(f"[[{name}]]", part)
    return text


def own(name: str) -> str:
    """Return a script of this folder."""
    return (HERE / f"{name}.js").read_text(encoding="utf-8")


def within(text: str) -> str:
    """Return a script whose names are its own."""
    return f"(() => {{\n{text}\n}})();"
