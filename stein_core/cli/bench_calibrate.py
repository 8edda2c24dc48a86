"""`bench calibrate`: how often `calibrate` is wrong about draws that are exact."""

from __future__ import annotations

import numpy as np

from stein_core.contract.spec import whole_number
from stein_core.posterior.many import DRAWS
from stein_core.posterior.ranks import SURE, named

ROWS, SLOPES, SD = 20, 3, 1.0  # of a linear model with slopes N(0, 1) and noise of this sd


def add_bench_calibrate(kinds) -> None:
    """Add the arguments of `bench calibrate`."""
    bench = kinds.add_parser("calibrate", help="false alarms of `calibrate` on exact draws of a linear model")
    bench.add_argument("--repeats", type=int, default=1000, help="calibrations")
    bench.add_argument("--n", type=int, default=200, help="data sets of each")
    bench.add_argument("--seed", type=int, default=0)
    bench.set_defaults(act=run_bench_calibrate)


def run_bench_calibrate(options) -> int:
    """`bench calibrate`: say how many exact calibrations are called wrong."""
    repeats = whole_number("--repeats", options.repeats, 1, 10**6)
    alarms = false_alarms(repeats, whole_number("--n", options.n, 20, 100_000), options.seed)
    share = 100 * alarms / repeats
    print(
        f"{alarms} of {repeats} exact calibrations are called wrong: {share:.1f} %. At most {100 * SURE:.0f} % are due."
    )
    return 0


def false_alarms(repeats: int, n: int, seed: int = 0) -> int:
    """Return how many calibrations find a parameter that is not calibrated, though all draws are exact.

    Truths come from the prior and data from the truths. The draws are those of the posterior in closed form.

    Args:
        repeats: number of calibrations.
        n: number of data sets of each.
        seed: of all that is drawn.
    """
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(ROWS, SLOPES))
    covariance = np.linalg.inv(np.eye(SLOPES) + x.T @ x / SD**2)
    root, alarms = np.linalg.cholesky(covariance), 0
    for _ in range(repeats):
        truths = rng.normal(size=(n, SLOPES))
        y = truths @ x.T + SD * rng.normal(size=(n, ROWS))
        means = y @ x @ covariance / SD**2
        draws = means[:, None] + rng.normal(size=(n, DRAWS, SLOPES)) @ root.T
        ranks = (draws < truths[:, None]).sum(axis=1)
        alarms += any(named(column, DRAWS, SLOPES).kind != "calibrated" for column in ranks.T)
    return alarms
