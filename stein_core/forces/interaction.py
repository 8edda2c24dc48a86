"""Kernel-averaged attraction and repulsion: the one interaction that all methods share.

    phi_l = sum_i w_i [ k(psi_i, psi_l) g_i + alpha grad_1 k(psi_i, psi_l) ]

(SMI paper eq. 9 with the step size on the whole bracket; with point masses it is Liu & Wang 2016, eq. 8.)
`g_i` is the guide's gradient: the score for a point mass, else the pathwise gradient of the mixture ELBO

    g_l = E_eps[ (d theta / d psi_l)^T grad_theta { log p(theta, D) - log q_mix(theta) } ],  psi in q_mix held fixed,

unbiased because the term left out is the gradient of a total mass, which is zero (SMI eq. 8, second sum). The draws of
one particle serve all targets of the sum: m gradients a step, not m^2.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import optax

from stein_core.base.devices import ROWS, shared
from stein_core.base.distances import DENSE, EXACT_DIFFERENCES, center, squared_distances
from stein_core.contract.registry import FORCE_SCALES
from stein_core.contract.types import Array, Forces, Method, State
from stein_core.forces.kernels import KERNELS, bandwidth, bandwidth_of
from stein_core.forces.median import Sampled
from stein_core.forces.problem import Gradients, Problem, log_density_of
from stein_core.forces.sums import in_blocks, is_inner, kernel_forces

LOGS = 2**22  # log densities of draws under guides that are formed together, if there are many particles


@FORCE_SCALES.register("paper", label="mean (paper)", reference="SMI eq. 9")
def paper(m):
    "Attraction and repulsion are both means over the particles."
    return jnp.ones_like(m)


@FORCE_SCALES.register("numpyro", label="sum (NumPyro)", reference="NumPyro 0.22, steinvi.py")
def numpyro_scale(m):
    "Attraction is a sum over the particles, repulsion a mean: alpha here is alpha / m in the paper (used by its runs)."
    return m


def gradients(problem: Problem, key: Array, particles: Array, joint: bool = False) -> Gradients:
    """Return g for every particle, with the mixture ELBO from the same draws. Spare rows are 0.

    Of more than `DENSE` guides, the log densities of draws under guides are made and used block by block.

    Args:
        problem: target, guide and draws.
        key: of the draws, and of the mini-batch if the target has any: all particles and draws share it.
        particles: (n, p).
        joint: leave out the log-Jacobian of constrained parameters.
    """
    n, d = particles.shape[0], problem.target.dim
    guide = problem.guide
    score = jax.vmap(jax.value_and_grad(log_density_of(problem.target, key, joint)))
    active = problem.active(n)[:, None]
    if guide.log_density is None:
        _, g = score(guide.location(particles))
        return Gradients(jnp.where(active, g, 0.0), jnp.asarray(jnp.nan), jnp.asarray(jnp.nan))

    eps = jax.lax.optimization_barrier(problem.draw(key, (n, problem.draws)))  # else XLA draws them for every use
    theta, pull = jax.vjp(lambda psi: jax.vmap(jax.vmap(guide.sample, (None, 0)))(psi, eps), particles)
    flat = theta.reshape(-1, d)
    log_weights = jnp.where(problem.active(n), -jnp.log(problem.m), -jnp.inf)

    guides = particles
    if d > EXACT_DIFFERENCES:  # spare rows must not move the centre; the barrier: XLA would compute it per pair
        guides = jax.lax.optimization_barrier(jnp.where(active, particles, center(particles, problem.weights(n))))
    own = jnp.repeat(jnp.arange(n), problem.draws)[:, None]  # which guide drew each point

    def log_mixture(points, own):
        log_q = guide.log_density(guides, points)
        per_point = jax.nn.logsumexp(log_q + log_weights, axis=1)
        return jnp.sum(per_point), (per_point, jnp.take_along_axis(log_q, own, axis=1)[:, 0])

    log_p, grad_p = score(flat)

    def of_points(points, own):
        (_, per_point), grad = jax.value_and_grad(log_mixture, has_aux=True)(points, own)
        return *per_point, grad

    of_all = of_points if n <= DENSE else partial(in_blocks, of_points, max(16, LOGS // n))
    log_q, log_own, grad_q = shared(problem.mesh, of_all, (ROWS, ROWS), flat, own)
    (g,) = pull(((grad_p - grad_q) / problem.draws).reshape(theta.shape))

    def mean(per_point):
        per_particle = jnp.mean(per_point.reshape(n, problem.draws), axis=1)
        return jnp.sum(jnp.where(problem.active(n), per_particle, 0.0)) / problem.m

    return Gradients(jnp.where(active, g, 0.0), mean(log_p - log_q), mean(log_p - log_own))


def distances_and_bandwidth(problem: Problem, particles: Array) -> tuple[Array | None, Array]:
    """Return squared distances (n, n) between particles, and the bandwidth sigma of the active ones.

    Of more than `DENSE` rows there is no array of all distances, but None, and sigma follows from a sample of pairs.
    """
    if len(particles) > DENSE:
        pairs = Sampled.of(particles, problem.m, problem.p)
        return None, bandwidth_of(problem.rule, problem.factor, pairs)
    squared = squared_distances(particles, particles, problem.weights(particles.shape[0]))
    if particles.shape[1] > EXACT_DIFFERENCES:
        squared = jnp.where(jnp.eye(particles.shape[0], dtype=bool), 0.0, squared)
    return squared, bandwidth(problem.rule, problem.factor, squared, problem.m, problem.p)


def interact(problem: Problem, key: Array, particles: Array, alpha: Array, damping=None) -> Forces:
    """Return the forces of the module's first formula on particles (n, p). Spare rows act on no particle.

    Args:
        problem: target, guide and kernel.
        key: of the draws.
        particles: (n, p).
        alpha: weight of the repulsion.
        damping: lambda, a factor on the attraction k(psi_l, psi_l) g_l of every particle by itself; None is 1.
    """
    return forces_from(problem, particles, gradients(problem, key, particles).guide, alpha, damping)


def forces_from(problem: Problem, features: Array, g: Array, alpha: Array, damping=None) -> Forces:
    """Return the forces of the module's first formula with a kernel of features: the particles themselves, or outputs.

    Args:
        problem: has the kernel.
        features: (n, k), what the kernel compares.
        g: (n, p) gradients.
        alpha, damping: as for `interact`.

    Returns:
        Forces with attract (n, p), and repulse (n, k): alpha sum_i w_i grad k by the first features.
    """
    weights = problem.weights(features.shape[0])
    squared, sigma = distances_and_bandwidth(problem, features)
    attract, repulse = kernel_forces(problem, features, weights, g, features, squared, sigma)
    if damping is not None:
        norms = jnp.sum(features**2, axis=1) / sigma**2
        diagonal = lambda entry: entry.make if is_inner(entry) else jnp.ones_like  # noqa: E731  (k(psi_l, psi_l))
        own = KERNELS.pick(problem.kernel, norms, branch=diagonal)
        attract = attract - (1.0 - damping) * (weights * own)[:, None] * g
    return Forces(attract, alpha * repulse)


def climb(problem: Problem, joint: bool = False) -> Method:
    """Return the Method in which every particle climbs alone: no kernel, no repulsion.

    Args:
        problem: target, guide and optimiser.
        joint: leave out the log-Jacobian of constrained parameters.
    """

    def field(key, state):
        g = gradients(problem, key, state.particles, joint).guide
        return Forces(g, jnp.zeros_like(g))

    return flow(problem, field)


def flow(problem: Problem, field, noise=None) -> Method:
    """Return the Method that follows a force field with the problem's optimiser, which takes -phi as its gradient.

    Args:
        problem: start, optimiser and number of active particles.
        field: (the step's key, State) -> Forces.
        noise: (the step's key, State) -> arrays (n, p) that are added to the force that the optimiser takes, and to
            the particles; None for neither.
    """

    def init(key, n):
        particles = problem.start(key, n)
        return State(jnp.int32(0), key, particles, problem.optimizer.init(particles))

    def step(key, state):
        active = problem.active(state.particles.shape[0])[:, None]
        forces = jax.tree.map(lambda f: jnp.where(active, f, 0.0), field(key, state))
        phi, extra = forces.attract + forces.repulse, 0.0
        if noise is not None:
            of_force, extra = noise(key, state)
            phi = phi + jnp.where(active, of_force, 0.0)
        move, memory = problem.optimizer.update(-phi, state.memory, state.particles)
        # Momentum must not move a spare row.
        particles = state.particles + jnp.where(active, move + extra, 0.0)
        return State(state.step + 1, state.key, particles, memory), forces

    return Method(init, step, partial(optax.tree_map_params, problem.optimizer))
