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
from typing import Any, Callable, NamedTuple

import jax
import jax.numpy as jnp
import optax

from stein_core.kernels import KERNELS, bandwidth
from stein_core.noise import normal
from stein_core.registry import FORCE_SCALES
from stein_core.types import Array, Forces, Guide, Method, State, Target

LEAST = 1e-30  # for a kernel in float32 as good as 0
ROWS = 256  # sources whose kernel values are formed at a time
ROUNDING = 5e-7  # of the norms: what a squared distance between them may be wrong by in float32
EXACT_DIFFERENCES = 16  # up to this many coordinates differences are formed one by one: exact, and as fast as a matmul


@FORCE_SCALES.register("paper", label="mean (paper)", reference="SMI eq. 9")
def paper(m):
    "Attraction and repulsion are both means over the particles."
    return jnp.float32(1.0)


@FORCE_SCALES.register("numpyro", label="sum (NumPyro)", reference="NumPyro 0.22, steinvi.py")
def numpyro_scale(m):
    "Attraction is a sum over the particles, repulsion a mean: alpha here is alpha / m in the paper (used by its runs)."
    return m


class Problem(NamedTuple):
    """What a method may use: the target, the guide, and the (traced) settings of the interaction.

    m: number of active particles. rule, factor, kernel: traced bandwidth rule, factor and kernel index.
    draws: static number of draws per particle and step. optimizer: optax transformation, made with step_size.
    start: (key, n) -> initial particles (n, p). size: (d) -> p of the guide. mask: (target.dim,) 1 for a coordinate and 0 for padding, or None where
    nothing is padded; padded coordinates stay at 0 and feel no force.
    """

    target: Target
    guide: Guide
    optimizer: object
    draws: int
    m: Array
    kernel: Array
    rule: Array
    factor: Array
    step_size: Array
    start: object
    size: Callable[[Any], Any]
    mask: Array | None = None

    @property
    def d(self):
        """Dimension of theta without padding; traced where there is any."""
        return self.target.dim if self.mask is None else jnp.sum(self.mask)

    @property
    def p(self):
        """Coordinates of a particle without padding; traced where there is any."""
        return self.size(self.d)

    def normal(self, key: Array, shape: tuple[int, ...]) -> Array:
        """(*shape, target.dim) standard normal noise, 0 in padded coordinates."""
        eps = normal(key, shape, self.target.dim)
        return eps if self.mask is None else eps * self.mask

    def active(self, n: int) -> Array:
        """(n,) bool: the first m rows."""
        return jnp.arange(n) < self.m

    def weights(self, n: int) -> Array:
        """(n,): 1/m for active rows, 0 for spare ones."""
        return self.active(n) / self.m


class Gradients(NamedTuple):
    """guide: g (n, p). elbo: mixture ELBO L(rho_m). component_elbo: L_up, the mean over the guides of their own ELBOs,
    so that L - L_up is the mutual information of theta and the guide's number, in [0, log m]. Both are estimated
    from the same draws and NaN for point masses, which have no density."""

    guide: Array
    elbo: Array
    component_elbo: Array


def center(x: Array, weights: Array | None = None) -> Array:
    """A point (p,) amid the rows of x (n, p) with weights (n,), equal ones by default: differences to it lose few digits.

    It is the mean, with each row weighted once more by 1 / its squared distance from the plain mean. A single row that
    lies far out moves it little. Rows of weight 0 do not count.
    """
    weights = jnp.full(len(x), 1.0 / len(x)) if weights is None else weights
    mean = weights @ x
    apart = x - mean
    near = weights / (jnp.sum(apart**2, axis=1) + LEAST)
    return jax.lax.optimization_barrier(mean + near @ apart / jnp.sum(near))  # else XLA forms it anew for every row


