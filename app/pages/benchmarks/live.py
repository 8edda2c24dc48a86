"""Links of page "Benchmarks": which page runs a cell, with its settings."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple
from urllib.parse import urlencode

from stein_core import METHODS, TARGETS, Recipe
from stein_core.cli.posterior import EXAMPLE
from stein_core.papers.tables import TABLES, Cell
from stein_core.papers.tables.posteriordb import FITS
from stein_core.targets.posteriordb import folder
from steinlab.pages.benchmarks.shipped import offered
from steinlab.stage.setup import CAPACITY, Setup

NOWHERE = "No page runs this: {} It can be computed again here."
SELDOM, OF_NUTS = "its target belongs to this table alone.", "it is a run of NUTS."


def live_link(cell: Cell) -> str:
    """Return the link "?page=..." of the page that runs a cell, with the cell's settings.

    Raises:
        ValueError: no page runs it; the sentence says why.
    """
    if cell.table == "posteriordb":
        return _of_posterior(cell)
    recipe = TABLES[cell.table].facts.recipe(cell)
    if recipe is None:
        raise ValueError(NOWHERE.format(OF_NUTS if cell.column.startswith("NUTS") else SELDOM))
    try:
        setup = setup_of(recipe)
    except ValueError as error:
        raise ValueError(NOWHERE.format(error)) from None
    page = "samplers" if METHODS[recipe.spec.method].facts.sampler else "particles"
    return f"?page={page}&{setup.to_query()}"


class Live(NamedTuple):
    """What a click on a cell does. link: of the page that runs it, or of this page with the cell chosen if there is
    none; why: why there is none, "" if there is one."""

    link: str
    why: str


def live_of(cell: Cell) -> Live:
    """Return what a click on a cell does."""
    try:
        return Live(live_link(cell), "")
    except ValueError as error:
        query = {"page": "benchmarks", "table": cell.table, "row": cell.row, "column": cell.column, "seed": cell.seed}
        return Live(f"?{urlencode(query)}", str(error))


@lru_cache(maxsize=16)
def lives(name: str) -> dict[tuple[str, str], Live]:
    """Return for each row and column of a table what a click on its number does, by the first of its cells."""
    first: dict[tuple[str, str], Cell] = {}
    for cell, _ in offered(name):
        first.setdefault((cell.row, cell.column), cell)
    return {at: live_of(cell) for at, cell in first.items()}


def setup_of(recipe: Recipe) -> Setup:
    """Return a run as page "Particles" shows it.

    Raises:
        ValueError: the server refuses it, or the page runs something else.
    """
    spec = recipe.spec
    setup = Setup(
        target=spec.target,
        methods=(spec.method,),
        dim=None if TARGETS[spec.target].facts.dim_of else spec.dim,
        guide=spec.guide,
        optimizer=spec.optimizer,
        draws=spec.draws,
        seed=recipe.seed,
        knobs=dict(recipe.knobs),
        options=dict(spec.options),
        changes=recipe.changes,
    )
    if setup.particles > CAPACITY:
        raise ValueError(f"It has {setup.particles} particles; allowed on this server: {CAPACITY}.")
    return setup


def _of_posterior(cell: Cell) -> str:
    if cell.column not in FITS:
        raise ValueError(NOWHERE.format(f"page Your posterior fits with {', '.join(FITS)}."))
    if not (folder() / f"{cell.row}.npz").is_file():
        raise ValueError(NOWHERE.format("the data of posteriordb are not on this server (STEIN_DATA)."))
    return "?" + urlencode({"page": "posterior", "posterior": EXAMPLE + cell.row, "way": FITS[cell.column]}, safe="/")
