"""Is a procedure right on average? It fits many data sets that the model itself made, in one program."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from tqdm import tqdm

from stein_core.base.arviz_api import from_groups
from stein_core.base.errors import unknown
from stein_core.contract.registry import GUIDES, METHODS
from stein_core.contract.spec import whole_number
from stein_core.posterior import rank_figure
from stein_core.posterior.fit import choices_of, keep_programs
from stein_core.posterior.many import DRAWS, of_posterior
from stein_core.posterior.procedure import PIECE, Procedure, Store, ranks_of, rows_of
from stein_core.posterior.ranks import Band, Named, band, curve, named, places
from stein_core.posterior.simulating import Simulator
from stein_core.sweep.work import run_all

OTHERS = ("laplace", "nuts")  # beside the registered methods
AROUND = ("prior", "posterior")
STARTS = 8  # draws of the prior, or of the posterior, of which the likeliest begins the search for a mode


@dataclass(frozen=True)
class Calibration:
    """Hold the ranks of truths among draws, for each parameter.

    Args:
        method: what made the draws.
        names: of the parameters.
        ranks: (n, k) numbers of draws below the truth, 0 to `most`; of the data sets whose fit is finite.
        most: number of draws.
        failed: number of data sets whose fit is not finite.
        seconds: that it took; those of an earlier run that it went on with are not counted.
        around: whether truths are of the "prior", or of the "posterior" of the model's own data.
    """

    method: str
    names: tuple[str, ...]
    ranks: np.ndarray
    most: int
    failed: int
    seconds: float
    around: str = "prior"

    @property
    def label(self) -> str:
        """What the method is called."""
        return {"laplace": "Laplace", "nuts": "NUTS"}.get(self.method) or METHODS[self.method].label

    @property
    def band(self) -> Band:
        """Where the curves of a calibrated procedure lie."""
        return band(len(self.ranks), len(self.names))

    @property
    def curves(self) -> np.ndarray:
        """The empirical distribution of each parameter's ranks (k, places) at `band.at`."""
        u = places(self.ranks, self.most)
        return np.stack([curve(column, self.band.at) for column in u.T])

    @property
    def findings(self) -> dict[str, Named]:
        """What the ranks of each parameter say."""
        columns = zip(self.names, self.ranks.T)
        return {name: named(column, self.most, len(self.names)) for name, column in columns}

    @property
    def ok(self) -> bool:
        """Whether every parameter is calibrated, and every fit is finite."""
        return not self.failed and all(one.kind == "calibrated" for one in self.findings.values())

    @property
    def verdict(self) -> str:
        """One sentence on the procedure, and one for each parameter that is wrong."""
        found, n = self.findings, len(self.ranks)
        wrong = {name: one for name, one in found.items() if one.kind != "calibrated"}
        lost = f" {self.failed} fits are not finite." * bool(self.failed)
        sets = f"{n} data sets" + " around the posterior" * (self.around == "posterior")
        if not wrong:
            return f"{self.label} is calibrated on {sets}: every curve of ranks lies in its band.{lost}"
        head = f"{self.label} is not calibrated for {len(wrong)} of {len(found)} parameters, on {sets}.{lost}"
        return "\n".join([head, *(f"{name}: {one.sentence}" for name, one in wrong.items())])

    def __str__(self) -> str:
        return self.verdict

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict, the band, and the finding and curve of each parameter, for JSON."""
        facts = {"method": self.method, "ok": self.ok, "verdict": self.verdict, "n": len(self.ranks)}
        facts |= {
            "label": self.label,
            "around": self.around,
            "draws": self.most,
            "failed": self.failed,
            "seconds": self.seconds,
        }
        facts["band"] = {key: each.tolist() for key, each in self.band._asdict().items()}
        each = zip(self.findings.items(), self.curves)
        return facts | {"parameters": {name: one._asdict() | {"curve": curve.tolist()} for (name, one), curve in each}}

    def to_html(self, path: str | Path | None = None) -> str:
        """Return a page with a curve of ranks for each parameter; nothing is loaded from elsewhere.

        Args:
            path: where to write it, too.
        """
        page = rank_figure.to_html(self.to_dict())
        if path is not None:
            Path(path).write_text(page, encoding="utf-8")
        return page

    def to_arviz(self) -> Any:
        """Return the places of truths among draws, 0 to 1, as ArviZ's group `prior_sbc`, for its `plot_ecdf_pit`.

        It is an InferenceData (ArviZ 1.x: DataTree), with one chain of n.
        """
        rows = places(self.ranks, self.most)
        return from_groups({"prior_sbc": {name: rows[None, :, j] for j, name in enumerate(self.names)}})

    def to_csv(self) -> str:
        """Return the ranks as CSV: a column for each parameter, a row for each data set."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.names)
        writer.writerows(self.ranks.tolist())
        return text.getvalue()


