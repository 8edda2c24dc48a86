"""The keys of a reader of lessons."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import param
from panel.custom import JSComponent

from steinlab.server.messages import CheckedMessages, one_of


class Reader(CheckedMessages, JSComponent):
    """Send the keys of the page, and scroll it to its top. Invisible.

    Args:
        on_key: on_key("next" or "previous") is called on the event loop.
    """

    lecture = param.Boolean(default=False, doc="The keys are those of the lecture.")

    schemas = ({"key": one_of("next", "previous")},)
    _esm = Path(__file__).parent / "reader.js"

    def __init__(self, on_key: Callable[[str], None], **params):
        super().__init__(**{"width": 0, "height": 0, "margin": 0, **params})
        self.on_key = on_key

    def top(self) -> None:
        """Scroll to the top."""
        self._send_msg({"top": True})

    def handle_message(self, data) -> None:
        self.on_key(data["key"])
