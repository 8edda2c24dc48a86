"""The transport under a stage: play, step, reset, rewind and speed; in lecture mode play and a few knobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import panel as pn
import panel_material_ui as pmui

from stein_core import TARGETS, Knob
from steinlab.stage.setup import CAPACITY, all_knobs
from steinlab.ui.knob_widgets import LARGE, set_value, widget

SPEEDS = [1, 2, 5, 10, 20, 50, 100]
QUIET = {"variant": "text", "margin": (4, 2), "height": 40}
BELOW = {
    "& .MuiSlider-valueLabel": {"top": 56},
    "& .MuiSlider-valueLabel::before": {"display": "none"},
}  # above the slider, the picture would cover it
PLAY = {"borderRadius": "26px", "height": "52px", "fontSize": "17px", "fontWeight": 600}
LECTURE_PLAY = {
    "borderRadius": "40px",
    "height": "80px",
    "fontSize": "28px",
    "& svg, & .icon": {"fontSize": "40px"},
}
PHONE = "@media (max-width: 600px)"
NO_PHONE = [f"{PHONE} {{ :host {{ display: none }} }}"]
ON_PHONE = ["@media (min-width: 601px) { :host(:not(.large)) { display: none } }"]  # and in a lecture
STICKY = """@media (max-width: 600px) {
  :host { position: sticky; bottom: 0; z-index: 3; background: var(--mui-palette-background-default, Canvas) }
}"""
ROW = {"sx": LARGE, "margin": (0, 24), "styles": {"flex": "1 1 160px", "max-width": "400px"}}
DIMS = (1, 2, 5, 10, 20, 50, 100)  # of a lecture
LECTURE_KNOBS = ("method.alpha", "method.particles", "kernel.name", "target.weight", "target.apart")
SHORT_KNOBS = LECTURE_KNOBS[:2]  # of a page that is part of another one


def lecture_knobs(known: Mapping[str, Knob], on_knob: Callable) -> dict:
    """Make the sliders of a lecture, hidden at first.

    Args:
        known: the knobs of the page by name.
        on_knob: on_knob(name, value) is called for each move.
    """
    made = {name: widget(known[name], on_knob) for name in LECTURE_KNOBS if name in known}
    for each in made.values():
        each.param.update(visible=False, **ROW)
    return made


class Transport:
    """Buttons and sliders that command a session.

    Args:
        session: () -> the Session.
        on_knob: on_knob(name, value) is called for a knob that was moved here.
        toggle: plays or pauses.
        on_dim: on_dim(dimension) is called for another dimension of the target.

    Attributes:
        row: the component.
        quiet: True while the program sets widgets.
    """

    def __init__(self, session: Callable, on_knob: Callable, toggle: Callable, on_dim: Callable[[int], None]):
        self.session, self.quiet = session, False
        button = {"size": "small", **QUIET}
        self.play = pmui.Button(
            label="Pause",
            icon="pause",
            variant="contained",
            width=124,
            margin=(2, 8),
            height=52,
            sx=PLAY,
            on_click=toggle,
        )
        self.reset = pmui.Button(label="Reset", icon="replay", on_click=lambda event: session().reset(), **button)
        self.back = pmui.Button(label="Back", icon="skip_previous", on_click=lambda event: session().back(), **button)
        self.step = pmui.Button(label="Step", icon="skip_next", on_click=lambda event: session().step(), **button)
        self.rewind = pmui.IntSlider(
            label="Rewind",
            start=0,
            end=1,
            value=0,
            show_value=False,
            margin=(0, 16),
            styles={"flex": "1 1 120px"},
            sx=BELOW,
            stylesheets=NO_PHONE,
        )
        self.rewind.param.watch(lambda event: self.quiet or session().rewind(event.new), "value")
        self.speed = pmui.DiscreteSlider(label="Steps per frame", options=SPEEDS, value=1, width=150, margin=(0, 12))
        self.speed.stylesheets = NO_PHONE
        self.speed.param.watch(lambda event: session().speed(event.new), "value")
        self.knobs = lecture_knobs(all_knobs(), on_knob)
        self.alpha = self.knobs["method.alpha"]
        self.alpha.stylesheets = ON_PHONE
        self.dim = pmui.Select(label="dimension", options=[2], value=2, visible=False, **ROW)
        self.dim.param.watch(lambda event: self.quiet or on_dim(event.new), "value")
        self.dims: list[int] = []
        self.used: set[str] = set(LECTURE_KNOBS)
        self.large = self.short = False
        self.plain = (self.reset, self.back, self.step, self.rewind, self.speed)
        self.row = pn.FlexBox(
            self.reset, self.back, self.play, self.step, self.rewind, self.speed, *self.knobs.values(), self.dim,
            align_items="center", justify_content="center", sizing_mode="stretch_width", margin=0,
            stylesheets=[STICKY],
        )  # fmt: skip

    def lecture(self, on: bool) -> None:
        """Show what a lecture needs, or what a page does."""
        for made in self.plain:
            made.visible = not on
        self.large = on
        self._show_knobs()
        self.play.param.update(sx=LECTURE_PLAY if on else PLAY, height=80 if on else 52, width=190 if on else 124)

    def strip(self) -> None:
        """Show Play, Reset and two sliders: the page is part of another one."""
        for made in (self.back, self.step, self.rewind, self.speed):
            made.visible = False
        self.short = True
        self._show_knobs()

    def _show_knobs(self):
        wanted = set(LECTURE_KNOBS if self.large else SHORT_KNOBS if self.short else ["method.alpha"])
        for name, made in self.knobs.items():
            made.visible = name in wanted & self.used
            made.sx = LARGE if self.large else {}
        self.alpha.css_classes = ["large"] * (self.large or self.short)
        self.dim.visible = self.large and len(self.dims) > 1

    def faster(self, by: int) -> None:
        """Go to the next speed (1), or to the one before (-1)."""
        index = SPEEDS.index(self.speed.value) + by
        self.speed.value = SPEEDS[min(max(index, 0), len(SPEEDS) - 1)]

    def show(self, news: dict) -> None:
        """Show news of the session, without telling it."""
        if "playing" in news:
            playing = news["playing"]
            self.play.param.update(label="Pause" if playing else "Play", icon="pause" if playing else "play_arrow")
        rewind = {"value_label": f"step {news['step']:,}"} if "step" in news else {}  # its own number counts frames
        if "history" in news:
            length, position = news["history"]
            rewind |= {"end": max(length - 1, 1), "value": position}
        if rewind:
            self.rewind.param.update(**rewind)
        if "setup" in news:
            setup = news["setup"]
            self.used = {name for method in setup.methods for name in setup.spec(method, CAPACITY).knobs()}
            facts, here = TARGETS[setup.target].facts, setup.spec(setup.methods[0], CAPACITY).dim
            ends = facts.dims if facts.dim_of is None else (here, here)
            self.dims = sorted(
                {here, *(d for d in DIMS if ends[0] <= d <= ends[1] and not (d - here) % facts.dim_step)}
            )
            self.dim.param.update(options=self.dims, value=here)
            self._show_knobs()
        for name, made in self.knobs.items():
            knob = all_knobs()[name]
            if "setup" in news:  # which does not mention a knob that has its default
                set_value(made, knob, news["setup"].knobs.get(name, knob.default))
            elif name in news.get("knobs", {}):
                set_value(made, knob, news["knobs"][name])
