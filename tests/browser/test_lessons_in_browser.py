"""The front page and the lessons as a visitor uses them."""

import time

import numpy as np
import pytest
from chromium import PATIENCE, Tab

pytestmark = pytest.mark.browser

HERE = "window.Bokeh?.index?.roots?.length"
# The numbers of every figure on the page.
DATA = """() => [...Bokeh.documents].flatMap(d => [...d._all_models.values()])
  .filter(m => m.type === "ColumnDataSource")
  .map(m => Object.values(m.data).flatMap(v => [...v]).filter(Number.isFinite).reduce((s, v) => s + Math.abs(v), 0))"""


@pytest.fixture
def open_page(chromium, server):
    """open_page(query) -> Tab, as soon as there is a page; at the end its console must be clean and every request
    local."""
    tabs = []

    def opened(query=""):
        tabs.append(Tab(chromium, server, query, HERE))
        return tabs[-1]

    yield opened
    for tab in tabs:
        tab.close()


def at_cell(tab, text):
    tab.page.get_by_text(text, exact=True).wait_for()


def play(tab):
    """A lesson's stage waits at its start for Play."""
    tab.wait("window.steinlab && window.steinlab.step[0] === 0")
    tab.page.get_by_role("button", name="Play", exact=True).first.click()
    tab.wait("window.steinlab.step[0] > 5")


def next_cell(tab):
    tab.page.get_by_role("button", name="Next", exact=True).click()


def test_from_the_front_page_through_a_lesson_to_its_end_with_a_mouse(open_page):
    tab = open_page()
    tab.page.get_by_role("img", name="Particles of SVGD").wait_for()
    tab.page.get_by_role("link", name="Start with lesson 1").click()
    tab.page.wait_for_url("**page=lessons&lesson=01&cell=2")
    at_cell(tab, "cell 2 of 13")
    tab.page.get_by_role("img", name="n", exact=True).first.wait_for()  # a formula
    for cell in range(3, 6):
        next_cell(tab)
        at_cell(tab, f"cell {cell} of 13")
    tab.wait("window.steinlab && window.steinlab.step[0] === 0")
    start = [row[:2] for row in tab.rows()][0]
    time.sleep(1)
    assert (
        tab.stage("step") == [0, 0] and np.linalg.norm(np.subtract(start, (0, -1))) > 2
    )  # far from the top, and waiting
    play(tab)
    assert np.linalg.norm(np.subtract(tab.rows()[0][:2], start)) > 0.1
    before = tab.page.get_by_role("link", name="Open in Particles").get_attribute("href")
    tab.slide("alpha", "ArrowRight", 3)
    end = time.monotonic() + PATIENCE
    while (link := tab.page.get_by_role("link", name="Open in Particles").get_attribute("href")) == before:
        assert time.monotonic() < end
        time.sleep(0.1)
    assert "method.alpha" in link and "methods=svgd,map" in link
    for cell in range(6, 9):
        next_cell(tab)
        at_cell(tab, f"cell {cell} of 13")
    next_cell(tab)
    tab.page.get_by_role("slider", name="width").wait_for()
    tab.wait(f"({DATA})().length > 2")
    drawn = tab.page.evaluate(DATA)
    tab.slide("width", "ArrowRight", 10)
    tab.page.wait_for_function(f"before => JSON.stringify(({DATA})()) !== before", arg=str(drawn).replace(" ", ""))
    for cell in range(10, 14):
        next_cell(tab)
        at_cell(tab, f"cell {cell} of 13")
    tab.page.get_by_text("Solution", exact=True).click()
    tab.page.get_by_text("Raise alpha and they part").wait_for()
    tab.page.get_by_role("button", name="Next lesson").wait_for()
    with tab.context.expect_page() as popup:
        tab.page.get_by_role("link", name="Open in Particles").last.click()
    popup.value.wait_for_function("window.steinlab && window.steinlab.frames > 0")
    assert popup.value.evaluate("window.steinlab.count") == [2]
    popup.value.close()


