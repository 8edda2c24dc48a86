"""What a posterior over functions is: its outputs, its rows of data, and the points at which functions repel."""

from __future__ import annotations

from typing import Callable, NamedTuple

from stein_core.contract.types import Array


class Rows(NamedTuple):
    """Rows of a data set. weights: 1 for all the data, N / B for a mini-batch of B of N rows, 0 for a spare row.

    Args:
        x: (B, ...) inputs.
        y: (B, ...) outputs.
        weights: (B,).
    """

    x: Array
    y: Array
    weights: Array


class Points(NamedTuple):
    """Inputs at which functions repel each other, beside those of a mini-batch.

    Args:
        x: (k, ...) inputs.
        weights: (k,) 1, and 0 for a spare input.
        on_rows: 1 if functions also repel at the inputs of the mini-batch, else 0.
    """

    x: Array
    weights: Array
    on_rows: Array


class Functions(NamedTuple):
    """A posterior over functions. For all rows, log_density = log_prior + log_likelihood of their outputs.

    Args:
        outputs: (theta (d,), x (k, ...)) -> (k, c): the mean of a regression (c = 1), or logits.
        log_likelihood: (outputs (B, c), Rows) -> scalar, the weighted sum over the rows.
        log_prior: theta -> scalar.
        rows: key -> Rows of a mini-batch; None -> all rows.
        prior_sample: (key, n) -> theta (n, d).
        prior_covariance: (x (k, ...), y (l, ...)) -> (k, l) of one output under the prior, or None.
        axes: (low, high, name) of each input, the range that a page shows.
        points: key -> Points of a step, where functions repel; None: only at the rows of the mini-batch.
    """

    outputs: Callable[[Array, Array], Array]
    log_likelihood: Callable[[Array, Rows], Array]
    log_prior: Callable[[Array], Array]
    rows: Callable[[Array | None], Rows]
    prior_sample: Callable[[Array, int], Array]
    prior_covariance: Callable[[Array, Array], Array] | None = None
    axes: tuple[tuple[float, float, str], ...] = ()
    points: Callable[[Array], Points] | None = None
