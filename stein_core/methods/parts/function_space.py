"""Forces between functions: particles are weights of networks, and the kernel compares what their networks say.

F_l are the outputs of particle l at the points where functions repel, flattened, and J_l is dF_l / dtheta_l. With
R_l = sum_i w_i grad_1 k(F_i, F_l), the repulsion is

    theory:    sum_i w_i J_i^T grad_1 k(F_i, F_l), the gradient of the composed kernel k(F(theta_i), F(theta_l));
    shortcut:  J_l^T R_l.

Source: D'Angelo, Fortuin & Wenzel 2021 (On Stein variational neural network ensembles), eq. 4-6.
"""

from __future__ import annotations

from functools import partial
from typing import Callable, NamedTuple

import jax
import jax.numpy as jnp

from stein_core.base.streams import Stream
from stein_core.contract.functions import Functions, Points, Rows
from stein_core.contract.knobs import Knob
from stein_core.contract.registry import METHODS, Registry
from stein_core.contract.spec import target_of
from stein_core.contract.types import Array
from stein_core.forces.interaction import distances_and_bandwidth
from stein_core.forces.problem import Problem
from stein_core.forces.sums import pair_gradients

LARGE = 30_000_000  # entries of all Jacobians up to which they are formed

LINKS = Registry("output")
JACOBIANS = Registry("Jacobian")


@LINKS.register("logits", label="outputs (logits)", reference="D'Angelo et al. 2021, -l")
def logits(outputs):
    "The network's own outputs."
    return outputs


@LINKS.register("softmax", label="class probabilities", reference="D'Angelo et al. 2021, -s")
def softmax(outputs):
    "The softmax of the outputs, in the kernel and its Jacobian only."
    return jax.nn.softmax(outputs, axis=-1)


LINK = Knob("link", "logits", label="the kernel compares", choices=LINKS, help="outputs, or class probabilities")


class Outputs(NamedTuple):
    """What networks say at the inputs of a step: those of the mini-batch, then those of `Points`.

    Args:
        rows: the mini-batch, B rows.
        x: (R, ...) all inputs.
        values: (n, R, c) outputs of every particle.
        known: (R,) 1 for an input, 0 for a spare one.
        used: (R,) 1 for an input at which functions repel.
        pull: (n, R, c) -> (n, p), J_l^T of every particle.
        features: (n, R c) what the kernel compares.
        pull_features: (n, R c) -> (n, p), the same for the features.
        jacobian: () -> (n, R c, p) of the features.
    """

    rows: Rows
    x: Array
    values: Array
    known: Array
    used: Array
    pull: Callable[[Array], Array]
    features: Array
    pull_features: Callable[[Array], Array]
    jacobian: Callable[[], Array]


def functions_of(problem: Problem, key: Array) -> Functions:
    """Return the target's functions. Without any, theta itself is the output and the whole density the likelihood."""
    target = problem.target
    if target.functions is not None:
        return target.functions
    density = (
        target.log_density
        if target.minibatch is None
        else target.minibatch(jax.random.fold_in(key, Stream.BATCH), False)
    )
    one = jnp.ones(1)
    return Functions(
        outputs=lambda theta, x: theta[None, :],
        log_likelihood=lambda outputs, rows: density(outputs[0]),
        log_prior=lambda theta: jnp.zeros(()),
        rows=lambda key: Rows(one[:, None], one, one),
        prior_sample=lambda key, n: jnp.zeros((n, target.dim)),
    )


def outputs_of(problem: Problem, key: Array, particles: Array, link: Array) -> Outputs:
    """Return the outputs of a step.

    Args:
        problem: has the target.
        key: of the step. The mini-batch is the one of `interaction.gradients`.
        particles: (n, p); spare rows must be finite.
        link: index in LINKS.
    """
    functions, batched = functions_of(problem, key), problem.target.minibatch is not None
    rows = functions.rows(jax.random.fold_in(key, Stream.BATCH) if batched else None)
    known = (rows.weights > 0).astype(particles.dtype)
    if functions.points is None:
        x, used = rows.x, known
    else:
        points: Points = functions.points(jax.random.fold_in(key, Stream.POINTS))
        x = jnp.concatenate([rows.x, points.x])
        used = jnp.concatenate([points.on_rows * known, points.weights])
        known = jnp.concatenate([known, points.weights])
    values, pull = jax.vjp(jax.vmap(lambda theta: functions.outputs(theta, x)), particles)

    def of_outputs(outputs, used):
        return LINKS.pick(link, outputs) * used[..., None]

    flat, pull_link = jax.vjp(lambda outputs: of_outputs(outputs, used).reshape(len(outputs), -1), values)

    def jacobian():
        one = jax.jacrev(lambda theta, x, used: of_outputs(functions.outputs(theta, x[None]), used[None])[0])
        each = jax.vmap(jax.vmap(one, (None, 0, 0)), (0, None, None))(particles, x, used)
        return each.reshape(*flat.shape, particles.shape[1])

    return Outputs(
        rows=rows,
        x=x,
        values=values,
        known=known,
        used=used,
        pull=lambda cotangent: pull(cotangent)[0],
        features=flat,
        pull_features=lambda cotangent: pull(pull_link(cotangent)[0])[0],
        jacobian=jacobian,
    )


