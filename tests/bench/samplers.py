"""A step of KSIVI on the waveform posterior beside the authors' formulation in PyTorch (extra `bench`)."""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch

from stein_core.cli.bench_device import steps_of
from stein_core.contract.spec import Spec
from stein_core.runs.runner import Stepper
from stein_core.targets.data import downloads
from stein_core.targets.waveform import INPUTS

BATCH, LATENT, WIDTH, STEP = 100, 10, 100, 1e-3
START_SD = math.exp(-2.5)


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
    return steps_of(stepper, knobs)


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


def main() -> None:
    """Print ms a step of both estimators, ours and PyTorch's, in turns."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=5, help="alternating runs of each pair; default 5")
    options = parser.parse_args()
    print(f"{'estimator':<10}{'ms/step':>9}{'PyTorch':>9}{'ratio':>7}   PyTorch {torch.__version__}")
    for statistic in ("u", "vanilla"):
        pair = ours(statistic), theirs(statistic)
        times = np.array([[seconds(pair[0], 200), seconds(pair[1], 50)] for _ in range(options.pairs)])
        mine, peer = 1e3 * np.median(times, axis=0)
        ratio = statistics.median((times[:, 1] / times[:, 0]).tolist())
        print(f"{statistic:<10}{mine:>9.2f}{peer:>9.2f}{ratio:>6.1f}x", flush=True)


if __name__ == "__main__":
    main()
