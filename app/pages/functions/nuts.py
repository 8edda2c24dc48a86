"""NUTS on page "Function space": its band for the regression that is shown, and a job that computes it here."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import panel_material_ui as pmui

from stein_core import Recipe, Spec
from stein_core.papers.wave_nuts import Reference, load_reference
from stein_core.targets.small_networks import GRID
from steinlab.pages.functions.setup import TARGET, FunctionSetup
from steinlab.server.folders import ASSETS
from steinlab.stage.nuts_job import CHAINS, SAMPLES, WARMUP, NutsJob, made_here
from steinlab.ui.job_bar import MIDDLE, JobBar, Pausable

SHIPPED = ASSETS / "functions_nuts_50.npz"
AGREE = 1.05  # R-hat above which chains are said to disagree
OFFER = f"NUTS samples the posterior of these weights: {CHAINS} chains of {WARMUP} + {SAMPLES} steps."


class Sampled(NamedTuple):
    """What NUTS says: mean and sd of f on GRID, R-hat of f there, and when it was made."""

    mean: np.ndarray
    sd: np.ndarray
    r_hat: np.ndarray
    made: str


@lru_cache(maxsize=1)
def shipped() -> Reference:
    """Return the reference that comes with the app, for the page's default network and data."""
    return load_reference(SHIPPED)


def sampled(setup: FunctionSetup) -> Sampled | None:
    """Return NUTS's answer to the posterior of a setup if it is shipped or was computed here; None on the ring."""
    if setup.ring:
        return None
    found = made_here(TARGET[False], setup.posterior())
    if found is None and setup.posterior() == FunctionSetup().posterior():
        found = shipped()
    if found is None:
        return None
    values, about = found.values.reshape(-1, len(GRID)), found.about
    return Sampled(values.mean(axis=0), values.std(axis=0, ddof=1), np.asarray(about["r_hat"]), about["made"])


def job_of(setup: FunctionSetup) -> NutsJob:
    """Return the job that samples the posterior of a setup."""
    width, noise, prior, data = setup.posterior()
    spec = Spec(TARGET[False], method="map", options={"target.width": width})
    knobs = {"target.noise": noise, "target.prior_scale": prior, "target.data": data}
    return NutsJob(Recipe(spec, knobs), setup.posterior(), GRID)


def sentence(found: Sampled | None) -> str:
    """Return what is to be said of NUTS's band, or the offer to compute it."""
    if found is None:
        return OFFER
    apart = found.r_hat > AGREE
    text = f"NUTS ({found.made}): R-hat of f is at most {found.r_hat.max():.2f}, median {np.median(found.r_hat):.2f}"
    if not apart.any():
        return f"{text}: the chains agree."
    return f"{text}. **It is above {AGREE} at {apart.sum()} of {len(apart)} points: there the chains disagree.**"


class NutsPanel:
    """Hold the sentence, the button and the progress.

    Args:
        draw: gets the Sampled of what is shown, or None.
        failed: gets a sentence if the job has failed.
        page: which the job gives way to.
    """

    def __init__(self, draw: Callable[[Sampled | None], None], failed: Callable[[str], None], page: Pausable):
        self.draw, self.failed = draw, failed
        self.setup, self.known = FunctionSetup(), None
        self.text = pmui.Typography("", variant="body2", margin=(4, 10), **MIDDLE)
        self.job = JobBar("Compute NUTS here", "steps", lambda: job_of(self.setup), self._ended, page)
        self.row = pmui.FlexBox(self.text, *self.job.widgets, align_items="center")

    def show(self, setup: FunctionSetup) -> None:
        """Show the band of this setup if it is known; of the ring none is offered."""
        self.setup, self.known = setup, sampled(setup)
        self.row.visible = not setup.ring or self.job.active
        self.text.object = "" if setup.ring else sentence(self.known)
        self.draw(self.known)

    def refresh(self) -> None:
        """Say how far the job is, and show what another visitor's has found."""
        if self.known is None and not self.setup.ring and sampled(self.setup):
            self.show(self.setup)
        self.job.offered = not self.setup.ring and self.known is None
        self.job.refresh()

    def close(self) -> None:
        """Stop the job: the tab is closed."""
        self.job.cancel()

    def _ended(self, job: NutsJob):
        if job.state == "failed":
            self.failed(job.error)
        self.show(self.setup)
