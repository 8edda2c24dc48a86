"""The site in Firefox, which Playwright drives only in a build of its own: here it is driven over WebDriver BiDi."""

import asyncio
import json
import os
import shutil
import subprocess
from itertools import count

import numpy as np
import pytest
from tornado.websocket import websocket_connect

from stein_core import Spec, compile
from steinlab.site.build import build

pytestmark = [pytest.mark.browser, pytest.mark.rare]
FIREFOX = next(filter(None, map(shutil.which, ("firefox-esr", "firefox"))), None)
PATIENCE = 60  # seconds
ITS_OWN = "No external component configuration found"  # Firefox, of its search
STARTED = "WebDriver BiDi listening on "


class Firefox:
    """Firefox without a window. problems: what its console has said."""

    def __init__(self, process, socket):
        self.process, self.socket, self.number, self.problems = process, socket, count(1), []

    @classmethod
    async def started(cls, profile):
        command = [FIREFOX, "--headless", "--no-remote", "--profile", str(profile), "--remote-debugging-port", "0"]
        process = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "HOME": str(profile)},
        )
        address = next(line for line in process.stderr if line.startswith(STARTED)).removeprefix(STARTED).strip()
        self = cls(process, await websocket_connect(f"{address}/session"))
        await self.call("session.new", capabilities={})
        await self.call("session.subscribe", events=["log.entryAdded"])
        self.context = (await self.call("browsingContext.getTree"))["contexts"][0]["context"]
        return self

    async def call(self, method, **params):
        number = next(self.number)
        await self.socket.write_message(json.dumps({"id": number, "method": method, "params": params}))
        while True:
            said = json.loads(await asyncio.wait_for(self.socket.read_message(), PATIENCE))
            entry = said.get("params", {}) if said.get("method") == "log.entryAdded" else {}
            if entry.get("level") in ("error", "warn") and not entry["text"].startswith(ITS_OWN):
                self.problems.append(entry["text"])
            if said.get("id") == number:
                assert said["type"] == "success", said
                return said["result"]

    async def go(self, url):
        await self.call("browsingContext.navigate", context=self.context, url=url, wait="complete")

    async def tell(self, expression):
        target = {"context": self.context}
        said = await self.call(
            "script.evaluate", expression=f"JSON.stringify({expression})", target=target, awaitPromise=True
        )
        assert said["type"] == "success", said
        return json.loads(said["result"]["value"])

    async def until(self, expression):
        for _ in range(20 * PATIENCE):
            if await self.tell(f"Boolean({expression})"):
                return
            await asyncio.sleep(0.05)
        raise AssertionError(f"{expression} did not come true")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    if FIREFOX is None:
        pytest.skip("there is no Firefox")
    made = tmp_path_factory.mktemp("firefox")
    build(made / "site", ("banana",), ("svgd", "smi"), told=True, taught=("02",))
    return made


async def visited(folder, visit):
    profile = folder / "profile"
    profile.mkdir(exist_ok=True)
    browser = await Firefox.started(profile)
    try:
        await visit(browser, f"file://{folder / 'site'}")
        assert browser.problems == []
    finally:
        browser.process.kill()


def test_the_lab_gives_the_apps_picture(folder):
    async def visit(browser, site):
        await browser.go(f"{site}/lab.html?target=banana&methods=svgd&method.alpha=0.5&seed=3")
        await browser.until("steinlab.lab?.run?.clock > 10 && window.steinlab.frames > 10")
        await browser.tell("[steinlab.lab.play(false), steinlab.lab.run.go(0), steinlab.lab.run.advance(100)].length")
        found = await browser.tell("[...steinlab.lab.run.seen.svgd.locations].slice(0, 40)")
        stepper, knobs = (
            compile(Spec("banana", method="svgd", capacity=32)),
            {"method.alpha": 0.5, "method.particles": 20},
        )
        wanted = np.asarray(stepper.advance(stepper.reset(3, knobs), knobs, 100).particles)[:20]
        np.testing.assert_allclose(np.reshape(found, (-1, 2)), wanted, atol=1e-4)
        await browser.tell("(steinlab.patience = -1, steinlab.lab.play(true), 0)")
        await browser.until("steinlab.lab.player.helper && steinlab.lab.run.clock > 130")

    asyncio.run(visited(folder, visit))


def test_essay_and_lesson_run(folder):
    async def visit(browser, site):
        await browser.go(f"{site}/index.html")
        await browser.until("steinlab.figures['figure-one']?.player.run")
        await browser.tell("(document.getElementById('figure-one').scrollIntoView({ block: 'center' }), 0)")
        await browser.tell("(steinlab.figures['figure-one'].player.play(true), 0)")
        await browser.until("steinlab.figures['figure-one'].player.run.clock > 3")
        await browser.go(f"{site}/lesson-02.html")
        await browser.until("document.querySelector('.display svg') && steinlab.figures['figure-02-2']?.player.run")
        await browser.tell("(document.getElementById('figure-02-6').scrollIntoView(), 0)")
        await browser.until("steinlab.figures['figure-02-6']?.shown !== undefined")
        await browser.tell("(steinlab.figures['figure-02-6'].rows.slope.turn(50), 0)")
        await browser.until("steinlab.figures['figure-02-6'].shown === 20")

    asyncio.run(visited(folder, visit))
