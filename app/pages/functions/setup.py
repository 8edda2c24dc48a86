"""What the page "Function space" shows, as a value: its link and its recipes, checked in one place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from stein_core import METHODS, TARGETS, Knob, Spec
from stein_core.contract.knobs import PointsKnob
from stein_core.targets.small_networks import WIDTHS
from steinlab.server.limits import LIMITS
from steinlab.stage.training_setup import CAPACITIES, MOST_STEPS, Points, TrainingSetup, text_of_points, trained_by
from steinlab.ui import link

TARGET = {False: "gap_regression", True: "ring_classes"}
MOST = min(CAPACITIES[-1], LIMITS.particles)  # particles
PANELS = {False: 4, True: 2}  # most methods side by side
STEPS = {False: 10_000, True: 5_000}  # of the paper; training pauses there
BATCH = {False: 512, True: 64}  # the regression takes all rows, so that curves stand still; the ring the paper's 64
TRAINED = ("ensemble", "wsvgd", "fsvgd", "fw", "hybrid", "wgd", "noisy_adam", "psgld")  # in the order of the page
OWN = {"method.particles": 20, "method.step_size": 0.01}
NOT_SHOWN = ("target.data", "target.handles", "init.shift")


def points_knob(ring: bool, name: str) -> PointsKnob:
    """Return the knob "data" or "handles" of a tab's target."""
    return next(knob for knob in TARGETS[TARGET[ring]].knobs if knob.name == name)


PAPER = points_knob(False, "data").default


def shown() -> tuple[str, ...]:
    """Return the methods of the page, in order."""
    return trained_by(TRAINED, TARGET[False])


@cache
def all_knobs() -> dict[str, Knob]:
    """Return every knob of any method and tab of the page but the points, by name."""
    known: dict[str, Knob] = {}
    for target in TARGET.values():
        for method in shown():
            known |= Spec(target, method=method, capacity=2).knobs()
    return {name: knob for name, knob in known.items() if name not in NOT_SHOWN}


def default_of(name: str) -> Any:
    """Return the page's default of a knob."""
    return OWN.get(name, all_knobs()[name].default)


def link_fields() -> tuple[link.Field, ...]:
    """Return the table of a FunctionSetup's link."""
    return (
        link.switch("data", "data", ("line", "ring"), attribute="ring"),
        link.Field("methods", link.names),
        *map(link.whole_number, ("width", "seed", "steps")),
        *(link.Field(name, default=default_of(name)) for name in all_knobs()),
        link.Field("points", _points, text_of_points, attribute="data"),
        link.Field("handles", _points, text_of_points),
    )


def _points(text: str) -> Points:
    try:
        return tuple(tuple(float(v) for v in pair.split(",")) for pair in text.split(";"))
    except ValueError:
        raise ValueError(f"points: {text[:40]!r} is no list of points; allowed: x,y;x,y and so on.") from None


@dataclass(frozen=True)
class FunctionSetup(TrainingSetup):
    """Methods that are trained side by side on one data set.

    ring: the classes on a ring instead of the regression. width: units of both hidden layers. knobs: name -> value if
    it differs from the page's default. steps: step of the frame; 0 plays to the paper's last step. data: points of the
    regression. handles: where functions repel; () for the default. A bad value raises ValueError.
    """

    ring: bool = False
    methods: tuple[str, ...] = ("wsvgd", "fsvgd")
    width: int = 50
    seed: int = 0
    steps: int = 0
    knobs: Mapping[str, Any] = field(default_factory=dict)
    data: Points = PAPER
    handles: Points = ()

    most = MOST
    shown, all_knobs, default_of, link_fields = map(staticmethod, (shown, all_knobs, default_of, link_fields))

    def __post_init__(self):
        if not 1 <= len(self.methods) <= PANELS[self.ring]:
            raise ValueError(f"Methods: {len(self.methods)} are chosen; allowed: 1 to {PANELS[self.ring]} here.")
        self.check({"width": (WIDTHS[0], WIDTHS[-1]), "steps": (0, MOST_STEPS)})
        usual = points_knob(self.ring, "handles")
        handles = usual.check(self.handles) if self.handles else ()
        self.settle(
            data=points_knob(False, "data").check(self.data), handles=() if handles == usual.default else handles
        )
        for method in self.methods:
            self.recipe(method)

    @property
    def placed(self) -> dict[str, Points]:
        return {"target.handles": self.points} | ({} if self.ring else {"target.data": self.data})

    @property
    def has_usual_points(self) -> bool:
        return not self.handles and (self.ring or self.data == PAPER)

    @property
    def points(self) -> Points:
        """Return where functions repel."""
        return self.handles or points_knob(self.ring, "handles").default

    @property
    def rows(self) -> tuple[int, ...]:
        """Return how many rows data and handles are padded to: another number is another program."""
        counts = (("data", self.data), ("handles", self.points))
        return tuple(next(r for r in points_knob(False, name).rows if r >= len(points)) for name, points in counts)

    def spec(self, method: str) -> Spec:
        """Return the program of one method."""
        options = {"target.width": self.width, "target.batch_size": BATCH[self.ring]}
        return Spec(TARGET[self.ring], method=method, capacity=self.capacity, options=options)

    def posterior(self) -> tuple:
        """Return what the exact band depends on."""
        return self.width, self.value("target.noise"), self.value("target.prior_scale"), self.data

    def to_python(self, steps: int) -> str:
        """Return a script that trains every method from the start with the present settings."""
        lines = [
            "import numpy as np",
            "",
            "from stein_core import Spec, compile",
            "from stein_core.runs.outputs import outputs_at",
            "",
            "x = np.linspace(0, 7, 141)[:, None]" if not self.ring else "x = np.zeros((1, 2))  # the ring's middle",
        ]
        for method in self.methods:
            spec, known = self.spec(method), self.spec(method).knobs()
            knobs = {k: v for k, v in self.knobs_of(method).items() if v != known[k].default}
            lines += [
                "",
                f"spec = Spec({spec.target!r}, method={method!r}, capacity={spec.capacity}, "
                f"options={dict(spec.options_of('target'))!r})".replace("{'", "{'target.").replace(", '", ", 'target."),
                f"knobs = {knobs!r}",
                "stepper = compile(spec)",
                f"state = stepper.advance(stepper.reset({self.seed}, knobs), knobs, {steps})",
                "outputs = outputs_at(spec, state.particles, knobs, x)  # (particles, inputs, outputs)",
                f"print({method!r}, outputs.mean(axis=0)[0], outputs.std(axis=0)[0])",
            ]
        return "\n".join(lines) + "\n"


def used_by(method: str, ring: bool) -> set[str]:
    """Return the knobs that make a difference to a method: one that climbs alone has no kernel."""
    facts = METHODS[method].facts
    names = set(Spec(TARGET[ring], method=method, capacity=2).knobs()) & set(all_knobs())
    if not facts.interacts:
        names = {name for name in names if name.split(".")[0] not in ("kernel", "bandwidth")}
    names -= set() if ring else {"method.link"}  # a regression has no classes
    return names if facts.functions else names - {"target.on_rows"}
