"""What page "Benchmarks" shows, as HTML: a table of published values beside ours, and intervals as a figure."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from stein_core.cli.tables import difference, plus
from stein_core.contract.registry import Entry
from stein_core.papers.published import PAPERS, tables
from stein_core.papers.tables import TABLES, Cell, Comparison, compare
from steinlab.pages.benchmarks.figure import draw
from steinlab.pages.benchmarks.live import Live, lives
from steinlab.pages.benchmarks.shipped import missing, shipped
from steinlab.pages.benchmarks.summary import FAR, by_steps, sentence, strip

CSS = """
.prose { max-width: 1180px; margin: 0 auto; }
.prose > * { max-width: none; }
.scroll { overflow-x: auto; }
.prose table { width: 100%; font-size: 15px; border-collapse: collapse; }
.prose th, .prose td { padding: 4px 8px; text-align: right; border-top: 1px solid var(--mui-palette-line-main);
  font-variant-numeric: tabular-nums; white-space: nowrap; }
.prose th { font-size: 14px; font-weight: 400; color: var(--mui-palette-text-secondary); border-top: 0; }
.prose th:first-child, .prose td:first-child, .prose th:nth-child(2), .prose td:nth-child(2) { text-align: left; }
.prose tr.first td { border-top: 2px solid var(--mui-palette-edge-main); }
.prose td.far { font-weight: 700; background: var(--mui-palette-mark-main); }
.prose td:first-child a { font-weight: 600; }
.prose td a span { font-size: 13px; }
.prose ul { font-size: 15px; color: var(--mui-palette-text-secondary); padding-left: 1.2em; }
.track { display: block; position: relative; width: 150px; height: 22px; }
.track i { position: absolute; top: 10px; height: 2px; background: currentColor; }
.track b { position: absolute; width: 8px; height: 8px; margin-left: -4px; top: 7px; }
.track .theirs { border: 2px solid currentColor; box-sizing: border-box; border-radius: 50%; }
.track .ours { background: currentColor; border-radius: 1px; }
.track .top { transform: translateY(-5px); opacity: .75; }
.track .low { transform: translateY(5px); }
.key { display: flex; flex-wrap: wrap; gap: 2px 18px; align-items: center; font-size: 14px;
  color: var(--mui-palette-text-secondary); }
