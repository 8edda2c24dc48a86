"""A checked posterior as page "Your posterior" holds it: what the command said, and what was asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, eq=False)
class Shown:
    """One result of the page.

    Args:
        report: what the command says, `Report.to_dict` and more.
        page: the report as one HTML page.
        title: of the result.
        of: what the select calls the posterior.
        way: its key of WAYS, UPLOAD, or "run" and a method for a run of a stage.
        target: the posterior, or "" for a file alone.
        words: the command.
        files: contents of the files that the command reads, by name.
        example: whether it was computed before.
    """

    report: Mapping[str, Any] = field(repr=False)
    page: str = field(repr=False)
    title: str
    of: str
    way: str
    target: str
    words: tuple[str, ...]
    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    example: bool = False

    @property
    def ok(self) -> bool | None:
        """Return whether the verdict finds nothing wrong; None if not all was checked."""
        return self.report["ok"]

    @property
    def findings(self) -> Mapping[str, Any]:
        """Return what each check has found, by its name."""
        return self.report["findings"]

    @property
    def particles(self) -> int:
        """Return how many particles were fitted, 1 if there was no fit."""
        return self.report.get("particles", 1)

    @property
    def numbers(self) -> dict[str, Any]:
        """Return the report in plain JSON types, with what it is about."""
        about = {"title": self.title, "of": self.of, "way": self.way, "target": self.target}
        return {**self.report, **about, **({"example": True} if self.example else {})}

    def repeats(self, other: Shown) -> bool:
        """Return whether the other result is about the same posterior, files and way."""
        return (self.way, self.target, self.files) == (other.way, other.target, other.files)
