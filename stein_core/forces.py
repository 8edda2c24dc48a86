"""Kernel-averaged attraction and repulsion: the one interaction that all methods share.

    phi_l = sum_i w_i [ k(psi_i, psi_l) g_i + alpha grad_1 k(psi_i, psi_l) ]

(SMI paper eq. 9 with the step size on the whole bracket; with point masses it is Liu & Wang 2016, eq. 8.)
`g_i` is the guide's gradient: the score for a point mass, else the pathwise gradient of the mixture ELBO

    g_l = E_eps[ (d theta / d psi_l)^T grad_theta { log p(theta, D) - log q_mix(theta) } ],  psi in q_mix held fixed,

unbiased because the term left out is the gradient of a total mass, which is zero (SMI eq. 8, second sum). The draws of
one particle serve all targets of the sum: m gradients a step, not m^2.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from stein_core.kernels import KERNELS, bandwidth
from stein_core.registry import FORCE_SCALES
from stein_core.types import Array, Forces, Guide, Method, State, Target

EXACT_DIFFERENCES = 16  # up to this many coordinates differences are formed one by one: exact, and as fast as a matmul


@FORCE_SCALES.register("paper", label="paper", reference="SMI eq. 9")
def paper(m):
    "Attraction and repulsion are both means over the particles."
    return jnp.float32(1.0)


@FORCE_SCALES.register("numpyro", label="NumPyro", reference="NumPyro 0.22, steinvi.py")
def numpyro_scale(m):
    "Attraction is a sum, repulsion a mean: alpha counts for alpha / m of the paper's (the published runs used this)."
    return m


class Problem(NamedTuple):
    """What a method may use: the target, the guide, and the (traced) settings of the interaction.

    m: number of active particles. rule, factor, kernel: traced bandwidth rule, factor and kernel index.
    draws: static number of draws per particle and step. optimizer: optax transformation.
    start: (key, n) -> initial particles (n, p).
    """

    target: Target
    guide: Guide
    optimizer: object
    draws: int
    m: Array
    kernel: Array
    rule: Array
    factor: Array
    start: object

    def active(self, n: int) -> Array:
        """(n,) bool: the first m rows."""
        return jnp.arange(n) < self.m

    def weights(self, n: int) -> Array:
        """(n,): 1/m for active rows, 0 for spare ones."""
        return self.active(n) / self.m


class Gradients(NamedTuple):
    """guide: g (n, p). elbo: mixture ELBO L(rho_m) estimated from the same draws (NaN for point masses, whose
    mixture has no density)."""

    guide: Array
    elbo: Array


def squared_distances(x: Array, y: Array) -> Array:
    """|x_i - y_j|^2 as an (n, m) matrix for x (n, p) and y (m, p)."""
    if x.shape[1] <= EXACT_DIFFERENCES:
        return jnp.sum((x[:, None, :] - y[None, :, :]) ** 2, axis=-1)
    origin = jnp.mean(y, axis=0)  # keeps the cancellation below as harmless as the spread allows
    x, y = x - origin, y - origin
    square = jnp.sum(x * x, 1)[:, None] + jnp.sum(y * y, 1)[None, :] - 2.0 * (x @ y.T)
    return jnp.maximum(square, 0.0)


def gradients(problem: Problem, key: Array, particles: Array, log_density=None) -> Gradients:
    """g for every particle (spare rows are 0), with the mixture ELBO from the same draws.

    `log_density` replaces the target's (a tempered or constrained-space one).
    """
    n, d = particles.shape[0], problem.target.dim
    guide = problem.guide
    score = jax.vmap(jax.value_and_grad(log_density or problem.target.log_density))
    active = problem.active(n)[:, None]
    if guide.log_density is None:
        _, g = score(guide.location(particles))
        return Gradients(jnp.where(active, g, 0.0), jnp.float32(jnp.nan))

    # Row-major and particle first: the leading rows do not depend on how many spare rows follow.
    eps = jax.random.normal(key, (n, problem.draws, d))
    theta, pull = jax.vjp(lambda psi: jax.vmap(jax.vmap(guide.sample, (None, 0)))(psi, eps), particles)
    flat = theta.reshape(-1, d)
    log_weights = jnp.where(problem.active(n), -jnp.log(problem.m), -jnp.inf)

    def log_mixture(points):
        per_point = jax.nn.logsumexp(guide.log_density(particles, points) + log_weights, axis=1)
        return jnp.sum(per_point), per_point

    log_p, grad_p = score(flat)
    (_, log_q), grad_q = jax.value_and_grad(log_mixture, has_aux=True)(flat)
    (g,) = pull(((grad_p - grad_q) / problem.draws).reshape(theta.shape))
    per_particle = jnp.mean((log_p - log_q).reshape(n, problem.draws), axis=1)
    elbo = jnp.sum(jnp.where(problem.active(n), per_particle, 0.0)) / problem.m
    return Gradients(jnp.where(active, g, 0.0), elbo)


def _radial(profile):
    """(attract, repulse) for k = f(u); grad_1 k(psi_i, psi_l) = f'(u) (psi_i - psi_l) / sigma^2."""

    def interact(particles, weighted, weights, squared, sigma):
        u = squared / (2.0 * sigma**2)
        apart = u > 0
        # A profile may have an infinite slope at 0 (Laplace); there the difference is 0 and so is the repulsion.
        f, slope = jax.jvp(profile, (jnp.where(apart, u, 1.0),), (jnp.ones_like(u),))
        f = jnp.where(apart, f, 1.0)
        slope = jnp.where(apart, slope, 0.0) * weights[:, None] / sigma**2
        centered = particles - weights @ particles
        repulse = slope.T @ centered - jnp.sum(slope, axis=0)[:, None] * centered
        return f.T @ weighted, repulse

    return interact


