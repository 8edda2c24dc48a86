"""Markdown with formulas, and code in colours, as a component that needs nothing from the internet."""

from __future__ import annotations

import html
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

import panel as pn
import param
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin
from panel.custom import JSComponent
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from app.place import here

HERE = Path(__file__).parent
CSS = """
.text { font-size: 15px; line-height: 1.55; color: var(--mui-palette-text-primary, inherit); max-width: 46rem; overflow-wrap: break-word; }
.text h1 { font-size: 1.7rem; line-height: 1.2; margin: .2em 0 .5em; }
.text h2 { font-size: 1.2rem; margin: 1em 0 .4em; }
.text h3 { font-size: 1rem; margin: 1em 0 .3em; }
.text p, .text ul, .text ol { margin: .5em 0; }
.text a { color: var(--mui-palette-primary-main, #0072B2); }
.text code { font: .88em ui-monospace, Menlo, Consolas, monospace; background: #8882; border-radius: 3px; padding: .1em .3em; }
.text pre { margin: .4em 0; padding: 10px 14px; overflow-x: auto; border-radius: 6px; background: #8881; line-height: 1.45; }
.text pre code, .text pre { font: 13px ui-monospace, Menlo, Consolas, monospace; }
.text pre code { background: none; padding: 0; }
.text table { border-collapse: collapse; margin: .6em 0; font-size: 14px; display: block; overflow-x: auto; }
.text caption { text-align: left; font-weight: 600; padding-bottom: 4px; }
.text th, .text td { text-align: left; padding: 4px 14px 4px 0; border-bottom: 1px solid #8884; vertical-align: top; }
.text .number { text-align: right; font-variant-numeric: tabular-nums; }
.text summary { cursor: pointer; font-weight: 600; padding: 6px 0; }
.text details { border-left: 3px solid var(--mui-palette-primary-main, #0072B2); padding-left: 12px; margin: .6em 0; }
.text blockquote { margin: .6em 0; padding-left: 12px; border-left: 3px solid #8886; }
.text .display { display: block; overflow-x: auto; text-align: center; margin: .7em 0; }
.text svg { max-width: none; }
"""
_markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
_markdown.options["highlight"] = lambda code, language, attributes: coloured(code) if language == "python" else ""
_markdown.use(
    dollarmath_plugin, double_inline=True,
    renderer=lambda tex, options: (r"\[{}\]" if options["display_mode"] else r"\({}\)").format(html.escape(tex)),
)  # fmt: skip


class Text(JSComponent):
    """HTML whose \\(...\\) and \\[...\\] are drawn as formulas. The caller vouches for the HTML."""

    html = param.String()

    _esm = HERE / "text.js"
    _stylesheets: ClassVar = [CSS]


def prose(source: str, **params):
    """A component with this HTML."""
    params = {"sizing_mode": "stretch_width", "margin": (4, 8), **params}
    if here().jupyter:  # Jupyter draws formulas in Markdown only
        return pn.pane.HTML(f'<div class="text">{source}</div>', stylesheets=[CSS], **params)
    return Text(html=source, **params)


def markdown_html(source: str) -> str:
    """Markdown as HTML; tags in it are shown as they are, formulas left for `Text`."""
    return _markdown.render(source)


def code_html(source: str) -> str:
    """Python in colours."""
    return f"<pre>{coloured(source)}</pre>"


@lru_cache(maxsize=512)
def coloured(source: str) -> str:
    """The spans of highlighted Python."""
    return highlight(source, PythonLexer(), HtmlFormatter(nowrap=True, noclasses=False)).rstrip()
