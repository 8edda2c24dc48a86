"""The sidebar of a live page: what runs, in groups; what a student moves first is open."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import panel_material_ui as pmui

from stein_core import GUIDES, METHODS, OPTIMIZERS, TARGETS
from stein_core.contract.knobs import Option
from stein_core.contract.spec import GROUPS, MAX_DRAWS, all_options
from steinlab.server.limits import LIMITS
from steinlab.stage.costs import Cost
from steinlab.stage.near_sums import NearSums
from steinlab.stage.programs import FIRST_CAPACITY
from steinlab.stage.setup import CAPACITY, Setup, all_knobs
from steinlab.ui.groups import Fold, group
from steinlab.ui.knob_widgets import SELECT, WIDTH, NumberField, set_value, widget

CHOICE = SELECT
REPULSION = ("method.alpha", "method.particles", "kernel.name", "bandwidth.rule", "bandwidth.factor")
OPTIMISER = ("method.step_size",)
PARTICLES = "method.particles"
START = ("init.", "guide.")  # of knobs that act at the next reset


def of_option(option: Option):
    """Return the widget of an Option: each of its values is a program of its own."""
    label = option.label[:1].upper() + option.label[1:]
    if option.choices:
        names = {name.replace("_", " "): name for name in option.choices}
        return pmui.Select(label=label, options=names, value=option.default, description=option.help, **CHOICE)
    return NumberField(label, start=option.low, end=option.high, value=option.default)


class Many:
    """A slider of more particles than CAPACITY, with what they cost. It is there once something can be offered.

    Args:
        on_knob: as for Choices.
    """

    def __init__(self, on_knob: Callable):
        self.on_knob, self.costs = on_knob, {}
        self.slider = pmui.DiscreteSlider(
            label=f"Beyond {CAPACITY}", options={"off": CAPACITY}, value=CAPACITY, visible=False, **WIDTH
        )
        self.text = pmui.Typography("", variant="caption", margin=(0, 10, 4, 10), visible=False)
        self.slider.param.watch(self._moved, "value")

    def offer(self, costs: Sequence[Cost]) -> None:
        """Offer these numbers of particles."""
        present = self.slider.value
        self.costs = {cost.particles: cost for cost in costs}
        sizes = sorted({*self.costs, *([present] if present > CAPACITY else [])})
        self._list(sizes)
        self.slider.visible = len(sizes) > 0
        self.show(present)

    def show(self, particles: int) -> None:
        """Show this number of particles, and what it costs if that is known."""
        value = particles if particles > CAPACITY else CAPACITY
        if value not in self.slider.options.values():
            self._list(sorted({value, *self.slider.options.values()} - {CAPACITY}))
        self.slider.param.update(value=value, visible=self.slider.visible or value > CAPACITY)
        cost = self.costs.get(value)
        self.text.param.update(object=str(cost) if cost else "", visible=cost is not None)

    def _list(self, sizes: Sequence[int]) -> None:
        """Offer these sizes. The browser knows a value by its place among them, so it has to hear it again."""
        self.slider.options = {"off": CAPACITY} | {f"{size:,}": size for size in sizes}
        self.slider.param.trigger("value")

    def _moved(self, event) -> None:
        if event.new != event.old:
            self.on_knob(PARTICLES, event.new)


class Choices:
    """The widgets of a Setup. `show` sets them without a call.

    Args:
        chosen: chosen(**fields) is called for what compiles.
        on_knob: on_knob(name, value) is called for a knob that was moved.
        new_seed: called for another start.
        first: more widgets of the group "Methods".
    """

    def __init__(self, chosen: Callable, on_knob: Callable, new_seed: Callable, *first):
        self.target = pmui.Select(label="Target", options={e.label: e.name for e in TARGETS.listed()}, **CHOICE)
        self.dim = NumberField("Dimension", start=1, end=1000, value=2)
        self.guide = pmui.Select(label="Guide", options={e.label: e.name for e in GUIDES.entries()}, **CHOICE)
        optimizers = {e.label: e.name for e in OPTIMIZERS.entries()}
        self.optimizer = pmui.Select(label="Optimiser", options=optimizers, **CHOICE)
        self.draws = NumberField("Draws per particle and step", start=1, end=MAX_DRAWS, value=10)
        self.options = {name: of_option(option) for name, option in all_options().items()}
        for name, made in self.options.items():
            made.param.watch(lambda event, name=name: chosen(options={**self.shown, name: event.new}), "value")
        self.shown: dict[str, object] = {}  # options of the setup
        self.note = pmui.Typography("", variant="caption", margin=(4, 10), visible=False)  # of the target
        for name in ("target", "dim", "guide", "optimizer", "draws"):
            getattr(self, name).param.watch(lambda event, name=name: chosen(**{name: event.new}), "value")
        knobs = {
            name: replace(knob, label=f"{knob.label} (at Reset)") if name.startswith(START) else knob
            for name, knob in all_knobs().items()
        }
        self.knobs = {name: widget(knob, on_knob) for name, knob in knobs.items()}
        seed = pmui.Button(
            label="New seed", icon="casino", variant="text", size="small", margin=(4, 8), on_click=new_seed
        )
        of_target = [name for name in self.knobs if name.startswith("target.")]
        shown = {*REPULSION, *OPTIMISER, *of_target}
        rest = [name for name in self.knobs if name not in shown and not name.startswith(START)]
        self.rest = tuple(rest)
        self.of_optimizer = Fold("Optimiser", self.optimizer, *(self.knobs[name] for name in OPTIMISER))
        self.of_start = Fold("Start", *(made for name, made in self.knobs.items() if name.startswith(START)), seed)
        self.near = NearSums(chosen)
        of_rest = [self.draws, *(self.knobs[name] for name in rest), self.near.select, self.near.text]
        self.of_rest = Fold("Advanced", *of_rest)
        own = {kind: [w for name, w in self.options.items() if name.startswith(kind)] for kind in GROUPS}
        self.posterior = group(
            "Posterior",
            self.target,
            self.note,
            *own["target"],
            self.dim,
            *(self.knobs[name] for name in of_target),
            line=False,
        )
        self.methods = group("Methods", *first, *own["method"], self.guide, *own["guide"])
        self.many = Many(on_knob)
        shown = [self.knobs[name] for name in REPULSION]
        at = REPULSION.index(PARTICLES) + 1
        self.repulsion = group("Repulsion", *shown[:at], self.many.slider, self.many.text, *shown[at:])
        self.groups = [
            self.posterior, self.methods, self.repulsion, self.of_optimizer, self.of_start, self.of_rest,
        ]  # fmt: skip
        self.held: list = []  # what each group may hold, see `tidy`

    def tidy(self, groups: Sequence) -> None:
        """Let groups hold only what is visible, for a browser builds all that they hold.

        They keep what turns visible without a new setup, such as the note of a target.

        Args:
            groups: those of the page's sidebar, the same ones at each call.
        """
        if not self.held:
            columns = [one.body if isinstance(one, Fold) else one for one in groups]
            self.held = [(column, list(column.objects)) for column in columns]
        apart = [self.note, self.many.slider, self.many.text, self.near.select, self.near.text]
        for column, widgets in self.held:
            shown = [one for one in widgets if one.visible or one in apart]
            if list(column.objects) != shown:
                column.objects = shown

    def show(self, setup: Setup) -> None:
        """Set the widgets to a Setup."""
        specs = [setup.spec(method, FIRST_CAPACITY) for method in setup.methods]
        entry, facts = TARGETS[setup.target], TARGETS[setup.target].facts
        offered = {e.label: e.name for e in TARGETS.listed()} | {entry.label: entry.name}  # a link may have another
        if offered != self.target.options:
            self.target.param.update(options=offered, value=setup.target)
        self.target.value, self.optimizer.value = setup.target, setup.optimizer
        self.dim.param.update(
            value=specs[0].dim,
            start=facts.dims[0],
            end=min(facts.dims[1], LIMITS.dim),
            step=facts.dim_step,
            visible=facts.dims[0] < facts.dims[1] and facts.dim_of is None,
        )
        self.shown = {name: value for spec in specs for name, value in spec.options.items()}
        for name, option in all_options(setup.target).items():
            made = self.options[name]
            made.visible = name in self.shown
            if made.visible:
                ends = {} if option.choices else {"start": option.low, "end": option.high}
                made.param.update(value=self.shown[name], **ends)
        free = [spec for spec in specs if len(METHODS[spec.method].facts.guides) > 1]
        self.guide.visible = bool(free)
        if free:
            guides = METHODS[free[0].method].facts.guides
            self.guide.param.update(options={GUIDES[name].label: name for name in guides}, value=free[0].guide)
        self.draws.param.update(value=setup.draws, visible=any(spec.has_density for spec in specs))
        used = {name for spec in specs for name in spec.knobs()}
        for name, knob in all_knobs(setup.target).items():
            self.knobs[name].visible = name in used
            set_value(self.knobs[name], knob, setup.knobs.get(name, knob.default), ends=name.startswith("target."))
        self.many.offer(())
        self._show_many(setup.knobs.get(PARTICLES, 1))
        self.near.show(setup)
        self._show_rest()
        self.say()

    def turn(self, knobs: Mapping[str, object]) -> None:
        """Set these knobs."""
        for name, value in knobs.items():
            set_value(self.knobs[name], all_knobs()[name], value)
        if PARTICLES in knobs:
            self._show_many(knobs[PARTICLES])
        self.near.turn(knobs)
        self._show_rest()
        self.say()

    def _show_many(self, particles: int) -> None:
        """Show a number of particles that may lie beyond the end of the plain slider."""
        self.many.show(particles)
        self.knobs[PARTICLES].value_label = f"{particles:,}" if particles > CAPACITY else None

    def _show_rest(self) -> None:
        """Show the group "Advanced" if there is something in it."""
        made = [self.draws, self.near.select, *(self.knobs[name] for name in self.rest)]
        self.of_rest.visible = any(one.visible for one in made)

    def say(self) -> None:
        """Say in the head of each closed group what is set in it."""
        self.of_optimizer.say(
            f"{OPTIMIZERS[self.optimizer.value].label}, step {self.knobs['method.step_size'].value:g}"
        )
        spread, shift = (self.knobs[name].value for name in ("init.spread", "init.shift"))
        self.of_start.say(f"spread {spread:g}" + f", shift {shift:g}" * bool(shift))
        draws = f"{self.draws.value} draws" if self.draws.visible else ""
        changed = sum(
            self.knobs[name].visible and self.knobs[name].value != all_knobs()[name].default for name in self.rest
        )
        near = "near sums" if self.near.near else ""
        said = [draws, near, f"{changed} changed" if changed else ""]
        self.of_rest.say(", ".join(part for part in said if part))
