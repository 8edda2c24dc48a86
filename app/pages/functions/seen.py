"""What one method says at a step: curves and distances on the regression, maps of doubt on the ring."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist
from scipy.special import softmax

from stein_core import Spec
from stein_core.base import metrics
from stein_core.runs.outputs import outputs_at
from stein_core.targets.small_networks import BLOBS, CLASSES, GRID, far_points, nngp_posterior, ring_data
from steinlab.pages.functions.setup import FunctionSetup

PARTS = {"left": (0.0, 1.0), "blobs": BLOBS, "gap": (2.7, 4.3), "right": (6.3, 7.0)}
SIDE, REACH = 60, 20.0  # of the ring's map: cells a side, and its edge
AXIS = (np.arange(SIDE) + 0.5) / SIDE * 2 * REACH - REACH
PLANE = np.stack(np.meshgrid(AXIS, AXIS), axis=-1).reshape(-1, 2)
BINS = 24  # of a histogram of entropies


@dataclass(frozen=True)
class Line:
    """A method on the regression. mean, sd: (k,) of f on GRID. curves: (m, k). weights, functions: distances of all
    pairs of particles, |w_i - w_j| and the root mean square of f_i - f_j. spread: name of PARTS -> mean sd."""

    step: int
    diverged: bool
    rate: float
    forces: tuple[float, float]
    mean: np.ndarray
    sd: np.ndarray
    curves: np.ndarray
    weights: np.ndarray
    functions: np.ndarray
    spread: dict[str, float]


@dataclass(frozen=True)
class Ring:
    """A method on the ring. entropy, disagreement: (SIDE^2,) on PLANE. right, up: (SIDE^2,) share of particles whose
    class changes towards the next cell. histograms: (2, BINS) shares of entropies at test points and far away. numbers:
    name -> number."""

    step: int
    diverged: bool
    rate: float
    forces: tuple[float, float]
    entropy: np.ndarray
    disagreement: np.ndarray
    right: np.ndarray
    up: np.ndarray
    histograms: np.ndarray
    numbers: dict[str, float]


def spread_of(sd: np.ndarray) -> dict[str, float]:
    """Return the mean standard deviation in each of PARTS."""

    def mean(part):
        parts = part if isinstance(part[0], tuple) else (part,)
        inside = np.any([(GRID >= low) & (GRID <= high) for low, high in parts], axis=0)
        return float(sd[inside].mean())

    return {name: mean(part) for name, part in PARTS.items()}


@lru_cache(maxsize=8)
def exact(width: int, noise: float, prior_scale: float, data: tuple) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and sd of f on GRID under the exact posterior of the NNGP."""
    return nngp_posterior(data, GRID, width, 2, prior_scale, noise)


@lru_cache(maxsize=1)
def ring_inputs() -> tuple[np.ndarray, dict[str, slice], np.ndarray]:
    """Return all inputs of a ring's picture, where each kind is, and the classes of the test points."""
    x, y = ring_data(test=True)
    middle = np.sqrt(0.4) * np.random.RandomState(1).randn(50, 2)
    sets = {"plane": PLANE, "test": x, "far": far_points(), "middle": middle}
    ends = np.cumsum([len(each) for each in sets.values()])
    slices = {name: slice(end - len(each), end) for (name, each), end in zip(sets.items(), ends)}
    return np.concatenate([*sets.values()]), slices, y


def look(spec: Spec, particles: Any, setup: FunctionSetup, method: str, **about) -> Line | Ring:
    """Evaluate a method's particles. It compiles at first use: never on an event loop.

    Args:
        spec, particles, setup, method: of the run.
        about: step, diverged, rate and forces.
    """
    knobs = setup.knobs_of(method)
    if setup.ring:
        return _ring(outputs_at(spec, particles, knobs, ring_inputs()[0]), about)
    return line_of(np.asarray(particles), outputs_at(spec, particles, knobs, GRID[:, None])[..., 0], about)


def line_of(particles: np.ndarray, curves: np.ndarray, about: dict[str, Any]) -> Line:
    """Return what a method shows on the regression.

    Args:
        particles: (m, p), with spare rows behind them.
        curves: (m, k) on GRID.
        about: step, diverged, rate and forces.
    """
    sd = curves.std(axis=0, ddof=1) if len(curves) > 1 else np.zeros(len(GRID))
    return Line(
        mean=curves.mean(axis=0),
        sd=sd,
        curves=curves,
        weights=pdist(particles[: len(curves)]),
        functions=pdist(curves) / np.sqrt(len(GRID)),
        spread=spread_of(sd),
        **about,
    )


def _ring(outputs: np.ndarray, about: dict) -> Ring:
    _, where, y = ring_inputs()
    p = softmax(outputs, axis=-1)
    entropy, disagreement = metrics.entropy(p), metrics.disagreement(p, as_coded=len(p) > 1)
    of = {name: (entropy[part], disagreement[part]) for name, part in where.items()}
    best = outputs[:, where["plane"]].argmax(axis=-1).reshape(-1, SIDE, SIDE)
    right, up = np.zeros((2, SIDE, SIDE))
    right[:, :-1] = (best[:, :, 1:] != best[:, :, :-1]).mean(axis=0)
    up[:-1] = (best[:, 1:] != best[:, :-1]).mean(axis=0)
    edges = np.linspace(0, np.log(CLASSES), BINS + 1)
    edges[-1] += 1e-6
    histograms = np.stack([np.histogram(of[name][0], edges)[0] / len(of[name][0]) for name in ("test", "far")])
    numbers = {
        "accuracy": metrics.accuracy(p[:, where["test"]], y),
        **{f"entropy, {name}": float(of[name][0].mean()) for name in ("test", "middle", "far")},
        "AUROC entropy": metrics.auroc(of["test"][0], of["far"][0]),
        "AUROC disagreement": metrics.auroc(of["test"][1], of["far"][1]),
        "disagreement, far / test": metrics.separation(of["test"][1], of["far"][1]),
    }
    maps = {"entropy": of["plane"][0], "disagreement": of["plane"][1], "right": right.ravel(), "up": up.ravel()}
    return Ring(histograms=histograms, numbers=numbers, **maps, **about)
