"""What the page "1-D wave" shows, as a value: its link, its recipes and its data, checked in one place."""

from __future__ import annotations

import csv
import math
from dataclasses import dataclass, field, replace
from functools import cache
from types import MappingProxyType
from typing import Any, Mapping

from stein_core import GUIDES, METHODS, Knob, Spec
from stein_core.contract.knobs import ROWS
from stein_core.targets.wave import KNOBS, WIDTHS, dim_of
from steinlab.server.limits import LIMITS
from steinlab.stage.training_setup import CAPACITIES, MOST_STEPS, Points, TrainingSetup, text_of_points, trained_by
from steinlab.ui import link
from steinlab.ui.upload import LONGEST

MOST = min(CAPACITIES[-1], LIMITS.particles)  # particles
STEPS = 15_000  # of the paper; training pauses there
DATA = next(knob for knob in KNOBS if knob.name == "data")
PAPER = DATA.default
TWO_ROWS = (5, 100)  # widths of the networks that are shown together, the paper's
FEW_DRAWS = 10  # of the second one's ELBO at most: it is not to take the time of the first
TRAINED = ("svgd", "annealed", "smi", "vi", "map", "ensemble")  # in the order of the page
OWN_DEFAULTS = {"method.particles": 5, "method.step_size": 1e-3, "method.horizon": STEPS}


def shown() -> tuple[str, ...]:
    """Return the methods of the page, in order."""
    return trained_by(TRAINED, "wave")


@cache
def all_knobs() -> dict[str, Knob]:
    """Return every knob of any method of the page but the data, by name."""
    known: dict[str, Knob] = {}
    for method in shown():
        known |= Spec("wave", method=method, draws=1, capacity=2).knobs()
    return {name: knob for name, knob in known.items() if name not in ("target.data", "init.shift")}


def default_of(name: str) -> Any:
    """Return the page's default of a knob: the paper's settings where the core's differ."""
    return OWN_DEFAULTS.get(name, all_knobs()[name].default)


def link_fields() -> tuple[link.Field, ...]:
    """Return the table of a WaveSetup's link."""
    return (
        link.Field("methods", link.names),
        link.switch("rows", "rows", ("1", "2"), attribute="two"),
        *map(link.whole_number, ("width", "draws", "seed", "steps", "below")),
        link.Field("band", attribute="probability"),
        link.switch("of", "band of", ("f", "y"), attribute="noisy"),
        *(link.Field(name, default=default_of(name)) for name in all_knobs()),
        link.Field("data", lambda text: read_points(text.replace(";", "\n")), text_of_points),
    )


@dataclass(frozen=True)
class WaveSetup(TrainingSetup):
    """Methods that are trained side by side on one data set.

    two: both networks of the paper, h = 5 and h = 100, one below the other, instead of one of any width. width: hidden
    units of each layer. draws: Monte Carlo draws of the ELBO per particle and step. knobs: name -> value if it differs
    from the page's default. steps: step of the frame; below: the same of the second row. 0 plays to the paper's 15,000.
    probability, noisy: which band is drawn, of f or (noisy) of an observation. A bad value raises ValueError.
    """

    width: int = 5
    methods: tuple[str, ...] = ("svgd", "smi", "vi")
    draws: int = 100
    seed: int = 0
    steps: int = 0
    probability: float = 0.9
    noisy: bool = False
    knobs: Mapping[str, Any] = field(default_factory=dict)
    data: Points = PAPER
    two: bool = False
    below: int = 0

    most, from_start = MOST, MappingProxyType({"steps": 0, "below": 0})
    shown, all_knobs, default_of, link_fields = map(staticmethod, (shown, all_knobs, default_of, link_fields))

    def __post_init__(self):
        steps = (0, MOST_STEPS)
        self.check({"width": (WIDTHS[0], WIDTHS[-1]), "draws": (1, 1000), "steps": steps, "below": steps})
        probability = Knob("band", 0.9, 0.05, 0.99).check(self.probability)
        width = TWO_ROWS[0] if self.two else self.width
        self.settle(width=width, probability=probability, data=DATA.check(self.data))
        for method in self.methods:
            self.recipe(method)

    @property
    def placed(self) -> dict[str, Points]:
        return {"target.data": self.data}

    @property
    def has_usual_points(self) -> bool:
        return self.data == PAPER

    def networks(self) -> tuple[WaveSetup, ...]:
        """Return what each row of the page trains."""
        if not self.two:
            return (self,)
        second = {
            "width": TWO_ROWS[1],
            "draws": min(self.draws, FEW_DRAWS),
            "steps": max(self.below, 1) if self.steps else 0,
        }
        return tuple(replace(self, two=False, below=0, **change) for change in ({}, second))

    @property
    def rows(self) -> int:
        """Return how many rows the data are padded to: another number is another program."""
        return next(size for size in ROWS if size >= len(self.data))

    def spec(self, method: str) -> Spec:
        """Return the program of one method."""
        return Spec("wave", dim_of(self.width), method, draws=self.draws, capacity=self.capacity)

    def posterior(self) -> tuple:
        """Return what NUTS's answer depends on."""
        return self.width, self.value("target.noise"), self.value("target.prior_scale"), self.data

    def to_python(self, steps: tuple[int, ...]) -> str:
        """A script that trains every method of every row from the start with the present settings, for so many steps,
        and prints its measures."""
        lines = [
            "from stein_core import Spec, compile",
            "from stein_core.base.bands import band",
            "from stein_core.runs.outputs import function_values",
            "from stein_core.targets.wave import GRID, measures",
            "",
            f"data = {self.data!r}",
            "",
        ]
        noise = f", noise={self.value('target.noise')!r}" if self.noisy else ""
        for network, taken in zip(self.networks(), steps):
            for method in self.methods:
                spec, known = network.spec(method), network.spec(method).knobs()
                knobs = {
                    k: v for k, v in network.knobs_of(method).items() if k != "target.data" and v != known[k].default
                }
                lines += [
                    f"spec = Spec('wave', {spec.dim}, {method!r}, draws={spec.draws}, capacity={spec.capacity})",
                    f"knobs = {knobs!r} | {{'target.data': data}}",
                    "stepper = compile(spec)",
                    f"state = stepper.advance(stepper.reset({self.seed}, knobs), knobs, {taken})",
                    "values = function_values(spec, state.particles, knobs, GRID)",
                    f"found = band(values, {self.probability}{noise})  # .mean, .low and .high at GRID",
                    f"print({method!r}, measures(spec, state.particles, knobs))",
                    "",
                ]
        return "\n".join(lines)