.key .track { width: 14px; height: 18px; display: inline-block; }
.prose .plot { display: block; width: 100%; min-width: 560px; max-width: 780px; height: auto; }
.plot text { font-size: 13px; fill: var(--mui-palette-text-secondary); }
.plot .grid { stroke: var(--mui-palette-line-main); }
.plot .truth { stroke: var(--mui-palette-text-primary); stroke-width: 2; stroke-dasharray: 6 4; }
.prose .answer { font-size: 20px; margin: 12px 0 4px; }
.prose .strip { display: block; width: 100%; min-width: 640px; max-width: 760px; height: auto; margin: 0 0 8px -20px; }
.strip text { font-size: 13px; fill: var(--mui-palette-text-secondary); }
.strip .band { fill: var(--mui-palette-surface-main); stroke: var(--mui-palette-line-main); }
.strip line { stroke: var(--mui-palette-edge-main); }
.strip circle { fill: var(--mui-palette-text-primary); }
.strip .far { fill: none; stroke: var(--mui-palette-text-primary); stroke-width: 2; }
.prose .key svg { vertical-align: -3px; }
@media (max-width: 700px) {
  .prose td:nth-child(2) { white-space: normal; min-width: 8em; }
  .prose th.wide, .prose td.wide { display: none; }
}
"""
KEY = (
    '<p class="key"><span><span class="track"><b class="theirs" style="left: 7px"></b></span> published</span>'
    '<span><span class="track"><b class="ours" style="left: 7px"></b></span> ours</span>'
    "<span>lines: one standard error to each side</span><span>marked: more than two standard errors apart</span>"
    "<span>our numbers: click one with &#9654; to see its run live, another to choose its cell</span></p>"
)


def page(entry: Entry, row: str, dark: bool) -> str:
    """Return the page below its controls.

    Args:
        entry: the table.
        row: the only one that is shown, "" for all.
        dark: whether the page is dark.
    """
    known = shipped(entry.name)
    found = [one for one in compare(entry.name, known.rows) if one.runs and row in ("", one.row)]
    sentences = [*entry.facts.differs, *(entry.facts.tests(known.rows) if entry.facts.tests and known.rows else ())]
    listed = "".join(f"<li>{coded(sentence)}</li>" for sentence in sentences)
    body = KEY + tables_of(entry.name, found) if found else "<p>No row of this table has been computed yet.</p>"
    first = by_steps(found)[0][1] if found else []
    if entry.facts.figure and not row:
        body = draw(entry.facts.figure, known.rows, dark) + body
    return (
        f"<h1>{html.escape(entry.label)}</h1><p>{html.escape(entry.reference)}. {html.escape(entry.summary)}</p>"
        f'<p class="answer">{html.escape(sentence(first))}</p><div class="scroll">{strip(first)}</div>'
        f"<details><summary>What differs from the paper ({len(sentences)})</summary><ul>{listed}</ul></details>"
        f"{body}{made(known.about, entry.name)}{others()}"
    )


def tables_of(name: str, found: Sequence[Comparison]) -> str:
    """Return the table of the longest runs, and those of shorter ones folded."""
    (_, first), *shorter = by_steps(found)
    folded = "".join(
        f"<details><summary>The same after {steps:,} steps</summary>{comparison_table(name, rows)}</details>"
        for steps, rows in shorter
    )
    return comparison_table(name, first) + folded


def coded(sentence: str) -> str:
    """Return a sentence as HTML, what is between backticks as code."""
    return re.sub("`(.+?)`", r"<code>\1</code>", html.escape(sentence))


def live_line(cell: Cell, live: Live) -> str:
    """Return the line below the choice of a cell: the link to the page that runs it, or why there is none."""
    name = html.escape(f"{cell.row}, {cell.column}, seed {cell.seed}")
    if live.why:
        return f"<p>{name}: {html.escape(live.why)}</p>"
    return f'<p>{name}: <a href="{html.escape(live.link)}">see this run live</a></p>'


def comparison_table(name: str, found: Sequence[Comparison]) -> str:
    """Return the table, with a link in each row that chooses its cells."""
    heads = (
        "<tr><th>set</th><th>quantity</th><th>published or law</th><th>ours</th><th class='wide'></th>"
        "<th>difference</th><th class='wide'>runs</th><th class='wide'>s a run</th></tr>"
    )
    lines, before, known = [], None, lives(name)
    for one in found:
        query = urlencode({"page": "benchmarks", "table": name, "row": one.row, "column": one.cells})
        label = f'<a href="?{html.escape(query)}">{html.escape(one.row)}</a>'
        far = ' class="far"' if not one.law and abs(one.difference) > FAR else ""
        note = f' title="{html.escape(one.note)}"' if one.note else ""
        lines.append(
            f"<tr{'' if one.row == before else ' class=first'}><td>{label}</td><td{note}>{html.escape(one.label)}"
            f"{' *' * bool(one.note)}</td><td>{signed(plus(one.published, one.published_error))}</td>"
            f"<td>{clickable(one, known.get((one.row, one.cells)))}</td><td class='wide'>{intervals(one)}</td>"
            f"<td{far}>{signed(difference(one))}</td><td class='wide'>{one.runs}</td>"
            f"<td class='wide'>{one.seconds:.1f}</td></tr>"
        )
        before = one.row
    notes = "".join(f"<p>* {html.escape(note)}</p>" for note in dict.fromkeys(one.note for one in found if one.note))
    return f'<div class="scroll"><table>{heads}{"".join(lines)}</table></div>{notes}'


def clickable(one: Comparison, live: Live | None) -> str:
    """Return our value as a link: to the page that runs its cell, or to the button that computes the cell again."""
    value = signed(plus(one.ours, one.error))
    if live is None:
        return value
    title = live.why or "See this run live, with the first seed or split."
    mark = "" if live.why else ' <span aria-hidden="true">&#9654;</span>'
    return f'<a href="{html.escape(live.link)}" title="{html.escape(title)}">{value}{mark}</a>'


def signed(text: str) -> str:
    """Return a number with a real minus."""
    return text.replace("-", "−")


def intervals(one: Comparison) -> str:
    """Return both values with their standard errors on one line, or nothing if there is nothing to compare."""
    pairs = [(one.published, one.published_error), (one.ours, one.error)]
    if any(math.isnan(value) for value, _ in pairs):
        return ""
    pairs = [(value, 0.0 if math.isnan(error) else error) for value, error in pairs]
    low, high = min(v - e for v, e in pairs), max(v + e for v, e in pairs)
    at = lambda value: 8 + 84 * (value - low) / (high - low) if high > low else 50.0
    parts = [
        f'<i class="{side}" style="left: {at(v - e):.1f}%; width: {at(v + e) - at(v - e):.1f}%"></i>'
        f'<b class="{kind} {side}" style="left: {at(v):.1f}%"></b>'
        for (v, e), kind, side in zip(pairs, ("theirs", "ours"), ("top", "low"))
    ]
    return f'<span class="track" aria-hidden="true">{"".join(parts)}</span>'


def made(about: dict[str, Any], name: str) -> str:
    """Return how the shipped rows were made, and the command of the paper's protocol."""
    if not about:
        return f"<p>To compute it: <code>python -m stein_core tables {name} --reduced</code></p>"
    return (
        f"<h2>How these rows were made</h2><p><code>{html.escape(about['by'])}</code>, {about['made']}, "
        f"{html.escape(about['device'])} with {about['cores']} busy cores, JAX {html.escape(about['jax'])}. Times are "
        f"upper bounds. The paper's protocol: <code>python -m stein_core tables {name} --full</code></p>"
        f"{absent(name)}"
    )


