"""Semi-implicit samplers: x = mu(z) + sigma eps with z, eps standard normal, mu a network and sigma a free vector.

Yin & Zhou 2018. Such a family is a Stein mixture whose components share one network. So particle l is the guide
psi_l = (mu(z_l), softplus^-1 sigma), a diagonal normal. The z_l of these particles stay the same during a run, so that
they move on a smooth path; every step trains on fresh draws. The number of particles is the size of a step's batch.

With a_i = grad log p(x_i) + eps_i / sigma, the score of the target minus that of x given z, the witness of the kernel
Stein discrepancy at x is the mean of k(x_i, x) a_i. Its two parts are the forces that a page shows.
"""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

import jax
import jax.numpy as jnp
import optax

from stein_core.base.distances import LEAST, squared_distances
from stein_core.base.networks import Network, mlp
from stein_core.base.noise import normal
from stein_core.base.streams import Stream
from stein_core.contract.knobs import Knob, Option
from stein_core.contract.registry import Registry
from stein_core.contract.types import Array, Method, State
from stein_core.forces.interaction import Forces
from stein_core.forces.kernels import KERNELS, bandwidth
from stein_core.forces.problem import Problem, log_density_of
from stein_core.forces.sums import is_inner

LEAST_LOG_VARIANCE = -20.0
LINE = 41  # points of the curve mu(z)

LATENT = Option("latent", 3, 1, 100, label="latent dimension", help="number of coordinates of z")
WIDTH = Option("width", 50, 1, 512, label="width", help="units of each hidden layer of mu")
DEPTH = Option("depth", 2, 0, 4, label="hidden layers", help="of mu; 0 is a linear map")
NETWORK = (LATENT, WIDTH, DEPTH)
START = Knob("start_sd", 1.0, 1e-3, 10.0, "log", "initial sigma", "at the next reset, in the target's scale")
DECAY = Knob(
    "decay_every", 1000, 0, 1_000_000, "log0", "decay every", "steps after which the step size falls by 10 %; 0: never"
)
ANNEALING = Knob(
    "annealing", 0, 0, 1_000_000, "log0", "annealing", "the score is multiplied by 0.1 + step / this, up to 1; 0: by 1"
)
ANGLE = Knob("angle", 0.0, -180.0, 180.0, label="line of z", help="angle of the line of z that the curve shows")
TRAINING = (START, DECAY, ANNEALING, ANGLE)
FORMS = Registry("form of the kernel")


@FORMS.register("chosen", label="as chosen", reference="Cheng et al. 2024 (KSIVI)")
def chosen(problem, x, y, follow):
    "The chosen kernel and bandwidth, with the bandwidth of the first batch."
    within = squared_distances(x, x)
    sigma = bandwidth(problem.rule, problem.factor, within, problem.m, problem.d, follow=True)
    sigma = follow * sigma + (1.0 - follow) * jax.lax.stop_gradient(sigma)
    u = jnp.maximum(squared_distances(x, y), LEAST) / (2.0 * sigma**2)
    inner = x @ y.T / sigma**2
    branch = lambda entry: lambda u, inner: entry.make(inner if is_inner(entry) else u)  # noqa: E731
    return KERNELS.pick(problem.kernel, u, inner, branch=branch)


@FORMS.register("riesz", label="Riesz", reference="Cheng et al. 2024 (KSIVI), its code")
def riesz(problem, x, y, follow):
    "|x| + |y| - |x - y| in the 1-norm over its mean on the first batch: not smooth, and 0 if x or y is 0."

    def values(x, y):
        size = lambda a: jnp.sum(jnp.abs(a), axis=1)  # noqa: E731
        apart = sum(jnp.abs(x[:, None, k] - y[None, :, k]) for k in range(x.shape[1]))
        return size(x)[:, None] + size(y)[None, :] - apart

    weights = problem.weights(len(x))
    own = values(x, x)
    mean = jax.lax.stop_gradient(weights @ own @ weights)
    return values(x, y) / jnp.where(mean > LEAST, mean, 1.0) / problem.factor**2


FORM = Knob("form", "chosen", label="form of the kernel", choices=FORMS, help="the kernel above, or Riesz instead")


