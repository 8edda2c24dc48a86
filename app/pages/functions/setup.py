"""What the page "Function space" shows, as a value: its link and its recipes, checked in one place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from app.server.limits import LIMITS
from app.ui import link
from stein_core import METHODS, TARGETS, Knob, Recipe, Spec
from stein_core.base.errors import unknown
from stein_core.contract.knobs import PointsKnob
from stein_core.targets.small_networks import WIDTHS

TARGET = {False: "gap_regression", True: "ring_classes"}
CAPACITIES = (6, 10, 20, 50)
MOST = min(CAPACITIES[-1], LIMITS.particles)  # particles
PANELS = {False: 4, True: 2}  # most methods side by side
STEPS = {False: 10_000, True: 5_000}  # of the paper; training pauses there
MOST_STEPS = 100_000
BATCH = {False: 512, True: 64}  # the regression takes all rows, so that curves stand still; the ring the paper's 64
OWN = {"method.particles": 20, "method.step_size": 0.01}
LINKED = 200  # points that fit a link
NOT_SHOWN = ("target.data", "target.handles", "init.shift")

Points = tuple[tuple[float, float], ...]


def points_knob(ring: bool, name: str) -> PointsKnob:
    """Return the knob "data" or "handles" of a tab's target."""
    return next(knob for knob in TARGETS[TARGET[ring]].knobs if knob.name == name)


PAPER = points_knob(False, "data").default


def shown() -> tuple[str, ...]:
    """Return the methods of the page, in order."""
    return tuple(e.name for e in sorted(METHODS.entries(), key=lambda e: e.facts.ensemble) if e.facts.ensemble)


@dataclass(frozen=True)
class FunctionSetup:
    """Methods that are trained side by side on one data set.

    ring: the classes on a ring instead of the regression. width: units of both hidden layers. knobs: name -> value if
    it differs from the page's default. steps: step of the frame; 0 plays to the paper's last step. data: points of the
    regression. handles: where functions repel; () for the default. A bad value raises ValueError.
    """

    ring: bool = False
    methods: tuple[str, ...] = ("ensemble", "wsvgd", "fsvgd")
    width: int = 50
    seed: int = 0
    steps: int = 0
    knobs: Mapping[str, Any] = field(default_factory=dict)
    data: Points = PAPER
    handles: Points = ()

    changes = ()  # none comes with a link

    def __post_init__(self):
        settle = lambda name, value: object.__setattr__(self, name, value)  # noqa: E731  (frozen: the only way in)
        for name in self.methods:
            if name not in shown():
                raise unknown("method", name, shown())
        if not 1 <= len(self.methods) <= PANELS[self.ring]:
            raise ValueError(f"Methods: {len(self.methods)} are chosen; allowed: 1 to {PANELS[self.ring]} here.")
        settle("methods", tuple(name for name in shown() if name in self.methods))
        for name, low, high in (("width", WIDTHS[0], WIDTHS[-1]), ("steps", 0, MOST_STEPS)):
            settle(name, Knob(name, low, low, high, "integer").check(getattr(self, name)))
        settle("data", points_knob(False, "data").check(self.data))
        usual = points_knob(self.ring, "handles")
        handles = usual.check(self.handles) if self.handles else ()
        settle("handles", () if handles == usual.default else handles)
        known = all_knobs()
        for name in self.knobs:
            if name not in known:
                raise unknown("knob", name, known)
        knobs = {name: known[name].check(value) for name, value in self.knobs.items()}
        settle("knobs", {name: value for name, value in knobs.items() if value != default_of(name)})
        if self.value("method.particles") > MOST:
            raise ValueError(
                f"method.particles = {self.value('method.particles')} is out of range; allowed: 1 to {MOST}."
            )
        for method in self.methods:
            self.recipe(method)

    def value(self, name: str) -> Any:
        """Return the present value of a knob."""
        return self.knobs.get(name, default_of(name))

    @property
    def points(self) -> Points:
        """Where functions repel."""
        return self.handles or points_knob(self.ring, "handles").default

    @property
    def rows(self) -> tuple[int, ...]:
        """How many rows data and handles are padded to: another number is another program."""
        counts = (("data", self.data), ("handles", self.points))
        return tuple(next(r for r in points_knob(False, name).rows if r >= len(points)) for name, points in counts)

    def spec(self, method: str) -> Spec:
        """Return the program of one method."""
        capacity = next(size for size in CAPACITIES if size >= self.value("method.particles"))
        options = {"target.width": self.width, "target.batch_size": BATCH[self.ring]}
        return Spec(TARGET[self.ring], method=method, capacity=capacity, options=options)

    def present(self) -> dict[str, Any]:
        """Return every knob of the page by name, with data and handles."""
        points = {"target.handles": self.points} | ({} if self.ring else {"target.data": self.data})
        return {name: self.value(name) for name in all_knobs()} | points

    def knobs_of(self, method: str) -> dict[str, Any]:
        """Return every knob of one method by name, data and handles included."""
        known = self.spec(method).knobs()
        return {name: value for name, value in self.present().items() if name in known}

    def recipe(self, method: str) -> Recipe:
        """Return the run of one method from its start."""
        return Recipe(self.spec(method), self.knobs_of(method), self.seed)

    def posterior(self) -> tuple:
        """Return what the exact band depends on."""
        return self.width, self.value("target.noise"), self.value("target.prior_scale"), self.data

    def to_query(self) -> str:
        """Return the link: only what differs from the page's default. Data beyond 200 points are left out."""
        return link.write(link_fields(), self, FunctionSetup())

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> tuple[FunctionSetup, list[str]]:
        """Return the setup of a link, and one sentence for everything in it that was wrong and left out."""
        setup, problems = link.read(link_fields(), query, cls())
        return setup, list(problems.values())

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
        link.Field("points", _points, _text, attribute="data"),
        link.Field("handles", _points, _text),
    )


def _points(text: str) -> Points:
    try:
        return tuple(tuple(float(v) for v in pair.split(",")) for pair in text.split(";"))
    except ValueError:
        raise ValueError(f"points: {text[:40]!r} is no list of points; allowed: x,y;x,y and so on.") from None


def _text(points: Points) -> str:
    return ";".join(map(link.text_of, points)) if len(points) <= LINKED else ""


def used_by(method: str, ring: bool) -> set[str]:
    """Return the knobs that make a difference to a method: one that climbs alone has no kernel."""
    facts = METHODS[method].facts
    names = set(Spec(TARGET[ring], method=method, capacity=2).knobs()) & set(all_knobs())
    if not facts.interacts:
        names = {name for name in names if name.split(".")[0] not in ("kernel", "bandwidth")}
    names -= set() if ring else {"method.link"}  # a regression has no classes
    return names if facts.functions else names - {"target.on_rows"}


def without_points(setup: FunctionSetup) -> FunctionSetup:
    """Return a setup with the points of the other tab forgotten, for a change of tab."""
    return replace(setup, handles=(), steps=0)
