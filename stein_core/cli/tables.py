"""The command `tables`: results of the papers on real data, computed anew and put beside the published ones."""

from __future__ import annotations

import datetime
import json
import math
import os

from stein_core.base.errors import short, unknown
from stein_core.base.machine import cache_folder, keep_compiled
from stein_core.cli.commands import MOST_SEEDS, check_out, executor_of, versions
from stein_core.cli.job import add_job, progress
from stein_core.papers.tables import TABLES, Comparison, compare, run_cells
from stein_core.sweep.store import Store


def add_tables(commands) -> None:
    """Add the arguments of `tables`."""
    tables = commands.add_parser("tables", help="results of the papers on real data, published beside ours")
    tables.set_defaults(act=run_table)
    names = ", ".join(f"{entry.name}: {entry.label}" for entry in TABLES.entries())
    tables.add_argument("name", metavar="NAME", help=names)
    size = tables.add_mutually_exclusive_group()
    size.add_argument("--reduced", action="store_true", help="minutes on two cores; the default")
    size.add_argument("--full", action="store_true", help="the paper's protocol")
    tables.add_argument("--seeds", type=int, metavar="N", help="seeds or splits of each cell")
    tables.add_argument("--only", metavar="ROW[/COLUMN[/SEED]]", help="some of the cells")
    tables.add_argument("--show", action="store_true", help="compute nothing; compare the rows that are stored")
    tables.add_argument("--workers", type=int, help="threads; default one a core up to 4")
    tables.add_argument(
        "--devices", type=int, help="devices that take runs in turn; default: all GPUs, or one on a CPU"
    )
    tables.add_argument("--cluster", metavar="ADDRESS", help="a Dask scheduler, or 'local' (needs the extra `cluster`)")
    tables.add_argument("--store", metavar="FILE", help="SQLite file; default tables.sqlite in the cache folder")
    tables.add_argument("--export", metavar="FILE.json", help="write the rows with versions, as the app ships them")
    add_job(tables)


def run_table(options) -> int:
    """`tables NAME`: compute the cells that the store lacks, then print published values beside ours."""
    entry = TABLES[options.name]
    for name, most in (("seeds", MOST_SEEDS), ("workers", 256)):
        if (given := getattr(options, name)) is not None and not 1 <= given <= most:
            raise ValueError(f"--{name} = {short(given)} is out of range; allowed: 1 to {most}.")
    if options.export:
        check_out(options.export, "--export")
    cells = chosen(entry.make(options.full, options.seeds), options.only)
    store = Store(options.store or cache_folder() / "tables.sqlite")
    keep_compiled()
    if options.show:
        rows = store.rows(cell.key for cell in cells)
    else:
        with executor_of(options) as executor, progress(options, len(cells), "cell") as show:

            def report(row, done, total, left):
                text = "" if row is None else f"{row['row']}, {row['column']}, about {left:.0f} s left"
                show(done, left, text)

            rows = run_cells(cells, store, executor, report, options.devices)
            if options.job:
                show(len(rows), rows=rows)
    if options.export:
        export(options.export, rows, options)
    if not options.job:
        print_table(entry, rows)
    return 0


def chosen(cells, only: str | None):
    """Return the cells that `only` names, ROW, ROW/COLUMN or ROW/COLUMN/SEED, or all.

    Raises:
        UnknownName: no such row, column or seed.
    """
    parts = ("row", "column", "seed")
    for name, wanted in zip(parts, only.split("/") if only else ()):
        allowed = list(dict.fromkeys(str(getattr(cell, name)) for cell in cells))
        if wanted not in allowed:
            raise unknown(f"{name} of --only:", wanted, allowed)
        cells = [cell for cell in cells if str(getattr(cell, name)) == wanted]
    return cells


def export(path: str, rows, options) -> None:
    """Write rows as the app ships them: with the command, the date, versions and the number of cores."""
    words = ["tables", options.name, "--full" if options.full else "--reduced"]
    words += ["--seeds", str(options.seeds)] * bool(options.seeds) + ["--only", options.only] * bool(options.only)
    command = "python -m stein_core " + " ".join(words)
    about = {"by": command, "made": datetime.date.today().isoformat(), "cores": os.cpu_count(), **versions()}
    rounded = [
        {
            **row,
            "settings": dict(row["settings"]),
            "numbers": {k: v if v is None else float(f"{v:.6g}") for k, v in row["numbers"].items()},
        }
        for row in rows
    ]
    with open(path, "w", encoding="utf-8") as file:
        lines = ",\n".join(json.dumps(row, separators=(",", ":")) for row in rounded)
        file.write(json.dumps(about)[:-1] + ', "rows": [\n' + lines + "\n]}\n")


def print_table(entry, rows) -> None:
    """Print published values beside ours."""
    print(f"{entry.label}: {entry.reference}")
    print(f"{'':<42}{'published':>18}{'ours':>18}{'difference':>12}{'runs':>6}{'s a run':>9}")
    for one in compare(entry.name, rows):
        if one.runs:
            print(
                f"{one.row + ': ' + one.label:<42}{plus(one.published, one.published_error):>18}"
                f"{plus(one.ours, one.error):>18}{difference(one):>12}{one.runs:>6}{one.seconds:>9.1f}"
            )
    for sentence in [*entry.facts.differs, *(entry.facts.tests(rows) if entry.facts.tests else ())]:
        print(sentence)


def plus(value: float, error: float) -> str:
    """Return a number with its standard error, "-" if there is none."""
    if math.isnan(value):
        return "-"
    return f"{value:.4g}" if math.isnan(error) else f"{value:.4g} ± {error:.2g}"


def difference(one: Comparison) -> str:
    """Return a difference in standard errors, or in percent of a law; "-" if it is not known."""
    if math.isnan(one.difference):
        return "-"
    return f"{100 * one.difference:+.1f} %" if one.law else f"{one.difference:+.1f} s.e."
