"""A Setup: what a page shows, as a value. It is the link in the address bar, a preset, and one Recipe a panel."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Mapping
from urllib.parse import urlencode

from app.server.limits import LIMITS
from stein_core import GUIDES, METHODS, Recipe, Spec
from stein_core.errors import short, unknown, whole
from stein_core.recipe import COMMON, EDITS

PANELS = 3
CAPACITY = LIMITS.particles + LIMITS.particles % 2  # most particles a page shows
MOST_STEPS = 100_000  # a link is run up to here at most
MOST_CHANGES = 300  # beyond this a link would outgrow what servers take


@dataclass(frozen=True)
class Setup:
    """One to three methods on one target, seed and clock.

    guide: for the methods that allow it; the others, and all without one, take their default.
    knobs: name -> value over all methods (each takes the ones it has). changes: (step, name, value) as in Recipe.
    steps: where the picture was taken; 0 means that it plays from the start. Checked by building every Recipe: a bad
    value raises ValueError.
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

    def __post_init__(self):
        if not 1 <= len(self.methods) <= PANELS or len(set(self.methods)) < len(self.methods):
            raise ValueError(f"methods = {short(','.join(self.methods))!r}; allowed: 1 to {PANELS} different ones.")
        if self.steps < 0:
            raise ValueError(f"steps = {short(self.steps)} is out of range; allowed: 0 to {MOST_STEPS}.")
        if self.guide is not None:
            GUIDES[self.guide]
        known = all_knobs()
        for name in self.knobs:
            if name not in known:
                raise unknown("knob", name, known)
        object.__setattr__(self, "knobs", {name: known[name].check(value) for name, value in self.knobs.items()})
        for method in self.methods:
            if problem := LIMITS.refusal(self.recipe(method, CAPACITY).spec.dim, 1):
                raise ValueError(problem)

    def spec(self, method: str, capacity: int) -> Spec:
        """The Spec of one panel."""
        guide = self.guide if self.guide in METHODS[method].facts.guides else None
        return Spec(self.target, self.dim, method, guide, self.optimizer, self.draws, capacity)

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
        """ "target=...&methods=...": and else only what differs from `plain`, numbers as short as they read back the same.

        What is not `linkable` (a slider dragged for long, a very long run) becomes a run from the start with the
        last values.
        """
        if not self.linkable:
            turned = {name: value for _, name, value in self.changes if name not in EDITS}
            return replace(self, knobs={**self.knobs, **turned}, changes=(), steps=0).to_query(plain)
        plain = plain or Setup()
        fields: dict[str, Any] = {"target": self.target, "methods": ",".join(self.methods)}
        for name in ("dim", "guide", "optimizer", "draws", "seed", "steps"):
            if getattr(self, name) != getattr(plain, name):
                fields[name] = getattr(self, name)
        for name, knob in all_knobs().items():
            value, usual = (setup.knobs.get(name, knob.default) for setup in (self, plain))
            if value != usual:
                fields[name] = _text(value)
        if self.changes:
            fields["changes"] = ";".join(f"{s}~{n}~{_text(v)}" for s, n, v in self.changes)
        return urlencode(fields, safe=",;~:")

    @classmethod
    def from_query(cls, query: Mapping[str, str], plain: "Setup | None" = None) -> tuple["Setup", list[str]]:
        """The Setup of a link (what it leaves out is `plain`'s), and one sentence for everything in it that was wrong
        and left out."""
        setup, problems = plain or cls(), []

        def take(**change):
            nonlocal setup
            try:
                setup = replace(setup, **change)
            except ValueError as error:
                problems.append(str(error))

        for name in ("target", "dim", "guide", "optimizer", "draws", "seed", "steps"):
            if name in query:
                try:
                    take(
                        **{name: query[name] if name in ("target", "guide", "optimizer") else whole(name, query[name])}
                    )
                except ValueError as error:
                    problems.append(str(error))
        if setup.steps > MOST_STEPS:
            problems.append(f"steps = {short(setup.steps)} is out of range; allowed: 0 to {MOST_STEPS}.")
            setup = replace(setup, steps=0)
        if "methods" in query:
            take(methods=tuple(query["methods"].split(",")))
        for name, value in query.items():
            if "." in name:
                take(knobs={**setup.knobs, name: value})
            elif name == "knobs" or name not in cls.__dataclass_fields__:
                problems.append(f"unknown field {short(name)!r} in the link; it was left out.")
        if "changes" in query:
            try:
                take(changes=tuple(_change(item) for item in query["changes"].split(";")))
            except (ValueError, KeyError):
                problems.append("the changes in the link could not be read; they were left out.")
        return setup, problems


@cache
def all_knobs() -> dict[str, Any]:
    """Every knob of any method, by name."""
    knobs = {knob.name: knob for knob in COMMON}
    for method in METHODS:
        knobs |= Spec("gaussian", method=method).knobs()
    return knobs


def _text(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        return ",".join(_text(v) for v in value)
    return repr(value) if isinstance(value, float) else str(value)


def _change(item: str) -> tuple[int, str, Any]:
    step, name, value = item.split("~")
    if name == "add":
        return int(step), name, tuple(float(v) for v in value.split(","))
    return int(step), name, int(value) if name == "remove" else all_knobs()[name].check(value)
