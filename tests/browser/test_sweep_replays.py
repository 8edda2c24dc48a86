"""A sweep of page "Variance collapse" that is kept: as one page that plays how its curves fill in, and as a film."""

import pytest
from playwright.sync_api import expect
from test_replays import saved

from steinlab.ui.theme import TOKENS

pytestmark = pytest.mark.browser
CHARTED = "window.Bokeh?.index?.roots[0]?.is_idle"
LINK = "page=collapse&methods=svgd,smi&dims=2,10,40"


def shared(tab, name):
    """Choose an entry of *Share*, and return what the dialog says."""
    tab.button("Share").click()
    tab.page.get_by_role("menuitem", name=name).click()
    return tab.page.locator("dialog p")


def test_the_app_keeps_a_sweep_as_one_page(open_tab, chromium, tmp_path):
    tab = open_tab(f"?{LINK}", CHARTED)
    tab.page.get_by_text("18 of 18 runs shipped").wait_for()
    said = shared(tab, "Replay as one page")
    expect(said).to_contain_text("A replay of 19 frames: 0.0")
    file = saved(tab.page, tmp_path / "run.html")
    errors = []
    page = chromium.new_context(offline=True).new_page()
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"file://{file}?theme=dark")
    page.wait_for_function("window.replay?.frames.length === 19 && steinchart.count > 0")
    assert page.title() == "Variance collapse: a replay of Steinlab"
    paper = f"rgb({', '.join(str(int(TOKENS['dark']['paper'][k : k + 2], 16)) for k in (1, 3, 5))})"
    expect(page.locator("body")).to_have_css("background-color", paper)
    page.locator("#at").fill("18")
    page.wait_for_function("steinchart.count === 18 && steinchart.points.length === 6")
    expect(page.locator("#step")).to_have_text("18 of 18 runs")
    expect(page.locator("svg.chart circle")).to_have_count(6 + 2)  # with the names of both methods
    expect(page.locator("svg.chart")).to_contain_text("SMI")
    expect(page.locator("#legend")).to_contain_text("exact law")
    page.locator("#at").evaluate("input => input.blur()")
    page.keyboard.press("ArrowLeft")
    page.wait_for_function("steinchart.count === 17")
    page.locator("#at").fill("1")
    page.wait_for_function("steinchart.points.length === 1")
    page.get_by_role("button", name="Play").click()
    page.wait_for_function("steinchart.count === 18")
    page.context.close()
    assert not errors


def test_the_film_of_a_sweep_is_painted_by_its_replay(open_tab, tmp_path):
    tab = open_tab(f"?{LINK}", CHARTED)
    tab.page.get_by_text("18 of 18 runs shipped").wait_for()
    shared(tab, "Film as WebM")
    tab.page.get_by_role("button", name="720p").click()
    tab.page.get_by_text("The film has").wait_for(timeout=60_000)
    film = saved(tab.page, tmp_path / "run.webm").read_bytes()
    assert film[:4] == bytes.fromhex("1a45dfa3") and 5e3 < len(film) < 3e6
    expect(tab.page.locator("iframe")).to_have_count(0)
