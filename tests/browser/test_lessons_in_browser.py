"""The front page and the lessons as a visitor uses them."""

import time

import numpy as np
import pytest
from checks import until
from chromium import INSIDE, Tab
from playwright.sync_api import expect

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


LIT = """[...Bokeh.documents].flatMap(d => [...d._all_models.values()]).map(m => m.lit).find(v => v !== undefined)"""


def at_idea(tab, text):
    tab.page.get_by_text(text).wait_for()


def play(tab):
    """A lesson's stage waits at its start for Play."""
    tab.wait("window.steinlab && window.steinlab.step[0] === 0")
    tab.page.get_by_role("button", name="Play", exact=True).first.click()
    tab.wait("window.steinlab.step[0] > 5")


def next_idea(tab):
    tab.page.get_by_role("button", name="Next", exact=True).click()


def onward(tab):
    """The link to page Particles that is on screen."""
    return tab.page.get_by_role("link", name="Open in Particles").locator("visible=true").first


def test_from_the_front_page_through_a_lesson_to_its_end_with_a_mouse(open_page):
    tab = open_page()
    tab.page.get_by_role("img", name="SVGD's points shrink").wait_for()
    tab.page.get_by_role("link", name="Start with lesson 1").click()
    tab.page.wait_for_url("**page=lessons&lesson=01&idea=1")
    at_idea(tab, "idea 1 of 4")
    tab.page.get_by_role("heading", name="What does SVGD do when there is one particle only?").wait_for()
    tab.page.get_by_role("img", name="n", exact=True).first.wait_for()  # a formula
    assert tab.page.get_by_text("from steinlab.notebook import").count() == 0  # the setup is not shown
    tab.wait("window.steinlab && window.steinlab.step[0] === 0")
    start = [row[:2] for row in tab.rows()][0]
    time.sleep(1)
    assert (
        tab.stage("step") == [0, 0] and np.linalg.norm(np.subtract(start, (0, -1))) > 2
    )  # far from the top, and waiting
    play(tab)
    assert np.linalg.norm(np.subtract(tab.rows()[0][:2], start)) > 0.1
    expect(tab.page.get_by_role("button", name="trails").first).to_have_attribute("aria-pressed", "true")
    before = onward(tab).get_attribute("href")
    tab.slide("alpha", "ArrowRight", 3)
    link = until(lambda: onward(tab).get_attribute("href"), lambda link: link != before)
    assert "method.alpha" in link and "methods=svgd,map" in link
    next_idea(tab)
    at_idea(tab, "idea 2 of 4")
    tab.page.locator("caption", has_text="One particle after 500 steps").wait_for()
    next_idea(tab)
    tab.page.get_by_role("slider", name="width").wait_for()
    tab.wait(f"({DATA})().length > 2")
    drawn = tab.page.evaluate(DATA)
    tab.slide("width", "ArrowRight", 10)
    tab.page.wait_for_function(f"before => JSON.stringify(({DATA})()) !== before", arg=str(drawn).replace(" ", ""))
    next_idea(tab)
    at_idea(tab, "idea 4 of 4")
    tab.page.get_by_text("Solution", exact=True).click()
    tab.page.get_by_text("Raise alpha and they part").wait_for()
    tab.page.get_by_role("button", name="Next lesson").wait_for()
    with tab.context.expect_page() as popup:
        onward(tab).click()
    popup.value.wait_for_function("window.steinlab && window.steinlab.frames > 0")
    assert popup.value.evaluate("window.steinlab.count") == [2]
    popup.value.close()
    tab.page.get_by_role("button", name="Next lesson").click()
    tab.page.wait_for_url("**lesson=02&idea=1")


OUTS = (
    f"() => {{ {INSIDE}"
    + """
  return Math.max(...inside(document).filter(n => n.matches(".outs")).map(n => n.getBoundingClientRect().bottom)); }"""
)


@pytest.mark.parametrize("idea", ["01&idea=1", "04&idea=1", "04&idea=7", "06&idea=1"])
def test_the_numbers_of_a_stage_are_above_the_foot(open_page, idea):
    tab = open_page(f"?page=lessons&lesson={idea}")
    tab.page.set_viewport_size({"width": 1440, "height": 900})
    tab.wait("window.steinlab && window.steinlab.frames > 0")
    foot = tab.at_rest(lambda: tab.button("Next").bounding_box()["y"]) - 12
    tab.wait(f"({OUTS})() < {foot}")


DESIGN = """() => { const plot = [...Bokeh.documents].flatMap(d => [...d._all_models.values()])
  .find(m => m.type === "Figure"); return plot && [plot.background_fill_color, plot.border_fill_color]; }"""


