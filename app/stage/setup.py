"""A Setup: what a page shows, as a value. It is the link in the address bar, a preset, and one Recipe a panel."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any, ClassVar, Mapping

from stein_core import GUIDES, METHODS, TARGETS, Recipe, Spec
from stein_core.base.distances import DENSE
from stein_core.base.errors import short, unknown, whole
from stein_core.contract.common_knobs import COMMON
from stein_core.contract.knobs import PointsKnob
from stein_core.contract.recipe import EDITS
from stein_core.contract.registry import Entry, Registry
from stein_core.contract.spec import all_options, options_of_dim
from stein_core.runs.nearness import LEAST, MOST as LARGEST, check_kernel, near_for
from steinlab.server.limits import LIMITS
from steinlab.ui import link

PANELS = 3
CAPACITY = LIMITS.particles + LIMITS.particles % 2  # most particles a page shows
# Beyond it each size is a program of its own, which a page may offer.
SIZES = tuple(
    size for size in (k * 10**power for power in range(2, 7) for k in (1, 2, 5)) if CAPACITY < size <= LIMITS.crowd
)
MOST = max([CAPACITY, *SIZES])
MOST_STEPS = 100_000  # a link is run up to here at most
MOST_CHANGES = 300  # beyond this a link would outgrow what servers take


@dataclass(frozen=True)
class Setup:
    """One to three methods on one target, seed and clock.

    guide: for the methods that allow it; the others, and all without one, take their default. options: name -> value,
    for the methods that have it. dim: None if it follows from the options.
    knobs: name -> value over all methods (each takes the ones it has). changes: (step, name, value) as in Recipe.
    steps: where the picture was taken; 0 means that it plays from the start. Checked by building every Recipe: a bad
    value raises ValueError. near: values of the RBF kernel that sums of more than DENSE particles leave out; None for
    sums over all pairs.
    """

    target: str = "oring"
    methods: tuple[str, ...] = ("svgd", "smi")
    dim: int | None = None
    guide: str | None = None
    optimizer: str = "adam"
    draws: int = 10
    seed: int = 0
    knobs: Mapping[str, Any] = field(default_factory=dict)
    changes: tuple[tuple[int, str, Any], ...] = ()
    steps: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    near: float | None = None
    most: ClassVar[int] = CAPACITY  # particles

    def __post_init__(self):
        if not 1 <= len(self.methods) <= PANELS or len(set(self.methods)) < len(self.methods):
            raise ValueError(f"methods = {short(','.join(self.methods))!r}; allowed: 1 to {PANELS} different ones.")
        if self.steps < 0:
            raise ValueError(f"steps = {short(self.steps)} is out of range; allowed: 0 to {MOST_STEPS}.")
        options = dict(self.options) | self._present("target", TARGETS) | self._present("guide", GUIDES)
        if said := options_of_dim(TARGETS[self.target], self.dim, options):
            options = {**said, **options}
            object.__setattr__(self, "dim", None)
        object.__setattr__(self, "options", checked("option", options, all_options(self.target)))
        used = {name for method in self.methods for name in self.spec(method, CAPACITY).options}
        object.__setattr__(self, "options", {name: v for name, v in self.options.items() if name in used})
        object.__setattr__(self, "knobs", checked("knob", self.knobs, all_knobs(self.target)))
        for method in self.methods:
            if problem := LIMITS.refusal(self.recipe(method, min(room_for(self.particles), self.most)).spec.dim, 1):
                raise ValueError(problem)
        if self.near is not None:
            self._check_near(self.near)

    def _check_near(self, near: float) -> None:
        """Refuse sums over near particles that a method, its number of coordinates or a kernel does not allow."""
        for method in self.methods:
            near_for(self.spec(method, self.most), near)
        kernels = [value for _, name, value in self.changes if name == "kernel.name"]
        for knobs in (self.knobs, *({"kernel.name": kernel} for kernel in kernels)):
            check_kernel(knobs)

    def near_of(self, capacity: int) -> float | None:
        """Return what the sums of a program leave out. Up to DENSE particles all pairs are summed."""
        return self.near if capacity > DENSE else None

    def may_be_near(self) -> bool:
        """Return whether its methods allow sums over near particles."""
        try:
            for method in self.methods:
                near_for(self.spec(method, self.most), LEAST)
        except ValueError:
            return False
        return True

    def _present(self, group: str, registry: Registry) -> dict[str, Any]:
        """Take the present name of a target or a guide, and return the options that stand for a former one.

        A guide that is the default of one of the methods needs no name.
        """
        if (name := getattr(self, group)) is None:
            return {}
        name, more = registry.present(name)
        plain = more and group == "guide" and any(METHODS[m].facts.guides[0] == name for m in self.methods)
        object.__setattr__(self, group, None if plain else registry[name].name)
        return {f"{group}.{option}": value for option, value in more.items()}

    def spec(self, method: str, capacity: int) -> Spec:
        """The Spec of one panel."""
        own = {name: getattr(self, name) for name in ("target", "dim", "guide", "optimizer", "draws", "options")}
        return Spec.fitting(method=method, capacity=capacity, **own)  # each method takes what it has

    def recipe(self, method: str, capacity: int) -> Recipe:
        """The Recipe of one panel: the knobs and changes that its method knows."""
        spec = self.spec(method, capacity)
        known = {*spec.knobs(), *EDITS}
        knobs = {k: v for k, v in self.knobs.items() if k in known}
        return Recipe(spec, knobs, self.seed, tuple(c for c in self.changes if c[1] in known))

    @property
    def linkable(self) -> bool:
        """Whether a link repeats this exactly."""
        return len(self.changes) <= MOST_CHANGES and self.steps <= MOST_STEPS

    @property
    def particles(self) -> int:
        """The most particles that its knobs and changes ever ask for."""
        count = most = self.knobs.get("method.particles", all_knobs()["method.particles"].default)
        for _, name, value in self.changes:
            count = {"add": count + 1, "remove": count - 1, "method.particles": value}.get(name, count)
            most = max(most, count)
        return most

    def to_query(self, plain: "Setup | None" = None) -> str:
        """Write the link: target, methods, and what differs from `plain`.

        What is not `linkable` (a slider dragged for long, a very long run) becomes a run from the start with the
        last values.
        """
        if not self.linkable:
            turned = {name: value for _, name, value in self.changes if name not in EDITS}
            return replace(self, knobs={**self.knobs, **turned}, changes=(), steps=0).to_query(plain)
        return link.write(link_fields(self.target), self, plain or Setup())

    @classmethod
    def from_query(cls, query: Mapping[str, str], plain: "Setup | None" = None) -> tuple["Setup", list[str]]:
        """The Setup of a link (what it leaves out is `plain`'s), and one sentence for everything in it that was wrong
        and left out."""
        plain = plain or cls()
        target, _ = TARGETS.present(query.get("target", plain.target))
        setup, problems = link.read(link_fields(target if target in TARGETS else plain.target), query, plain)
        return setup, list(problems.values())


class CrowdSetup(Setup):
    """A Setup of a page that shows many particles."""

    most = MOST


def room_for(particles: int) -> int:
    """Return the smallest capacity of at least CAPACITY that holds so many particles, or MOST."""
    return next((size for size in (CAPACITY, *SIZES) if size >= particles), MOST)


def checked(kind: str, given: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """Return values, checked by the knob or option of their name."""
    for name in given:
        if name not in known:
            raise unknown(kind, name, known)
    return {name: known[name].check(value) for name, value in given.items()}


def all_knobs(target: str | None = None) -> dict[str, Any]:
    """Every knob of any method or target that a slider or a select can show, by name. If several have one name, it is
    that of `target`."""
    own = () if target is None else (TARGETS[target],)
    return _knobs_of(tuple(METHODS.entries()), (*TARGETS.entries(), *own))


@lru_cache(maxsize=64)
def _knobs_of(methods: tuple[Entry, ...], targets: tuple[Entry, ...]) -> dict[str, Any]:
    knobs = {knob.name: knob for knob in COMMON}
    for entry in methods:
        knobs |= Spec("gaussian", method=entry.name).knobs()
    for entry in targets:
        plain = [knob for knob in entry.knobs if not isinstance(knob, PointsKnob)]
        knobs |= {f"target.{knob.name}": replace(knob, name=f"target.{knob.name}") for knob in plain}
    return knobs


def link_fields(target: str | None = None) -> tuple[link.Field, ...]:
    """The table of the link of a Setup with this target."""
    return (
        link.Field("target", always=True),
        link.Field("methods", link.names, always=True),
        link.whole_number("dim"),
        link.Field("guide"),
        link.Field("optimizer"),
        link.whole_number("draws"),
        link.Field("near", _near),
        link.whole_number("seed"),
        link.Field("steps", _steps),
        *(link.Field(name, default=knob.default) for name, knob in all_knobs(target).items()),
        *(
            link.Field(name, option.check, attribute="options", default=option.default)
            for name, option in all_options(target).items()
        ),
        link.Field("changes", partial(_changes, target), _text_of_changes),
    )


def _near(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"near = {short(text)!r}; allowed: {LEAST:g} to {LARGEST:g}.") from None


def _steps(text: str) -> int:
    steps = whole("steps", text)
    if steps > MOST_STEPS:
        raise ValueError(f"steps = {short(steps)} is out of range; allowed: 0 to {MOST_STEPS}.")
    return steps


def _changes(target: str | None, text: str) -> tuple[tuple[int, str, Any], ...]:
    try:
        return tuple(_change(target, item) for item in text.split(";"))
    except (ValueError, KeyError):
        raise ValueError("the changes in the link could not be read; they were left out.") from None


def _change(target: str | None, item: str) -> tuple[int, str, Any]:
    step, name, value = item.split("~")
    if name == "add":
        return int(step), name, tuple(float(v) for v in value.split(","))
    if name == "move":
        index, x, y = value.split(",")
        return int(step), name, (int(index), float(x), float(y))
    return int(step), name, int(value) if name == "remove" else all_knobs(target)[name].check(value)


def _text_of_changes(changes: tuple[tuple[int, str, Any], ...]) -> str:
    return ";".join(f"{step}~{name}~{link.text_of(value)}" for step, name, value in changes)
