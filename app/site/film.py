"""Films and GIFs of a replay: a browser without a window paints them, with the code that paints the app's."""

from __future__ import annotations

import base64
import os
import shutil
from collections.abc import Sequence
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from PIL import Image

from stein_core.base.errors import short

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
SIZES = {720: (1280, 720), 1080: (1920, 1080)}
WINDOW = {"width": 1280, "height": 1030}  # what is below the panels takes 310 of it
READY = "window.replay?.frames.length && (window.steinlab?.frames || window.steinpanels || window.steinchart?.points)"
PATIENCE = 180_000  # ms until the replay shows its first frame: a machine may be busy
RATE, LAST = 15, 1000  # pictures a second, ms of the last one
COLOURS, APART = 255, 10  # of a GIF: the one of 256 that is left is for what stays; shades between two of them


def chromium() -> str:
    """Return the path of this machine's Chromium.

    Raises:
        ValueError: there is none.
    """
    named = os.environ.get("CHROME_BIN")
    found = next(filter(None, map(shutil.which, [named] if named else BROWSERS)), None)
    if not found:
        what = f"CHROME_BIN = {short(named)!r} is no program" if named else "there is no Chromium"
        raise ValueError(f"{what}; install chromium or google-chrome, or set CHROME_BIN to its path.")
    return found


def check_browser() -> None:
    """Raise ValueError if no film can be made here."""
    if find_spec("playwright") is None:
        raise ValueError("films and GIFs need Playwright; install it with: pip install 'steinlab[browser]'.")
    chromium()


def film(page: str, size: int) -> bytes:
    """Return the WebM of a replay, of ten seconds at most.

    Args:
        page: of `steinlab.stage.recorder.replay_of`.
        size: of SIZES.
    """
    (made,) = painted(page, f"replay.film({[*SIZES[size]]})")
    return made


def gif(page: str, size: int) -> bytes:
    """Return the GIF of a replay, which plays for ever. Arguments as for `film`."""
    pictures = [Image.open(BytesIO(one)).convert("RGB") for one in painted(page, f"replay.pictures({[*SIZES[size]]})")]
    palette = palette_of(pictures[len(pictures) // 2])
    first, *others = (one.quantize(palette=palette, dither=Image.Dither.NONE) for one in pictures)
    ends = [round(100 * k / RATE) for k in range(len(pictures))]  # in hundredths of a second
    lasts = [10 * (end - begin) for begin, end in zip(ends, ends[1:])] + [LAST]
    made = BytesIO()
    first.save(made, "GIF", save_all=True, append_images=others, duration=lasts, loop=0, optimize=True)
    return made.getvalue()


def palette_of(picture: Image.Image) -> Image.Image:
    """Return the colours of a GIF: frequent ones, with none near another. Those that Pillow finds tint the paper."""
    left = np.array([colour for _, colour in sorted(picture.getcolors(2**24), reverse=True)], int)
    kept: list[np.ndarray] = []
    while len(left) and len(kept) < COLOURS:
        kept.append(left[0])
        left = left[np.abs(left - left[0]).max(axis=1) >= APART]
    palette = Image.new("P", (1, 1))
    palette.putpalette(np.concatenate(kept).tolist())
    return palette


def painted(page: str, asked: str) -> Sequence[bytes]:
    """Open a replay in a browser without a network, and return what an expression of the page gives as data URLs."""
    from playwright.sync_api import Error, sync_playwright

    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder) / "replay.html"
        file.write_text(page, encoding="utf-8")
        try:
            browser = playwright.chromium.launch(executable_path=chromium())
        except Error as error:
            raise ValueError(f"{chromium()} does not start: {short(error.message)}") from None
        opened = browser.new_context(offline=True, viewport=WINDOW).new_page()
        opened.goto(file.as_uri())
        opened.wait_for_function(READY, timeout=PATIENCE)
        made = opened.evaluate(asked)
        browser.close()
    return [base64.b64decode(one.partition(",")[2]) for one in made]
