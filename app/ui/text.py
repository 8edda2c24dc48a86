"""Show Markdown with formulas, and code in colours, without the internet."""

from __future__ import annotations

import html
import json
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

from steinlab.server.messages import CheckedMessages, number, one_of, text
from steinlab.ui.terms import TERMS

HERE = Path(__file__).parent
CSS = """
.prose { font-size: 16px; line-height: 1.55; color: var(--mui-palette-text-primary, inherit);
  overflow-wrap: break-word; }
.prose > * { max-width: 46rem; }
.prose > pre, .prose > .wide { max-width: 62rem; }
.prose h1 { font-size: 30px; line-height: 1.2; margin: .2em 0 .4em; }
.prose h2 { font-size: 20px; margin: 1em 0 .4em; }
.prose h3 { font-size: 16px; margin: 1em 0 .3em; }
.prose p, .prose ul, .prose ol { margin: .5em 0; }
.prose a { color: inherit; text-underline-offset: 3px; }
.prose code { font: .88em ui-monospace, Menlo, Consolas, monospace; border-radius: 4px; padding: .1em .3em;
  background: var(--mui-palette-surface-main, #8882); }
.prose pre { margin: .4em 0; padding: 10px 14px; white-space: pre-wrap; overflow-wrap: anywhere; border-radius: 8px;
  background: var(--mui-palette-surface-main, #8881); line-height: 1.45; }
.prose pre code, .prose pre { font: 14px/1.5 ui-monospace, Menlo, Consolas, monospace; }
.prose pre .k, .prose pre .kn, .prose pre .kc, .prose pre .ow, .prose pre .nf, .prose pre .nc { font-weight: 600; }
.prose pre .s1, .prose pre .s2, .prose pre .sa, .prose pre .si, .prose pre .sd, .prose pre .c1 {
  color: var(--mui-palette-text-secondary, inherit); }
.prose pre .c1 { font-style: italic; }
.prose pre code { background: none; padding: 0; }
.prose table { border-collapse: collapse; margin: .6em 0; font-size: 15px; }
.prose .wide { overflow-x: auto; }
.prose caption { text-align: left; white-space: nowrap; font-weight: 600; padding-bottom: 4px; }
.prose th, .prose td { text-align: left; padding: 4px 14px 4px 0; vertical-align: top;
  border-bottom: 1px solid var(--mui-palette-line-main, #8884); }
.prose th.number, .prose td.number { text-align: right; font-variant-numeric: tabular-nums; }
.prose summary { cursor: pointer; font-weight: 600; padding: 6px 0; }
.prose details { margin: .6em 0; }
.prose blockquote { margin: .4em 0; padding: 0; font-size: 15px; line-height: 1.5;
  color: var(--mui-palette-text-secondary, inherit); }
.prose blockquote p { margin: 0; }
.prose .display { display: block; overflow-x: auto; text-align: center; margin: .6em 0; }
.prose svg { max-width: none; }
.prose small { color: var(--mui-palette-text-secondary, inherit); font-size: 14px; white-space: nowrap; }
.prose .attract { color: var(--mui-palette-attract-main, #0072B2); }
.prose .repulse { color: var(--mui-palette-repulse-main, #BD4B00); }
.prose .lights { cursor: pointer; }
.prose span.lights { font-weight: 700; text-decoration: underline 1px; text-underline-offset: 4px; border-radius: 4px; }
.prose span.lights:is(:hover, :focus-visible, .lit) { text-decoration-thickness: 2px;
  background: color-mix(in srgb, currentColor 8%, transparent); }
.prose g.lights { pointer-events: bounding-box; }
.prose .lights > .ground { fill: currentColor; stroke: none; opacity: 0; }
.prose .lights:is(:hover, :focus-visible, .lit) > .ground { opacity: .08; }
.prose .dial { display: inline-block; padding: 0 3px; line-height: 1.45; font-weight: 700; cursor: ew-resize;
  background: var(--mui-palette-mark-main, #FFF3D6); border-bottom: 2px dotted; border-radius: 4px 4px 0 0;
  font-variant-numeric: tabular-nums; touch-action: pan-y; user-select: none; }
.prose .dial::after { content: " \\2194"; font-weight: 400; font-size: .75em; }
.prose .term { position: relative; border-bottom: 1px dotted; cursor: help; }
.prose .term:is(:hover, :focus-visible)::after { content: attr(data-says); position: absolute; left: 0; top: 1.7em;
  z-index: 4; width: max-content; max-width: min(300px, 70vw); padding: 8px 12px; border-radius: 8px; font-size: 14px;
  line-height: 1.4;
  font-weight: 400; text-align: left; white-space: normal; color: var(--mui-palette-text-primary, #1B1F23);
  background: var(--mui-palette-background-paper, Canvas); border: 1px solid var(--mui-palette-edge-main, #888); }
.prose .refused { color: var(--mui-palette-error-main, #b3261e); font-size: .875em; }
.prose .dial input { width: 4em; font: inherit; color: inherit; background: none; border: 0; padding: 0; }
.prose.lesson { font-size: var(--lesson-size, 18px); line-height: 1.6; max-width: 36em; margin: 0 auto; }
.prose.lesson > :is(p, ul, ol, details, table) { display: var(--lesson-prose, revert); }
.prose.lesson blockquote { font-size: max(15px, calc(var(--lesson-size, 18px) - 3px)); }
.prose.lesson > * { max-width: 100%; }
.prose.lesson h1, .prose.lesson h2 { font-size: var(--lesson-head, 30px); line-height: 1.2; margin: 0 0 .3em; }
.prose.lesson > p:first-child { margin-top: 0; }
.prose.lesson:has(> .wide) { max-width: 1000px; }
.prose.lesson table { font-size: 16px; min-width: min(100%, calc(36 * 18px)); margin: 0 auto .5em; }
@media (max-width: 600px) { .prose.lesson h1, .prose.lesson h2 { font-size: 26px; } }
""" + (HERE / "predict.css").read_text(encoding="utf-8")
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


