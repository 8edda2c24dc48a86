"""Networks as functions of a flat vector of weights. The layers are equinox's."""

from typing import Callable, NamedTuple

import equinox as eqx
import jax
from jax.flatten_util import ravel_pytree

Array = jax.Array
ACTIVATIONS = {"relu": jax.nn.relu, "tanh": jax.numpy.tanh, "silu": jax.nn.silu, "gelu": jax.nn.gelu}


class Network(NamedTuple):
    """A network of one fixed architecture.

    Args:
        size: number of weights and biases, p.
        init: key -> weights (p,), as equinox draws them: uniform within 1 / sqrt(inputs of the layer).
        apply: (weights (p,), x (k, inputs)) -> (k, outputs).
    """

    size: int
    init: Callable[[Array], Array]
    apply: Callable[[Array, Array], Array]


def mlp(
    inputs: int, outputs: int, width: int = 50, depth: int = 2, activation: str = "relu", silent: bool = False
) -> Network:
    """Return a multilayer perceptron with `depth` hidden layers of `width` units each.

    Args:
        inputs, outputs: numbers of inputs and outputs.
        width: units of each hidden layer.
        depth: number of hidden layers; 0 is a linear map.
        activation: after each hidden layer: a key of `ACTIVATIONS`.
        silent: the last layer starts at 0, and so do the outputs.
    """

    def build(key, dtype=float):
        net = eqx.nn.MLP(inputs, outputs, width, depth, ACTIVATIONS[activation], dtype=dtype, key=key)
        last = lambda net: (net.layers[-1].weight, net.layers[-1].bias)  # noqa: E731
        return eqx.tree_at(last, net, replace_fn=jax.numpy.zeros_like) if silent else net

    example = build(jax.random.key(0))
    weights, unravel = ravel_pytree(eqx.filter(example, eqx.is_array))
    static = eqx.filter(example, eqx.is_array, inverse=True)

    def init(key):  # the generator takes other bits for float64, so it draws in float32
        return ravel_pytree(eqx.filter(build(key, jax.numpy.float32), eqx.is_array))[0].astype(float)

    def apply(theta, x):
        return jax.vmap(eqx.combine(unravel(theta), static))(x)

    return Network(weights.size, init, apply)
