"""Many particles in a browser: a density and a sample that stays the same, in the app, in a picture and in a replay."""

import re

import numpy as np
import pytest
from playwright.sync_api import expect
from test_replays import replayed, saved

pytestmark = pytest.mark.browser
LINK = "?target=gaussian&methods=svgd&method.particles=3000&seed=2"
TEXT = "density of 3,000 points, 1,000 drawn"
CROWD = "(() => { const c = window.steinlab.crowd(0); return [c.total, c.peak, c.columns, c.lines, [...c.levels]]; })()"


def test_three_thousand_particles_are_a_density_and_a_sample(open_tab, chromium, tmp_path):
    tab = open_tab(LINK + "&steps=3&show=none")
    tab.wait("window.steinlab.step[0] === 3")
    tab.until_settled()
    expect(tab.page.get_by_text(TEXT)).to_be_visible()
    expect(tab.page.get_by_text("3,000 points · step 3")).to_be_visible()
    total, peak, columns, lines, levels = tab.page.evaluate(CROWD)
    assert total == 3000 and max(levels) == 255 and len(levels) == columns * lines
    counts = peak * (np.array(levels) / 255) ** 2
    assert 2900 < counts.sum() < 3000 + 0.02 * peak * np.count_nonzero(levels)
    rows = np.array(tab.rows())
    assert len(rows) == 1000
    tab.button("Step").click()
    tab.wait("window.steinlab.step[0] === 4")
    after = np.array(tab.until_changed(rows.tolist()))
    moved = np.linalg.norm(after[:, :2] - rows[:, :2], axis=1)
    assert moved.max() < 0.2 < np.linalg.norm(rows[1:, :2] - rows[:-1, :2], axis=1).mean()  # each is who it was
    tab.button("Share").click()
    with tab.page.expect_download() as download:
        tab.page.get_by_role("menuitem", name="Figure as SVG").click()
    picture = download.value.path().read_text()
    assert TEXT in picture and len(re.findall("<image ", picture)) >= 2  # the target's shades, and the density
    tab.button("Share").click()
    tab.page.get_by_role("menuitem", name="Replay as one page").click()
    replay = replayed(chromium, saved(tab.page, tmp_path / "run.html"))
    replay.locator("#at").fill("10000")
    replay.wait_for_function("window.steinlab.step[0] === 4")
    assert replay.evaluate(CROWD) == tab.page.evaluate(CROWD)
    assert len(replay.evaluate("window.steinlab.particles(0)")) == 1000
    expect(replay.get_by_text(TEXT)).to_be_visible()
    replay.close()


def test_the_slider_of_many_keeps_its_place_when_more_can_be_offered(open_tab):
    tab = open_tab("?target=gaussian&methods=svgd&method.particles=1000&steps=2")
    slider = tab.page.get_by_role("slider", name="Beyond 256")
    expect(slider).to_have_attribute("aria-valuetext", "1,000")
    expect(tab.page.get_by_text("1,000 particles: a step takes about")).to_be_visible()  # what is offered has come
    expect(slider).to_have_attribute("aria-valuetext", "1,000")
    expect(tab.page.get_by_text("particles: 1,000")).to_be_visible()


def test_near_sums_are_chosen_on_the_page_and_run(open_tab):
    tab = open_tab("?target=banana&methods=svgd&method.particles=5000&bandwidth.factor=0.05&show=none")
    tab.wait("window.steinlab.step[0] > 2")
    tab.button("Advanced").click()
    bound = tab.page.get_by_text("The attraction is off by at most 0.001 of the mean slope")
    expect(bound).not_to_be_visible()
    chosen = tab.page.get_by_role("combobox", name="Near sums only (kernel cut-off)")
    chosen.click()
    tab.page.get_by_role("menuitem", name="below 0.001", exact=True).click()
    expect(bound).to_be_visible()
    tab.wait("location.search.includes('near=0.001')")
    expect(tab.page.get_by_text("near sums", exact=False).first).to_be_visible()
    tab.wait("window.steinlab.step[0] > 2 && window.steinlab.crowd(0)?.total === 5000")
    chosen.click()
    tab.page.get_by_role("menuitem", name="off", exact=True).click()
    expect(bound).not_to_be_visible()
    tab.wait("!location.search.includes('near=') && window.steinlab.step[0] > 2")
