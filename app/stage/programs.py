"""The programs of a setup: how many particles each holds, and what a session compiles of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from stein_core import DIAGNOSTICS, Frame, Spec, Stepper, compile
from stein_core.base.distances import DENSE
from stein_core.runs.cache import start
from stein_core.runs.memory import check_memory
from stein_core.runs.nearness import check_kernel
from steinlab.stage import costs
from steinlab.stage.contract import LiveSetup
from steinlab.stage.setup import CAPACITY, room_for
from steinlab.stage.waits import timed, waiting_for

# A small run starts on a small program; the largest is compiled behind it, before it is needed.
CAPACITIES = sorted({size for size in (32, 64, 128, 256, 512, 1024, 2048) if size < CAPACITY} | {CAPACITY})
FIRST_CAPACITY = CAPACITIES[0]


@dataclass(frozen=True)
class Programs:
    """The programs of all methods of a setup, for so many particles. What compiles is for a thread behind the pages.

    Args:
        setup: whose methods they are.
        capacity: particles that each has room for.
        measured: names of the diagnostics that a view reads.
    """

    setup: LiveSetup
    capacity: int
    measured: tuple[str, ...] = ()

    @property
    def specs(self) -> list[Spec]:
        """A Spec for each method."""
        return [self.setup.spec(method, self.capacity) for method in self.setup.methods]

    @property
    def near(self) -> float | None:
        """What their sums leave out."""
        return self.setup.near_of(self.capacity)

    @property
    def how(self) -> dict[str, float]:
        """The arguments with which they are compiled, beside the Spec."""
        return {} if self.near is None else {"near": self.near}

    @property
    def said(self) -> str:
        """What a page says while they are compiled."""
        return waiting_for(self.setup.methods)

    @property
    def affordable(self) -> tuple[str, ...]:
        """The diagnostics that cost less than a few steps of them."""
        return tuple(name for name in self.measured if self.capacity <= DENSE or not DIAGNOSTICS[name].facts.pairs)

    def check(self) -> None:
        """Refuse programs that do not fit into memory.

        Raises:
            ValueError: naming what is too much.
        """
        for spec in self.specs:
            check_memory(spec)

    def check_turn(self, name: str, value: Any, knobs: Mapping[str, Any]) -> None:
        """Refuse a knob that near sums do not allow: another kernel, or one so wide that a step would take too long.

        Args:
            name, value: of the knob that is turned.
            knobs: the present ones.

        Raises:
            ValueError: saying which.
        """
        if self.setup.near is not None:
            check_kernel({name: value})
        if self.near is not None and name.startswith("bandwidth."):
            costs.check_patience(self.specs, self.near, {**knobs, name: value})

    def begin(self) -> list[tuple[Stepper, Frame] | None]:
        """Return of each method what `cache.start` does. Its holder keeps the Steppers until they are compiled."""
        knobs = [{k: v for k, v in self.setup.knobs.items() if k in spec.knobs()} for spec in self.specs]
        return [start(spec, self.setup.seed, own, **self.how) for spec, own in zip(self.specs, knobs)]

    def compile(self, wanted: Callable[[], bool]) -> list[Stepper]:
        """Compile what moves and shows a run, as long as it is wanted.

        Raises:
            ValueError: a step would take too long.
        """
        if self.capacity > CAPACITY:
            for knobs in self._on_the_way():
                costs.check_patience(self.specs, self.near, knobs)
        steppers = []
        for spec in self.specs:
            if wanted():
                with timed(spec.method):
                    steppers.append(compile(spec, measure=False, **self.how))
        return steppers

    def _on_the_way(self) -> list[dict[str, Any]]:
        """The knobs of the start, and those after each change of a bandwidth by the link if sums are near."""
        knobs = [dict(self.setup.knobs)]
        for _, name, value in self.setup.changes:
            changed = {**knobs[-1], name: value}
            if self.near is not None and name.startswith("bandwidth.") and changed not in knobs:
                knobs.append(changed)
        return knobs

    def compile_metrics(self, wanted: Callable[[], bool]) -> None:
        """Compile what measures a run too, as long as it is wanted."""
        for spec in self.specs:
            if wanted():
                compile(spec, measure=self.affordable, **self.how)

    def offers(self, wanted: Callable[[], bool]) -> list[costs.Cost]:
        """Measure a step, as long as it is wanted, and return what a slider may offer beyond CAPACITY."""
        for spec in self.specs:
            if wanted():
                costs.learn(spec)
        return costs.offers(self.setup)


def capacity_of(setup: LiveSetup) -> int:
    """Return the capacity that a session of this setup starts at."""
    return next((size for size in CAPACITIES if size >= setup.particles), room_for(setup.particles))


def still_of(setup: LiveSetup) -> list[tuple]:
    """Return what stands still on the stage of a setup: titles and densities."""
    specs = Programs(setup, FIRST_CAPACITY).specs
    return [(spec.method, spec.target, spec.dim, spec.options_of("target")) for spec in specs]