def _inner(profile):
    """(attract, repulse) for k = f(s), s = <x, y> / sigma^2; grad_1 k(psi_i, psi_l) = f'(s) psi_l / sigma^2."""

    def interact(particles, weighted, weights, squared, sigma):
        s = particles @ particles.T / sigma**2
        f, slope = jax.jvp(profile, (s,), (jnp.ones_like(s),))
        return f.T @ weighted, (weights @ slope)[:, None] * particles / sigma**2

    return interact


def length(problem: Problem, particles: Array) -> tuple[Array, Array]:
    """Squared distances (n, n) between particles, and the bandwidth sigma of the active ones."""
    squared = squared_distances(particles, particles)
    squared = jnp.where(jnp.eye(particles.shape[0], dtype=bool), 0.0, squared)
    return squared, bandwidth(problem.rule, problem.factor, squared, problem.m)


def interact(problem: Problem, key: Array, particles: Array, alpha: Array) -> Forces:
    """The forces of the module's first formula on particles (n, p). Spare rows act on nobody."""
    g = gradients(problem, key, particles).guide
    weights = problem.weights(particles.shape[0])
    squared, sigma = length(problem, particles)
    branches = [(_inner if e.facts.get("argument") == "inner" else _radial)(e.make) for e in KERNELS.entries()]
    attract, repulse = jax.lax.switch(
        problem.kernel.astype(jnp.int32), branches, particles, weights[:, None] * g, weights, squared, sigma
    )
    return Forces(attract, alpha * repulse)


def climb(problem: Problem, log_density=None) -> Method:
    """The Method in which every particle climbs alone: no kernel, no repulsion. log_density replaces the target's."""

    def field(key, step, particles):
        return Forces(gradients(problem, key, particles, log_density).guide, jnp.zeros_like(particles))

    return flow(problem, field)


def flow(problem: Problem, field) -> Method:
    """The Method that follows a force field with the problem's optimiser: the optimiser is given -phi as gradient.

    field: (key, step, particles (n, p)) -> Forces.
    """

    def init(key, n):
        particles = problem.start(key, n)
        return State(jnp.int32(0), key, particles, problem.optimizer.init(particles))

    def step(key, state):
        active = problem.active(state.particles.shape[0])[:, None]
        forces = jax.tree.map(lambda f: jnp.where(active, f, 0.0), field(key, state.step, state.particles))
        move, memory = problem.optimizer.update(-(forces.attract + forces.repulse), state.memory, state.particles)
        # Momentum must not carry a spare row away: it stays where it is until it is needed.
        particles = state.particles + jnp.where(active, move, 0.0)
        return State(state.step + 1, state.key, particles, memory), forces

    return Method(init, step)
