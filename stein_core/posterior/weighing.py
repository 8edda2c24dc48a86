"""A last step after any run: Stein weights of its draws, or the few draws that stand for them best."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import nnls

from stein_core.base.arviz_api import from_groups
from stein_core.contract.spec import whole_number
from stein_core.contract.target import Target
from stein_core.posterior.discrepancy import gram_of
from stein_core.posterior.evidence import Evidence, Weighing
from stein_core.posterior.fitted import Fit, values_of
from stein_core.posterior.reading import check_finite, evidence_of

MOST = 4096  # draws: their kernel matrix has the square of that
RIDGE = 1e-6  # of the kernel's diagonal: of weights that are as good to six digits, the even ones are taken
SHOWN = 8  # coordinates in print


@dataclass(frozen=True, eq=False, repr=False)
class Weighed:
    """Hold draws with weights. Weights cannot widen draws: none of them is outside their hull.

    Args:
        evidence: the draws (n, d) with their scores, and what was found: `evidence.weighing`.
        target: the posterior, or None.
        made: the Fit that the draws come from, or None.
        rows: (n,) of thinning, the numbers of the chosen draws in the order of the choice; else None.
    """

    evidence: Evidence
    target: Target | None = None
    made: Fit | None = None
    rows: np.ndarray | None = None

    def __repr__(self) -> str:
        return f"<Weighed: {self.evidence.weighing.sentence}>"

    @property
    def draws(self) -> np.ndarray:
        """Return the draws (n, d), in unconstrained coordinates."""
        return self.evidence.draws

    @property
    def weights(self) -> np.ndarray:
        """Return the weights (n,): none is negative, and their sum is 1."""
        return self.evidence.weighing.weights

    @property
    def ksd(self) -> tuple[float, float]:
        """Return the kernel Stein discrepancy before and after, with each coordinate in sds of the draws."""
        return self.evidence.weighing.before, self.evidence.weighing.after

    @property
    def ess(self) -> float:
        """Return the effective number of draws, 1 / sum w^2."""
        return self.evidence.weighing.ess

    @property
    def mean(self) -> np.ndarray:
        """Return the weighted means (d,)."""
        return self.weights @ self.draws

    @property
    def sd(self) -> np.ndarray:
        """Return the weighted standard deviations (d,), without a correction for the number of draws."""
        return np.sqrt(self.weights @ (self.draws - self.mean) ** 2)

    @property
    def values(self) -> dict[str, np.ndarray]:
        """Return the draws by name, name -> (n, ...): sites of the model, or coordinates if there is no target."""
        if self.target is None:
            return {name: self.draws[:, j] for j, name in enumerate(self.evidence.names)}
        return values_of(self.target, self.draws)

    def to_arviz(self):
        """Return the draws as ArviZ's InferenceData (1.x: DataTree), with `log_weight` in `sample_stats`.

        The logarithm of a weight of 0 is minus infinity. Chains stay apart.
        """
        chains = max(self.evidence.chains, 1)
        apart = lambda rows: rows.reshape(chains, -1, *rows.shape[1:])  # noqa: E731
        with np.errstate(divide="ignore"):
            stats = {"log_weight": apart(np.log(self.weights))}
        if self.evidence.log_p is not None:
            stats["lp"] = apart(self.evidence.log_p)
        return from_groups(
            {"posterior": {name: apart(rows) for name, rows in self.values.items()}, "sample_stats": stats}
        )

    def __str__(self) -> str:
        names = self.evidence.names[:SHOWN]
        lines = [self.evidence.weighing.sentence, "", f"{'coordinate':>24}  {'mean':>10}  {'sd':>10}"]
        lines += [f"{name[:24]:>24}  {mean:>10.4g}  {sd:>10.4g}" for name, mean, sd in zip(names, self.mean, self.sd)]
        more = len(self.evidence.names) - SHOWN
        return "\n".join([*lines, *([f"... {more} more in `mean` and `sd`"] if more > 0 else [])])


def weigh(what: Any, target: Target | None = None, scores=None) -> Weighed:
    """Give draws the weights that bring them nearest to the posterior: black-box importance weights.

    They minimise w^T K w over w >= 0 with sum 1: Liu and Lee 2017, sec. 3. K is the Stein kernel of all pairs, with the
    base kernel (1 + |x - y|^2)^(-1/2) and each coordinate in sds of the draws. No density of the draws is needed.
    Weights cannot widen draws: a collapsed set still has no point outside its hull.

    Args:
        what: a Fit; draws (n, d) or (chains, n, d) of unconstrained theta; named values; or ArviZ's InferenceData.
        target: whose draws they are, if they are no Fit.
        scores: gradients of the log density at the draws, in their shape, if there is no target.

    Returns:
        The draws with their weights. `diagnose` takes it, too.

    Raises:
        ValueError: no scores, or some that are not finite; a coordinate without variance; fewer than 2 draws, or more
            than 4,096.
    """
    seen, gram = _paired(what, target, scores)
    weights = on_simplex(gram)
    found = Weighing("Stein weights", weights, float(np.sqrt(gram.mean())), float(np.sqrt(weights @ gram @ weights)))
    return Weighed(replace(seen, weighing=found), *_of(what, target))


def thin(what: Any, m: int, target: Target | None = None, scores=None) -> Weighed:
    """Choose the m draws that stand for the posterior best, one after the other: Stein thinning.

    Each choice makes the kernel Stein discrepancy of those chosen so far least: Riabiz et al. 2022, algorithm 1. A draw
    may be chosen again. The kernel is that of `weigh`. The chosen draws are no random draws, and none is outside the
    hull of all: what has collapsed stays so.

    Args:
        what, target, scores: as of `weigh`.
        m: how many are chosen, 1 to n.

    Returns:
        The m draws in the order of the choice, each of weight 1 / m. `rows` has their numbers.

    Raises:
        ValueError: an m that is not allowed, or as of `weigh`.
    """
    seen, gram = _paired(what, target, scores)
    rows = greedy(gram, whole_number("m", m, 1, seen.n))
    among = gram[np.ix_(rows, rows)]
    how, weights = f"Stein thinning to {len(rows):,} of {seen.n:,} draws", np.full(len(rows), 1 / len(rows))
    found = Weighing(how, weights, float(np.sqrt(gram.mean())), float(np.sqrt(among.mean())))
    few = replace(
        seen,
        draws=seen.draws[rows],
        scores=seen.scores[rows],
        log_p=None if seen.log_p is None else seen.log_p[rows],
        log_q=None,
        chains=0,
        law=math.nan,
        law_of_twice=math.nan,
        rest=None,
        weighing=found,
    )
    return Weighed(few, *_of(what, target), rows)


def _of(what, target) -> tuple[Target | None, Fit | None]:
    return (what.target, what) if isinstance(what, Fit) else (target, None)


def _paired(what, target, scores) -> tuple[Evidence, np.ndarray]:
    """Return the draws, and the Stein kernel (n, n) of all pairs."""
    seen = evidence_of(what, target, scores)
    if seen.scores is None:
        raise ValueError("scores = None; allowed: a Fit, draws with a target, or draws with scores.")
    check_finite("scores", seen.scores)
    if not 2 <= seen.n <= MOST:
        raise ValueError(f"there are {seen.n:,} draws; allowed: 2 to {MOST:,}, for example every tenth of a chain.")
    unit = seen.draws.std(axis=0)
    if constant := [name for name, sd in zip(seen.names, unit) if not sd > 0]:
        raise ValueError(f"all draws have the same {', '.join(constant[:5])}; allowed: coordinates that vary.")
    return seen, gram_of(seen.draws / unit, seen.scores * unit)


def on_simplex(gram: np.ndarray) -> np.ndarray:
    """Return the weights w (n,) that minimise w^T gram w over w >= 0 with sum 1.

    If x >= 0 minimises x^T gram x / 2 - sum x, then w = x / sum x: both have the same conditions of optimality. That x
    is the least squares solution of U x = U^-T 1, with gram = U^T U, which SciPy finds by active sets (Lawson and
    Hanson 1974). `RIDGE` of its diagonal is added to gram.

    Args:
        gram: (n, n), positive semidefinite.
    """
    unit = 1 / np.sqrt(gram.diagonal())  # the same problem, with ones on the diagonal
    root = cholesky(gram * unit * unit[:, None] + RIDGE * np.eye(len(gram)))
    x, _ = nnls(root, solve_triangular(root, unit, trans=1), maxiter=20 * len(gram))
    return unit * x / (unit @ x)


def greedy(gram: np.ndarray, m: int) -> np.ndarray:
    """Return the numbers (m,) of rows: each makes the sum of gram (n, n) over all pairs of the chosen ones least."""
    cost, rows = gram.diagonal() / 2, []
    for _ in range(m):
        rows.append(int(np.argmin(cost)))
        cost = cost + gram[rows[-1]]
    return np.array(rows)
