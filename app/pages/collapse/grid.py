"""What the page "Variance collapse" shows, as plain values: the grid that is swept, and the reference file."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields, replace
from functools import lru_cache, partial
from typing import Any, Mapping
from urllib.parse import parse_qsl

import numpy as np

from stein_core import BANDWIDTHS, FORCE_SCALES, KERNELS, METHODS, TARGETS, Recipe, Spec, target_of
from stein_core.base.errors import short, unknown
from stein_core.contract.knobs import Knob
from stein_core.sweep.grids import variance_collapse
from stein_core.sweep.keys import key_of
from stein_core.sweep.stop import Stop
from steinlab.server.folders import ASSETS
from steinlab.server.limits import KNOWN, LIMITS
from steinlab.ui import link

STOP = Stop()
MOST_SEEDS = 20
# What ships can be shown, however little a server computes.
MOST_RUNS, MOST_PARTICLES = (
    max(getattr(LIMITS, name), KNOWN[f"STEINLAB_{name.upper()}"][0]) for name in ("runs", "particles")
)
SHIPPED = ASSETS / "variance_collapse.json"
PRESETS = json.loads(SHIPPED.with_name("collapse_presets.json").read_text())

# quantity -> (tab, label, short label, log y axis); the columns of a row that the page draws.
QUANTITIES = {
    "sample_variance": ("Variance", "variance (points 1/(n-1), guides 1/n)", "points 1/(n-1), guides 1/n", True),
    "marginal_variance": ("Variance", "variance, all with 1/n", "all 1/n", True),
    "covariance_error": ("Frobenius distance", "Frobenius distance of the covariance", "full covariance", True),
    "diagonal_error": (
        "Frobenius distance",
        "Frobenius distance, diagonal only",
        "diagonal only, as the published code",
        True,
    ),
    "mean_location": ("Mean location", "mean location", "mean", False),
    "stein_trace": ("Stein trace", "Stein trace r", "r", True),
    "norm_spread": ("Near-orthogonality", "spread of the norms", "spread of norms", True),
    "overlap": ("Near-orthogonality", "overlap of pairs", "overlap of pairs", True),
}  # fmt: skip
AXES = {"dim": "dimension d", "gamma": "gamma = d / n", "particles": "particles n"}
# RESVGD's published means at n = 20 (smi_experiments, resvgd_locs.npy).
RESVGD = dict(zip(
    (1, 2, 4, 8, 10, 20, 40, 60, 80, 100),
    (0.0018, -0.00003, 0.0017, 0.043, 0.042, -0.0044, -0.0052, 0.0016, 0.019, -0.020),
))  # fmt: skip


@dataclass(frozen=True)
class Grid:
    """The settings of a sweep, each list multiplied with the others. ValueError says what is wrong."""

    methods: tuple[str, ...] = ("svgd", "annealed", "vi", "smi")
    dims: tuple[int, ...] = (1, 2, 4, 8, 10, 20, 40, 60, 80, 100)
    particles: tuple[int, ...] = (20,)
    alphas: tuple[float, ...] = (1.0,)
    kernels: tuple[str, ...] = ("rbf",)
    rules: tuple[str, ...] = ("median_log",)
    force_scales: tuple[str, ...] = ("paper",)
    seeds: int = 3
    target: str = "gaussian"
    knobs: (
        Mapping[str, Any] | tuple[tuple[str, Any], ...]
    ) = ()  # the methods' other knobs; kept as (name, value) where they differ

    def __post_init__(self):
        registries = {"methods": METHODS, "kernels": KERNELS, "rules": BANDWIDTHS, "force_scales": FORCE_SCALES}
        size = self.seeds
        for name in ("methods", "dims", "particles", "alphas", "kernels", "rules", "force_scales"):
            values = getattr(self, name)
            if not values:
                raise ValueError(f"{name}: the list is empty; allowed: at least one.")
            if name in registries:
                for value in values:
                    registries[name][value]
            object.__setattr__(self, name, tuple(dict.fromkeys(values)))
            size *= len(values)
        others = other_knobs(self.methods, self.target, self.kernels)
        given = dict(self.knobs)
        for name in given:
            if name not in others:
                raise unknown("setting of these methods:", name, others)
        knobs = {name: others[name].check(value) for name, value in sorted(given.items())}
        object.__setattr__(self, "knobs", tuple((k, v) for k, v in knobs.items() if v != others[k].default))
        if not 1 <= self.seeds <= MOST_SEEDS:
            raise ValueError(f"seeds = {short(self.seeds)} is out of range; allowed: 1 to {MOST_SEEDS}.")
        if max(self.particles) > MOST_PARTICLES:
            raise ValueError(
                f"particles = {short(max(self.particles))} is out of range; allowed: 1 to {MOST_PARTICLES}."
            )
        if size > 4 * MOST_RUNS or len(self.recipes()) > MOST_RUNS:
            raise ValueError(f"these lists make up to {size} runs; allowed: {MOST_RUNS}. Take fewer values.")

    def refusal(self) -> str:
        """Why this server runs none of it, though it shows what is known; or ""."""
        if (count := len(self.recipes())) > LIMITS.runs:
            return f"{count} runs are too many; allowed on this server: {LIMITS.runs} (STEINLAB_RUNS)."
        return LIMITS.refusal(max(self.dims), max(self.particles))

    def calls(self) -> list[dict[str, Any]]:
        """The arguments of `variance_collapse`, one dict for each setting that it does not multiply out itself."""
        plain = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("force_scales", "knobs")}
        calls = []
        scaled = any(knob.name == "force_scale" for method in self.methods for knob in METHODS[method].knobs)
        groups: dict[tuple, list[str]] = {}  # kernels that take the same knobs
        for kernel in self.kernels:
            exact = exact_knobs(self.methods, self.target, kernel)
            groups.setdefault(tuple(exact.items()), []).append(kernel)
        for scale in self.force_scales if scaled else ("paper",):
            knobs = dict(self.knobs) if scale == "paper" else {**dict(self.knobs), "method.force_scale": scale}
            for exact, kernels in groups.items():
                calls.append({**plain, "kernels": tuple(kernels), "knobs": {**dict(exact), **knobs}})
        return calls

    def recipes(self) -> dict[str, Recipe]:
        """Every run by the key of its row."""
        return _recipes(self)

    def to_query(self) -> str:
        """What differs from the plain grid, as in an address."""
        return link.write(link_fields(), self, Grid())

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> tuple["Grid", list[str]]:
        """The grid of a link, and one sentence for everything in it that was wrong and left out."""
        grid, problems = link.read(link_fields(), query, cls())
        return grid, list(problems.values())

    def to_python(self) -> str:
        """A script that runs this grid and prints its rows."""
        lines = [
            "from stein_core.sweep.store import Store",
            "from stein_core.sweep.grids import run_sweep, variance_collapse",
            "",
            "recipes = [",
        ]
        for call in self.calls():
            lines += ["    *variance_collapse(", *(f"        {k}={v!r}," for k, v in call.items()), "    ),"]
        lines += ["]", 'for row in run_sweep(recipes, Store("sweeps.sqlite")):']
        return "\n".join([*lines, '    print(row["method"], row["dim"], row["seed"], row["sample_variance"])', ""])

    def common(self) -> str:
        """The settings that all series share, as a title says them."""
        parts = [TARGETS[self.target].label]
        named = (("n", self.particles), ("alpha", self.alphas), ("", self.kernels), ("", self.rules))
        for name, values in named:
            if len(values) == 1:
                parts.append(f"{name} = {values[0]:g}" if name else values[0])
        known = other_knobs(self.methods, self.target, self.kernels)
        parts += [f"{known[name].label} {text_of(value)}" for name, value in self.knobs]
        return ", ".join(parts)


@lru_cache(maxsize=64)
def _recipes(grid: Grid) -> dict[str, Recipe]:
    found = [recipe for call in grid.calls() for recipe in variance_collapse(**call)]
    return {key_of(recipe, STOP): recipe for recipe in found}


def exact_knobs(methods: tuple[str, ...], target: str, kernel: str) -> dict[str, Any]:
    """The knobs for which the methods' forces are exact there, so that they have laws."""
    return {k: v for method in methods for k, v in METHODS[method].facts.exact_force(target, kernel).items()}


