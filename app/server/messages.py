"""What a browser sends to our own components: only what their scripts say is heard.

An exception there would go back to the browser in Bokeh's answer, with its traceback and the server's paths.
"""

import logging
import math
from typing import Any, ClassVar

from stein_core.errors import short

log = logging.getLogger(__name__)


class Heard:
    """For a component. forms: the messages that its script sends, name -> test of the value. `hear` gets one that fits, with
    the names of its form alone; any other is dropped with a line in the log."""

    forms: ClassVar[tuple[dict[str, Any], ...]]

    def _handle_msg(self, data) -> None:
        for form in self.forms if isinstance(data, dict) else ():
            if all(name in data and fits(data[name]) for name, fits in form.items()):
                self.hear({name: data[name] for name in form})
                return
        log.warning("%s: dropped a message that no script of ours sends: %r", type(self).__name__, short(data))


def text(value) -> bool:
    """Any text."""
    return isinstance(value, str)


def flag(value) -> bool:
    """True or False."""
    return isinstance(value, bool)


def number(value) -> bool:
    """A finite number below 1e300."""
    return isinstance(value, (int, float)) and abs(value) < 1e300 and math.isfinite(value)


def whole(value) -> bool:
    """A number that counts something."""
    return isinstance(value, int) and 0 <= value < 2**31


def point(value) -> bool:
    """Two numbers."""
    return isinstance(value, (list, tuple)) and len(value) == 2 and all(map(number, value))


def pairs(value) -> bool:
    """A list of points."""
    return isinstance(value, (list, tuple)) and all(map(point, value))


def one_of(*allowed: str):
    """The test of a value that is one of a few texts."""
    return lambda value: isinstance(value, str) and value in allowed
