"""The program of a fit: it compiles less than the one of a page, and its draws come in pairs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stein_core.contract.spec import Spec
from stein_core.runs.assembly import assemble
from stein_core.runs.cache import make_room
from stein_core.runs.memory import check_memory
from stein_core.runs.runner import Stepper


class LeanStepper(Stepper):
    """A Stepper for one run that nobody steers.

    Kernel, bandwidth rule and other named choices are constants, so that a program has one branch of each. One program
    computes the view and the next step. Normals are drawn in pairs, eps and -eps: what is linear in them has no noise.

    Args:
        spec: the run's.
        choices: name -> value of the knobs that are named choices; the others keep their default.

    Raises:
        ValueError: the program would not fit into memory, or memory maps run short.
    """

    def __init__(self, spec: Spec, choices: Mapping[str, Any]):
        check_memory(spec)
        make_room()
        super().__init__(spec)
        self._wide = True
        named = {name for name, knob in spec.knobs().items() if knob.choices}
        self._choices = {name: value for name, value in self.knobs_of(choices).traced.items() if name in named}

    def _assembled(self, knobs, data):
        return assemble(self.spec, {**knobs, **self._choices}, data, target=self.target, paired=True)

    @property
    def gradients(self) -> int:
        """Return how many gradients of the log density a step computes, those of spare rows included."""
        return self.spec.capacity * self.spec.draws