def test_a_link_runs_what_is_before_its_cell_and_keys_go_on(open_page):
    tab = open_page("?page=lessons&lesson=02&cell=5")
    tab.wait("window.steinlab && window.steinlab.frames > 0")
    sync_api = pytest.importorskip("playwright.sync_api")
    sync_api.expect(tab.page.locator("#cell-4")).to_be_in_viewport()
    sync_api.expect(tab.page.locator("#cell-0")).not_to_be_in_viewport()
    table = tab.page.locator("caption", has_text="30 particles, 2 dimensions")
    for key, cell in (("n", 6), ("Shift+Enter", 7), ("p", 6), ("n", 7)):
        tab.page.keyboard.press(key)
        tab.page.wait_for_url(f"**cell={cell}")
        table.wait_for(state="visible" if cell == 7 else "hidden")
    tab.button("Restart").click()
    tab.page.wait_for_url("**cell=2")
    tab.page.get_by_role("link", name="One particle is gradient ascent").click()
    tab.page.wait_for_url("**lesson=01&cell=2")
    tab.page.go_back()
    tab.page.wait_for_url("**lesson=02&cell=2")
    at_cell(tab, "cell 2 of 14")


def test_a_link_follows_its_cell_until_the_reader_does_something(open_page):
    """A figure gets its height late, and before that the page may be too short to bring the cell to its top."""
    expect = pytest.importorskip("playwright.sync_api").expect
    tab = open_page("?page=lessons&lesson=02&cell=5")
    tab.wait("window.steinlab && window.steinlab.frames > 0")
    first, figure = tab.page.locator("#cell-0"), tab.page.locator(".stage").first
    expect(first).not_to_be_in_viewport()
    tab.page.locator(".main-content").evaluate(
        "node => node.style.overflowAnchor = 'none'"
    )  # the browser does not help
    time.sleep(4)  # the page is at rest
    figure.evaluate("node => node.style.display = 'none'")
    expect(first).to_be_in_viewport()
    time.sleep(4)
    figure.evaluate("node => node.style.display = ''")
    expect(first).not_to_be_in_viewport()
    time.sleep(2)  # it has scrolled to the end
    figure.evaluate("node => node.style.display = 'none'")
    expect(first).to_be_in_viewport()
    tab.page.keyboard.press("Shift")
    figure.evaluate("node => node.style.display = ''")
    time.sleep(1)
    expect(first).to_be_in_viewport(timeout=100)


LOSE_ONE = """() => {
  let kind = [...Bokeh.documents[0]._all_models.values()][0];
  while (!Object.hasOwn(kind, "trigger_event")) kind = Object.getPrototypeOf(kind);
  const {trigger_event} = kind;
  kind.trigger_event = function(event) {
    if (event.data?.ready && !window.lost) window.lost = true;
    else trigger_event.call(this, event);
  };
}"""


def test_a_stage_whose_first_word_is_lost_starts_all_the_same(open_page):
    """As in Jupyter while the kernel runs other cells."""
    tab = open_page("?page=lessons&lesson=02&cell=3")
    at_cell(tab, "cell 3 of 14")
    tab.page.evaluate(LOSE_ONE)
    for cell in (4, 5):
        next_cell(tab)
        at_cell(tab, f"cell {cell} of 14")
    tab.wait("window.steinlab && window.steinlab.frames > 0")
    assert tab.page.evaluate("window.lost")


def test_a_hidden_lesson_rests(open_page):
    tab = open_page("?page=lessons&lesson=02&cell=5")
    play(tab)
    lesson = tab.page.evaluate_handle("window.steinlab")
    tab.choose("Lessons", "Notation and references")
    tab.page.get_by_role("heading", name="Notation and references").wait_for()
    time.sleep(0.5)
    frames = lesson.evaluate("hook => hook.frames")
    time.sleep(1)
    assert lesson.evaluate("hook => hook.frames") == frames
    tab.choose("Notation and references", "Lessons")
    tab.wait(f"window.steinlab.frames > {frames} + 5")


def test_a_lesson_that_is_not_there_is_said(open_page):
    tab = open_page("?page=lessons&lesson=%3Cb%3E77")
    tab.page.get_by_text("There is no lesson '<b>77'").wait_for()
    at_cell(tab, "cell 2 of 13")
