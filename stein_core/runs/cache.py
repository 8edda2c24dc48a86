"""The cache of compiled Steppers, and whole runs of a Recipe."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from typing import Any, Iterator, Mapping

from stein_core.base.errors import unknown
from stein_core.base.machine import check_maps, maps_used
from stein_core.contract.recipe import Recipe
from stein_core.contract.registry import METHODS
from stein_core.contract.spec import Spec
from stein_core.contract.types import Frame, State
from stein_core.runs.assembly import Measure, registry_version
from stein_core.runs.memory import check_memory
from stein_core.runs.rest import Rest
from stein_core.runs.runner import Stepper

KEPT_STEPPERS = 64
LOOK = 10  # steps between two frames of a run that ends at rest

_steppers: OrderedDict[Any, Stepper] = OrderedDict()
_begun: weakref.WeakValueDictionary[Any, Stepper] = weakref.WeakValueDictionary()  # see `start`
_locks: dict[Any, threading.Lock] = {}
_table = threading.Lock()


def compile(
    spec: Spec, look: bool = True, measure: Measure = True, devices: int | None = None, near: float | None = None
) -> Stepper:
    """Return the Stepper of `spec`: compile it, or take it from the cache of the last 64.

    It takes seconds, so keep it off an event loop. It is safe from any thread: two threads that ask for one spec
    compile it once. The cache holds fewer than 64 when memory maps run short. Programs that you did not
    request compile on first use.

    Args:
        spec: what to compile.
        look: False if nobody calls `look`. It saves three quarters of the time for SVGD and SMI.
        measure: names of the diagnostics to come, or True for all; False if nobody reads metrics or adds a particle
            yet. It saves half of the time, unless another method of the same problem has compiled its diagnostics.
        devices, near: how many share the particles, and what sums may leave out, see Stepper.

    Raises:
        ValueError: the program would not fit into memory, or memory maps run short, or too many devices.
    """
    check_memory(spec)
    key = (spec, registry_version(spec), devices, near)
    with _table:
        lock = _locks.setdefault(key, threading.Lock())
    with lock:
        with _table:
            known = _steppers.get(key)
        stepper = _begun[key] = known or _begun.get(key) or Stepper(spec, devices, near)  # `start` may use it meanwhile
        fresh = stepper.prepare(look, measure, before=make_room)
        with _table:
            _steppers[key] = stepper
            _steppers.move_to_end(key)
            while fresh and (len(_steppers) > KEPT_STEPPERS or maps_used() > 0.5) and _forget():
                pass
        return stepper


def start(spec: Spec, seed: int, knobs: Mapping[str, Any], near: float | None = None) -> tuple[Stepper, Frame] | None:
    """Return the Stepper of `spec` and its first frame (see `Stepper.begin`), long before the program is compiled.

    `compile` then takes this Stepper, as long as somebody holds it.

    Args:
        spec, near: as for `compile`.
        seed, knobs: of the run.

    Returns:
        (stepper, frame), or None if the program is compiled already.
    """
    key = (spec, registry_version(spec), None, near)
    with _table:
        lock = _locks.setdefault(key, threading.Lock())
        if key in _steppers:
            return None
    if not lock.acquire(blocking=False):  # it is being compiled
        stepper = _begun.get(key)
        return stepper and (stepper, stepper.begin(seed, knobs))
    try:
        stepper = _begun[key] = _begun.get(key) or Stepper(spec, near=near)
    finally:
        lock.release()
    return stepper, stepper.begin(seed, knobs)


def alone(spec: Spec) -> Stepper:
    """Return a Stepper that the cache does not keep, for a target that one run has. It compiles when it is used.

    Raises:
        ValueError: the program would not fit into memory, or memory maps run short.
    """
    check_memory(spec)
    make_room()
    return Stepper(spec)


def after(recipe: Recipe, steps: int) -> State:
    """Return the state of a run without changes after so many steps, or at the last finite one if it diverges.

    Raises:
        ValueError: see `compile`.
    """
    stepper = compile(recipe.spec, look=False, measure=False)
    return stepper.advance(stepper.reset(recipe.seed, recipe.knobs), recipe.knobs, steps)


def make_room() -> None:
    """Drop unused Steppers while more than half of the memory maps are in use.

    Raises:
        ValueError: more than 90 % of the memory maps are in use after that.
    """
    with _table:
        while maps_used() > 0.5 and _forget():
            pass
    check_maps()


def _forget() -> bool:
    """Drop the unused Stepper that was used longest ago; False if all are in use."""
    for key in list(_steppers):
        unused = weakref.ref(_steppers.pop(key))
        if (used := unused()) is None:
            _locks.pop(key, None)
            return True
        _steppers[key] = used
    return False


def stream(
    recipe: Recipe,
    steps: int,
    every: int = 1,
    measure: Measure = True,
    until: str | None = None,
    devices: int | None = None,
    near: float | None = None,
) -> Iterator[Frame]:
    """Yield the frames of a run at steps 0, every, 2 every ... and at the last step.

    If the run diverges, the last frame has `finite=False` and the stream ends.

    Args:
        recipe: the run.
        steps: number of steps.
        every: steps between two frames.
        measure: names of the diagnostics to compute, or True for all.
        until: "rest" also ends the stream at the first frame at which the run is at rest, see `rest.Rest`. It is looked
            for at the frames, so take many. None ends it after `steps` only.
        devices, near: how many share the particles, and what sums may leave out, see Stepper.

    Raises:
        ValueError: `until` is something else, or the method is never at rest; or see `compile`.
    """
    rest = _rest_of(recipe, until)
    stepper = compile(recipe.spec, measure=measure, devices=devices, near=near)
    knobs = recipe.knobs
    state = stepper.reset(recipe.seed, knobs)
    changes = list(recipe.changes)
    at = 0
    while True:
        while changes and changes[0][0] <= at:
            state, knobs = stepper.change(state, knobs, *changes.pop(0)[1:])
        knobs = stepper.knobs_of(knobs)
        if at % every == 0 or at == steps:
            frame = stepper.look(state, knobs, measure)
            yield frame
            if not frame.finite or (rest and rest.add(frame, knobs, len(recipe.changes) - len(changes))):
                return
        if at == steps:
            return
        goal = min([steps, (at // every + 1) * every] + [c[0] for c in changes[:1]])
        state = stepper.advance(state, knobs, goal - at)
        if int(state.step) < goal:
            yield stepper.look(state, knobs, measure)
            return
        at = goal


def collect(
    recipe: Recipe,
    steps: int,
    every: int | None = None,
    measure: Measure = True,
    until: str | None = None,
    devices: int | None = None,
    near: float | None = None,
) -> list[Frame]:
    """Return all frames of `stream` as a list.

    Args:
        recipe, steps, measure, until, devices, near: as for `stream`.
        every: steps between two frames; None for the first and the last frame only, or for LOOK with `until`.

    Raises:
        ValueError: see `stream`.
    """
    return list(stream(recipe, steps, every or (LOOK if until else max(steps, 1)), measure, until, devices, near))


def _rest_of(recipe: Recipe, until: str | None) -> Rest | None:
    """Return what watches for the end of a stream, or None."""
    if until is None:
        return None
    if until != "rest":
        raise unknown("until", until, ["rest"])
    rest = Rest(recipe.spec)
    if not rest.ends(recipe.knobs):
        raise ValueError(f"until = 'rest': {METHODS[recipe.spec.method].label} moves at random and is never at rest.")
    return rest
