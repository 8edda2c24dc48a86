"""How much memory a program needs, and how much there is."""

import os

import jax
import numpy as np

from stein_core.base.distances import DENSE
from stein_core.contract.knobs import Knob, precision
from stein_core.contract.registry import GUIDES, METHODS, TARGETS
from stein_core.contract.spec import Spec
from stein_core.forces.sums import ROWS


def bytes_needed(spec: Spec) -> int:
    """Estimate the bytes that a program holds at once, in float32. It is mostly one to seven times XLA's own count.

    With n particles, L draws, d dimensions and guides of p parameters these are 8 n L d for the draws with their
    gradients, 4 n^2 L for log q of every draw under every guide, 8 n^2 for the pairs of particles, and (8 + rounds) n p
    for particles, optimiser memory and stored sets. Beyond 4,096 particles, pairs and log q are there in blocks only.
    """
    points, p = spec.capacity * spec.draws, GUIDES[spec.guide].facts.size(spec.dim, **spec.options_of("guide"))
    rows = spec.capacity if spec.capacity <= DENSE else ROWS
    logs = min(points, rows) if spec.capacity > DENSE else points
    pairs = (4 * logs * spec.has_density + 8 * rows) * spec.capacity
    sets = 8 + METHODS[spec.method].facts.rounds
    return precision().itemsize * (8 * points * spec.dim + pairs + sets * spec.capacity * p)


def bytes_of_data(spec: Spec) -> int:
    """Return the bytes of a target's data, which all programs share."""
    facts = TARGETS[spec.target].facts
    data = facts.data(**spec.options_of("target")) if facts.data else ()
    return sum(np.asarray(leaf).nbytes for leaf in jax.tree.leaves(data))


def bytes_allowed() -> int:
    """Return the memory limit in bytes: $STEINLAB_MEMORY_GB, else the device's limit, else half of the memory.

    Raises:
        ValueError: the variable is not a number of gigabytes from 1e-6 to 1e6.
    """
    if os.environ.get("STEINLAB_MEMORY_GB"):
        return int(Knob("STEINLAB_MEMORY_GB", 1.0, 1e-6, 1e6).check(os.environ["STEINLAB_MEMORY_GB"]) * 1e9)
    on_device = jax.devices()[0].memory_stats()
    if on_device and "bytes_limit" in on_device:
        return on_device["bytes_limit"]
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2


def check_memory(spec: Spec, runs: int = 1) -> None:
    """Refuse a program that would not fit into memory, before anything is allocated.

    Args:
        spec: the program.
        runs: number of runs side by side.

    Raises:
        ValueError: the program needs more than `bytes_allowed`.
    """
    data, allowed = bytes_of_data(spec), bytes_allowed()
    need = runs * bytes_needed(spec) + data
    if need > allowed:
        raise ValueError(
            f"capacity = {spec.capacity}, draws = {spec.draws}, dim = {spec.dim} would need about {need / 1e9:.1f} GB"
            f"{f', {data / 1e9:.1f} GB of it data' if data else ''}; "
            f"allowed: {allowed / 1e9:.1f} GB (STEINLAB_MEMORY_GB). Take fewer particles, draws or dimensions."
        )
