"""Page "Start": what the app is, the lessons and the pages."""

from __future__ import annotations

import html
from collections.abc import Mapping
from itertools import zip_longest
from typing import Any

from steinlab.lesson.failures import FAILURES, Failure, lecture
from steinlab.lesson.pictures import FILES as PICTURES
from steinlab.lesson.predictions import scores_html
from steinlab.lesson.reading import Lesson, keys_of, lessons
from steinlab.stage.million import million, title
from steinlab.stage.picture import FILE, SETUP
from steinlab.ui.text import Text

CSS = """
.prose { max-width: 1080px; margin: 0 auto; }
.prose > * { max-width: none; }
.hero { display: grid; grid-template-columns: minmax(280px, 1fr) minmax(280px, 1.1fr); gap: 12px 40px;
  align-items: center; }
.hero h1 { font-size: 30px; line-height: 1.2; margin: 0 0 .4em; }
.hero p { font-size: 18px; }
.hero .picture { display: block; color: inherit; text-decoration: none; }
.hero svg { display: block; width: 100%; height: auto; }
.button { display: inline-block; margin: 8px 16px 4px 0; padding: 8px 18px; border-radius: 8px; font-weight: 600;
  text-decoration: none; }
.prose .button { background: var(--mui-palette-primary-main, #1B1F23);
  color: var(--mui-palette-primary-contrastText, #fff); }
.groups { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 420px), 1fr)); gap: 8px 40px; }
.groups h3 { display: flex; align-items: center; gap: 14px; margin: 16px 0 8px; font-size: 18px; }
.groups h3 svg { flex: 0 0 132px; height: 60px; border: 1px solid #8885; border-radius: 6px; }
.groups ol, .groups ul { padding: 0; margin: 0; list-style: none; }
.groups li { padding: 7px 0; border-top: 1px solid #8883; }
.groups a { font-weight: 600; text-decoration: none; }
.groups a:hover { text-decoration: underline; }
.groups small { float: right; margin-left: 8px; }
.groups span { display: block; font-size: 14px; line-height: 1.4; opacity: .85; }
.prose h2 { margin: 28px 0 0; font-size: 22px; }
.prose h2 + p { margin: 4px 0 0; }
@media (max-width: 700px) { .hero svg text { font-size: 20.5px; } }
@media (max-width: 700px) { .hero { grid-template-columns: 1fr; } .hero h1 { font-size: 26px; } }
"""
WHAT = (
    "Twenty points stand for a whole posterior. Watch when they do, and when they quietly shrink to a dot. Turn the "
    "repulsion, the number of points and the kernel while it runs."
)
MANY = "SVGD fills a banana, and only near particles push each other."
PATH = 4  # lessons of the first path


class Index:
    """Page "Start"; see `steinlab.contents` for the contract of a page."""

    def __init__(self, shell, query: dict[str, str]):
        self.sidebar = []
        page = Text(html=front(shell.known), go=shell.go, sizing_mode="stretch_width", margin=(16, 16))
        page.stylesheets = [CSS]
        self.main = [page]

    def show(self):
        """Nothing runs here."""

    hide = refresh = show

    def link(self) -> str:
        return ""


def front(known: Mapping[str, Any]) -> str:
    """Return the page as HTML.

    Args:
        known: key of each page -> its entry, see `steinlab.contents`.
    """
    read = list(lessons().values())
    groups = dict.fromkeys(one.group for one in read)
    pictures = [file.read_text(encoding="utf-8") for file in PICTURES]
    course = "".join(
        f"<section><h3>{picture}{html.escape(group)}</h3><ol>"
        f"{''.join(map(of_lesson, (one for one in read if one.group == group)))}</ol></section>"
        for group, picture in zip_longest(groups, pictures[: len(groups)], fillvalue="")
    )
    kinds = {"Pages": False, "For researchers": True}
    pages = "".join(
        f"<section><h2>{title}</h2><ul>{''.join(of_page(*each) for each in known.items() if each[1].research is kind)}"
        "</ul></section>"
        for title, kind in kinds.items()
    )
    minutes = round(sum(one.minutes for one in read[:PATH]), -1)
    return (
        f'<div class="hero"><div><h1>Can you trust this model\'s uncertainty?</h1><p>{WHAT}</p>'
        f'<a class="button" href="?page=lessons&amp;lesson={read[0].key}">Start with lesson 1</a>'
        f'<a href="?{html.escape(SETUP.to_query())}">or play with these points</a></div>'
        f'<div class="picture">{FILE.read_text(encoding="utf-8")}</div></div>'
        f"<h2>Lessons</h2><p>No time? The first {PATH} take {minutes} minutes and say why SVGD collapses and what SMI "
        f"changes.</p>{scores_html([key for one in read for key in keys_of(one)], 'Your predictions in the lessons')}"
        f'<div class="groups">{course}</div><div class="groups">{pages}</div>'
        f"<h2>Ten ways to fail</h2><p>Each is a run that goes wrong. "
        f'<a href="{html.escape(lecture())}">All ten as a lecture</a></p>'
        f'<div class="groups"><ul>{"".join(map(of_failure, FAILURES[::2]))}</ul>'
        f"<ul>{''.join(map(of_failure, FAILURES[1::2]))}</ul></div>{of_many()}"
    )


def of_many() -> str:
    """Return the link to a run of very many particles, or "" where it is not offered."""
    if (setup := million()) is None:
        return ""
    link = f"?page=particles&{setup.to_query()}"
    return f'<h2>Very many</h2><p><a href="{html.escape(link)}">{title(setup)}</a>: {MANY}</p>'


def of_failure(one: Failure) -> str:
    """Return the line of a run that goes wrong."""
    return f'<li><a href="{html.escape(one.link)}">{one.name}</a><span>{one.sentence}</span></li>'


def of_lesson(one: Lesson) -> str:
    """Return the line of a lesson."""
    return (
        f'<li><small>{one.minutes} min</small><a href="?page=lessons&amp;lesson={one.key}">{int(one.key)}. '
        f"{html.escape(one.title)}</a><span>{html.escape(one.question)}</span></li>"
    )


def of_page(key: str, entry) -> str:
    """Return the line of a page, or "" if it is not listed."""
    link = f'<a href="?page={key}">{html.escape(entry.label)}</a>'
    return f"<li>{link}<span>{html.escape(entry.sentence)}</span></li>" if entry.sentence else ""
