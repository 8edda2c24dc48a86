"""A real server (`panel serve app`), a real Chromium and one page of the app in it."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[1]))  # for the scripts here: pytest does it for tests

from checks import PATIENCE, until  # noqa: E402

from steinlab.site.film import chromium  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()

# Until Bokeh is idle, Panel's template lays a sheet over the page that takes the clicks.
UNCOVERED = """(() => { const sheet = document.getElementById('loader');
  return !sheet || window.Bokeh?.index?.roots[0]?.is_idle && sheet.style.display === 'none'; })()"""

# inside(document): all elements, those of components too.
INSIDE = """const inside = root => [...root.querySelectorAll("*")].flatMap(
  n => n.shadowRoot ? [n, ...inside(n.shadowRoot)] : [n]);"""

KEEP_SOCKETS = """window.sockets = [];
window.WebSocket = class extends WebSocket { constructor(...a) { super(...a); window.sockets.push(this); } };"""


def executable() -> str:
    """A Chromium on this machine; without one the tests skip, or fail where STEINLAB_REQUIRE_BROWSER is set."""
    try:
        return chromium()
    except ValueError as error:
        (pytest.fail if os.environ.get("STEINLAB_REQUIRE_BROWSER") else pytest.skip)(str(error))


def free_port() -> int:
    """One that nobody listens to."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Server:
    """`panel serve app` from the checkout, its address and everything that it printed. panel: what runs Panel
    instead."""

    def __init__(self, folder: Path, arguments=(), environment=None, panel=("-m", "panel"), port=None):
        port = port or free_port()
        self.url = f"http://localhost:{port}/app"
        self.log_file = folder / "server.log"
        command = [sys.executable, *panel, "serve", "app", "--port", str(port), "--liveness", *arguments]
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdout=self.log_file.open("w"), stderr=subprocess.STDOUT, env=environment
        )
        for _ in range(4 * PATIENCE):
            try:
                urllib.request.urlopen(f"http://localhost:{port}/liveness", timeout=1)
                return
            except OSError:
                time.sleep(0.25)
        raise RuntimeError(f"the server did not start:\n{self.log()}")

    def log(self) -> str:
        return self.log_file.read_text()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(20)


class Tab:
    """One page of the app, with what its console said and where its requests went."""

    def __init__(self, browser, server, query="", ready="window.steinlab && window.steinlab.frames > 0"):
        self.context = browser.new_context(
            viewport={"width": 1280, "height": 720}, permissions=["clipboard-read", "clipboard-write"]
        )
        self.page = self.context.new_page()
        self.context.set_default_timeout(1000 * PATIENCE)
        self.server, self.errors, self.requests = server, [], []
        self.page.on("console", lambda m: self.errors.append(m.text) if m.type == "error" else None)
        self.page.on("pageerror", lambda e: self.errors.append(str(e)))
        self.page.on("request", lambda r: self.requests.append(r.url))
        self.page.add_init_script(KEEP_SOCKETS)
        self.page.goto(server.url + query)
        self.wait(ready)
        self.wait(UNCOVERED)
        self.page.evaluate("navigator.clipboard.writeText('')")  # what an earlier test has copied is still there

    def wait(self, condition: str, seconds: float = PATIENCE):
        self.page.wait_for_function(condition, timeout=1000 * seconds)

    def stage(self, what: str):
        return self.page.evaluate(f"window.steinlab.{what}")

    def step(self) -> int:
        return self.stage("step")[0]

    def until_settled(self):
        """Wait until a paused picture has stopped changing."""
        self.at_rest(lambda: self.stage("frames"))

    @staticmethod
    def at_rest(read, still: float = 0.4):
        """Return what `read` gives, once it gives the same twice, `still` seconds apart."""
        before, now = None, read()
        while now != before:
            time.sleep(still)
            before, now = now, read()
        return now

    def clipboard(self, holds: str) -> str:
        """The user's clipboard, once it holds this text."""
        return until(lambda: self.page.evaluate("navigator.clipboard.readText()"), lambda text: holds in text)

    def until_changed(self, before: list, panel: int = 0) -> list:
        """Wait until the particles of a panel are not those any more; the new ones."""
        until(lambda: self.rows(panel), lambda rows: rows != before)
        self.until_settled()
        return self.rows(panel)

    def rows(self, panel: int = 0) -> list:
        """The particles of a panel, once there is one: a new scene has none before its first frame."""
        return until(lambda: self.stage(f"particles({panel})"), lambda rows: rows is not None)

    def button(self, name: str):
        """The first button whose name has these words, as they are written."""
        return self.page.get_by_role("button", name=re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")).first

    def wait_enabled(self, name: str, enabled: bool):
        """Wait until a button can be clicked, or cannot."""
        from playwright.sync_api import expect

        expect(self.button(name)).to_be_enabled(enabled=enabled)

    def slide(self, label: str, keys: str, times: int = 1):
        slider = self.page.get_by_role("slider", name=label).first
        slider.focus()
        for _ in range(times):
            slider.press(keys)

    def press_each_slider(self, key: str):
        """Press a key on each slider that is to be seen, but on the two below the stage."""
        for slider in self.page.locator("input[type=range]:visible").all():
            if slider.get_attribute("aria-label") not in ("Rewind", "Steps per frame"):
                slider.press(key)

    def unfold(self, *titles: str):
        """Open groups of the sidebar; without titles all that fold."""
        heads = self.page.locator(".MuiAccordionSummary-root:visible")
        for title in titles or heads.locator("b").all_inner_texts():
            head = heads.filter(has_text=title).first
            if head.get_attribute("aria-expanded") != "true":
                head.click()
                until(lambda: head.get_attribute("aria-expanded") == "true")
        self.at_rest(self.page.locator(".MuiAccordion-root").last.bounding_box)  # they slide open

    def pause(self):
        self.button("Pause").click()
        self.button("Play").wait_for()
        self.until_settled()

    def choose(self, shown: str, option: str):
        """Open the select that shows `shown` and take `option`."""
        self.page.get_by_role("combobox").filter(has_text=shown).first.click()
        self.page.get_by_role("menuitem", name=option).first.click()

    def tour(self, stop: str):
        """Open the stop of this name in the tour of the page."""
        self.button("Tour").click()
        self.page.get_by_role("menuitem", name=stop).first.click()

    def close(self):
        self.context.close()
        assert not self.errors, self.errors
        outside = [u for u in self.requests if not u.startswith(("http://localhost", "data:", "blob:"))]
        assert not outside, outside