def other_knobs(methods: tuple[str, ...], target: str, kernels: tuple[str, ...]) -> dict[str, Knob]:
    """The methods' own knobs that no list of a Grid sets, each with its default there."""
    found = {}
    exact = {k: v for kernel in kernels for k, v in exact_knobs(methods, target, kernel).items()}
    for method in methods:
        for knob in METHODS[method].knobs:
            if knob.name not in ("alpha", "force_scale"):
                name = f"method.{knob.name}"
                found[name] = replace(knob, name=name, default=exact.get(name, knob.default))
    return found


def link_fields() -> tuple[link.Field, ...]:
    """The table of a Grid's link: a field for each list, and one for every other knob of any method."""
    lists = [f for f in fields(Grid) if f.name != "knobs"]
    return (
        *(link.Field(f.name, partial(value_of, f.name), text_of) for f in lists),
        *(link.Field(name, text=text_of) for name in other_knobs(tuple(METHODS), Grid.target, Grid.kernels)),
    )


def text_of(value) -> str:
    """A field of a Grid as the link and the text inputs show it."""
    if isinstance(value, tuple):
        return ",".join(map(text_of, value))
    return link.text_of(value).removesuffix(".0")


def value_of(name: str, text: str):
    """The inverse of `text_of` for a field of Grid; spaces are allowed. ValueError says what is."""
    default = Grid.__dataclass_fields__[name].default
    many = isinstance(default, tuple)
    kind = type(default[0] if many else default)
    items = [item.strip() for item in text.split(",") if item.strip()] if many else [text.strip()]
    try:
        values = tuple(kind(item) for item in items)
    except ValueError:
        what = {int: "whole numbers", float: "numbers"}[kind]
        raise ValueError(f"{name} = {short(text)!r}; allowed: {what}{' with commas between' * many}.") from None
    return values if many else values[0]