def kernel_of(problem: Problem, form: Array, x: Array, y: Array, follow: Array) -> Array:
    """Return k(x_i, y_j), (n, n), differentiable in both.

    Args:
        problem: has kernel, bandwidth rule and factor.
        form: traced index of a form.
        x, y: (n, d) batches, active rows first; the bandwidth is that of x.
        follow: 1 for a gradient through the bandwidth, 0 for none.
    """
    return FORMS.pick(form, x, y, branch=lambda entry: lambda x, y: entry.make(problem, x, y, follow))


class Weights(NamedTuple):
    """What is trained: the network's flat weights (p,), and log sigma^2 (d,)."""

    network: Array
    log_variance: Array


class Draws(NamedTuple):
    """n draws: x (n, d), eps / sigma (n, d), which is minus the score of x given z, mu(z) (n, d), and z (n, latent)."""

    x: Array
    pull: Array
    mean: Array
    z: Array


class Sampler(NamedTuple):
    """A semi-implicit family for one problem.

    Args:
        problem: target and number of active particles.
        net: z -> mu, in units of the target's scale around its centre.
        latent: number of coordinates of z.
        start_sd: sigma at the start, in the target's scale.
    """

    problem: Problem
    net: Network
    latent: int
    start_sd: Array

    def init(self, key: Array) -> Weights:
        """Return the weights before the first step."""
        scale = jnp.asarray(self.problem.target.start.scale, float)
        return Weights(self.net.init(key), 2.0 * jnp.log(self.start_sd * scale))

    def mean(self, weights: Weights, z: Array) -> Array:
        """Return mu(z) (n, d) for z (n, latent)."""
        target = self.problem.target
        out = self.net.apply(weights.network, z)
        out = out if self.problem.mask is None else out * self.problem.mask
        return jnp.asarray(target.start.center, float) + jnp.asarray(target.start.scale, float) * out

    def sigma(self, weights: Weights) -> Array:
        """Return sigma (d,)."""
        sigma = jnp.exp(0.5 * jnp.maximum(weights.log_variance, LEAST_LOG_VARIANCE))
        return sigma if self.problem.mask is None else jnp.where(self.problem.mask > 0, sigma, 1.0)

    def draw(self, weights: Weights, key: Array, n: int) -> Draws:
        """Return n draws, differentiable in the weights. The first are the same for every larger n."""
        for_z, for_eps = jax.random.split(key)
        z, eps = normal(for_z, (n,), self.latent), self.problem.normal(for_eps, (n,))
        return self.at(weights, z, eps)

    def at(self, weights: Weights, z: Array, eps: Array) -> Draws:
        """Return the draws of these normals z (n, latent) and eps (n, d)."""
        sigma, mean = self.sigma(weights), self.mean(weights, z)
        return Draws(mean + sigma * eps, eps / sigma, mean, z)

    def shown(self, weights: Weights, key: Array, n: int) -> Draws:
        """Return the draws that stand for the particles of a run with this key."""
        return self.draw(weights, jax.random.fold_in(key, Stream.FIXED_Z), n)

    def particles(self, weights: Weights, key: Array, n: int) -> Array:
        """Return the guides psi (n, 2 d) of the particles."""
        sigma = self.sigma(weights)
        raw = jnp.where(sigma > 20.0, sigma, jnp.log(jnp.expm1(jnp.minimum(sigma, 20.0))))
        mean = self.shown(weights, key, n).mean
        return jnp.concatenate([mean, jnp.broadcast_to(raw, mean.shape)], axis=1)


def sampler_of(problem: Problem, start_sd: Array, latent: int, width: int, depth: int) -> Sampler:
    """Return the Sampler with a ReLU network of these sizes."""
    return Sampler(problem, mlp(latent, problem.target.dim, width, depth), latent, start_sd)


def scores(problem: Problem, key: Array, x: Array) -> Array:
    """Return grad log p (n, d) at x (n, d), of the step's mini-batch if there is one. Spare rows are 0."""
    found = jax.vmap(jax.grad(log_density_of(problem.target, key)))(x)
    return jnp.where(problem.active(len(x))[:, None], found, 0.0)


def warmth(annealing: Array, step: Array) -> Array:
    """Return what multiplies the target's score at a step (KSIVI's code): 0.1 + step / annealing, at most 1."""
    return jnp.where(annealing > 0, jnp.minimum(1.0, 0.1 + step / jnp.maximum(annealing, 1.0)), 1.0)


