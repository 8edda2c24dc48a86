"""What `steps.py` compares: cases, each with the work that a step of it cannot do without."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

from stein_core.contract.known import Start
from stein_core.contract.spec import Spec
from stein_core.targets.data.datasets import wave_training
from stein_core.targets.own.rows import from_rows
from stein_core.targets.wave import dim_of


class Case(NamedTuple):
    """One comparison. matmul: multiply-adds of a step, times 2; normals: random numbers of a step; touched: floats that
    a step must read or write at least once."""

    name: str
    spec: Spec
    particles: int
    peers: tuple[str, ...]
    matmul: float
    normals: float
    touched: float


def svgd_case(n: int, d: int) -> Case:
    """Inner products of all pairs, K g and K x: 6 n^2 d; x, g, Adam's two moments in and out; the n x n distances once
    written, and read for the median, the kernel and its slope."""
    return Case(f"SVGD n={n} d={d}", Spec("gaussian", d, "svgd", capacity=_even(n)), n, ("blackjax",), 6 * n * n * d, 0,
                8 * n * d + 4 * n * n)  # fmt: skip


def smi_case(m: int, d: int, draws: int = 10) -> Case:
    """log q of m L draws under m guides: two matmuls and their transposes. Draws and gradients go once in, once out."""
    return Case(f"SMI m={m} d={d} L={draws}", Spec("gaussian", d, "smi", draws=draws, capacity=_even(m)), m,
                ("numpyro", "numpyro patched"), *_guides(m, d, draws))  # fmt: skip


def wave_case(width: int, m: int = 5, draws: int = 10) -> Case:
    """As SMI, and the network: (h^2 + 2 h) multiply-adds a data point, forward and twice back."""
    d, points = dim_of(width), wave_training().shape[1]
    matmul, normals, touched = _guides(m, d, draws)
    matmul += 6 * m * draws * points * (width * width + 2 * width)
    return Case(f"wave h={width} m={m} L={draws}", Spec("wave", d, "smi", draws=draws, capacity=_even(m)), m,
                ("numpyro", "numpyro patched"), matmul, normals, touched)  # fmt: skip


def network_case(method: str, inputs=784, hidden=100, outputs=10, rows=128, m: int = 5, draws: int = 1) -> Case:
    """A network of one hidden layer on rows of noise: a classifier, or a regression if it has one output. By default
    784-100-10 with 79,510 weights, that of MNIST. Forward and twice back."""
    sizes = [(inputs, hidden), (hidden,), (hidden, outputs), (outputs,)]
    ends = np.cumsum([int(np.prod(size)) for size in sizes])
    draw = np.random.default_rng(0)

    def log_likelihood(theta, data):
        x, y = data
        w1, b1, w2, b2 = (part.reshape(size) for part, size in zip(jnp.split(theta, ends[:-1]), sizes))
        f = jax.nn.relu(x @ w1 + b1) @ w2 + b2
        if outputs == 1:
            return norm.logpdf(y, f[:, 0])
        return jnp.take_along_axis(jax.nn.log_softmax(f), y[:, None], axis=1)[:, 0]

    d = int(ends[-1])
    y = draw.integers(0, max(outputs, 2), rows, dtype=np.int32)
    target = from_rows(
        lambda theta: jnp.sum(norm.logpdf(theta)), log_likelihood,
        (draw.normal(size=(rows, inputs)).astype(np.float32), y),
        batch=None, start=Start(np.zeros(d), np.full(d, 0.1)), extent=(-1, 1, -1, 1),
        coordinates=tuple(map(str, range(d))), constrain=lambda theta: {"theta": theta},
    )  # fmt: skip
    matmul, normals, touched = _guides(m, d, draws) if method == "smi" else (6 * m * m * d, 0, 8 * m * d)
    matmul += 6 * m * draws * rows * (inputs * hidden + hidden * outputs)
    spec = Spec(target, method=method, draws=draws, capacity=_even(m))
    peers = ("numpyro",) if method == "smi" else ()
    return Case(f"network d={d} {method} m={m}", spec, m, peers, matmul, normals, touched)


def _guides(m, d, draws):
    points = m * draws
    return 8 * points * m * d + 6 * m * m * 2 * d, points * d, 6 * points * d + 16 * m * d


def _even(n):
    return max(2, n + n % 2)


def cases(quick: bool) -> list[Case]:
    """What is compared; `quick` is one of each kind."""
    if quick:
        return [svgd_case(100, 50), smi_case(5, 10), wave_case(5)]
    return [
        *(svgd_case(n, d) for n in (20, 100, 500) for d in (2, 50, 1000)),
        *(smi_case(m, d) for m in (5, 20, 50) for d in (10, 50)),
        *(wave_case(width) for width in (5, 100)),
        *(network_case(method) for method in ("svgd", "smi")),
        *(network_case(method, 13, 50, 1, 100, draws=10) for method in ("svgd", "smi")),  # that of Boston
    ]
