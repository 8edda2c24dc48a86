"""What page "Your posterior" shows of a report, as HTML: three questions, the verdict, and what was tried."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from stein_core.diagnosis.checks import K_HAT, NARROW, SHIFT, WIDE
from stein_core.diagnosis.report import SNIPPET

CSS = """
.prose { max-width: 1180px; margin: 0 auto; }
.prose > * { max-width: none; }
.answer { display: grid; grid-template-columns: minmax(0, 1fr) minmax(260px, 360px); gap: 12px 48px;
  align-items: start; }
.answer section { border-top: 1px solid var(--mui-palette-line-main); padding: 14px 0 6px; }
.answer h2 { font-size: 20px; margin: 0; display: flex; gap: 12px; align-items: center; }
.answer h2 b { border: 1px solid var(--mui-palette-edge-main); border-radius: 50%; flex: 0 0 28px; height: 28px;
  font-size: 15px; display: inline-flex; align-items: center; justify-content: center; }
.answer h2 span { margin-left: auto; border: 1px solid var(--mui-palette-edge-main); border-radius: 14px;
  padding: 2px 12px; font-size: 16px; white-space: nowrap; }
.answer h2 .no { background: var(--mui-palette-mark-main); border-color: currentColor; }
.answer p { margin: 6px 0; color: var(--mui-palette-text-secondary); font-size: 15px; }
.strip { position: relative; height: 84px; max-width: 760px; margin: 10px 0; font-size: 14px; }
.strip i, .track i { position: absolute; }
.strip .zone, .track .zone { background: var(--mui-palette-surface-main); box-sizing: border-box;
  border: 1px solid var(--mui-palette-line-main); border-radius: 6px; }
.strip .zone { top: 6px; height: 48px; }
.strip .right { top: 0; height: 60px; border-left: 2px solid currentColor; }
.strip .dot { width: 12px; height: 12px; border-radius: 50%; margin-left: -6px; }
.strip span { position: absolute; top: 60px; transform: translateX(-50%); white-space: nowrap; }
.bars { display: grid; grid-template-columns: fit-content(40%) minmax(0, 1fr); gap: 0 10px; max-width: 760px;
  font-size: 15px; margin: 10px 0; }
