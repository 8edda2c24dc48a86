"""Work around faults of Panel, Bokeh and Tornado. WORKAROUNDS lists all of them.

The functions have a module of their own, because Panel clears the globals of a script when its session ends.
"""

import asyncio
import sys
import threading
import warnings
import weakref
from collections.abc import Callable
from contextlib import contextmanager
from contextvars import Context
from typing import NamedTuple
from urllib.parse import parse_qsl

from bokeh.application.handlers import code
from bokeh.core.serialization import Serializer
from bokeh.document.json import PatchJson
from bokeh.io import doc as current
from bokeh.model import Model
from bokeh.protocol.messages.error import error as ErrorMessage
from bokeh.protocol.messages.patch_doc import patch_doc
from bokeh.server.views.ws import WSHandler
from bokeh.util.warnings import BokehUserWarning
from panel.io import document as io_document
from panel.io import handlers, location
from panel.io.server import ComponentResourceHandler
from panel.reactive import Syncable
from tornado.web import HTTPError, StaticFileHandler
from tornado.websocket import WebSocketClosedError

_open, _on_message, _on_close = WSHandler.open, WSHandler.on_message, WSHandler.on_close
_create_error, _create_patch = ErrorMessage.create.__func__, patch_doc.create.__func__
_parse_url_path = ComponentResourceHandler.parse_url_path
_destroy = Model.destroy
_validate_absolute_path = StaticFileHandler.validate_absolute_path


def hear_at_once() -> None:
    """Handle a change as soon as it arrives."""
    Syncable._debounce = 0


def send_at_once() -> None:
    """Turn Nagle's algorithm off for the websockets."""

    def open_(self, *arguments, **keywords):
        self.set_nodelay(True)
        return _open(self, *arguments, **keywords)

    WSHandler.open = open_


def expect_known_models() -> None:
    """Do not warn when a browser describes a model that the server knows: Bokeh then takes the server's."""
    warnings.filterwarnings("ignore", "reference already known", BokehUserWarning)


def expect_failed_writes() -> None:
    """Do not log that a tab was closed in the middle of a message. All other exceptions are logged as before."""

    def handle(loop, context):
        if not isinstance(context.get("exception"), WebSocketClosedError):
            loop.default_exception_handler(context)

    asyncio.get_event_loop().set_exception_handler(handle)


def expect_late_messages() -> None:
    """Drop a message of a tab that has been closed since it was sent."""

    async def on_message(self, fragment):
        if self.connection is None or self.connection._session is not None:
            await _on_message(self, fragment)

    WSHandler.on_message = on_message


def expect_second_closing() -> None:
    """Ignore the second closing of a connection, which breaks while it is both read and written."""

    def on_close(self):
        if self.connection is None or self.connection._session is not None:
            _on_close(self)

    WSHandler.on_close = on_close


def keep_tracebacks() -> None:
    """Send no traceback to the browser. The log has it."""

    def create(cls, request_id, text, **metadata):
        message = _create_error(cls, request_id, text, **metadata)
        message.content["traceback"] = None
        return message

    ErrorMessage.create = classmethod(create)


class LazySerializer(Serializer):
    """Know the models of a page without a table of all of them."""

    def __init__(self, models):
        super().__init__()
        self._models = models

    def get_ref(self, obj):
        found = super().get_ref(obj)
        if found is None and isinstance(obj, Model):
            is_sent = self._models.get_by_id(obj.id) is obj and obj not in self._models._new_models
            found = obj.ref if is_sent else None
        return found

    def has_ref(self, obj):
        return self.get_ref(obj) is not None


def look_models_up() -> None:
    """Serialize a message without a walk through all models of its page."""

    def create(cls, events, **metadata):
        if len({event.document for event in events}) != 1:
            return _create_patch(cls, events, **metadata)  # which says what is wrong
        models = events[0].document.models
        serializer = LazySerializer(models)
        message = cls(cls.create_header(), metadata, PatchJson(events=serializer.encode(events)))
        models.flush_synced(lambda model: not serializer.has_ref(model))
        message.add_buffers(*serializer.buffers)
        return message

    patch_doc.create = classmethod(create)


