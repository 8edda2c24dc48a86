"""python tests/browser/measure.py [--minutes M]: what reaches the screen, measured in a real Chromium.

Frames painted per second, the time from a slider's key press to the first picture computed with the new value, how many
frames wait in the browser, and the server's memory, for one session with 200 particles and both kinds of arrows.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from chromium import FLAGS, Server, Tab, executable
from playwright.sync_api import sync_playwright

LATENCY = """async () => {
  // The repulsion of a fixed particle scales with alpha: watch for the first painted frame in which it jumped.
  const size = () => { const r = steinlab.particles(0); return r.reduce((s, v) => s + Math.hypot(v[6], v[7]), 0); };
  return await new Promise(resolve => {
    const before = size();
    let start = 0;
    document.addEventListener("keydown", () => { start = performance.now(); }, {capture: true, once: true});
    window.__onframe = () => {
      if (Math.abs(size() / before - 1) > 0.05) { window.__onframe = null; resolve(performance.now() - start); }
    };
  });
}"""


def memory(server) -> float:
    """Resident megabytes of the server."""
    pages = int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[1])
    return pages * 4096 / 1e6


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--minutes", type=float, default=0.5, help="how long to watch the memory")
    options.add_argument("--methods", default="svgd")
    options = options.parse_args()
    server = Server(Path(tempfile.mkdtemp()), ["--warm"])
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable(), args=FLAGS)
        started = time.perf_counter()
        tab = Tab(browser, server, f"?target=oring&methods={options.methods}&method.particles=200")
        print(f"first frame after {time.perf_counter() - started:.1f} s")
        time.sleep(20)  # background compiling ends
        start, at = time.perf_counter(), tab.stage("frames")
        time.sleep(10)
        print(f"{(tab.stage('frames') - at) / (time.perf_counter() - start):.1f} frames/s painted, 200 particles")
        behind = [tab.stage("lagFrames") for _ in range(50) if not time.sleep(0.02)]
        print(f"frames waiting in the browser: at most {max(behind)}")

        slider = tab.page.get_by_role("slider", name="alpha").first
        times = []
        for i in range(21):
            slider.focus()
            tab.page.evaluate(f"void (window.__wait = ({LATENCY})())")
            slider.press("ArrowRight" if i % 2 else "ArrowLeft")
            times.append(tab.page.evaluate("window.__wait"))
            time.sleep(0.3)
        times.sort()
        print(f"slider to picture: median {statistics.median(times):.0f} ms, p95 {times[19]:.0f} ms")

        first = memory(server)
        time.sleep(60 * options.minutes)
        print(f"server memory {first:.0f} MB, {options.minutes:g} minutes later {memory(server):.0f} MB")
        tab.close()
        browser.close()
    server.stop()


if __name__ == "__main__":
    main()
