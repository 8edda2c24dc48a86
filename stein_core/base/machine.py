"""The machine: memory limits, the device, and the folder of cached files."""

import ctypes
import os
import sys
from pathlib import Path

import jax
import numpy as np
import scipy.linalg  # noqa: F401  (its library is the one that XLA calls)
from threadpoolctl import threadpool_limits

from stein_core.contract.knobs import Knob, precision
from stein_core.contract.registry import GUIDES, METHODS, TARGETS
from stein_core.contract.spec import Spec


def single_thread_lapack() -> None:
    """Let NumPy, SciPy and XLA's Cholesky factors use one thread each, in this process.

    Their library starts a thread for every core also for small matrices. When other programs use the cores, a Cholesky
    factor of 144 rows then took 24 ms instead of 0.5 ms.
    """
    threadpool_limits(1, user_api="blas")


def bytes_needed(spec: Spec) -> int:
    """Estimate the bytes that a program holds at once, in float32. It is mostly one to seven times XLA's own count.

    With n particles, L draws, d dimensions and guides of p parameters these are 8 n L d for the draws with their
    gradients, 4 n^2 L for log q of every draw under every guide, 8 n^2 for the pairs of particles, and (8 + rounds) n p
    for particles, optimiser memory and stored sets.
    """
    points, p = spec.capacity * spec.draws, GUIDES[spec.guide].facts.size(spec.dim, **spec.options_of("guide"))
    pairs = 4 * points * spec.capacity if spec.has_density else 0
    sets = 8 + METHODS[spec.method].facts.rounds
    return precision().itemsize * (8 * points * spec.dim + pairs + 8 * spec.capacity**2 + sets * spec.capacity * p)


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


def maps_used() -> float:
    """Return the used share of this process's memory maps, from 0 to 1; 0 if the system is not Linux.

    Every compiled program takes hundreds of maps. Linux aborts a process that has none left.
    """
    try:
        with open("/proc/sys/vm/max_map_count") as most, open("/proc/self/maps", "rb") as maps:
            return sum(1 for _ in maps) / int(most.read())
    except OSError:  # another system
        return 0.0


def check_maps() -> None:
    """Refuse another program when memory maps run short.

    Raises:
        ValueError: more than 90 % of the memory maps are in use.
    """
    if (used := maps_used()) > 0.9:
        raise ValueError(
            f"memory maps: {used:.0%} are in use, most by compiled programs; allowed: 90 %. "
            "Choose what is on screen elsewhere, come back later, or raise vm.max_map_count."
        )


def trim_memory() -> None:
    """Return freed memory to Linux. Without this call glibc keeps hundreds of megabytes after a compilation."""
    if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "malloc_trim"):
        libc.malloc_trim(0)


def cache_folder() -> Path:
    """Return the folder of files that can be computed again: $STEINLAB_CACHE, else ~/.cache/steinlab. Create it."""
    path = Path(os.environ.get("STEINLAB_CACHE") or Path.home() / ".cache" / "steinlab")
    path.mkdir(parents=True, exist_ok=True)
    return path


def keep_compiled() -> Path:
    """Turn on JAX's persistent compilation cache, so that a second start compiles nothing. Return its folder."""
    path = cache_folder() / "jax"
    path.mkdir(parents=True, exist_ok=True)
    jax.config.update("jax_compilation_cache_dir", str(path))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    return path


def device_name() -> str:
    """Return what JAX computes on, "NVIDIA H200" or "CPU" say."""
    device = jax.devices()[0]
    return "CPU" if device.platform == "cpu" else device.device_kind
