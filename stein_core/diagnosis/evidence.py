"""What a check reads, and what it finds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from stein_core.density import in_precision_of, log_densities
from stein_core.diagnosis.regression import Direction, extremes, implied
from stein_core.errors import short
from stein_core.facts import Facts
from stein_core.fitting import Fit
from stein_core.registry import METHODS, Registry
from stein_core.types import Mode, Target

RESAMPLES = 40  # bootstrap sets of rows, for standard errors


@dataclass(frozen=True)
class CheckFacts(Facts):
    """Say what a check needs of the evidence, and what it may do.

    Args:
        needs: names of the arrays that must be there.
        judges: whether it can call the draws wrong.
    """

    needs: tuple[str, ...] = ()
    judges: bool = True


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
    """

    value: float
    expected: float
    error: float
    wrong: bool | None
    sentence: str
    each: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
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
        rest: the force that is left, a share of one step's attraction, see `resting.force_left`; or None.
        noisy: whether it is the mean of estimates, as of guides, or with mini-batches.
        reference: (chains, k, d) draws that are right, for example of a long run of NUTS; or None.
        modes: all that the search for the start has found, of `types.Mode`; or None.
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
    modes: tuple[Mode, ...] | None = None

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
        """Return r_j (d,) = -sum_l s_lj (x_lj - mean_j) / (n - 1) and its standard errors (d,), 0 for particles.

        The mean of r_j is the Stein trace r.
        """
        each = -self.scores * (self.draws - self.draws.mean(axis=0))
        error = np.maximum(each.std(axis=0), math.sqrt(2.0)) / math.sqrt(self.ess) * (self.chains > 0)
        return each.sum(axis=0) / max(self.n - 1, 1), error

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
    import arviz  # not at the top: it takes a second

    return np.array([float(arviz.ess(chains[:, :, j])) for j in range(chains.shape[-1])])


def disagreement(chains: np.ndarray) -> np.ndarray:
    """Return rank-normalised R-hat (d,) of chains (chains, n, d)."""
    import arviz  # not at the top: it takes a second

    return np.array([float(arviz.rhat(chains[:, :, j])) for j in range(chains.shape[-1])])


def evidence_of(what: Any, target: Target | None, scores=None, particles: bool = False) -> Evidence:
    """Return the Evidence of a Fit, of draws with or without a target, or of an InferenceData.

    Args:
        what: a Fit; draws (n, d) or (chains, n, d) of unconstrained theta; named values of a model, (n, ...) each; or
            ArviZ's InferenceData.
        target: whose draws they are; None for a Fit, or if nobody knows.
        scores: of the draws, in their shape, if there is no target.
        particles: whether the draws are particles, for example of SVGD, and no random draws. They have no noise.

    Raises:
        ValueError: a shape that does not fit, a row that is not finite, a site without values, or particles in chains.
    """
    if isinstance(what, Evidence):
        return what
    if isinstance(what, Fit):
        log_p, found = log_densities(what.target, what.draws)
        chains = 0 if what.log_q is None else 1
        laws = [_law(what, times) if chains == 0 else math.nan for times in (1, 2)]
        known = what.draws, what.target.coordinates, found, log_p, what.log_q, chains, *laws
        noisy = what.log_q is not None or what.target.minibatch is not None
        return Evidence(*known, rest=what.rest, noisy=noisy, modes=what.target.modes or None)
    draws, chains, named = _draws(what, target)
    if particles and chains > 1:
        raise ValueError(f"particles = True, but the draws are {chains} chains; allowed: particles (n, d).")
    chains = 0 if particles else chains
    check_finite("draws", draws)
    names = target.coordinates if target else named or tuple(f"x{i + 1}" for i in range(draws.shape[1]))
    if target is not None:
        log_p, scores = log_densities(target, draws)
        return Evidence(draws, names, scores, log_p, None, chains, modes=target.modes or None)
    if scores is not None:
        scores, shape = np.asarray(scores, float), getattr(what, "shape", draws.shape)
        if scores.shape not in (shape, draws.shape):
            raise ValueError(f"scores have shape {scores.shape}; allowed: that of the draws, {shape}.")
        scores = scores.reshape(draws.shape)
    return Evidence(draws, names, scores, None, None, chains)


