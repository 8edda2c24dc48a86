"""SVGD with a metric in the kernel: distances and forces are measured by the mean Hessian."""

from functools import partial

import jax
import jax.numpy as jnp

from stein_core.contract.knobs import Knob
from stein_core.contract.registry import METHODS, Registry
from stein_core.forces.interaction import Forces, flow, forces_from, gradients
from stein_core.forces.problem import log_density_of
from stein_core.methods.newton import check, positive
from stein_core.methods.svgd import ALPHA, law, limit

METRICS = Registry("metric")


@METRICS.register("hessian", label="mean Hessian", reference="Wang et al. 2019 (matrix kernels), average")
def hessian(curved):
    "The mean of -Hessian of log p over the particles. On a normal distribution that is whitening."
    return curved


@METRICS.register("scaled", label="its diagonal", reference="Wang et al. 2019 (matrix kernels), diagonal")
def scaled(curved):
    "The diagonal of the mean Hessian: each coordinate has a scale of its own."
    return jnp.diag(jnp.diagonal(curved))


METRIC = Knob("metric", "hessian", label="metric", choices=METRICS, help="the matrix Q in which distances are measured")


@METHODS.register(
    "metric",
    label="Matrix SVGD",
    reference="Wang et al. 2019 (matrix kernels)",
    guides=("point",),
    linear=True,
    knobs=(ALPHA, METRIC),
    check=check,
    slot="metric",
    formula="(x − y)ᵀ Q (x − y), Q the mean Hessian",
    hessians=True,
    moves_rest=True,
    law=law,  # Q = I on a standard normal
    limit=limit,
    simplex=True,
    colour=("#2F4F4F", "#9FC5C5"),
    marker="square_pin",
)
def metric(problem, *, alpha, metric):
    """SVGD of Q^(1/2) x: the kernel sees distances (x - y)^T Q (x - y), and Q^-1 stands before the force. On a standard
    normal Q is the identity, and nothing changes."""

    def field(key, state):
        x = state.particles
        active = problem.active(len(x))[:, None]
        g = gradients(problem, key, x).guide
        each = -jax.vmap(jax.hessian(log_density_of(problem.target, key)))(jnp.where(active, x, x[0]))
        mean = jnp.einsum("i,ipq->pq", problem.weights(len(x)), each)
        if problem.mask is not None:
            mean = mean + jnp.diag(1.0 - problem.mask)
        q = positive(METRICS.pick(metric, branch=lambda entry: partial(entry.make, mean)))
        root = jnp.linalg.cholesky(q)  # z = root^T x
        score = jax.scipy.linalg.solve_triangular(root, g.T, lower=True).T
        seen = forces_from(problem, x @ root, score, alpha)
        return Forces(*(jax.scipy.linalg.solve_triangular(root.T, part.T, lower=False).T for part in seen))

    return flow(problem, field)
