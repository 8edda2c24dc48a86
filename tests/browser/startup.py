"""python tests/browser/startup.py: from the server's start, and from a visit, to the first moving picture, in a real
Chromium.

Cold: nothing was ever compiled on this machine (an empty cache). Warm: the server has started before.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from chromium import FLAGS, Server, executable
from playwright.sync_api import sync_playwright

REST = 20  # seconds before the second visit: what compiles in the background has ended
PAGES = {  # page -> (link, what is waited for: a condition, or a text)
    "particles": ("?target=oring&methods=svgd", "window.steinlab?.frames > 2"),
    "index": ("", "text=Attraction and repulsion"),
    "location": ("?page=location", "window.steinlab?.frames > 2"),
    "wave": ("?page=wave", "window.steinwave?.pictures > 1"),
}


def visit(browser, server: Server, link: str, moves: str) -> float:
    """Seconds from the visit to what moves."""
    context = browser.new_context(viewport={"width": 1280, "height": 720})
    page = context.new_page()
    began = time.perf_counter()
    page.goto(server.url + link)
    if moves.startswith("text="):
        page.locator(moves).first.wait_for(timeout=180_000)
    else:
        page.wait_for_function(moves, timeout=180_000)
    seconds = time.perf_counter() - began
    context.close()
    return seconds


def main():
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import stein_core"], check=True)
    print(f"import stein_core: {time.perf_counter() - began:.1f} s")
    cache = folder = tempfile.mkdtemp()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable(), args=FLAGS)
        for name, (link, moves) in PAGES.items():
            for state in ("cold", "warm"):
                folder = tempfile.mkdtemp(dir=cache) if state == "cold" else folder
                began = time.perf_counter()
                server = Server(Path(tempfile.mkdtemp()), (), {**os.environ, "STEINLAB_CACHE": folder})
                started = time.perf_counter() - began
                first = visit(browser, server, link, moves)
                print(
                    f"{name}, {state}: server {started:.1f} s, first picture {first:.1f} s after the visit",
                    end="",
                    flush=True,
                )
                time.sleep(REST)
                print(f", the next visitor's {visit(browser, server, link, moves):.1f} s")
                server.stop()
        browser.close()


if __name__ == "__main__":
    main()
