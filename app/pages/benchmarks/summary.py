"""The first sight of a table: how many rows agree with the paper, as a sentence and as a strip of dots."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Sequence

from stein_core.papers.tables import Comparison

FAR = 2.0  # standard errors from which a difference is marked
NAMED = 5  # sets that are named at most
WIDTH, HEIGHT, MOST = 640, 74, 8.0  # of the strip in pixels, and the standard errors at its ends


def judged(found: Sequence[Comparison]) -> list[Comparison]:
    """Return the rows that have a published value and standard errors."""
    return [one for one in found if not one.law and math.isfinite(one.difference)]


def steps_of(one: Comparison) -> int:
    """Return the steps of a row's runs if its cells are named by them, else 0."""
    named = re.fullmatch(r"([\d,]+) steps", one.cells)
    return int(named[1].replace(",", "")) if named else 0


def by_steps(found: Sequence[Comparison]) -> list[tuple[int, list[Comparison]]]:
    """Return the rows by the steps of their runs, the longest first."""
    known = sorted({steps_of(one) for one in found}, reverse=True)
    return [(steps, [one for one in found if steps_of(one) == steps]) for steps in known]


def sentence(found: Sequence[Comparison]) -> str:
    """Return how many rows agree within two standard errors, and which sets do not."""
    rows = judged(found)
    if not rows:
        return ""
    far = [one for one in rows if abs(one.difference) > FAR]
    said = f"{len(rows) - len(far)} of {len(rows)} rows agree with the paper within two standard errors."
    if not far:
        return said
    names = sorted({one.row for one in far}, key=lambda name: -max(abs(o.difference) for o in far if o.row == name))
    names = names if len(names) <= NAMED else [*names[: NAMED - 1], f"{len(names) - NAMED + 1} other sets"]
    which = " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
    return f"{said} {which} {'differs' if len(names) == 1 else 'differ'}: the reasons that we know are listed below."


def strip(found: Sequence[Comparison]) -> str:
    """Return a dot for each row at its difference in standard errors, over the band of two, as an SVG."""
    rows = judged(found)
    if len(rows) < 3:
        return ""

    def at(value):
        return WIDTH / 2 + (WIDTH / 2 - 20) * max(-MOST, min(MOST, value)) / MOST

    stacks: dict[int, list[Comparison]] = {}
    for one in sorted(rows, key=lambda one: one.difference):
        stacks.setdefault(round(at(one.difference) / 9), []).append(one)
    apart = min(7.0, 42 / max(map(len, stacks.values())))
    dots = []
    for stack in stacks.values():
        for level, one in enumerate(stack):
            name = html.escape(f"{one.row}, {one.label}: {one.difference:+.1f} standard errors")
            far = ' class="far"' if abs(one.difference) > FAR else ""
            place = f'cx="{at(one.difference):.0f}" cy="{45 - apart * level:.1f}" r="{min(3.6, apart):.1f}"'
            dots.append(f"<circle{far} {place}><title>{name}</title></circle>")
    band = f'<rect x="{at(-FAR):.0f}" y="2" width="{at(FAR) - at(-FAR):.0f}" height="48" class="band"/>'
    ticks = "".join(
        f'<text x="{at(value):.0f}" y="68" text-anchor="middle">{text}</text>'
        for value, text in ((-MOST, "−8 or less"), (-FAR, "−2"), (0, "as published"), (FAR, "+2"), (MOST, "+8 or more"))
    )
    title = "The difference of each row from the paper, in standard errors"
    return (
        f'<svg class="strip" viewBox="-30 0 {WIDTH + 60} {HEIGHT}" role="img"><title>{title}</title>{band}'
        f'<line x1="0" x2="{WIDTH}" y1="50" y2="50"/>{"".join(dots)}{ticks}</svg>'
    )
