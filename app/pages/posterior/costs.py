"""A picture of accuracy against cost: each way to draws of a posterior is a mark at its gradients and worst mean."""

from __future__ import annotations

import json
import math
import statistics
from functools import lru_cache

from steinlab.server.folders import ASSETS

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 520, 340, 64, 52, 44, 24
MARKS = {  # column of the table -> colour, for light and dark pages, and the path of its mark
    "SMI": ("#BA4582", "M-5,0a5,5 0 1,0 10,0a5,5 0 1,0 -10,0z"),
    "NUTS": ("var(--mui-palette-text-primary)", "M-5,-5h10v10h-10z"),
    "SVGD": ("#0072B2", "M0,-6l6,11h-12z"),
    "VI": ("#D55E00", "M0,-6l6,6l-6,6l-6,-6z"),
    "Laplace": ("#009E73", "M-5,-5l10,10M-5,5l10,-10"),
    "Pathfinder": ("#8A6D00", "M-6,0h12M0,-6v12"),
}
X, Y = (2.5, 6.5), (-2.1, 0.5)  # logarithms to base 10 of gradients and errors


@lru_cache(maxsize=1)
def costs() -> str:
    """Return the picture as SVG with its sentence; "" if the table is not shipped, or has no gradients."""
    path = ASSETS / "tables_posteriordb.json"
    if not path.is_file():
        return ""
    rows = [row for row in json.loads(path.read_text(encoding="utf-8"))["rows"] if row["numbers"].get("gradients")]
    if not rows:
        return ""
    x = lambda value: LEFT + (math.log10(value) - X[0]) / (X[1] - X[0]) * (WIDTH - LEFT - RIGHT)  # noqa: E731
    y = lambda value: TOP + (Y[1] - math.log10(value)) / (Y[1] - Y[0]) * (HEIGHT - TOP - BOTTOM)  # noqa: E731
    parts = []
    for power in range(math.ceil(X[0]), math.floor(X[1]) + 1):
        at = x(10.0**power)
        parts.append(f'<line x1="{at:.0f}" x2="{at:.0f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" class="grid"/>')
        parts.append(f'<text x="{at:.0f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{10**power:,}</text>')
    for value in (0.01, 0.1, 1):
        at = y(value)
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.0f}" y2="{at:.0f}" class="grid"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{at + 4:.0f}" text-anchor="end">{value:g}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">gradients of the log density</text>')
    parts.append(
        f'<text transform="translate(16,{HEIGHT / 2}) rotate(-90)" text-anchor="middle">worst mean, in sd</text>'
    )
    at_legend = LEFT + 6
    for name, (colour, mark) in MARKS.items():
        style = f'fill="{colour}"' if mark.endswith("z") else f'fill="none" stroke="{colour}" stroke-width="2.5"'
        for row in rows:
            if row["column"] == name:
                number = row["numbers"]
                error = min(max(number["mean error"], 10 ** Y[0]), 10 ** Y[1])
                said = f"{row['row']}, {name}: {number['gradients']:,.0f} gradients, {number['mean error']:.3f} sd"
                at = f'transform="translate({x(number["gradients"]):.1f},{y(error):.1f})"'
                parts.append(f'<path d="{mark}" {style} opacity="0.8" {at}><title>{said}</title></path>')
        parts.append(
            f'<path d="{mark}" {style} transform="translate({at_legend},16)"/>'
            f'<text x="{at_legend + 12}" y="21">{name}</text>'
        )
        at_legend += 34 + 8.5 * len(name)
    return (
        f"<p>{sentence(rows)}</p><div class=scroll><svg class=costs viewBox='0 0 {WIDTH} {HEIGHT}' role=img "
        f"aria-label='Worst mean against gradients, for each way to draws'>{''.join(parts)}</svg></div>"
    )


def sentence(rows) -> str:
    """Return what the picture shows, in one or two sentences."""

    def median(column, metric):
        return statistics.median(row["numbers"][metric] for row in rows if row["column"] == column)

    names = {row["row"] for row in rows}
    smi, nuts = (f"{median(name, 'gradients'):,.0f}" for name in ("SMI", "NUTS"))
    return (
        f"On {len(names)} posteriors the default fit takes {smi} gradients (median), the search for its start "
        f"among them, and its worst mean is {median('SMI', 'mean error'):.3f} sd off. Four chains of NUTS take {nuts}, "
        f"and are {median('NUTS', 'mean error'):.3f} sd off. Pathfinder of BlackJAX takes "
        f"{median('Pathfinder', 'gradients'):,.0f}, and is {median('Pathfinder', 'mean error'):.2g} sd off. Each "
        "mark is one posterior."
    )
