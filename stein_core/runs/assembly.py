"""From a spec and knobs to a problem, its method and its compiled diagnostics."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Collection
from functools import partial
from typing import Any, Mapping

import jax
import jax.numpy as jnp
import numpy as np

from stein_core.base.devices import mesh_of
from stein_core.base.distances import DENSE
from stein_core.base.noise import normal
from stein_core.contract.common_knobs import COMMON
from stein_core.contract.registry import BANDWIDTHS, FORCE_SCALES, GUIDES, KERNELS, METHODS, OPTIMIZERS, TARGETS
from stein_core.contract.spec import Options, Spec, target_at, target_of
from stein_core.contract.target import Target
from stein_core.contract.types import Forces, Guide, Method, State
from stein_core.forces.problem import Problem
from stein_core.runs.diagnostics import DIAGNOSTICS, evaluate

Measure = bool | Collection[str]  # which diagnostics: their names, or all, or none


def names_of(measure: Measure) -> frozenset[str] | None:
    """Return the names of diagnostics, or None for all."""
    return None if isinstance(measure, bool) else frozenset(measure)


def _own(group: str, entry, knobs: Mapping[str, Any]) -> dict[str, Any]:
    return {knob.name: knobs[f"{group}.{knob.name}"] for knob in entry.knobs}


def guide_of(spec: Spec, knobs: Mapping[str, Any], mask=None) -> Guide:
    """Return the guide of a spec and traced knobs. The arguments are those of `problem_of`."""
    entry = GUIDES[spec.guide]
    return entry.make(spec.dim, mask, **spec.options_of("guide"), **_own("guide", entry, knobs))


def problem_of(
    spec: Spec,
    knobs: Mapping[str, Any],
    data: Any = None,
    target: Target | None = None,
    mask=None,
    paired=False,
    mesh=None,
    near=None,
) -> Problem:
    """Return the problem of a spec and traced knobs.

    Args:
        spec: the static choices.
        knobs: full name -> traced value, all of them; see `Knobs.traced`.
        data: of the target, if they are an argument of a program; None: those on the device.
        target: what a target without knobs and data was when the program was made, or one with a mask; None: what it is
            now.
        mask, paired, mesh, near: see `problem.Problem`.
    """
    entry = TARGETS[spec.target]
    if target is None or (mask is None and (entry.knobs or entry.facts.data)):
        target = target_at(spec, knobs, data)
    guide = guide_of(spec, knobs, mask)

    shift = knobs["init.shift"] * jnp.eye(1, target.dim)
    center, scale = jnp.asarray(target.start.center, float), jnp.asarray(target.start.scale, float)

    def start(key, n):
        if target.start.draw is None:
            where = center + scale * (knobs["init.spread"] * normal(key, (n,), target.dim) + shift)
        else:
            where = center + knobs["init.spread"] * (target.start.draw(key, n) - center) + scale * shift
        return guide.init(where if mask is None else where * mask)

    return Problem(
        target=target,
        guide=guide,
        optimizer=OPTIMIZERS[spec.optimizer].make(knobs["method.step_size"]),
        draws=spec.draws,
        m=jnp.ones_like(knobs["method.particles"]) if METHODS[spec.method].facts.single else knobs["method.particles"],
        kernel=knobs["kernel.name"],
        rule=knobs["bandwidth.rule"],
        factor=knobs["bandwidth.factor"],
        step_size=knobs["method.step_size"],
        start=start,
        size=partial(GUIDES[spec.guide].facts.size, **spec.options_of("guide")),
        mask=mask,
        start_normal=None if target.start.draw else (center + scale * shift[0], knobs["init.spread"] * scale),
        optimize=OPTIMIZERS[spec.optimizer].make,
        paired=paired,
        mesh=mesh,
        near=near,
    )


def assemble(spec: Spec, knobs: Mapping[str, Any], data: Any = None, **others: Any) -> tuple[Problem, Method]:
    """Return the problem of `problem_of`, and the spec's method for it."""
    problem, entry = problem_of(spec, knobs, data, **others), METHODS[spec.method]
    return problem, entry.make(problem, **spec.options_of("method"), **_own("method", entry, knobs))


