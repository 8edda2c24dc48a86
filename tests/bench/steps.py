"""Speed of a step against the peers and against the machine: `python tests/bench/steps.py` (extra `bench`).

Ours and a peer take turns with the same target, particles, optimiser and number of draws, in float32, without compile
time. A ratio is one pair's; the table has the medians. The floor of a step is the time of its matmuls and of the arrays
that it must touch, at the rates that this machine reaches on a large matmul and a large copy. A second floor adds its
random numbers, at the rate of our own generator.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from contextlib import suppress
from dataclasses import replace
from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy as np
from cases import Case, cases

from stein_core.base.machine import device_name
from stein_core.base.noise import normal
from stein_core.cli.bench_device import blackjax_steps, steps_of
from stein_core.contract.recipe import knobs_of
from stein_core.contract.registry import METHODS
from stein_core.contract.spec import target_of
from stein_core.runs.assembly import assemble
from stein_core.runs.cache import compile
from stein_core.targets.data.datasets import wave_training
from stein_core.targets.wave import dim_of, shapes_of, wave_model

FLOAT = 4  # bytes
STEP_SIZE = 0.01


# ---- the runners: each makes a function `steps -> None` that has compiled all that it needs


def ours(case: Case) -> Callable[[int], None]:
    """The product's own path: a compiled Stepper."""
    return steps_of(compile(case.spec), {"method.particles": case.particles, "method.step_size": STEP_SIZE})


def blackjax(case: Case) -> Callable[[int], None]:
    """`blackjax.vi.svgd` with its own median rule."""
    return blackjax_steps(case.spec)


def numpyro(case: Case, patched: bool = False) -> Callable[[int], None]:
    """NumPyro's SteinVI with AutoNormal. patched: its guide's parameters are not constrained twice in log q."""
    import numpyro as npy
    from numpyro.contrib.einstein import RBFKernel, SteinVI
    from numpyro.infer.autoguide import AutoNormal
    from numpyro.infer.initialization import init_to_uniform

    d = case.spec.dim

    def normal_model():
        npy.sample("x", npy.distributions.Normal(jnp.zeros(d), 1.0).to_event(1))

    def network_model():
        rows = np.float32(np.vstack([wave_training(), np.ones(wave_training().shape[1])]).T)
        wave_model(rows, 0.1, 1.0, shapes_of(next(h for h in range(1, 101) if dim_of(h) == d), False))

    def density_model():
        prior = npy.distributions.Normal(jnp.zeros(d), 1.0).to_event(1)
        x = npy.sample("x", prior)
        npy.factor("density", target_of(case.spec).log_density(x) - prior.log_prob(x))

    model = {"wave": network_model, "gaussian": normal_model}.get(case.spec.target, density_model)
    guide = AutoNormal(model, init_loc_fn=init_to_uniform(radius=1.0))
    inference = SteinVI(
        model, guide, npy.optim.Adam(STEP_SIZE), RBFKernel(), case.particles, num_elbo_particles=case.spec.draws
    )
    state = inference.init(jax.random.key(0))
    if patched:
        inference.particle_transform_fn = lambda particle: particle
    return _looped(lambda key, state: inference.update(state)[0], state)


def _looped(step, state) -> Callable[[int], None]:
    @jax.jit
    def advance(state, steps):
        return jax.lax.fori_loop(0, steps, lambda i, s: step(i, s), state)

    def run(steps):
        nonlocal state
        with jax.default_matmul_precision("highest"):  # as ours: on a GPU JAX's own default is less exact, and faster
            state = jax.block_until_ready(advance(state, steps))

    run(1)
    run(1)  # the state that comes back may have other types than the first
    return run


PEERS = {"blackjax": blackjax, "numpyro": numpyro, "numpyro patched": lambda case: numpyro(case, patched=True)}


# ---- measuring


def seconds(run: Callable[[int], None], least: float) -> float:
    """Seconds a step, over a run of at least so many seconds."""
    steps = 1
    while True:
        began = time.perf_counter()
        run(steps)
        took = time.perf_counter() - began
        if took >= least:
            return took / steps
        steps = max(steps + 1, int(steps * min(10.0, 1.2 * least / max(took, 1e-6))))


def rates() -> dict[str, float]:
    """What this machine reaches: flop/s of a large float32 matmul at the precision that runs have, normals/s of our own
    generator, and bytes/s of a large copy (read and written)."""
    big = jnp.ones((2048, 2048), jnp.float32)
    wide = jnp.ones(32 * 2**20, jnp.float32)

    def best(work, argument):
        jax.block_until_ready(work(argument))
        took = []
        for _ in range(7):
            began = time.perf_counter()
            jax.block_until_ready(work(argument))
            took.append(time.perf_counter() - began)
        return min(took)

    with jax.default_matmul_precision("highest"):
        return {
            "flops": 2 * 2048**3 / best(jax.jit(lambda a: a @ a), big),
            "normals": 4e6 / best(jax.jit(lambda key: normal(key, (4000,), 1000)), jax.random.PRNGKey(0)),
            "bytes": 2 * FLOAT * wide.size / best(jax.jit(lambda a: a + 1.0), wide),
        }


