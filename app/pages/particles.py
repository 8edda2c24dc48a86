"""Page "Particles": methods side by side on one target, live."""

from __future__ import annotations

import panel as pn
import panel_material_ui as pmui

from stein_core import METHODS
from steinlab.stage.lecture import QUIET
from steinlab.stage.live_page import KEYS, PRESETS, Live
from steinlab.stage.million import million, title
from steinlab.stage.scene import SideBySide
from steinlab.stage.setup import PANELS, CrowdSetup, Setup
from steinlab.ui.groups import dots
from steinlab.ui.knob_widgets import CHIPS, WIDTH

HELP = (
    "Click the stage to add a particle. Drag one to move it. Double-click one, or hover and press Delete, to remove it."
)


class Particles(Live):
    """Page "Particles"; see `steinlab.contents` for the contract of a page."""

    key = "particles"
    plain = CrowdSetup()
    presets, views = PRESETS["particles"], SideBySide
    marks = {
        "attract": "attraction",
        "repulse": "repulsion",
        "guides": "guides",
        "trails": "trails",
        "draws": "exact draws",
    }
    drawn = ["attract", "repulse", "guides", "trails"]

    def __init__(self, shell, query: dict[str, str]):
        self.methods = pmui.MultiChoice(
            label=f"Methods (1 to {PANELS})",
            options={e.label: e.name for e in METHODS.entries() if not e.facts.functions},
            max_items=PANELS,
            solid=False,
            sx=CHIPS,
            **WIDTH,
        )
        self.methods.param.watch(self.chose_methods, "value")
        super().__init__(shell, query, SideBySide(), (), self.methods)
        self.sidebar = self.choices.groups
        if many := million():
            self.exports.append(self.link_to(many))
        foot = [
            pmui.FlexBox(self.exports, self.reading, align_items="center", sizing_mode="stretch_width"),
            pmui.Typography(f"{HELP} {KEYS}", variant="caption", sizing_mode="stretch_width", margin=(4, 10)),
        ]
        self.lecture.around += [*self.warnings, *foot]
        column = pmui.Column(
            *self.warnings,
            *self.top(),
            self.stage,
            self.transport.row,
            self.read_outs,
            self.law.text,
            *foot,
            sizing_mode="stretch_width",
            margin=(4, 12),
        )
        self.main = [column]
        self.quietly(self.show_setup, self.session.linked())

    def link_to(self, setup: CrowdSetup) -> pmui.Button:
        """Return a button that opens a run of very many particles."""
        query = f"?page={self.key}&{setup.to_query(self.plain)}"
        return pmui.Button(label=title(setup), icon="grain", on_click=lambda event: self.shell.go(query), **QUIET)

    def chose_methods(self, event):
        if not event.new:
            pn.state.notifications.warning("Select at least one method.")
            self.quietly(self.methods.param.update, **{"value": event.old})
        else:
            self.chosen(methods=tuple(event.new))

    def show_setup(self, setup: Setup):
        super().show_setup(setup)
        self.methods.param.update(value=list(setup.methods), sx=dots(setup.methods))
