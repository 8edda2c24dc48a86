"""Edits of a run on its way: particles that are added, removed or moved, and knobs that are turned."""

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
        state = self._cleared(state, knobs, count)  # a removed particle may have left its momentum in this row
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

    def move(self, state: State, knobs: Mapping[str, Any], index: int, point) -> tuple[State, dict[str, Any]]:
        """Move particle `index` to `point`. A sampler, or an index without a particle, returns what it was given.

        The particle keeps its width. The method forgets its past, so that no old momentum carries it on.

        Args:
            state, knobs: the run.
            index: of the particle; 0 for the only one of a single-particle program.
            point: the first two coordinates; the other ones stay.

        Returns:
            The new state, and the knobs as they were.
        """
        if self._fixed or not 0 <= index < (1 if self._single else self._count(knobs)):
            return state, dict(knobs)
        particles = np.array(state.particles)
        point = np.asarray(point)[: self.spec.dim]
        particles[index, : len(point)] = point  # of every guide the location comes first
        return self._cleared(state, knobs, index)._replace(particles=particles), dict(knobs)

    def _cleared(self, state: State, knobs: Mapping[str, Any], index: int) -> State:
        """Return the state with zeros in one row of the particles and of the method's memory."""

        def clear(leaf):
            leaf[index] = 0
            return leaf

        return self._on_rows(clear, state, knobs)

    def _on_rows(self, function: Callable, state: State, knobs: Mapping[str, Any]) -> State:
        """Apply `function` to the particles, and to each array of the method's memory with one row per particle."""
        _, method = assemble(self.spec, self._traced(knobs))
        on_copy = lambda rows: function(np.array(rows))  # noqa: E731
        return state._replace(particles=on_copy(state.particles), memory=method.per_particle(on_copy, state.memory))

    def change(self, state: State, knobs: Mapping[str, Any], name: str, value: Any) -> tuple[State, dict[str, Any]]:
        """Apply one entry of `Recipe.changes`: "add", "remove", "move" or a knob.

        Returns:
            The new state, and the new knobs as a plain dict.
        """
        if name == "add":
            return self.add(state, knobs, value)
        if name == "remove":
            return self.remove(state, knobs, value)
        if name == "move":
            return self.move(state, knobs, value[0], value[1:])
        return state, {**knobs, name: value}

    def _count(self, knobs) -> int:
        return int(self.knobs_of(knobs).traced["method.particles"])
