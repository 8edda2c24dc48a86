"""Stepper, the compiled program of one Spec.

Everything that a slider can move is traced (`knobs`, the seed, the number of steps). So a Stepper compiles once, when
it is made, and never again.
"""

from __future__ import annotations

import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from functools import partial
from typing import Any, Callable, Mapping

import jax
import jax.numpy as jnp
import numpy as np

from stein_core.base.devices import placed
from stein_core.base.machine import takes_turns, trim_memory, turn
from stein_core.base.pieces import PIECE, rest_of_this_thread
from stein_core.contract.knobs import precision
from stein_core.contract.recipe import Knobs, knobs_of
from stein_core.contract.registry import METHODS
from stein_core.contract.spec import Spec, data_of, target_of
from stein_core.contract.types import Frame, Method, State
from stein_core.forces.guides import correlation
from stein_core.forces.problem import Problem
from stein_core.runs.assembly import (
    CompiledDiagnostics,
    Measure,
    assemble,
    diagnostics_of,
    guide_of,
    mesh_for,
    names_of,
)
from stein_core.runs.edits import Edits
from stein_core.runs.nearness import check_kernel, near_for

LIMIT = 1e6  # a larger coordinate has diverged: no posterior here reaches that far
WIDE = 1024  # on a CPU, from this capacity on, `look` also computes the next step, see Stepper


