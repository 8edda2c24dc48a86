"""The program of a spec in JavaScript: what a Stepper computes, with the same knobs and the same draws."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

import jax
import numpy as np

from stein_core.contract.recipe import knobs_of
from stein_core.contract.registry import METHODS
from stein_core.contract.spec import Spec, target_of
from stein_core.contract.types import Method, State
from stein_core.runs.assembly import assemble, names_of
from stein_core.runs.diagnostics import DIAGNOSTICS, evaluate
from stein_core.runs.runner import look_at
from stein_core.web.translate import function_of

SEEN = ("m", "finite", "particles", "locations", "scales", "correlation")  # of `look_at`; then the two forces


def program_of(spec: Spec, measure: Collection[str] = ()) -> str:
    """Translate a spec.

    Args:
        spec: the static choices. Every knob stays free.
        measure: names of the diagnostics that `look` computes.

    Returns:
        A JavaScript expression, which needs `HELPERS`. It is an object of

            meta: knobs [{name, value}]; shapes of the arrays of a state; rows [[array, its axis along the particles]];
                particles, the array with their parameters; metrics, dim, capacity, center, and whether it is a `guide`
                and `single`.
            reset(seed, knobs): the state, a list of numbers and typed arrays. knobs: a list of numbers, as in `meta`.
            look(state, knobs): {m, finite, particles, locations, scales, correlation, attract, repulse, metrics} and
                `after`, the next state.
            step(state, knobs): [the next state, whether it is finite].
            particle(location, knobs): the row of a new particle.

        All arrays have `capacity` rows in row-major order. The caller may keep them.

    Raises:
        ValueError: something of JAX that has no translation. It names the method and the target.
    """
    given = knobs_of(spec, {}).traced
    names = [name for name, value in given.items() if np.ndim(value) == 0]
    which = tuple(name for name in DIAGNOSTICS if name in (names_of(measure) or ()))
    numbers = [np.asarray(given[name]) for name in names]
    target = target_of(spec)

    def assembled(values: Sequence[Any]):
        return assemble(spec, {**given, **dict(zip(names, values))}, target=target)

    def begun(seed, *values):
        return assembled(values)[1].init(jax.random.PRNGKey(seed), spec.capacity)

    shape = jax.eval_shape(begun, np.uint32(0), *numbers)
    leaves, tree = jax.tree.flatten(shape)

    def split(arrays):
        return jax.tree.unflatten(tree, arrays[: len(leaves)]), assembled(arrays[len(leaves) :])

    def look(*arrays):
        state, (problem, method) = split(arrays)
        seen, after = look_at(problem, method, state)
        forces = seen["forces"]
        metrics = []
        if which:
            key = jax.random.fold_in(state.key, state.step)
            metrics = [evaluate(problem, key, state._replace(memory=()), forces, which)]
        return [*(seen[name] for name in SEEN), *forces, *metrics, *jax.tree.leaves(after)]

    def step(*arrays):
        state, (problem, method) = split(arrays)
        seen, after = look_at(problem, method, state)
        return [seen["finite"], *jax.tree.leaves(after)]

    def particle(location, *values):
        return [assembled(values)[0].guide.init(location)]

    meta = {
        "method": spec.method,
        "target": str(spec.target),
        "dim": spec.dim,
        "capacity": spec.capacity,
        "shapes": [leaf.shape for leaf in leaves],
        "particles": [leaf is shape.particles for leaf in leaves].index(True),
        "rows": rows_of(shape, assembled(numbers)[1]),
        "single": METHODS[spec.method].facts.single,
        "guide": spec.has_density,
        "center": np.asarray(target.start.center, float).tolist(),
        "metrics": list(which),
        "knobs": [{"name": name, "value": float(given[name])} for name in names],
    }
    arrays = [*leaves, *numbers]
    try:
        with jax.default_matmul_precision("highest"):
            parts = [
                function_of(lambda *a: jax.tree.leaves(begun(*a)), [np.uint32(0), *numbers], "reset"),
                function_of(look, arrays, "seen"),
                function_of(step, arrays, "stepped"),
                function_of(particle, [np.zeros(spec.dim, np.float32), *numbers], "row"),
            ]
    except ValueError as error:
        raise ValueError(f"method {spec.method!r} on target {spec.target!r}: {error}") from None
    return "\n".join(["(() => {", *parts, OBJECT.format(meta=json.dumps(meta), seen=json.dumps(SEEN)), "})()"])


def rows_of(shape: State, method: Method) -> list[tuple[int, int]]:
    """Return (number, axis) of each array of a state that has the particles along an axis.

    Args:
        shape: the state, with a shape and a type for each array.
    """
    seen = jax.tree.map(lambda leaf: np.zeros(leaf.shape, bool), shape)

    def first(rows):
        rows = np.array(rows)
        rows[0] = True
        return rows

    marked = seen._replace(particles=first(seen.particles), memory=method.per_particle(first, seen.memory))
    found = []
    for k, leaf in enumerate(map(np.asarray, jax.tree.leaves(marked))):
        places = np.indices(leaf.shape) if leaf.ndim else []
        found += [(k, axis) for axis, place in enumerate(places) if np.array_equal(leaf, place == 0)]
    return found


OBJECT = """const meta = {meta}, names = [...{seen}, "attract", "repulse"];
const own = (list) => list.map((a) => (a.length === undefined ? a : a.slice()));
const look = (state, knobs) => {{
  const all = own(seen(...state, ...knobs)), found = Object.fromEntries(names.map((name, k) => [name, all[k]]));
  found.metrics = meta.metrics.length ? all[names.length] : [];
  found.after = all.slice(-meta.shapes.length);
  return found;
}};
const step = (state, knobs) => {{
  const [finite, ...after] = stepped(...state, ...knobs);
  return [own(after), !!finite];
}};
return {{
  meta, look, step,
  reset: (seed, knobs) => own(reset(seed, ...knobs)),
  particle: (location, knobs) => own(row(location, ...knobs))[0],
}};"""
