"""Page "Samplers": networks that turn noise into draws, beside points that move."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import panel as pn
import panel_material_ui as pmui

from stein_core import METHODS
from stein_core.contract.spec import target_at
from steinlab.pages.samplers.figures import Course, Ladder, Latent, Masses
from steinlab.pages.samplers.view import SamplerView, Seen, of_target, seen_before
from steinlab.server.loop import soon
from steinlab.stage.choices import REPULSION
from steinlab.stage.live_page import KEYS, PRESETS, Live
from steinlab.stage.scene import SAMPLED
from steinlab.stage.setup import CAPACITY, Setup
from steinlab.ui.colours import darken
from steinlab.ui.groups import dots, group
from steinlab.ui.knob_widgets import CHIPS, WIDTH

MOST = 2  # methods side by side
BATCH = min(128, CAPACITY)  # most draws of a step on this page
OTHERS = ("ksdd", "mied", "mala", "sgld", "svgd")
KNOBS = {"method.particles": BATCH, "method.step_size": 1e-3, "method.annealing": 5000}
STEPS = [float(f"{step:.3g}") for step in np.geomspace(1e-5, 0.1, 81)]
TRAINING = (
    "method.statistic",
    "method.form",
    "method.bandwidth_gradient",
    "method.start_sd",
    "method.base_sd",
    "method.annealing",
    "method.decay_every",
)
UNREAD = ("guide.width", "init.spread", "init.shift")  # a network has no such start
HELP = (
    "Each dot is the centre μ(z) of one noise draw z. Its ellipse has the sampler's standard deviation σ, which is not "
    "the posterior's. The two arrows sum to the witness function of the discrepancy: one comes from the target's "
    "score, the other from the score of the noise."
)


def grid(least: int) -> list[str]:
    """Return the style sheet of a row of figures that wraps where one would be narrower than `least` pixels."""
    columns = f"repeat(auto-fit, minmax({least}px, 1fr))"
    return [f":host {{ display: grid !important; grid-template-columns: {columns}; gap: 4px }}"]


def offered() -> dict[str, str]:
    """Return the methods of the page, label -> name."""
    samplers = [entry for entry in METHODS.entries() if entry.facts.sampler]
    return {entry.label: entry.name for entry in (*samplers, *(METHODS[name] for name in OTHERS))}


class Samplers(Live):
    """Page "Samplers"; see `steinlab.contents` for the contract of a page."""

    key = "samplers"
    plain = Setup("multimodal", ("ksivi",), knobs=KNOBS)
    presets, views = PRESETS["samplers"], SamplerView
    marks = {
        **SAMPLED,
        "curve": "μ(z) on the line",
        "trails": "trails",
        "draws": "exact draws",
    }
    drawn = ["guides", "curve", "draws"]
    speed = 20

    def __init__(self, shell, query: dict[str, str]):
        self.methods = pmui.MultiChoice(
            label=f"Methods (1 to {MOST})", options=offered(), max_items=MOST, solid=False, sx=CHIPS, **WIDTH
        )
        self.methods.param.watch(self.chose_methods, "value")
        dark = shell.frame.dark_theme
        self.later, self.waiting, self.newest = soon(pn.state.curdoc), False, []
        self.begun, self.ladder, self.of_ladder = -1, None, None
        self.course, self.masses = Course(dark), Masses(dark)
        self.latent = Latent(lambda angle: self.on_knob("method.angle", angle), dark)
        view = SamplerView(self.on_seen)
        self.view = view
        super().__init__(shell, query, view, (), self.methods)
        self.arrange()
        self.rungs = pn.Column(visible=False, stylesheets=grid(170), sizing_mode="stretch_width")
        pane = partial(pn.pane.Bokeh, margin=(4, 4))
        self.plane = pane(self.latent.figure)
        self.below = pn.Column(
            pane(self.masses.figure),
            pane(self.course.figure),
            self.plane,
            stylesheets=grid(300),
            sizing_mode="stretch_width",
        )
        figures = pn.Column(self.below, self.rungs, styles={"flex": "2 1 320px"}, margin=0)
        live = pn.Column(self.stage, self.transport.row, styles={"flex": "3 1 480px"}, margin=0)
        foot = [
            pmui.FlexBox(self.exports, self.reading, align_items="center", sizing_mode="stretch_width"),
            pmui.Typography(f"{HELP} {KEYS}", variant="caption", sizing_mode="stretch_width", margin=(4, 10)),
        ]
        self.lecture.around += [*self.warnings, *foot, figures]
        self.main = [
            pmui.Column(
                *self.warnings,
                *self.top(),
                pn.FlexBox(live, figures, sizing_mode="stretch_width", align_items="flex-start", gap="12px"),
                self.read_outs,
                self.law.text,
                *foot,
                sizing_mode="stretch_width",
                margin=(4, 12),
            )
        ]
        self.quietly(self.show_setup, self.session.linked())
        if self.kept:  # the numbers of the shipped run
            for moments in self.kept.more:
                self.course.add([seen_before(one) for one in moments])
            self.begun = 1  # of the session's first run, which goes on from there
            self.course.draw([seen_before(one) for one in self.kept.more[-1]])
            self.masses.draw([seen_before(one) for one in self.kept.more[-1]])

    def arrange(self):
        """Give the sidebar a group of what trains a network, and sliders the range of this page."""
        choices, knobs = self.choices, self.choices.knobs
        knobs["method.particles"].param.update(start=2, end=BATCH, label="draws of a step, or points")
        self.quietly(knobs["method.step_size"].param.update, options=STEPS, value=1e-3)
        training = group("Training", *(knobs[name] for name in TRAINING))
        rest = [knobs[name] for name in choices.rest if name not in TRAINING]
        choices.of_rest.body[:] = rest
        kernel = group("Kernel", *(knobs[name] for name in REPULSION))
        folds = [choices.of_start, choices.of_rest]
        self.sidebar = [choices.posterior, choices.methods, training, choices.of_optimizer, kernel, *folds]
        self.transport.speed.value = self.speed

    @classmethod
    def unfit(cls, setup: Setup) -> str:
        """Say which method of a link is not on this page."""
        known = offered()
        strangers = [METHODS[name].label for name in setup.methods if name not in known.values()]
        if strangers:
            return f"{', '.join(strangers)} is not on this page; allowed: {', '.join(known)}."
        return "" if len(setup.methods) <= MOST else f"This page shows at most {MOST} methods."

    def chose_methods(self, event):
        if not event.new:
            pn.state.notifications.warning("Select at least one method.")
            self.quietly(self.methods.param.update, **{"value": event.old})
        else:
            self.chosen(methods=tuple(event.new))

    def darken(self, event):
        super().darken(event)
        figures = [self.course.figure, self.masses.figure, self.latent.figure]
        for each in [*figures, *(self.ladder.figures if self.ladder else [])]:
            darken(each, event.new)

    # ---- knobs that the page itself shows

    def on_knob(self, name, value):
        super().on_knob(name, value)
        if not self.quiet:
            self.heed({name: value})

    def show_news(self, news: dict):
        super().show_news(news)
        if "knobs" in news:
            self.heed(news["knobs"])

    def adapt(self, setup: Setup):
        self.methods.param.update(value=list(setup.methods), sx=dots(setup.methods))
        points = any(not METHODS[name].facts.sampler for name in setup.methods)
        for name in UNREAD:
            self.choices.knobs[name].visible = points and name.startswith("init.")
        self.plane.visible = any("method.angle" in setup.spec(name, BATCH).knobs() for name in setup.methods)
        self.choices.options["guide.density"].visible = self.choices.draws.visible = False
        self.heed(setup.knobs)

    def heed(self, knobs):
        """Take over what depends on these knobs but not on the run: the line of z, and the exact draws."""
        if "method.angle" in knobs:
            self.latent.show(knobs["method.angle"])
        self.view.knobs = of_target({**self.view.knobs, **of_target(knobs)})

    # ---- figures below the stage

    def on_seen(self, moments: list[Seen]):
        """Keep the newest numbers and ask the event loop to draw them. On the worker's thread."""
        self.newest = moments
        if not self.waiting:
            self.waiting = True
            self.later(self.draw)

    def draw(self):
        """Draw the newest numbers."""
        self.waiting = False
        moments: Sequence[Seen] = self.newest
        if not moments:
            return
        if moments[0].begun != self.begun:
            self.begun = moments[0].begun
            self.course.clear()
        self.course.add(moments)
        self.course.draw(moments)
        self.masses.draw(moments)
        chain = next((one for one in moments if one.layers is not None), None)
        self.rungs.visible = chain is not None
        if chain is not None:
            self.draw_ladder(chain)

    def draw_ladder(self, chain: Seen):
        """Draw the layers of a hierarchy, and first their densities if those are new."""
        setup = self.session.shown()[0]
        knobs = setup.recipe("hksivi", BATCH).knobs if "hksivi" in setup.methods else {}
        base_sd = knobs.get("method.base_sd", 1.0)
        key = (len(chain.layers), setup.target, setup.dim, base_sd, tuple(self.view.knobs.items()))
        if key != self.of_ladder:
            if self.ladder is None or len(self.ladder.figures) != len(chain.layers):
                self.ladder = Ladder(len(chain.layers), self.shell.frame.dark_theme)
                self.rungs[:] = [pn.pane.Bokeh(each, margin=4) for each in self.ladder.figures]
            self.of_ladder = key
            target = target_at(setup.spec("hksivi", BATCH), self.view.knobs)
            if target.dim == 2:
                self.ladder.contours(target, base_sd)
        self.ladder.draw(chain)
