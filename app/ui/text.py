"""Show Markdown with formulas, and code in colours, without the internet."""

from __future__ import annotations

import html
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import param
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin
from panel.custom import JSComponent
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from app.server.messages import CheckedMessages, text

HERE = Path(__file__).parent
CSS = """
.prose { font-size: 15px; line-height: 1.55; color: var(--mui-palette-text-primary, inherit);
  overflow-wrap: break-word; }
.prose > * { max-width: 46rem; }
.prose > pre, .prose > .wide { max-width: 62rem; }
.prose h1 { font-size: 1.7rem; line-height: 1.2; margin: .2em 0 .5em; }
.prose h2 { font-size: 1.2rem; margin: 1em 0 .4em; }
.prose h3 { font-size: 1rem; margin: 1em 0 .3em; }
.prose p, .prose ul, .prose ol { margin: .5em 0; }
.prose a { color: var(--mui-palette-primary-main, currentColor); }
.prose code { font: .88em ui-monospace, Menlo, Consolas, monospace; background: #8882; border-radius: 3px;
  padding: .1em .3em; }
.prose pre { margin: .4em 0; padding: 10px 14px; white-space: pre-wrap; overflow-wrap: anywhere; border-radius: 6px;
  background: #8881; line-height: 1.45; }
.prose pre code, .prose pre { font: 13px ui-monospace, Menlo, Consolas, monospace; }
.prose pre .k, .prose pre .kn, .prose pre .kc, .prose pre .ow { color: var(--mui-palette-primary-main, currentColor);
  font-weight: 600; }
.prose pre .s1, .prose pre .s2, .prose pre .sa, .prose pre .si, .prose pre .sd { color: light-dark(#0a7d5a, #4fd1a5); }
.prose pre .mi, .prose pre .mf { color: light-dark(#a34a00, #f0a35e); }
.prose pre .c1 { opacity: .7; font-style: italic; }
.prose pre .nf, .prose pre .nc { font-weight: 600; }
.prose pre code { background: none; padding: 0; }
.prose table { border-collapse: collapse; margin: .6em 0; font-size: 14px; }
.prose .wide { overflow-x: auto; }
.prose caption { text-align: left; white-space: nowrap; font-weight: 600; padding-bottom: 4px; }
.prose th, .prose td { text-align: left; padding: 4px 14px 4px 0; border-bottom: 1px solid #8884; vertical-align: top; }
.prose .number { text-align: right; font-variant-numeric: tabular-nums; }
.prose summary { cursor: pointer; font-weight: 600; padding: 6px 0; }
.prose details { border-left: 3px solid var(--mui-palette-line-main, #8888); padding-left: 12px; margin: .6em 0; }
.prose blockquote { margin: .6em 0; padding-left: 12px; border-left: 3px solid #8886; }
.prose .display { display: block; overflow-x: auto; text-align: center; margin: .7em 0; }
.prose svg { max-width: none; }
.prose .lessons { padding-left: 1.4em; margin: 0; }
.prose .lessons li { margin: .35em 0; }
.prose .lessons a { text-decoration: none; }
.prose .lessons a:hover { text-decoration: underline; }
.prose .lessons [aria-current] { font-weight: 700; }
.prose small { opacity: .75; white-space: nowrap; }
"""
BUSY = """<style>@keyframes run { from { background-position: 150% 0 } to { background-position: -50% 0 } }
.busy { height: 3px; background: linear-gradient(90deg, #8880, #888, #8880) 0 0 / 50% 100% no-repeat;
animation: run 1.2s linear infinite }</style><div class="busy" role="progressbar" aria-label="computing"></div>"""
_markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
_markdown.options["highlight"] = lambda code, language, attributes: coloured(code) if language == "python" else ""
_markdown.use(
    dollarmath_plugin,
    double_inline=True,
    renderer=lambda tex, options: (r"\[{}\]" if options["display_mode"] else r"\({}\)").format(html.escape(tex)),
)


class Text(CheckedMessages, JSComponent):
    """Show HTML whose \\(...\\) and \\[...\\] are drawn as formulas. The caller vouches for the HTML.

    Args:
        go: go("?page=...") follows a link to a page of the app; without it links reload the page.
    """

    html = param.String()
    anchor = param.String(doc="The id of its element.")
    inside = param.Boolean(doc="Whether links to pages of the app are followed without a reload.")

    schemas = ({"go": text},)
    _esm = HERE / "text.js"
    _stylesheets: ClassVar = [CSS]

    def __init__(self, go: Callable[[str], None] | None = None, **params):
        super().__init__(inside=go is not None, **params)
        self.go = go

    def handle_message(self, data) -> None:
        if self.go:
            self.go(data["go"])


def markdown_html(source: str) -> str:
    """Return Markdown as HTML. Tags in it are shown as text, formulas are left for `Text`."""
    return _markdown.render(source)


def code_html(source: str) -> str:
    """Return Python in colours, as HTML."""
    return f"<pre>{coloured(source)}</pre>"


@lru_cache(maxsize=512)
def coloured(source: str) -> str:
    """Return the spans of highlighted Python."""
    return highlight(source, PythonLexer(), HtmlFormatter(nowrap=True, noclasses=False)).rstrip()
