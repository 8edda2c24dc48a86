"""python tests/browser/measure.py [--sessions N] [--particles N] [--slow X]: what reaches the screen of a real
Chromium.

Frames painted per second and dropped, their size, the time from a slider's key press to the moment the canvas holds the
first picture computed with the new value (a screen shows it at its next refresh), how many frames have come and are not
painted yet, the server's processor and memory; of one session with both kinds of arrows, and of how many others beside
it.
"""

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

from chromium import FLAGS, Server, Tab, executable
from crowd import cpu, memory
from playwright.sync_api import sync_playwright

LATENCY = """async () => {
  // The repulsion of a fixed particle scales with alpha: watch for the first painted frame in which it jumped (a
  // key turns alpha by a factor of 3, of which the step that comes first gives some back).
  const size = () => { const r = steinlab.particles(0); return r.reduce((s, v) => s + Math.hypot(v[6], v[7]), 0); };
  return await new Promise(resolve => {
    const before = size();
    let start = 0;
    document.addEventListener("keydown", () => { start = performance.now(); }, {capture: true, once: true});
    window.__onframe = () => {
      if (Math.abs(Math.log(size() / before)) > 0.4) { window.__onframe = null; resolve(performance.now() - start); }
    };
  });
}"""


# A frame is the one message with a buffer, and its first number is its place in the sequence.
HEAR = """() => {
  window.__bytes = window.__behind = 0;
  sockets.at(-1).addEventListener("message", e => {
    window.__bytes += e.data.byteLength ?? e.data.length;
    if (!e.data.byteLength) return;
    window.__behind = Math.max(window.__behind, new Float32Array(e.data, 0, 1)[0] - steinlab.seq);
  });
}"""
COUNT = "[steinlab.frames, steinlab.seq]"


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--minutes", type=float, default=0.5, help="how long to watch the memory")
    options.add_argument("--sessions", type=int, default=1, help="open pages, each playing")
    options.add_argument("--methods", default="svgd")
    options.add_argument("--particles", type=int, default=200)
    options.add_argument("--slow", type=float, default=1, help="how many times slower the browser is")
    options = options.parse_args()
    environment = {**os.environ, "STEINLAB_PARTICLES": str(max(256, options.particles))}
    server = Server(Path(tempfile.mkdtemp()), (), environment)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable(), args=FLAGS)
        empty, started = memory(server.process.pid), time.perf_counter()
        query = f"?target=oring&methods={options.methods}&method.particles={options.particles}"
        tab = Tab(browser, server, query)
        print(f"first frame after {time.perf_counter() - started:.1f} s")
        others = [Tab(browser, server, query) for _ in range(options.sessions - 1)]
        time.sleep(20)  # background compiling ends
        tab.context.new_cdp_session(tab.page).send("Emulation.setCPUThrottlingRate", {"rate": options.slow})
        tab.page.evaluate(HEAR)
        begun = [other.stage("frames") for other in others]
        start, (at, sent), spent = time.perf_counter(), tab.page.evaluate(COUNT), cpu(server.process.pid)
        time.sleep(10)
        seconds, (frames, last) = time.perf_counter() - start, tab.page.evaluate(COUNT)
        painted, shown = frames - at, last - sent
        print(
            f"{painted / seconds:.1f} frames/s painted, {options.particles} particles, "
            f"{shown - painted:.0f} frames dropped"
        )
        if others:
            beside = [(other.stage("frames") - before) / seconds for other, before in zip(others, begun)]
            print(f"the other sessions: {min(beside):.1f} to {max(beside):.1f} frames/s")
        print(f"frames that have come and are not painted: at most {tab.page.evaluate('window.__behind'):.0f}")
        kilobytes, share = (
            tab.page.evaluate("window.__bytes") / shown / 1000,
            (cpu(server.process.pid) - spent) / seconds,
        )
        print(
            f"{kilobytes:.1f} kB a frame with all other messages; the server takes {share / options.sessions:.0%} "
            "of a core for a page"
        )

        slider = tab.page.get_by_role("slider", name="alpha").first
        times = []
        for i in range(21):
            slider.focus()
            tab.page.evaluate(f"void (window.__wait = ({LATENCY})())")
            slider.press("PageDown" if i % 2 else "PageUp")
            times.append(tab.page.evaluate("window.__wait"))
            time.sleep(0.6)  # until it has settled
        times.sort()
        print(f"slider to picture: median {statistics.median(times):.0f} ms, p95 {times[19]:.0f} ms")

        first = memory(server.process.pid)
        time.sleep(60 * options.minutes)
        print(
            f"server memory {empty:.0f} MB before the first visit, {first:.0f} MB, {options.minutes:g} minutes later "
            f"{memory(server.process.pid):.0f} MB ({options.sessions} open)"
        )
        tab.close()
        browser.close()
    server.stop()


if __name__ == "__main__":
    main()
