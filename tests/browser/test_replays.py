"""A run that is kept: as one page that plays it again, and as a film."""

import numpy as np
import pytest
from checks import until
from playwright.sync_api import expect
from test_site_in_browser import open_site, pause, site  # noqa: F401  (fixtures)

pytestmark = pytest.mark.browser
ROWS = "window.steinlab.particles(0)"


def saved(page, path):
    """The file that the dialog on screen offers."""
    with page.expect_download() as download:
        page.get_by_role("button", name="Save", exact=True).click()
    download.value.save_as(path)
    return path


def replayed(chromium, path):
    page = chromium.new_page()
    page.goto(f"file://{path}")
    page.wait_for_function("window.replay?.frames.length && window.steinlab?.frames")
    return page


def test_a_replay_plays_from_the_disk_what_was_shown(open_site, chromium, tmp_path):  # noqa: F811
    page = open_site("?methods=svgd&method.particles=50&method.alpha=0.5")
    page.wait_for_function("steinlab.lab.run.clock > 320")
    pause(page)
    page.wait_for_function("window.steinlab.step[0] === steinlab.lab.run.clock")
    last, step = np.array(page.evaluate(ROWS)), page.evaluate("steinlab.lab.run.clock")
    page.get_by_role("button", name="Save as page").click()
    said = until(lambda: page.locator("dialog p").all_inner_texts())[0]
    file = saved(page, tmp_path / "run.html")
    size = file.stat().st_size
    assert f"{size / 1e6:.2f} MB" in said
    replay = replayed(chromium, file)
    frames = replay.evaluate("replay.frames.length")
    assert f"A replay of {frames} frames" in said and size / frames < 400e3 / 300
    assert replay.title().startswith("SVGD: a replay")
    replay.locator("#at").fill(str(frames - 1))
    replay.wait_for_function(f"window.steinlab.step[0] === {step}")
    shown = np.array(replay.evaluate(ROWS))
    reach = np.abs(last).max(axis=0)
    assert (np.abs(shown - last) <= 1e-3 * reach + 1e-6).all()
    expect(replay.locator("#step")).to_have_text(f"step {step}")
    replay.mouse.move(*replay.evaluate(f"window.steinlab.at(0, {shown[0][0]}, {shown[0][1]})"))
    replay.mouse.down()
    replay.mouse.move(*replay.evaluate("window.steinlab.at(0, 0, 4)"), steps=4)
    expect(replay.locator("canvas.plot")).to_have_css("cursor", "crosshair")  # nothing can be dragged
    replay.mouse.up()
    replay.wait_for_function(f"window.steinlab.step[0] === {step}")
    np.testing.assert_array_equal(replay.evaluate(ROWS), shown)
    replay.keyboard.press("ArrowLeft")
    replay.wait_for_function(f"window.steinlab.step[0] < {step}")
    replay.get_by_role("button", name="Play").click()
    replay.wait_for_function(f"window.steinlab.step[0] === {step}")
    replay.close()


def test_a_film_is_a_webm_of_the_size_that_is_said(open_site, tmp_path):  # noqa: F811
    page = open_site("?methods=svgd,smi")
    page.wait_for_function("steinlab.lab.run.clock > 30")
    pause(page)
    page.get_by_role("button", name="Save as film").click()
    page.get_by_role("button", name="720p").click()
    page.get_by_text("The film has").wait_for()
    file = saved(page, tmp_path / "run.webm")
    film = file.read_bytes()
    assert film[:4] == bytes.fromhex("1a45dfa3") and 5e3 < len(film) < 3e6
    size = page.evaluate(
        """async bytes => { const v = document.createElement("video");
        v.src = URL.createObjectURL(new Blob([Uint8Array.from(bytes)], {type: "video/webm"}));
        await new Promise((done, fail) => { v.onloadeddata = done; v.onerror = () => fail(new Error("no film")); });
        return [v.videoWidth, v.videoHeight]; }""",
        list(film),
    )
    assert size == [1280, 720]


def test_the_app_keeps_a_run_too(open_tab, chromium, tmp_path):
    tab = open_tab("?target=banana&methods=svgd&method.particles=10")
    tab.wait("window.steinlab.step[0] > 20")
    tab.pause()
    tab.button("Share").click()
    tab.page.get_by_role("menuitem", name="Replay as one page").click()
    replay = replayed(chromium, saved(tab.page, tmp_path / "run.html"))
    replay.locator("#at").fill("10000")
    replay.wait_for_function(f"window.steinlab.step[0] === {tab.step()}")
    rows = np.array(tab.rows())
    np.testing.assert_allclose(np.array(replay.evaluate(ROWS)), rows, atol=2e-3 * np.abs(rows).max())
    replay.close()
