"""What closed pages leave behind, and when Python looks for it."""

from __future__ import annotations

import asyncio
import gc
from contextvars import Context

from app.server.streaming import SHARE
from stein_core.machine import trim_memory


class Garbage:
    """When Python looks through all that lives for what nobody can reach any more: all pages stand still meanwhile, for
    half a second where thirty are open, and Panel asks for it a few seconds after one is closed. What is there when a page
    has been loaded is frozen, which takes it out of such searches, until MOST pages have ended or nobody plays."""

    MOST = 5  # a closed page holds 13 to 55 MB
    SOON, LATER = 10.0, 30.0  # seconds

    def __init__(self):
        self._ended = 0

    def page_ended(self) -> None:
        """On the event loop, when a page's session has ended. Each has a timer of its own: `--warm` ends one on a loop
        that ends with it."""
        self._ended += 1
        self._look_soon()

    def _look_soon(self) -> None:
        asyncio.get_running_loop().call_later(
            self.SOON, self._look, context=Context()
        )  # not the page's own: it holds it

    def _look(self) -> None:
        if not self._ended:
            return
        if SHARE.pages() and self._ended < self.MOST:
            self._look_soon()
            return
        self._ended = 0
        self._search()
        asyncio.get_running_loop().call_later(self.LATER, self._look_again, context=Context())

    def _look_again(self) -> None:
        """What a page had begun, a compilation say, may have held it the first time."""
        if not SHARE.pages():
            self._search()

    def _search(self) -> None:
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        trim_memory()


GARBAGE = Garbage()


def forget_page(document) -> None:
    """Once the session has ended, drop what Panel still knows of its page: it keeps the area for notifications of every
    page for ever, with the document, and what is in that where no browser ever loaded it."""
    import panel as pn

    def forget(context):
        for ref, (_, _, of, _) in list(pn.state._views.items()):
            if of is document:
                del pn.state._views[ref]

    document.on_session_destroyed(forget)


def detach_busy(page) -> None:
    """Undo pmui.Page's subscription to the process-wide `pn.state.busy`: it keeps every closed page alive, and sends
    every page two messages for every event of any visitor."""
    import panel as pn

    private = page._param__private
    for item in list(private.ref_watchers):
        names, watcher = item
        if "busy" in names:
            pn.state.param.unwatch(watcher)
            private.ref_watchers.remove(item)
    private.refs.pop("busy", None)
