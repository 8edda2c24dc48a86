"""What a check reads, and what it finds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from stein_core.base.arviz_api import ess, rhat
from stein_core.base.samples import stein_traces
from stein_core.contract.facts import Facts
from stein_core.contract.known import Mode
from stein_core.contract.registry import Registry
from stein_core.posterior.regression import Direction, extremes, implied

RESAMPLES = 40  # bootstrap sets of rows, for standard errors


@dataclass(frozen=True)
class CheckFacts(Facts):
    """Say what a check needs of the evidence, and what it may do.

    Args:
        needs: names of the arrays that must be there.
        judges: whether it can call the draws wrong.
        question: of the report under which it stands: 1 place, 2 width, 3 weights, 4 what else is known. 0: only in the
            table of all checks.
        only_wrong: whether it stands there only if it calls the draws wrong.
    """

    needs: tuple[str, ...] = ()
    judges: bool = True
    question: int = 0
    only_wrong: bool = False


CHECKS = Registry("check", CheckFacts)


@dataclass(frozen=True)
class Finding:
    """Hold what one check found.

    Args:
        value: the number.
        expected: the number of exact draws.
        error: its standard error for exact draws; 0 for particles, which are no random draws.
        wrong: whether the posterior should not be trusted as it is; None if these draws do not allow an answer.
        sentence: what it means.
        each: the number of each coordinate, by name.
        short: the first sentence of the verdict if this is the worst; "": the sentence.
        off_centre: whether it has found a mean that is wrong.
    """

    value: float
    expected: float
    error: float
    wrong: bool | None
    sentence: str
    each: Mapping[str, float] = field(default_factory=dict)
    short: str = ""
    off_centre: bool = False


class Weighing(NamedTuple):
    """Hold weights of draws, see `weigh` and `thin`.

    Args:
        how: they were found.
        weights: (n,), none negative, with sum 1.
        before, after: kernel Stein discrepancy without and with them, with each coordinate in sds of the draws.
    """

    how: str
    weights: np.ndarray
    before: float
    after: float

    @property
    def ess(self) -> float:
        """Return 1 / sum w^2."""
        return float(1 / np.sum(self.weights**2))

    @property
    def sentence(self) -> str:
        """Return what the weights did, and what they cannot do."""
        return (
            f"{self.how}: the kernel Stein discrepancy is {self.after:.3g}, and was {self.before:.3g}. 1 / sum w^2 is "
            f"{self.ess:.0f} of {len(self.weights):,}. Weights cannot widen draws: a collapsed set still has no point "
            "outside its hull."
        )


@dataclass(frozen=True, eq=False, repr=False)
class Evidence:
    """Hold draws and what is known about them, in unconstrained coordinates.

    Args:
        draws: (n, d).
        names: of the d coordinates.
        scores: (n, d) gradients of the log density, with the log-Jacobian, at the draws; or None.
        log_p, log_q: (n,) log densities of the posterior and of the fit; or None.
        chains: how many chains the rows are, one after the other; 0: particles, 1: independent draws or one chain.
        law: the Stein trace that the method has at rest when it is collapsed, or NaN.
        law_of_twice: the same with twice as many particles.
        rest: the force that is left, a share of one step's attraction, see `runs.force_left`; or None.
        noisy: whether it is the mean of estimates, as of guides, or with mini-batches.
        reference: (chains, k, d) draws that are right, for example of a long run of NUTS; or None.
        diverging: how many draws of the reference ended a diverging trajectory; None if that is not known.
        flat: along what the density does not fall, see `rays.flat_direction`; None if there is no target.
        modes: all that the search for the start has found, of `target.Mode`; or None.
        weighing: weights of the draws, or None. Other checks than `weighing` do not read them.
    """

    draws: np.ndarray
    names: tuple[str, ...]
    scores: np.ndarray | None = None
    log_p: np.ndarray | None = None
    log_q: np.ndarray | None = None
    chains: int = 1
    law: float = math.nan
    law_of_twice: float = math.nan
    rest: float | None = None
    noisy: bool = False
    reference: np.ndarray | None = None
    diverging: int | None = None
    modes: tuple[Mode, ...] | None = None
    flat: str | None = None
    weighing: Weighing | None = None

    def __repr__(self) -> str:
        return f"<Evidence: {self.n:,} draws of {self.d} coordinates>"

    @property
    def usable(self) -> np.ndarray | None:
        """Return the scores if there are any and all are finite, else None."""
        return self.scores if self.scores is not None and np.isfinite(self.scores).all() else None

    @property
    def n(self) -> int:
        """Return the number of draws."""
        return len(self.draws)

    @property
    def d(self) -> int:
        """Return the number of coordinates."""
        return self.draws.shape[1]

    @cached_property
    def which(self) -> np.ndarray:
        """Return the number (n,) of each row among the distinct rows, in the order in which they appear."""
        _, first, which = np.unique(self.draws, axis=0, return_index=True, return_inverse=True)
        return np.argsort(np.argsort(first))[which.ravel()]

    @cached_property
    def ess(self) -> float:
        """Return the effective number of draws: the median over the coordinates; of particles their number.

        It is at most the number of distinct rows: a row that is there 20 times, as after resampling, tells no more.
        """
        if self.chains == 0 or self.log_q is not None:
            return float(self.n)
        if self.n < 8 * self.chains:
            return float(self.distinct)
        return min(float(np.median(effective(self.rows[..., :50]))), float(self.distinct))

    def effective_of(self, values: np.ndarray) -> float:
        """Return the effective number of these values (n,), one for each draw: at most that of the draws."""
        if self.chains == 0 or self.log_q is not None or self.n < 8 * self.chains:
            return self.ess
        found = float(effective(values.reshape(self.chains, -1, 1))[0])
        return min(found, self.ess) if math.isfinite(found) else self.ess

    @property
    def distinct(self) -> int:
        """Return the number of different rows."""
        return int(self.which.max() + 1)

    @cached_property
    def reference_quality(self) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the effective number of draws (d,) of the reference, and R-hat (d,) if it has several chains."""
        chains, k, _ = self.reference.shape
        ess = effective(self.reference) if k >= 8 else np.full(self.d, float(chains * k))
        return np.fmin(ess, chains * k), disagreement(self.reference) if chains > 1 and k >= 8 else None

    @property
    def rows(self) -> np.ndarray:
        """Return the draws (chains, n / chains, d)."""
        return self.draws.reshape(max(self.chains, 1), -1, self.d)

    @cached_property
    def trace(self) -> tuple[np.ndarray, np.ndarray]:
        """Return r_j (d,), see `stein_traces`, and its standard errors (d,), 0 for particles."""
        each = -self.scores * (self.draws - self.draws.mean(axis=0))
        error = np.maximum(each.std(axis=0), math.sqrt(2.0)) / math.sqrt(self.ess) * (self.chains > 0)
        return stein_traces(self.draws, self.scores), error

    @cached_property
    def directions(self) -> tuple[Direction, Direction] | None:
        """Return the directions in which the draws are narrowest and widest beside their scores, see `extremes`.

        The halves of the draws have no row in common, and follow one another in time: draws of a chain are related.
        """
        halves = None if self.chains == 0 else self.which < self.distinct // 2
        return extremes(self.draws, self.scores, self.ess, halves)

    @cached_property
    def implied(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Return (ratios (d,), shifts (d,)) of the draws, or None if they do not span all coordinates.

        A ratio is the sd of the draws over the one that their scores imply. A shift is their mean minus the implied
        one, in implied sds. The scores are regressed on the draws, s ~ -P (x - m). Exact draws of any density have P =
        inverse covariance and m = mean, since E[s] = 0 and E[s (x - mean)^T] = -I (Stein's identity). For a normal
        target P and m are those of the target, whatever the draws.
        """
        return implied(self.draws, self.scores)

    @cached_property
    def errors(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the standard errors (d,) of `implied` over resampled rows; 0 for particles."""
        if self.chains == 0 or self.implied is None:
            return np.zeros(self.d), np.zeros(self.d)
        rng = np.random.default_rng(0)
        found = []
        for _ in range(RESAMPLES):
            rows = rng.integers(self.n, size=self.n)
            found.append(implied(self.draws[rows], self.scores[rows]))
        found = [each for each in found if each is not None]
        if len(found) < RESAMPLES // 2:
            return np.full(self.d, np.inf), np.full(self.d, np.inf)
        wider = math.sqrt(self.n / self.ess)
        return tuple(wider * np.std([each[i] for each in found], axis=0) for i in (0, 1))


def effective(chains: np.ndarray) -> np.ndarray:
    """Return the effective number of draws (d,) of chains (chains, n, d)."""
    return np.array([ess(chains[:, :, j]) for j in range(chains.shape[-1])])


def disagreement(chains: np.ndarray) -> np.ndarray:
    """Return rank-normalised R-hat (d,) of chains (chains, n, d)."""
    return np.array([rhat(chains[:, :, j]) for j in range(chains.shape[-1])])