def import_nothing() -> None:
    """Answer 404 to /components/MODULE/... unless the module is imported already and Panel finds the resource."""

    def parse_url_path(self, path):
        if path.partition("/")[0] not in sys.modules:
            raise HTTPError(404)
        try:
            return _parse_url_path(self, path)
        except HTTPError:
            raise
        except Exception as error:
            raise HTTPError(404) from error

    ComponentResourceHandler.parse_url_path = parse_url_path


def expect_null_bytes() -> None:
    """Answer 404 to a file name with a null byte."""

    def validate_absolute_path(self, root, absolute_path):
        if "\0" in absolute_path:
            raise HTTPError(404)
        return _validate_absolute_path(self, root, absolute_path)

    StaticFileHandler.validate_absolute_path = validate_absolute_path


def search_nothing() -> None:
    """Search the heap for no garbage when a page was closed. `app.server.memory.dismantle` leaves none."""

    def _garbage_collect():
        """Do nothing."""

    io_document._garbage_collect = _garbage_collect


def destroy_callbacks() -> None:
    """Let the models of a closed page forget their callbacks and defaults with their values."""

    def destroy(self):
        _destroy(self)
        for kept in (self._callbacks, self._event_callbacks, self._unstable_default_values):
            kept.clear()

    Model.destroy = destroy


def leave_links_alone() -> None:
    """Leave the fields of a link as texts. Our pages parse them and say what is wrong."""
    location.parse_query = lambda query: dict(parse_qsl(query[1:]))


def keep_documents_apart() -> None:
    """Note the current document for each thread, and forget it if a callback fails."""

    class Documents(threading.local):
        def __init__(self):
            self.entered = []

        def __len__(self):
            return len(self.entered)

        def __getitem__(self, index):
            return self.entered[index]

    documents = Documents()

    @contextmanager
    def patch_curdoc(document):
        documents.entered.append(weakref.ref(document))
        try:
            yield
        finally:
            documents.entered.pop()

    current._PATCHED_CURDOCS = documents
    current.patch_curdoc = code.patch_curdoc = handlers.patch_curdoc = patch_curdoc


def stay_local(document) -> None:
    """Load the style sheets of a page from this server, also if its session has expired before the page was served.

    Args:
        document: Bokeh document of the page.
    """
    import panel as pn
    from panel.io.resources import LOCAL_DIST

    where = f"{pn.state.rel_path}/{LOCAL_DIST}" if pn.state.rel_path else LOCAL_DIST
    document._template_variables.setdefault("dist_url", where)


def begin_busy_cleanup() -> None:
    """Start Panel's task that removes old busy events, outside the context of any page.

    Call it on the event loop before the first visitor comes.
    """
    import panel as pn

    Context().run(pn.state._schedule_busy_cleanup)


class Workaround(NamedTuple):
    """One fault of a library, and what we do about it.

    Args:
        where: the function of this module, or the file (and name) elsewhere.
        package: the library, with the newest version in which tests/test_upstream*.py show the fault.
        breaks: what breaks without the work-around.
        issue: upstream issue about this fault; "" if we know none.
        apply: patches the library for the whole server; None if each page or browser calls the work-around itself.
    """

    where: str
    package: str
    breaks: str
    issue: str = ""
    apply: Callable[[], None] | None = None


def _here(patch: Callable[[], None], package: str, breaks: str, issue: str = "") -> Workaround:
    return Workaround(patch.__name__, package, breaks, issue, patch)


