"""What a spec and knobs are put together to: the problem, the method, and the compiled diagnostics of a problem."""

from __future__ import annotations

import threading
import weakref
from functools import partial
from typing import Any, Mapping

import jax
import jax.numpy as jnp
import numpy as np

from stein_core.diagnostics import DIAGNOSTICS, measured
from stein_core.forces import Problem
from stein_core.noise import normal
from stein_core.recipe import COMMON, Spec, target_of
from stein_core.registry import BANDWIDTHS, FORCE_SCALES, GUIDES, KERNELS, METHODS, OPTIMIZERS, TARGETS
from stein_core.types import Forces, Guide, Method, State, Target


def _own(group: str, entry, knobs: Mapping[str, Any]) -> dict[str, Any]:
    return {knob.name: knobs[f"{group}.{knob.name}"] for knob in entry.knobs}


def problem_of(spec: Spec, target: Target, knobs: Mapping[str, Any], mask=None) -> Problem:
    """The problem that a spec and (traced) knobs say; mask: see `forces.Problem`."""
    target_entry, guide_entry = TARGETS[spec.target], GUIDES[spec.guide]
    if target_entry.knobs:
        target = target_entry.make(target.dim, **_own("target", target_entry, knobs))
    guide: Guide = guide_entry.make(target.dim, mask, **_own("guide", guide_entry, knobs))

    def start(key, n):
        shift = knobs["init.shift"] * jnp.eye(1, target.dim)
        offset = knobs["init.spread"] * normal(key, (n,), target.dim) + shift
        where = jnp.float32(target.center) + jnp.float32(target.scale) * offset
        return guide.init(where if mask is None else where * mask)

    return Problem(
        target=target,
        guide=guide,
        optimizer=OPTIMIZERS[spec.optimizer].make(knobs["method.step_size"]),
        draws=spec.draws,
        m=jnp.float32(1.0) if METHODS[spec.method].facts.single else knobs["method.particles"],
        kernel=knobs["kernel.name"],
        rule=knobs["bandwidth.rule"],
        factor=knobs["bandwidth.factor"],
        step_size=knobs["method.step_size"],
        start=start,
        size=guide_entry.facts.size,
        mask=mask,
    )


def assemble(spec: Spec, target: Target, knobs: Mapping[str, Any], mask=None) -> tuple[Problem, Method]:
    """The problem of `problem_of`, and the spec's method for it."""
    problem, entry = problem_of(spec, target, knobs, mask), METHODS[spec.method]
    return problem, entry.make(problem, **_own("method", entry, knobs))


class Meter:
    """The compiled diagnostics of a problem. They are half or more of what a spec has to compile and do not depend on its
    method, so all methods share one: see `meter_of`. meter(state, knobs, forces) -> diagnostic name -> number.
    What a diagnostic must not read: the problem's optimizer, which is that of the method that came first."""

    def __init__(self, spec: Spec):
        self._spec, self._target = spec, target_of(spec)  # not while it is traced: it may have to be built
        self._names = {knob.name for knob in COMMON} | {name for name in spec.knobs() if not name.startswith("method.")}
        own = weakref.proxy(self)  # else the program would hold its Meter, and only a search for garbage free the two
        self._program = jax.jit(partial(Meter._measured, own))
        self._preparing = threading.Lock()

    def prepare(self, state: State, knobs: Mapping[str, np.ndarray]) -> None:
        """Compile, if nobody has; `state` is any of the right size."""
        with self._preparing:
            self(state, knobs, Forces(jnp.zeros_like(state.particles), jnp.zeros_like(state.particles)))

    def __call__(self, state: State, knobs: Mapping[str, np.ndarray], forces: Forces) -> dict[str, float]:
        knobs = {name: value for name, value in knobs.items() if name in self._names}
        with jax.default_matmul_precision("highest"):
            values = self._program(state._replace(memory=()), knobs, forces)
        return dict(zip(DIAGNOSTICS, np.asarray(values).tolist()))

    def _measured(self, state: State, knobs, forces: Forces):
        problem = problem_of(self._spec, self._target, knobs)
        return measured(problem, jax.random.fold_in(state.key, state.step), state, forces)


_meters: weakref.WeakValueDictionary[Any, Meter] = weakref.WeakValueDictionary()
_table = threading.Lock()


def entries_of(spec: Spec) -> tuple:
    """What the names in a program mean now: an entry that is registered anew is another program. Method and optimizer come
    first: `meter_of` leaves them out."""
    own = (METHODS[spec.method], OPTIMIZERS[spec.optimizer], TARGETS[spec.target], GUIDES[spec.guide])
    return own, tuple(tuple(r.entries()) for r in (KERNELS, BANDWIDTHS, FORCE_SCALES, DIAGNOSTICS))


def meter_of(spec: Spec) -> Meter:
    """The Meter of a spec, the same for every method and optimiser as long as anybody has it."""
    (_, _, *own), shared = entries_of(spec)
    key = (*own, shared, spec.dim, spec.draws, spec.capacity)
    with _table:
        meter = _meters.get(key) or Meter(spec)
        _meters[key] = meter
        return meter
