"""A calibration in pieces: what fits some data sets in any process, and a file of the ranks that are done."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from stein_core.base.errors import short
from stein_core.posterior.many import fitted
from stein_core.posterior.simulating import Simulator

PIECE = 25  # data sets at a time


def rows_of(piece: int, n: int) -> np.ndarray:
    """Return the data sets of a piece; the last one repeats its last data set, since a shorter one would be another
    program."""
    return np.minimum(piece * PIECE + np.arange(min(PIECE, n)), n - 1)


class Procedure(NamedTuple):
    """What fits data sets, so that another process can make it. key: of the call; the others as in `calibrate`."""

    key: str
    model: Callable
    arguments: tuple
    keywords: dict[str, Any]
    around: str
    method: str
    starts: np.ndarray
    chosen: dict[str, Any]
    guide: str | None
    steps: int
    rounds: int
    seed: int

    def of(self, model: Simulator) -> Callable:
        """Return what fits data sets of the model, which this describes."""
        return fitted(model, self.method, self.starts, self.chosen, self.guide, self.steps, self.rounds)

    def made(self) -> Callable:
        """Return the same from the description alone; the last one of this process is kept."""
        if self.key not in _made:
            _made.clear()
            joint = self.around == "posterior"
            _made[self.key] = self.of(Simulator(self.model, self.arguments, self.keywords, joint))
        return _made[self.key]


_made: dict[str, Callable] = {}


def ranks_of(job: tuple[Procedure, np.ndarray, np.ndarray, list[np.ndarray]], run: Callable | None = None):
    """Return the ranks (b, k) of truths (b, k) among the draws of their fits; -1 where a draw is not finite.

    Args:
        job: the procedure, which data sets these are, their truths (b, k), and their data.
        run: what fits them, or None: it is made from the description.
    """
    procedure, rows, truths, data = job
    with jax.enable_x64():
        draws = np.asarray((run or procedure.made())(np.uint32(procedure.seed + 2 + rows), data))
    below = (draws < truths[:, None]).sum(axis=1)
    return np.where(np.isfinite(draws).all(axis=(1, 2))[:, None], below, -1)


class Store:
    """The ranks that are done, and the file that keeps them. ranks: (done, k), without a gap."""

    def __init__(self, file, settings: str, truths: np.ndarray, data: list[np.ndarray]):
        self.file = None if file is None else Path(file)
        parts = [settings.encode(), truths.tobytes(), *(np.ascontiguousarray(each).tobytes() for each in data)]
        self.key = hashlib.sha256(b"".join(parts)).hexdigest()
        self.ranks, self._later = np.zeros((0, truths.shape[1]), int), {}
        if self.file is None:
            return
        if self.file.suffix != ".npz":
            raise ValueError(f"store = {short(str(file))!r}; allowed: a name that ends in .npz.")
        if self.file.exists():
            with np.load(self.file, allow_pickle=False) as kept:
                if "key" not in kept or str(kept["key"]) != self.key:
                    raise ValueError(f"store = {short(str(file))!r} is of another call; allowed: a new name, or none.")
                self.ranks = kept["ranks"]

    @property
    def count(self) -> int:
        """Return how many data sets are done."""
        return len(self.ranks) + sum(map(len, self._later.values()))

    def put(self, piece: int, ranks: np.ndarray) -> None:
        """Take the ranks of a piece, and write all that are done without a gap, at once or not at all."""
        self._later[piece] = ranks
        while len(self.ranks) % PIECE == 0 and (now := self._later.pop(len(self.ranks) // PIECE, None)) is not None:
            self.ranks = np.concatenate([self.ranks, now])
        if self.file is not None:
            with tempfile.NamedTemporaryFile(dir=self.file.parent, suffix=".npz", delete=False) as part:
                np.savez(part, key=self.key, ranks=self.ranks)
            Path(part.name).replace(self.file)