def fallen(decay_every: Array, step: Array) -> Array:
    """Return the factor of the step size at a step: 0.9 for every `decay_every` steps that are done."""
    return jnp.where(decay_every > 0, 0.9 ** jnp.floor(step / jnp.maximum(decay_every, 1.0)), 1.0)


def witness(problem: Problem, form: Array, x: Array, score: Array, pull: Array) -> Forces:
    """Return the witness at the draws x (n, d), split: mean of k(x_i, x_l) score_i, and of k(x_i, x_l) pull_i."""
    gram = kernel_of(problem, form, x, x, jnp.zeros(()))
    weights = problem.weights(len(x))[:, None]
    active = problem.active(len(x))[:, None]
    halves = (jnp.where(active, gram.T @ (weights * part), 0.0) for part in (score, pull))
    return Forces(*(jnp.concatenate([half, jnp.zeros_like(half)], axis=1) for half in halves))


def along(sampler: Sampler, weights: Weights, angle: Array) -> Array:
    """Return mu (LINE, d) on the line z = t (cos, sin, 0 ...), t from -3 to 3, of the plane of the first two z."""
    turned = jnp.deg2rad(angle)
    direction = jnp.zeros(sampler.latent).at[0].set(jnp.cos(turned))
    if sampler.latent > 1:
        direction = direction.at[1].set(jnp.sin(turned))
    return sampler.mean(weights, jnp.linspace(-3.0, 3.0, LINE)[:, None] * direction)


class Memory(NamedTuple):
    """weights, the optimiser's state, and what else a method keeps."""

    weights: Any
    optimizer: Any
    more: Any = ()


def apply_gradient(problem: Problem, memory: Memory, gradient: Any, factor: Array) -> Memory:
    """Take one optimiser step, `factor` times as long."""
    moves, state = problem.optimizer.update(gradient, memory.optimizer, memory.weights)
    moves = jax.tree.map(lambda move: factor * move, moves)
    return memory._replace(weights=optax.apply_updates(memory.weights, moves), optimizer=state)


def trained(
    sampler: Sampler,
    loss: Callable[[Any, Array, State], tuple[Array, Any]],
    *,
    annealing: Array,
    decay_every: Array,
    angle: Array,
    form: Array | None = None,
    update: Callable[[Array, State, Any, Any], Memory] | None = None,
    more: Callable[[Array], Any] = lambda key: (),
) -> Method:
    """Return the Method that trains a semi-implicit family by gradient steps on a loss.

    Args:
        sampler: the family.
        loss: (weights, the step's key, State) -> (scalar to be minimised, what `update` takes).
        annealing, decay_every, angle: traced knobs.
        form: of the kernel of the witness; None is the chosen one.
        update: (key, State, gradient, what the loss gave) -> Memory, in place of a plain step of the optimiser.
        more: key -> what else the memory holds at the start.
    """
    problem = sampler.problem
    form = jnp.zeros(()) if form is None else form

    def init(key, n):
        weights = sampler.init(key)
        memory = Memory(weights, problem.optimizer.init(weights), more(key))
        return State(jnp.int32(0), key, sampler.particles(weights, key, n), memory)

    def step(key, state):
        n, memory = len(state.particles), state.memory
        x, pull, *_ = sampler.shown(memory.weights, state.key, n)
        forces = witness(problem, form, x, warmth(annealing, state.step) * scores(problem, key, x), pull)
        gradient, given = jax.grad(loss, has_aux=True)(memory.weights, key, state)
        if update is None:
            memory = apply_gradient(problem, memory, gradient, fallen(decay_every, state.step))
        else:
            memory = update(key, state, gradient, given)
        particles = sampler.particles(memory.weights, state.key, n)
        return State(state.step + 1, state.key, particles, memory), forces

    def extra(key, state):
        value, _ = loss(state.memory.weights, key, state)
        draws = sampler.shown(state.memory.weights, state.key, len(state.particles)).x
        return {"loss": value, "draws": draws, "curve": along(sampler, state.memory.weights, angle)}

    def draw(key, state, n):
        return sampler.draw(state.memory.weights, key, n).x

    return Method(init, step, extra=extra, draw=draw)
