"""The cache of compiled Steppers, and whole runs of a Recipe."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from typing import Any, Iterator, Mapping

from stein_core.base.machine import check_maps, maps_used
from stein_core.contract.recipe import Recipe
from stein_core.contract.spec import Spec
from stein_core.contract.types import Frame, State
from stein_core.runs.assembly import Measure, registry_version
from stein_core.runs.memory import check_memory
from stein_core.runs.runner import Stepper

KEPT_STEPPERS = 64

_steppers: OrderedDict[Any, Stepper] = OrderedDict()
_begun: weakref.WeakValueDictionary[Any, Stepper] = weakref.WeakValueDictionary()  # see `start`
_locks: dict[Any, threading.Lock] = {}
_table = threading.Lock()


def compile(spec: Spec, look: bool = True, measure: Measure = True) -> Stepper:
    """Return the Stepper of `spec`: compile it, or take it from the cache of the last 64.

    It takes seconds, so keep it off an event loop. It is safe from any thread: two threads that ask for one spec
    compile it once. The cache holds fewer than 64 when memory maps run short. Programs that you did not
    request compile on first use.

    Args:
        spec: what to compile.
        look: False if nobody calls `look`. It saves three quarters of the time for SVGD and SMI.
        measure: names of the diagnostics to come, or True for all; False if nobody reads metrics or adds a particle
            yet. It saves half of the time, unless another method of the same problem has compiled its diagnostics.

    Raises:
        ValueError: the program would not fit into memory, or memory maps run short.
    """
    check_memory(spec)
    key = (spec, registry_version(spec))
    with _table:
        lock = _locks.setdefault(key, threading.Lock())
    with lock:
        with _table:
            known = _steppers.get(key)
        stepper = _begun[key] = known or _begun.get(key) or Stepper(spec)  # `start` may use it meanwhile
        fresh = stepper.prepare(look, measure, before=make_room)
        with _table:
            _steppers[key] = stepper
            _steppers.move_to_end(key)
            while fresh and (len(_steppers) > KEPT_STEPPERS or maps_used() > 0.5) and _forget():
                pass
        return stepper


def start(spec: Spec, seed: int, knobs: Mapping[str, Any]) -> tuple[Stepper, Frame] | None:
    """Return the Stepper of `spec` and its first frame (see `Stepper.begin`), long before the program is compiled.

    `compile` then takes this Stepper, as long as somebody holds it.

    Returns:
        (stepper, frame), or None if the program is compiled already.
    """
    key = (spec, registry_version(spec))
    with _table:
        lock = _locks.setdefault(key, threading.Lock())
        if key in _steppers:
            return None
    if not lock.acquire(blocking=False):  # it is being compiled
        stepper = _begun.get(key)
        return stepper and (stepper, stepper.begin(seed, knobs))
    try:
        stepper = _begun[key] = _begun.get(key) or Stepper(spec)
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


def stream(recipe: Recipe, steps: int, every: int = 1, measure: Measure = True) -> Iterator[Frame]:
    """Yield the frames of a run at steps 0, every, 2 every ... and at the last step.

    If the run diverges, the last frame has `finite=False` and the stream ends.

    Args:
        recipe: the run.
        steps: number of steps.
        every: steps between two frames.
        measure: names of the diagnostics to compute, or True for all.

    Raises:
        ValueError: see `compile`.
    """
    stepper = compile(recipe.spec, measure=measure)
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
            if not frame.finite:
                return
        if at == steps:
            return
        goal = min([steps, (at // every + 1) * every] + [c[0] for c in changes[:1]])
        state = stepper.advance(state, knobs, goal - at)
        if int(state.step) < goal:
            yield stepper.look(state, knobs, measure)
            return
        at = goal


def collect(recipe: Recipe, steps: int, every: int | None = None, measure: Measure = True) -> list[Frame]:
    """Return all frames of `stream` as a list.

    Args:
        recipe, steps, measure: as for `stream`.
        every: steps between two frames; None for the first and the last frame only.

    Raises:
        ValueError: see `compile`.
    """
    return list(stream(recipe, steps, every or max(steps, 1), measure))
