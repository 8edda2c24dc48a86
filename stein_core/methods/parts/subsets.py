"""SVGD of parts of a particle: a kernel for each set of coordinates, or for a projection.

A number of coordinates is a knob, so arrays have a fixed width: a program has a branch for each of `widths`, and the
knob chooses one.
"""

from __future__ import annotations

from typing import Callable

import jax
import jax.numpy as jnp

from stein_core.contract.knobs import Knob
from stein_core.contract.types import Array, Forces
from stein_core.forces.interaction import forces_from
from stein_core.forces.problem import Problem

SIZE = Knob("size", 1, 1, 1000, "integer", "coordinates together", "M; the dimension or more is plain SVGD")


def by_width(size: Array, dim: int, branch: Callable[[int], Callable], *operands):
    """Compute branch(W)(*operands) for the smallest W of 1, 16 and `dim` that holds `size` coordinates."""
    widths = sorted({1, min(16, dim), dim})
    index = jnp.searchsorted(jnp.asarray(widths, size.dtype), jnp.minimum(size, dim))
    return jax.lax.switch(index, [branch(width) for width in widths], *operands)


def forces_of_subsets(
    problem: Problem, x: Array, g: Array, alpha: Array, subset: Callable[[Array], Array], count: Array, first: bool
) -> Forces:
    """Return the forces of SVGD with a kernel for each subset of coordinates.

    Args:
        problem: has the kernel and the rule, which every subset follows by itself.
        x, g: (n, p) particles and scores.
        alpha: weight of the repulsion.
        subset: number of a subset -> (W,) coordinates; p stands for none.
        count: traced number of subsets.
        first: only the first coordinate of a subset feels its force; else all of them do.
    """
    n, p = x.shape
    real = jnp.append(jnp.ones(p) if problem.mask is None else problem.mask, 0.0)
    x, g = (jnp.pad(each, ((0, 0), (0, 1))) for each in (x, g))

    def add(i, total):
        where = subset(i)
        feels = real[where] * (jnp.arange(len(where)) == 0 if first else 1.0)
        among = problem._replace(size=lambda d: jnp.sum(real[where]))
        forces = forces_from(among, x[:, where], g[:, where] * feels, alpha)
        return jax.tree.map(lambda whole, part: whole.at[:, where].add(part * feels), total, forces)

    forces = jax.lax.fori_loop(0, jnp.asarray(count, jnp.int32), add, Forces(jnp.zeros_like(x), jnp.zeros_like(x)))
    return jax.tree.map(lambda force: force[:, :p], forces)
