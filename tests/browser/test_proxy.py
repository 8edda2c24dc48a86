"""Two processes behind nginx, with the configuration that the README names."""

import shutil
import socket
import subprocess
import time
import urllib.request

import pytest
from chromium import ROOT, Server, Tab

pytestmark = pytest.mark.browser


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.fixture
def proxied(tmp_path):
    """Two servers and the address of the proxy before them."""
    if not shutil.which("nginx"):
        pytest.skip("no nginx found: install nginx to try the proxy")
    port = free_port()
    servers = []
    for name in "ab":
        (tmp_path / name).mkdir()
        servers.append(Server(tmp_path / name, ["--use-xheaders", "--allow-websocket-origin", f"localhost:{port}"]))
    text = (ROOT / "assets" / "nginx.conf").read_text()
    ports = [server.url.split(":")[2].split("/")[0] for server in servers]
    for old, new in zip(("8080", "5006", "5007", "/tmp/steinlab-nginx.pid"), (str(port), *ports, str(tmp_path / "pid"))):
        assert old in text
        text = text.replace(old, new)
    (tmp_path / "nginx.conf").write_text(text)
    proxy = subprocess.Popen(["nginx", "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf"), "-g", "daemon off;"])
    for server in servers:  # a tab opens the proxy's address
        server.url = f"http://localhost:{port}/app"
    time.sleep(1)
    yield servers
    proxy.terminate()
    proxy.wait(10)
    for server in servers:
        server.stop()
        assert "Traceback" not in server.log(), server.log()


def test_visitors_stay_on_the_process_that_their_cookie_says(chromium, proxied):
    with urllib.request.urlopen(proxied[0].url.replace("/app", "/liveness")) as answer:
        assert answer.status == 200

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
