"""The reference that approximations are compared with: NumPyro's NUTS on a Target, with progress."""

from __future__ import annotations

import io
import json
import time
from pathlib import Path
from typing import Any, Callable, Mapping, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpyro.infer import NUTS

from stein_core.base.errors import short
from stein_core.contract.knobs import Knob
from stein_core.contract.recipe import knobs_of
from stein_core.contract.spec import Spec
from stein_core.runs.assembly import problem_of
from stein_core.runs.cache import make_room
from stein_core.runs.memory import bytes_allowed

CHUNK_SECONDS = 0.1  # of the warm-up between two reports
MOST = 10**6  # steps


def run_nuts(
    target: str,
    dim: int,
    knobs: Mapping[str, Any],
    x: np.ndarray,
    chains: int = 4,
    warmup: int = 1000,
    samples: int = 1000,
    seed: int = 0,
    spread: float = 1.0,
    report: Callable[[int, int, float], None] | None = None,
    options: Mapping[str, Any] | None = None,
) -> np.ndarray:
    """Run NUTS on a regression target. Each chain adapts on its own for `warmup` steps.

    Args:
        target, dim: a registered target and its dimension.
        knobs: the target's own, for example "target.noise".
        x: (k,) or (k, 1) grid, as the target's functions take it.
        chains, warmup, samples, seed: of NUTS.
        spread: each chain starts at a draw of N(0, (spread target.start.scale)^2).
        report: (steps done, steps in all, seconds left) -> None. It is called at most ten times a second during the
            warm-up, then after every step.
        options: the target's own, for example "target.width".

    Returns:
        Function values (chains, samples, k) of every draw.

    Raises:
        ValueError: a target without a regression function, knobs or numbers out of range, or too little memory.
    """
    spec = Spec(target, dim, "map", options=options or {})
    counts = ("chains", chains, 1, 1000), ("warmup", warmup, 1, MOST), ("samples", samples, 1, MOST)
    for name, value, low, high in (*counts, ("seed", seed, 0, 2**32 - 1)):
        Knob(name, low, low, high, "integer").check(value)
    Knob("spread", 1.0, 0.0, 1e6).check(spread)
    made = problem_of(spec, knobs_of(spec, knobs).traced).target
    if made.functions is None:
        raise ValueError(f"target {target!r} has no regression function; allowed: for example 'wave'.")
    need, allowed = 8 * chains * samples * np.size(x), bytes_allowed()  # as they come, and all in one array
    if need > allowed:
        raise ValueError(
            f"chains = {chains} and samples = {samples} would need about {need / 1e9:.1f} GB; "
            f"allowed: {allowed / 1e9:.1f} GB (STEINLAB_MEMORY_GB). Take fewer."
        )

    make_room()
    with jax.default_matmul_precision("highest"):
        # Jitted: NUTS starts eagerly, and JAX would keep a program for each operation.
        kernel = NUTS(potential_fn=jax.jit(lambda theta: -made.log_density(theta)))
        keys = jax.random.split(jax.random.PRNGKey(seed), chains)
        scale = spread * jnp.asarray(made.start.scale, float)
        start = jnp.asarray(made.start.center, float) + scale * jax.random.normal(keys[0], (chains, spec.dim))
        states = kernel.init(keys, warmup, start, (), {})
        predict = jax.jit(jax.vmap(lambda theta: made.functions.outputs(theta, jnp.asarray(x, float))[:, 0]))

        @jax.jit
        def advance(states, steps):
            return jax.lax.fori_loop(0, steps, lambda _, s: kernel.sample(s, (), {}), states)

        values, done, total, chunk, began = [], 0, warmup + samples, 1, time.perf_counter()
        while done < total:
            before = time.perf_counter()
            steps = min(chunk, warmup - done) if done < warmup else 1
            states = jax.block_until_ready(advance(states, steps))
            done += steps
            if done > warmup:
                values.append(np.asarray(predict(states.z)))
            now = time.perf_counter()
            chunk = max(1, min(50, int(steps * CHUNK_SECONDS / (now - before))))
            if report:
                report(done, total, (now - began) / done * (total - done))
        return np.stack(values, axis=1)


class Reference(NamedTuple):
    """A stored NUTS run.

    Args:
        x: (k,) grid.
        values: (chains, draws, k) function values.
        about: what made them, in plain JSON types.
    """

    x: np.ndarray
    values: np.ndarray
    about: dict[str, Any]


def save_reference(path: str | Path, reference: Reference, draws: int | None = 150) -> None:
    """Write a compact .npz: float16 values of `draws` evenly thinned draws of each chain, or all values unchanged if
    `draws` is None.

    R-hat must be computed before: `about` carries it.
    """
    values = reference.values
    if draws is not None:
        keep = np.linspace(0, values.shape[1] - 1, min(draws, values.shape[1])).round().astype(int)
        values = values[:, keep].astype(np.float16)
    np.savez_compressed(path, x=np.float32(reference.x), values=values, about=json.dumps(reference.about))


def load_reference(path: str | Path) -> Reference:
    """Return what `save_reference` wrote. Nothing is unpickled.

    Raises:
        ValueError: the file holds something else.
    """
    content = io.BytesIO(Path(path).read_bytes())
    try:
        with np.load(content, allow_pickle=False) as file:
            found = Reference(np.float32(file["x"]), file["values"].astype(float), json.loads(str(file["about"])))
        sound = found.x.ndim == 1 and found.values.ndim == 3 and found.values.shape[2:] == found.x.shape
        if not (sound and np.isfinite(found.values).all() and isinstance(found.about, dict)):
            raise ValueError("x, values and about do not fit")
    except Exception as error:  # of the zip, of NumPy's format, of the JSON
        what = " ".join(short(error).split())
        raise ValueError(
            f"{short(path)!r} is no reference; allowed: a file that `nuts` has written ({what})."
        ) from None
    return found