def absent(name: str) -> str:
    """Return which cells of the reduced protocol are not among the shipped rows, nothing if all are."""
    gaps = missing(name)
    if not gaps:
        return ""
    parts = [f"{row} ({'all' if few == every else f'{few} of {every}'})" for row, (few, every) in gaps.items()]
    total = sum(few for few, _ in gaps.values())
    return f"<p>Not computed yet: {total} cells of the reduced protocol, of {html.escape(', '.join(parts))}.</p>"


def others() -> str:
    """Return every published table of the five papers, with what is to know about each."""
    used = {id(claim.table): entry for entry in TABLES.entries() for claim in entry.facts.claims() if claim.table}
    lines = []
    for table in tables().values():
        here = used.get(id(table))
        where = f'compared here: <a href="?page=benchmarks&amp;table={here.name}">{here.label}</a>. ' if here else ""
        where = where or "not computed here. " * bool(table.rows)
        name = PAPERS[table.paper] if table.table == "none" else table.label
        lines.append(f"<li>{html.escape(name)}, {html.escape(table.title)}: {where}{html.escape(table.note)}</li>")
    return f"<h2>Tables of the five papers</h2><ul>{''.join(lines)}</ul>"


def result(row: dict[str, Any], before: dict[str, Any] | None) -> str:
    """Return what a cell that was computed here says, beside the shipped row.

    Args:
        row: of the store.
        before: the shipped one with the same key, or None.
    """
    lines = []
    for name, value in row["numbers"].items():
        old = before["numbers"].get(name) if before else None
        cells = [html.escape(name), *("-" if v is None else f"{v:.5g}" for v in (value, old))]
        lines.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    seconds = f"{row['seconds']:.1f} s" + (f"; the shipped one took {before['seconds']:.1f} s" if before else "")
    return (
        f"<h2>{html.escape(row['row'])}, {html.escape(row['column'])}, seed {row['seed']}: computed here in {seconds}"
        f"</h2><table style='width: auto'><tr><th>number</th><th>here</th><th>shipped</th></tr>{''.join(lines)}</table>"
    )