def squared_distances(x: Array, y: Array, weights: Array | None = None) -> Array:
    """|x_i - y_j|^2 as an (n, m) matrix for x (n, p) and y (m, p). weights (n,): of x, for its `center`."""
    if x.shape[1] <= EXACT_DIFFERENCES:  # term by term: a sum over so short an axis is no vector operation on a CPU
        return sum((x[:, None, k] - y[None, :, k]) ** 2 for k in range(x.shape[1]))
    origin = center(x, weights)
    x, y = x - origin, y - origin
    norms = jnp.sum(x * x, 1)[:, None] + jnp.sum(y * y, 1)[None, :]
    square = norms - 2.0 * (x @ y.T)
    return jnp.where(square > ROUNDING * norms, square, 0.0)  # less is what rounding leaves of 0


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
        return Gradients(jnp.where(active, g, 0.0), jnp.float32(jnp.nan), jnp.float32(jnp.nan))

    eps = jax.lax.optimization_barrier(
        problem.normal(key, (n, problem.draws))
    )  # else XLA draws them anew for every use
    theta, pull = jax.vjp(lambda psi: jax.vmap(jax.vmap(guide.sample, (None, 0)))(psi, eps), particles)
    flat = theta.reshape(-1, d)
    log_weights = jnp.where(problem.active(n), -jnp.log(problem.m), -jnp.inf)

    guides = particles
    if d > EXACT_DIFFERENCES:  # spare rows must not move the guides' centre; XLA would form this anew for every pair
        guides = jax.lax.optimization_barrier(jnp.where(active, particles, center(particles, problem.weights(n))))
    own = jnp.repeat(jnp.arange(n), problem.draws)[:, None]  # which guide drew each point

    def log_mixture(points):
        log_q = guide.log_density(guides, points)
        per_point = jax.nn.logsumexp(log_q + log_weights, axis=1)
        return jnp.sum(per_point), (per_point, jnp.take_along_axis(log_q, own, axis=1)[:, 0])

    log_p, grad_p = score(flat)
    (_, (log_q, log_own)), grad_q = jax.value_and_grad(log_mixture, has_aux=True)(flat)
    (g,) = pull(((grad_p - grad_q) / problem.draws).reshape(theta.shape))

    def mean(per_point):
        per_particle = jnp.mean(per_point.reshape(n, problem.draws), axis=1)
        return jnp.sum(jnp.where(problem.active(n), per_particle, 0.0)) / problem.m

    return Gradients(jnp.where(active, g, 0.0), mean(log_p - log_q), mean(log_p - log_own))


def _radial(profile):
    """f and f' / sigma^2 for k = f(u), where grad_1 k(x_i, y_l) = f'(u) (x_i - y_l) / sigma^2."""

    def values(squared, inner, sigma):
        u = squared / (2.0 * sigma**2)
        # A profile may have an infinite slope at 0 (Laplace); there the difference is 0 and so is the repulsion.
        f, slope = jax.jvp(profile, (jnp.maximum(u, LEAST),), (jnp.ones_like(u),))
        return f, jnp.where(u > 0, slope, 0.0) / sigma**2

    return values


def _inner(profile):
    """f and f' / sigma^2 for k = f(s), s = <x, y> / sigma^2, where grad_1 k(x_i, y_l) = f'(s) y_l / sigma^2."""

    def values(squared, inner, sigma):
        s = inner / sigma**2
        f, slope = jax.jvp(profile, (s,), (jnp.ones_like(s),))
        return f, slope / sigma**2

    return values


def _singular(profile) -> bool:
    """Whether a profile has an infinite slope at 0."""
    with jax.ensure_compile_time_eval():
        return not bool(jnp.isfinite(jax.grad(profile)(0.0)))


def is_inner(entry) -> bool:
    """Whether a kernel's argument is the inner product instead of the distance."""
    return entry.facts.argument == "inner"


