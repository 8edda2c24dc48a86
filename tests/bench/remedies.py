"""What a step of each remedy costs beside a step of SVGD: `python tests/bench/remedies.py`, on idle cores.

The two take turns, with the same particles, target and optimiser, without compile time. A ratio is one pair's; the
table has the medians.
"""

from __future__ import annotations

import argparse
import statistics

from cases import Case
from steps import machine, ours, seconds

from stein_core.contract.registry import METHODS
from stein_core.contract.spec import Spec
from steinlab.pages.remedy.slots import remedies


def case_of(method: str, n: int, d: int) -> Case:
    """Return a step of a method on a normal distribution."""
    spec = Spec("gaussian", d, method, optimizer="sgd", capacity=n + n % 2)
    return Case(f"{method} n={n} d={d}", spec, n, (), 0, 0, 0)


def compare(method: str, n: int, d: int, pairs: int, least: float = 0.3) -> tuple[float, float]:
    """Return ms of a step of the method, and how many times as long as SVGD's it is."""
    run, plain = ours(case_of(method, n, d)), ours(case_of("svgd", n, d))
    times, ratios = [], []
    for _ in range(pairs):
        times.append(seconds(run, least))
        ratios.append(times[-1] / seconds(plain, least))
    return 1e3 * statistics.median(times), statistics.median(ratios)


def main(words: list[str] | None = None) -> None:
    """Print a row for each remedy."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=5, help="alternating runs of each pair; default 5")
    parser.add_argument("--particles", type=int, default=100)
    parser.add_argument("--dim", type=int, default=50)
    options = parser.parse_args(words)
    print(f"{machine()}: {options.particles} particles in {options.dim} dimensions")
    for names in remedies().values():
        for name in names:
            ms, ratio = compare(name, options.particles, options.dim, options.pairs)
            print(f"{METHODS[name].label:<28}{ms:>9.3f} ms {ratio:>7.2f} x SVGD", flush=True)


if __name__ == "__main__":
    main()