@lru_cache(maxsize=1)
def shipped() -> dict[str, Any]:
    """The reference file, its rows by key: {"made": date, versions ..., "rows": {key: row}}."""
    file = json.loads(SHIPPED.read_text())
    rows = {}
    for row in file["rows"]:
        recipe = replace(Recipe.from_dict(row["recipe"]), changes=())
        rows[key_of(recipe, STOP)] = row
    return {**file, "rows": rows}


def true_variance(target: str, d: int) -> float:
    """Mean variance of the target's coordinates; NaN where it is not known."""
    variance = target_of(Spec(target, d, "svgd")).truth.variance
    return np.nan if variance is None else float(np.mean(variance))


@dataclass(frozen=True)
class View:
    """What of a grid is drawn. axis: of AXES. quantity: of QUANTITIES."""

    axis: str = next(iter(AXES))
    quantity: str = next(iter(QUANTITIES))


VIEW = (
    link.Field("x", link.one_of("x in the link", AXES), attribute="axis"),
    link.Field("y", link.one_of("y in the link", QUANTITIES), attribute="quantity"),
)


def read_link(query: Mapping[str, str]) -> tuple[Grid, str, str, list[str]]:
    """The grid, axis and quantity of a link, and one sentence for everything in it that was wrong and left out."""
    of_view, of_grid = link.split(VIEW, query)
    view, problems = link.read(VIEW, of_view, View())
    grid, wrong = Grid.from_query(of_grid)
    return grid, view.axis, view.quantity, [*problems.values(), *wrong]


def write_link(grid: Grid, axis: str, quantity: str) -> str:
    """The inverse of `read_link`."""
    return "&".join(filter(None, (grid.to_query(), link.write(VIEW, View(axis, quantity), View()))))


@lru_cache(maxsize=1)
def presets() -> dict[tuple[Grid, str, str], dict]:
    """The presets by what they show. Read once: it takes a third of a second."""
    return {read_link(dict(parse_qsl(preset["link"])))[:3]: preset for preset in PRESETS}
