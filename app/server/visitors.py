"""Count the open pages of a server."""

from __future__ import annotations

import math
import time

from steinlab.server.limits import LIMITS


class Visitors:
    """Count the open pages of a server."""

    ARRIVING = 4  # seconds from the request until the page shows its first frame

    def __init__(self):
        self._open: set[int] = set()
        self._last = -math.inf

    @property
    def arriving(self) -> bool:
        """Whether a page was requested within the last ARRIVING seconds."""
        return time.monotonic() < self._last + self.ARRIVING

    def admit(self, document) -> bool:
        """Count a page until its session ends.

        Returns:
            False, without counting it, if the server has as many pages as LIMITS allows.
        """
        if len(self._open) >= LIMITS.sessions:
            return False
        key, self._last = id(document), time.monotonic()
        self._open.add(key)
        document.on_session_destroyed(lambda context: self._open.discard(key))
        return True


VISITORS = Visitors()