def test_a_chart_stays_dark_when_it_is_drawn_again(open_page):
    tab = open_page("?page=lessons&lesson=01&idea=3&theme=dark")
    tab.wait(f"({DESIGN})()?.[0] === '#14171A'")
    for _ in range(2):
        before = tab.page.evaluate(DATA)
        tab.slide("width", "ArrowRight")
        tab.page.wait_for_function(f"before => JSON.stringify(({DATA})()) !== JSON.stringify(before)", arg=before)
        assert tab.page.evaluate(DESIGN) == ["#14171A", "#14171A"]


def test_a_link_opens_its_idea_and_next_shows_one_at_a_time(open_page):
    tab = open_page("?page=lessons&lesson=2&idea=2")
    figure = tab.page.get_by_text("Variance of 30 particles", exact=True)
    figure.wait_for()
    assert tab.page.evaluate("!window.steinlab?.frames")  # the stage of idea 1 was never shown
    right, left = "ArrowRight", "ArrowLeft"
    for key, idea in ((right, 3), (right, 4), (left, 3), (left, 2), ("Shift+Enter", 3), (left, 2)):
        tab.page.keyboard.press(key)
        tab.page.wait_for_url(f"**idea={idea}")
        figure.wait_for(state="visible" if idea == 2 else "hidden")
        expect(tab.page.get_by_role("heading", level=2).locator("visible=true")).to_have_count(1)
    next_idea(tab)
    stretch = tab.page.get_by_role("slider", name="stretch").last
    stretch.press("ArrowRight")  # a slider's own key
    tab.page.wait_for_url("**idea=3")
    tab.page.locator(".main-content").evaluate("node => node.scrollTo(0, 9999)")
    tab.page.get_by_role("link", name="Idea 4").click()
    tab.page.wait_for_url("**idea=4")
    expect(tab.page.get_by_role("heading", level=2).locator("visible=true")).to_be_in_viewport()
    tab.page.get_by_role("link", name="One particle is gradient ascent").click()
    tab.page.wait_for_url("**lesson=01&idea=1")
    tab.page.go_back()
    tab.page.wait_for_url("**lesson=02&idea=4")
    at_idea(tab, "idea 4 of 4")


def test_an_old_link_to_a_cell_opens_the_idea_that_holds_it(open_page):
    tab = open_page("?page=lessons&lesson=02&cell=6")
    tab.page.wait_for_url("**lesson=02&idea=2")
    at_idea(tab, "idea 2 of 4")


def test_code_is_folded_and_stays_as_the_reader_left_it(open_page):
    tab = open_page("?page=lessons&lesson=02&idea=2")
    code = tab.page.get_by_text("def settled(")
    fold = tab.page.get_by_text("Show code")
    fold.wait_for()
    assert not code.is_visible()
    fold.click()
    code.wait_for()
    next_idea(tab)
    tab.page.get_by_text("def draw(stretch)").wait_for()
    tab.page.wait_for_url("**idea=3")
    tab.page.reload()
    tab.page.get_by_text("def draw(stretch)").wait_for()
    tab.page.get_by_text("Show code").click()
    tab.page.get_by_text("Open in Jupyter").click()
    tab.page.get_by_text("jupyter lab notebooks/02_attraction_and_repulsion.ipynb").wait_for()
    with tab.page.expect_download() as download:
        tab.page.get_by_role("link", name="Download the notebook").click()
    assert download.value.suggested_filename == "02_attraction_and_repulsion.ipynb"


def test_a_number_in_the_text_is_a_slider_of_the_figure(open_page):
    tab = open_page("?page=lessons&lesson=02&idea=1")
    tab.wait("window.steinlab && window.steinlab.frames > 0")
    number = tab.page.locator("[data-dial='method.particles']")
    slider = tab.page.locator("input[type=range]").last  # of the knob
    expect(number).to_have_attribute("aria-valuenow", "30")
    number.focus()
    number.press("ArrowRight")
    expect(number).to_have_attribute("aria-valuenow", "31")
    expect(slider).to_have_attribute("aria-valuenow", "31")
    tab.wait("window.steinlab.count[0] === 31")
    box = number.bounding_box()
    x, y = box["x"] + 5, box["y"] + box["height"] / 2
    tab.page.mouse.move(x, y)
    tab.page.mouse.down()
    tab.page.mouse.move(x - 20, y)
    tab.page.mouse.move(x - 61, y)
    tab.page.mouse.up()
    expect(number).to_have_attribute("aria-valuenow", "21")
    number.click()
    tab.page.keyboard.type("12")
    tab.page.keyboard.press("Enter")
    expect(slider).to_have_attribute("aria-valuenow", "12")
    expect(number).to_have_text("12")
    tab.wait("window.steinlab.count[0] === 12")
    tab.slide("particles", "ArrowRight", 1)  # and the other way round
    expect(number).to_have_text("13")
    for text, leave, taken in (
        ("abc", "Enter", "13"),
        ("14", "click", "14"),
        ("abc", "click", "14"),
        ("15", "Enter", "15"),
        ("5000", "Enter", "15"),
    ):
        number.click()
        tab.page.keyboard.type(text)
        tab.page.keyboard.press("Enter") if leave == "Enter" else tab.page.mouse.click(900, 25)  # nothing is there
        expect(number).to_have_text(taken)
        expect(slider).to_have_attribute("aria-valuenow", taken)
    expect(tab.page.get_by_role("alert")).to_have_text("(5000 is not allowed; allowed: 1 to 256)")
    tab.page.wait_for_url("**idea=1")


