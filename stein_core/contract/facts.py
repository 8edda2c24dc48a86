"""Facts: what an entry of a registry says about itself beside its name. One frozen dataclass a registry.

A fact has its default here and nowhere else. A fact that is not listed here is refused when an entry is registered.
SLOTS are the five places in which a method may differ from SVGD: what its kernel sees, the metric of the kernel, the
kernels of its two forces, its noise, and what stands in front of its force.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Callable, Mapping

from stein_core.base.distances import DENSE

MAX_CAPACITY = 2**20  # particles of a method whose memory is linear in them


@dataclass(frozen=True, kw_only=True)
class Facts:
    """Facts of every entry. listed: whether pages offer it to everybody."""

    listed: bool = True


@dataclass(frozen=True, kw_only=True)
class TargetFacts(Facts):
    """Facts of a target.

    dims: the least and the largest dimension. default_dim: the dimension without a choice. dim_step: dimensions are
    multiples of it. dim_of: (options by their short names) -> the dimension, if it follows from them. options_of: the
    inverse, (dimension, given options) -> options; it raises ValueError for a dimension that the target does not have.
    pads: the factory takes a mask. data: (options) -> the arrays that the factory takes as `data`. sampled: it may have
    an exact sampler; False saves building it to find out. measures: (spec, particles, knobs) -> further columns of a
    sweep's row.
    """

    dims: tuple[int, int]
    default_dim: int
    dim_step: int = 1
    dim_of: Callable[..., int] | None = None
    options_of: Callable[..., Mapping[str, Any]] | None = None
    pads: bool = False
    data: Callable[..., Any] | None = None
    sampled: bool = True
    measures: Callable[..., dict[str, float]] | None = None


SLOTS = ("kernel", "metric", "forces", "noise", "front")


@dataclass(frozen=True, kw_only=True)
class MethodFacts(Facts):
    """Facts of a method.

    guides: the guides that it allows, its default first. single: it has one particle. kernel: particles interact
    through the kernel. optimizers: its own optimisers, the first is taken. exact: it needs exact draws of the target.
    functions: its forces act on a network's outputs, so the target must be a network. check: (spec, knobs) -> None,
    raises ValueError. sampler: its particles are draws of one network: they cannot
    be added, removed or permuted. linear: no step forms an array of all pairs of particles, so that it takes more than
    4,096 of them. For sweeps: noisy: (choices) -> whether the force at one place
    changes from step to step, None when only a guide's draws make it noisy. stages: most stages of step sizes. least:
    (knobs) -> steps that a stage takes at least. rounds: sets of particles that its memory holds, which is also the
    number of its steps. stack: methods with an equal name share state and guide, and run in one batch.

    On a standard normal: law: (d, n, knobs) -> the variance, 1/(n-1), that it ends with, NaN where none is known; knobs
    are all by their full names. leading: the law is a leading order in 1/n and 1/d, else it is exact. limit: a paper's
    asymptotic prediction, if it differs from the law. simplex: for n <= d + 1 it ends as a regular simplex.
    exact_force: (target, kernel) -> its knobs for which its force is exact there, which a grid takes by default.

    As a change of SVGD: slot: what it changes, of SLOTS, or "". formula: what stands there instead, in one line.
    moves_rest: whether it moves the place where SVGD rests; False if it moves only the road to it. hessians: each step
    also takes the Hessian at every particle, which costs a gradient for each coordinate.

    On pages: colour: on a light page and on a dark one; marker: Bokeh's name; both of its series in every figure,
    without them it takes what is free.
    """

    guides: tuple[str, ...]
    single: bool = False
    kernel: bool = True
    optimizers: tuple[str, ...] = ()
    exact: bool = False
    functions: bool = False
    check: Callable[..., None] | None = None
    sampler: bool = False
    linear: bool = False
    noisy: Callable[[Mapping[str, Any]], bool] | None = None
    stages: int | None = None
    least: Callable[[Mapping[str, Any]], float] = lambda knobs: 0
    rounds: int = 0
    stack: str = ""
    law: Callable[[int, int, Mapping[str, Any]], float] = lambda d, n, knobs: math.nan
    limit: Callable[[int, int, Mapping[str, Any]], float] = lambda d, n, knobs: math.nan
    leading: bool = False
    simplex: bool = False
    slot: str = ""
    formula: str = ""
    moves_rest: bool = False
    hessians: bool = False
    exact_force: Callable[[str, str], Mapping[str, Any]] = lambda target, kernel: {}
    colour: tuple[str, str] | None = None
    marker: str = ""

    @property
    def largest(self) -> int:
        """The most particles that it takes."""
        return MAX_CAPACITY if self.linear else DENSE

    @property
    def interacts(self) -> bool:
        """Whether particles feel each other through the kernel."""
        return self.kernel and not self.single


@dataclass(frozen=True, kw_only=True)
class GuideFacts(Facts):
    """Facts of a guide. size: (dimension of theta, **options) -> number of parameters of one guide, in plain
    arithmetic, for the dimension may be traced. has_density: False for a point mass. mean_field: whether its
    coordinates are independent."""

    size: Callable[..., Any]
    has_density: bool = True
    mean_field: bool = True


@dataclass(frozen=True, kw_only=True)
class KernelFacts(Facts):
    """Facts of a kernel. argument: "distance" for f(u), "inner" for f(s)."""

    argument: str = "distance"


@dataclass(frozen=True, kw_only=True)
class DiagnosticFacts(Facts):
    """Facts of a diagnostic. log: a plot wants a log axis. live: it is a read-out beside a moving picture. needs: what
    a run must have for it to mean something, of "density" (guides that are no point masses), "kernel" (particles that
    interact), "several" (particles, by the method) and "sample" (exact draws of the target). reads: "draws" if draws
    and their scores are enough, "problem" if it also needs the method's guide, kernel or forces. full_data: it
    evaluates the density of all data, also when a step takes a mini-batch. ideal: its value for exact draws. pairs: it
    sums over all pairs of particles, so that of many it costs as much as steps do."""

    log: bool = False
    live: bool = True
    needs: tuple[str, ...] = ()
    reads: str = "problem"
    full_data: bool = False
    ideal: float | None = None
    pairs: bool = False


@dataclass(frozen=True, kw_only=True)
class SweepFacts(Facts):
    """Facts of a sweep. stop: its rule to stop, a `stop.Stop`; None is the default rule."""

    stop: Any = None
