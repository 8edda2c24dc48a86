"""What anybody may ask of the server, with nonsense: an answer without a traceback, and never the server's own
failure."""

import asyncio
import json
import os
import re
import socket
import uuid
from http.client import HTTPResponse, RemoteDisconnected

import pytest
from checks import finished
from chromium import Server
from hypothesis import HealthCheck, Phase, given, settings, strategies as st
from visitors import Visitor

pytestmark = pytest.mark.browser
CASES = settings(
    max_examples=int(os.environ.get("STEINLAB_FUZZ", 300)),
    deadline=None,
    derandomize="STEINLAB_FUZZ" not in os.environ,
    suppress_health_check=list(HealthCheck),
)

LINE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), max_size=30)
PART = st.one_of(
    st.sampled_from(
        [
            "app",
            "ws",
            "static",
            "js",
            "autoload.js",
            "metadata",
            "liveness",
            "favicon.ico",
            "..",
            "%2e%2e",
            "etc",
            "passwd",
            "%00",
            "components",
            "steinlab.stage.stage",
            "Stage",
            "_resources",
            "css",
            "_dist_root",
            "extensions",
            "panel",
            "login",
            "logout",
            "app.py",
            "main.py",
            "sweeps.sqlite",
            ".git",
            "~",
        ]
    ),
    LINE.map(lambda text: re.sub(r"[\s?#]", "", text)),
    st.integers(1_000, 20_000).map("x".__mul__),
)
# The app itself, which is built for every visit, is asked for by links in other tests.
PATH = (
    st.lists(PART, max_size=5).map(lambda parts: "/" + "/".join(parts)).filter(lambda path: path.rstrip("/") != "/app")
)
QUERY = st.lists(
    st.tuples(
        st.sampled_from(
            ["bokeh-session-id", "bokeh-token", "bokeh-autoload-element", "bokeh-app-path", "lesson", "theme"]
        ),
        LINE,
    ).map("=".join),
    max_size=3,
).map(lambda fields: re.sub(r"\s", "+", "&".join(fields)))
HEADERS = st.lists(
    st.one_of(
        st.tuples(
            st.just("Origin"),
            st.sampled_from(["http://elsewhere.example", "null", "file://", "http://localhost:1", "//", "http://["])
            | LINE,
        ),
        st.tuples(
            st.sampled_from(
                ["Cookie", "Range", "If-None-Match", "Sec-WebSocket-Protocol", "Bokeh-Session-Id", "X-Forwarded-For"]
            ),
            LINE,
        ),
        st.just(("Connection", "Upgrade")),
        st.just(("Upgrade", "websocket")),
        st.just(("Sec-WebSocket-Version", "13")),
        st.just(("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")),
    ),
    max_size=5,
)
TOO_LONG = 2**16  # bytes: Tornado hangs up


def ask(server, method: str, path: str, headers) -> tuple[int, bytes]:
    """Status and body of the answer to a request that no client would send."""
    host, port = server.url.split("/")[2].split(":")
    lines = [
        f"{method} {path} HTTP/1.1",
        f"Host: {host}:{port}",
        *(f"{name}: {value}" for name, value in headers),
        "",
        "",
    ]
    request = "\r\n".join(lines).encode()
    with socket.create_connection((host, int(port)), timeout=20) as line:
        line.sendall(request)
        answer = HTTPResponse(line, method=method)
        try:
            answer.begin()
        except (RemoteDisconnected, ConnectionResetError):
            assert len(request) > TOO_LONG
            return 431, b""
        return answer.status, b"" if answer.status == 101 else answer.read()


