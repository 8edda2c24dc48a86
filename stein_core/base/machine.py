"""The machine: memory limits, the device, and the folder of cached files."""

import ctypes
import os
import sys
import threading
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, Iterator

import jax
import scipy.linalg  # noqa: F401  (its library is the one that XLA calls)
from threadpoolctl import threadpool_limits


def single_thread_lapack() -> None:
    """Let NumPy, SciPy and XLA's Cholesky factors use one thread each, in this process.

    Their library starts a thread for every core also for small matrices. When other programs use the cores, a Cholesky
    factor of 144 rows then took 24 ms instead of 0.5 ms.
    """
    threadpool_limits(1, user_api="blas")


FACTORS = {"cholesky", "eigh", "geqrf", "householder_product", "lu", "qr", "svd", "triangular_solve"}
_turn = threading.Lock()


def takes_turns(jaxpr: Any) -> bool:
    """Return whether a program (a jaxpr) factorises many matrices at once, on a CPU.

    jaxlib 0.10 shares such work out among XLA's threads and waits for it on one of them. Two such programs at a time
    may wait for each other for ever: Newton's steps of two runs did, in 50 dimensions. So they take turns.
    """
    if jax.default_backend() != "cpu":
        return False
    for equation in jaxpr.eqns:
        if equation.primitive.name in FACTORS and max(len(each.aval.shape) for each in equation.invars) > 2:
            return True
        values = (value if isinstance(value, (tuple, list)) else (value,) for value in equation.params.values())
        inner = (getattr(each, "jaxpr", each) for each in chain.from_iterable(values))
        if any(hasattr(each, "eqns") and takes_turns(each) for each in inner):
            return True
    return False


@contextmanager
def turn(wanted: bool) -> Iterator[None]:
    """Wait until no other program that takes turns runs. Results must be ready when the context ends."""
    if not wanted:
        yield
        return
    with _turn:
        yield


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
    """Return what JAX computes on, for example "NVIDIA H200" or "CPU"."""
    device = jax.devices()[0]
    return "CPU" if device.platform == "cpu" else device.device_kind
