"""Edits of a run on its way: particles that are added or removed, and knobs that are turned."""

from __future__ import annotations

from typing import Any, Callable, Mapping

import numpy as np

from stein_core.contract.spec import data_of
from stein_core.contract.types import State
from stein_core.runs.assembly import assemble


class Edits:
    """The edits of a Stepper. No edit compiles."""

    def add(self, state: State, knobs: Mapping[str, Any], point) -> tuple[State, dict[str, Any]]:
        """Add a particle at `point`. A full or single-particle program, or a sampler, returns what it was given.

        Args:
            state, knobs: the run.
            point: the first two coordinates; the other ones are those of the target's centre.

        Returns:
            The new state, and the knobs with one more particle.
        """
        count = self._count(knobs)
        if self._fixed or count >= self.spec.capacity:
            return state, dict(knobs)
        location = self._center
        location[: len(point)] = np.asarray(point)[: self.spec.dim]

        def forget(leaf):  # a removed particle may have left its momentum in this row
            leaf[count] = 0
            return leaf

        state = self._on_rows(forget, state, knobs)
        state.particles[count] = self._init_particle(location, self._traced(knobs), data_of(self.spec))
        return state, {**knobs, "method.particles": count + 1}

    def remove(self, state: State, knobs: Mapping[str, Any], index: int) -> tuple[State, dict[str, Any]]:
        """Remove particle `index`: swap it behind the active ones. The last particle stays.

        Returns:
            The new state, and the knobs with one particle less.
        """
        count = self._count(knobs)
        if self._single or self._fixed or count <= 1 or not 0 <= index < count:
            return state, dict(knobs)
        order = np.arange(self.spec.capacity)
        order[[index, count - 1]] = order[[count - 1, index]]

        swapped = self._on_rows(lambda rows: rows[order], state, knobs)
        return swapped, {**knobs, "method.particles": count - 1}

    def _on_rows(self, function: Callable, state: State, knobs: Mapping[str, Any]) -> State:
        """Apply `function` to the particles, and to each array of the method's memory with one row per particle."""
        _, method = assemble(self.spec, self._traced(knobs))
        on_copy = lambda rows: function(np.array(rows))  # noqa: E731
        return state._replace(particles=on_copy(state.particles), memory=method.per_particle(on_copy, state.memory))

    def change(self, state: State, knobs: Mapping[str, Any], name: str, value: Any) -> tuple[State, dict[str, Any]]:
        """Apply one entry of `Recipe.changes`: "add", "remove" or a knob.

        Returns:
            The new state, and the new knobs as a plain dict.
        """
        if name == "add":
            return self.add(state, knobs, value)
        if name == "remove":
            return self.remove(state, knobs, value)
        return state, {**knobs, name: value}

    def _count(self, knobs) -> int:
        return int(self.knobs_of(knobs).traced["method.particles"])
