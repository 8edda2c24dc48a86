"""Base of what the training pages show, as a value: its knobs, recipes and link, checked in one place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from stein_core import METHODS, Knob, Recipe, Spec
from stein_core.base.errors import unknown
from steinlab.stage.setup import checked
from steinlab.ui import link

CAPACITIES = (6, 10, 20, 50)  # a program's cost grows with its capacity, so it is kept close to the particles
MOST_STEPS = 100_000
LINKED = 200  # points that fit a link

Points = tuple[tuple[float, float], ...]


def trained_by(names: tuple[str, ...], target: str) -> tuple[str, ...]:
    """Return the methods of a page: these, and all of a user's own that can train the networks of a target."""
    own = (e.name for e in METHODS.entries() if not e.is_ours and not e.facts.sampler and _trains(e.name, target))
    return (*names, *own)


def _trains(method: str, target: str) -> bool:
    try:
        Spec(target, method=method)
    except ValueError:
        return False
    return True


class TrainingSetup:
    """Methods that are trained side by side. A subclass is a frozen dataclass with the fields of `link_fields`.

    Attributes:
        most: particles that the page allows.
        from_start: fields that say the first step.
        changes: none comes with a link.
    """

    methods: tuple[str, ...]
    seed: int
    knobs: Mapping[str, Any]
    most: ClassVar[int]
    from_start: ClassVar[dict[str, int]] = {"steps": 0}
    changes: ClassVar[tuple] = ()

    # ---- what a subclass says

    @staticmethod
    def shown() -> tuple[str, ...]:
        """Return the methods of the page, in order."""
        raise NotImplementedError

    @staticmethod
    def all_knobs() -> dict[str, Knob]:
        """Return every knob of any method of the page but the points, by name."""
        raise NotImplementedError

    @staticmethod
    def default_of(name: str) -> Any:
        """Return the page's default of a knob."""
        raise NotImplementedError

    @staticmethod
    def link_fields() -> tuple[link.Field, ...]:
        """Return the table of the link."""
        raise NotImplementedError

    def spec(self, method: str) -> Spec:
        """Return the program of one method."""
        raise NotImplementedError

    @property
    def placed(self) -> dict[str, Points]:
        """Return the knobs that are points."""
        raise NotImplementedError

    @property
    def has_usual_points(self) -> bool:
        """Return whether all points are where they are at first."""
        raise NotImplementedError

    # ---- what follows

    def settle(self, **values) -> None:
        """Set fields of a frozen dataclass while it is made."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def check(self, limits: Mapping[str, tuple[int, int]]) -> None:
        """Check methods, knobs and fields that are whole numbers.

        Raises:
            ValueError: names what is wrong, and what is allowed.
        """
        shown, known = self.shown(), self.all_knobs()
        for name in self.methods:
            if name not in shown:
                raise unknown("method", name, shown)
        if not self.methods:
            raise ValueError("Methods: none is chosen; allowed: one or more.")
        self.settle(methods=tuple(name for name in shown if name in self.methods))
        for name, (low, high) in limits.items():
            self.settle(**{name: Knob(name, low, low, high, "integer").check(getattr(self, name))})
        knobs = checked("knob", self.knobs, known)
        self.settle(knobs={name: value for name, value in knobs.items() if value != self.default_of(name)})
        if self.particles > self.most:
            raise ValueError(f"method.particles = {self.particles} is out of range; allowed: 1 to {self.most}.")

    def value(self, name: str) -> Any:
        """Return the present value of a knob."""
        return self.knobs.get(name, self.default_of(name))

    @property
    def particles(self) -> int:
        """Return the number of particles."""
        return self.value("method.particles")

    @property
    def capacity(self) -> int:
        """Return the capacity of the programs."""
        return next(size for size in CAPACITIES if size >= self.particles)

    def networks(self) -> tuple[Self, ...]:
        """Return what each row of the page trains."""
        return (self,)

    def present(self) -> dict[str, Any]:
        """Return every knob of the page by name, with the points."""
        return {name: self.value(name) for name in self.all_knobs()} | self.placed

    def knobs_of(self, method: str) -> dict[str, Any]:
        """Return every knob of one method by name, with the points."""
        known = self.spec(method).knobs()
        return {name: value for name, value in self.present().items() if name in known}

    def recipe(self, method: str) -> Recipe:
        """Return the run of one method from its start."""
        return Recipe(self.spec(method), self.knobs_of(method), self.seed)

    def to_query(self) -> str:
        """Return the link: only what differs from the page's default. Data beyond 200 points are left out."""
        return link.write(self.link_fields(), self, type(self)())

    @classmethod
    def from_query(cls, query: Mapping[str, str]) -> tuple[Self, list[str]]:
        """Return the setup of a link, and one sentence for everything in it that was wrong and left out."""
        setup, problems = link.read(cls.link_fields(), query, cls())
        return setup, list(problems.values())


def text_of_points(points: Points) -> str:
    """Return points as a link has them, or "" if they are too many."""
    return ";".join(map(link.text_of, points)) if len(points) <= LINKED else ""
