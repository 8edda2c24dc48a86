"""The curves through the points of page "Variance collapse". Root finding is slow: never call it on the event loop."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from stein_core import METHODS, theory
from stein_core.contract.common_knobs import COMMON
from stein_core.contract.registry import Entry
from steinlab.pages.collapse.grid import STOP, Grid, true_variance
from steinlab.pages.collapse.series import Series, all_series, place

STOPS = 40  # of a curve, geometrically
STEP_SIZE = {knob.name: knob.default for knob in COMMON}["method.step_size"]


class Curve(NamedTuple):
    """A line of the figure. kind: "law" (exact), "limit" (an asymptotic prediction), "exact" (what the target says),
    "draws" (what n exact draws give) or "band" (ys is its upper edge and -ys its lower one). label: which of several
    grey ones it is. series: whose colour it has, or None."""

    kind: str
    label: str
    series: Series | None
    xs: list[float]
    ys: list[float]


@lru_cache(maxsize=20_000)
def _end(entry: Entry, exact: bool, d: int, n: int, kernel, rule, alpha, knobs: tuple) -> float:
    """The variance, 1/(n-1), by the method's law or, if not `exact`, by the limit of a paper."""
    facts = entry.facts
    stages = min(STOP.stages, facts.stages or STOP.stages)
    given = {
        **{knob.name: knob.default for knob in COMMON},
        **{f"method.{knob.name}": knob.default for knob in entry.knobs},
        **facts.exact_force("gaussian", kernel),
        "method.step_size": STEP_SIZE * 0.1 ** (stages - 1),  # what a sweep ends with
        **{name: value for name, value in knobs if name != "method.step_size"},
        "method.alpha": alpha,
        "kernel.name": kernel,
        "bandwidth.rule": rule,
    }
    return (facts.law if exact else facts.limit)(d, n, given)


def variance_law(
    method: str, d: int, n: int, kernel: str | None, rule: str | None, alpha: float | None, knobs: tuple = ()
) -> float:
    """Return the variance, with 1/(n-1), at which a method ends on a standard normal; NaN if no exact law is known.

    Args:
        knobs: those of Grid.knobs.
    """
    return _end(METHODS[method], True, d, n, kernel, rule, alpha, knobs)


def quantity_of(quantity: str, method: str, variance: float, d: int, n: int) -> float:
    """A quantity at a fixed point with this variance, 1/(n-1); NaN where the variance alone does not say."""
    if quantity == "sample_variance":
        return variance
    if quantity == "marginal_variance":
        return variance * (n - 1) / n
    if METHODS[method].facts.simplex and n <= d + 1:
        if quantity == "stein_trace" and not METHODS[method].facts.exact:  # the force balance, times x, summed
            return variance
        if quantity == "covariance_error":  # n - 1 equal eigenvalues, and d - n + 1 zeros
            return np.sqrt((n - 1) * (variance * d / n - 1) ** 2 + d - n + 1)
        if quantity == "overlap":  # <x_i, x_j> = -variance d / n
            return variance * np.sqrt(d) / n
    return np.nan


def draws_error(d: int, n: int) -> float:
    """Root mean square Frobenius distance, 1/n, between the covariance of n draws of a standard normal and its own:
    E |C - I|^2 = d (d + 1) (n - 1) / n^2 + d / n^2, from the variances and covariances of a Wishart matrix."""
    return np.sqrt(d * (d + 1) * (n - 1) + d) / n


def law_at(series: Series, quantity: str, d: int, n: int, knobs: tuple = ()) -> float:
    """The exact law at one point of a series on a standard normal, or NaN."""
    variance = variance_law(series.method, d, n, series.kernel, series.rule, series.alpha, knobs)
    return quantity_of(quantity, series.method, variance, d, n)


def limit_at(series: Series, quantity: str, d: int, n: int, knobs: tuple = ()) -> float:
    """A paper's prediction at one point of a series, where it is not just `law_at`; else NaN."""
    variance = _end(METHODS[series.method], False, d, n, series.kernel, series.rule, series.alpha, knobs)
    return quantity_of(quantity, series.method, variance, d, n)


def between(values, *inner: float) -> list[int]:
    """Whole numbers over the range of `values`, geometrically spaced, with all of them and `inner` where in range."""
    low, high = min(values), max(values)
    spaced = np.geomspace(low, high, STOPS).round().astype(int).tolist()
    return sorted({*spaced, *values, *(int(v) for v in inner if low <= v <= high)})


def curves_of(grid: Grid, quantity: str, axis: str) -> list[Curve]:
    """Everything that theory has to say about a grid, for one quantity along one axis."""
    curves = []

    def points(pairs, value):
        at = [(float(place(axis, d, n)), float(value(d, n))) for d, n in pairs]
        return [(x, y) for x, y in at if np.isfinite(y)]

    def draw(kind, label, series, at):
        if at:
            curves.append(Curve(kind, label, series, *map(list, zip(*at))))

    def grey(kind, value):
        for label, at in apart({label: points(pairs, value) for label, pairs in lines_of(grid, axis).items()}).items():
            draw(kind, label, None, at)

    if quantity in ("sample_variance", "marginal_variance"):
        here = {d: true_variance(grid.target, d) for d in grid.dims}
        grey("exact", lambda d, n: here.get(d, np.nan))
    if quantity == "stein_trace":
        grey("exact", lambda d, n: 1.0)
    elif grid.target != "gaussian":
        return curves
    if quantity == "covariance_error":
        grey("draws", draws_error)
    if quantity == "mean_location":
        grey("band", lambda d, n: 2 * theory.mean_band(d, n))
    for one in all_series(grid, axis):
        if axis == "particles":
            pairs = [(one.d, n) for n in between(grid.particles, one.d + 1)]
        else:
            pairs = [(d, one.n) for d in between(grid.dims, one.n - 1)]
        draw("law", "", one, points(pairs, lambda d, n: law_at(one, quantity, d, n, grid.knobs)))  # noqa: B023
        if quantity in ("sample_variance", "marginal_variance"):
            draw("limit", "", one, points(pairs, lambda d, n: limit_at(one, quantity, d, n, grid.knobs)))  # noqa: B023
    return curves


def lines_of(grid: Grid, axis: str) -> dict[str, list[tuple[int, int]]]:
    """The pairs (d, n) along the x axis, for each value of the other one."""
    if axis == "particles":
        return {f"d = {d}": [(d, n) for n in between(grid.particles)] for d in grid.dims}
    return {f"n = {n}": [(d, n) for d in between(grid.dims)] for n in grid.particles}


def apart(lines: dict[str, list[tuple[float, float]]]) -> dict[str, list[tuple[float, float]]]:
    """Lines by their labels; one without a label where they do not differ."""
    every = sorted({point for line in lines.values() for point in line})
    same = len({y for _, y in every}) <= 1 or len(set(map(tuple, lines.values()))) == 1
    return {"": every} if same else lines


def laws_of(grid: Grid, quantity: str, axis: str) -> dict[tuple[Series, int, int], float]:
    """The exact law, or NaN, at every point that the grid can give: by series, d and n."""
    if grid.target != "gaussian":
        return {}
    return {
        (series, d, n): law_at(series, quantity, d, n, grid.knobs)
        for series in all_series(grid, axis)
        for d in ([series.d] if series.d else grid.dims)
        for n in ([series.n] if series.n else grid.particles)
    }
