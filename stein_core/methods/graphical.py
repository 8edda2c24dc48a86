"""Graphical SVGD: the kernel of a coordinate sees its Markov blanket."""

import jax
import jax.numpy as jnp

from stein_core.contract.registry import METHODS
from stein_core.contract.types import Method
from stein_core.forces.interaction import flow, gradients
from stein_core.forces.problem import log_density_of
from stein_core.methods.parts.subsets import forces_of_subsets
from stein_core.methods.svgd import ALPHA

PLACES = 8  # at which Hessians are looked at
ZERO = 1e-6  # of the largest entry of a Hessian, below which an entry is 0


def blankets(problem, key):
    """Return (p, p) booleans: whether coordinate j is in the Markov blanket of i, or is i.

    It is that of the target, if the target says it. Else j is outside if the second derivative of log p by i and j is 0
    at every one of PLACES random places: then i does not depend on j, given the others.
    """
    target = problem.target
    if target.blankets is not None:
        return jnp.asarray(target.blankets, bool) | jnp.eye(target.dim, dtype=bool)
    scale = jnp.asarray(target.start.scale, float)
    places = problem.start(key, PLACES) + scale * problem.normal(jax.random.fold_in(key, 1), (PLACES,))
    each = jnp.abs(jax.vmap(jax.hessian(log_density_of(target, key)))(places))
    each = each * scale[:, None] * scale
    seen = each > ZERO * jnp.max(each, axis=(1, 2), keepdims=True)
    return jnp.any(seen, axis=0) | jnp.eye(target.dim, dtype=bool)


@METHODS.register(
    "graphical",
    label="Graphical SVGD",
    reference="Zhuo et al. 2018; Wang et al. 2018",
    guides=("point",),
    linear=True,
    knobs=(ALPHA,),
    slot="kernel",
    formula="k(x[B], y[B]), B the Markov blanket of a coordinate",
    moves_rest=True,
    colour=("#3F5F00", "#B7D96B"),
    marker="hex_dot",
)
def graphical(problem, *, alpha):
    """A kernel for each coordinate, which sees the coordinate and its Markov blanket: the others on which it depends.
    The blankets are those of the density, found once at the start."""

    def following(seen):
        first = jnp.eye(len(seen), dtype=bool)
        order = jnp.argsort(jnp.where(first, 0, jnp.where(seen, 1, 2)), axis=1, stable=True)
        inside = jnp.arange(len(seen)) < jnp.sum(seen, axis=1, keepdims=True)
        table = jnp.where(inside, order, len(seen))  # the coordinate itself, its blanket, and none

        def field(key, state):
            g = gradients(problem, key, state.particles).guide
            return forces_of_subsets(problem, state.particles, g, alpha, lambda i: table[i], problem.d, True)

        return flow(problem, field)

    plain = following(jnp.eye(problem.target.dim, dtype=bool))

    def init(key, n):
        state = plain.init(key, n)
        return state._replace(memory=(state.memory, blankets(problem, key)))

    def step(key, state):
        memory, seen = state.memory
        after, forces = following(seen).step(key, state._replace(memory=memory))
        return after._replace(memory=(after.memory, seen)), forces

    def per_particle(function, memory):
        return plain.per_particle(function, memory[0]), memory[1]

    return Method(init, step, per_particle)
