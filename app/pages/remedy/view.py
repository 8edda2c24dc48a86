"""View of page "Which remedy": the cards on two chosen coordinates, and the numbers of the figures and the table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import numpy as np

from stein_core import METHODS, Spec
from stein_core.base.samples import width_ratios
from stein_core.contract.spec import Options, target_at
from steinlab.stage.numbered import Numbered
from steinlab.stage.run import Run
from steinlab.stage.scene import density_of
from steinlab.stage.wire import Panel, rows

MEASURED = ("stein_trace", "force")  # the variance is in the table
SETS = 40  # of exact draws, for what they give


class Seen(NamedTuple):
    """One method at one moment.

    Args:
        begun: number of its run.
        gradients: of the target up to this step; a Hessian counts as one for each coordinate.
        force: root mean square length.
        variance: mean over the coordinates, as a share of the exact one; NaN if that is not known.
        least, most: variance along the direction that has least, or most, of the exact one, as a share of it.
        seconds: of a step, 0 before the first.
    """

    begun: int
    method: str
    step: int
    gradients: float
    force: float
    variance: float
    least: float
    most: float
    seconds: float


def gradients_of(method: str, n: int, d: int) -> int:
    """Return how many gradients of the target a step takes."""
    return n * (1 + d * METHODS[method].facts.hessians)


def of_target(spec: Spec, knobs: Mapping[str, Any]) -> Options:
    """Return the knobs of a spec's target, by their full names."""
    known = spec.knobs()
    return Options({name: value for name, value in knobs.items() if name.startswith("target.") and name in known})


@lru_cache(maxsize=16)
def covariance_of(spec: Spec, knobs: Options) -> np.ndarray | None:
    """Return the exact covariance (d, d) of a spec's target, that of long chains, or None."""
    truth = target_at(spec, knobs).truth
    if truth.matrix is None and truth.reference is not None:
        return np.cov(np.asarray(truth.reference, float).T)
    return truth.matrix


@lru_cache(maxsize=32)
def exact_widths(spec: Spec, knobs: Options, n: int) -> tuple[float, float]:
    """Return least and most, as in Seen, that n exact draws have on average; NaN if there are none."""
    sample, covariance = target_at(spec, knobs).truth.sample, covariance_of(spec, knobs)
    if sample is None or covariance is None or n < 2:
        return np.nan, np.nan
    sets = [width_ratios(sample(jax.random.key(i), n), covariance) for i in range(SETS)]
    return float(np.mean([one[0] for one in sets])), float(np.mean([one[-1] for one in sets]))


class RemedyView(Numbered):
    """See `steinlab.stage.numbered.Numbered`.

    Args:
        axes: the coordinates that are drawn, from 0. Those that a target does not have are replaced by its first ones.
        on_seen: of Numbered.
    """

    def __init__(self, axes: tuple[int, int] = (0, 1), on_seen: Callable[[list[Seen]], None] = lambda moments: None):
        super().__init__(MEASURED, on_seen)
        self.axes = axes

    def drawn(self, dim: int) -> tuple[int, int]:
        """Return the coordinates that are drawn of so many."""
        return self.axes if max(self.axes) < dim else (0, 1)

    def scene(self, specs: Sequence[Spec], knobs: Mapping[str, Any] = {}) -> dict:
        axes = self.drawn(specs[0].dim)
        made = super().scene(specs, knobs)
        cards = [{**card, "edit": card["edit"] and axes == (0, 1)} for card in made["cards"]]
        return {**made, "cards": cards, "backgrounds": [density_of(specs[0], knobs, axes)]}

    def panels(self, run: Run, metrics: Sequence[Mapping[str, float]]) -> list[Panel]:
        return [
            panel._replace(rows=rows(frame, self.drawn(stepper.spec.dim)))
            for panel, stepper, frame in zip(super().panels(run, metrics), run.steppers, run.frames)
        ]

    def numbers(self, run: Run, metrics: Sequence[Mapping[str, float]], begun: int) -> list[Seen]:
        return [
            seen(begun, stepper.spec, frame, values, run)
            for stepper, frame, values in zip(run.steppers, run.frames, metrics)
        ]


def seen(begun: int, spec: Spec, frame, values: Mapping[str, float], run: Run) -> Seen:
    """Return the numbers of one method at this frame."""
    covariance = covariance_of(spec, of_target(spec, run.knobs))
    n, d = frame.locations.shape
    variance = least = most = np.nan
    if covariance is not None and n > 1 and np.all(np.isfinite(frame.locations)):
        variance = float(np.sum(np.var(frame.locations, axis=0, ddof=1)) / np.trace(covariance))
        least, most = width_ratios(frame.locations, covariance)[[0, -1]]
    own = getattr(run, "methods", {}).get(spec.method)  # a run that still compiles has none
    gradients = frame.step * gradients_of(spec.method, n, d)
    seconds = own.seconds if own else 0.0
    return Seen(begun, spec.method, frame.step, gradients, values["force"], variance, least, most, seconds)


def seen_before(kept: Mapping[str, Any]) -> Seen:
    """Return a moment of a shipped run, as `steinlab.keep` writes it. What a step took is of another machine."""
    return Seen(**{name: np.nan if value is None else value for name, value in kept.items()} | {"seconds": 0.0})
