"""Page "1-D wave": what each method does not know, live, against NUTS."""

from __future__ import annotations

import csv
import html
import io
from dataclasses import replace
from typing import Any

import numpy as np
import panel as pn
import panel_material_ui as pmui

from app.controls import WIDTH, place, widget
from app.jobs import LINE, in_background
from app.stream import Mailbox, Streamer
from app.wave_figures import Wave, Widths, shipped_widths
from app.wave_nuts import NutsJob, compared, reference_of, shipped
from app.wave_nuts import shipped_widths as nuts_widths
from app.wave_parts import BUTTON, CHOICE, HELP, KEY, NO_SWEEP, OWN, PRESETS, WIDTHS_KEY, Pulse, Upload, nuts_sentence, table
from app.wave_session import WaveSession
from app.wave_setup import CAPACITIES, PAPER, SHOWN, WaveSetup, all_knobs, label_of, read_points, used_by
from stein_core import device_name
from stein_core.wave import GRID, WIDTHS, dim_of

ORDER = (
    "method.particles", "method.step_size", "method.alpha", "target.noise", "target.prior_scale", "kernel.name",
    "bandwidth.rule", "bandwidth.factor", "method.force_scale", "method.horizon", "method.cycles", "method.power",
    "init.spread", "guide.width",
)  # fmt: skip
PACE = [1, 5, 20, 100, 1000]


