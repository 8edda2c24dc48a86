"""Optimisers: optax transformations whose step size is traced. A factory (step_size) -> GradientTransformation."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import optax

from stein_core.contract.registry import OPTIMIZERS


@OPTIMIZERS.register("adam", label="Adam", reference="Kingma & Ba 2015")
def adam(step_size):
    "Adam with optax's defaults (0.9, 0.999, 1e-8); a common factor on the force changes nothing."
    return optax.adam(step_size)


@OPTIMIZERS.register("adam_99", label="Adam (0.9, 0.99)", reference="KSIVI, its code")
def adam_99(step_size):
    "Adam that forgets large gradients ten times sooner; networks that begin with a small sigma need it."
    return optax.adam(step_size, b2=0.99)


@OPTIMIZERS.register("sgd", label="Plain steps", reference="Liu & Wang 2016, alg. 1")
def sgd(step_size):
    "psi <- psi + step_size * phi: the algorithm as printed."
    return optax.sgd(step_size)


@OPTIMIZERS.register("adagrad", label="Adagrad (NumPyro)", reference="NumPyro 0.22, jax.example_libraries.optimizers")
def adagrad(step_size):
    "Adagrad with momentum 0.9 and an accumulator that starts at 0, as in the SMI runs; optax.adagrad has neither."
    return optax.chain(
        optax.scale_by_rss(initial_accumulator_value=0.0, eps=0.0),
        optax.ema(0.9, debias=False),
        optax.scale_by_learning_rate(step_size),
    )


@OPTIMIZERS.register("rmsprop", label="RMSprop", reference="Tieleman & Hinton 2012")
def rmsprop(step_size):
    "RMSprop with optax's defaults; the original SVGD code used a relative of it."
    return optax.rmsprop(step_size)


class SquareState(NamedTuple):
    """Steps taken, and the mean of the squared gradients."""

    count: jax.Array
    nu: optax.Updates


@OPTIMIZERS.register("svgd_code", label="RMSprop (SVGD code)", reference="Liu & Wang 2016, the authors' code")
def svgd_code(step_size):
    "h = 0.9 h + 0.1 phi^2, which starts at phi^2; psi <- psi + epsilon phi / (1e-6 + sqrt h). The paper's AdaGrad."

    def update(updates, state, params=None):
        keep = jnp.where(state.count == 0, 0.0, 0.9)
        nu = jax.tree.map(lambda g, h: keep * h + (1 - keep) * g**2, updates, state.nu)
        moves = jax.tree.map(lambda g, h: g / (1e-6 + jnp.sqrt(h)), updates, nu)
        return moves, SquareState(state.count + 1, nu)

    scale = optax.GradientTransformation(
        lambda params: SquareState(jnp.zeros((), jnp.int32), jax.tree.map(jnp.zeros_like, params)), update
    )
    return optax.chain(scale, optax.scale_by_learning_rate(step_size))
