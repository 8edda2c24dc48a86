"""Sums over near particles only: what allows them, and how far off they are from the exact sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from stein_core.base.distances import DENSE, squared_distances
from stein_core.contract.recipe import Recipe
from stein_core.contract.registry import DIAGNOSTICS, GUIDES, METHODS
from stein_core.contract.spec import Spec, data_of
from stein_core.contract.types import Frame
from stein_core.forces.interaction import distances_and_bandwidth, gradients
from stein_core.forces.near import KERNEL, MOST_DIM, share_of
from stein_core.forces.sums import kernel_forces

LEAST, MOST = 1e-7, 0.1  # tolerances: the first is the rounding of float32
SAMPLE = 256  # particles whose forces are compared with the exact ones


def near_for(spec: Spec, near: float | None, devices: int | None = None) -> float | None:
    """Return the tolerance, or None for exact sums.

    Args:
        spec: the program.
        near: values of the RBF kernel that may be left out; None for none.
        devices: how many shall share the particles.

    Raises:
        ValueError: it is out of range, or the program cannot leave out pairs.
    """
    if near is None:
        return None
    facts, given = METHODS[spec.method].facts, f"near = {near!r}"
    if isinstance(near, bool) or not (isinstance(near, (int, float)) and LEAST <= near <= MOST):
        raise ValueError(f"{given} is out of range; allowed: {LEAST:g} to {MOST:g}, or None for exact sums.")
    if not facts.linear or not facts.interacts or spec.has_density:
        some = ", ".join(e.name for e in METHODS.entries() if e.facts.linear and e.facts.interacts)
        raise ValueError(f"{given} with method {spec.method!r}, guide {spec.guide!r}; allowed: {some}, with points.")
    if spec.capacity <= DENSE:
        raise ValueError(f"{given} with capacity = {spec.capacity}, where sums are quick; allowed: beyond {DENSE}.")
    p = GUIDES[spec.guide].facts.size(spec.dim, **spec.options_of("guide"))
    if p > MOST_DIM:
        raise ValueError(f"{given} with {p} coordinates of a particle; allowed: 1 to {MOST_DIM}.")
    if devices not in (None, 1):
        raise ValueError(f"{given} with devices = {devices}; allowed: 1.")
    return float(near)


def check_kernel(knobs: Mapping[str, Any]) -> None:
    """Refuse a kernel that does not vanish far away.

    Raises:
        ValueError: the kernel is another one than RBF.
    """
    if (kernel := knobs.get("kernel.name", KERNEL)) != KERNEL:
        raise ValueError(f"kernel.name = {kernel!r} does not vanish far away, as near needs; allowed: {KERNEL!r}.")


def share_at_start(stepper) -> Callable[[int, Mapping[str, Any]], float]:
    """Return a function of a seed and knobs that says which share of the pairs the first step sums.

    It compiles at its first call, and never again.

    Args:
        stepper: a `runner.Stepper` with `near`.
    """

    def share(state, knobs, data):
        problem, _ = stepper._assembled(knobs, data)
        x = state.particles
        _, sigma = distances_and_bandwidth(problem, x)
        return share_of(x, problem.weights(len(x)), sigma, problem.near)

    program = jax.jit(share)

    def of(seed: int, knobs: Mapping[str, Any]) -> float:
        with jax.default_matmul_precision("highest"):
            state = stepper.reset(seed, knobs)
            return float(program(state, stepper.knobs_of(knobs).traced, data_of(stepper.spec)))

    return of


def without_pairs() -> tuple[str, ...]:
    """Return the names of the diagnostics that do not sum over all pairs of particles."""
    return tuple(entry.name for entry in DIAGNOSTICS.entries() if not entry.facts.pairs)


def error_of(stepper, recipe: Recipe, frame: Frame) -> dict[str, float]:
    """Return how far off the forces of a frame are, from exact sums at a sample of its particles.

    Args:
        stepper: a `runner.Stepper` with `near`.
        recipe: of the run.
        frame: of the run.

    Returns:
        attract, repulse: the largest error of a coordinate at 256 particles, as a share of the largest force there.
        share: of pairs that are summed.
    """
    knobs = {**recipe.knobs, "method.particles": len(frame.particles)}
    state = stepper.reset(recipe.seed, knobs)
    rows = np.array(state.particles)
    rows[: len(frame.particles)] = frame.particles
    state = state._replace(particles=rows, step=np.int32(frame.step))

    def compared(state, knobs, data):
        problem, _ = stepper._assembled(knobs, data)
        x, weights = state.particles, problem.weights(len(state.particles))
        g = gradients(problem, jax.random.fold_in(state.key, state.step), x).guide
        _, sigma = distances_and_bandwidth(problem, x)
        some = jnp.linspace(0, problem.m - 1, SAMPLE).astype(jnp.int32)
        found = kernel_forces(problem, x, weights, g, x, None, sigma)
        exact = kernel_forces(problem, x, weights, g, x[some], squared_distances(x, x[some], weights), sigma)
        off = [jnp.max(jnp.abs(a[some] - b)) / jnp.max(jnp.abs(b)) for a, b in zip(found, exact)]
        return *off, share_of(x, weights, sigma, problem.near)

    with jax.default_matmul_precision("highest"):
        values = jax.jit(compared)(state, stepper.knobs_of(knobs).traced, data_of(stepper.spec))
    return dict(zip(("attract", "repulse", "share"), map(float, values)))


def said(error: Mapping[str, float]) -> str:
    """Return one line of what `error_of` returns."""
    return (
        f"  near: {100 * error['share']:.3g} % of the pairs; of {SAMPLE} particles the attraction is off by "
        f"{error['attract']:.1g}, the repulsion by {error['repulse']:.1g} of the largest one"
    )
