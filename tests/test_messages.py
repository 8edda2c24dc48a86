"""What a browser may send, and links that open a page: nonsense is dropped with a line in the log, or named on the
page."""

import logging
from types import SimpleNamespace
from urllib.parse import urlencode

import panel as pn
import param
import pytest
from bokeh.document import Document
from guard import guarded
from hypothesis import example, given, settings, strategies as st
from panel.io.state import set_curdoc, state
from panel.models.esm import DataEvent
from test_fuzz import CASES, FIELDS, JSON, LISTS, LONG, WORDS, readable

from steinlab.lesson.reading import Reading, lessons
from steinlab.server.limits import LIMITS
from steinlab.server.messages import CheckedMessages
from steinlab.shell import PAGES, Shell
from steinlab.stage.worker import Worker
from steinlab.ui.upload import LONGEST, Upload

LINKED = st.sampled_from(["lesson", "cell", "show", "x", "y", "axis", "page", "theme"]) | FIELDS
TEXTS = st.one_of(WORDS, LISTS, st.sampled_from([*PAGES, *lessons(), "attract", "dark", "9" * 5000, "-1"]))
QUERIES = st.dictionaries(LINKED, TEXTS, max_size=5)
VIEWS = st.fixed_dictionaries({}, optional=dict.fromkeys(["lesson", "cell", "show", "x", "y"], TEXTS))
NUMBERS = st.one_of(st.integers(-3, 10), st.floats(), st.just(10**400))
VALUES = st.one_of(
    JSON,
    NUMBERS,
    st.booleans(),
    st.lists(NUMBERS, max_size=3),
    st.lists(st.lists(NUMBERS, min_size=2, max_size=2), max_size=3),
    LONG,
    st.sampled_from(["space", "right", "r", "next", "previous", "upload_event", "finished", "error"]),
    st.binary(max_size=99),
    QUERIES.map(lambda query: "?" + urlencode(query)),
)
NAMES = ["ack", "row", "ready", "narrow", "back", "add", "remove", "key", "points", "go", "status", "data"]
NAMES += ["move", "to", "grab"]
MESSAGES = JSON | st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=3)


class Frame(param.Parameterized):
    dark_theme = param.Boolean()


@pytest.fixture
def said(monkeypatch):
    """What pages tell their visitor. Nothing is trained, no lesson is run, and a document counts as loaded."""
    texts = []
    tell = lambda text, **how: texts.append(text)  # noqa: E731
    monkeypatch.setattr(type(pn.state), "notifications", SimpleNamespace(error=tell, warning=tell, success=tell))
    monkeypatch.setattr(type(pn.state), "onload", lambda state, call, threaded=False: call())
    monkeypatch.setattr(Worker, "wake", lambda worker: None)
    monkeypatch.setattr(Reading, "run_to", lambda reading, count, shown=(): None)
    return texts


@pytest.mark.long
@pytest.mark.parametrize("key", PAGES)
def test_every_link_opens_a_page(key, said, tmp_path):
    def link_of(query):
        """What a page says its link is, that was opened by this one, and left."""
        document = Document()
        with set_curdoc(document):
            shell = SimpleNamespace(
                frame=Frame(), go=None, copy_link=None, browser=None, known=PAGES, height_of_window=720, short=False,
                presentation=SimpleNamespace(forth=None),
            )  # fmt: skip
            page = PAGES[key][1](shell, query)
            page.show()
            link = page.link()
        for leave in document.session_destroyed_callbacks:  # else its look-ups would wait behind those of thousands
            leave(None)
        return link

    link_of({})

    @settings(CASES, max_examples=-(-CASES.max_examples // 4))  # a page takes long to build
    @given(QUERIES | VIEWS)
    @example({"cell": "9" * 5000})
    @example({"lesson": "\U0006e470" * 300, "cell": "\U0006e470" * 300})  # each is ten characters when it is escaped
    def try_it(query):
        with guarded(tmp_path):
            assert isinstance(link_of(query), str)

    try_it()
    assert all(map(readable, said))


@pytest.mark.parametrize(
    "agent, opened", [("Mozilla/5.0 (Android 15; Mobile; rv:140.0)", False), ("Mozilla/5.0", True)]
)
def test_on_a_phone_the_sidebar_is_closed_from_the_start(monkeypatch, agent, opened):
    monkeypatch.setattr(type(state), "headers", property(lambda self: {"User-Agent": agent}))
    with set_curdoc(Document()):
        shell = Shell({"page": "collapse"})
        shell.begin()
        assert shell.frame.sidebar_open == opened


def test_messages_that_no_script_sends(said, tmp_path, caplog):
    with set_curdoc(Document()):
        shell = Shell({})
        shell.begin()
        for key in PAGES:
            shell.turn_to(key)
        components = shell.main.select(lambda one: isinstance(one, CheckedMessages)) + shell.sidebar.select(
            lambda one: isinstance(one, CheckedMessages)
        )
        kinds = {type(one).__name__: one for one in components}
        assert {"Browser", "Stage", "WaveStage", "Text", "Reader", "Upload"} <= kinds.keys()

        @CASES
        @given(st.sampled_from(sorted(kinds)), MESSAGES)
        def try_it(kind, message):
            with guarded(tmp_path):
                kinds[kind]._process_event(DataEvent(None, message))

        try_it()
        caplog.clear()
        kinds["Stage"]._process_event(DataEvent(None, {"ack": "x" * 5000}))
    (line,) = caplog.records
    assert line.levelno == logging.WARNING and line.exc_info is None and "Stage: dropped" in line.getMessage()
    assert all(map(readable, [*said, line.getMessage()]))


def test_a_file_is_kept_up_to_the_limit_whatever_the_browser_sends():
    chosen, refused = [], []
    upload = Upload(chosen.append, refused.append)
    part = {"status": "upload_event", "data": b"1,2\n" * 25_000, "name": "a.csv"}
    for parts in (2, LONGEST // len(part["data"]) + 3, 0):
        for _ in range(parts):
            upload._handle_msg(part)
        assert sum(map(len, upload.parts)) <= LONGEST
        upload._handle_msg({"status": "finished"})
    assert upload.file == "a.csv"
    assert chosen == [2 * part["data"], b""] and len(refused) == 1 and f"{LIMITS.upload_mb} MB" in refused[0]