def check_finite(name: str, rows: np.ndarray) -> None:
    """Raise a ValueError with the first place of rows (n, d) that is not finite."""
    if len(bad := np.argwhere(~np.isfinite(rows))):
        row, column = bad[0]
        raise ValueError(f"{name}: row {row}, column {column} is {rows[row, column]}; allowed: finite numbers.")


def reference_of(reference: Any, d: int) -> np.ndarray:
    """Return a reference as (chains, k, d).

    Args:
        reference: (k, d) or (chains, k, d).
        d: coordinates of the draws.

    Raises:
        ValueError: another shape, fewer than 4 rows, or a number that is not finite.
    """
    table = np.asarray(reference, float)
    if table.ndim not in (2, 3) or table.shape[-1] != d or table.size < 4 * d:
        raise ValueError(
            f"reference has shape {table.shape}; allowed: (k, {d}) or (chains, k, {d}), as the draws have {d} "
            "coordinates, and at least 4 rows."
        )
    check_finite("reference", table.reshape(-1, d))
    return table.reshape(-1, *table.shape[-2:])


def _draws(what, target) -> tuple[np.ndarray, int, tuple[str, ...] | None]:
    """Return draws (n, d), the number of chains, and the names of the columns if the draws have names."""
    posterior = getattr(what, "posterior", None)
    if posterior is not None:  # InferenceData
        known = {str(name): np.asarray(posterior[name].values, float) for name in posterior.data_vars}
        chains = next(iter(known.values())).shape[0]
        what = {name: values.reshape(-1, *values.shape[2:]) for name, values in known.items()}
    elif isinstance(what, Mapping):
        chains, what = 1, {name: np.asarray(values, float) for name, values in what.items()}
    else:
        table = np.asarray(what, float)
        if table.ndim not in (2, 3) or not table.size:
            raise ValueError(f"draws have shape {table.shape}; allowed: (n, d) or (chains, n, d).")
        chains = table.shape[0] if table.ndim == 3 else 1
        table = table.reshape(-1, table.shape[-1])
        if target is not None and table.shape[1] != target.dim:
            raise ValueError(f"draws have {table.shape[1]} columns; {target} has {target.dim} coordinates.")
        return table, chains, None
    if target is None or target.unconstrain is None:
        columns = [values.reshape(len(values), -1) for values in what.values()]
        if len({len(each) for each in columns}) > 1:
            sizes = ", ".join(f"{name} {len(each)}" for name, each in zip(what, columns))
            raise ValueError(f"the sites have different numbers of draws: {sizes}; allowed: the same of each.")
        names = tuple(
            name + (str(list(place)) if place else "")
            for name, values in what.items()
            for place in np.ndindex(*values.shape[1:])
        )
        return np.concatenate(columns, axis=1), chains, names
    with in_precision_of(target):
        try:
            rows = {name: jnp.asarray(values, float) for name, values in what.items()}
            theta = jax.jit(jax.vmap(target.unconstrain))(rows)
        except KeyError as error:
            raise ValueError(f"draws have no values of {short(error)}; there are: {', '.join(what)}.") from None
    return np.asarray(theta), chains, None


def _law(fit: Fit, times: int) -> float:
    """Return the Stein trace of the method's law with so many times the particles; NaN if there is none."""
    spec = fit.recipe.spec
    knobs = {name: knob.default for name, knob in spec.knobs().items()} | dict(fit.recipe.knobs)
    return float(METHODS[spec.method].facts.law(spec.dim, times * len(fit.draws), knobs))
