"""The place that compiles what sessions run: Spec -> Stepper, and runs of a Recipe.

Everything that a slider can move is traced (`knobs`, the seed, the number of steps), so a Stepper compiles once, when
it is made, and never again.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, Callable, Iterator, Mapping

import jax
import jax.numpy as jnp
import numpy as np

from stein_core.assembly import assemble, entries_of, meter_of
from stein_core.machine import check_maps, check_memory, maps_used, trim_memory
from stein_core.recipe import Knobs, Recipe, Spec, knobs_of, target_of
from stein_core.registry import METHODS
from stein_core.types import Frame, State

LIMIT = 1e6  # a coordinate beyond this has diverged: no posterior here lives that far out
KEPT_STEPPERS = 64
WIDE = 1024  # capacity from which, on a CPU, the program of `look` takes the steps too, see Stepper
PIECE = 0.05  # seconds
_rest: ContextVar[Callable[[], None] | None] = ContextVar("rest", default=None)


@contextmanager
def in_pieces(rest: Callable[[], None]) -> Iterator[None]:
    """On this thread `Stepper.advance` takes its steps in pieces of about PIECE seconds and calls `rest` after each:
    threads share one device, where each would wait for all of another's steps. The same numbers come out. What `rest`
    raises ends it."""
    token = _rest.set(rest)
    try:
        yield
    finally:
        _rest.reset(token)


class Stepper:
    """The compiled program of one Spec, shared by every session; all state is the caller's.

    reset(seed, knobs) -> State; advance(state, knobs, steps) -> State; look(state, knobs) -> Frame, which moves
    nothing; add / remove a particle. `knobs` is a mapping from names to values; missing ones take their default.

    On a CPU a step of many particles is taken by the program of `look`, which remembers the last one it has taken: for one
    run at a time, to look and then to go on costs one step instead of two. The same numbers come out whether anybody looks
    or not.
    """

    def __init__(self, spec: Spec):
        self.spec = spec
        self.target = target_of(spec)
        self.knobs = spec.knobs()
        self._single = METHODS[spec.method].facts.single
        own = weakref.proxy(self)  # else a program would hold its Stepper, and only a search for garbage free the two
        for name in ("_reset", "_advance", "_look", "_born"):
            setattr(self, name, jax.jit(partial(getattr(Stepper, name), own)))
        self._wide, self._ahead = spec.capacity >= WIDE and jax.default_backend() == "cpu", None
        self._meter, self._prepared = meter_of(spec), set()

    def prepare(self, look: bool = True, measure: bool = True) -> bool:
        """Compile what is wanted, unless that is done (False); see `compile`."""
        wanted = {"look" if self._wide else "advance", *["look"] * look, *["measure", "born"] * (look and measure)}
        if not (wanted := wanted - self._prepared):
            return False
        make_room()
        state, knobs = self.reset(0, {}), self.knobs_of({}).traced
        work = {
            "advance": lambda: self.advance(state, {}, 0),
            "look": lambda: self.look(state, {}, False),
            "measure": lambda: self._meter.prepare(state, knobs),
            "born": lambda: self._born(np.float32(self.target.center), knobs),
        }
        with ThreadPoolExecutor() as pool:  # the long compiles side by side; list() passes an exception on
            list(pool.map(lambda name: work[name](), wanted))
        self._prepared |= wanted
        trim_memory()
        return True

    # ---- traced

    def _assembled(self, knobs):
        return assemble(self.spec, self.target, knobs)

    def _reset(self, seed, knobs) -> State:
        _, method = self._assembled(knobs)
        return method.init(jax.random.PRNGKey(seed), self.spec.capacity)

    def _advance(self, state: State, knobs, steps) -> tuple[State, Any]:
        _, method = self._assembled(knobs)

        def go_on(carry):
            return (carry[0] < steps) & carry[2]

        def step(carry):
            done, state, _ = carry
            after, _ = method.step(jax.random.fold_in(state.key, state.step), state)
            return done + 1, after, is_finite(after)

        return jax.lax.while_loop(go_on, step, (jnp.int32(0), state, jnp.bool_(True)))[1:]

    def _look(self, state: State, knobs) -> tuple[dict[str, Any], State | None]:
        problem, method = self._assembled(knobs)
        after, forces = method.step(jax.random.fold_in(state.key, state.step), state)
        seen = {
            "step": state.step,
            "m": problem.m,
            "finite": is_finite(after),
            "particles": state.particles,
            "locations": problem.guide.location(state.particles),
            "scales": problem.guide.scale(state.particles),
            "forces": forces,
        }
        return seen, after if self._wide else None

    def _born(self, location, knobs):
        return self._assembled(knobs)[0].guide.init(location)

    # ---- host side

    def knobs_of(self, knobs: Mapping[str, Any]) -> Knobs:
        """Return `knobs` checked, once: every method of a Stepper takes Knobs of its spec as they are.

        Raises:
            ValueError: an unknown name, a value out of range, or more particles than the capacity.
        """
        return knobs_of(self.spec, knobs)

    def reset(self, seed: int, knobs: Mapping[str, Any]) -> State:
        """The state before the first step; every capacity gives the same first particles for a seed."""
        with jax.default_matmul_precision("highest"):  # a GPU would otherwise round float32 matmuls to 10 bits
            return self._reset(np.uint32(seed), self.knobs_of(knobs).traced)

    def begin(self, seed: int, knobs: Mapping[str, Any]) -> Frame:
        """Where a run starts: a frame without forces and metrics, which needs no other program than `reset`."""
        state = self.reset(seed, knobs)
        guide = self._assembled(self.knobs_of(knobs).traced)[0].guide
        particles = np.asarray(state.particles)[: 1 if self._single else self._count(knobs)]
        locations, scales = np.asarray(guide.location(particles)), np.asarray(guide.scale(particles))
        still = np.zeros_like(particles)
        return Frame(0, particles, locations, scales, still, still, {})

    def advance(self, state: State, knobs: Mapping[str, Any], steps: int) -> State:
        """`steps` steps on. A step that would leave the finite numbers (or |coordinate| > 1e6) is not taken and ends
        the run: the state returned is the last good one, and its `step` says where that was."""
        knobs, rest, piece = self.knobs_of(knobs).traced, _rest.get(), 20
        while rest and steps > piece:
            began, before = time.perf_counter(), state
            state, steps = self._on(state, knobs, piece), steps - piece
            if int(state.step) < int(before.step) + piece:
                return state
            piece = max(1, int(piece * PIECE / (time.perf_counter() - began)))
            rest()
        state = self._on(state, knobs, steps)
        if rest:
            rest()
        return state

    def _on(self, state: State, knobs: dict[str, np.float32], steps: int) -> State:
        """`steps` steps on, all at once."""
        if not self._wide:
            with jax.default_matmul_precision("highest"):
                after, finite = self._advance(state, knobs, np.int32(steps))
                if not finite:  # all before that step again: cheaper than to keep, at every step, what was before it
                    after, _ = self._advance(state, knobs, np.int32(int(after.step) - int(state.step) - 1))
                return after
        for _ in range(steps):
            ahead = self._ahead
            if (
                ahead is None
                or ahead[0] is not state
                or not all(np.array_equal(ahead[1][k], v) for k, v in knobs.items())
            ):
                ahead = self._step_ahead(state, knobs)[1]
            if not ahead[2]:
                break
            state = ahead[3]
        return state

    def look(self, state: State, knobs: Mapping[str, Any], measure: bool = True) -> Frame:
        """What there is to see at `state` under `knobs`; nothing moves. Without `measure` the frame has no metrics,
        which can cost more than the step."""
        knobs = self.knobs_of(knobs).traced
        seen = self._step_ahead(state, knobs)[0]
        metrics = self._meter(state, knobs, seen["forces"]) if measure else {}
        seen = jax.device_get(seen)
        rows = slice(0, int(seen["m"]))
        arrays = {k: seen[k][rows] for k in ("particles", "locations", "scales")}
        for name, force in (
            seen["forces"]._asdict().items()
        ):  # where a run has diverged it may be undefined: none is shown
            arrays[name] = np.where(np.isfinite(force), force, np.float32(0.0))[rows]
        return Frame(step=int(seen["step"]), finite=bool(seen["finite"]), metrics=metrics, **arrays)

    def _step_ahead(self, state: State, knobs: dict[str, np.float32]) -> tuple[dict[str, Any], tuple]:
        """What is seen at a state; and, remembered: (state, knobs, whether one step on is finite, the state there)."""
        with jax.default_matmul_precision("highest"):
            seen, after = self._look(state, knobs)
        ahead = state, knobs, seen["finite"], after
        self._ahead = ahead if self._wide else None
        return seen, ahead

    def add(self, state: State, knobs: Mapping[str, Any], point) -> tuple[State, dict[str, Any]]:
        """A new particle whose first two coordinates are `point` (the others at the target's centre), and the knobs
        with one more particle. Nothing changes at capacity, or for a single-particle method."""
        count = self._count(knobs)
        if count >= self.spec.capacity:
            return state, dict(knobs)
        location = np.float32(self.target.center)
        location[: len(point)] = np.float32(point)[: self.spec.dim]

        def forget(leaf):  # a particle that was removed from this row left its momentum behind
            leaf[count] = 0
            return leaf

        state = self._on_rows(forget, state, knobs)
        state.particles[count] = self._born(location, self.knobs_of(knobs).traced)
        return state, {**knobs, "method.particles": count + 1}

    def remove(self, state: State, knobs: Mapping[str, Any], index: int) -> tuple[State, dict[str, Any]]:
        """Particle `index` swapped behind the active ones, and the knobs with one less. The last one stays."""
        count = self._count(knobs)
        if self._single or count <= 1 or not 0 <= index < count:
            return state, dict(knobs)
        order = np.arange(self.spec.capacity)
        order[[index, count - 1]] = order[[count - 1, index]]

        swapped = self._on_rows(lambda rows: rows[order], state, knobs)
        return swapped, {**knobs, "method.particles": count - 1}

    def _on_rows(self, function: Callable, state: State, knobs: Mapping[str, Any]) -> State:
        """A state with `function` applied to the particles, and to what the method's memory holds of each."""
        _, method = self._assembled(self.knobs_of(knobs).traced)
        on_copy = lambda rows: function(np.array(rows))  # noqa: E731
        return state._replace(particles=on_copy(state.particles), memory=method.per_particle(on_copy, state.memory))

    def change(self, state: State, knobs: Mapping[str, Any], name: str, value: Any) -> tuple[State, dict[str, Any]]:
        """One entry of `Recipe.changes` applied."""
        if name == "add":
            return self.add(state, knobs, value)
        if name == "remove":
            return self.remove(state, knobs, value)
        return state, {**knobs, name: value}

    def _count(self, knobs) -> int:
        return int(self.knobs_of(knobs).traced["method.particles"])


def is_finite(state: State):
    """Whether all particles are finite numbers within the limit."""
    return jnp.all(jnp.abs(state.particles) < LIMIT)


_steppers: OrderedDict[Any, Stepper] = OrderedDict()
_begun: weakref.WeakValueDictionary[Any, Stepper] = weakref.WeakValueDictionary()  # see `start`
_locks: dict[Any, threading.Lock] = {}
_table = threading.Lock()


def compile(spec: Spec, look: bool = True, measure: bool = True) -> Stepper:
    """The Stepper of `spec`, compiled now or taken from the last 64 (fewer where memory maps run short). Safe from any thread;
    two threads that ask for the same spec compile it once. It takes seconds: keep it off an event loop. look: False where
    nobody will look, which takes a quarter of the time for SVGD and SMI. measure: False where nobody will read metrics or add
    a particle, or not yet: half of it, unless another method of the problem has them. What was not asked for compiles when it
    is used. Raises ValueError where memory would not do, or memory maps."""
    check_memory(spec)
    key = (spec, entries_of(spec))
    with _table:
        lock = _locks.setdefault(key, threading.Lock())
    with lock:
        with _table:
            known = _steppers.get(key)
        stepper = known or _begun.get(key) or Stepper(spec)
        fresh = stepper.prepare(look, measure)
        with _table:
            _steppers[key] = stepper
            _steppers.move_to_end(key)
            while fresh and (len(_steppers) > KEPT_STEPPERS or maps_used() > 0.5) and _forget():
                pass
        return stepper


def start(spec: Spec, seed: int, knobs: Mapping[str, Any]) -> tuple[Stepper, Frame] | None:
    """Where a run of `spec` starts (see `Stepper.begin`), long before its program is compiled, with the Stepper that
    `compile` then takes as long as somebody holds it. None when the program is there already or is being compiled."""
    key = (spec, entries_of(spec))
    with _table:
        lock = _locks.setdefault(key, threading.Lock())
        if key in _steppers:
            return None
    if not lock.acquire(blocking=False):
        return None
    try:
        stepper = _begun[key] = _begun.get(key) or Stepper(spec)
    finally:
        lock.release()
    return stepper, stepper.begin(seed, knobs)


def make_room() -> None:
    """Drop Steppers that nobody uses where memory maps run short. Raises ValueError where that is not enough."""
    with _table:
        while maps_used() > 0.5 and _forget():
            pass
    check_maps()


def _forget() -> bool:
    """Drop the Stepper that nobody has used for longest; False where all are in use."""
    for key in list(_steppers):
        unused = weakref.ref(_steppers.pop(key))
        if (used := unused()) is None:
            _locks.pop(key, None)
            return True
        _steppers[key] = used
    return False


def stream(recipe: Recipe, steps: int, every: int = 1) -> Iterator[Frame]:
    """Frames of a run at steps 0, every, 2 every ... and at the last one. Stops early, with `finite=False` on the last
    frame, where the run diverges. Raises ValueError where the program would not fit into memory (see `compile`)."""
    stepper = compile(recipe.spec)
    knobs = recipe.knobs
    state = stepper.reset(recipe.seed, knobs)
    changes = list(recipe.changes)
    at = 0
    while True:
        while changes and changes[0][0] <= at:
            state, knobs = stepper.change(state, knobs, *changes.pop(0)[1:])
        knobs = stepper.knobs_of(knobs)
        if at % every == 0 or at == steps:
            frame = stepper.look(state, knobs)
            yield frame
            if not frame.finite:
                return
        if at == steps:
            return
        goal = min([steps, (at // every + 1) * every] + [c[0] for c in changes[:1]])
        state = stepper.advance(state, knobs, goal - at)
        if int(state.step) < goal:
            yield stepper.look(state, knobs)
            return
        at = goal


def collect(recipe: Recipe, steps: int, every: int | None = None) -> list[Frame]:
    """All frames of `stream`, which raises what that raises; without `every` the first and the last."""
    return list(stream(recipe, steps, every or max(steps, 1)))