def calibrate(
    model: Callable,
    *arguments,
    method: str = "smi",
    n: int = 200,
    particles: int | None = None,
    steps: int = 400,
    rounds: int = 2,
    knobs: Mapping[str, Any] | None = None,
    guide: str | None = None,
    around: str = "prior",
    seed: int = 0,
    progress: bool | Callable[[int, int], None] = True,
    store: str | Path | None = None,
    executor: Executor | None = None,
    kwargs: Mapping[str, Any] | None = None,
    **keywords,
) -> Calibration:
    """Fit data sets that the model made, and rank each true value among the draws of its fit.

    Truths come from the prior, or from the posterior, and data from the truths. If the draws are those of the
    posterior, the ranks are uniform (Talts et al. 2018; for variational methods Yao et al. 2018). Data are arguments:
    all data sets are fitted by one program, side by side. Each begins at its own mode and curvature, which are also
    "laplace". If its draws contradict them, a second round takes its coordinates from the draws of the first, as `fit`
    does.

    It takes 5 draws of each guide a step, and fewer steps than `fit`: the width of SVGD is then 2 to 4 % too small.

    Args:
        model: a callable of NumPyro statements.
        arguments, keywords: of the model. What observed sites read is replaced by simulated data of the same shape.
        method: a registered method; or "laplace" or "nuts" (exact up to its length: 500 + 1,000 steps).
        n: number of data sets.
        particles: how many; by default 100 points for SVGD, else 20.
        steps: of a round. Each quarter has a smaller step size: 0.1, 0.03, 0.01, 0.003 standard deviations.
        rounds: of coordinates, at most.
        knobs: as for `fit`.
        guide: name of the guide; by default the method's own. For SMI that is a normal with independent coordinates,
            not the full one that `fit` takes.
        around: "prior", or "posterior": truths are then draws of the posterior of the model's data (by NUTS), and each
            fit takes these data and the simulated ones. It says how right a method is near these data (Säilynoja et
            al. 2025, posterior SBC).
        seed: of truths, data and runs.
        progress: show a bar; or what is called with the data sets that are done, and all.
        store: a file.npz that is written after each piece. If it is there, the same call goes on with it.
        executor: any of concurrent.futures with processes, for example Dask's `client.get_executor(pure=False)`. Each
            worker compiles the program once. None for this process.
        kwargs: further keyword arguments of the model, which may have the names of these settings.

    Returns:
        The Calibration.

    Raises:
        ValueError: a wrong name or value; a model without data, see `Simulator`; no finite fit; a store of another
            call.
    """
    began, n = time.perf_counter(), whole_number("n", n, 20, 100_000)
    if method not in (*METHODS, *OTHERS):
        raise unknown("method", method, (*METHODS, *OTHERS))
    if around not in AROUND:
        raise unknown("around", around, AROUND)
    steps, rounds = whole_number("steps", steps, 4, 10**7), whole_number("rounds", rounds, 1, 10)
    chosen = choices_of(method if method in METHODS else "smi", particles, guide, "whitened", knobs, seed)
    keep_programs()
    tell = progress if callable(progress) else _bar(progress)
    named_arguments = {**keywords, **(kwargs or {})}
    with jax.enable_x64():
        made = Simulator(model, arguments, named_arguments, joint=around == "posterior")
        starts = made.starts(seed + 1, STARTS)
        thetas = of_posterior(made, starts, seed, n) if around == "posterior" else None
        truths, data = made.simulate(seed, n, thetas)
    kept = Store(
        store, repr((method, guide, steps, rounds, around, seed, sorted(chosen.items()), made.names)), truths, data
    )
    starts = starts if thetas is None else thetas[:STARTS]
    procedure = Procedure(
        kept.key, model, arguments, named_arguments, around, method, starts, chosen, guide, steps, rounds, seed
    )
    pieces = [rows_of(k, n) for k in range(-(-len(kept.ranks) // PIECE), -(-n // PIECE))]
    jobs = [(procedure, k, truths[k], [each[k] for each in data]) for k in pieces]

    def take(job, ranks):
        kept.put(int(job[1][0]) // PIECE, ranks[: n - int(job[1][0])])
        tell(kept.count, n)

    if executor is None:
        with jax.enable_x64():
            run = procedure.of(made)
        for job in jobs:
            take(job, ranks_of(job, run))
    else:
        run_all(jobs, lambda job, stopped: ranks_of(job), ranks_of, take, executor)
    ranks = kept.ranks
    good = (ranks >= 0).all(axis=1)
    if not good.any():
        raise ValueError(f"none of the {n} fits is finite; allowed: a model with finite densities of its own data.")
    points = method in METHODS and not GUIDES[guide or METHODS[method].facts.guides[0]].facts.has_density
    most = chosen["method.particles"] if points else DRAWS
    return Calibration(method, made.names, ranks[good], most, int((~good).sum()), time.perf_counter() - began, around)


def _bar(on: bool) -> Callable[[int, int], None]:
    """Return tell(done, total), which moves a bar on a terminal."""
    bar = tqdm(unit="data set", disable=None if on else True, leave=False)

    def tell(done, total):
        bar.total = total
        bar.update(done - bar.n)

    return tell
