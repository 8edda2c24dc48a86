"""`steinlab record LINK`: its page plays, and its film and its GIF show the run."""

import subprocess
import sys
from io import BytesIO

import numpy as np
import pytest
from chromium import executable
from PIL import Image
from test_replays import ROWS, replayed

from stein_core import Spec, compile
from steinlab.ui.colours import looks_of
from steinlab.ui.theme import TOKENS

pytestmark = pytest.mark.browser
LINK = "target=banana&methods=svgd&method.particles=20&seed=3"
STEPS = 75
LENGTH = """async bytes => { const v = document.createElement("video");
v.src = URL.createObjectURL(new Blob([Uint8Array.from(bytes)], {type: "video/webm"}));
await new Promise((done, fail) => { v.onloadeddata = done; v.onerror = () => fail(new Error("no film")); });
const seeked = new Promise(done => { v.onseeked = done; });
const lasts = v.duration;
v.currentTime = 1.5;
await seeked;
return [v.videoWidth, v.videoHeight, lasts, v.currentTime, v.seekable.end(0)]; }"""

FILM = """async () => { const [url] = await replay.film([1280, 720]);
return [...new Uint8Array(await (await fetch(url)).arrayBuffer())]; }"""


def record(out, *arguments, link=LINK):
    """Run the command; another process, for Playwright already runs in this one."""
    executable()
    command = [sys.executable, "-m", "stein_core", "record", link, "--out", str(out), "--steps", str(STEPS), *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert done.stdout.endswith(f"open {out}\n")
    return out.read_bytes()


def near(picture: Image.Image, colour: str) -> int:
    """How many pixels have about this colour."""
    wanted = [int(colour[k : k + 2], 16) for k in (1, 3, 5)]
    return int((np.abs(np.asarray(picture.convert("RGB"), int) - wanted).max(axis=2) < 10).sum())


def test_a_page_plays_the_run_of_the_link(chromium, tmp_path):
    record(tmp_path / "run.html")
    page = replayed(chromium, tmp_path / "run.html")
    assert page.evaluate("replay.frames.length") == STEPS + 1 and page.title() == "SVGD: a replay of Steinlab"
    page.locator("#at").fill(str(STEPS))
    page.wait_for_function(f"window.steinlab.step[0] === {STEPS}")
    stepper = compile(Spec("banana", method="svgd", capacity=32))
    knobs = {"method.particles": 20}
    wanted = np.asarray(stepper.advance(stepper.reset(3, knobs), knobs, STEPS).particles)[:20]
    shown = np.array(page.evaluate(ROWS))[:, :2]
    np.testing.assert_allclose(shown, wanted, atol=1e-3)
    assert page.evaluate("steinlab.value(0, 'sample_variance')") == pytest.approx(wanted.var(axis=0).mean(), rel=0.1)
    page.close()


def test_a_film_has_the_size_and_lasts_as_long_as_it_plays(chromium, tmp_path):
    film = record(tmp_path / "run.webm")
    assert film[:4] == bytes.fromhex("1a45dfa3")
    page = chromium.new_page()
    width, height, seconds, at, end = page.evaluate(LENGTH, list(film))
    page.close()
    assert (width, height) == (1280, 720) and 2e3 < len(film) / seconds < 3e6 / 10
    # 30 frames a second, the last one for another half; on a slow machine too.
    assert seconds == pytest.approx((STEPS + 2) / 30 + 0.5, abs=1e-3) and end == seconds and at == 1.5


def test_a_browser_without_an_encoder_films_what_plays(chromium, tmp_path):
    record(tmp_path / "run.html")
    page = replayed(chromium, tmp_path / "run.html")
    page.evaluate("delete window.VideoEncoder")
    film = page.evaluate(FILM)
    page.close()
    assert bytes(film[:4]) == bytes.fromhex("1a45dfa3") and b"Chrome" in bytes(film[:400])  # the browser has written it


def test_a_gif_shows_the_run_with_its_legend(tmp_path):
    gif = Image.open(BytesIO(record(tmp_path / "run.gif", "--size", "1080", "--marks", "repulse")))
    assert gif.size == (1920, 1080) and gif.n_frames == 38 and gif.info["loop"] == 0  # half of the frames
    pictures, lasts = [], []
    for k in range(gif.n_frames):
        gif.seek(k)
        pictures.append(gif.convert("RGB"))
        lasts.append(gif.info["duration"])
    assert sum(lasts[:-1]) == pytest.approx(1000 * 37 / 15, abs=10) and lasts[-1] == 1000
    light, (look,) = TOKENS["light"], looks_of(["svgd"])
    assert all(one.getpixel((2, 2)) == (255, 255, 255) and near(one, look.colour) > 1000 for one in pictures)
    legend = pictures[0].crop((0, 0, 1920, 75))
    assert near(legend, light["repulse"]) > 50 and near(legend, light["attract"]) == 0
    assert pictures[0].tobytes() != pictures[-1].tobytes()


@pytest.mark.parametrize("page, method", [("location", "smi"), ("samplers", "ksivi"), ("remedy", "random_subspace")])
def test_the_other_pages_with_particles_make_films_too(chromium, tmp_path, page, method):
    gif = Image.open(BytesIO(record(tmp_path / "run.gif", link=f"page={page}")))
    (look,) = looks_of([method])
    gif.seek(gif.n_frames - 1)
    assert gif.n_frames > 1 and near(gif, look.colour) > 200
    replay = replayed(chromium, record(tmp_path / "run.html", link=f"page={page}&theme=dark") and tmp_path / "run.html")
    replay.locator("#at").fill("1000")
    replay.wait_for_function(f"window.steinlab.step[0] === {STEPS}")
    assert replay.evaluate("document.documentElement.dataset.theme") == "dark"
    replay.close()