def test_words_and_terms_of_a_formula_light_their_arrows(open_page):
    tab = open_page("?page=lessons&lesson=02&idea=1")
    tab.wait("window.steinlab && window.steinlab.frames > 0")
    word = tab.page.get_by_role("button", name="repulsion", exact=True).first
    word.hover()
    tab.wait(f"{LIT} === 'repulse'")
    tab.page.mouse.move(2, 400)
    tab.wait(f"{LIT} === ''")
    word.focus()
    tab.wait(f"{LIT} === 'repulse'")
    tab.page.get_by_role("button", name="attraction", exact=True).first.focus()
    tab.wait(f"{LIT} === 'attract'")
    term = tab.page.locator("g.lights.repulse")
    term.first.wait_for()
    assert term.count() == 1
    term.hover()
    tab.wait(f"{LIT} === 'repulse'")


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
    tab = open_page("?page=lessons&lesson=02&idea=2")
    at_idea(tab, "idea 2 of 4")
    tab.page.evaluate(LOSE_ONE)
    tab.page.get_by_role("button", name="Back", exact=True).click()
    at_idea(tab, "idea 1 of 4")
    tab.wait("window.steinlab && window.steinlab.frames > 0")
    assert tab.page.evaluate("window.lost")


def test_a_hidden_lesson_rests(open_page):
    tab = open_page("?page=lessons&lesson=02&idea=1")
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
    at_idea(tab, "idea 1 of 4")


def score(tab):
    """What the score card says, "" if there is none."""
    card = tab.page.locator(".scores:visible")
    return card.inner_text() if card.count() else ""


def test_a_prediction_is_frozen_when_it_runs_and_stands_beside_the_outcome(open_page):
    tab = open_page("?page=lessons&lesson=04&idea=1")
    tab.wait("window.steinlab && window.steinlab.step[0] === 0")
    tab.page.get_by_text("Enter your prediction").click()
    lock, line = tab.page.get_by_role("button", name="Lock in and run"), tab.page.get_by_role("slider", name="At which")
    expect(lock).to_be_disabled()
    tab.page.get_by_role("textbox", name="At which").fill("99")
    tab.page.get_by_text("Allowed: 1 to 50.").wait_for()
    expect(lock).to_be_disabled()
    box = line.bounding_box()
    line.click(position={"x": box["width"] * np.log(10) / np.log(50), "y": 40})
    expect(line).to_have_attribute("aria-valuetext", "10 dimensions")
    line.press("ArrowRight")
    expect(line).to_have_attribute("aria-valuetext", "11 dimensions")
    assert tab.step() == 0 and tab.page.locator(".came").count() == 0  # the answer is nowhere yet
    lock.click()
    tab.wait("window.steinlab.step[0] > 5")
    tab.page.get_by_text("You said 11 dimensions. It is 4 dimensions.").wait_for()
    tab.page.get_by_text("Your prediction", exact=True).click()
    pins = [tab.page.locator(f".pin.{kind}").bounding_box()["x"] for kind in ("came", "you")]
    assert pins[0] < pins[1]
    tab.page.goto(tab.server.url + "?page=lessons&lesson=04&idea=6")
    tab.page.get_by_text("Enter your prediction").click()
    tab.page.get_by_role("radio", name="median", exact=True).check()
    tab.page.get_by_role("button", name="Lock in").click()
    tab.page.get_by_text("You were right. Under median").wait_for()
    tab.page.goto(tab.server.url + "?page=lessons&lesson=04&idea=8")
    until(lambda: score(tab), lambda text: "1 right of 2 made, 2 in all" in text)
    tab.page.goto(tab.server.url)
    until(lambda: score(tab), lambda text: "Your predictions in the lessons: 1 right of 2 made" in text)
    tab.page.goto(tab.server.url + "?page=lessons&lesson=04&idea=1")
    tab.page.get_by_text("You said 11 dimensions. It is 4 dimensions.").click()
    tab.page.get_by_role("button", name="Predict again").click()
    expect(tab.page.get_by_role("button", name="Lock in and run")).to_be_disabled()
    tab.page.goto(tab.server.url + "?page=lessons&lesson=04&idea=8")
    until(lambda: score(tab), lambda text: "1 right of 1 made" in text)
