"""Pages that are part of another one: `?ui=min` in the link leaves the picture, Play and two sliders."""

import re

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
CHARTED = "window.Bokeh?.index?.roots[0]?.is_idle"
PLAYED = ["wave", "window.steinwave?.pictures > 0"], ["functions", "window.steinfunctions?.pictures > 0"]


@pytest.mark.parametrize("page, ready", [*PLAYED, ["collapse", CHARTED]])
def test_an_embed_has_two_sliders_and_no_lecture(open_tab, page, ready):
    tab = open_tab(f"?page={page}&ui=min", ready)
    sliders = tab.page.locator("input[type=range]:visible")
    expect(sliders).to_have_count(2)
    for name in ("alpha", "particles"):
        expect(tab.page.get_by_role("slider", name=name)).to_be_visible()
    expect(tab.page.get_by_role("button", name=re.compile("Share|Lecture|Step|Train|stop"))).to_have_count(0)
    expect(tab.page.get_by_role("button", name=re.compile("Play|Pause"))).to_have_count(int(page != "collapse"))
    tab.page.keyboard.press("p")
    sliders.first.press("ArrowLeft")
    tab.page.wait_for_function("location.search.includes('alpha')")  # which comes after the key
    expect(sliders).to_have_count(2)
    assert f"page={page}&" in tab.page.url and "ui=min" in tab.page.url and "lecture" not in tab.page.url


def test_p_opens_no_page_lecture_in_an_embed_of_a_page_that_gives_none(open_tab):
    tab = open_tab("?page=notation&ui=min", CHARTED)
    tab.page.get_by_text("Notation").first.wait_for()
    tab.page.keyboard.press("p")
    back = "(history.pushState(null, '', '?page=collapse&ui=min'), dispatchEvent(new PopStateEvent('popstate')))"
    tab.wait(back)  # which the server hears after the key
    expect(tab.page.locator("input[type=range]:visible")).to_have_count(2)
    assert "page=collapse&" in tab.page.url
