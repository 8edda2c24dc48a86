"""The recovery point on the page "1-D wave": the published table beside ours, which can be computed here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import panel as pn
import panel_material_ui as pmui

from stein_core.papers.recovery import PUBLISHED, SMI_PARTICLES, STEPS, recovery, recovery_points
from stein_core.sweep.grids import SWEEPS
from stein_core.sweep.keys import key_of
from stein_core.targets.data.datasets import WAVE_REGIONS, wave_region
from stein_core.targets.wave import dim_of
from steinlab.pages.wave.parts import CSS
from steinlab.pages.wave.widths import shipped_rows
from steinlab.server.background import in_background
from steinlab.server.jobs import SweepJob, store
from steinlab.server.limits import LIMITS
from steinlab.ui.groups import CHOOSE, Fold
from steinlab.ui.job_bar import MIDDLE, STILL, JobBar, Pausable

STOP = SWEEPS["recovery"].facts.stop
COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
ABOUT = (
    f"The table says how many particles SVGD needs for a higher LPPD than SMI with {SMI_PARTICLES} particles after "
    f"{STEPS:,} steps. It is the median over the seeds; *published* is table 4 of the SMI paper, with ten seeds."
)
INFLATED = (
    "The published code forgets to divide by m, so SVGD's LPPD is too high by ln m for each test point. "
    f"(Test points: {', '.join(f'{name} {wave_region(name).shape[1]}' for name in WAVE_REGIONS)}.) "
    "Switch on to reproduce it."
)


class Recovery:
    """post: takes news to the event loop; the page hands {"recovery": rows} to `on_rows`. refused: why a job failed.
    page: which the job gives way to."""

    def __init__(self, post: Callable[[dict], None], refused: Callable[[str], None], page: Pausable = STILL):
        self.post, self.refused = post, refused
        self.rows: dict[str, dict[str, Any]] | None = None  # those computed on this machine, by key
        self.column = pmui.Column(sizing_mode="stretch_width", margin=0)
        self.panel = Fold("Recovery point: SVGD particles that beat five of SMI", self.column).fold
        self.panel.param.watch(lambda event: self.open(), "active")
        self.jobs = JobBar("Compute here", "runs", self._job, self._ended, page)

    def open(self) -> None:
        """Filled when it is opened the first time: most visits never do."""
        if self.rows is not None or not self.panel.active:
            return
        self.rows = {}
        choice = {"size": "small", "variant": "outlined", "margin": (4, 8), "sx": CHOOSE, **MIDDLE}
        self.width = pmui.RadioButtonGroup(options={f"h = {h}": h for h in PUBLISHED}, value=5, **choice)
        counts = [count for count in COUNTS if count <= LIMITS.particles]
        self.seeds = pmui.IntSlider(label="Seeds", start=1, end=10, value=3, width=150, margin=(4, 16), **MIDDLE)
        self.most = pmui.DiscreteSlider(
            label="SVGD particles up to", options=counts, value=min(32, counts[-1]), width=180, margin=(4, 16), **MIDDLE
        )
        self.inflated = pmui.Switch(label="LPPD as in the published code, too high by ln m a point", margin=(8, 10))
        self.inflated.param.watch(lambda event: self.show(), "value")
        self.table, self.origin = (
            pn.pane.HTML("", margin=(4, 8)),
            pmui.Typography("", variant="caption", margin=(2, 10)),
        )
        self.show()  # before the browser has them: a busy browser can miss a change that comes right after
        text = {"variant": "caption", "sizing_mode": "stretch_width", "margin": (2, 10)}
        self.column[:] = [
            pmui.Typography(ABOUT, **text),
            self.table,
            self.origin,
            pmui.FlexBox(self.inflated, align_items="center"),
            pmui.Typography(INFLATED, **text),
            pmui.FlexBox(self.width, self.seeds, self.most, *self.jobs.widgets, align_items="center"),
        ]
        in_background(
            lambda: store().rows([key_of(recipe, STOP) for recipe in recovery(tuple(PUBLISHED))]),
            lambda rows: self.post({"recovery": rows}),
            lambda text: self.post({"alarm": text}),
        )

    def on_rows(self, rows: list[dict[str, Any]]) -> None:
        """Rows that are in the store, or have just come."""
        if new := {row["key"]: row for row in rows if row["key"] not in self.rows}:
            self.rows |= new
            self.show()

    def refresh(self) -> None:
        """Twice a second: how far the job is."""
        if self.jobs.job:
            self.on_rows(list(self.jobs.job.rows))
            self.jobs.refresh()

    def close(self) -> None:
        """The tab is closed."""
        self.jobs.cancel()

    def _job(self) -> SweepJob:
        counts = tuple(count for count in COUNTS if count <= self.most.value)
        return SweepJob(recovery((self.width.value,), counts, self.seeds.value), STOP)

    def _ended(self, job: SweepJob):
        self.on_rows(list(job.rows))  # some may have come since `refresh` has looked
        if job.state == "failed":
            self.refused(job.error)

    def show(self) -> None:
        """The table of what is known."""
        rows = {row["key"]: row for row in shipped_rows("recovery")} | self.rows
        self.table.object = table_of(list(rows.values()), self.inflated.value)
        self.origin.object = (
            f"Ours: {len(rows)} runs, {len(self.rows)} of them computed on this machine, the rest shipped. "
            f"{'' if self.inflated.value else apart(list(rows.values()))} *Compute here* repeats h = 5, or adds "
            "h = 100, which takes a CPU many hours."
        )


def table_of(rows: list[dict[str, Any]], inflated: bool) -> str:
    """The published recovery points and ours, as HTML."""
    ours, lines = recovery_points(rows, inflated), []
    heads = [*(f"{region}, {whose}" for whose in ("published", "ours") for region in WAVE_REGIONS), "seeds"]
    for width, published in PUBLISHED.items():
        mine = [row for row in rows if row["dim"] == dim_of(width)]
        most = max((row["particles"] for row in mine if row["method"] == "svgd"), default=0)
        seeds = len({row["seed"] for row in mine if row["method"] == "smi"})
        found = ours.get(width, {})
        cells = [text_of(published[region], COUNTS[-1]) for region in WAVE_REGIONS]
        cells += [text_of(found[region], most) if region in found else "–" for region in WAVE_REGIONS]
        named = (f'<td data-head="{head}">{cell}</td>' for head, cell in zip(heads, [*cells, seeds or "–"]))
        lines.append(f"<tr><td>h = {width}</td>{''.join(named)}</tr>")
    head = "".join(f"<th>{head}</th>" for head in heads)
    body = f"<thead><tr><th></th>{head}</tr></thead>{''.join(lines)}"
    return f'{CSS}<div class="scroll"><table class="wave">{body}</table></div>'


def apart(rows: list[dict[str, Any]]) -> str:
    """A sentence for each width where, inside the clusters, the worst run of SMI beats the best of SVGD."""
    said = []
    for width in PUBLISHED:
        smi, svgd = (
            [row["lppd_in"] for row in rows if row["dim"] == dim_of(width) and row["method"] == method]
            for method in ("smi", "svgd")
        )
        if smi and svgd and max(svgd) < min(smi):
            said.append(
                f"In, h = {width}: the best run of SVGD reaches {max(svgd):.1f}, the worst of SMI {min(smi):.1f}."
            )
    return " ".join(said)


def text_of(point: float | None, most: int) -> str:
    """A recovery point; None: beyond all that were tried."""
    return f"&gt; {most}" if point is None else f"{point:g}"