def used_by(method: str) -> set[str]:
    """The knobs that make a difference to a method: one that climbs alone has no kernel."""
    names, facts = (
        set(Spec("wave", method=method, draws=1, capacity=2).knobs()) & set(all_knobs()),
        METHODS[method].facts,
    )
    if "method.alpha" not in names:
        names = {name for name in names if name.split(".")[0] not in ("kernel", "bandwidth")}
    return names - {"method.particles"} if facts.single else names


def effort(method: str) -> tuple[bool, bool]:
    """Sort key: a method of points, and one without a kernel, compiles sooner."""
    facts = METHODS[method].facts
    return GUIDES[facts.guides[0]].facts.has_density, facts.interacts


def read_points(text: str | bytes) -> Points:
    """Points from pasted or uploaded text: a row "x, y" each, commas, semicolons, tabs or spaces between, and perhaps a
    line of column names first. ValueError says which row is wrong and why."""
    if len(text) > LONGEST:
        raise ValueError(
            f"data: too much text; allowed: {ROWS[-1]} points, {LONGEST:,} characters (STEINLAB_UPLOAD_MB)."
        )
    if isinstance(text, bytes):
        text = text.decode(errors="replace")
    delimiter = next((mark for mark in (";", "\t", ",") if mark in text), " ")
    points: list[tuple[float, float]] = []
    for i, cells in enumerate(_table(text, delimiter), 1):
        cells = [cell.strip() for cell in cells if cell.strip()]
        if not cells:
            continue
        if len(cells) != 2:
            raise ValueError(f"data, row {i}: {len(cells)} column{'s' * (len(cells) != 1)}; allowed: two, x and y.")
        try:
            point = (float(cells[0]), float(cells[1]))
        except ValueError:
            if i == 1 and not any(_is_number(cell) for cell in cells):
                continue  # column names
            wrong = next(cell for cell in cells if not _is_number(cell))
            raise ValueError(f"data, row {i}: {wrong[:40]!r} is not a number.") from None
        if not all(math.isfinite(c) for c in point):
            raise ValueError(f"data, row {i}: {point} is not a point; allowed: finite numbers.")
        points.append(point)
        if len(points) > ROWS[-1]:
            raise ValueError(f"data: more than {ROWS[-1]} points; allowed: 1 to {ROWS[-1]}.")
    return DATA.check(points)


def _table(text: str, delimiter: str):
    try:
        yield from csv.reader(text.splitlines(), delimiter=delimiter, skipinitialspace=True)
    except csv.Error as error:
        raise ValueError(f"data: this is no table of numbers ({error}).") from None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
