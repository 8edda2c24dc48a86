"""Check what a browser sends to our own components.

Without the check an exception would go back to the browser in Bokeh's answer.
"""

import logging
import math
from typing import Any, ClassVar

from stein_core.base.errors import short

log = logging.getLogger(__name__)


class CheckedMessages:
    """Mixin of a component that accepts only the messages that its own script sends.

    Attributes:
        schemas: a dict for each kind of message, name -> test of the value.
    """

    schemas: ClassVar[tuple[dict[str, Any], ...]]

    def _handle_msg(self, data) -> None:
        for schema in self.schemas if isinstance(data, dict) else ():
            if all(name in data and fits(data[name]) for name, fits in schema.items()):
                self.handle_message({name: data[name] for name in schema})
                return
        log.warning("%s: dropped a message that no script of ours sends: %r", type(self).__name__, short(data))

    def handle_message(self, data: dict[str, Any]) -> None:
        """Handle a message that fits a schema. On the event loop.

        Args:
            data: the names of that schema and no others.
        """
        raise NotImplementedError


def text(value) -> bool:
    """Accept any text."""
    return isinstance(value, str)


def flag(value) -> bool:
    """Accept True and False."""
    return isinstance(value, bool)


def number(value) -> bool:
    """Accept a finite number below 1e300."""
    return isinstance(value, (int, float)) and abs(value) < 1e300 and math.isfinite(value)


def whole(value) -> bool:
    """Accept a whole number from 0 to 2^31 - 1."""
    return isinstance(value, int) and 0 <= value < 2**31


def point(value) -> bool:
    """Accept two numbers."""
    return isinstance(value, (list, tuple)) and len(value) == 2 and all(map(number, value))


def pairs(value) -> bool:
    """Accept a list of points."""
    return isinstance(value, (list, tuple)) and all(map(point, value))


def one_of(*allowed: str):
    """Return the test of a value that is one of a few texts."""
    return lambda value: isinstance(value, str) and value in allowed
