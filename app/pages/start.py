"""Page "Start": what the app is, the lessons and the pages."""

from __future__ import annotations

import html
from collections.abc import Mapping

from app.lesson.reading import lessons
from app.stage.picture import FILE, SETUP
from app.ui.text import Text

CSS = """
.prose { max-width: 1080px; margin: 0 auto; }
.prose > * { max-width: none; }
.hero { display: grid; grid-template-columns: minmax(280px, 1fr) minmax(280px, 1.1fr); gap: 12px 40px;
  align-items: center; }
.hero h1 { font-size: 2rem; margin: 0 0 .3em; }
.hero p { font-size: 1.05rem; }
.hero .picture { display: block; text-decoration: none; text-align: center; }
.hero svg { display: block; width: 100%; height: auto; }
.hero .picture span { display: inline-block; margin-top: 6px; }
.button { display: inline-block; margin: 8px 10px 4px 0; padding: 8px 18px; border-radius: 6px; font-weight: 600;
  text-decoration: none; }
.prose .button { background: var(--mui-palette-primary-main, #1B1F23);
  color: var(--mui-palette-primary-contrastText, #fff); }
.halves { display: grid; grid-template-columns: repeat(auto-fit, minmax(300px, 1fr)); gap: 8px 40px; margin-top: 20px; }
.halves ol, .halves ul { padding: 0; margin: 0; list-style: none; }
.halves li { padding: 7px 0; border-top: 1px solid #8883; }
.halves a { font-weight: 600; text-decoration: none; }
.halves a:hover { text-decoration: underline; }
.halves small { float: right; margin-left: 8px; }
.halves span { display: block; font-size: 13.5px; line-height: 1.4; opacity: .85; }
@media (max-width: 700px) { .hero svg text { font-size: 20.5px; } }
@media (max-width: 700px) { .hero { grid-template-columns: 1fr; } .hero h1 { font-size: 1.6rem; } }
"""
WHAT = (
    "Stein particle inference approximates a posterior by moving particles: each climbs towards probable parameters "
    "and pushes its neighbours away. Change the repulsion, the particle count and the kernel while it runs, and see "
    "when its uncertainty can be trusted."
)


class Index:
    """Page "Start"; see `app.contents` for the contract of a page."""

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


def front(known: Mapping[str, tuple]) -> str:
    """Return the page as HTML.

    Args:
        known: key of each page -> its entry, see `app.contents`.
    """
    first = next(iter(lessons()))
    picture = FILE.read_text(encoding="utf-8")
    reading = "".join(
        f'<li><small>{one.minutes} min</small><a href="?page=lessons&amp;lesson={one.key}">{int(one.key)}. '
        f"{html.escape(one.title)}</a><span>{html.escape(one.question)}</span></li>"
        for one in lessons().values()
    )
    pages = "".join(
        f'<li><a href="?page={key}">{html.escape(label)}</a><span>{html.escape(text)}</span></li>'
        for key, (label, _, text) in known.items()
        if text
    )
    return (
        f'<div class="hero"><div><h1>See Stein particle inference at work</h1><p>{WHAT}</p>'
        f'<a class="button" href="?page=lessons&amp;lesson={first}">Start with lesson 1</a>'
        '<a href="?page=particles">or play right away</a></div>'
        f'<a class="picture" href="?{html.escape(SETUP.to_query())}">{picture}'
        "<span>Click to play with it</span></a></div>"
        f'<div class="halves"><section><h2>Lessons</h2><ol>{reading}</ol></section>'
        f"<section><h2>Pages</h2><ul>{pages}</ul></section></div>"
    )