def mesh_for(spec: Spec, devices: int | None) -> jax.sharding.Mesh | None:
    """Return the devices that share the particles of a run; None for one. See Stepper for arguments and errors."""
    facts = METHODS[spec.method].facts
    if devices is None:
        there = jax.device_count()
        can = jax.default_backend() != "cpu" and facts.linear and spec.capacity > DENSE and spec.capacity % there == 0
        devices = there if can else 1
    if devices != 1 and not facts.linear:
        raise ValueError(
            f"devices = {devices} for method {spec.method!r}, which forms arrays of all pairs; allowed: 1."
        )
    mesh = mesh_of(devices)
    if spec.capacity % devices:
        raise ValueError(
            f"devices = {devices} cannot share capacity = {spec.capacity} equally; allowed: a number that divides it."
        )
    return mesh


class CompiledDiagnostics:
    """Compiled diagnostics of a problem: (state, knobs, data, forces) -> {diagnostic name: number}.

    They are half or more of what a spec has to compile. They do not depend on its method, so all methods share one
    object: see `diagnostics_of`. Diagnostics must not use `problem.optimizer`: the program is shared between methods
    with different optimisers.
    """

    def __init__(self, spec: Spec, which: tuple[str, ...]):
        self._spec, self._target = spec, target_of(spec)  # before tracing: the target may have to be built
        self._which = which
        own = {name for name in spec.knobs() if not name.startswith("method.")}
        self._names = {knob.name for knob in COMMON} | own
        proxy = weakref.proxy(self)  # a strong reference would make a cycle, which only garbage collection frees
        self._program = jax.jit(partial(CompiledDiagnostics._evaluate, proxy))
        self._preparing = threading.Lock()

    def prepare(self, state: State, knobs: Mapping[str, np.ndarray], data: Any) -> None:
        """Compile the program, unless that is done. `state` may be any state of the right size."""
        with self._preparing:
            self(state, knobs, data, Forces(jnp.zeros_like(state.particles), jnp.zeros_like(state.particles)))

    def __call__(self, state: State, knobs: Mapping[str, np.ndarray], data: Any, forces: Forces) -> dict[str, float]:
        knobs = {name: value for name, value in knobs.items() if name in self._names}
        with jax.default_matmul_precision("highest"):
            values = self._program(state._replace(memory=()), knobs, data, forces)
        return dict(zip(self._which, np.asarray(values).tolist()))

    def _evaluate(self, state: State, knobs, data, forces: Forces):
        problem = problem_of(self._spec, knobs, data, self._target)
        return evaluate(problem, jax.random.fold_in(state.key, state.step), state, forces, self._which)


_compiled: weakref.WeakValueDictionary[Any, CompiledDiagnostics] = weakref.WeakValueDictionary()
_table = threading.Lock()


def registry_version(spec: Spec) -> tuple:
    """Return the registry entries that the names in a program stand for now.

    An entry that is registered again makes another program. Method and optimiser come first: `diagnostics_of` leaves
    them out.
    """
    own = (METHODS[spec.method], OPTIMIZERS[spec.optimizer], TARGETS[spec.target], GUIDES[spec.guide])
    return own, tuple(tuple(r.entries()) for r in (KERNELS, BANDWIDTHS, FORCE_SCALES, DIAGNOSTICS))


def diagnostics_of(spec: Spec, names: Collection[str] | None = None) -> CompiledDiagnostics:
    """Return the CompiledDiagnostics of a spec. All methods and optimisers share it while somebody holds it.

    Args:
        spec: the problem.
        names: of the diagnostics; None for all.

    Raises:
        UnknownName: a diagnostic that is not registered.
    """
    wanted = {DIAGNOSTICS[name].name for name in (DIAGNOSTICS if names is None else names)}
    which = tuple(name for name in DIAGNOSTICS if name in wanted)
    (_, _, *own), shared = registry_version(spec)
    options = tuple(Options(spec.options_of(group)) for group in ("target", "guide"))
    key = (*own, shared, spec.dim, options, spec.draws, spec.capacity, which)
    with _table:
        known = _compiled.get(key) or CompiledDiagnostics(spec, which)
        _compiled[key] = known
        return known
