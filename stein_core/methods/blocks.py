"""SVGD with a kernel for each block of coordinates."""

import jax.numpy as jnp

from stein_core import theory
from stein_core.contract.registry import METHODS
from stein_core.forces.interaction import flow, gradients
from stein_core.methods.parts.subsets import SIZE, by_width, forces_of_subsets
from stein_core.methods.svgd import ALPHA


def law(d, n, knobs):
    "SVGD's law in the dimension of a block, see `theory.block_variance`."
    kernel, rule, factor = (knobs[name] for name in ("kernel.name", "bandwidth.rule", "bandwidth.factor"))
    return theory.block_variance(d, n, knobs["method.size"], kernel, rule, knobs["method.alpha"], factor)


@METHODS.register(
    "blocks",
    label="Block SVGD",
    reference="Singhal et al. 2019; Gong et al. 2021",
    guides=("point",),
    linear=True,
    knobs=(ALPHA, SIZE),
    slot="kernel",
    formula="k(x[B], y[B]), for each block B of M coordinates",
    moves_rest=True,
    law=law,
    colour=("#1D5B8F", "#86BDED"),
    marker="square_cross",
)
def blocks(problem, *, alpha, size):
    """Each block of M coordinates is SVGD by itself, so its variance does not fall with the dimension. It does not see
    how blocks depend on each other: on a correlated posterior whole directions may be lost."""

    def field(key, state):
        x, p = state.particles, state.particles.shape[1]
        g = gradients(problem, key, x).guide

        def branch(width):
            def subset(i):
                where = i * jnp.minimum(size, p).astype(jnp.int32) + jnp.arange(width)
                return jnp.where((jnp.arange(width) < size) & (where < p), where, p)

            return lambda x, g: forces_of_subsets(problem, x, g, alpha, subset, jnp.ceil(problem.d / size), False)

        return by_width(size, p, branch, x, g)

    return flow(problem, field)
