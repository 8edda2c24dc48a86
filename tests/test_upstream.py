"""The faults of Bokeh and Tornado that we work around are still there.

If one of these tests fails, a release has mended the fault: delete the function that the test names, its row in
WORKAROUNDS, and the test. Panel's faults are in test_upstream_panel.py, those of the browser in
browser/test_upstream_in_browser.py.
"""

import importlib
import inspect
import re
import socket
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from bokeh.application import Application
from bokeh.application.handlers import FunctionHandler, code
from bokeh.core.serialization import Deserializer
from bokeh.document import Document
from bokeh.document.callbacks import invoke_with_curdoc
from bokeh.document.events import ModelChangedEvent
from bokeh.io import doc as current
from bokeh.model import Model
from bokeh.models import Div, Slider
from bokeh.protocol.messages.error import error as ErrorMessage
from bokeh.protocol.messages.patch_doc import patch_doc
from bokeh.server.connection import ServerConnection
from bokeh.server.server import Server
from bokeh.server.views import ws
from bokeh.util.warnings import BokehUserWarning
from checks import finished, session_of
from panel.io import handlers as io_handlers
from tornado.httpclient import AsyncHTTPClient
from tornado.ioloop import IOLoop
from tornado.web import HTTPError, StaticFileHandler
from tornado.websocket import websocket_connect

from steinlab.server import patches, workarounds
from steinlab.server.patches import (
    expect_known_models,
    expect_late_messages,
    expect_null_bytes,
    expect_second_closing,
    keep_documents_apart,
    keep_tracebacks,
    look_models_up,
    send_at_once,
    stay_on_the_loop,
)  # fmt: skip

ROWS = {row.where: row for row in workarounds.WORKAROUNDS}


def test_bokeh_fails_on_what_a_closed_tab_has_said(monkeypatch, caplog):
    """Report: the last message of a closed tab fails with an AssertionError.

    Close a tab while its websocket still has a message to be read: `WSHandler.on_message` asks the connection for its
    session, which is None by then. Expected: the message is dropped.
    """
    monkeypatch.setattr(ws.WSHandler, "on_message", ws.WSHandler.on_message)
    closed = SimpleNamespace(connection=ServerConnection(None, None, None, SimpleNamespace(subscribe=lambda to: None)))
    closed.connection._session = None

    async def _handle(message):
        return closed.connection.session

    async def _receive(fragment):
        return fragment

    closed.__dict__.update(_receive=_receive, _handle=_handle, _internal_error=lambda text: None)
    finished(patches._on_message(closed, "late"))
    assert "AssertionError" in caplog.text, "steinlab.server.patches.expect_late_messages"
    caplog.clear()

    async def mended():
        expect_late_messages()
        await ws.WSHandler.on_message(closed, "late")

    finished(mended())
    assert not caplog.text


def test_bokeh_walks_through_all_models_for_each_message(monkeypatch):
    """Report: `patch_doc.create` makes a table of the references of all models of a document, for each message.

    With 5,000 models and 60 changes a second that is a fifth of the time. Expected: it asks the document for the models
    that a change names.
    """
    document, asked = Document(), []
    for _ in range(50):
        document.add_root(Div())
    first, new = document.roots[0], Div()
    document.models.flush_synced()
    plain = Model.ref.fget
    monkeypatch.setattr(Model, "ref", property(lambda self: asked.append(self) or plain(self)))
    title, child = (ModelChangedEvent(document, first, *change) for change in (("text", "a"), ("tags", [new])))

    def message():
        asked.clear()
        return patch_doc.create([title, child]).content["events"], len(asked)

    monkeypatch.setattr(patch_doc, "create", classmethod(patches._create_patch))
    events, refs = message()
    assert refs >= 50, "steinlab.server.patches.look_models_up"
    look_models_up()
    found, refs = message()
    assert found == events and refs < 10 and found[1]["new"][0]["name"] == "Div"  # a model that is new is described
    with pytest.raises(ValueError, match="at least one event"):
        patch_doc.create([])
    first.tags = [new]
    assert new in document.models._new_models and message()[0][1]["new"][0]["name"] == "Div"
    assert new not in document.models._new_models and message()[0][1]["new"] == [{"id": new.id}]  # the second time not


