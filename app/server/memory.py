"""Free the memory of closed pages."""

from __future__ import annotations

import asyncio
import gc
from contextvars import Context

from app.server.streaming import FRAME_BUDGET
from stein_core.machine import trim_memory


class Garbage:
    """Control Python's full garbage collection, which freezes every page (0.5 s with 30 open pages).

    Panel collects five seconds after a page was closed (https://github.com/holoviz/panel/pull/6518). Objects that are
    alive when a page has loaded are frozen, so that the collector skips them, until MOST pages have closed or nobody
    plays.
    """

    MOST = 5  # a closed page holds 13 to 55 MB
    SOON, LATER = 10.0, 30.0  # seconds

    def __init__(self):
        self._ended = 0

    def page_ended(self) -> None:
        """Note that a page's session has ended. On the event loop.

        Each page has a timer of its own, because `--warm` ends a session on a loop that ends with it.
        """
        self._ended += 1
        self._look_soon()

    def _look_soon(self) -> None:
        # In a context of its own: the page's context refers to the page.
        asyncio.get_running_loop().call_later(self.SOON, self._look, context=Context())

    def _look(self) -> None:
        if not self._ended:
            return
        if FRAME_BUDGET.pages() and self._ended < self.MOST:
            self._look_soon()
            return
        self._ended = 0
        self._search()
        asyncio.get_running_loop().call_later(self.LATER, self._look_again, context=Context())

    def _look_again(self) -> None:
        """Collect again: work that the page had begun, such as a compilation, may have held it the first time."""
        if not FRAME_BUDGET.pages():
            self._search()

    def _search(self) -> None:
        gc.unfreeze()
        gc.collect()
        gc.freeze()
        trim_memory()


GARBAGE = Garbage()


def forget_page(document) -> None:
    """Once the session has ended, drop what Panel still keeps of its page.

    Panel 1.9.4 keeps the notification area of every page for ever, and its document. No upstream issue known:
    https://github.com/holoviz/panel/issues/8605 was another leak of `state._views`.
    """
    import panel as pn

    def forget(context):
        for ref, (_, _, of, _) in list(pn.state._views.items()):
            if of is document:
                del pn.state._views[ref]

    document.on_session_destroyed(forget)


def detach_busy(page) -> None:
    """Undo the subscription of a pmui.Page to the process-wide `pn.state.busy`.

    It keeps every closed page alive, and sends every page two messages for each event of any visitor.
    No upstream issue known; panel-material-ui 0.16.6.
    """
    import panel as pn

    private = page._param__private
    for item in list(private.ref_watchers):
        names, watcher = item
        if "busy" in names:
            pn.state.param.unwatch(watcher)
            private.ref_watchers.remove(item)
    private.refs.pop("busy", None)
