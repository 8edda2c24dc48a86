"""What the programs of the site are for: a posterior, its dimension and an optimizer."""

from __future__ import annotations

from dataclasses import dataclass

from stein_core import TARGETS, Spec


@dataclass(frozen=True)
class Place:
    """Hold a posterior in some dimension, and what makes a step of a force."""

    target: str
    dim: int = 2
    optimizer: str = "adam"

    @property
    def key(self) -> str:
        """Part of the names of files: "gaussian-50-sgd"."""
        dim = f"-{self.dim}" if self.dim != 2 else ""
        return f"{self.target}{dim}{f'-{self.optimizer}' if self.optimizer != 'adam' else ''}"

    @property
    def label(self) -> str:
        """What a menu says."""
        return TARGETS[self.target].label + (f", {self.dim} dimensions" if self.dim != 2 else "")

    def spec(self, method: str, capacity: int) -> Spec:
        """Return the spec of a program, as page Particles has it."""
        own = {"target": self.target, "dim": self.dim, "optimizer": self.optimizer}
        return Spec.fitting(method=method, draws=10, capacity=capacity, **own)