def test_bokeh_fails_on_a_second_closing(monkeypatch):
    """Report: `WSHandler.on_close` fails with an AssertionError when it is called twice.

    Cut a connection while it is read and written: Tornado then closes it from both sides. Expected: the second call
    does nothing.
    """
    monkeypatch.setattr(ws.WSHandler, "on_close", ws.WSHandler.on_close)
    closed = SimpleNamespace(
        connection=ServerConnection(None, None, None, SimpleNamespace(subscribe=lambda to: None)), close_code=None,
        close_reason=None,
        application=Mock(),
    )  # fmt: skip
    closed.connection._session = None
    with pytest.raises(AssertionError):  # else steinlab.server.patches.expect_second_closing can go
        patches._on_close(closed)
    expect_second_closing()
    ws.WSHandler.on_close(closed)
    closed.connection._session = Mock()
    ws.WSHandler.on_close(closed)
    assert closed.application.client_lost.called


def test_bokeh_loses_what_a_thread_tells_while_a_page_is_changed():
    document, heard = Document(), []
    document.on_change(heard.append)
    at_work, changed = threading.Event(), threading.Event()

    class Held(list):
        def append(self, event):
            at_work.set()
            changed.wait(10)
            super().append(event)

    document.hold()
    document.callbacks._held_events = Held()
    with ThreadPoolExecutor(1) as other:
        other.submit(document.add_next_tick_callback, print)
        assert at_work.wait(10)
        document.unhold()
        changed.set()
    assert not heard  # else steinlab.server.loop.soon can go


async def on_the_loop() -> bool:
    """Whether the callbacks of a page run on the event loop."""
    with session_of(Document()) as session:
        return await session.with_document_locked(threading.get_ident) == threading.get_ident()


def test_bokeh_runs_callbacks_on_threads(monkeypatch):
    """Report: from 3.10 on a callback of a page runs on a thread that has no running event loop.

    In `document.add_next_tick_callback(f)`, `asyncio.get_running_loop()` raises, and `IOLoop.current().call_later(...)`
    never calls. Up to 3.9 both worked. Expected: a setting that keeps callbacks on the loop.
    """
    usual = getattr(patches.sessions, "_run_in_executor", None)
    monkeypatch.setattr(patches.sessions, "_run_in_executor", usual, raising=False)
    monkeypatch.setattr(patches.ApplicationContext, "_can_initialize_document_in_worker", None, raising=False)
    assert finished(on_the_loop()) != ROWS["stay_on_the_loop"].needed, "steinlab.server.patches.stay_on_the_loop"
    stay_on_the_loop()
    assert finished(on_the_loop())


def test_tornado_fails_on_a_file_name_with_a_null_byte(monkeypatch, tmp_path):
    """Report: `GET /static/a%00b` of a StaticFileHandler gives a 500 with a ValueError of os.stat. Expected: 404."""
    handler = StaticFileHandler.__new__(StaticFileHandler)
    handler.path, handler.allowed_symlink_directory, handler.default_filename = "a\0b", None, None
    handler.request = SimpleNamespace(path="/static/a%00b")
    name = str(tmp_path / handler.path)
    with pytest.raises(ValueError):  # else steinlab.server.patches.expect_null_bytes can go
        patches._validate_absolute_path(handler, str(tmp_path), name)
    monkeypatch.setattr(StaticFileHandler, "validate_absolute_path", patches._validate_absolute_path)
    expect_null_bytes()
    with pytest.raises(HTTPError):
        handler.validate_absolute_path(str(tmp_path), name)


def test_bokeh_sends_its_traceback_to_the_browser(monkeypatch):
    """Report: the answer to a message that fails has the traceback of the server, with its paths.

    `ErrorMessage.create("1", "text").content["traceback"]` inside an `except`. Expected: only with `--dev`.
    """

    def told():
        try:
            raise RuntimeError("no such thing")
        except RuntimeError as error:
            return ErrorMessage.create("1", repr(error)).content

    monkeypatch.setattr(ErrorMessage, "create", classmethod(patches._create_error))
    assert "Traceback" in told()["traceback"], "steinlab.server.patches.keep_tracebacks"
    keep_tracebacks()
    assert told() == {"text": "RuntimeError('no such thing')", "traceback": None}


def test_a_destroyed_model_keeps_its_callbacks(monkeypatch):
    """Report: `Model.destroy()` leaves `_callbacks` as they are.

    They refer to the page, and the page to the model: only a full garbage collection frees both. Expected: none left.
    """

    def left() -> int:
        slider = Slider(start=0, end=1, value=0, step=1)
        slider.on_change("value", lambda attr, old, new: None)
        slider.destroy()
        return len(slider._callbacks)

    monkeypatch.setattr(Model, "destroy", patches._destroy)
    assert left(), "steinlab.server.patches.destroy_callbacks"
    patches.destroy_callbacks()
    assert not left()