FORCES = ("attract", "repulse")


def _opened(self, tokens, index, options, env):
    """Open a link, a word that lights arrows, or a number that can be dragged."""
    kind, _, name = tokens[index].attrGet("href").partition(":")
    live, facts = env.get("live"), None
    if kind == "lights" and name in FORCES:
        facts = (
            f' class="lights {name}" data-lights="{name}" role="button" tabindex="0"' if live else f' class="{name}"'
        )
    elif kind == "scrub":
        facts = f' data-dial="{html.escape(name)}"' if live else ""
    env.setdefault("spans", []).append(facts is not None)
    return self.renderToken(tokens, index, options, env) if facts is None else f"<span{facts}>"


def _closed(self, tokens, index, options, env):
    """Close what `_opened` has opened."""
    return "</span>" if env["spans"].pop() else self.renderToken(tokens, index, options, env)


_markdown.add_render_rule("link_open", _opened)
_markdown.add_render_rule("link_close", _closed)


class Text(CheckedMessages, JSComponent):
    """Show HTML whose \\(...\\) and \\[...\\] are drawn as formulas. The caller vouches for the HTML.

    Args:
        go: go("?page=...") follows a link to a page of the app; without it links reload the page.
        on_dial: on_dial(name, steps, None) moves a number's knob by so many stops, on_dial(name, 0, value) sets it.
        on_light: on_light(force) asks for the arrows of "attract" or "repulse", on_light("") for all.
        on_run: on_run() is called when a reader has entered a prediction of something that runs.
    """

    html = param.String()
    anchor = param.String(doc="The id of its element.")
    lesson = param.Boolean(doc="Whether it is a column of a lesson: larger, in the middle.")
    inside = param.Boolean(doc="Whether links to pages of the app are followed without a reload.")
    terms = param.Boolean(default=True, doc="Whether terms of page Notation have a card.")
    dials = param.Dict(default={}, doc="By name what `markdown_html` calls numbers: label, value, low, high, text.")

    schemas = (
        {"go": text},
        {"light": one_of("", *FORCES)},
        {"dial": text, "steps": number},
        {"dial": text, "value": number},
        {"run": text},
    )
    _esm = "\n".join(
        [
            f"const TERMS = {json.dumps(TERMS)};",
            *((HERE / name).read_text(encoding="utf-8") for name in ("terms.js", "predict.js", "text.js")),
        ]
    )
    _stylesheets: ClassVar = [CSS]

    def __init__(
        self,
        go: Callable[[str], None] | None = None,
        on_dial: Callable[[str, int, float | None], None] | None = None,
        on_light: Callable[[str], None] | None = None,
        on_run: Callable[[], None] | None = None,
        **params,
    ):
        super().__init__(inside=go is not None, **params)
        self.go, self.on_dial, self.on_light, self.on_run = go, on_dial, on_light, on_run

    def handle_message(self, data) -> None:
        if "go" in data:
            if self.go:
                self.go(data["go"])
        elif "light" in data:
            if self.on_light:
                self.on_light(data["light"])
        elif "run" in data:
            if self.on_run:
                self.on_run()
        elif self.on_dial:
            self.on_dial(data["dial"], int(data.get("steps", 0)), data.get("value"))


def markdown_html(source: str, live: bool = False) -> str:
    """Return Markdown as HTML. Tags in it are shown as text, formulas are left for `Text`.

    `[20](scrub:method.particles)` is a number that moves the knob of that name, `[pushes](lights:repulse)` a word that
    brings the arrows of "attract" or "repulse" forward. So does a part of a formula under a brace that is named
    attraction or repulsion.

    Args:
        source: Markdown.
        live: whether such numbers and words do so; else they are plain text.
    """
    return _markdown.render(source, {"live": live})


def code_html(source: str) -> str:
    """Return Python in colours, as HTML."""
    return f"<pre>{coloured(source)}</pre>"


@lru_cache(maxsize=512)
def coloured(source: str) -> str:
    """Return the spans of highlighted Python."""
    return highlight(source, PythonLexer(), HtmlFormatter(nowrap=True, noclasses=False)).rstrip()
