"""NUTS on the page "1-D wave": the shipped references, and runs of it in the background."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from stein_core import Recipe, Spec
from stein_core.base.bands import Band
from stein_core.papers.wave_nuts import Reference, load_reference
from stein_core.targets.wave import GRID, dim_of
from steinlab.pages.wave.measures import AT, Readout, measure
from steinlab.pages.wave.setup import WaveSetup
from steinlab.server.folders import ASSETS
from steinlab.stage import nuts_job

AGREE = 1.05  # R-hat above which chains are said to disagree


class Compared(NamedTuple):
    """A reference under a setup: its bands, its numbers, R-hat of f on the grid and each chain's mean (chains, k)."""

    wide: Band
    half: Band
    readout: Readout
    r_hat: np.ndarray
    chains: np.ndarray
    about: dict

    @property
    def disagree(self) -> np.ndarray:
        """Where on the grid the chains disagree."""
        return self.r_hat > AGREE


@lru_cache(maxsize=32)
def shipped(width: int) -> Reference | None:
    """The reference that comes with the app, for the paper's data, noise and prior; None for most widths."""
    file = ASSETS / f"wave_nuts_{width}.npz"
    return load_reference(file) if file.exists() else None


def shipped_widths() -> list[int]:
    """The widths that have a shipped reference."""
    return sorted(int(file.stem.rsplit("_", 1)[1]) for file in ASSETS.glob("wave_nuts_*.npz"))


def reference_of(setup: WaveSetup) -> Reference | None:
    """NUTS's answer to this very posterior, where it is known."""
    made = nuts_job.made_here("wave", setup.posterior())
    if made is None and setup.posterior() == WaveSetup(width=setup.width).posterior():
        made = shipped(setup.width)
    return made


def compared(reference: Reference, setup: WaveSetup) -> Compared:
    """A reference measured as the methods are; between grid points its functions are taken as straight."""
    flat = reference.values.reshape(-1, len(reference.x))
    values = np.stack([np.interp(AT, reference.x, row) for row in flat])
    r_hat = np.asarray(reference.about["r_hat"])
    return Compared(*measure(values, setup), r_hat, reference.values.mean(axis=1), reference.about)


class NutsJob(nuts_job.NutsJob):
    """NUTS on the posterior of a setup."""

    def __init__(self, setup: WaveSetup):
        width, noise, prior, data = setup.posterior()
        knobs = {"target.noise": noise, "target.prior_scale": prior, "target.data": data}
        super().__init__(Recipe(Spec("wave", dim_of(width), "map"), knobs), setup.posterior(), GRID)
        self.setup = setup