def floor(case: Case, rate: dict[str, float], drawn: bool = False) -> float:
    """Seconds that a step takes at least: matmuls or memory, whichever is longer. drawn: random numbers too."""
    arithmetic = case.matmul / rate["flops"] + drawn * case.normals / rate["normals"]
    return max(arithmetic, FLOAT * case.touched / rate["bytes"])


def machine() -> str:
    """The name of what computes, and how many cores there are."""
    name = device_name()
    if name == "CPU":
        with suppress(OSError, StopIteration), open("/proc/cpuinfo") as file:  # Linux
            name = next(line for line in file if line.startswith("model name")).split(":")[1].strip()
    return f"{name}, {os.cpu_count()} cores"


def evaluations(case: Case) -> int:
    """How often one step of ours evaluates the target's gradient, counted while it runs."""
    count = 0

    def seen(_):
        nonlocal count
        count += 1

    target, spec = target_of(case.spec), case.spec

    def counting(theta):
        jax.debug.callback(seen, theta[0])
        return target.log_density(theta)

    knobs = jax.tree.map(jnp.asarray, knobs_of(spec, {"method.particles": case.particles}).traced)
    problem, method = assemble(spec, knobs)
    method = _with_target(spec, knobs, problem, replace(target, log_density=counting))
    state = method.init(jax.random.PRNGKey(0), spec.capacity)
    jax.block_until_ready(jax.jit(method.step)(jax.random.PRNGKey(1), state))
    jax.effects_barrier()
    return count


def _with_target(spec, knobs, problem, target):
    entry = METHODS[spec.method]
    own = {knob.name: knobs[f"method.{knob.name}"] for knob in entry.knobs}
    return entry.make(problem._replace(target=target), **own)


def compare(case: Case, rate: dict[str, float], pairs: int, least: float) -> dict[str, Any]:
    """Return one row: ms a step, evaluations of the target, compile seconds, ratios to every peer and to the floor."""
    began = time.perf_counter()
    run = ours(case)
    row: dict[str, Any] = {
        "case": case.name, "compile_s": round(time.perf_counter() - began, 1), "evaluations": evaluations(case),
        "peers": {},
    }  # fmt: skip
    mine = []
    for name in case.peers:
        began = time.perf_counter()
        theirs = PEERS[name](case)
        compiled, ratios, times = time.perf_counter() - began, [], []
        for _ in range(pairs):
            mine.append(seconds(run, least))
            times.append(seconds(theirs, least))
            ratios.append(times[-1] / mine[-1])
        row["peers"][name] = {
            "ms": 1e3 * statistics.median(times), "compile_s": round(compiled, 1), "ratio": statistics.median(ratios),
            "ratios": [round(r, 2) for r in ratios],
        }  # fmt: skip
    mine = mine or [seconds(run, least) for _ in range(pairs)]
    row["ms"], row["floor_ms"] = 1e3 * statistics.median(mine), 1e3 * floor(case, rate)
    row["to_floor"], row["to_floor_drawn"] = (
        row["ms"] / row["floor_ms"],
        1e-3 * row["ms"] / floor(case, rate, drawn=True),
    )
    return row


def main(words: list[str] | None = None) -> None:
    """Print the table of all cases row by row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one case of each kind")
    parser.add_argument("--json", metavar="FILE", help="write the whole table there")
    parser.add_argument("--pairs", type=int, default=5, help="alternating runs of each pair; default 5")
    options = parser.parse_args(words)
    rate = rates()
    print(
        f"{machine()}: {rate['flops'] / 1e9:.0f} Gflop/s, {rate['bytes'] / 1e9:.1f} GB/s, "
        f"{rate['normals'] / 1e6:.0f} M normals/s"
    )
    print(f"{'case':<24}{'ms/step':>9}{'target':>8}{'x floor':>9}{'drawn':>7}   peers: ms/step (x ours)")
    rows = []
    for case in cases(options.quick):
        row = compare(case, rate, options.pairs, 0.1 if options.quick else 0.3)
        peers = ", ".join(f"{name} {peer['ms']:.3f} ({peer['ratio']:.1f}x)" for name, peer in row["peers"].items())
        print(
            f"{row['case']:<24}{row['ms']:>9.3f}{row['evaluations']:>8}{row['to_floor']:>9.1f}"
            f"{row['to_floor_drawn']:>7.1f}   {peers}",
            flush=True,
        )
        rows.append(row)
        jax.clear_caches()
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"machine": machine(), "rates": rate, "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