class WavePage:
    """See `app.shell` for the contract of a page. setup: what is shown; the session trains it."""

    def __init__(self, shell, query: dict[str, str]):
        self.shell, self.document = shell, pn.state.curdoc
        self.setup, problems = WaveSetup.from_query(query)
        self.quiet = self.shown = False
        self.job: NutsJob | None = None
        self.nuts = None  # Compared, where the reference of this posterior is known
        self.known = None  # (posterior, probability, noisy) that `nuts` belongs to
        self.shipped, self.here, self.nuts_gaps = shipped_widths(), {}, {}
        self.playing, self.status = True, ""
        later = self.document.add_next_tick_callback
        self.wave, self.widths = Wave(self.touched), Widths()
        self.pulse = Pulse(self.heard)
        self.streamer = Streamer(self.draw, later)
        self.post = Mailbox(later, self.told)
        self.session = WaveSession(self.setup, self.streamer, self.post)
        self._make_controls()
        warning = pmui.Alert(pn.pane.HTML(html.escape(" ".join(problems))), severity="warning", title="In this link", closeable=True)
        self.sidebar = [
            self.preset, self.about, self.methods, self.width, self.draws, *(self.knobs[name] for name in ORDER),
            self.text, self.use, self.file,
        ]  # fmt: skip
        self.main = [
            pmui.Column(
                *[warning] * bool(problems),
                self.transport,
                pmui.FlexBox(self.band, self.noisy, self.reset_data, self.exports, self.bands_file, align_items="center"),
                self.alarm,
                self.grid,
                pmui.Typography(KEY, variant="caption", sizing_mode="stretch_width", margin=(0, 10)),
                pmui.FlexBox(self.nuts_text, self.compute, self.cancel, self.bar, align_items="center"),
                pmui.Grid(
                    pmui.Grid(self.table, size={"xs": 12, "lg": 8}),
                    pmui.Grid(pn.pane.Bokeh(self.widths.figure, sizing_mode="stretch_width", margin=(0, 4)), size={"xs": 12, "lg": 4}),
                    container=True,
                    sizing_mode="stretch_width",
                ),
                self.widths_text,
                pmui.Typography(HELP, variant="caption", sizing_mode="stretch_width", margin=(4, 10)),
                self.pulse,
                sizing_mode="stretch_width",
                margin=(4, 12),
            )
        ]
        self._show_setup()
        pn.state.on_session_destroyed(lambda context: self._leave())

    # ---- the pieces

    def _make_controls(self):
        self.play = pmui.Button(label="Pause", icon="pause", variant="contained", width=104, on_click=self.toggle, **BUTTON)
        step = pmui.Button(label="Step", icon="skip_next", on_click=lambda e: self.session.step(), **BUTTON)
        reset = pmui.Button(label="Reset", icon="replay", on_click=lambda e: self._reset(), **BUTTON)
        seed = pmui.Button(label="New seed", icon="casino", on_click=self._new_seed, **BUTTON)
        pace = pmui.DiscreteSlider(label="Most steps per picture", options=PACE, value=100, width=170, margin=(0, 16))
        pace.param.watch(lambda event: self.session.most(event.new), "value")
        self.reading = pmui.Typography("", variant="body2", margin=(8, 8))
        self.transport = pmui.FlexBox(self.play, step, reset, seed, pace, self.reading, align_items="center")
        self.alarm = pmui.Alert("", severity="error", visible=False, closeable=True, sizing_mode="stretch_width", margin=(4, 8))

        self.preset = pmui.Select(label="What to see", options=[OWN, *(preset["name"] for preset in PRESETS)], **CHOICE)
        self.preset.param.watch(self._load_preset, "value")
        self.about = pmui.Typography("", variant="body2", sizing_mode="stretch_width", margin=(0, 10))
        self.methods = pmui.MultiChoice(label="Methods", options={label_of(name): name for name in SHOWN}, **WIDTH)
        self.width = pmui.IntSlider(label="Width h of both layers", start=WIDTHS[0], end=WIDTHS[-1], **WIDTH)
        self.draws = pmui.IntInput(label="ELBO draws per particle and step", start=1, end=1000, **CHOICE)
        self.band = pmui.IntSlider(label="Band, %", start=5, end=99, width=150, margin=(0, 16))
        self.noisy = pmui.Switch(label="of a new y (with noise) instead of f", margin=(4, 12))
        self.methods.param.watch(self._chose_methods, "value")
        self.width.param.watch(lambda event: self.take(width=event.new), "value_throttled")
        self.draws.param.watch(lambda event: self.take(draws=event.new), "value")
        self.band.param.watch(lambda event: self.take(probability=event.new / 100), "value")
        self.noisy.param.watch(lambda event: self.take(noisy=event.new), "value")
        self.knobs = {name: widget(all_knobs()[name], self._turned) for name in ORDER}
        self.knobs["method.particles"].end = CAPACITIES[-1]
        self.knobs["method.step_size"].label = "learning rate"

        self.reset_data = pmui.Button(label="Reset data", icon="restore", on_click=lambda e: self.take(data=PAPER), **BUTTON)
        self.text = pmui.TextAreaInput(
            label="Other data, as text", placeholder="x, y\n0.4, 2.5\n0.9, 1.0", rows=4, max_rows=8, max_length=200_000, **WIDTH
        )
        self.use = pmui.Button(label="Use these points", on_click=lambda e: self._read(self.text.value), **BUTTON)
        self.file = Upload(self._read, self._refuse, label="CSV file", **WIDTH)

        self.exports = pmui.MenuButton(
            label="Export", icon="download", items=[{"label": "Copy link"}, {"label": "Copy as Python"}], **BUTTON
        )
        self.exports.on_click(self._export)
        self.bands_file = pmui.FileDownload(label="Bands as CSV", callback=self._csv, filename="wave.csv", variant="text", **BUTTON)
        self.panels = {
            name: pn.Column(pn.pane.Bokeh(figure, sizing_mode="stretch_width", margin=2), sizing_mode="stretch_width")
            for name, figure in self.wave.figures.items()
        }
        self.grid = pn.FlexBox(*self.panels.values(), sizing_mode="stretch_width")
        self.table = pn.pane.HTML("", sizing_mode="stretch_width", margin=(4, 8))
        self.widths_text = pmui.Typography(
            WIDTHS_KEY + ("" if self.shipped else NO_SWEEP), variant="caption", sizing_mode="stretch_width", margin=(0, 10)
        )
        self.nuts_text = pmui.Typography("", variant="body2", margin=(4, 10))
        self.compute = pmui.Button(label="Compute NUTS here", icon="play_arrow", on_click=self._compute, visible=False, **BUTTON)
        self.cancel = pmui.Button(label="Cancel", icon="stop", on_click=lambda e: self.job.cancel(), visible=False, **BUTTON)
        self.bar = pmui.LinearProgress(value=0, width=160, visible=False, margin=(4, 8))

    # ---- what the shell asks

    def show(self):
        self.shown = True
        self.session.wake()

    def hide(self):
        self.shown = False
        self.session.sleep()

    def refresh(self):
        picture = self.session.picture
        step = picture.step if picture else 0
        rate = f" · {self.session.rate:,.0f} steps/s" if self.playing else ""
        self.reading.object = self.status or f"step {step:,}{rate} · {device_name()}"
        self._show_table()
        self._show_job()

    def link(self) -> str:
        return replace(self.setup, steps=min(self.session.paused_at, 100_000)).to_query()

    # ---- from the user

    def take(self, **change) -> bool:
        """Change the setup where the new one is valid; else say why not, and show the one that stays."""
        if self.quiet:
            return False
        try:
            setup = replace(self.setup, steps=0, **change)
        except ValueError as error:
            self._refuse(str(error))
            self._show_setup()
            return False
        if setup.posterior()[1:] != self.setup.posterior()[1:]:
            self.here = {}  # widths under other data cannot be compared
        self.setup = setup
        self.session.apply(setup)
        self._show_setup()
        return True

    def touched(self, points):
        self.take(data=points)

    def heard(self, message: dict):
        """A message of the browser's: acknowledgements and keys."""
        if "ready" in message:
            self.streamer.ready()
        elif "ack" in message:
            self.streamer.ack(message["ack"])
        elif self.shown:
            {"space": self.toggle, "right": self.session.step, "r": self._reset, "delete": self._delete}[message["key"]]()

    def toggle(self, event=None):
        self.session.toggle()

    def _reset(self):
        self.setup = replace(self.setup, steps=0)
        self.session.reset()

    def _delete(self):
        chosen = set(self.wave.points.selected.indices)
        if chosen:
            self.take(data=[point for i, point in enumerate(self.setup.data) if i not in chosen])

    def _new_seed(self, event):
        self.take(seed=int(np.random.default_rng().integers(1_000_000)))

    def _turned(self, name: str, value: Any):
        self.take(knobs={**self.setup.knobs, name: value})

    def _chose_methods(self, event):
        self.take(methods=tuple(event.new))

    def _load_preset(self, event):
        found = [preset for preset in PRESETS if preset["name"] == event.new]
        if found and not self.quiet:
            self.setup = replace(found[0]["setup"], data=self.setup.data)
            self.take()

    def _read(self, text: str):
        try:
            points = read_points(text)
        except ValueError as error:
            self._refuse(str(error))
        else:
            self.take(data=points)

    def _refuse(self, why: str):
        pn.state.notifications.error(why, duration=8000)  # shown as text, not as HTML

    def _compute(self, event):
        self.job = NutsJob(self.setup)
        LINE.add(self.job)
        self._show_job()

    def _export(self, item):
        if item["label"] == "Copy link":
            self.shell.copy_link(self.link())
        else:
            picture = self.session.picture
            self.shell.browser.copy(self.setup.to_python(picture.step if picture else 0))

    def _csv(self) -> io.StringIO:
        """The bands of every method, a row a grid point."""
        out, picture = io.StringIO(), self.session.picture
        writer = csv.writer(out)
        writer.writerow(["method", "step", "x", "mean", "low", "high", "low50", "high50"])
        for name, seen in (picture.methods if picture else {}).items():
            columns = (GRID, *seen.wide, seen.half.low, seen.half.high)
            writer.writerows([name, seen.step, *(f"{value:.6g}" for value in row)] for row in zip(*columns))
        out.seek(0)
        return out

    # ---- drawing

    def draw(self, frame):
        """A new picture is there; the browser acknowledges once it is drawn."""
        picture = self.session.picture
        with pn.io.hold(self.document):
            for name, seen in picture.methods.items():
                if name in self.setup.methods:
                    late = f", step {seen.step:,}" if seen.step != picture.step else ""
                    self.wave.show(name, seen, ", diverged" if seen.diverged else late)
            here = {name: seen.readout.gap for name, seen in picture.methods.items() if seen.step}
            for name, gap in here.items():
                self.here.setdefault(name, {})[dim_of(picture.setup.width)] = gap
            self.widths.show(self.shipped, self.here, self.nuts_gaps)
        self.pulse.ping(frame)

    def _show_setup(self):
        """The widgets of the setup, without that counting as the user's wish."""
        setup, self.quiet = self.setup, True
        try:
            self.methods.value, self.width.value, self.draws.value = list(setup.methods), setup.width, setup.draws
            self.band.value, self.noisy.value = round(100 * setup.probability), setup.noisy
            used = {name for method in setup.methods for name in used_by(method)}
            self.draws.visible = "guide.width" in used
            for name in ORDER:
                self.knobs[name].visible = name in used
                place(self.knobs[name], all_knobs()[name], setup.value(name))
            least = "400px" if len(setup.methods) == 4 else "280px"  # four stand two by two
            for name, panel in self.panels.items():
                panel.param.update(visible=name in setup.methods, styles={"flex": f"1 1 {least}", "min-width": "0"})
            self.wave.place(setup.data)
            self.reset_data.disabled = setup.data == PAPER
            plain = replace(setup, steps=0, seed=0, data=PAPER)
            shown = [preset for preset in PRESETS if preset["setup"] == plain]
            self.preset.value = shown[0]["name"] if shown else OWN
            self.about.object = shown[0]["text"] if shown else ""
        finally:
            self.quiet = False
        self._find_nuts()

    def _show_table(self):
        picture = self.session.picture
        if picture:
            self.table.object = table(picture, self.nuts)

    def _find_nuts(self):
        """Compare with NUTS where its answer to this posterior is known; measuring takes a moment, so on a thread."""
        setup, reference = self.setup, reference_of(self.setup)
        key = setup.posterior(), setup.probability, setup.noisy, reference is None
        if key == self.known:
            return
        self.known = key
        if reference is None:
            self._show_nuts(None)
        else:
            in_background(
                lambda: (key, compared(reference, setup)),
                lambda found: self.post({"nuts": found}),
                lambda text: self.post({"alarm": text}),
            )
        if not self.nuts_gaps:
            in_background(
                lambda: {dim_of(h): compared(shipped(h), WaveSetup(width=h)).readout.gap for h in nuts_widths()},
                lambda gaps: self.post({"gaps": gaps}),
                lambda text: self.post({"alarm": text}),
            )

    def _show_nuts(self, nuts):
        self.nuts = nuts
        self.wave.compare(nuts)
        self.nuts_text.object = nuts_sentence(nuts, self.setup)
        self._show_table()
        self._show_job()

    def _show_job(self):
        job = self.job
        active = bool(job and job.active)
        self.cancel.visible = self.bar.visible = active
        self.compute.visible = self.nuts is None and not active and reference_of(self.setup) is None
        if active:
            self.bar.value = int(100 * job.done / job.total)
            waits = LINE.ahead(job)
            left = "compiling …" if job.left is None else f"step {job.done:,} of {job.total:,}, about {job.left:.0f} s left"
            self.nuts_text.object = f"NUTS: waiting for {waits} other long job{'s' * (waits > 1)}" if waits else f"NUTS: {left}"
        elif job:
            self.job = None
            if job.state == "failed":
                self._alarm(job.error)
            self.known = None
            self._find_nuts()

    def _alarm(self, text: str):
        self.alarm.param.update(object=html.escape(text), visible=bool(text))

    def told(self, news: dict):
        """From the threads, on the event loop."""
        if "playing" in news:
            self.playing = news["playing"]
            self.play.param.update(label="Pause" if self.playing else "Play", icon="pause" if self.playing else "play_arrow")
        if "alarm" in news:
            self._alarm(news["alarm"])
        if "status" in news:
            self.status = news["status"]
        if "nuts" in news and news["nuts"][0] == self.known:
            self._show_nuts(news["nuts"][1])
        if "gaps" in news:
            self.nuts_gaps = news["gaps"]

    def _leave(self):
        self.session.close()
        if self.job:
            self.job.cancel()
