"""Changes of a run that wait until a program with room for them is there."""

from __future__ import annotations

from typing import Any


class Deferred:
    """Hold changes in their order.

    Attributes:
        room: particles that the program to come has room for.
    """

    def __init__(self):
        self.room = 0
        self._changes: list[tuple[str, Any]] = []

    def __bool__(self) -> bool:
        return bool(self._changes)

    def add(self, name: str, value: Any, room: int) -> bool:
        """Keep a change that needs this room. Return whether no program is to come yet that has it."""
        if name == "method.particles":  # a slider has moved on
            self._changes = [change for change in self._changes if change[0] != name]
        larger = not self._changes or room > self.room
        if larger:
            self.room = max(room, self.room if self._changes else 0)
        self._changes.append((name, value))
        return larger

    def take(self) -> list[tuple[str, Any]]:
        """Return all changes, and keep none."""
        changes, self._changes = self._changes, []
        return changes
