"""What anybody may ask of the server, with nonsense: an answer without a traceback, and never the server's own failure."""

import os
import re
import socket
from http.client import HTTPResponse

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

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
PATH = st.lists(PART, max_size=5).map(lambda parts: "/" + "/".join(parts)).filter(lambda path: path.rstrip("/") != "/app")
QUERY = st.lists(
    st.tuples(
        st.sampled_from(["bokeh-session-id", "bokeh-token", "bokeh-autoload-element", "bokeh-app-path", "lesson", "theme"]), LINE
    ).map("=".join),
    max_size=3,
).map(lambda fields: re.sub(r"\s", "+", "&".join(fields)))
HEADERS = st.lists(
    st.one_of(
        st.tuples(
            st.just("Origin"),
            st.sampled_from(["http://elsewhere.example", "null", "file://", "http://localhost:1", "//", "http://["]) | LINE,
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


def ask(server, method: str, path: str, headers) -> tuple[int, bytes]:
    """Status and body of the answer to a request that no client would send."""
    host, port = server.url.split("/")[2].split(":")
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}:{port}", *(f"{name}: {value}" for name, value in headers), "", ""]
    with socket.create_connection((host, int(port)), timeout=20) as line:
        line.sendall("\r\n".join(lines).encode())
        answer = HTTPResponse(line, method=method)
        answer.begin()
        return answer.status, b"" if answer.status == 101 else answer.read()


def test_any_request_is_answered_or_refused(server):
    @CASES
    @given(st.sampled_from(["GET", "GET", "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "no method"]), PATH, QUERY, HEADERS)
    def try_it(method, path, query, headers):
        status, body = ask(server, method, path + "?" * bool(query) + query, headers)
        assert status < 500 and b"Traceback" not in body and b"root:" not in body

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
