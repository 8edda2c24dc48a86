"""Page "Benchmarks": results of the papers on real data, published beside ours."""

from __future__ import annotations

import html
import io
import json
from dataclasses import dataclass

import panel as pn
import panel_material_ui as pmui

from stein_core.base.errors import unknown
from stein_core.papers.tables import TABLES
from steinlab.pages.benchmarks.drawing import CSS, live_line, page, result
from steinlab.pages.benchmarks.jobs import CellJob
from steinlab.pages.benchmarks.live import live_of
from steinlab.pages.benchmarks.shipped import offered, shipped
from steinlab.ui import link
from steinlab.ui.job_bar import TEXT, JobBar
from steinlab.ui.text import Text

SIZE = {"size": "small", "margin": (10, 8, 4, 8), "width": 260}
ALL = "all"
FIRST = "svgd_uci"  # the table of a bare link
MIDDLE_OF_PAGE = {"max-width": "1212px", "margin": "0 auto", "width": "100%"}


@dataclass(frozen=True)
class Choice:
    """What is shown, and which cell can be computed here.

    Args:
        table: a name of TABLES.
        row: of the table, "" for all.
        column, seed: of the cell; "" and None for the first.
    """

    table: str
    row: str = ""
    column: str = ""
    seed: str = ""

    def __post_init__(self):
        cells = [cell for cell, _ in offered(self.table)]
        for part in ("row", "column", "seed"):
            wanted = getattr(self, part)
            allowed = list(dict.fromkeys(str(getattr(cell, part)) for cell in cells))
            if wanted and wanted not in allowed:
                raise unknown(part, wanted, allowed)
            cells = [cell for cell in cells if not wanted or str(getattr(cell, part)) == wanted]


LINK = (
    link.Field("table", link.one_of("table", TABLES), always=True),
    link.Field("row"),
    link.Field("column"),
    link.Field("seed"),
)


class Benchmarks:
    """Page "Benchmarks"; see `steinlab.contents` for the contract of a page."""

    def __init__(self, shell, query: dict[str, str]):
        self.shell, self.setting = shell, False
        self.choice, problems = link.read(LINK, query, Choice(FIRST))
        labels = {entry.label: entry.name for entry in TABLES.listed()}
        self.selects = {
            "table": pmui.Select(label="Result", options=labels, **{**SIZE, "width": 320}),
            "row": pmui.Select(label="Set", options=[ALL], **{**SIZE, "width": 150}),
            "column": pmui.Select(label="Cell", options=[""], **SIZE),
            "seed": pmui.Select(label="Seed or split", options=[""], **{**SIZE, "width": 130}),
        }
        for name, select in self.selects.items():
            select.param.watch(lambda event, name=name: self.on_select(name, event.new), "value")
        self.bar = JobBar("Compute this cell here", "cells", self.job, self.take)
        self.error = pmui.Alert("", severity="error", visible=False, sizing_mode="stretch_width", margin=(8, 8))
        self.here = Text(html="", stylesheets=[CSS], sizing_mode="stretch_width", margin=(0, 16), visible=False)
        self.text = Text(html="", go=shell.go, stylesheets=[CSS], sizing_mode="stretch_width", margin=(8, 16))
        self.live = Text(html="", go=shell.go, stylesheets=[CSS], sizing_mode="stretch_width", margin=(0, 16))
        self.file = pmui.FileDownload(label="Rows as JSON", callback=self.rows, filename="rows.json", **TEXT)
        controls = pmui.FlexBox(*self.selects.values(), *self.bar.widgets, self.file, align_items="center")
        self.sidebar = []
        self.main = [
            pn.Column(
                pn.Column(controls, self.live, self.error, self.here, styles=MIDDLE_OF_PAGE),
                self.text,
                sizing_mode="stretch_width",
                margin=(12, 8, 0, 8),
            )
        ]
        if problems:
            self.refuse(" ".join(problems.values()))
        self.draw()
        shell.frame.param.watch(lambda event: self.draw(), "dark_theme")
        pn.state.on_session_destroyed(lambda context: self.bar.cancel())

    # ---- what the shell asks

    def show(self):
        """Do nothing: the rows are shipped."""

    def hide(self):
        """Do nothing: a job goes on while another page is shown."""

    def open(self, query: dict[str, str]) -> None:
        """Show the choice of another link."""
        table = query.get("table")
        self.choice, problems = link.read(LINK, query, Choice(table if table in TABLES else self.choice.table))
        self.error.visible = False
        if problems:
            self.refuse(" ".join(problems.values()))
        self.draw()

    def link(self) -> str:
        return link.write(LINK, self.choice, Choice(self.choice.table))

    def refresh(self):
        """Show how far the job is, and its result."""
        self.bar.refresh()

    # ---- from the user

    def on_select(self, name: str, value: str) -> None:
        """Take another choice; what no longer fits is dropped."""
        if self.setting:
            return
        parts = ("table", "row", "column", "seed")
        kept = {part: getattr(self.choice, part) for part in parts[: parts.index(name)]}
        self.choice = Choice(**{**kept, name: "" if value == ALL else value})
        self.draw()

    def cells(self):
        """Return the cells that the choice leaves, with whether only the full protocol has each."""
        chosen = self.choice
        return [
            (cell, full)
            for cell, full in offered(chosen.table)
            if chosen.row in ("", cell.row)
            and chosen.column in ("", cell.column)
            and chosen.seed in ("", str(cell.seed))
        ]

    def job(self) -> CellJob | None:
        """Return the job of the chosen cell, the first that the choice leaves."""
        self.error.visible = False
        cells = self.cells()
        return CellJob(*cells[0]) if cells else None

    def take(self, job: CellJob) -> None:
        """Show the result of a job beside the shipped one."""
        if job.state == "failed":
            self.refuse(job.error)
        elif job.row:
            old = {row["key"]: row for row in shipped(job.cell.table).rows}
            self.here.param.update(html=result(job.row, old.get(job.row["key"])), visible=True)

    def refuse(self, sentence: str) -> None:
        """Say what is wrong; what is shown stays."""
        self.error.param.update(object=html.escape(sentence), visible=True)

    def rows(self) -> io.StringIO:
        """Return the shipped rows of the table, for a download."""
        known = shipped(self.choice.table)
        return io.StringIO(json.dumps({**known.about, "rows": known.rows}, indent=1))

    # ---- what is shown

    def draw(self) -> None:
        """Show the chosen table, and offer the cells that fit."""
        chosen, cells = self.choice, [cell for cell, _ in offered(self.choice.table)]
        rows = [cell for cell in cells if chosen.row in ("", cell.row)]
        columns = [cell for cell in rows if chosen.column in ("", cell.column)]
        first = (self.cells() or [(None, False)])[0][0]
        self.setting = True
        try:
            self.selects["table"].value = chosen.table
            for name, of, value in (
                ("row", [ALL, *names(cells, "row")], chosen.row or ALL),
                ("column", names(rows, "column"), first and first.column),
                ("seed", names(columns, "seed"), first and str(first.seed)),
            ):
                self.selects[name].param.update(options=of, value=value)
        finally:
            self.setting = False
        self.live.html = live_line(first, live_of(first)) if first else ""
        self.text.html = page(TABLES[chosen.table], chosen.row, self.shell.frame.dark_theme)


def names(cells, part: str) -> list[str]:
    """Return the different values of a part of cells, as texts."""
    return list(dict.fromkeys(str(getattr(cell, part)) for cell in cells))