.bars > span { text-align: right; line-height: 26px; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.track { position: relative; height: 26px; }
.track .zone { top: 0; height: 100%; border-width: 0 1px; border-radius: 0; }
.track .bar { top: 4px; height: 18px; left: 0; border-radius: 3px; }
.track .right { top: 0; height: 100%; border-left: 2px solid currentColor; }
.track b { position: absolute; line-height: 26px; padding-left: 6px; font-weight: 400;
  font-variant-numeric: tabular-nums; }
.verdict { position: sticky; top: 70px; background: var(--mui-palette-surface-main); border-radius: 8px;
  padding: 18px 20px; border: 1px solid var(--mui-palette-line-main); }
.prose .verdict small { white-space: normal; }
.answer .verdict .said { font-size: 21px; line-height: 1.35; color: var(--mui-palette-text-primary);
  margin: 4px 0 10px; }
.verdict table, .numbers { width: 100%; font-size: 15px; border-collapse: collapse; }
.verdict td, .verdict th, .numbers td, .numbers th { padding: 4px 6px; text-align: right; vertical-align: top;
  border-top: 1px solid var(--mui-palette-line-main); font-variant-numeric: tabular-nums; }
.verdict th:first-child, .verdict td:first-child, .numbers th:first-child { text-align: left; }
.scroll { overflow-x: auto; }
@media (max-width: 900px) { .answer { grid-template-columns: minmax(0, 1fr); } .verdict { position: static; } }
"""
MOST = 30  # bars


def answer(shown: dict[str, Any], tried: Sequence[dict[str, Any]], colour: str) -> str:
    """Return the page below its controls.

    Args:
        shown: result of a job, with "title" and "of", the posterior.
        tried: further results, in the order in which they came.
        colour: of the method, in the present theme.
    """
    findings = shown["findings"]
    parts = [where(shown, findings.get("location"), colour), wide(shown, findings, colour), weights(findings)]
    return (
        f'<div class="answer"><div>{"".join(parts)}{numbers(shown)}</div>'
        f'<aside class="verdict" role="status">{verdict(shown, tried)}</aside></div>'
    )


def question(number: int, text: str, wrong: bool | None, body: str) -> str:
    """Return one question. wrong: None if it cannot be asked."""
    words = {True: ("no", "✕ No"), False: ("yes", "✓ Yes"), None: ("", "cannot be asked")}[wrong]
    return f'<section><h2><b>{number}</b>{text}<span class="{words[0]}">{words[1]}</span></h2>{body}</section>'


def where(shown, found, colour) -> str:
    """Return question 1, with a dot for each coordinate."""
    text = "Are the draws where the density says?"
    if found is None:
        why = "Without scores nobody can tell." if shown["ok"] is None else "These draws do not allow an answer."
        return question(1, text, None, f"<p>{why}</p>")
    known = {name: value for name, value in found["each"].items() if value is not None}
    most = max(0.5, *(1.1 * min(abs(value), 2.0) for value in known.values()))
    dots = "".join(
        f'<i class="dot" style="left: {50 + 50 * max(-most, min(most, value)) / most:.2f}%; '
        f'top: {14 + 10 * (i % 3)}px; background: {colour}" title="{html.escape(name)}: {value:+.2f} sd"></i>'
        for i, (name, value) in enumerate(known.items())
    )
    zone = 50 * SHIFT / most
    figure = (
        '<div class="strip" role="img" aria-label="Difference of each mean, in standard deviations">'
        f'<i class="zone" style="left: {50 - zone:.2f}%; width: {2 * zone:.2f}%"></i>'
        f'<i class="right" style="left: 50%"></i>{dots}<span style="left: {50 - zone:.2f}%">−{SHIFT} sd</span>'
        f'<span style="left: {50 + zone:.2f}%">+{SHIFT} sd</span></div>'
    )
    said = f"{html.escape(found['sentence'])} One dot, one coordinate."
    return question(1, text, found["wrong"], f"{figure}<p>{said}</p>")


def wide(shown, findings, colour) -> str:
    """Return question 2, with a bar for each coordinate, and 1 as a line."""
    text, found = "Are they as wide as it says?", findings.get("width")
    trace = findings.get("stein_trace")
    others = [findings[name] for name in ("spread", "curvature") if name in findings]
    said = [each["sentence"] for each in (found, trace, *others) if each]
    wrong = None if trace is None and not others else any(each["wrong"] for each in (found, trace, *others) if each)
    figure = bars(found["each"], colour) if found else ""
    words = " ".join(said) or "Without scores nobody can tell."
    return question(2, text, wrong, f"{figure}<p>{html.escape(words)}</p>")


def bars(each: dict[str, float | None], colour: str) -> str:
    """Return a bar for each coordinate, the worst first."""
    known = [(name, value) for name, value in each.items() if value is not None]
    rows = sorted(known, key=lambda row: -max(row[1], 1 / max(row[1], 1e-9)))
    shown = rows[:MOST]
    most = 1.25 * max(1.2, *(min(value, 3.0) for _, value in shown))  # leaves room for the number
    zone = f'<i class="zone" style="left: {100 * NARROW / most:.2f}%; width: {100 * (WIDE - NARROW) / most:.2f}%"></i>'
    right = f'<i class="right" style="left: {100 / most:.2f}%"></i>'
    drawn = "".join(
        f'<span title="{html.escape(name)}">{html.escape(name)}</span><div class="track">{zone}'
        f'<i class="bar" style="width: {100 * min(value, 3.0) / most:.2f}%; background: {colour}"></i>{right}'
        f'<b style="left: {100 * max(min(value, 3.0), 1.0) / most:.2f}%">{value:.2f}</b></div>'
        for name, value in shown
    )
    more = f"<p>{len(rows) - MOST} more in the table below.</p>" * (len(rows) > MOST)
    return f'<div class="bars">{drawn}</div>{more}<p>The line is 1: as wide as the scores say.</p>'


def weights(findings) -> str:
    """Return question 3."""
    found, chains = findings.get("k_hat"), findings.get("chains")
    said = [each["sentence"] for each in (found, chains) if each]
    if not said:
        return question(
            3, "Do the weights agree?", None, "<p>Only a mixture of guides has a density, and so weights.</p>"
        )
    k = found and found["value"]
    wrong = bool(chains and chains["wrong"]) or (k is not None and k > K_HAT)
    return question(
        3, "Do the weights agree?" if found else "Do the chains agree?", wrong, f"<p>{html.escape(' '.join(said))}</p>"
    )


def verdict(shown, tried) -> str:
    """Return the verdict, and a row for each result that was measured."""
    rows = "".join(
        f"<tr><td>{html.escape(one['title'])}</td><td>{worst(one, 'width')}</td><td>{worst(one, 'location')}</td>"
        f"<td>{one.get('seconds') and format(one['seconds'], '.0f') + ' s' or ''}</td></tr>"
        for one in (shown, *tried)
    )
    against = "".join(
        f"<tr><td>{html.escape(row['coordinate'])}</td><td>{row['sd ratio']:.2f}</td>"
        f"<td>{row['mean error']:+.2f}</td></tr>"
        for row in shown.get("reference", ())[:MOST]
    )
    nuts = f"<table><tr><th>Against NUTS</th><th>sd</th><th>mean</th></tr>{against}</table>" * bool(against)
    own = "" if shown["ok"] is not None else f"<small>To add scores: <code>{html.escape(SNIPPET)}</code></small>"
    return (
        f"<small>Verdict: {html.escape(shown['of'])}, {html.escape(shown['title'])}</small>"
        f'<p class="said">{html.escape(shown["verdict"])}</p>{own}'
        f"<table><tr><th>Measured</th><th>sd</th><th>mean</th><th>time</th></tr>{rows}</table>{nuts}"
        "<small>sd: the ratio that is furthest from 1. mean: the largest difference, in sd.</small>"
    )


def worst(one, check) -> str:
    """Return the worst number of a check, or a dash."""
    found = one["findings"].get(check)
    return "–" if not found or found["value"] is None else f"{found['value']:.2f}"


def numbers(shown) -> str:
    """Return all coordinates as a table, folded."""
    rows = shown["table"]
    if not rows or len(rows[0]) < 2:
        return ""
    keys = list(rows[0])
    head = "".join(f"<th>{html.escape(key)}</th>" for key in keys)
    body = "".join(
        f"<tr><th>{html.escape(row[keys[0]])}</th>"
        + "".join(f"<td>{'–' if row[key] is None else format(row[key], '.3f')}</td>" for key in keys[1:])
        + "</tr>"
        for row in rows[:1000]
    )
    return (
        f"<details><summary>All {len(rows)} coordinates</summary><div class='scroll'>"
        f"<table class='numbers'><tr>{head}</tr>{body}</table></div></details>"
    )