# When a test named test_upstream* fails, a release has mended the fault: delete the row, its code and the test.
WORKAROUNDS = (
    _here(hear_at_once, "panel 1.9.4", "Panel collects a browser's changes for 50 ms, so every slider lags."),
    _here(
        send_at_once,
        "bokeh 3.9.2",
        "Nagle's algorithm is on. The three small writes of a message wait for the browser's delayed acknowledgement: "
        "about 40 ms for a round trip instead of 6.",
    ),
    _here(
        expect_failed_writes,
        "panel 1.9.4",
        "A tab that closes in the middle of a message leaves a traceback in the log: Panel never reads the exception "
        "of the write that it has begun.",
        "https://github.com/holoviz/panel/issues/3341",  # closed, but still so
    ),
    _here(
        expect_late_messages,
        "bokeh 3.9.2",
        "The last message of a closed tab fails with an AssertionError and a traceback in the log.",
    ),
    _here(
        expect_second_closing,
        "bokeh 3.9.2",
        "A connection that breaks while it is read and written is closed twice; the second time fails with an "
        "AssertionError.",
    ),
    _here(
        leave_links_alone,
        "panel 1.9.4",
        'Panel turns fields of a link into numbers. The page stays blank if one has 5,000 digits or is "²".',
    ),
    _here(
        keep_tracebacks,
        "bokeh 3.9.2",
        "The answer to a message that fails has the traceback, and so the server's paths.",
    ),
    _here(
        look_models_up,
        "bokeh 3.9.2",
        "Each message to a browser makes a table of all models of its page: a fifth of the time of a frame.",
    ),
    _here(
        keep_documents_apart,
        "bokeh 3.9.2",
        "All threads share one stack of current documents, and a callback that fails leaves its document there. A page "
        "may be built with another visitor's style sheets, which Bokeh then refuses, or be kept for ever.",
    ),
    _here(
        import_nothing,
        "panel 1.9.4",
        "Panel imports, and so executes, whatever module a visitor names in /components/MODULE/...",
    ),
    _here(
        search_nothing,
        "panel 1.9.4",
        "Panel starts a full garbage collection five seconds after a page was closed, which freezes all pages.",
        "https://github.com/holoviz/panel/pull/6518",
    ),
    _here(
        destroy_callbacks,
        "bokeh 3.9.2",
        "The models of a closed page keep their callbacks, which refer to the page: only a full garbage collection "
        "frees it.",
    ),
    _here(expect_null_bytes, "tornado 6.6.1", "A file name with a null byte gives a traceback instead of a 404."),
    _here(
        expect_known_models,
        "bokeh 3.9.2",
        "The log warns of a known reference when a browser describes a model that it has only just received.",
        "https://github.com/bokeh/bokeh/pull/12915",
    ),
    Workaround(
        "stay_local",
        "panel 1.9.4",
        "If the server is so busy that a session expires before its page is served, the page is rebuilt without the "
        "address of the style sheets and asks a CDN.",
    ),
    Workaround(
        "begin_busy_cleanup",
        "panel 1.9.4",
        "Panel's task that removes old busy events runs for ever in the context of the first page, which it keeps.",
    ),
    Workaround(
        "app/notebook.py stay_offline",
        "panel 1.9.4",
        "Jupyter loads style sheets of Panel from a CDN in spite of inline=True.",
        "https://github.com/holoviz/panel/issues/5167",
    ),
    Workaround(
        "app/server/loop.py soon",
        "bokeh 3.9.2",
        "add_next_tick_callback is not thread-safe: Bokeh may lose a callback of another thread.",
        "https://github.com/bokeh/bokeh/issues/4000",  # names the missing lock, and IOLoop.add_callback instead
    ),
    Workaround(
        "app/server/loop.py Unbusy",
        "panel 1.9.4",
        "Each message of a browser sets `busy` for all visitors, a third of the time of an acknowledgement.",
    ),
    Workaround(
        "app/server/memory.py detach_busy",
        "panel-material-ui 0.16.6",
        "Every Page subscribes to the server's `busy` for ever, which keeps it in memory.",
    ),
    Workaround(
        "app/server/memory.py forget_page",
        "panel 1.9.4",
        "Panel keeps the notification area of every page, and its document, for ever.",
    ),
    Workaround(
        "app/ui/drop_stale_writes.js",
        "panel 1.9.4",
        "A React widget writes an older value back after the server has set a newer one: a knob turns back.",
    ),
    Workaround(
        "app/ui/reconnect.js",
        "bokeh 3.9.2",
        "A connection that was cut within a message never works again, and sending without an open socket throws.",
    ),
    Workaround(
        "app/ui/guard_layout.js",
        "bokeh 3.9.2",
        "A figure that is added to a page is measured before it has a layout, and BokehJS throws.",
    ),
    Workaround(
        "app/ui/guard_hidden.js",
        "panel 1.9.4",
        "An HTML pane that turns visible before it has been drawn has no container yet, and Panel throws.",
    ),
)


def apply() -> None:
    """Apply the patches for the whole server, once, before the first visitor comes."""
    for workaround in WORKAROUNDS:
        if workaround.apply:
            workaround.apply()