class Stepper(Edits):
    """The compiled program of one Spec. All sessions share it, and all state is the caller's.

    `knobs` is a mapping from names to values, and a missing knob has its default. A plain mapping is checked at each
    call. Knobs from `knobs_of` are checked once.

    With 1024 particles or more on a CPU, `look` also computes and caches the next step, so that look + advance cost one
    step, not two. The numbers stay the same.

    Args:
        spec: the static choices.
        devices: how many devices share the particles; None for one on a CPU or for up to 4,096, else for all GPUs if
            their number divides the capacity.
        near: values of the RBF kernel that sums may leave out, from 1e-7 to 0.1, see `forces.near`. None sums over all
            pairs.

    Raises:
        ValueError: the method, the capacity or the machine does not allow so many devices, or `near`.

    Attributes:
        products: how steps multiply matrices, a name of `jax.default_matmul_precision`.
    """

    products = "highest"

    def __init__(self, spec: Spec, devices: int | None = None, near: float | None = None):
        self.spec, self.near = spec, near_for(spec, near, devices)
        self.mesh = mesh_for(spec, devices if near is None else 1)
        self.target = target_of(spec)
        self.knobs = spec.knobs()
        self._single, self._fixed = METHODS[spec.method].facts.single, METHODS[spec.method].facts.sampler
        own = weakref.proxy(self)  # a strong reference would make a cycle, which only garbage collection frees
        for name in ("_reset", "_advance", "_look", "_init_particle"):
            setattr(self, name, jax.jit(partial(getattr(Stepper, name), own)))
        self._draw = jax.jit(partial(Stepper._draw, own), static_argnums=4)
        self._wide, self._ahead = spec.capacity >= WIDE and jax.default_backend() == "cpu", None
        self._diagnostics: dict[Any, CompiledDiagnostics] = {}
        self._prepared: set[Any] = set()
        self._turns: bool | None = None  # see `machine.takes_turns`; None until it is known

    def sharing(self, spec: Spec) -> Stepper:
        """Return a Stepper of another spec that has the programs of this one.

        Args:
            spec: it may differ in the data of its target only; see `target.movable`.
        """
        other = copy(self)
        other.spec, other.target, other._first = spec, target_of(spec), self  # to which the programs refer, weakly
        return other

    def prepare(self, look: bool = True, measure: Measure = True, before: Callable[[], None] = lambda: None) -> bool:
        """Compile the programs of this Stepper that are not compiled yet.

        Args:
            look, measure: which programs, as for `cache.compile`.
            before: called if there is something to compile, before that.

        Returns:
            Whether something was compiled.
        """
        wanted = {
            "look" if self._wide else "advance",
            *["look"] * look,
            *["init_particle", names_of(measure)] * (look and bool(measure)),
        }
        if not (wanted := wanted - self._prepared):
            return False
        if rest := rest_of_this_thread():  # which ends here if nobody waits for the program any more
            rest()
        before()
        state, knobs, data = self.reset(0, {}), self._traced({}), data_of(self.spec)
        work = {
            "advance": lambda: self.advance(state, {}, 0),
            "look": lambda: self.look(state, {}, False),
            names_of(measure): lambda: self._measuring(measure).prepare(state, knobs, data),
            "init_particle": lambda: self._init_particle(self._center, knobs, data),
        }
        x64 = jax.config.jax_enable_x64  # of this thread

        def compiled(name):
            with jax.enable_x64(x64):
                work[name]()

        with ThreadPoolExecutor() as pool:  # compile in parallel; list() raises what a thread raised
            list(pool.map(compiled, wanted))
        self._prepared |= wanted
        trim_memory()
        return True

    @property
    def _center(self) -> np.ndarray:
        """Return where the target's particles start (d,)."""
        return np.array(self.target.start.center, precision())

    # ---- traced

    def _assembled(self, knobs, data):
        how = {"mesh": self.mesh, "near": self.near}
        return assemble(self.spec, knobs, data, target=self.target, **{k: v for k, v in how.items() if v is not None})

    def _placed(self, method: Method, state: State) -> State:
        """Return a state whose rows are on the devices that share them."""
        if self.mesh is None:
            return state
        place = partial(placed, self.mesh)
        return state._replace(particles=place(state.particles), memory=method.per_particle(place, state.memory))

    def _reset(self, seed, knobs, data) -> State:
        _, method = self._assembled(knobs, data)
        return self._placed(method, method.init(jax.random.PRNGKey(seed), self.spec.capacity))

    def _advance(self, state: State, knobs, data, steps) -> tuple[State, Any]:
        _, method = self._assembled(knobs, data)

        def go_on(carry):
            return (carry[0] < steps) & carry[2]

        def step(carry):
            done, state, _ = carry
            after, _ = method.step(jax.random.fold_in(state.key, state.step), state)
            return done + 1, self._placed(method, after), is_finite(after)

        return jax.lax.while_loop(go_on, step, (jnp.int32(0), state, jnp.bool_(True)))[1:]

    def _look(self, state: State, knobs, data) -> tuple[dict[str, Any], State | None]:
        problem, method = self._assembled(knobs, data)
        seen, after = look_at(problem, method, state)
        return seen, self._placed(method, after) if self._wide else None

    def _init_particle(self, location, knobs, data):
        return self._assembled(knobs, data)[0].guide.init(location)

    def _draw(self, seed, state: State, knobs, data, n: int):
        return self._assembled(knobs, data)[1].draw(jax.random.PRNGKey(seed), state, n)

    # ---- host side

    def _traced(self, knobs: Mapping[str, Any]) -> dict[str, np.ndarray]:
        return self.knobs_of(knobs).traced

    def knobs_of(self, knobs: Mapping[str, Any]) -> Knobs:
        """Return `knobs` as Knobs of this spec, checked once. Every method here takes these as they are.

        Raises:
            ValueError: an unknown name, a value out of range, or more particles than the capacity; or, with `near`,
                another kernel.
        """
        checked = knobs_of(self.spec, knobs)
        if self.near is not None:
            check_kernel(checked)
        return checked

    def reset(self, seed: int, knobs: Mapping[str, Any]) -> State:
        """Return the state before the first step. The first particles of a seed are the same at every capacity."""
        with jax.default_matmul_precision("highest"):  # a GPU would round float32 matmuls to 10 bits
            return self._reset(np.uint32(seed), self._traced(knobs), data_of(self.spec))

    def begin(self, seed: int, knobs: Mapping[str, Any]) -> Frame:
        """Return the first frame of a run, without forces and metrics. It needs no program but that of `reset`."""
        state = self.reset(seed, knobs)
        guide = guide_of(self.spec, self._traced(knobs))
        particles = np.asarray(state.particles)[: 1 if self._single else self._count(knobs)]
        locations, scales = np.asarray(guide.location(particles)), np.asarray(guide.scale(particles))
        still = np.zeros_like(particles)
        tilt = np.asarray(correlation(guide, particles))
        return Frame(0, particles, locations, scales, still, still, {}, correlation=tilt)

    def advance(self, state: State, knobs: Mapping[str, Any], steps: int) -> State:
        """Take steps until `steps` are done or the run diverges.

        A step diverges when a coordinate is not finite or exceeds 1e6. Such a step is not taken.

        Args:
            state: where to start.
            knobs: knob values.
            steps: number of steps.

        Returns:
            The last good state. Its `step` says where the run stopped.
        """
        knobs, rest, piece = self._traced(knobs), rest_of_this_thread(), 20
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

    def _on(self, state: State, knobs: dict[str, np.ndarray], steps: int) -> State:
        if not self._wide:
            with jax.default_matmul_precision(self.products):
                data = data_of(self.spec)
                after, finite = self._run(self._advance, state, knobs, data, np.int32(steps))
                if not finite:  # repeat all steps but the last: cheaper than to keep the state before every step
                    fewer = np.int32(int(after.step) - int(state.step) - 1)
                    after, _ = self._run(self._advance, state, knobs, data, fewer)
                return after
        for _ in range(steps):
            ahead = self._ahead
            if ahead is None or ahead[0] is not state or not _same(ahead[1], knobs):
                ahead = self._step_ahead(state, knobs)[1]
            if not ahead[2]:
                break
            state = ahead[3]
        return state

    def _run(self, program, *arguments):
        """Run a program that takes a step, in turn with others if it must."""
        if self._turns is None:
            self._turns = takes_turns(program.trace(*arguments).jaxpr.jaxpr)
        with turn(self._turns):
            result = program(*arguments)
            return jax.block_until_ready(result) if self._turns else result

    def look(self, state: State, knobs: Mapping[str, Any], measure: Measure = True) -> Frame:
        """Return the Frame of `state` under `knobs`. The state stays as it is.

        Args:
            state: what to show.
            knobs: knob values.
            measure: names of the diagnostics, or True for all. They can cost more than the step.
        """
        knobs = self._traced(knobs)
        seen = self._step_ahead(state, knobs)[0]
        metrics = self._measuring(measure)(state, knobs, data_of(self.spec), seen["forces"]) if measure else {}
        seen = jax.device_get(seen)
        rows = slice(0, int(seen["m"]))
        arrays = {k: seen[k][rows] for k in ("particles", "locations", "scales", "correlation")}
        for name, force in seen["forces"]._asdict().items():  # a diverged run may have undefined forces: show 0
            arrays[name] = np.where(np.isfinite(force), force, force.dtype.type(0))[rows]
        still = {"step": int(seen["step"]), "finite": bool(seen["finite"]), "extra": seen["extra"]}
        return Frame(metrics=metrics, **still, **arrays)

    def draw(self, state: State, knobs: Mapping[str, Any], n: int, seed: int = 0) -> np.ndarray:
        """Return (n, d) fresh draws of a trained sampler. Another n is another program.

        Raises:
            ValueError: the method is no sampler.
        """
        if not self._fixed:
            some = ", ".join(entry.name for entry in METHODS.entries() if entry.facts.sampler)
            raise ValueError(f"method {self.spec.method!r} is no sampler; allowed: {some}.")
        with jax.default_matmul_precision("highest"):
            return np.asarray(self._draw(np.uint32(seed), state, self._traced(knobs), data_of(self.spec), n))

    def _measuring(self, measure: Measure) -> CompiledDiagnostics:
        names = names_of(measure)
        if names not in self._diagnostics:
            self._diagnostics[names] = diagnostics_of(self.spec, names)
        return self._diagnostics[names]

    def _step_ahead(self, state: State, knobs: dict[str, np.ndarray]) -> tuple[dict[str, Any], tuple]:
        """Return the view of a state, and (state, knobs, whether the next step is finite, the next state)."""
        with jax.default_matmul_precision(self.products):
            seen, after = self._run(self._look, state, knobs, data_of(self.spec))
        ahead = state, knobs, seen["finite"], after
        self._ahead = ahead if self._wide else None
        return seen, ahead


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether the knobs are equal."""
    return all(np.array_equal(one[name], value) for name, value in other.items())


def is_finite(state: State):
    """Return whether every coordinate is finite and within the limit."""
    return jnp.all(jnp.abs(state.particles) < LIMIT)


def look_at(problem: Problem, method: Method, state: State) -> tuple[dict[str, Any], State]:
    """Return what a Frame shows of a state, by name and for every row of it, and the next state."""
    key = jax.random.fold_in(state.key, state.step)
    after, forces = method.step(key, state)
    seen = {
        "extra": method.extra(key, state) if method.extra else {},
        "step": state.step,
        "m": problem.m,
        "finite": is_finite(after),
        "particles": state.particles,
        "locations": problem.guide.location(state.particles),
        "scales": problem.guide.scale(state.particles),
        "correlation": correlation(problem.guide, state.particles),
        "forces": forces,
    }
    return seen, after
