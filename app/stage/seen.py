"""What a class sees of its lecturer's stage: which cards, numbers and knobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stein_core import DIAGNOSTICS
from stein_core.base.errors import short, unknown
from steinlab.stage.setup import Setup, all_knobs
from steinlab.ui import link

PARTS = ("cards", "numbers", "knobs")
Seen = tuple[tuple[str, tuple], ...]  # ("cards", (0, 2)), ...: what is left out is all


def parse(text: str) -> Seen:
    """Read "cards~0,2;numbers~force;knobs~method.alpha".

    Raises:
        ValueError: naming what is wrong and what is allowed.
    """
    found = {}
    for item in text.split(";"):
        part, _, names = item.partition("~")
        if part not in PARTS:
            raise unknown("part of see", part, PARTS)
        found[part] = tuple(_read(part, name) for name in names.split(",") if name)
    return tuple((part, found[part]) for part in PARTS if part in found)


def _read(part: str, name: str) -> int | str:
    if part == "cards":
        if not name.isdecimal() or int(name) > 9:
            raise ValueError(f"see: cards = {short(name)!r}; allowed: 0 to 9.")
        return int(name)
    known = list(DIAGNOSTICS) if part == "numbers" else ["dim", *all_knobs()]
    if name not in known:
        raise unknown(f"see: {part}", name, known)
    return name


def text_of(seen: Seen) -> str:
    """Write it as links do."""
    return ";".join(f"{part}~{','.join(map(str, names))}" for part, names in seen)


SEE = link.Field("see", parse, text_of)


def knobs_of(setup: Setup, present: Mapping[str, Any]) -> list[list[str]]:
    """Return the knobs of a setup as a class reads them, [[name, text], ...].

    Args:
        setup: what runs.
        present: values that differ from their defaults.
    """
    specs = [setup.spec(method, 2) for method in setup.methods]
    used = {name for spec in specs for name in spec.knobs()}
    said = [["dim", f"{specs[0].dim} dimension{'s' * (specs[0].dim > 1)}"]]
    for name in ("method.particles", "method.alpha", "kernel.name", "bandwidth.factor", "method.step_size"):
        if name in used:
            knob = all_knobs()[name]
            value = present.get(name, knob.default)
            said.append([name, f"{knob.label} {knob.choices[value].label if knob.choices else f'{value:g}'}"])
    return said
