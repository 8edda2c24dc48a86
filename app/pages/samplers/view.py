"""View of page "Samplers": the cards of the stage, and beside them the numbers of the figures below it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import numpy as np

from stein_core import METHODS, Frame, Spec
from stein_core.base.samples import shares, sliced_wasserstein
from stein_core.contract.spec import Options, target_at
from steinlab.stage.numbered import Numbered
from steinlab.stage.run import Run
from steinlab.stage.wire import Panel

MEASURED = ("mmd", "ksd", "stein_trace", "sample_variance", "force", "attraction", "repulsion")
EXACT = 2000  # exact draws that a sample is compared with
DIRECTIONS = 32
SMOOTH = 20  # points that the loss is averaged over: one step's estimate is noise


class Seen(NamedTuple):
    """One method at one moment. NaN and None: not defined for it.

    Args:
        begun: number of the run.
        method: its name.
        step: number of the step.
        loss: this step's estimate of what the method descends.
        distance, floor: sliced W2 of the draws to exact ones, and of as many exact draws.
        mmd: the diagnostic.
        mass, truth: (k,) share of the draws, and of exact draws, by mode.
        layers: (T, m, 2) draws of the layers of a hierarchy.
        layer_losses: (T,) their losses.
    """

    begun: int
    method: str
    step: int
    loss: float
    distance: float
    floor: float
    mmd: float
    mass: np.ndarray | None
    truth: np.ndarray | None
    layers: np.ndarray | None
    layer_losses: np.ndarray | None


class Reference(NamedTuple):
    """Exact draws of a target, or its published ones; others to compare them with; and its modes. None: there are
    none."""

    draws: np.ndarray | None
    others: np.ndarray | None
    modes: np.ndarray | None


@lru_cache(maxsize=32)
def reference(name: str, dim: int, options: Options, knobs: Options) -> Reference:
    """Return the reference of a target. options, knobs: by their full names."""
    target = target_at(Spec(name, dim, options=options), knobs)
    modes = None if target.truth.mode_centers is None else np.asarray(target.truth.mode_centers)
    if modes is not None:
        modes = modes[np.lexsort(modes.T[::-1])]  # from left to right, as on the stage
    if target.truth.sample is None:
        draws = target.truth.reference
        return Reference(*((None, None) if draws is None else np.array_split(np.asarray(draws), 2)), modes)
    return Reference(*(np.asarray(target.truth.sample(jax.random.key(i), EXACT)) for i in range(2)), modes)


def of_target(values: Mapping[str, Any]) -> Options:
    """Return what is the target's of options or knobs."""
    return Options({name: value for name, value in values.items() if name.startswith("target.")})


class SamplerView(Numbered):
    """Cards with the curve mu(z), for one or two methods. on_seen: of Numbered."""

    def __init__(self, on_seen: Callable[[list[Seen]], None] = lambda moments: None):
        super().__init__(MEASURED, on_seen)
        self.knobs = Options()  # the target's own, as the page has them

    def numbers(self, run: Run, metrics: Sequence[Mapping[str, float]], begun: int) -> list[Seen]:
        knobs = of_target(run.knobs)
        return [
            seen(begun, stepper.spec, frame, values, knobs)
            for stepper, frame, values in zip(run.steppers, run.frames, metrics)
        ]

    def panels(self, run: Run, metrics: Sequence[Mapping[str, float]]) -> list[Panel]:
        curves = [frame.extra.get("curve") for frame in run.frames]
        return [
            panel if curve is None else panel._replace(fixed=np.asarray(curve)[:, :2])
            for panel, curve in zip(super().panels(run, metrics), curves)
        ]


def seen(begun: int, spec: Spec, frame: Frame, metrics: Mapping[str, float], knobs: Options) -> Seen:
    """Return what the figures show of a frame."""
    about = reference(spec.target, spec.dim, of_target(spec.options), knobs)
    draws = np.asarray(frame.extra.get("draws", frame.locations))[: len(frame.locations)]
    distance = floor = np.nan
    mass = truth = None
    if about.draws is not None:
        distance, floor = (
            sliced_wasserstein(some, about.draws, directions=DIRECTIONS) for some in (draws, about.others[: len(draws)])
        )
    if about.modes is not None:
        mass = shares(draws, about.modes)
        truth = None if about.draws is None else shares(np.vstack([about.draws, about.others]), about.modes)
    layers = frame.extra.get("layers")
    return Seen(
        begun,
        spec.method,
        frame.step,
        float(
            frame.extra.get("loss", metrics.get("ksd", np.nan) ** 2 if METHODS[spec.method].facts.kernel else np.nan)
        ),
        distance,
        floor,
        float(metrics.get("mmd", np.nan)),
        mass,
        truth,
        None if layers is None else np.asarray(layers)[:, : len(draws), :2],
        None if layers is None else np.asarray(frame.extra["layer_losses"]),
    )


def seen_before(kept: Mapping[str, Any]) -> Seen:
    """Return a moment of a shipped run, as `steinlab.keep` writes it."""
    numbers = {
        name: np.nan if (value := kept[name]) is None else value for name in ("loss", "distance", "floor", "mmd")
    }
    masses = {name: None if kept[name] is None else np.array(kept[name]) for name in ("mass", "truth")}
    return Seen(1, kept["method"], kept["step"], **numbers, **masses, layers=None, layer_losses=None)
