"""The job of page "Benchmarks": one cell of a table, computed anew in a process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stein_core.papers.tables import Cell
from steinlab.server.jobs import Job


class CellJob(Job):
    """Run `tables` for one cell, with a store of its own.

    Args:
        cell: which.
        full: whether only the full protocol has it.

    Attributes:
        row: what came out; None before it has ended.
    """

    label = "a table"

    def __init__(self, cell: Cell, full: bool):
        super().__init__(1, [])
        self.cell, self.full = cell, full
        self.row: dict[str, Any] | None = None

    def arguments(self, folder: Path) -> list[str]:
        cell = self.cell
        only = f"{cell.row}/{cell.column}/{cell.seed}"
        size = "--full" if self.full else "--reduced"
        return ["tables", cell.table, size, "--only", only, "--store", str(folder / "rows.sqlite"), "--workers", "1"]

    def on_news(self, news: dict[str, Any]) -> None:
        super().on_news(news)
        for row in news.get("rows", ()):
            self.row = row
