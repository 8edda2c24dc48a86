"""`bench device`: steps a second on this machine, and the share of its matmul rate that they reach."""

from __future__ import annotations

import json
import os
import time
from typing import Any

import jax
import jax.numpy as jnp

from stein_core.base.machine import device_name
from stein_core.cli.commands import check_out
from stein_core.contract.knobs import Knob
from stein_core.contract.spec import Spec
from stein_core.runs.memory import bytes_allowed, bytes_needed
from stein_core.runs.runner import Stepper

SIZES = (1_000, 10_000, 100_000)
DIMS = (2, 50, 1000)
METHODS = ("svgd", "smi")
SIDE = 4096  # of the matrices whose product gives the rate
PAIRS = 2e8  # of particles or draws that a core handles in a second at least, beside the matmuls


def add_bench_device(kinds) -> None:
    """Add the arguments of `bench device`."""
    bench = kinds.add_parser(
        "device", help="steps a second for up to 100,000 particles, and the share of the matmul rate"
    )
    bench.add_argument(
        "--seconds", type=float, default=600.0, help="bound on the whole; what would exceed it is left out"
    )
    bench.add_argument("--json", metavar="FILE", help="write the rows there")
    bench.set_defaults(act=run_bench_device)


def run_bench_device(options) -> int:
    """`bench device`: a row for each method, dimension and number of particles, the quickest first."""
    end = time.perf_counter() + Knob("--seconds", 600.0, 1.0, 1e6).check(options.seconds)
    if options.json:
        check_out(options.json, "--json")
    rate = matmul_rate()
    print(
        f"{device_name()}, {os.cpu_count()} cores: {rate / 1e9:.0f} Gflop/s in a product of matrices of {SIDE:,} rows"
    )
    print(f"{'method':<8}{'d':>6}{'n':>9}{'steps/s':>12}{'of matmul':>11}")
    cases = [(method, d, n) for n in SIZES for d in DIMS for method in METHODS]
    rows = []
    for method, d, n in sorted(cases, key=lambda case: seconds_of(*case, rate)):
        row = measured(method, d, n, rate, end - time.perf_counter())
        rows.append({"method": method, "d": d, "n": n} | row)
        what = row.get("left_out") or f"{row['steps_per_second']:>12.4g}{100 * row['share']:>9.1f} %"
        print(f"{method:<8}{d:>6}{n:>9,}{'  ' * ('left_out' in row)}{what}", flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"device": device_name(), "matmul_flops": rate, "rows": rows}, file, indent=1)
    return 0


def matmul_rate() -> float:
    """Return flop/s of a large float32 product at the precision that runs have."""
    with jax.default_matmul_precision("highest"):
        product, took = jax.jit(lambda a: a @ a), []
        big = jax.block_until_ready(product(jnp.ones((SIDE, SIDE), jnp.float32)) / SIDE)
        for _ in range(3):
            began = time.perf_counter()
            jax.block_until_ready(product(big))
            took.append(time.perf_counter() - began)
    return 2 * SIDE**3 / min(took)


def flops_of(method: str, d: int, n: int) -> float:
    """Return the flops of the matrix products that a step takes: distances and both sums over n x n pairs of particles;
    for SMI of guides with 2 d parameters, and the density of each draw under each guide with its gradient."""
    return 6.0 * n**2 * d if method == "svgd" else 20.0 * n**2 * d


def seconds_of(method: str, d: int, n: int, rate: float) -> float:
    """Return about how many seconds a step takes."""
    return flops_of(method, d, n) / (0.4 * rate) + n**2 * (1 + (method == "smi")) / (PAIRS * os.cpu_count())


def measured(method: str, d: int, n: int, rate: float, left: float) -> dict[str, Any]:
    """Return steps a second and the share of the matmul rate, or why there are none.

    Args:
        method, d, n: the case, with one draw of each guide.
        rate: flop/s of a large product.
        left: seconds that remain.
    """
    spec = Spec("gaussian", d, method, draws=1, capacity=n)
    about = 10 + 3 * seconds_of(method, d, n, rate)  # to compile, a first step, and two that are measured
    if about > left:
        return {"left_out": f"left out: it takes about {about:.0f} s, and {max(left, 0):.0f} s remain"}
    if bytes_needed(spec) > bytes_allowed():
        return {"left_out": f"left out: it needs about {bytes_needed(spec) / 1e9:.1f} GB of memory"}
    stepper, knobs = Stepper(spec), {"method.particles": n}
    state = jax.block_until_ready(stepper.advance(stepper.reset(0, knobs), knobs, 1))
    steps, took = 0, 0.0
    while took < min(1.0, left / 10):
        began = time.perf_counter()
        state = jax.block_until_ready(stepper.advance(state, knobs, max(steps, 1)))
        took, steps = took + time.perf_counter() - began, steps + max(steps, 1)
    return {"steps_per_second": steps / took, "share": flops_of(method, d, n) * steps / took / rate}
