"""A run until it has settled as JavaScript: what a batch computes for one recipe."""

from __future__ import annotations

from functools import lru_cache

import jax
import numpy as np

from stein_core.contract.recipe import Recipe
from stein_core.contract.registry import TARGETS
from stein_core.sweep.batches import arguments_of, entries_of, functions_of, program_of
from stein_core.sweep.stop import FAST, Stop
from stein_core.web import function_of

OBJECT = """const own = (list) => list.map((a) => (a.length === undefined ? a : a.slice()));
return {{
  begin: (args) => own(begin(...args)),
  block: (run, args, limits) => own(block(...run, ...args, ...limits)),
  finish: (run, args) => finish(...run, ...args)[0],
  step: {step}, done: {done}, every: {every},
}};"""


def settling(recipe: Recipe, stop: Stop, quantity: str) -> str:
    """Translate a run that ends when it has settled.

    Args:
        recipe: of the run, without changes.
        stop: when it has settled.
        quantity: name of the diagnostic that it comes to.

    Returns:
        A JavaScript expression, which needs `HELPERS`. Recipes with equal `kind_of` have the same. It is an object of

            begin(args): the run, a list of numbers and typed arrays.
            block(run, args, limits): the run `every` steps later.
            finish(run, args): the quantity.
            step, done: the places in a run of its step and of why it has ended, see `ENDS`; 0 while it goes on.

        `args_of` gives the arguments.

    Raises:
        ValueError: the posterior has data, or something of JAX has no translation.
    """
    spec = recipe.spec
    if TARGETS[spec.target].facts.data:
        raise ValueError(f"target = {spec.target!r} has data, which stays here; allowed: a posterior without data.")
    args, _, names, method = _given(recipe, stop)
    shapes = tuple((np.shape(one), str(np.asarray(one).dtype)) for one in args)
    return _translated(program_of(recipe, stop), entries_of(spec), method, names, shapes, quantity)


def args_of(recipe: Recipe, stop: Stop) -> dict[str, list]:
    """Return `args` and `limits` of a recipe, for the functions of `settling`, as lists."""
    args, limits, _, _ = _given(recipe, stop)
    return {"args": [np.asarray(one).tolist() for one in args], "limits": limits}


def kind_of(recipe: Recipe, stop: Stop) -> tuple:
    """Return what recipes with the same translation share."""
    return (*program_of(recipe, stop), entries_of(recipe.spec), recipe.spec.method)


def _given(recipe: Recipe, stop: Stop) -> tuple[list, list[int], tuple[str, ...], int]:
    """Return seed, knobs and dimension, the fewest and most steps, the names of the knobs, the place of the method."""
    seeds, knobs, d, limits, _ = arguments_of([recipe], stop)
    method = int(knobs.pop("method")[0])
    return [seeds[0], *(one[0] for one in knobs.values()), d[0]], [int(one[0]) for one in limits], tuple(knobs), method


@lru_cache(maxsize=32)
def _translated(
    program: tuple, entries: tuple, method: int, names: tuple[str, ...], shapes: tuple, quantity: str
) -> str:
    """Translate a program. entries: what its names mean now."""
    start, block, finish = functions_of(program)
    args = [np.zeros(shape, dtype) for shape, dtype in shapes]

    def split(arrays):
        return {**dict(zip(names, arrays)), "method": np.int32(method)}, arrays[len(names)]

    def begin(seed, *rest):
        return jax.tree.leaves(start(seed, *split(rest), None))

    shape = jax.eval_shape(lambda seed, *rest: start(seed, *split(rest), None), *args)
    leaves, tree = jax.tree.flatten(shape)
    size = len(leaves)

    def run_of(arrays):
        return jax.tree.unflatten(tree, arrays[:size]), split(arrays[size + 1 : size + len(args)])

    def on(*arrays):
        run, given = run_of(arrays)
        return jax.tree.leaves(block(run, *given, *arrays[-2:], None))

    def last(*arrays):
        run, given = run_of(arrays)
        return [finish(run, *given, None, (quantity,))]

    limits = [np.int32(0)] * 2
    with jax.default_matmul_precision("highest"):
        parts = [
            function_of(begin, args, "begin"),
            function_of(on, [*leaves, *args, *limits], "block"),
            function_of(last, [*leaves, *args], "finish"),
        ]
    step, done = ([leaf is part for leaf in leaves].index(True) for part in (shape.state.step, shape.done))
    return "\n".join(["(() => {", *parts, OBJECT.format(step=step, done=done, every=FAST), "})()"])
