"""`steinlab record` of a link of page "Variance collapse": how the curves of its sweep fill in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from stein_core.base.errors import short
from stein_core.sweep.grids import run_sweep
from stein_core.sweep.keys import is_complete
from steinlab.pages.collapse.grid import STOP, Grid, read_link, shipped
from steinlab.pages.collapse.kept import replay_of
from steinlab.pages.collapse.laws import curves_of
from steinlab.server.jobs import store
from steinlab.stage.lecture import Lecture


@dataclass(frozen=True)
class Sweep:
    """What is recorded of a grid. axis, quantity: see `steinlab.pages.collapse.grid.View`. dark: the theme."""

    grid: Grid
    axis: str
    quantity: str
    dark: bool
    unit = "run"

    @property
    def steps(self) -> int:
        """How many runs the grid has."""
        return len(self.grid.recipes())

    def every(self, steps: int) -> int:
        """Return the runs from one frame to the next."""
        return 1

    def shoot(self, steps: int, every: int, say: Callable[[int], None]) -> tuple[str, int, str]:
        """Run what nobody has run yet; return the replay, how many runs there are, and "".

        Raises:
            ValueError: steps or every was given, or this machine's limits forbid the runs.
        """
        for name, value, own in (("--steps", steps, self.steps), ("--every", every, 1)):
            if value != own:
                raise ValueError(
                    f"{name} = {short(value)} cannot go with a sweep, whose frames are its runs; allowed: {own}."
                )
        recipes, known = self.grid.recipes(), shipped()["rows"]
        missing = {key: recipe for key, recipe in recipes.items() if key not in known}
        rows: list[dict[str, Any]] = [row for row in store().rows([*recipes]) if is_complete(row)]
        have = {row["key"] for row in rows}
        if missing := [recipe for key, recipe in missing.items() if key not in have]:
            if refusal := self.grid.refusal():
                raise ValueError(f"LINK: {refusal}")

            def take(row: dict[str, Any], done: int, total: int, left: float):
                rows.append(row)
                say(done)

            run_sweep(missing, store(), STOP, report=take)
        before = [row for key, row in known.items() if key in recipes]
        curves = curves_of(self.grid, self.quantity, self.axis)
        page, _ = replay_of(self.grid, self.axis, self.quantity, {True: before, False: rows}, curves, self.dark)
        return page, self.steps, ""


def read(fields: dict[str, str], dark: bool) -> Sweep:
    """Read the fields of a link. Raises ValueError if something in it is wrong."""
    _, fields, unread = Lecture.of_query(fields)
    grid, axis, quantity, problems = read_link(fields)
    if problems := [*unread, *problems]:
        raise ValueError(f"LINK: {' '.join(problems)}")
    return Sweep(grid, axis, quantity, dark)
