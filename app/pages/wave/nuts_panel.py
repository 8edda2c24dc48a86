"""NUTS on the page "1-D wave": its band for what is shown, a sentence about it, and a job that computes it here."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import panel_material_ui as pmui

from stein_core.targets.wave import dim_of
from steinlab.pages.wave.nuts import Compared, NutsJob, compared, reference_of, shipped, shipped_widths
from steinlab.pages.wave.parts import nuts_sentence
from steinlab.pages.wave.setup import WaveSetup
from steinlab.server.background import in_background
from steinlab.ui.job_bar import MIDDLE, STILL, JobBar, Pausable


class NutsPanel:
    """found: gets what is known of each network, a Compared or None. post: takes news to the event loop; the page then
    hands {"nuts": ...} to `on_found` and {"gaps": ...} to `gaps`. failed: why there is none.
    page: which the job gives way to."""

    def __init__(
        self,
        found: Callable[[list], None],
        post: Callable[[dict], None],
        failed: Callable[[str], None],
        page: Pausable = STILL,
    ):
        self.found, self.post, self.failed = found, post, failed
        self.networks: tuple[WaveSetup, ...] = ()
        self.known: list[Compared | None] = []
        self.asked = None  # what `known` belongs to, or will
        self.gaps: dict[int, float] = {}  # number of weights -> width between the clusters, of the shipped references
        self.text = pmui.Typography("", variant="body2", margin=(4, 10), **MIDDLE)
        self.job = JobBar("Compute NUTS here", "steps", self._make, self._ended, page)
        self.widgets = [self.text, *self.job.widgets]

    def show(self, networks: Sequence[WaveSetup]) -> None:
        """Compare with NUTS where its answer to these posteriors is known; measuring takes a moment, so on a thread."""
        references = [reference_of(network) for network in networks]
        asked = [(n.posterior(), n.probability, n.noisy, r is None) for n, r in zip(networks, references)]
        if asked == self.asked:
            return
        same = self.asked and [one[0] for one in asked] == [one[0] for one in self.asked] and any(references)
        self.networks, self.asked = tuple(networks), asked
        if not same:  # else the old band stays until the new one is there
            self._draw([None] * len(networks))
        if any(references):
            in_background(
                lambda: (asked, [r and compared(r, n) for n, r in zip(networks, references)]),
                lambda found: self.post({"nuts": found}),
                lambda text: self.post({"alarm": text}),
                lambda: asked is self.asked,
            )
        if not self.gaps:
            in_background(
                lambda: {dim_of(h): compared(shipped(h), WaveSetup(width=h)).readout.gap for h in shipped_widths()},
                lambda gaps: self.post({"gaps": gaps}),
                lambda text: self.post({"alarm": text}),
                lambda: asked is self.asked and not self.gaps,
            )

    def on_found(self, asked: list, known: list[Compared | None]) -> None:
        """What was measured; of other settings than the present ones it is dropped."""
        if asked == self.asked:
            self._draw(known)

    def refresh(self) -> None:
        """Twice a second: how far the job is, and what another visitor's has found."""
        self.show(self.networks)
        self.job.offered = self._unknown() is not None
        self.job.refresh()

    def close(self) -> None:
        """The tab is closed."""
        self.asked = None
        self.job.cancel()

    def _draw(self, known):
        self.known = known
        self.found(known)
        self.text.object = "\n\n".join(
            (f"h = {network.width}: " if len(known) > 1 else "") + sentence
            for one, network in zip(known, self.networks)
            if (sentence := "" if one is None and reference_of(network) else nuts_sentence(one, network))
        )
        self.refresh()

    def _unknown(self) -> WaveSetup | None:
        """The first network whose reference is not known."""
        return next((network for network in self.networks if reference_of(network) is None), None)

    def _make(self) -> NutsJob | None:
        unknown = self._unknown()
        return NutsJob(unknown) if unknown else None

    def _ended(self, job: NutsJob):
        if job.state == "failed":
            self.failed(job.error)
        self.show(self.networks)
