"""How often `diagnose` blames exact draws, and how often it misses wrong ones: `python tests/alarms.py [sets]`.

It prints the table of tests/README.md. Densities and draws are NumPy formulas of their own.
"""

from __future__ import annotations

import sys

import numpy as np

from stein_core import diagnose


def of_rows(draw, score):
    """Return a function (rng, n, d) -> draws, scores."""

    def make(rng, n, d):
        x = draw(rng, n, d)
        return x, score(x)

    return make


def multivariate_t5(rng, n, d):
    x = rng.standard_normal((n, d)) / np.sqrt(rng.chisquare(5, (n, 1)) / 5)
    return x, -(5 + d) * x / (5 + np.sum(x * x, axis=1, keepdims=True))


def banana(rng, n, d):
    x = rng.standard_normal((n, d))
    x[:, 1] += 0.5 * (x[:, 0] ** 2 - 1)
    bend = x[:, 1] - 0.5 * (x[:, 0] ** 2 - 1)
    scores = -x
    scores[:, 0], scores[:, 1] = -x[:, 0] + x[:, 0] * bend, -bend
    return x, scores


def bimodal(rng, n, d):
    x = rng.standard_normal((n, d))
    x[:, 0] += 1.5 * rng.choice([-1.0, 1.0], n)
    scores = -x
    scores[:, 0] += 1.5 * np.tanh(1.5 * x[:, 0])
    return x, scores


def log_gamma(shape):
    return of_rows(lambda rng, n, d: np.log(rng.gamma(shape, 1.0, (n, d))), lambda x: shape - np.exp(x))


def funnel(sd):
    """v ~ N(0, sd^2), y_j | v ~ N(0, e^v)."""

    def make(rng, n, d):
        v = sd * rng.standard_normal((n, 1))
        y = np.exp(v / 2) * rng.standard_normal((n, d - 1))
        slope = -v / sd**2 + 0.5 * np.sum(y**2, axis=1, keepdims=True) * np.exp(-v) - (d - 1) / 2
        return np.hstack([v, y]), np.hstack([slope, -y * np.exp(-v)])

    return make


def ar1_of(d, rho=0.9):
    """Return the covariance (d, d) of an AR(1)."""
    return rho ** np.abs(np.subtract.outer(np.arange(d), np.arange(d)))


def ar1(rng, n, d):
    x = rng.standard_normal((n, d)) @ np.linalg.cholesky(ar1_of(d)).T
    return x, -x @ np.linalg.inv(ar1_of(d))


def independent(d):
    """Draws with the sds of an AR(1), but without its correlations."""

    def make(rng, n):
        x = rng.standard_normal((n, d))
        return x, -x @ np.linalg.inv(ar1_of(d))

    return make


normal = of_rows(lambda rng, n, d: rng.standard_normal((n, d)), lambda x: -x)
t5 = of_rows(lambda rng, n, d: rng.standard_t(5, (n, d)), lambda x: -6 * x / (5 + x * x))
laplace = of_rows(lambda rng, n, d: rng.laplace(size=(n, d)), lambda x: -np.sign(x))
EXACT = {
    "normal": (normal, (2, 10, 30)),
    "AR(1)": (ar1, (2, 10, 30)),
    "t5": (t5, (2, 10, 30)),
    "multivariate t5": (multivariate_t5, (2, 10, 30)),
    "banana": (banana, (2, 10, 30)),
    "log-Gamma(1)": (log_gamma(1.0), (2, 10, 30)),
    "log-Gamma(3)": (log_gamma(3.0), (2, 10, 30)),
    "Laplace": (laplace, (2, 10, 30)),
    "two modes, +-1.5": (bimodal, (2, 10, 30)),
    "funnel, sd 1.5": (funnel(1.5), (10, 20, 30)),
    "Neal's funnel, sd 3": (funnel(3.0), (2, 10)),
}


def correlated(q, target=0.0, d=2):
    """Draws with correlation q in the first pair of d coordinates, of a normal posterior with another one there."""

    def make(rng, n):
        x = rng.standard_normal((n, d))
        x[:, 1] = q * x[:, 0] + np.sqrt(1 - q * q) * x[:, 1]
        precision = np.eye(d)
        precision[:2, :2] = np.linalg.inv([[1.0, target], [target, 1.0]])
        return x, -x @ precision

    return make


def lost(axis, factor=0.1, d=10, rho=0.9):
    """Draws of an AR(1) that are too narrow along one of its axes, numbered by rising variance."""

    def make(rng, n):
        covariance = ar1_of(d, rho)
        values, vectors = np.linalg.eigh(covariance)
        sds = np.sqrt(values) * np.where(np.arange(d) == axis, factor, 1.0)
        x = rng.standard_normal((n, d)) * sds @ vectors.T
        return x, -x @ np.linalg.inv(covariance)

    return make


WRONG = {
    **{f"correlation {q} for 0": correlated(q) for q in (0.3, 0.5, 0.7, 0.9, 0.95)},
    "one pair of 10 at .9": correlated(0.9, d=10),
    "one pair of 20 at .9": correlated(0.9, d=20),
    "correlation 0 for .6": correlated(0.0, 0.6),
    "AR(1), independent draws": independent(10),
    "AR(1), axis 1 lost": lost(0),
    "AR(1), axis 5 lost": lost(4),
    "AR(1), axis 9 lost": lost(8),
    "AR(1), axis 5 half as wide": lost(4, 0.5),
}


def rates(make, n: int, sets: int) -> tuple[float, float]:
    """Return the shares of sets of n draws that are called wrong, and that are not fully checked."""
    said = []
    for seed in range(sets):
        x, scores = make(np.random.default_rng(seed), n)
        said.append(diagnose(x, scores=scores).ok)
    return said.count(False) / sets, said.count(None) / sets


def main() -> None:
    sets, total = int(sys.argv[1]) if len(sys.argv) > 1 else 60, {}
    for name, (make, dims) in EXACT.items():
        for d in dims:
            row = {n: rates(lambda rng, n: make(rng, n, d), n, sets) for n in (200, 500, 2000)}
            cells = " | ".join(f"{wrong:.2f} ({unsaid:.2f})" for wrong, unsaid in row.values())
            print(f"| {name}, d = {d} | {cells} |", flush=True)
            for n, (wrong, _) in row.items():
                total.setdefault(n, []).append(wrong)
    print(f"| mean | {' | '.join(f'{np.mean(each):.4f}' for each in total.values())} |")
    for name, make in WRONG.items():
        print(f"| {name} | {' | '.join(f'{rates(make, n, 20)[0]:.2f}' for n in (200, 500, 2000))} |", flush=True)


if __name__ == "__main__":
    main()
