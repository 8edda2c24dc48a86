"""A lecture over several pages in the browser: it asks, answers, goes on, and the speaker's window follows."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import expect

from steinlab.contents import PAGES
from steinlab.lesson.playlist import place_of
from steinlab.pages.lecture.page import shipped

pytestmark = pytest.mark.browser

CAPTION = ".caption.lecture"


def at(tab) -> int:
    return int(parse_qs(urlsplit(tab.page.url).query).get("at", ["1"])[0])


def test_a_lecture_asks_before_it_answers_and_the_speakers_window_follows(open_tab):
    tab = open_tab("?page=lecture", "document.querySelector('body') !== null")
    tab.page.get_by_role("heading", name="Prepare a lecture").wait_for()
    speaker = tab.context.new_page()  # a second window of the same browser
    speaker.goto(tab.server.url + "?" + urlsplit(tab.page.url).query + "&speaker=on")
    speaker.get_by_text("Start the lecture in another window").wait_for()
    tab.page.bring_to_front()
    tab.button("Start the lecture").click()
    caption = tab.page.locator(CAPTION)
    caption.filter(has_text="1 / 10 · Who keeps the arms of the banana?").wait_for()
    tab.page.get_by_role("banner").wait_for(state="hidden")
    tab.wait("window.steinlab?.frames > 0")
    tab.wait("window.steinlab.step[0] === 0")
    tab.button("Play").wait_for()  # it stands still while the question stands
    speaker.get_by_role("heading", name="Particles 1: Who keeps the arms?").wait_for()
    speaker.get_by_text("Stop 1 of 10").wait_for()
    tab.page.keyboard.press("PageDown")
    caption.filter(has_text="SVGD huddles near the mode").wait_for()
    tab.wait("window.steinlab.step[0] > 20")
    speaker.get_by_role("button", name="Next ›").click()  # it moves the other window
    tab.page.wait_for_url(re.compile("at=2"))
    tab.page.get_by_role("heading", name="Does the highest point tell you the spread?").wait_for()
    speaker.get_by_text("Stop 2 of 10").wait_for()
    assert "notes" not in tab.page.url  # the audience sees this address
    tab.page.keyboard.press("ArrowLeft")
    caption.filter(has_text="1 / 10").wait_for()
    tab.page.keyboard.press("Escape")
    tab.page.get_by_role("banner").wait_for()
    tab.wait("!location.search.includes('play=')")
    speaker.close()


def test_every_stop_of_the_shipped_lecture_shows_its_own_posterior_under_its_caption(open_tab):
    made = shipped()
    tab = open_tab("?" + made.to_query(), "document.querySelector('body') !== null")
    for number, name in enumerate(made.play, 1):
        place = place_of(name, PAGES)
        if number > 1:
            tab.page.keyboard.press("ArrowRight")
        tab.wait(f"location.search.includes('at={number}') || {number} === 1")
        if place.page == "lessons":
            tab.page.get_by_role("heading", name=place.caption).first.wait_for()
            expect(tab.page.locator(CAPTION).first).to_be_hidden()
            continue
        caption = tab.page.locator(f"{CAPTION}:visible")
        caption.filter(has_text=f"{number} / {len(made.play)} · {place.ask}").wait_for()
        tab.page.keyboard.press("ArrowRight")
        expect(caption).to_have_text(f"{number} / {len(made.play)} · {place.caption}")
        if place.page == "particles":
            spread = 30 if place.query["target"] == "gaussian" else 60  # the banana is seen farther out
            expect(tab.page.locator(".head .name:visible")).to_have_text(["SVGD", "SMI"])
            tab.wait("window.steinlab?.step.length === 2")
            x0, x1, *_ = tab.page.evaluate("window.steinlab.extent(0)")
            assert 0 < x1 - x0 < spread
    assert at(tab) == 10


def test_notes_and_stops_are_edited_and_kept_in_the_link(open_tab):
    tab = open_tab("?page=lecture&play=wave.1~collapse.2", "document.querySelector('body') !== null")
    notes = tab.page.get_by_label("Note for the speaker")
    notes.first.fill("Ask ~ about 50 %.")
    notes.first.press("Enter")
    tab.page.wait_for_url(re.compile("notes=Ask"))
    tab.page.get_by_role("link", name="Move stop 2 up").click()
    tab.page.wait_for_url(re.compile("play=collapse.2~wave.1"))
    expect(notes.nth(1)).to_have_value("Ask ~ about 50 %.")
    tab.page.get_by_role("combobox", name="Add a stop").fill("better bound")
    tab.page.get_by_role("option", name="More guides, better bound").click()
    tab.page.wait_for_url(re.compile("play=collapse.2~wave.1~particles.8"))
    tab.page.get_by_role("link", name="Remove stop 1").click()
    tab.page.wait_for_url(re.compile("play=wave.1~particles.8"))
    tab.page.reload()
    expect(notes.first).to_have_value("Ask ~ about 50 %.")
    tab.page.go_back()
    tab.page.wait_for_url(re.compile("play=collapse.2~wave.1~particles.8"))  # what was removed comes back


def test_what_is_on_screen_is_added_to_the_lecture_and_prepared(open_tab):
    tab = open_tab("?target=gaussian&methods=svgd&method.particles=3")
    tab.button("Share").click()
    tab.page.get_by_role("menuitem", name="Add to a lecture").click()
    tab.page.get_by_text("Particles, as it was").wait_for()
    while tab.page.get_by_role("link", name=re.compile("Remove stop")).count() > 1:
        count = tab.page.get_by_role("link", name=re.compile("Remove stop")).count()
        tab.page.get_by_role("link", name="Remove stop 1", exact=True).click()
        expect(tab.page.get_by_role("link", name=re.compile("Remove stop"))).to_have_count(
            count - 1 if count > 2 else 0
        )
    tab.button("Prepare this lecture").click()
    tab.page.get_by_text("1 of 1 stops are ready.").wait_for()


def test_lessons_have_a_lecture_and_p_means_it(open_tab):
    tab = open_tab("?page=lessons&lesson=4&idea=4", "document.querySelector('body') !== null")
    text = tab.page.get_by_text("compare the two forces")
    text.wait_for()
    tab.page.keyboard.press("p")
    tab.page.get_by_role("banner").wait_for(state="hidden")
    text.wait_for(state="hidden")  # the speaker says it
    heading = tab.page.get_by_role("heading", name="Why is the repulsion too weak?")
    assert heading.evaluate("node => parseFloat(getComputedStyle(node).fontSize)") >= 38
    tab.wait(LARGE)
    tab.page.keyboard.press("ArrowRight")
    tab.page.get_by_role("heading", name="Do more particles help?").wait_for()
    tab.page.keyboard.press("Escape")
    tab.page.get_by_role("banner").wait_for()
    tab.page.keyboard.press("ArrowLeft")
    text.wait_for()


LARGE = """[...Bokeh.documents].some(d => [...d._all_models.values()].some(
  m => m.type === "LogAxis" && m.axis_label_text_font_size === "28px"))"""


def test_alpha_is_at_the_foot_of_a_phone(open_tab):
    tab = open_tab("?target=gaussian&methods=svgd")
    tab.page.set_viewport_size({"width": 390, "height": 844})
    alpha = tab.page.get_by_role("slider", name="alpha").locator("visible=true").first  # the other is in the sidebar
    expect(tab.page.get_by_role("slider", name="Rewind").first).to_be_hidden()
    assert 650 < tab.at_rest(alpha.bounding_box)["y"] < 844
