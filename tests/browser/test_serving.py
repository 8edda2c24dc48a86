"""Serving to many, as the README says: two processes behind a proxy, a password, accounts, who may connect, what is
left."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import urllib.request
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from urllib.error import HTTPError
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from checks import PATIENCE, finished, until
from chromium import ROOT, Server, Tab, free_port
from playwright.sync_api import expect
from soak import LINKS, counts
from test_class_in_browser import begin
from visitors import Visitor

from stein_core.cli.serve import PROXY

pytestmark = pytest.mark.browser
RUN = "Session"  # the name of the thread of a page of particles


@pytest.fixture(params=["nginx", "own"])
def proxied(tmp_path, request):
    """Two servers and the address of the proxy before them."""
    if request.param == "nginx" and not shutil.which("nginx"):
        message = "no nginx found: install nginx to try the proxy"
        pytest.fail(message) if os.environ.get("STEINLAB_REQUIRE_BROWSER") else pytest.skip(message)
    port = free_port()
    servers = []
    for name in "ab":
        (tmp_path / name).mkdir()
        servers.append(
            Server(
                tmp_path / name,
                ["--address", "127.0.0.1", "--use-xheaders", "--allow-websocket-origin", f"localhost:{port}"],
            )
        )
    text = (ROOT / "assets" / "nginx.conf").read_text()
    ports = [server.url.split(":")[2].split("/")[0] for server in servers]
    for old, new in zip(
        ("8080", "5006", "5007", "/tmp/steinlab-nginx.pid"), (str(port), *ports, str(tmp_path / "pid"))
    ):
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "nginx.conf").write_text(text)
    own = [sys.executable, "-P", PROXY, f":{port}", *(f"{k}=127.0.0.1:{to}" for k, to in zip("AB", ports))]
    nginx = ["nginx", "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf"), "-g", "daemon off;"]
    proxy = subprocess.Popen(own if request.param == "own" else nginx)
    for server in servers:  # a tab opens the proxy's address
        server.url = f"http://localhost:{port}/app"
    until(lambda: answer(port) == 200)
    yield servers
    proxy.terminate()
    proxy.wait(10)
    for server in servers:
        server.stop()
        assert "Traceback" not in server.log(), server.log()


def answer(port: int, path: str = "/liveness") -> int:
    """The status of an answer, 0 for none."""
    try:
        with urllib.request.urlopen(f"http://localhost:{port}{path}", timeout=30) as found:
            return found.status
    except HTTPError as error:
        return error.code
    except OSError:
        return 0


def processes_of(pid: int) -> list[int]:
    """The processes that this one has started and not waited for."""
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.rare
@pytest.mark.parametrize("proxy", ["nginx", "own"])
def test_what_dies_is_started_again_and_nothing_stays_behind(tmp_path, proxy):
    if proxy == "nginx" and not shutil.which("nginx"):
        pytest.skip("no nginx found")
    port, log = free_port(), tmp_path / "log"
    command = [sys.executable, "-m", "stein_core", "serve", "--processes", "2", "--port", str(port), "--proxy", proxy]
    watching = subprocess.Popen(command, cwd=ROOT, stdout=log.open("w"), stderr=subprocess.STDOUT)
    children = []
    try:
        until(lambda: answer(port) == 200)
        rooms = [f"/app/class/{letter}AAA2222" for letter in "AB"]
        until(lambda: [answer(port, room) for room in rooms] == [200, 200])
        assert ("our own proxy" if proxy == "own" else "nginx") in log.read_text()
        children = processes_of(watching.pid)
        os.kill(children[0], 9)
        until(lambda: answer(port, rooms[0]) == 502)  # the phones of its classes wait
        assert [answer(port, where) for where in (rooms[1], "/app", "/app")] == [200] * 3  # others do not
        until(lambda: "server A has ended" in log.read_text())
        until(lambda: [answer(port, room) for room in rooms] == [200, 200])
        os.kill(children[2], 15)
        until(lambda: "the proxy has ended" in log.read_text())
        until(lambda: answer(port) == 200)
        children = processes_of(watching.pid)
        assert len(children) == 3  # two servers and the proxy
    finally:
        watching.terminate()
        watching.wait(60)
    assert not [pid for pid in children if Path(f"/proc/{pid}").exists()] and answer(port) == 0
    assert "Traceback" not in log.read_text()


@pytest.mark.rare
@pytest.mark.parametrize("proxy", ["nginx", "own"])
def test_a_server_of_another_address_joins_with_its_classes(chromium, tmp_path, proxy):
    if proxy == "nginx" and not shutil.which("nginx"):
        pytest.skip("no nginx found")
    port, other, log = free_port(), free_port(), tmp_path / "log"
    serve = [sys.executable, "-m", "stein_core", "serve", "--allow-websocket-origin", f"localhost:{port}"]
    there = [*serve, "--address", "127.0.0.2", "--port", str(other), "--liveness", "--use-xheaders"]
    here = [*serve, "--port", str(port), "--processes", "1", "--hosts", f"B=127.0.0.2:{other}", "--proxy", proxy]
    started, contexts, codes = [], [], []

    def open_page(path: str):
        contexts.append(chromium.new_context())
        page = contexts[-1].new_page()
        page.goto(f"http://localhost:{port}/app{path}")
        page.wait_for_function("window.steinlab?.frames > 3", timeout=1000 * PATIENCE)
        return page

    try:
        for command, letter in ((there, "B"), (here, "")):
            environment = {**os.environ, "STEINLAB_PROCESS": letter}
            to = log.open("a")
            started.append(subprocess.Popen(command, cwd=ROOT, stdout=to, stderr=to, env=environment))
        until(lambda: answer(port, "/app/class/A2222222") == answer(port, "/app/class/B2222222") == 200)
        while not codes or codes[-1][0] != "B":
            assert len(codes) < 20, codes
            codes.append(begin(SimpleNamespace(page=open_page("?target=banana&methods=svgd"))))
        open_page(f"/class/{codes[-1]}")  # a phone shows the lecturer's stage
        while contexts:
            contexts.pop().close()
        started[0].kill()
        started[0].wait()
        until(lambda: answer(port, f"/app/class/{codes[-1]}") == 502)
        assert [answer(port) for _ in range(4)] == [200] * 4
    finally:
        for context in contexts:
            context.close()
        for process in started:
            process.terminate()
            process.wait(60)
    assert "Traceback" not in log.read_text(), log.read_text()


@pytest.mark.rare
def test_visitors_stay_on_the_process_that_their_cookie_says(chromium, proxied):
    with urllib.request.urlopen(proxied[0].url.replace("/app", "/liveness")) as found:
        assert found.status == 200 and found.headers["X-Content-Type-Options"] == "nosniff"
        assert found.headers["Content-Security-Policy"] == "frame-ancestors 'self'"

    def visits() -> list[int]:
        return [server.log().count("WebSocket connection opened") for server in proxied]

    tabs = []
    while min(visits()) == 0 or len(tabs) < 3:
        assert len(tabs) < 20, "all visitors came to one process"
        tabs.append(Tab(chromium, proxied[0], "?target=oring&methods=svgd"))
    before = visits()
    assert sum(before) == len(tabs)
    for tab in tabs:
        tab.page.reload()
        tab.wait("window.steinlab && window.steinlab.frames > 0")
        tab.slide("alpha", "ArrowRight")
        tab.wait("location.search.includes('alpha')")
        tab.close()
    assert visits() == [2 * n for n in before]


def test_a_password_is_asked_for_without_the_internet_and_only_the_right_one_opens_the_app(chromium, tmp_path):
    login = ["--basic-login-template", str(ROOT / "assets" / "login.html")]
    server = Server(tmp_path, ["--basic-auth", "right horse", "--cookie-secret", "any long text", *login])
    tab = Tab(chromium, server, "?page=notation", ready="document.querySelector('input[name=password]')")
    try:
        for password, shown in (("wrong", "Invalid username or password"), ("right horse", "Notation and references")):
            tab.page.get_by_label("Name").fill("me")
            tab.page.get_by_label("Password").fill(password)
            tab.page.get_by_role("button", name="Log in").click()
            if password == "right horse":
                tab.page.wait_for_url("**/app*")
                tab.page.goto(server.url + "?page=notation")
            tab.page.get_by_text(shown).first.wait_for()
        tab.close()  # no error in its console, and every request was local
    finally:
        server.stop()
    assert "Traceback" not in server.log()


class Provider(BaseHTTPRequestHandler):
    """The least that OAuth asks of who knows the accounts: a login (that everybody passes), a token for its code and a
    name for the token."""

    name = "me@example.org"

    def do_GET(self):
        where = urlsplit(self.path)
        query = dict(parse_qsl(where.query))
        if where.path == "/authorize":
            self.send_response(302)
            self.send_header(
                "Location", f"{query['redirect_uri']}?{urlencode({'code': 'one', 'state': query['state']})}"
            )
            self.end_headers()
        else:
            known = self.headers["Authorization"] == "Bearer token"
            self.answer({"email": self.name} if known else {"error": "who?"}, 200 if known else 401)

    def do_POST(self):
        asked = dict(parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
        right = (asked["code"], asked["client_id"], asked["client_secret"]) == ("one", "steinlab", "hush")
        self.answer({"access_token": "token"} if right else {"error": "no"}, 200 if right else 401)

    def answer(self, body: dict, status: int):
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *arguments):
        pass


@pytest.mark.parametrize("secret", ["hush", "wrong"])
def test_accounts_from_elsewhere_open_the_app(chromium, tmp_path, secret):
    provider = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    threading.Thread(target=provider.serve_forever, daemon=True).start()
    there = f"http://localhost:{provider.server_port}"
    urls = {f"PANEL_OAUTH_{name}_URL": f"{there}/{name.lower()}" for name in ("AUTHORIZE", "TOKEN", "USER")}
    port = free_port()
    server = Server(
        tmp_path,
        [
            "--oauth-provider",
            "generic",
            "--oauth-key",
            "steinlab",
            "--oauth-secret",
            secret,
            "--cookie-secret",
            "any long text",
            "--oauth-redirect-uri",
            f"http://localhost:{port}/login",
        ],
        {**os.environ, **urls},
        port=port,
    )
    context = chromium.new_context()
    page = context.new_page()
    try:
        answer = page.goto(server.url + "?page=notation")
        if secret == "hush":
            page.goto(server.url + "?page=notation")  # the way through the login leads to the first page
            page.get_by_text("Notation and references").first.wait_for()
        else:
            assert answer.status == 401 and not page.get_by_text("Notation and references").count()
    finally:
        context.close()
        server.stop()
        provider.shutdown()
    assert "Traceback" not in server.log(), server.log()


def test_a_file_of_ones_own_is_set_up_and_its_target_is_in_the_select(chromium, tmp_path):
    """As README says, with the nine lines of CONTRIBUTING."""
    assert "panel serve app --setup my_model.py\n" in (ROOT / "README.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL)
    path = tmp_path / "my_model.py"
    path.write_text(next(block for block in blocks if '"mine"' in block))
    server = Server(tmp_path, ["--setup", str(path)])
    try:
        tab = Tab(chromium, server, "?target=gaussian&methods=svgd")
        tab.choose("Gaussian", "Mine")
        tab.wait("location.search.includes('target=mine') && window.steinlab.metrics[0][1] > 0")
        tab.page.goto(f"{server.url}?target=mine&methods=svgd")  # a session of its own
        tab.wait("window.steinlab && window.steinlab.step[0] > 3")
        tab.close()
        assert "Traceback" not in server.log(), server.log()
    finally:
        server.stop()


def test_a_page_of_another_address_gets_no_connection(server):
    host = server.url.split("/")[2]
    token = re.search(r'"token":"([^"]+)"', urllib.request.urlopen(server.url).read().decode()).group(1)
    answers = []
    for origin in (f"http://{host}", "http://elsewhere.example"):
        connection = HTTPConnection(host)
        connection.request(
            "GET",
            "/app/ws",
            headers={
                "Origin": origin,
                "Connection": "Upgrade",
                "Upgrade": "websocket",
                "Sec-WebSocket-Version": "13",
                "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
                "Sec-WebSocket-Protocol": f"bokeh, {token}",
            },
        )
        answers.append(connection.getresponse().status)
        connection.close()
    assert answers == [101, 403]


def test_a_browser_that_vanishes_in_the_middle_of_a_picture_is_no_error(server):
    """The log of this server has to be without a traceback in the end."""

    async def visits():
        gone, stays = (Visitor(server.url, "?target=oring&methods=svgd") for _ in range(2))
        await gone.open()
        await stays.open()
        watching = asyncio.create_task(stays.watch(time.monotonic() + 6))
        await gone.watch(time.monotonic() + 3)
        gone.kill()
        before = len(stays.pictures)
        await watching
        await stays.close()
        return len(gone.pictures), before, len(stays.pictures)

    gone, before, after = finished(visits())
    assert gone > 2 and after > before + 5
    assert "Traceback" not in server.log(), server.log()[-3000:]


@pytest.mark.rare
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks by a signal")
def test_pages_leave_nothing_in_the_server_whether_a_browser_loaded_them_or_not(tmp_path):
    file = tmp_path / "counts.json"
    soon = ["--unused-session-lifetime", "1000", "--check-unused-sessions", "500"]
    watched = [str(Path(__file__).with_name("watched.py"))]
    server = Server(tmp_path, soon, {**os.environ, "STEINLAB_COUNTS": str(file)}, watched)

    async def visit():
        visitor = Visitor(server.url, "?target=oring&methods=svgd")
        await visitor.open()
        until = time.monotonic() + 90
        while not visitor.pictures and time.monotonic() < until:
            await visitor.watch(time.monotonic() + 1)
        assert visitor.pictures
        await visitor.turn("alpha", 30)
        await visitor.watch(time.monotonic() + 1)
        during = counts(server, file)
        await visitor.close()
        return during

    try:
        for link in LINKS:  # as a program does that looks for links
            urllib.request.urlopen(server.url + link, timeout=120).read()
        during = finished(visit())
        assert during["runs"] and RUN in during["threads"]
        until = time.monotonic() + 150
        while (left := counts(server, file)) and any(
            [left["sessions"], left["runs"], left["views"], RUN in left["threads"]]
        ):
            assert time.monotonic() < until, left
            time.sleep(1)
    finally:
        server.stop()
    assert "Traceback" not in server.log(), server.log()


def test_a_stage_is_part_of_another_page(chromium, server, tmp_path):
    """The iframe that the app gives: canvas, Play, Reset and two sliders; its theme is that of the page around it."""
    tab = Tab(chromium, server, "?target=banana&methods=svgd,smi&method.alpha=0.5")
    tab.button("Share").click()
    tab.page.get_by_role("menuitem", name="Copy embed").click()
    embed = tab.clipboard("<iframe")
    tab.close()
    assert "methods=svgd,smi&amp;" in embed and "&amp;ui=min" in embed and 'title="Stein' in embed
    (tmp_path / "course.html").write_text(f"<!doctype html><title>A course</title>{embed}")
    page = chromium.new_page()
    page.goto(f"file://{tmp_path / 'course.html'}")
    inner = page.frame_locator("iframe")
    frame = page.frames[1]
    frame.wait_for_function("window.steinlab && window.steinlab.step[0] > 3")
    inner.get_by_role("slider", name="alpha").wait_for()
    expect(inner.get_by_role("slider", name="particles")).to_be_visible()
    expect(inner.get_by_role("button", name="Pause")).to_be_visible()
    for gone in ("Share", "Diagnose this run", "Step"):
        expect(inner.get_by_role("button", name=gone)).to_have_count(0)
    expect(inner.get_by_role("slider", name="Rewind")).to_be_hidden()
    height = "[...document.querySelectorAll('*')].length && document.documentElement.clientHeight"
    canvas = inner.locator("canvas.plot").first.bounding_box()
    assert canvas["height"] > 200 and canvas["y"] + canvas["height"] < frame.evaluate(height)
    page.evaluate("document.querySelector('iframe').contentWindow.postMessage({steinlab: {theme: 'dark'}}, '*')")
    frame.wait_for_function("location.search.includes('theme=dark')")
    frame.wait_for_function("location.search.includes('ui=min')")
    page.close()
