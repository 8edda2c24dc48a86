"""What many particles cost: how long a step takes and how much memory, before a program for them is compiled."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import jax

from stein_core import METHODS, Spec, Stepper, compile
from stein_core.base.distances import DENSE
from stein_core.runs.assembly import registry_version
from stein_core.runs.memory import bytes_allowed, bytes_needed
from stein_core.runs.nearness import share_at_start
from steinlab.stage.setup import CAPACITY, SIZES

LONGEST = 2.0  # seconds of a step that a slider offers
PATIENCE = 10.0  # seconds of a step beyond which a link is refused
IN_BLOCKS = 2 * DENSE  # particles whose kernel sums go block by block
STEPS = 8  # that are measured at once of the program of CAPACITY
NEW = 0.3  # share of the newest time in what is known of a program
KNOWN = 256  # programs
NEAR = 1e-3  # kernel values that the near sums leave out whose pairs are timed

_taken: OrderedDict[Spec, tuple[int, float]] = OrderedDict()  # program of CAPACITY -> a capacity, seconds of its step


class Cost(NamedTuple):
    """What so many particles cost.

    Args:
        particles: of each method.
        seconds: of a step of all methods; None if it is not known yet.
        memory: bytes that their programs hold at once.
    """

    particles: int
    seconds: float | None
    memory: int

    def __str__(self) -> str:
        takes = "" if self.seconds is None else f"a step takes about {brief(self.seconds)} s here, "
        return f"{self.particles:,} particles: {takes}{brief(self.memory / 1e6)} MB"


def brief(value: float) -> str:
    """Return a number with two digits: 0.71, 2.1, 160."""
    rounded = float(f"{value:.2g}")
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:g}"


def note(spec: Spec, seconds: float) -> None:
    """Remember how long a step of a program took. What a larger program took says more, and stays."""
    key = replace(spec, capacity=CAPACITY)
    capacity, before = _taken.pop(key, (0, 0.0))
    if capacity == spec.capacity:
        seconds = before + NEW * (seconds - before)
    _taken[key] = (capacity, before) if capacity > spec.capacity else (spec.capacity, seconds)
    while len(_taken) > KNOWN:
        _taken.popitem(last=False)


def learn(spec: Spec) -> None:
    """Measure a step of the program of CAPACITY, unless one was measured. It may compile."""
    key = replace(spec, capacity=CAPACITY)
    if key not in _taken:
        note(key, measured(compile(key, look=False, measure=False)))


def measured(stepper: Stepper) -> float:
    """Return the seconds of a step: the least of three measurements."""
    knobs = {"method.particles": stepper.spec.capacity} if stepper.spec.capacity > 1 else {}
    state, took = stepper.advance(stepper.reset(0, knobs), knobs, 1), []
    steps = max(1, CAPACITY * STEPS // stepper.spec.capacity)
    for _ in range(3):
        began = time.perf_counter()
        state = jax.block_until_ready(stepper.advance(state, knobs, steps))
        took.append((time.perf_counter() - began) / steps)
    return min(took)


@lru_cache(maxsize=1)
def blocks() -> float:
    """Return how much longer a pair of particles takes block by block than in the program of CAPACITY, on this machine.

    Sums over arrays of all pairs read much memory, so it is mostly less than 1. SVGD in the plane stands for all.
    """
    sizes = CAPACITY, IN_BLOCKS
    each = [measured(compile(Spec("gaussian", 2, "svgd", capacity=n), look=False, measure=False)) / n**2 for n in sizes]
    return each[1] / each[0]


@lru_cache(maxsize=32)
def _sharing(spec: Spec, version: Any, near: float) -> Callable[[int, Mapping[str, Any]], float]:
    """Return what `share_at_start` does for a program. version: of its entries."""
    return share_at_start(Stepper(spec, near=near))


def share_of(spec: Spec, near: float, knobs: Mapping[str, Any]) -> float:
    """Return the share of all pairs that a near sum computes, of as many particles as the program holds, at its start.

    It compiles once for a program.

    Args:
        spec: the program.
        near: kernel values that are left out.
        knobs: over all methods.
    """
    own = {name: value for name, value in knobs.items() if name in spec.knobs()}
    return _sharing(spec, registry_version(spec), near)(0, {**own, "method.particles": spec.capacity})


@lru_cache(maxsize=1)
def near_pair() -> float:
    """Return the seconds that a near sum takes for one pair of particles on this machine. SVGD in the plane stands for
    all."""
    spec = Spec("gaussian", 2, "svgd", capacity=IN_BLOCKS)
    seconds = measured(compile(spec, look=False, measure=False, near=NEAR))
    return seconds / (share_of(spec, NEAR, {}) * IN_BLOCKS**2)


def seconds_of(spec: Spec, near: float | None = None, knobs: Mapping[str, Any] = {}) -> float | None:
    """Return about how long a step of a program takes, by its law and what was measured; None before that.

    All pairs of particles interact, or all pairs of draws and guides: time grows as n^2. Particles that move alone take
    time as n. Near sums take time by the pairs that they compute, or as n if that is more: for a target that is dear.

    Args:
        spec: the program.
        near: kernel values that its sums leave out, or None.
        knobs: over all methods, for near sums.
    """
    if (known := _taken.get(replace(spec, capacity=CAPACITY))) is None:
        return None
    capacity, seconds = known
    if near is not None:
        pairs = share_of(spec, near, knobs) * spec.capacity**2
        return max(seconds * spec.capacity / capacity, near_pair() * pairs)
    pairs = METHODS[spec.method].facts.interacts or spec.has_density
    in_blocks = blocks() if pairs and capacity <= DENSE < spec.capacity else 1.0
    return seconds * (spec.capacity / capacity) ** (2 if pairs else 1) * in_blocks


def cost_of(specs: Sequence[Spec], near: float | None = None, knobs: Mapping[str, Any] = {}) -> Cost:
    """Return what the programs of one capacity cost together. near, knobs: as for `seconds_of`."""
    each = [seconds_of(spec, near, knobs) for spec in specs]
    seconds = None if None in each else sum(each)
    return Cost(max(spec.capacity for spec in specs), seconds, sum(map(bytes_needed, specs)))


def offers(setup) -> list[Cost]:
    """Return what a slider of particles may offer beyond CAPACITY: what memory, the methods and patience allow.

    Args:
        setup: a `steinlab.stage.setup.Setup`, whose programs of CAPACITY were measured.
    """
    found, methods = [], [METHODS[method].facts for method in setup.methods]
    for size in SIZES:
        if any(not facts.single and size > facts.largest for facts in methods):
            break
        cost = cost_of([setup.spec(method, size) for method in setup.methods], setup.near_of(size), setup.knobs)
        if cost.seconds is None or cost.seconds > LONGEST or cost.memory > bytes_allowed():
            break
        found.append(cost)
    return found


def check_patience(specs: Sequence[Spec], near: float | None = None, knobs: Mapping[str, Any] = {}) -> None:
    """Refuse programs whose step would take too long, before they are compiled.

    Args:
        specs: of the programs, of one capacity.
        near, knobs: as for `seconds_of`.

    Raises:
        ValueError: saying how long it would take, and how many particles are allowed.
    """
    for spec in specs:
        learn(spec)
    cost = cost_of(specs, near, knobs)
    if cost.seconds is not None and cost.seconds > PATIENCE:
        allowed = int(cost.particles * (PATIENCE / cost.seconds) ** 0.5)
        about = f"about {float(f'{allowed:.1g}'):,.0f} particles" if near is None else "a smaller bandwidth or fewer"
        raise ValueError(
            f"particles = {cost.particles}: a step would take about {brief(cost.seconds)} s here; "
            f"allowed: {PATIENCE:g} s, {about}."
        )
