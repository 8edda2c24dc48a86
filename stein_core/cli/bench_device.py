"""`bench device`: steps a second on this machine, and the share of its matmul rate that they reach."""

from __future__ import annotations

import importlib.util
import json
import os
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from stein_core.base.machine import device_name
from stein_core.cli.commands import check_out
from stein_core.contract.knobs import Knob
from stein_core.contract.spec import Spec, target_of
from stein_core.runs.memory import bytes_allowed, bytes_needed
from stein_core.runs.runner import Stepper

SIZES = (1_000, 10_000, 100_000, 1_000_000)
DIMS = (2, 50, 1000)
METHODS = ("svgd", "smi")
SIDE = 4096  # of the matrices whose product gives the rate
PAIRS = {"cpu": 2e8, "gpu": 1e11}  # that a core, or a GPU, handles in a second at least, beside the matmuls
EXACT, NARROW = "highest", "BF16_BF16_F32"  # products of float32; of bfloat16, added up in float32
SLOWER = 60  # times as long as ours: about what a step of BlackJAX takes
ALLOWED = 0.01  # error of forces, as a share of the largest one, at which bfloat16 counts as usable


class Case(NamedTuple):
    """What a row measures.

    Args:
        method, d, n: method, dimension and number of particles; guides have one draw each.
        how: "float32", "bfloat16", "N devices" or "BlackJAX".
    """

    method: str
    d: int
    n: int
    how: str = "float32"


def add_bench_device(kinds) -> None:
    """Add the arguments of `bench device`."""
    bench = kinds.add_parser(
        "device", help="steps a second for up to a million particles, and the share of the matmul rate"
    )
    bench.add_argument(
        "--seconds", type=float, default=600.0, help="bound on the whole; what would exceed it is left out"
    )
    bench.add_argument("--json", metavar="FILE", help="write the rows there")
    bench.set_defaults(act=run_bench_device)


def run_bench_device(options) -> int:
    """`bench device`: a row for each method, dimension, number of particles and way to compute, the quickest first."""
    end = time.perf_counter() + Knob("--seconds", 600.0, 1.0, 1e6).check(options.seconds)
    if options.json:
        check_out(options.json, "--json")
    rate, narrow = matmul_rate(EXACT), has_narrow()
    peak = (
        f"{device_name()}, {os.cpu_count()} cores: {rate / 1e9:.0f} Gflop/s in a product of matrices of {SIDE:,} rows"
    )
    print(f"{peak}, {matmul_rate(NARROW) / 1e9:.0f} of bfloat16" if narrow else peak)
    if not narrow:
        print("This device multiplies bfloat16 as float32, so no row has that.")
    if not importlib.util.find_spec("blackjax"):
        print("BlackJAX is not installed, so no row has it.")
    print(f"{'method':<8}{'d':>6}{'n':>11}  {'how':<12}{'steps/s':>10}{'of matmul':>11}")
    rows = []
    for case in sorted(cases(narrow), key=lambda case: seconds_of(case, rate)):
        row = measured(case, rate, end - time.perf_counter())
        rows.append(case._asdict() | row)
        what = row.get("left_out") or f"{row['steps_per_second']:>10.4g}{100 * row['share']:>9.1f} %"
        error = f"  forces {100 * row['error']:.2g} % off" if "error" in row else ""
        print(f"{case.method:<8}{case.d:>6}{case.n:>11,}  {case.how:<12}{what}{error}", flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"device": device_name(), "matmul_flops": rate, "rows": rows}, file, indent=1)
    return 0


def cases(narrow: bool) -> list[Case]:
    """Return all rows: one device and all, float32 and bfloat16 if the device has it, and BlackJAX for SVGD."""
    ways = ["float32"] + ["bfloat16"] * narrow + [f"{jax.device_count()} devices"] * (jax.device_count() > 1)
    grid = [(method, d, n) for n in SIZES for d in DIMS for method in METHODS]
    ours = [Case(*one, how) for one in grid for how in ways]
    return ours + [Case(*one, "BlackJAX") for one in grid if one[0] == "svgd" and importlib.util.find_spec("blackjax")]


def matmul_rate(products: str) -> float:
    """Return flop/s of a large product, see `jax.default_matmul_precision`."""
    with jax.default_matmul_precision(products):
        product, took = jax.jit(lambda a: a @ a), []
        big = jax.block_until_ready(product(jnp.ones((SIDE, SIDE), jnp.float32)) / SIDE)
        for _ in range(3):
            began = time.perf_counter()
            jax.block_until_ready(product(big))
            took.append(time.perf_counter() - began)
    return 2 * SIDE**3 / min(took)


