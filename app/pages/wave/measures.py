"""What one method says about the wave at a step: bands on the grid, predictive densities, widths and coverage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from stein_core import GUIDES, METHODS, Spec
from stein_core.base.bands import Band, band, coverage, lppd
from stein_core.runs.outputs import function_values
from stein_core.targets.data.datasets import WAVE_CLUSTERS, WAVE_REGIONS, wave_region
from stein_core.targets.wave import GRID
from steinlab.pages.wave.setup import WaveSetup

DRAWS = 40  # of each guide
GAP = (WAVE_CLUSTERS[0][1], WAVE_CLUSTERS[1][0])
REGIONS = [wave_region(region) for region in WAVE_REGIONS]
AT = np.concatenate([GRID, *(points[0] for points in REGIONS)])


@dataclass(frozen=True)
class Readout:
    """Numbers of a method. lppd: of In, Between and Entire. inside, between: mean width of the band of f inside the
    clusters and between them, at the chosen probability; gap: between them at 90 %, for the plot over widths.
    coverage: share of the wave's 120 observations on (-2, 2) within the band of y."""

    lppd: tuple[float, ...]
    inside: float
    between: float
    gap: float
    coverage: float


@dataclass(frozen=True)
class Evaluation:
    """A method at a step: its bands on the grid (`half` is the 50 % one), the particles' own curves (m, k) and its
    numbers."""

    step: int
    wide: Band
    half: Band
    curves: np.ndarray
    readout: Readout
    rate: float
    diverged: bool


def evaluate(
    spec: Spec, particles: Any, setup: WaveSetup, method: str, step: int, rate: float, diverged: bool
) -> Evaluation:
    """Evaluate a method's particles. It compiles at first use: never on an event loop."""
    knobs = setup.knobs_of(method)
    values = function_values(spec, particles, knobs, AT, DRAWS)
    wide, half, readout = measure(values, setup)
    if not GUIDES[METHODS[method].facts.guides[0]].facts.has_density:
        curves = values[:, : len(GRID)]
    else:  # a particle's own curve is f at its location
        points = Spec("wave", spec.dim, "map" if spec.capacity == 1 else "svgd", capacity=spec.capacity)
        known = points.knobs()
        own = {name: value for name, value in knobs.items() if name in known}
        curves = function_values(points, np.asarray(particles)[:, : spec.dim], own, GRID)
    return Evaluation(step, wide, half, curves, readout, rate, diverged)


def measure(values: np.ndarray, setup: WaveSetup) -> tuple[Band, Band, Readout]:
    """The chosen band, the 50 % band and the numbers of function values (S, k) at AT."""
    ends = np.cumsum([len(GRID), *(points.shape[1] for points in REGIONS)])[:-1]
    on_grid, *at_regions = np.split(values, ends, axis=1)
    noise = setup.value("target.noise")
    wide, half = (band(on_grid, p, noise if setup.noisy else 0.0) for p in (setup.probability, 0.5))
    of_f = band(on_grid, setup.probability) if setup.noisy else wide
    at_90 = of_f if setup.probability == 0.9 else band(on_grid, 0.9)
    readout = Readout(
        tuple(lppd(found, points[1], noise) for found, points in zip(at_regions, REGIONS)),
        float(np.mean([of_f.width(GRID, cluster) for cluster in WAVE_CLUSTERS])),
        of_f.width(GRID, GAP),
        at_90.width(GRID, GAP),
        coverage(at_regions[-1], REGIONS[-1][1], setup.probability, noise),
    )
    return wide, half, readout
