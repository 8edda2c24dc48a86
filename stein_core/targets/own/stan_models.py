"""Targets from Stan programs: `from_stan` makes a Target of a posterior that BridgeStan has compiled."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from stein_core.base.errors import short
from stein_core.contract.target import Target
from stein_core.targets.own.numpyro_models import ModelWarning
from stein_core.targets.own.starts import find_start

NEEDED = ("log_density", "log_density_gradient", "log_density_hessian", "param_constrain", "param_unconstrain")


def from_stan(posterior, seed: int = 0) -> Target:
    """Make a Target of a Stan program with data: its log density with the log-Jacobian, on unconstrained parameters.

    Stan computes the density and its derivatives, point by point and on the processor, and JAX asks for each. This is
    slower than a density that JAX compiles: a step of 20 particles makes 20 calls.
    `center` and `scale` are found as in `from_numpyro`. `constrain` also returns the transformed parameters.

    Args:
        posterior: a `bridgestan.StanModel` with its data.
        seed: of the starts, and of NUTS.

    Warns:
        ModelWarning: a start that is not the mode.

    Raises:
        ValueError: another type; no parameters; or a density that is finite at no point that was tried.
    """
    if missing := [name for name in NEEDED if not hasattr(posterior, name)]:
        raise ValueError(
            f"posterior = {short(posterior)} is a {type(posterior).__name__} without {missing[0]!r}; allowed: a "
            "bridgestan.StanModel with its data."
        )
    dim = int(posterior.param_unc_num())
    if dim == 0:
        raise ValueError("the Stan program has no parameters: there is nothing to infer.")
    declared, outward = posterior.param_names(), posterior.param_names(include_tp=True)
    of, shapes = places(declared), places(outward)

    def constrained(theta):
        return asked(lambda x: posterior.param_constrain(x, include_tp=True), (len(outward),), theta)

    def constrain(theta):
        values = constrained(theta)
        return {name: values[..., where] for name, where in shapes.items()}

    def unconstrain(given):
        flat = jnp.zeros(len(declared), jnp.result_type(float))
        for name, where in of.items():
            flat = flat.at[where].set(jnp.asarray(given[name], flat.dtype))
        return asked(posterior.param_unconstrain, (dim,), flat)

    density, joint = (differentiable(posterior, dim, jacobian) for jacobian in (True, False))
    with jax.enable_x64():
        found = find_start(density, np.zeros((1, dim)), seed)
    if found.note:
        warnings.warn(found.note, ModelWarning, stacklevel=2)
    plain = len(declared) == dim and np.array_equal(posterior.param_constrain(found.center), found.center)
    return Target(
        log_density=density,
        log_joint=None if plain else joint,
        constrain=constrain,
        unconstrain=unconstrain,
        start=found,
        coordinates=coordinates(posterior, found.center),
        name=str(posterior.name()) if hasattr(posterior, "name") else "Stan program",
    )


def asked(call: Callable, shape: tuple[int, ...], theta: jax.Array) -> jax.Array:
    """Return call(theta) of NumPy, at theta (d,) or at each of many (..., d). Where Stan refuses, the answer is NaN.

    Numbers of 64 bits travel as two of 32: JAX calls from a thread of its own, which may not know of them.
    """
    halves = theta.dtype.itemsize // 4

    def rows(words):
        values = np.ascontiguousarray(words).view(theta.dtype)[..., 0].astype(np.float64)
        found = np.full((*values.shape[:-1], *shape), np.nan, theta.dtype)
        for index in np.ndindex(values.shape[:-1]):
            try:
                found[index] = call(np.ascontiguousarray(values[index]))
            except RuntimeError:  # of BridgeStan: the density is not defined there
                pass
        return found[..., None].view(np.uint32)

    words = jax.lax.bitcast_convert_type(theta, jnp.uint32).reshape(*theta.shape, halves)
    made = jax.ShapeDtypeStruct((*theta.shape[:-1], *shape, halves), jnp.uint32)
    answer = jax.pure_callback(rows, made, words, vmap_method="expand_dims")
    return jax.lax.bitcast_convert_type(answer if halves > 1 else answer[..., 0], theta.dtype)


def differentiable(posterior: Any, dim: int, jacobian: bool) -> Callable[[jax.Array], jax.Array]:
    """Return Stan's log density as a function of JAX with two derivatives."""
    options = {"propto": False, "jacobian": jacobian}

    @jax.custom_jvp
    def slope(theta):
        return asked(lambda x: posterior.log_density_gradient(x, **options)[1], (dim,), theta)

    @slope.defjvp
    def _(primals, tangents):
        curvature = asked(lambda x: posterior.log_density_hessian(x, **options)[2], (dim, dim), primals[0])
        return slope(*primals), curvature @ tangents[0]

    @jax.custom_jvp
    def density(theta):
        return asked(lambda x: posterior.log_density(x, **options), (), theta)

    @density.defjvp
    def _(primals, tangents):
        return density(*primals), slope(*primals) @ tangents[0]

    return density


def places(names: list[str]) -> dict[str, np.ndarray]:
    """Return where the entries of each parameter stand in Stan's list: "b.2.1" is entry [1, 0] of b."""
    found: dict[str, dict[tuple[int, ...], int]] = {}
    for place, whole in enumerate(names):
        name, *index = whole.split(".")
        found.setdefault(name, {})[tuple(int(i) - 1 for i in index)] = place
    made = {}
    for name, entries in found.items():
        made[name] = np.zeros(tuple(np.max(list(entries), axis=0) + 1) if () not in entries else (), int)
        for index, place in entries.items():
            made[name][index] = place
    return made


def coordinates(posterior: Any, theta: np.ndarray) -> tuple[str, ...]:
    """Return the names of the unconstrained parameters: "b[1]" as in the model, "log s", or "unconstrained w[0]"."""
    values = dict(zip(posterior.param_names(), np.asarray(posterior.param_constrain(np.asarray(theta, float)))))
    made = []
    for whole, at in zip(posterior.param_unc_names(), theta):
        name, *index = whole.split(".")
        same = np.isclose(values.get(whole, np.nan), [at, np.exp(at)], rtol=1e-12, atol=0)
        before = "" if same[0] else "log " if same[1] else "unconstrained "
        made.append(f"{before}{name}{[int(i) - 1 for i in index] if index else ''}")
    return tuple(made)