def has_narrow() -> bool:
    """Return whether this device rounds the numbers of a product to bfloat16 when it is told to."""
    third = jnp.full((128, 128), 1 / 3, jnp.float32)
    with jax.default_matmul_precision(NARROW):
        return bool(jnp.abs(jax.jit(lambda a: a @ a)(third) - 128 / 9).max() > 1e-3)


def flops_of(case: Case) -> float:
    """Return the flops of the matrix products that a step takes: distances and both sums over n x n pairs of particles;
    for SMI of guides with 2 d parameters, and the density of each draw under each guide with its gradient."""
    return (6.0 if case.method == "svgd" else 20.0) * case.n**2 * case.d


def seconds_of(case: Case, rate: float) -> float:
    """Return about how many seconds a step takes on one device."""
    pairs = PAIRS["cpu"] * os.cpu_count() if jax.default_backend() == "cpu" else PAIRS["gpu"]
    ours = flops_of(case) / (0.4 * rate) + case.n**2 * (6 if case.method == "smi" else 1) / pairs
    return ours * (SLOWER if case.how == "BlackJAX" else 1)


def measured(case: Case, rate: float, left: float) -> dict[str, Any]:
    """Return steps a second, the share of the matmul rate and the error of bfloat16's forces, or why there are none.

    Args:
        case: the row.
        rate: flop/s of a large product of float32.
        left: seconds that remain.
    """
    spec = Spec("gaussian", case.d, case.method, draws=1, capacity=case.n)
    about = 10 + 3 * seconds_of(case, rate)  # to compile, a first step, and two that are measured
    if about > left:
        return {"left_out": f"left out: it takes about {about:.0f} s, and {max(left, 0):.0f} s remain"}
    needed = (
        8.0 * case.n**2 * case.d if case.how == "BlackJAX" else bytes_needed(spec)
    )  # about: it forms n x n x d numbers
    if needed > bytes_allowed():
        return {"left_out": f"left out: it needs about {needed / 1e9:.1f} GB of memory"}
    if case.how == "BlackJAX":
        return timed(case, blackjax_steps(spec), rate, left)
    devices = jax.device_count() if "devices" in case.how else 1
    if case.n % devices:
        return {"left_out": f"left out: {devices} devices cannot share {case.n:,} particles equally"}
    stepper, knobs = Stepper(spec, devices), {"method.particles": case.n}
    if case.how != "bfloat16":
        return timed(case, steps_of(stepper, knobs), rate, left)
    stepper.products = NARROW
    error = error_of(spec, stepper)
    if error > ALLOWED:
        return {"left_out": f"left out: forces are {100 * error:.2g} % off", "error": error}
    return timed(case, steps_of(stepper, knobs), rate, left) | {"error": error}


def error_of(spec: Spec, narrow: Stepper) -> float:
    """Return the largest difference of the forces at the start that narrow products make, as a share of the largest."""
    exact, knobs = Stepper(spec, 1), {"method.particles": spec.capacity}
    state = exact.reset(0, knobs)
    one, other = (each.look(state, knobs, False) for each in (exact, narrow))
    gap = (one.attract + one.repulse) - (other.attract + other.repulse)
    return float(np.abs(gap).max() / np.abs(one.attract + one.repulse).max())


def steps_of(stepper: Stepper, knobs: Mapping[str, Any]) -> Callable[[int], None]:
    """Return a function that takes so many steps. Its program is compiled, by a first step."""
    state = stepper.reset(0, knobs)

    def run(steps):
        nonlocal state
        state = jax.block_until_ready(stepper.advance(state, knobs, steps))

    run(1)
    return run


def blackjax_steps(spec: Spec) -> Callable[[int], None]:
    """Return the same for BlackJAX's SVGD with its own median rule."""
    import optax
    from blackjax.vi import svgd

    algorithm = svgd.as_top_level_api(jax.grad(target_of(spec).log_density), optax.adam(0.1))
    start = jax.random.normal(jax.random.key(0), (spec.capacity, spec.dim))
    state = algorithm.init(start, {"length_scale": 1.0})
    loop = jax.jit(lambda state, steps: jax.lax.fori_loop(0, steps, lambda _, state: algorithm.step(state), state))

    def run(steps):
        nonlocal state
        with jax.default_matmul_precision(EXACT):
            state = jax.block_until_ready(loop(state, steps))

    run(1)
    run(1)  # the state that comes back has other types than the first one
    return run


def timed(case: Case, run: Callable[[int], None], rate: float, left: float) -> dict[str, float]:
    """Return steps a second and the share of the matmul rate: of one device, or of as many as are used."""
    steps, took = 0, 0.0
    while took < min(1.0, left / 10):
        began, more = time.perf_counter(), max(steps, 1)
        run(more)
        took, steps = took + time.perf_counter() - began, steps + more
    devices = jax.device_count() if "devices" in case.how else 1
    return {"steps_per_second": steps / took, "share": flops_of(case) * steps / took / (rate * devices)}
