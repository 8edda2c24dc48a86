"""A report as HTML, for its file and for page "Your posterior": three questions with their figures."""

from __future__ import annotations

import html
from typing import Any

import numpy as np

from stein_core.posterior.checks import NARROW, SHIFT, WIDE
from stein_core.posterior.companions import K_HAT
from stein_core.posterior.evidence import CHECKS

CSS = """
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
.track .law { top: 0; height: 100%; border-left: 2px dashed currentColor; }
.pairs { display: flex; flex-wrap: wrap; gap: 12px 20px; margin: 10px 0; }
.pairs figure { margin: 0; width: 200px; } .pairs figcaption { font-size: 14px; overflow-wrap: anywhere; }
.pairs svg { display: block; width: 200px; border-bottom: 1px solid var(--mui-palette-line-main); }
.track b { position: absolute; line-height: 26px; padding-left: 6px; font-weight: 400;
  font-variant-numeric: tabular-nums; }
.numbers { width: 100%; font-size: 15px; border-collapse: collapse; }
.numbers td, .numbers th { padding: 4px 6px; text-align: right; vertical-align: top;
  border-top: 1px solid var(--mui-palette-line-main); font-variant-numeric: tabular-nums; }
.numbers th:first-child { text-align: left; }
.scroll { overflow-x: auto; }
"""
ALONE = """
.steinlab { color-scheme: light dark; --mui-palette-line-main: #8886; --mui-palette-edge-main: #888b;
  --mui-palette-text-primary: CanvasText; --mui-palette-text-secondary: CanvasText;
  --mui-palette-surface-main: color-mix(in srgb, Canvas 94%, CanvasText);
  --mui-palette-mark-main: color-mix(in srgb, Canvas 80%, #e8b000); }
.steinlab { font: 16px/1.5 system-ui, sans-serif; max-width: 900px; padding: 0 1em; color: CanvasText;
  background: Canvas; }
.steinlab h1 { font-size: 1.4em; }
.steinlab table { border-collapse: collapse; margin: 1em 0; }
.steinlab .checks :is(th, td) { text-align: left; padding: .3em .8em; border-bottom: 1px solid #8886;
  vertical-align: top; }
.steinlab .checks td:last-child { overflow-wrap: anywhere; }
.steinlab .checks th { min-width: 6em; }
.steinlab .checks .wrong td:nth-child(2) { font-weight: 700; }
"""  # what a file and a notebook need: a page has its theme
PAGE = ":root { color-scheme: light dark; } body { background: Canvas; margin: 2em auto; max-width: 940px; }"
MOST = 30  # bars


def questions(shown: dict[str, Any], colour: str) -> str:
    """Return the three questions with their answers and figures, what a reference says, and all numbers.

    Args:
        shown: `Report.to_dict`.
        colour: of the bars and dots.
    """
    findings = shown["findings"]
    parts = [where(findings.get("location"), "finite" in findings, colour), wide(findings, shown["law"], colour)]
    parts += [weights(findings), *([against(shown["against"], colour)] if shown["against"] else [])]
    return "".join([*parts, further(findings), numbers(shown)])


def state(found) -> bool | None:
    """Return whether one of these findings is wrong; None if none is, but one could not be made."""
    judged = [each["wrong"] for each in found]
    return True if True in judged else None if None in judged else False


def under(number: int, findings) -> list[dict[str, Any]]:
    """Return the findings that stand under a question, in the order of the registry."""
    known = [(each.facts, findings[each.name]) for each in CHECKS.entries() if each.name in findings]
    return [found for facts, found in known if facts.question == number and (found["wrong"] or not facts.only_wrong)]


def question(number: int, text: str, wrong: bool | None, body: str) -> str:
    """Return one question. wrong: None if the answer cannot be told."""
    words = {True: ("no", "✕ No"), False: ("yes", "✓ Yes"), None: ("", "? Cannot be told")}[wrong]
    return f'<section><h2><b>{number}</b>{text}<span class="{words[0]}">{words[1]}</span></h2>{body}</section>'


def where(found, scored, colour) -> str:
    """Return question 1, with a dot for each coordinate. scored: whether there are scores."""
    text = "Are the draws where the density says?"
    if found is None:
        why = "These draws do not allow an answer." if scored else "Without scores these draws cannot be checked."
        return question(1, text, None, f"<p>{why}</p>")
    known = {name: value for name, value in found["each"].items() if value is not None}
    if not known:
        return question(1, text, found["wrong"], f"<p>{html.escape(found['sentence'])}</p>")
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


def wide(findings, law, colour) -> str:
    """Return question 2, with a bar for each coordinate, 1 as a line, and the method's law as a dashed one."""
    text, found = "Are they as wide as it says?", findings.get("width")
    trace = findings.get("stein_trace")
    asked = under(2, findings)
    said = [each["sentence"] for each in asked]
    wrong = state(asked) if any(each is not found for each in asked) else None
    figure = ""
    if found and found["each"]:
        figure = bars(found["each"], colour, law and law**0.5, "1: as wide as the scores say")
    elif trace:
        figure = bars(trace["each"], colour, law, "r of each coordinate; 1 for exact draws")
    words = " ".join(said) or "Without scores these draws cannot be checked."
    return question(2, text, wrong, f"{figure}<p>{html.escape(words)}</p>")


