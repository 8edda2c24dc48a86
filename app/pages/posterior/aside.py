"""The verdict of page "Your posterior", and what a change would do: each is a row with a button that runs it."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence

import panel_material_ui as pmui

from stein_core.posterior.report import SNIPPET
from steinlab.pages.posterior.jobs import UPLOAD
from steinlab.pages.posterior.shown import Shown
from steinlab.ui.job_bar import BUTTON
from steinlab.ui.text import Text

CSS = """
.prose small { white-space: normal; }
.prose .said { font-size: 21px; line-height: 1.35; margin: 4px 0 10px; }
.prose table { width: 100%; }
.prose td, .prose th { padding: 4px 6px; text-align: right; font-variant-numeric: tabular-nums; }
.prose th:first-child, .prose td:first-child { text-align: left; overflow-wrap: anywhere; }
.prose p { margin: 0; }
.prose summary { cursor: pointer; font-size: 14px; }
.prose details ul { margin: 6px 0 10px; padding-left: 18px; font-size: 14px; }
"""
CARD = {
    "flex": "0 1 340px", "min-width": "min(100%, 300px)", "border": "1px solid var(--mui-palette-line-main)",
    "border-radius": "8px", "padding": "10px", "background": "var(--mui-palette-surface-main)",
}  # fmt: skip
MOST = 12  # rows of a table
NUTS = "nuts"
TWICE, WEIGHED = "twice ", "weigh "  # before the name of the method: the key of a change
ROW = {"margin": (2, 0), "sizing_mode": "stretch_width"}


def verdict(shown: Shown) -> str:
    """Return the verdict as HTML, with what NUTS says if it was asked."""
    own = "" if "finite" in shown.findings else f"<small>To add scores: <code>{html.escape(SNIPPET)}</code></small>"
    note = f"<p><small>{html.escape(shown.report['note'])}</small></p>" * bool(shown.report.get("note"))
    words = html.escape(shown.report["verdict"]).replace(" %", "&nbsp;%")
    return (
        f"<small>Verdict on {html.escape(judged(shown))}</small>"
        f'<p class="said">{words}</p>{details(shown)}{note}{own}{beside(shown)}'
    )


def details(shown: Shown) -> str:
    """Return what is wrong in full sentences, folded; or ""."""
    wrong = [found["sentence"] for found in shown.findings.values() if found["wrong"]]
    listed = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in wrong)
    return f"<details><summary>What was found</summary><ul>{listed}</ul></details>" if wrong else ""


def judged(shown: Shown) -> str:
    """Return what the verdict is about: a fit, or a file with its draws, their scores and its size."""
    if shown.way != UPLOAD:
        return ", ".join(filter(None, (shown.of, shown.title)))
    draws, d = shown.report["about"]["draws"], shown.report["about"]["coordinates"]
    size = sum(map(len, shown.files.values())) / 1000
    by = f"as draws of {shown.of}" if shown.target else "by their scores"
    return f"{shown.title}: {draws:,} draws of {d:,} coordinates, {by}. The file has {size:,.1f} kB."


def beside(shown: Shown) -> str:
    """Return a table of the coordinates against NUTS, with both times; or ""."""
    rows = sorted(shown.report.get("reference", ()), key=lambda row: -abs(row["mean error"]) - abs(row["sd ratio"] - 1))
    if not rows:
        return ""
    cells = "".join(
        f"<tr><td>{html.escape(row['coordinate'])}</td><td>{row['sd ratio']:.2f}</td>"
        f"<td>{row['mean error']:+.2f}</td></tr>"
        for row in rows[:MOST]
    )
    ours = f"This fit took {shown.report['seconds']:.1f} s, " if shown.report.get("seconds") else ""
    took = f"<p><small>{ours}NUTS {shown.report['reference_seconds']:.1f} s (4 chains, 500 + 1,000 steps).</small></p>"
    return f"<table><tr><th>Against NUTS</th><th>sd</th><th>mean</th></tr>{cells}</table>{took}"


def measured(one: Shown) -> str:
    """Return what a result has measured, in a line."""
    found = one.findings
    if one.way.startswith(WEIGHED):
        return found["weighing"]["sentence"]
    numbers = {
        "sd ×": _value(found, "width"),
        "mean": _value(found, "location", "+.2f", " sd"),
        "k-hat": _value(found, "k_hat"),
        "took": f"{one.report['seconds']:.0f} s" if one.report.get("seconds") else "",
    }
    words = ", ".join(f"{name} {text}" for name, text in numbers.items() if text)
    judged = {True: "right", False: "not right", None: "not all checked"}[one.ok]
    return f"{judged}: {words}" if words else "no numbers"


def _value(found, name, form=".2f", unit="") -> str:
    value = found[name]["value"] if name in found else None
    return "" if value is None else f"{value:{form}}{unit}"


def rows(
    shown: Shown,
    tried: Sequence[Shown],
    ways: dict[str, str],
    act: Callable[[str], None],
    busy: bool,
) -> list:
    """Return a row for each change: its name, what it has measured, and a button.

    Args:
        shown: the result that is looked at.
        tried: others of the same posterior.
        ways: key -> label of what can be run.
        act: called with a key, to run it or to look at its result.
        busy: whether something runs.
    """
    known = {one.way: one for one in tried}
    listed = [(key, label, known.get(key)) for key, label in ways.items() if key != shown.way]
    listed += [(one.way, one.title, one) for one in tried if one.way not in ways]
    made = [row("Shown: " + shown.title, measured(shown), None, None, busy)]
    for key, label, one in listed:
        made.append(
            row(
                label,
                measured(one) if one else "",
                "Use it" if one else "Run",
                lambda k=key: act(k),
                busy,
                bool(one and one.ok),
            )
        )
    if shown.target and not shown.report.get("reference"):
        made.append(row("Compare with NUTS", "4 chains, 500 + 1,000 steps", "Run", lambda: act(NUTS), busy))
    return made


def row(title: str, said: str, word: str | None, act: Callable[[], None] | None, busy: bool, strong: bool = False):
    """Return one row; without a word it has no button. A strong button is filled."""
    text = Text(html=f"<p><b>{html.escape(title)}</b></p><p><small>{html.escape(said)}</small></p>", stylesheets=[CSS])
    text.param.update(sizing_mode="stretch_width", margin=(4, 8))
    if word is None:
        return pmui.Row(text, **ROW)
    kind = "contained" if strong else "outlined"
    button = pmui.Button(
        label=word, on_click=lambda event: act(), variant=kind, disabled=busy, **{**BUTTON, "width": 84}
    )
    return pmui.Row(text, button, **ROW)
