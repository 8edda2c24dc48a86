"""The browser's address bar, Back button, clipboard and keys, for every page."""

from collections.abc import Callable
from pathlib import Path

import param
from panel.custom import JSComponent

from steinlab.server.messages import CheckedMessages, flag, one_of, text, whole

HERE = Path(__file__).parent


class Browser(CheckedMessages, JSComponent):
    """Talk to the browser of a page. Invisible.

    Args:
        on_message: gets, on the event loop, {"ready": True, "narrow": bool, "height": pixels, "base": address of the
            app, "class": what `keep_class` was given} when a browser has (re)connected, {"height": pixels} when its
            window has changed, {"back": "?a=1"} when the user went back or forward to that address, {"copied": bool}
            after a copy, {"key": "p", "left" or "right"} for the keys of the lecture (Escape is "p", too), and
            {"theme": "light" or "dark"} from the page that it is part of.
    """

    lecture = param.Boolean(default=False, doc="Arrows, Page Up, Page Down and Escape count too.")

    schemas = (
        {"ready": flag, "narrow": flag, "height": whole, "base": text, "class": text},
        {"height": whole},
        {"back": text},
        {"copied": flag},
        {"key": one_of("p", "left", "right")},
        {"theme": one_of("light", "dark")},
    )
    _esm = "\n".join(
        (HERE / name).read_text()
        for name in (
            "reconnect.js",
            "offline.js",
            "drop_stale_writes.js",
            "guard_layout.js",
            "guard_hidden.js",
            "guard_loading.js",
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

    def copy_embed(self, query: str) -> None:
        """Copy an iframe of the app's address with this query to the user's clipboard."""
        self._send_msg({"copy_embed": query})

    def cast(self, news: dict) -> None:
        """Tell the other windows of this browser, such as that with the speaker's notes."""
        self._send_msg({"cast": news})

    def keep_class(self, text: str) -> None:
        """Let this tab remember the class that it leads, also after it was loaded again; "" forgets it."""
        self._send_msg({"keep_class": text})

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