async def sent_at_once() -> bool:
    """Whether Nagle's algorithm is off on the server's side of a visitor's connection."""
    server = Server({"/": Application(FunctionHandler(lambda document: None))}, port=0, io_loop=IOLoop.current())
    server.start()
    try:
        page = (await AsyncHTTPClient().fetch(f"http://localhost:{server.port}/")).body.decode()
        token = re.search(r'"token":"([^"]+)"', page).group(1)
        visitor = await websocket_connect(f"ws://localhost:{server.port}/ws", subprotocols=["bokeh", token])
        await visitor.read_message()
        (connection,) = server._tornado._clients
        stream = connection._socket.ws_connection.stream
        visitor.close()
        return bool(stream.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
    finally:
        server.stop()
        server.unlisten()


def test_bokeh_leaves_small_messages_waiting(monkeypatch):
    """Report: the server does not turn Nagle's algorithm off.

    A patch is written in three parts. The second waits for the acknowledgement of the first, which a browser delays by
    up to 40 ms. Expected: `WSHandler.open` calls `self.set_nodelay(True)`.
    """
    monkeypatch.setattr(ws.WSHandler, "open", patches._open)
    assert not finished(sent_at_once()), "steinlab.server.patches.send_at_once"
    send_at_once()
    assert finished(sent_at_once())


def strangers() -> list[bool]:
    """Whether Bokeh's current document is one of another thread; and whether it is one in which a callback has
    failed."""
    document, entered, left = Document(), threading.Event(), threading.Event()

    def at_work():
        entered.set()
        left.wait()

    with ThreadPoolExecutor(1) as other:
        other.submit(invoke_with_curdoc, document, at_work)
        entered.wait()
        found = [current.curdoc() is document]
        left.set()
    with suppress(ZeroDivisionError):
        invoke_with_curdoc(document, lambda: 1 / 0)
    return [*found, current.curdoc() is document]


@pytest.mark.skipif(not ROWS["keep_documents_apart"].needed, reason="this version of Bokeh has not the fault")
def test_bokeh_takes_one_page_for_another(monkeypatch):
    """Report, mended in 3.10: all threads share one stack of current documents.

    While another thread runs `invoke_with_curdoc(document, ...)`, `curdoc()` is its document; and after a callback that
    raises it stays so. Expected: one stack for each context.
    """
    for module in (current, io_handlers, code):
        monkeypatch.setattr(module, "patch_curdoc", module.patch_curdoc)
    monkeypatch.setattr(current, "_PATCHED_CURDOCS", [])
    assert strangers() == [True, True], "steinlab.server.patches.keep_documents_apart"
    keep_documents_apart()
    assert strangers() == [False, False]


def test_bokeh_warns_of_a_model_that_it_knows():
    model = Div()
    described = {"type": "object", "name": "Div", "id": model.id, "attributes": {"text": "theirs"}}
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", BokehUserWarning)
        assert Deserializer([model]).decode(described) is model and model.text == ""
        assert len(heard) == 1, "steinlab.server.patches.expect_known_models"
        expect_known_models()
        Deserializer([model]).decode(described)
    assert len(heard) == 1


def test_a_work_around_ends_with_the_version_that_needs_none():
    row = workarounds.WORKAROUNDS[0]._replace(package="tornado 6.0")
    assert row.needed and row._replace(mended="99.0").needed and not row._replace(mended="6.0").needed
    assert row._replace(since="6.0").needed and not row._replace(since="99.0").needed


def naming(tests: str, name: str) -> str:
    """The text of the tests that name this."""
    return "".join(each for each in re.split(r"\n(?:async )?def (?=test)", tests) if name in each)


def test_every_work_around_is_in_the_table_and_has_a_test():
    """One without an upstream issue has a report that can be filed, in the docstring of its test."""
    root = Path(__file__).parents[1]
    tests = "".join(file.read_text() for file in (root / "tests").glob("**/test_upstream*.py"))
    for one in workarounds.WORKAROUNDS:
        path, _, name = one.where.rpartition(" ")
        if one.where.endswith(".js"):
            assert (root / one.where).exists() and "Report" in naming(tests, one.where), one.where
            continue
        file = (path or "app/server/patches.py").removesuffix(".py").split("/")
        module = importlib.import_module(".".join(["steinlab", *file[1:]]))
        assert hasattr(module, name) and f"{module.__name__}.{name}" in tests, one.where
        package, version = one.package.split(" ")
        assert metadata.version(package) and version[0].isdigit()
        assert one.issue or "Report" in naming(tests, f"{module.__name__}.{name}"), one.where
    public = {
        name for name, one in vars(patches).items() if inspect.isfunction(one) and one.__module__ == patches.__name__
    }
    listed = {one.where for one in workarounds.WORKAROUNDS}
    assert {name for name in public if not name.startswith("_")} <= listed
