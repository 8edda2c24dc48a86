"""The browser's address bar, Back button and clipboard, for every page."""

from collections.abc import Callable
from pathlib import Path

import param
from panel.custom import JSComponent

from app.server.messages import CheckedMessages, flag, one_of, text, whole

HERE = Path(__file__).parent


class Browser(CheckedMessages, JSComponent):
    """Talk to the browser of a page. Invisible.

    Args:
        on_message: gets, on the event loop, {"ready": True, "narrow": bool} when a browser has (re)connected,
            {"back": "?a=1"} when the user went back or forward to that address, and {"copied": bool} after a copy.
    """

    schemas = ({"ready": flag, "narrow": flag}, {"back": text}, {"copied": flag})
    _esm = "\n".join(
        (HERE / name).read_text()
        for name in (
            "reconnect.js",
            "offline.js",
            "drop_stale_writes.js",
            "guard_layout.js",
            "guard_hidden.js",
            "browser.js",
        )
    )

    def __init__(self, on_message: Callable[[dict], None], **params):
        super().__init__(**{"width": 0, "height": 0, "margin": 0, **params})
        self.on_message = on_message

    def copy(self, text: str) -> None:
        """Copy a text to the user's clipboard."""
        self._send_msg({"copy": text})

    def copy_link(self, query: str) -> None:
        """Copy the app's address with this query to the user's clipboard."""
        self._send_msg({"copy_link": query})

    def show_link(self, query: str, push: bool = False) -> None:
        """Show a query in the address bar without a reload.

        Args:
            query: "?a=1&b=2".
            push: add a new entry to the history.
        """
        self._send_msg({"link": query, "push": push})

    def handle_message(self, data) -> None:
        self.on_message(data)


class Arrival(JSComponent):
    """Call back when the browser has rendered it, and with it all that was sent in the same layout. Invisible."""

    _esm = "export function render({model}) { model.send_msg('here'); }"

    def __init__(self, arrived: Callable[[], None], **params):
        super().__init__(**{"width": 0, "height": 0, "margin": 0, **params})
        self.arrived = arrived

    def _handle_msg(self, data) -> None:
        self.arrived()


class Keys(CheckedMessages, JSComponent):
    """Hear the keys of the lecture while a page without a stage is on screen. Invisible.

    Args:
        on_key: gets "p" (for Escape too), "left" or "right".
    """

    lecture = param.Boolean(default=False, doc="Arrows and Escape count too.")
    height_of_window = param.Integer(default=720, doc="In pixels; the browser tells.")

    schemas = ({"key": one_of("p", "left", "right")}, {"height": whole})
    _esm = (HERE / "keys.js").read_text()

    def __init__(self, on_key: Callable[[str], None], **params):
        super().__init__(**{"width": 0, "height": 0, "margin": 0, **params})
        self.on_key = on_key

    def handle_message(self, data) -> None:
        if "key" in data:
            self.on_key(data["key"])
        else:
            self.height_of_window = min(max(data["height"], 320), 4000)
