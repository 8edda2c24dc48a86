"""Work around faults of Panel, Bokeh and Tornado. `steinlab.server.workarounds` lists all of them.

The functions have a module of their own, because Panel clears the globals of a script when its session ends.
"""

import asyncio
import sys
import threading
import warnings
import weakref
from contextlib import contextmanager
from contextvars import Context
from urllib.parse import parse_qsl

from bokeh.application.handlers import code
from bokeh.core.serialization import Serializer
from bokeh.document.json import PatchJson
from bokeh.io import doc as current
from bokeh.model import Model
from bokeh.models import ImportedStyleSheet
from bokeh.protocol.messages.error import error as ErrorMessage
from bokeh.protocol.messages.patch_doc import patch_doc
from bokeh.server import session as sessions
from bokeh.server.contexts import ApplicationContext
from bokeh.server.views.ws import WSHandler
from bokeh.util.warnings import BokehUserWarning
from panel.io import document as io_document, handlers, location
from panel.io.server import ComponentResourceHandler
from panel.reactive import Reactive, Syncable
from tornado.web import HTTPError, StaticFileHandler
from tornado.websocket import WebSocketClosedError

_open, _on_message, _on_close = WSHandler.open, WSHandler.on_message, WSHandler.on_close
_create_error, _create_patch = ErrorMessage.create.__func__, patch_doc.create.__func__
_parse_url_path = ComponentResourceHandler.parse_url_path
_destroy, _resolve = Model.destroy, getattr(Reactive, "_resolve_stylesheets", None)
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


def stay_on_the_loop() -> None:
    """Run callbacks of pages on the event loop, one at a time, and no part of a page on another thread."""

    async def run(call, *arguments, **keywords):
        return call(*arguments, **keywords)

    sessions._run_in_executor = run
    ApplicationContext._can_initialize_document_in_worker = lambda self: False


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
    """Search the heap for no garbage when a page was closed. `steinlab.server.memory.dismantle` leaves none."""

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


def destroy_style_sheets() -> None:
    """Destroy the style sheets that Panel makes for a component and then replaces by those that the page has."""

    def _resolve_stylesheets(self, properties, doc):
        made = properties.get("stylesheets", ())
        _resolve(self, properties, doc)
        used = {id(one) for one in properties.get("stylesheets", ())}
        for one in made:
            if isinstance(one, ImportedStyleSheet) and one.document is None and id(one) not in used:
                one.destroy()

    Reactive._resolve_stylesheets = _resolve_stylesheets


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
