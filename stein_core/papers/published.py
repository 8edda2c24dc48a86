"""The tables of five papers as data, beside which this library puts its own numbers.

The values are in published.json, transcribed from the papers' texts. A table whose numbers the text does not have is
there without rows, and its note says so.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Mapping, NamedTuple

from stein_core.base.errors import unknown

PAPERS = {
    "svgd": "Liu & Wang 2016",
    "smi": "Stein mixture inference",
    "collapse": "Ba et al. 2022",
    "ensembles": "D'Angelo et al. 2021",
    "ksivi": "Cheng et al. 2024",
}


class Value(NamedTuple):
    """One published number, with its error if the paper prints one. What the error is, its table says."""

    value: float
    error: float | None = None


@dataclass(frozen=True)
class Published:
    """One table of a paper.

    Args:
        paper: a key of PAPERS.
        table: its number, with the part of it if it has parts.
        where: the section.
        title: what it shows.
        error: what the errors are, "" without any.
        note: what is to know about it.
        columns: their names.
        rows: name -> the values in the order of the columns.
    """

    paper: str
    table: str
    where: str
    title: str
    error: str
    note: str
    columns: tuple[str, ...]
    rows: Mapping[str, tuple[Value, ...]]

    @property
    def label(self) -> str:
        """Return the paper and the table's number in words."""
        return f"{PAPERS[self.paper]}, table {self.table}"

    def value(self, row: str, column: str) -> Value:
        """Return one number.

        Raises:
            UnknownName: no such row or column.
        """
        for kind, name, allowed in (("row", row, self.rows), ("column", column, self.columns)):
            if name not in allowed:
                raise unknown(f"{kind} of {self.label}:", name, allowed)
        return self.rows[row][self.columns.index(column)]


@lru_cache(maxsize=1)
def tables() -> dict[tuple[str, str], Published]:
    """Return all tables by (paper, number)."""
    found = {}
    for plain in json.loads(Path(__file__).with_name("published.json").read_text(encoding="utf-8")):
        rows = {name: tuple(Value(*value) for value in values) for name, values in plain["rows"].items()}
        table = Published(**{**plain, "columns": tuple(plain["columns"]), "rows": rows})
        found[table.paper, table.table] = table
    return found


def published(paper: str, table: str) -> Published:
    """Return one table.

    Raises:
        UnknownName: no such table; the message has the nearest match.
    """
    if (paper, table) not in tables():
        raise unknown("table", f"{paper} {table}", [" ".join(key) for key in tables()])
    return tables()[paper, table]
