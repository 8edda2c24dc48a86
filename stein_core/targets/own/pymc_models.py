"""Targets from PyMC models: `from_pymc` makes a Target of any model with continuous free variables."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from stein_core.base.errors import short
from stein_core.contract.target import Target
from stein_core.targets.own.numpyro_models import ModelWarning
from stein_core.targets.own.starts import find_start


def from_pymc(model, seed: int = 0) -> Target:
    """Make a Target of a PyMC model: PyMC's own log density in JAX, on its unconstrained coordinates.

    theta is the model's free variables, in alphabetical order, each mapped by PyMC's transform of it and flattened.
    `center` and `scale` are found as in `from_numpyro`. `constrain` also returns the deterministic variables, and takes
    one theta (d,) or many (n, d).

    Args:
        model: a `pymc.Model`.
        seed: of the starts, and of NUTS.

    Warns:
        ModelWarning: a start that is not the mode; a model without observed variables and potentials.

    Raises:
        ValueError: PyMC is not installed; another type; no free variable; one that is discrete; mini-batches; or a
            density that is finite at no point that was tried.
    """
    try:
        with ThreadPoolExecutor(1) as pool:
            Model, get_jaxified_graph, graph_replace = pool.submit(pymc_parts).result()
    except ImportError as error:
        raise ValueError(f"from_pymc needs PyMC ({short(error)}): pip install 'steinlab[pymc]'.") from None
    if not isinstance(model, Model):
        raise ValueError(f"model = {short(model)} is a {type(model).__name__}; allowed: a pymc.Model.")
    free = sorted(model.free_RVs, key=lambda one: one.name)
    if not free:
        raise ValueError("the model has no free variable: there is nothing to infer.")
    if discrete := [one.name for one in free if np.dtype(one.dtype).kind not in "fc"]:
        raise ValueError(f"variable {short(discrete[0])!r} is discrete; allowed: continuous variables only.")
    values = [model.rvs_to_values[one] for one in free]
    point = model.initial_point()
    shapes = [np.shape(point[one.name]) for one in values]
    ends = np.cumsum([int(np.prod(shape)) for shape in shapes])

    def split(theta) -> list:
        parts = jnp.split(theta, ends[:-1])
        return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]

    def made(inputs: list, outputs: list) -> Callable[..., list]:
        """Return outputs of the model as a function of inputs, in JAX."""
        try:
            with jax.enable_x64():  # the data of the graph become arrays
                found = get_jaxified_graph(inputs=inputs, outputs=outputs)
        except ValueError as error:  # what PyMC says of `Minibatch`
            raise ValueError(
                f"the model cannot be a fixed function: {short(error)}; allowed: all data at once."
            ) from None
        return lambda *arrays: in_the_precision_of_jax(found, *arrays)

    density, joint = (made(values, [model.logp(jacobian=jacobian)]) for jacobian in (True, False))
    named = [*free, *model.deterministics]
    outward = made(values, model.replace_rvs_by_values(named))
    symbols = {one: one.type(name=one.name) for one in free}
    maps = [model.rvs_to_transforms[one] for one in free]
    inwards = [
        symbols[one] if by is None else by.forward(symbols[one], *one.owner.inputs) for one, by in zip(free, maps)
    ]
    inward = made([symbols[one] for one in free], graph_replace(inwards, symbols, strict=False))

    def constrain(theta):
        return dict(zip((one.name for one in named), outward(*split(theta)), strict=True))

    def log_density(theta):
        return density(*split(theta))[0]

    names = tuple(
        f"{prefix(by)}{one.name}{list(i) if i else ''}"
        for one, by, shape in zip(free, maps, shapes)
        for i in np.ndindex(*shape)
    )
    start = np.concatenate([np.ravel(point[one.name]) for one in values])
    with jax.enable_x64():
        found = find_start(log_density, start[None].astype(float), seed)
    if not model.observed_RVs and not model.potentials:
        warnings.warn("the model has no observed variable and no potential.", ModelWarning, stacklevel=2)
    if found.note:
        warnings.warn(found.note, ModelWarning, stacklevel=2)
    return Target(
        log_density=log_density,
        log_joint=None if all(by is None for by in maps) else lambda theta: joint(*split(theta))[0],
        constrain=lambda theta: constrain(theta) if theta.ndim == 1 else jax.vmap(constrain)(theta),
        unconstrain=lambda given: jnp.concatenate(
            [jnp.ravel(each) for each in inward(*(jnp.asarray(given[one.name], float) for one in free))]
        ),
        start=found,
        coordinates=names,
        name=model.name or "PyMC model",
    )


def pymc_parts() -> tuple:
    """Import what is needed of PyMC, and leave the process as it was.

    PyTensor turns float64 on. PyMC has every later process pretend to 100 devices (XLA_FLAGS), which sums in another
    order. Call it on a thread of its own: on the caller's, `jax.enable_x64()` may hide the value of the process.
    """
    precise, flags = jax.config.jax_enable_x64, os.environ.get("XLA_FLAGS")
    try:
        from pymc import Model
        from pymc.sampling.jax import get_jaxified_graph
        from pytensor.graph.replace import graph_replace
    finally:
        jax.config.update("jax_enable_x64", precise)
        os.environ.pop("XLA_FLAGS", None)
        if flags is not None:
            os.environ["XLA_FLAGS"] = flags
    return Model, get_jaxified_graph, graph_replace


def prefix(by: Any) -> str:
    """Return what stands before the name of a variable that PyMC maps by this transform, None for none."""
    return "" if by is None else "log " if type(by).__name__ == "LogTransform" else "unconstrained "


def in_the_precision_of_jax(call: Callable, *arrays: Any) -> list:
    """Call a function that PyTensor has made, whose casts to float64 are float32 if JAX has no other."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Explicitly requested dtype")
        return call(*arrays)