def bars(each: dict[str, float | None], colour: str, law: float | None = None, said: str = "") -> str:
    """Return a bar for each coordinate, the worst first.

    Args:
        each: coordinate -> number, 1 if it is right.
        colour: of the bars.
        law: the number of the method's law, or None.
        said: what the line at 1 is.
    """
    known = [(name, value) for name, value in each.items() if value is not None]
    rows = sorted(known, key=lambda row: -max(row[1], 1 / max(row[1], 1e-9)))
    shown = rows[:MOST]
    most = 1.25 * max(1.2, *(min(value, 3.0) for _, value in shown))  # leaves room for the number
    zone = f'<i class="zone" style="left: {100 * NARROW / most:.2f}%; width: {100 * (WIDE - NARROW) / most:.2f}%"></i>'
    right = f'<i class="right" style="left: {100 / most:.2f}%"></i>'
    tick = f'<i class="law" style="left: {100 * min(law, most) / most:.2f}%"></i>' if law else ""
    drawn = "".join(
        f'<span title="{html.escape(name)}">{html.escape(name)}</span><div class="track">{zone}'
        f'<i class="bar" style="width: {100 * min(max(value, 0.0), 3.0) / most:.2f}%; background: {colour}"></i>'
        f'{right}{tick}<b style="left: {100 * max(min(value, 3.0), 1.0) / most:.2f}%">{value:.2f}</b></div>'
        for name, value in shown
    )
    more = f"<p>{len(rows) - MOST} more in the table below.</p>" * (len(rows) > MOST)
    of_law = f" The dashed line is {law:.2f}, what the law says of points at rest." if law else ""
    return f'<div class="bars">{drawn}</div>{more}<p>The line is {said}.{of_law}</p>'


def against(found: dict[str, Any], colour: str) -> str:
    """Return draws beside the reference: a scatter of each pair of coordinates, and the ranks of each.

    Args:
        found: "names", "draws" and "reference" (n, k) of the worst coordinates, "ranks" (k, bins).
        colour: of the draws.
    """
    draws, other = (np.asarray(found[key], float) for key in ("draws", "reference"))
    both = np.concatenate([draws, other])
    low, high = both.min(axis=0), both.max(axis=0)
    size, parts = 200, []

    def dots(rows, style):
        at = 8 + (size - 16) * (rows - low) / np.maximum(high - low, 1e-300)
        return lambda i, j: "".join(
            f'<circle cx="{x:.0f}" cy="{size - y:.0f}" r="2.5" {style}/>' for x, y in at[:, [i, j]]
        )

    ours, theirs = dots(draws, f'fill="{colour}"'), dots(other, 'fill="none" stroke="currentColor"')
    names = [html.escape(name) for name in found["names"]]
    for j in range(len(names)):
        for i in range(j):
            parts.append(
                f'<figure><svg viewBox="0 0 {size} {size}" role="img" aria-label="{names[i]} and {names[j]}">'
                f"{theirs(i, j)}{ours(i, j)}</svg><figcaption>{names[i]} → · ↑ {names[j]}</figcaption></figure>"
            )
    for name, counts in zip(names, found["ranks"]):
        mean, most = sum(counts) / len(counts), max(max(counts), 2 * sum(counts) / len(counts))
        step = size / len(counts)
        drawn = "".join(
            f'<rect x="{k * step:.1f}" y="{80 * (1 - c / most):.1f}" width="{step - 1:.1f}" '
            f'height="{80 * c / most:.1f}" fill="{colour}"/>'
            for k, c in enumerate(counts)
        )
        at = 80 * (1 - mean / most)
        parts.append(
            f'<figure><svg viewBox="0 0 {size} 80" role="img" aria-label="ranks of {name}">{drawn}'
            f'<line x1="0" x2="{size}" y1="{at:.1f}" y2="{at:.1f}" stroke="currentColor"/></svg>'
            f"<figcaption>ranks of {name}</figcaption></figure>"
        )
    return (
        f"<section><h2>Beside the reference</h2><div class='pairs'>{''.join(parts)}</div><p>Filled: these draws. Open: "
        "the reference. The coordinates are the worst. Ranks are those of the draws in the reference: right draws fill "
        "all alike, up to chance.</p></section>"
    )


def weights(findings) -> str:
    """Return question 3."""
    found, said = findings.get("k_hat"), [each["sentence"] for each in under(3, findings)]
    if not said:
        return question(
            3, "Do the weights agree?", None, "<p>Only a mixture of guides has a density, and so weights.</p>"
        )
    k = found and found["value"]
    wrong = state(under(3, findings)) or (k is not None and k > K_HAT)
    return question(
        3, "Do the weights agree?" if found else "Do the chains agree?", wrong, f"<p>{html.escape(' '.join(said))}</p>"
    )


def further(findings) -> str:
    """Return what is known of the run, and the kernel Stein discrepancy with its warning."""
    return "".join(f"<p>{html.escape(each['sentence'])}</p>" for each in under(4, findings))


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
