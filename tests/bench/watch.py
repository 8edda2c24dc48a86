"""What `steinlab.watch` costs a loop: `python tests/bench/watch.py` (extra `test`).

BlackJAX's SVGD with 200 particles on the banana. Seconds with and without `see` take turns. A ratio is one pair's; the
median counts. Then the same with a client that takes each frame and draws nothing, as if the browser were on another
machine, and with the page open in Chromium on this machine, which draws without a GPU.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import blackjax
import jax
import optax

import steinlab
from stein_core import Spec, target_of
from stein_core.base.machine import device_name

BROWSER = Path(__file__).parents[1] / "browser"
sys.path.append(str(BROWSER))
from chromium import FLAGS, executable  # noqa: E402

PARTICLES, SECONDS = 200, 1.0
CLIENT = """
import asyncio, os, sys, time
sys.path.append(sys.argv[1])
from visitors import Visitor

os.nice(19)

async def look():
    visitor = Visitor(sys.argv[2].rstrip("/"))
    await visitor.open()
    began = time.monotonic()
    await visitor.watch(began + float(sys.argv[3]))
    print(len(visitor.pictures) / (time.monotonic() - began))

asyncio.run(look())
"""


def measure(see, run, pairs: int) -> list[float]:
    """Return the steps a second with `see`, over those without, of each pair."""
    found = []
    for pair in range(pairs):
        rates = {}
        for shown in (True, False) if pair % 2 else (False, True):
            rates[shown] = run(see if shown else lambda particles: None)
        found.append(rates[True] / rates[False])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    spec = Spec("banana")
    target = target_of(spec)
    svgd = blackjax.svgd(jax.grad(target.log_density), optax.adam(0.01))
    step = jax.jit(svgd.step)
    state = step(svgd.init(jax.random.normal(jax.random.key(0), (PARTICLES, target.dim))))

    def run(shown) -> float:
        nonlocal state
        jax.block_until_ready(state)
        began, count = time.monotonic(), 0
        while time.monotonic() < began + SECONDS:
            state = step(state)
            shown(state.particles)
            count += 1
        jax.block_until_ready(state)
        return count / (time.monotonic() - began)

    from playwright.sync_api import sync_playwright

    with steinlab.watch(spec, show=False) as see, sync_playwright() as playwright:
        run(see)
        alone = measure(see, run, options.pairs)
        script = [sys.executable, "-c", CLIENT, str(BROWSER), see.url, str(2 * options.pairs * SECONDS + 2)]
        client = subprocess.Popen(script, stdout=subprocess.PIPE, text=True)
        run(see)
        elsewhere = measure(see, run, options.pairs)
        half = float(client.communicate()[0])  # of the time `see` is not called
        browser = playwright.chromium.launch(executable_path=executable(), args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 720})
        page.goto(see.url)
        page.wait_for_function("window.steinlab?.frames > 0")
        looked = measure(see, run, options.pairs)
        first = page.evaluate("window.steinlab.frames")
        rate = statistics.mean(run(see) for _ in range(5))
        frames = (page.evaluate("window.steinlab.frames") - first) / (5 * SECONDS)
        browser.close()
    see.close()
    rows = {
        "device": device_name(),
        "steps_per_second": round(rate, 1),
        "cost_without_a_page": round(1 - statistics.median(alone), 4),
        "cost_with_a_page_elsewhere": round(1 - statistics.median(elsewhere), 4),
        "frames_per_second_elsewhere": round(2 * half, 1),
        "cost_with_a_page_on_this_machine": round(1 - statistics.median(looked), 4),
        "frames_per_second_on_this_machine": round(frames, 1),
    }
    if options.json:
        print(json.dumps(rows))
    else:
        for name, value in rows.items():
            print(f"{name.replace('_', ' '):<36} {value}")


if __name__ == "__main__":
    main()
