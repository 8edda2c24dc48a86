"""Is a procedure right on average? It fits many data sets that the model itself made, in one program."""

from __future__ import annotations

import csv
import hashlib
import io
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from tqdm import tqdm

from stein_core.base.errors import short, unknown
from stein_core.contract.registry import GUIDES, METHODS
from stein_core.contract.spec import whole_number
from stein_core.posterior import rank_figure
from stein_core.posterior.fit import choices_of, keep_programs
from stein_core.posterior.many import DRAWS, fitted
from stein_core.posterior.ranks import Band, Named, band, curve, named, places
from stein_core.posterior.simulating import Simulator

OTHERS = ("laplace", "nuts")  # beside the registered methods
STARTS = 8  # draws of the prior, of which the likeliest begins the search for a mode
PIECE = 25  # data sets at a time


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
    """

    method: str
    names: tuple[str, ...]
    ranks: np.ndarray
    most: int
    failed: int
    seconds: float

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
        if not wrong:
            return f"{self.label} is calibrated on {n} data sets: every curve of ranks lies in its band.{lost}"
        head = f"{self.label} is not calibrated for {len(wrong)} of {len(found)} parameters, on {n} data sets.{lost}"
        return "\n".join([head, *(f"{name}: {one.sentence}" for name, one in wrong.items())])

    def __str__(self) -> str:
        return self.verdict

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict, the band, and the finding and curve of each parameter, for JSON."""
        facts = {"method": self.method, "ok": self.ok, "verdict": self.verdict, "n": len(self.ranks)}
        facts |= {"label": self.label, "draws": self.most, "failed": self.failed, "seconds": self.seconds}
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
    seed: int = 0,
    progress: bool | Callable[[int, int], None] = True,
    store: str | Path | None = None,
    kwargs: Mapping[str, Any] | None = None,
    **keywords,
) -> Calibration:
    """Fit data sets that the model made, and rank each true value among the draws of its fit.

    Truths come from the prior and data from the truths. If the draws are those of the posterior, the ranks are uniform
    (Talts et al. 2018; for variational methods Yao et al. 2018). Data are arguments: all data sets are fitted by one
    program, side by side. Each begins at its own mode and curvature, which are also "laplace". If its draws contradict
    them, a second round takes its coordinates from the draws of the first, as `fit` does.

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
        seed: of truths, data and runs.
        progress: show a bar; or what is called with the data sets that are done, and all.
        store: a file.npz that is written after each piece. If it is there, the same call goes on with it.
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
    steps, rounds = whole_number("steps", steps, 4, 10**7), whole_number("rounds", rounds, 1, 10)
    chosen = choices_of(method if method in METHODS else "smi", particles, guide, "whitened", knobs, seed)
    keep_programs()
    tell = progress if callable(progress) else _bar(progress)
    with jax.enable_x64():
        made = Simulator(model, arguments, {**keywords, **(kwargs or {})})
        truths, data = made.simulate(seed, n)
        run = fitted(made, method, made.starts(seed + 1, STARTS), chosen, guide, steps, rounds)
        points = method in METHODS and not GUIDES[guide or METHODS[method].facts.guides[0]].facts.has_density
        most = chosen["method.particles"] if points else DRAWS
        kept = _Store(
            store, repr((method, guide, steps, rounds, seed, sorted(chosen.items()), made.names)), truths, data
        )
        ranks = kept.ranks
        while len(ranks) < n:
            rows = np.minimum(len(ranks) + np.arange(min(PIECE, n)), n - 1)  # a shorter piece would be another program
            draws = np.asarray(run(np.uint32(seed + 2 + rows), [each[rows] for each in data]))
            below = (draws < truths[rows][:, None]).sum(axis=1)
            now = np.where(np.isfinite(draws).all(axis=(1, 2))[:, None], below, -1)
            ranks = np.concatenate([ranks, now[: n - len(ranks)]])
            kept.keep(ranks)
            tell(len(ranks), n)
    good = (ranks >= 0).all(axis=1)
    if not good.any():
        raise ValueError(f"none of the {n} fits is finite; allowed: a model with finite densities of its own data.")
    return Calibration(method, made.names, ranks[good], most, int((~good).sum()), time.perf_counter() - began)


class _Store:
    """A file with the ranks that are done. ranks: (done, k)."""

    def __init__(self, file, settings: str, truths: np.ndarray, data: list[np.ndarray]):
        self.file = None if file is None else Path(file)
        parts = [settings.encode(), truths.tobytes(), *(np.ascontiguousarray(each).tobytes() for each in data)]
        self.key = hashlib.sha256(b"".join(parts)).hexdigest()
        self.ranks = np.zeros((0, truths.shape[1]), int)
        if self.file is None:
            return
        if self.file.suffix != ".npz":
            raise ValueError(f"store = {short(str(file))!r}; allowed: a name that ends in .npz.")
        if self.file.exists():
            with np.load(self.file, allow_pickle=False) as kept:
                if "key" not in kept or str(kept["key"]) != self.key:
                    raise ValueError(f"store = {short(str(file))!r} is of another call; allowed: a new name, or none.")
                self.ranks = kept["ranks"]

    def keep(self, ranks: np.ndarray) -> None:
        """Write the ranks, at once or not at all."""
        if self.file is not None:
            with tempfile.NamedTemporaryFile(dir=self.file.parent, suffix=".npz", delete=False) as part:
                np.savez(part, key=self.key, ranks=ranks)
            Path(part.name).replace(self.file)


def _bar(on: bool) -> Callable[[int, int], None]:
    """Return tell(done, total), which moves a bar on a terminal."""
    bar = tqdm(unit="data set", disable=None if on else True, leave=False)

    def tell(done, total):
        bar.total = total
        bar.update(done - bar.n)

    return tell
