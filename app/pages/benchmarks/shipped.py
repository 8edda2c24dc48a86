"""The rows that the app ships for page "Benchmarks", and the cells that made them."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, NamedTuple

from stein_core.papers.tables import TABLES, Cell
from steinlab.server.folders import ASSETS


class Shipped(NamedTuple):
    """The rows of one table. about: with what they were made."""

    about: dict[str, Any]
    rows: list[dict[str, Any]]


@lru_cache(maxsize=16)
def shipped(name: str) -> Shipped:
    """Return the shipped rows of a table; none if it has not been run."""
    path = ASSETS / f"tables_{name}.json"
    if not path.is_file():
        return Shipped({}, [])
    about = json.loads(path.read_text(encoding="utf-8"))
    return Shipped(about, about.pop("rows"))


@lru_cache(maxsize=16)
def protocols(name: str) -> dict[str, tuple[Cell, bool]]:
    """Return every cell of a table by its key, with whether only the full protocol has it."""
    make = TABLES[name].make
    return {cell.key: (cell, full) for full in (True, False) for cell in make(full)}


def offered(name: str) -> list[tuple[Cell, bool]]:
    """Return the cells that can be computed here: the shipped ones, or those of the reduced protocol."""
    known = protocols(name)
    keys = [row["key"] for row in shipped(name).rows] or [key for key, (_, full) in known.items() if not full]
    return [known[key] for key in keys if key in known]


def missing(name: str) -> dict[str, tuple[int, int]]:
    """Return for each row of a table how many cells of the reduced protocol are not shipped, and how many it has."""
    have, counts = {row["key"] for row in shipped(name).rows}, {}
    for cell in TABLES[name].make(False):
        absent, every = counts.get(cell.row, (0, 0))
        counts[cell.row] = absent + (cell.key not in have), every + 1
    return {row: found for row, found in counts.items() if found[0]}
