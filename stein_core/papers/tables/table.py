"""Tables: results of papers on real data, computed anew cell by cell and kept in a resumable store.

A table is a factory (full, seeds) -> cells, with a function that computes one cell and with claims: which published
number stands beside which of ours.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import math
import time
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from typing import Any, Callable, Iterable, Mapping, NamedTuple

import jax
import numpy as np

from stein_core.base.machine import device_name, keep_compiled
from stein_core.contract.facts import Facts
from stein_core.contract.recipe import Recipe
from stein_core.contract.registry import Registry
from stein_core.papers.published import Published
from stein_core.sweep.store import Store
from stein_core.sweep.work import run_all


@dataclass(frozen=True)
class Cell:
    """One run of a table.

    Args:
        table: a name of TABLES.
        row, column: where it counts.
        seed: of the run; the number of the split if there are splits.
        settings: what else it needs, pairs of a name and a number or a word.
        cost: rough work, for the estimate of the time left; it does not belong to the key.
    """

    table: str
    row: str
    column: str
    seed: int
    settings: tuple[tuple[str, Any], ...] = ()
    cost: float = 1.0

    @property
    def key(self) -> str:
        """Return the hash that names its row in a store."""
        plain = {**asdict(self), "cost": None, "results": TABLES[self.table].facts.results}
        return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:32]

    def __getitem__(self, name: str) -> Any:
        return dict(self.settings)[name]


A_STEP = "seconds a step"


class Claim(NamedTuple):
    """A published number, and which numbers of ours stand beside it.

    Args:
        row, label: the row and the column of the page's table.
        table: the published table, or None if nothing is published.
        at: its row and column there.
        cells: the column of our cells; their row is `row`.
        metric: name of our number, or `A_STEP`: seconds a step of the fastest run (others may have shared the machine).
        note: what differs between the protocols, one sentence.
        count: runs over which the published error is a standard deviation; 1 if it is a standard error, 0 if it says
            nothing of other runs. Then no difference is counted in errors.
        law: a closed form that stands in place of a published number.
    """

    row: str
    label: str
    table: Published | None
    at: tuple[str, str]
    cells: str
    metric: str
    note: str = ""
    count: int = 1
    law: float = math.nan


class Comparison(NamedTuple):
    """A published number beside ours. error: standard errors; difference: in standard errors of both, or if a law
    stands there as a share of it; NaN if unknown. runs: how many of our cells there are; seconds: of one of them."""

    row: str
    label: str
    published: float
    published_error: float
    ours: float
    error: float
    difference: float
    runs: int
    seconds: float
    note: str
    cells: str
    law: bool


class Figure(NamedTuple):
    """A figure of a paper, drawn of our rows: a group of points for each row, one a column, with standard errors.

    Args:
        title: what it shows, and which figure it stands for.
        unit: of the vertical axis.
        metric: name of our number, or `A_STEP`: seconds a step of the fastest run (others may have shared the machine).
        columns: name -> the method whose colour it has.
        truth: row and column whose mean is a line, or None.
    """

    title: str
    unit: str
    metric: str
    columns: Mapping[str, str]
    truth: tuple[str, str] | None = None


@dataclass(frozen=True, kw_only=True)
class TableFacts(Facts):
    """Facts of a table.

    run: cell -> numbers by name. claims: () -> what is compared. differs: sentences on what differs in the protocol.
    tests: rows -> sentences, or None: what is to be said of several columns together. figure: where the paper has one.
    recipe: cell -> the run behind its numbers, or None if its method or target has no name. results: part of every key,
    to be raised when numbers of the table change.
    """

    run: Callable[[Cell], Mapping[str, float]]
    claims: Callable[[], list[Claim]]
    differs: tuple[str, ...] = ()
    tests: Callable[[list[dict[str, Any]]], list[str]] | None = None
    figure: Figure | None = None
    recipe: Callable[[Cell], Recipe | None] = lambda cell: None
    results: int = 1


TABLES = Registry("table", TableFacts)


def row_of(cell: Cell, numbers: Mapping[str, float], seconds: float) -> dict[str, Any]:
    """Return what the store keeps of a cell."""
    return {
        "key": cell.key,
        **{name: getattr(cell, name) for name in ("table", "row", "column", "seed")},
        "settings": dict(cell.settings),
        "seconds": round(seconds, 3),
        "made": datetime.date.today().isoformat(),
        "device": device_name(),
        "jax": jax.__version__,
        "numbers": {k: float(v) if v is not None and math.isfinite(v) else None for k, v in numbers.items()},
    }


def compute(cell: Cell) -> dict[str, Any]:
    """Compute one cell and return its row."""
    began = time.perf_counter()
    numbers = TABLES[cell.table].facts.run(cell)
    return row_of(cell, numbers, time.perf_counter() - began)


def _there(cell: Cell) -> dict[str, Any]:
    keep_compiled()  # in a process of its own
    return compute(cell)


def run_cells(
    cells: Iterable[Cell],
    store: Store,
    executor: Executor | None = None,
    report: Callable[[dict[str, Any] | None, int, int, float | None], None] = lambda *_: None,
    devices: int | None = None,
) -> list[dict[str, Any]]:
    """Compute the cells that the store does not have, and return the rows of all in their order.

    Args:
        cells: what is wanted.
        store: where each row goes as soon as it is known.
        executor: any of concurrent.futures; None for threads, one a core up to 4.
        report: called with (row, done, total, seconds left), at first with None for the row.
        devices: how many take cells in turn; None for all GPUs, or for one on a CPU.

    Raises:
        OSError: the store takes no more rows.
        Exception: of the first cell that failed, after the others have ended.
    """
    cells = {cell.key: cell for cell in cells}
    have = {row["key"]: row for row in store.rows(cells)}
    todo = [cell for key, cell in cells.items() if key not in have]
    whole, spent, began = sum(cell.cost for cell in todo), 0.0, time.perf_counter()
    report(None, len(have), len(cells), None)

    def take(cell: Cell, row: dict[str, Any]):
        nonlocal spent
        store.add(row)
        have[row["key"]] = row
        spent += cell.cost
        report(row, len(have), len(cells), (time.perf_counter() - began) * (whole - spent) / spent)

    here = lambda cell, stopped: None if stopped.is_set() else compute(cell)  # noqa: E731
    run_all(todo, here, _there, take, executor, devices)
    return [have[key] for key in cells]


def compare(name: str, rows: Iterable[Mapping[str, Any]]) -> list[Comparison]:
    """Return what is published beside what the rows of a table say, in the order of its claims."""
    found: dict[tuple, list] = {}
    for row in rows:
        if row["table"] == name:
            found.setdefault((row["row"], row["column"]), []).append(row)
    return [_comparison(claim, found.get((claim.row, claim.cells), [])) for claim in TABLES[name].facts.claims()]


def _comparison(claim: Claim, rows: list[Mapping[str, Any]]) -> Comparison:
    value, spread = claim.table.value(*claim.at) if claim.table else (claim.law, None)
    published_error = math.nan if spread is None or not claim.count else spread / math.sqrt(claim.count)
    if claim.metric == A_STEP:
        numbers = np.sort([row["seconds"] / dict(row["settings"])["steps"] for row in rows])[:1]
    else:
        numbers = np.array([row["numbers"].get(claim.metric) for row in rows], float)
    numbers = numbers[np.isfinite(numbers)]
    ours = float(numbers.mean()) if len(numbers) else math.nan
    error = float(numbers.std(ddof=1) / math.sqrt(len(numbers))) if len(numbers) > 1 else math.nan
    both = value if claim.table is None else math.hypot(error, 0.0 if spread is None else published_error)
    difference = (ours - value) / both if both > 0 else math.nan
    seconds = float(np.mean([row["seconds"] for row in rows])) if rows else math.nan
    return Comparison(
        claim.row, claim.label, value, published_error, ours, error, difference, len(numbers), seconds, claim.note,
        claim.cells, claim.table is None,
    )  # fmt: skip