def of_features(problem: Problem, outputs: Outputs) -> Problem:
    """Return the problem of a kernel between features: their number stands for that of a particle's coordinates."""
    if problem.target.functions is None:
        return problem
    count = jnp.sum(outputs.used) * outputs.values.shape[2]
    return problem._replace(size=lambda d: count)


def without_spare(problem: Problem, particles: Array) -> Array:
    """Return particles (n, p) with the first one in spare rows: a network far away may have no finite output."""
    return jnp.where(problem.active(len(particles))[:, None], particles, particles[:1])


@JACOBIANS.register("theory", label="J of the other particle (theory)", reference="D'Angelo et al. 2021, eq. 4")
def theory(problem, outputs):
    "Each term has the Jacobian of the particle that repels: SVGD with the composed kernel."
    n, k = outputs.features.shape
    squared, sigma = distances_and_bandwidth(problem, outputs.features)
    weights = problem.weights(n)
    if n * k * problem.target.dim <= LARGE:
        pairs = weights[:, None, None] * pair_gradients(problem, outputs.features, squared, sigma)
        return jnp.einsum("ilk,ikp->lp", pairs, outputs.jacobian())
    one = lambda l: weights[:, None] * pair_gradients(problem, outputs.features, squared, sigma, l)  # noqa: E731, E741
    return jax.lax.map(lambda l: jnp.sum(outputs.pull_features(one(l)), axis=0), jnp.arange(n))  # noqa: E741


@JACOBIANS.register("shortcut", label="own J (shortcut)", reference="D'Angelo et al. 2021, as its code probably had it")
def shortcut(problem, outputs):
    "One Jacobian, that of the particle which is repelled: it is no SVGD, but costs one backward pass."
    n, _ = outputs.features.shape
    squared, sigma = distances_and_bandwidth(problem, outputs.features)
    pairs = pair_gradients(problem, outputs.features, squared, sigma)
    return outputs.pull_features(jnp.einsum("i,ilk->lk", problem.weights(n), pairs))


JACOBIAN = Knob(
    "jacobian", "theory", label="Jacobian of the repulsion", choices=JACOBIANS, help="theory costs more, see the page"
)


def repulsion(problem: Problem, outputs: Outputs, jacobian: Array) -> Array:
    """Return the repulsion (n, p) between functions; jacobian: index in JACOBIANS."""
    among = of_features(problem, outputs)
    return JACOBIANS.pick(jacobian, branch=lambda entry: partial(entry.make, among, outputs))


def check(spec, knobs) -> None:
    """Refuse a choice that the target's functions do not have.

    Raises:
        ValueError: names the knob, its value and what is allowed.
    """
    known = {knob.name: knob.default for knob in METHODS[spec.method].knobs}
    prior = knobs.get("method.prior", known.get("prior"))
    softmax = knobs.get("method.link") == "softmax"
    if prior != "nngp" and not softmax or (functions := target_of(spec).functions) is None:
        return
    if prior == "nngp" and functions.prior_covariance is None:
        raise ValueError(f"method.prior = 'nngp' is unknown for target {spec.target!r}; allowed: ssge, moments, none.")
    if softmax:
        theta, x = (
            jax.ShapeDtypeStruct((spec.dim,), jnp.result_type(float)),
            jax.eval_shape(lambda: functions.rows(None)).x,
        )
        if jax.eval_shape(functions.outputs, theta, x).shape[1] == 1:
            raise ValueError(f"method.link = 'softmax' is for classes, and {spec.target!r} has none; allowed: logits.")
