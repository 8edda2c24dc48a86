"""From a spec and knobs to a problem, its method and its compiled diagnostics."""

from __future__ import annotations

import threading
import weakref
from functools import partial
from typing import Any, Mapping

import jax
import jax.numpy as jnp
import numpy as np

from stein_core.common_knobs import COMMON
from stein_core.diagnostics import DIAGNOSTICS, evaluate
from stein_core.forces import Problem
from stein_core.noise import normal
from stein_core.recipe import Spec, target_of
from stein_core.registry import BANDWIDTHS, FORCE_SCALES, GUIDES, KERNELS, METHODS, OPTIMIZERS, TARGETS
from stein_core.types import Forces, Guide, Method, State, Target


def _own(group: str, entry, knobs: Mapping[str, Any]) -> dict[str, Any]:
    return {knob.name: knobs[f"{group}.{knob.name}"] for knob in entry.knobs}


def problem_of(spec: Spec, target: Target, knobs: Mapping[str, Any], mask=None) -> Problem:
    """Return the problem of a spec and traced knobs.

    Args:
        spec: the static choices.
        target: the spec's target with default knobs.
        knobs: full name -> traced value, all of them.
        mask: see `forces.Problem`.
    """
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
    """Return the problem of `problem_of`, and the spec's method for it."""
    problem, entry = problem_of(spec, target, knobs, mask), METHODS[spec.method]
    return problem, entry.make(problem, **_own("method", entry, knobs))


class CompiledDiagnostics:
    """The compiled diagnostics of a problem: (state, knobs, forces) -> {diagnostic name: number}.

    They are half or more of what a spec has to compile. They do not depend on its method, so all methods share one
    object: see `diagnostics_of`. Diagnostics must not use `problem.optimizer`: the program is shared between methods
    with different optimisers.
    """

    def __init__(self, spec: Spec):
        self._spec, self._target = spec, target_of(spec)  # before tracing: the target may have to be built
        self._names = {knob.name for knob in COMMON} | {name for name in spec.knobs() if not name.startswith("method.")}
        own = weakref.proxy(self)  # a strong reference would make a cycle, which only garbage collection frees
        self._program = jax.jit(partial(CompiledDiagnostics._evaluate, own))
        self._preparing = threading.Lock()

    def prepare(self, state: State, knobs: Mapping[str, np.ndarray]) -> None:
        """Compile the program, unless that is done. `state` may be any state of the right size."""
        with self._preparing:
            self(state, knobs, Forces(jnp.zeros_like(state.particles), jnp.zeros_like(state.particles)))

    def __call__(self, state: State, knobs: Mapping[str, np.ndarray], forces: Forces) -> dict[str, float]:
        knobs = {name: value for name, value in knobs.items() if name in self._names}
        with jax.default_matmul_precision("highest"):
            values = self._program(state._replace(memory=()), knobs, forces)
        return dict(zip(DIAGNOSTICS, np.asarray(values).tolist()))

    def _evaluate(self, state: State, knobs, forces: Forces):
        problem = problem_of(self._spec, self._target, knobs)
        return evaluate(problem, jax.random.fold_in(state.key, state.step), state, forces)


_compiled: weakref.WeakValueDictionary[Any, CompiledDiagnostics] = weakref.WeakValueDictionary()
_table = threading.Lock()


def registry_version(spec: Spec) -> tuple:
    """Return the registry entries that the names in a program stand for now.

    An entry that is registered again makes another program. Method and optimiser come first: `diagnostics_of` leaves
    them out.
    """
    own = (METHODS[spec.method], OPTIMIZERS[spec.optimizer], TARGETS[spec.target], GUIDES[spec.guide])
    return own, tuple(tuple(r.entries()) for r in (KERNELS, BANDWIDTHS, FORCE_SCALES, DIAGNOSTICS))


def diagnostics_of(spec: Spec) -> CompiledDiagnostics:
    """Return the CompiledDiagnostics of a spec. All methods and optimisers share it while somebody holds it."""
    (_, _, *own), shared = registry_version(spec)
    key = (*own, shared, spec.dim, spec.draws, spec.capacity)
    with _table:
        known = _compiled.get(key) or CompiledDiagnostics(spec)
        _compiled[key] = known
        return known
