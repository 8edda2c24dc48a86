"""Runs of the pages on which networks train, kept: as one page that plays them again, and as films."""

import subprocess
import sys
from io import BytesIO

import numpy as np
import pytest
from chromium import executable
from PIL import Image
from playwright.sync_api import expect
from test_replays import saved

from steinlab.pages.wave.setup import WaveSetup
from steinlab.ui.colours import looks_of
from steinlab.ui.theme import TOKENS

pytestmark = pytest.mark.browser
WAVE = "page=wave&methods=svgd,map&width=2"
FUNCTIONS = "page=functions&methods=ensemble,wsvgd&width=10&method.particles=4"
SHOWN = "window.replay?.frames.length && (window.steinwave ?? window.steinfunctions)?.pictures"


def replayed(chromium, path, errors, theme=""):
    """A replay, opened from the disk without a network. errors: what its scripts say is wrong."""
    page = chromium.new_context(offline=True).new_page()
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"file://{path}{theme}")
    page.wait_for_function(SHOWN)
    return page


def record(out, link, *arguments):
    """Run the command; another process, for Playwright already runs in this one."""
    executable()
    command = [sys.executable, "-m", "stein_core", "record", link, "--out", str(out), *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return out


@pytest.mark.parametrize("link, read, at, unit", [
    (WAVE, "steinwave.panel('svgd')", "step", 0.02),
    (FUNCTIONS, "steinfunctions.seen('ensemble')", "step", 0.04),
])  # fmt: skip
def test_the_app_keeps_a_training_as_one_page(open_tab, chromium, tmp_path, link, read, at, unit):
    shown = f"{read}?.{at} > 60 && {read}.mean.length"  # a method may compile longer than another one
    tab = open_tab(f"?{link}", f"(window.steinwave ?? window.steinfunctions)?.pictures > 20 && {shown}")
    tab.button("Pause").click()
    tab.page.wait_for_url("**steps=*")
    shown = tab.at_rest(lambda: tab.page.evaluate(read))
    tab.button("Share").click()
    tab.page.get_by_role("menuitem", name="Replay as one page").click()
    tab.page.get_by_text("A replay of").wait_for()
    said = tab.page.locator("dialog p").inner_text()
    file = saved(tab.page, tmp_path / "run.html")
    assert f"{file.stat().st_size / 1e6:.2f} MB" in said
    errors = []
    replay = replayed(chromium, file, errors)
    frames = replay.evaluate("replay.frames.length")
    assert f"{frames} frames" in said and frames > 15
    replay.locator("#at").fill(str(frames - 1))
    replay.wait_for_function(f"window.{read}?.{at} === {shown[at]}")
    kept = replay.evaluate(read)
    bend = np.abs(np.diff(shown["mean"], 2)).max()
    np.testing.assert_allclose(kept["mean"], shown["mean"], atol=unit + 5 * bend)  # a line between those that are kept
    np.testing.assert_allclose(
        kept["mean"][:: 4 if unit < 0.03 else 5], shown["mean"][:: 4 if unit < 0.03 else 5], atol=0.51 * unit
    )
    assert kept["curves"] == shown["curves"] > 0
    expect(replay.locator("#legend")).to_contain_text("mean")
    replay.keyboard.press("ArrowLeft")
    replay.wait_for_function(f"window.{read}?.{at} < {shown[at]}")
    replay.get_by_role("button", name="Play").click()
    replay.wait_for_function(f"window.{read}?.{at} === {shown[at]}")
    replay.context.close()
    assert not errors


def test_the_command_makes_a_page_in_both_themes(chromium, tmp_path):
    file = record(tmp_path / "run.html", f"{WAVE}&rows=1&theme=dark", "--steps", "40", "--every", "10")
    errors = []
    for theme, paper in (("", "dark"), ("?theme=light", "light")):
        page = replayed(chromium, file, errors, theme)
        assert page.evaluate("replay.frames.length") == 5 and page.title() == "SVGD, MAP: a replay of Steinlab"
        colour = f"rgb({', '.join(str(int(TOKENS[paper]['paper'][k : k + 2], 16)) for k in (1, 3, 5))})"
        expect(page.locator("body")).to_have_css("background-color", colour)
        page.locator("#at").fill("4")
        page.wait_for_function("steinwave.panel('svgd').step === 40")
        assert page.evaluate("steinwave.panel('svgd').x.length") == len(WaveSetup().data)
        page.context.close()
    assert not errors


def test_a_gif_of_a_training_shows_its_panels_and_its_legend(tmp_path):
    file = record(tmp_path / "run.gif", WAVE, "--steps", "60", "--every", "2")
    gif = Image.open(BytesIO(file.read_bytes()))
    assert gif.size == (1280, 720) and gif.n_frames == 16
    first = np.asarray(gif.convert("RGB"), int)
    gif.seek(gif.n_frames - 1)
    last = np.asarray(gif.convert("RGB"), int)
    for look in looks_of(["svgd", "map"]):
        wanted = [int(look.colour[k : k + 2], 16) for k in (1, 3, 5)]
        assert (np.abs(last - wanted).max(axis=2) < 12).sum() > 300
    assert (first != last).any()
    ink = [int(TOKENS["light"]["ink"][k : k + 2], 16) for k in (1, 3, 5)]
    for picture in (first, last):  # in the line below the panels
        assert (np.abs(picture[564:590, 40:1000] - ink).max(axis=2) < 40).sum() > 500
