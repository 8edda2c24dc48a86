"""`bench samplers`: a step of KSIVI on the waveform posterior beside the authors' formulation in PyTorch."""

from __future__ import annotations

import json
import math
import statistics
import time
from collections.abc import Callable

import jax
import numpy as np

from stein_core.base.errors import short
from stein_core.cli.commands import check_out
from stein_core.contract.spec import Spec
from stein_core.runs.runner import Stepper
from stein_core.targets.data import downloads
from stein_core.targets.waveform import INPUTS

BATCH, LATENT, WIDTH, STEP = 100, 10, 100, 1e-3
START_SD = math.exp(-2.5)


def add_bench_samplers(commands) -> None:
    """Add the arguments of `bench samplers`."""
    bench = commands.add_parser("samplers", help="KSIVI on the waveform posterior against PyTorch")
    bench.add_argument("--json", metavar="FILE", help="write the row there")
    bench.add_argument("--pairs", type=int, default=5, help="alternating runs of each pair; default 5")
    bench.set_defaults(act=run_bench_samplers)


def ours(statistic: str) -> Callable[[int], None]:
    """Return a function that takes so many steps of our KSIVI, compiled."""
    options = {"method.latent": LATENT, "method.width": WIDTH}
    stepper = Stepper(Spec("waveform", method="ksivi", capacity=BATCH, options=options))
    knobs = {
        "method.particles": BATCH,
        "method.step_size": STEP,
        "method.start_sd": START_SD,
        "method.statistic": statistic,
    }
    state = stepper.reset(0, knobs)

    def run(steps):
        nonlocal state
        state = jax.block_until_ready(stepper.advance(state, knobs, steps))

    run(1)
    return run


def theirs(statistic: str) -> Callable[[int], None]:
    """Return the same of KSIVI as its authors wrote it: eager PyTorch, the RBF kernel with the gradient through the
    median, and the score in closed form."""
    import torch

    x, y = (torch.tensor(each, dtype=torch.float32) for each in downloads.waveform())
    layers = torch.nn.Linear(LATENT, WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, WIDTH), torch.nn.ReLU()
    net = torch.nn.Sequential(*layers, torch.nn.Linear(WIDTH, INPUTS))
    log_variance = torch.nn.Parameter(torch.full((INPUTS,), 2 * math.log(START_SD)))
    optimizer = torch.optim.Adam([*net.parameters(), log_variance], lr=STEP, betas=(0.9, 0.99))

    def batch():
        eps, sd = torch.randn(BATCH, INPUTS), torch.exp(0.5 * log_variance)
        theta = net(torch.randn(BATCH, LATENT)) + sd * eps
        return theta, (y - torch.sigmoid(theta @ x.T)) @ x - 0.01 * theta + eps / sd

    def run(steps):
        for _ in range(steps):
            theta, a = batch()
            other, b = (theta, a) if statistic == "u" else batch()
            square = torch.sum((theta[:, None, :] - other[None, :, :]) ** 2, dim=-1)
            gram = torch.exp(-square * math.log(BATCH + 1) / torch.median(square)) * (a @ b.T)
            if statistic == "u":
                gram = gram - torch.diag(torch.diag(gram))
            optimizer.zero_grad()
            gram.mean().backward()
            optimizer.step()

    run(3)
    return run


def seconds(run: Callable[[int], None], steps: int) -> float:
    """Return the seconds of a step, over so many."""
    began = time.perf_counter()
    run(steps)
    return (time.perf_counter() - began) / steps


def run_bench_samplers(options) -> int:
    """`bench samplers`: ms a step of both estimators, ours and PyTorch's, in turns."""
    if options.pairs < 1:
        raise ValueError(f"--pairs = {short(options.pairs)} is too small; allowed: 1 or more.")
    if options.json:
        check_out(options.json, "--json")
    try:
        import torch
    except ImportError:
        raise ValueError("bench samplers needs PyTorch; install it with: pip install 'steinlab[bench]'.") from None
    rows = []
    print(f"{'estimator':<10}{'ms/step':>9}{'PyTorch':>9}{'ratio':>7}   PyTorch {torch.__version__}")
    for statistic in ("u", "vanilla"):
        pair = ours(statistic), theirs(statistic)
        times = np.array([[seconds(pair[0], 200), seconds(pair[1], 50)] for _ in range(options.pairs)])
        mine, peer = 1e3 * np.median(times, axis=0)
        ratio = statistics.median((times[:, 1] / times[:, 0]).tolist())
        rows.append({"estimator": statistic, "ms": mine, "pytorch_ms": peer, "ratio": ratio})
        print(f"{statistic:<10}{mine:>9.2f}{peer:>9.2f}{ratio:>6.1f}x", flush=True)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(rows, file, indent=1)
    return 0