def summed(of, weights: Array, *arrays: Array):
    """of(weights, *arrays), a weighted sum over their common first axis: of many rows some at a time, so that the matrices in
    between stay in the processor's cache."""
    n = len(weights)
    if n <= 2 * ROWS:  # they fit, and one large matmul is faster than two
        return of(weights, *arrays)

    def add(i, total):
        start = jnp.minimum(i * ROWS, n - ROWS)
        some = [jax.lax.dynamic_slice_in_dim(a, start, ROWS) for a in (weights, *arrays)]
        new = start + jnp.arange(ROWS) >= i * ROWS  # the last rows overlap with those before
        return jax.tree.map(jnp.add, total, of(some[0] * new, *some[1:]))

    shapes = jax.eval_shape(of, *[a[:ROWS] for a in (weights, *arrays)])
    return jax.lax.fori_loop(0, -(-n // ROWS), add, jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes))


def influence(problem: Problem, x: Array, weights: Array, g: Array, y: Array, squared: Array, sigma: Array) -> Forces:
    """The forces of sources x (N, p) with weights (N,) and gradients g (N, p) on y (n, p): both sums of the module's
    first formula with alpha = 1, for the problem's kernel. squared: |x_i - y_l|^2 (N, n)."""

    def radial(profile):
        values = _radial(profile)
        # Close pairs with a steep slope need exact differences: the sums of the matmul below would cancel.
        exact = _singular(profile) and x.shape[1] <= EXACT_DIFFERENCES

        def act(x, y, squared, sigma):
            origin = center(x, weights)  # small differences of large coordinates would lose digits

            def of(weights, x, g, squared):
                f, slope = (weights[:, None] * each for each in values(squared, None, sigma))
                if exact:
                    return g.T @ f, jnp.stack([jnp.sum(slope * (s[:, None] - r), axis=0) for s, r in zip(x.T, y.T)])
                sources = jnp.concatenate([x - origin, jnp.ones((len(x), 1))], axis=1)
                return g.T @ f, sources.T @ slope  # this way round several times as fast where p is small

            attract, pushed = (total.T for total in summed(of, weights, x, g, squared))
            return (attract, pushed) if exact else (attract, pushed[:, :-1] - pushed[:, -1:] * (y - origin))

        return act

    def inner(values):
        def act(x, y, squared, sigma):
            def of(weights, x, g):
                f, slope = values(None, x @ y.T, sigma)
                return f.T @ (weights[:, None] * g), weights @ slope

            attract, slope = summed(of, weights, x, g)
            return attract, slope[:, None] * y

        return act

    branches = [inner(_inner(e.make)) if is_inner(e) else radial(e.make) for e in KERNELS.entries()]
    return Forces(*jax.lax.switch(problem.kernel.astype(jnp.int32), branches, x, y, squared, sigma))


def length(problem: Problem, particles: Array) -> tuple[Array, Array]:
    """Squared distances (n, n) between particles, and the bandwidth sigma of the active ones."""
    squared = squared_distances(particles, particles, problem.weights(particles.shape[0]))
    if particles.shape[1] > EXACT_DIFFERENCES:
        squared = jnp.where(jnp.eye(particles.shape[0], dtype=bool), 0.0, squared)
    return squared, bandwidth(problem.rule, problem.factor, squared, problem.m, problem.p)


def interact(problem: Problem, key: Array, particles: Array, alpha: Array, damping=None) -> Forces:
    """The forces of the module's first formula on particles (n, p). Spare rows act on nobody.

    damping: a factor lambda on the attraction k(psi_l, psi_l) g_l of every particle by itself; None is 1.
    """
    g = gradients(problem, key, particles).guide
    weights = problem.weights(particles.shape[0])
    squared, sigma = length(problem, particles)
    attract, repulse = influence(problem, particles, weights, g, particles, squared, sigma)
    if damping is not None:
        norms = jnp.sum(particles**2, axis=1) / sigma**2
        own = [e.make if is_inner(e) else jnp.ones_like for e in KERNELS.entries()]  # k(psi_l, psi_l)
        own = jax.lax.switch(problem.kernel.astype(jnp.int32), own, norms)
        attract = attract - (1.0 - damping) * (weights * own)[:, None] * g
    return Forces(attract, alpha * repulse)


def kernel_matrix(problem: Problem, particles: Array, squared: Array, sigma: Array) -> tuple[Array, Array]:
    """k(psi_i, psi_l) and |grad_1 k(psi_i, psi_l)|^2, (n, n) each, for the problem's kernel. squared, sigma: of `length`."""
    inner = particles @ particles.T
    norms = jnp.broadcast_to(jnp.diagonal(inner), inner.shape)

    def branch(entry):
        values, gap = (_inner(entry.make), norms) if is_inner(entry) else (_radial(entry.make), squared)

        def both(squared, inner, sigma):
            f, slope = values(squared, inner, sigma)
            return f, slope**2 * gap

        return both

    branches = [branch(e) for e in KERNELS.entries()]
    return jax.lax.switch(problem.kernel.astype(jnp.int32), branches, squared, inner, sigma)


def climb(problem: Problem, log_density=None) -> Method:
    """The Method in which every particle climbs alone: no kernel, no repulsion. log_density replaces the target's."""

    def field(key, state):
        g = gradients(problem, key, state.particles, log_density).guide
        return Forces(g, jnp.zeros_like(g))

    return flow(problem, field)


def flow(problem: Problem, field) -> Method:
    """The Method that follows a force field with the problem's optimiser: the optimiser is given -phi as gradient.

    field: (the step's key, State) -> Forces.
    """

    def init(key, n):
        particles = problem.start(key, n)
        return State(jnp.int32(0), key, particles, problem.optimizer.init(particles))

    def step(key, state):
        active = problem.active(state.particles.shape[0])[:, None]
        forces = jax.tree.map(lambda f: jnp.where(active, f, 0.0), field(key, state))
        move, memory = problem.optimizer.update(-(forces.attract + forces.repulse), state.memory, state.particles)
        # Momentum must not carry a spare row away: it stays where it is until it is needed.
        particles = state.particles + jnp.where(active, move, 0.0)
        return State(state.step + 1, state.key, particles, memory), forces

    return Method(init, step, partial(optax.tree_map_params, problem.optimizer))