def test_any_request_is_answered_or_refused(server):
    @CASES
    @given(
        st.sampled_from(["GET", "GET", "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "no method"]),
        PATH,
        QUERY,
        HEADERS,
    )
    def try_it(method, path, query, headers):
        status, body = ask(server, method, path + "?" * bool(query) + query, headers)
        assert status < 500 and b"Traceback" not in body and b"root:" not in body

    try_it()


def test_no_module_is_imported_because_somebody_names_it(tmp_path):
    (tmp_path / "never_asked_for.py").write_text("print('executed', flush=True)")
    server = Server(tmp_path, environment={**os.environ, "PYTHONPATH": str(tmp_path)})
    try:
        assert ask(server, "GET", "/components/never_asked_for/a/css/b", [])[0] == 404
        assert "executed" not in server.log()
    finally:
        server.stop()


@pytest.fixture(scope="module")
def own_server(tmp_path_factory):
    """Its log may hold tracebacks."""
    running = Server(tmp_path_factory.mktemp("own"))
    yield running
    running.stop()


UPGRADE = [
    ("Connection", "Upgrade"),
    ("Upgrade", "websocket"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
]


def test_a_websocket_opens_from_the_servers_own_pages_alone(own_server):
    own = own_server.url.removesuffix("/app")
    foreign = st.sampled_from(
        ["{}.elsewhere.example", "{}0", "{}@elsewhere.example", "http://elsewhere.example/{}", "null", "file://"]
    )
    assert ask(own_server, "GET", "/app/ws", [*UPGRADE, ("Origin", own)])[0] == 101

    @CASES
    @given((foreign | LINE.map(lambda text: text.replace("{", "").replace("}", ""))).map(lambda form: form.format(own)))
    def try_it(origin):
        status, body = ask(own_server, "GET", "/app/ws", [*UPGRADE, ("Origin", origin)])
        assert 400 <= status < 500 and b"Traceback" not in body

    try_it()


@pytest.mark.parametrize(
    "link",
    [
        "?page=lessons&cell=" + "9" * 5000,
        "?page=collapse&dims=1" + "0" * 400,
        "?target=" + "x" * 20_000,
        "?%00=%ff&show=%ff",
        "?page=wave&seed=%C2%B2",
    ],
)
def test_a_page_opens_with_any_link(server, link):
    status, body = ask(server, "GET", "/app" + link, [])
    assert status == 200 and b"Traceback" not in body and b"Could not start" not in body and b"panel-material" in body


VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | LINE,
    lambda value: st.lists(value, max_size=3) | st.dictionaries(LINE, value, max_size=3),
    max_leaves=5,
)
MODEL = st.fixed_dictionaries({"id": st.integers(0, 400) | LINE})  # a number says which of the page's
EVENT = st.one_of(
    st.fixed_dictionaries(
        {
            "kind": st.just("ModelChanged"),
            "model": MODEL,
            "new": VALUE,
            "attr": st.sampled_from(["value", "data", "label", "options", "disabled", "visible", "children", "esm"])
            | LINE,
        }
    ),
    st.fixed_dictionaries(
        {
            "kind": st.sampled_from(["MessageSent", "TitleChanged", "RootAdded", "ColumnDataChanged", "no kind"]),
            "model": MODEL,
        },
        optional={
            "msg_type": st.just("bokeh_event") | LINE,
            "msg_data": VALUE,
            "title": VALUE,
            "column_source": MODEL,
            "new": VALUE,
        },
    ),
    VALUE,
)
# At null Bokeh hangs up with a number that Tornado's client does not take for the end.
CONTENT = st.fixed_dictionaries({"events": st.lists(EVENT, max_size=2)}) | VALUE.filter(lambda value: value is not None)
KIND = st.sampled_from(["PATCH-DOC"] * 12 + ["PUSH-DOC", "PULL-DOC-REQ", "SERVER-INFO-REQ", "OK", "no message"])


async def answers(url: str, messages: list) -> list[str]:
    """What the server says to a page that sends these. It hangs up on some, and the page is opened again."""
    said, visitor = [], None
    for kind, content in messages:
        if visitor is None:
            visitor = Visitor(url, "?target=oring&methods=svgd")
            await visitor.open()
        ids, request = list(visitor.objects), uuid.uuid4().hex
        for event in content.get("events", ()) if isinstance(content, dict) else ():
            for name in ("model", "column_source"):
                if isinstance(event, dict) and isinstance(number := (event.get(name) or {}).get("id"), int):
                    event[name]["id"] = ids[number % len(ids)]
        for part in ({"msgid": request, "msgtype": kind}, {}, content):
            await visitor.socket.write_message(json.dumps(part))
        try:
            while True:
                header, answer, _ = await asyncio.wait_for(visitor._message(), 60)
                if header.get("reqid") == request:
                    break
        except ConnectionError:
            visitor = None
        else:
            said.append(json.dumps(answer))
    if visitor:
        await visitor.close()
    return said


def test_whatever_a_page_sends_it_is_answered_without_a_traceback_and_others_go_on(own_server):
    @settings(CASES, max_examples=-(-CASES.max_examples // 100), phases=[Phase.generate])  # each takes a second or more
    @given(st.lists(st.tuples(KIND, CONTENT), min_size=40, max_size=40))
    def try_it(messages):
        said = finished(answers(own_server.url, messages))
        assert said and not any("Traceback" in text or "site-packages" in text for text in said)

    try_it()
    assert finished(answers(own_server.url, [("SERVER-INFO-REQ", {})])) and ask(own_server, "GET", "/app", [])[0] == 200
