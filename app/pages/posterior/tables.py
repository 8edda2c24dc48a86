"""What `bench posteriors` has measured, as tables: how near each fit is, and how often the verdict is right."""

from __future__ import annotations

import html
import json
from functools import lru_cache

from steinlab.pages.posterior.costs import costs
from steinlab.server.folders import ASSETS

CSS = """
.prose table { width: 100%; }
.prose td, .prose th { padding: 3px 10px 3px 0; text-align: right; font-variant-numeric: tabular-nums; }
.prose :is(th, td):is(:first-child, :nth-child(2)) { text-align: left; }
.prose .missed td { background: var(--mui-palette-mark-main); }
.prose .scroll { overflow-x: auto; }
.prose .costs { width: 100%; max-width: 600px; }
.costs text { font-size: 15px; fill: var(--mui-palette-text-primary); }
.costs .grid { stroke: var(--mui-palette-divider); }
"""
SAID = {True: "right", False: "wrong", None: "open"}


def also(row) -> str:
    """Return when NUTS was as near as the default fit, if that is known."""
    if "seconds to default" not in row:
        return ""
    after = row["seconds to default"]
    return " (never as near as SMI)" if after is None else f" (as near as SMI after {after:.1f})"


@lru_cache(maxsize=1)
def tables() -> str:
    """Return the shipped rows as HTML, folded; "" if there are none."""
    path = ASSETS / "posteriors.json"
    if not path.is_file():
        return ""
    measured = json.loads(path.read_text(encoding="utf-8"))
    rows = measured["rows"]
    wrong, fine = ([row for row in rows if row["wrong"] is so] for so in (True, False))
    found, blamed = (sum(row["ok"] is False for row in these) for these in (wrong, fine))
    default = [row for row in rows if row["draws"] == "SMI (default)"]
    right = sum(row["mean error"] <= 0.1 and 0.9 <= row["least sd"] and row["most sd"] <= 1.1 for row in default)
    said = (
        f"The default, SMI with 20 guides and alpha 0.05, has each mean within 0.1 sd and each sd within 10 % on "
        f"{right} of {len(default)}. The verdict finds {found} of {len(wrong)} sets of draws that are wrong, and "
        f"blames {blamed} of {len(fine)} that are right. Its limits were set on these posteriors. Wrong is a mean that "
        "is off by more than 0.3 sd, or an sd by more than 20 %, of a reported parameter against the 10,000 reference "
        "draws."
    )
    body = "".join(
        f"<tr{' class=missed' * (row['ok'] is row['wrong'])}><td>{html.escape(row['posterior'].partition('-')[2])}</td>"
        f"<td>{html.escape(row['draws'])}</td><td>{row['mean error']:.2f}</td><td>{row['least sd']:.2f}</td>"
        f"<td>{row['most sd']:.2f}</td><td>{'wrong' if row['wrong'] else 'right'}</td>"
        f"<td>{SAID[row['ok']]}</td><td>{row['seconds']:.1f}{also(row)}</td></tr>"
        for row in rows
    )
    head = "".join(
        f"<th>{name}</th>"
        for name in ("posterior", "draws", "worst mean", "least sd", "largest sd", "it is", "verdict", "seconds")
    )
    return (
        f"<details><summary>How the defaults and the verdict do on posteriors of posteriordb</summary><p>{said}</p>"
        f"{costs()}"
        f"<div class=scroll><table><tr>{head}</tr>{body}</table></div>"
        f"<p>{html.escape(measured['about'])} <code>python -m stein_core bench posteriors</code> repeats it.</p>"
        "</details>"
    )
