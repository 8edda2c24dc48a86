"""Going from page to page as a visitor does."""

import re
import time
from contextlib import closing

import pytest
from checks import PATIENCE
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

SMALL = "?target=gaussian&methods=svgd"


def test_pages_are_kept_and_rest_while_hidden(open_tab):
    tab = open_tab(SMALL)
    tab.wait("window.steinlab.step[0] > 20")
    first = tab.page.evaluate_handle("window.steinlab")
    tab.choose("Particles", "Location and variance")
    tab.page.wait_for_url("**page=location*")
    tab.wait("window.steinlab.count[0] === 2")
    tab.page.locator("canvas.plot:visible").nth(1).wait_for()
    at = first.evaluate("hook => hook.step[0]")
    time.sleep(0.7)
    assert first.evaluate("hook => hook.step[0]") == at  # the hidden page's worker rests
    tab.choose("Location and variance", "Particles")
    tab.wait("window.steinlab.count[0] === 20")
    tab.page.wait_for_function("!location.search.includes('page=')")
    tab.wait(f"window.steinlab.step[0] > {at}")
    assert tab.step() < at + 60  # it went on where it was


def test_back_and_forward(open_tab):
    tab = open_tab(SMALL + "&seed=3")
    tab.choose("Particles", "Location and variance")
    tab.page.wait_for_url("**page=location*")
    tab.slide("alpha", "ArrowRight", 3)  # knobs add no entries to the history
    tab.page.wait_for_url("**page=location*method.alpha*")
    tab.page.go_back()
    tab.wait("window.steinlab.count[0] === 20")
    tab.page.wait_for_url("**seed=3*")
    tab.page.get_by_role("combobox").filter(has_text="Particles").first.wait_for()
    tab.page.go_forward()
    tab.page.wait_for_url("**page=location*method.alpha*")
    tab.wait("window.steinlab.count[0] === 2")


def test_a_deep_link_opens_its_page_and_back_after_a_reload_builds_the_other(open_tab):
    tab = open_tab(SMALL + "&seed=3")
    tab.choose("Particles", "Location and variance")
    tab.page.wait_for_url("**page=location*")
    tab.page.reload()
    tab.wait("window.steinlab && window.steinlab.count[0] === 2")
    assert tab.page.get_by_text("Challenger O-rings").count() == 0  # the other page is not even built
    tab.page.go_back()
    tab.wait("window.steinlab && window.steinlab.count.length === 1 && window.steinlab.count[0] === 20")
    tab.page.wait_for_url("**seed=3*")


def test_a_page_without_settings_has_no_button_for_them(open_tab):
    tab = open_tab(SMALL)
    drawer = tab.page.get_by_role("button", name="Close drawer")
    drawer.wait_for()
    tab.choose("Particles", "Start")
    drawer.wait_for(state="hidden")
    tab.page.get_by_role("link", name="Start with lesson 1").wait_for()
    expect(tab.page.get_by_role("button", name="Open drawer")).to_be_hidden()
    tab.choose("Start", "Particles")
    drawer.wait_for()


def test_an_unknown_page_is_said_and_the_first_one_shown(open_tab):
    tab = open_tab(SMALL + "&page=%3Cimg%20src%3Dx%20onerror%3D%22window.hacked%3D1%22%3E")
    tab.page.get_by_text("unknown page").first.wait_for()
    assert tab.page.evaluate("window.hacked") is None
    assert tab.stage("count") == [20]


def test_the_theme_holds_on_every_page(open_tab):
    tab = open_tab(SMALL)
    tab.button("Toggle theme").click()
    tab.page.wait_for_url("**theme=dark*")
    tab.choose("Particles", "Location and variance")
    tab.page.wait_for_url("**page=location*theme=dark*")
    tab.page.locator(".stage.dark:visible").first.wait_for()
    tab.button("Toggle theme").click()
    tab.page.wait_for_function("!location.search.includes('theme')")
    tab.choose("Location and variance", "Particles")
    tab.page.locator(".stage:not(.dark):visible").first.wait_for()


def test_the_first_theme_is_that_of_the_system(chromium, server):
    """Unless the link names one. What is part of another page is light."""
    with closing(chromium.new_context(color_scheme="dark")) as context:
        page = context.new_page()
        context.set_default_timeout(1000 * PATIENCE)
        dark, light = (page.locator(f".stage{rest}:not(.slot):visible").first for rest in (".dark", ":not(.dark)"))
        page.goto(server.url + SMALL)
        dark.wait_for()
        assert "theme=" not in page.url
        page.get_by_role("button", name="Toggle theme").click()
        page.wait_for_url("**theme=light*")
        page.reload()
        light.wait_for()
        page.goto(f"{server.url}{SMALL}&ui=min")
        light.wait_for()
        page.emulate_media(color_scheme="light")  # the system's theme has changed since
        page.goto(server.url + SMALL)
        light.wait_for()
        expect(dark).to_have_count(0)


@pytest.mark.parametrize("theme, paper", [("default", "rgb(255, 255, 255)"), ("dark", "rgb(20, 23, 26)")])
def test_a_page_shows_its_frame_before_any_script_has_come(chromium, server, theme, paper):
    with closing(chromium.new_page()) as page:
        page.route(re.compile(r"\.js(\?|$)"), lambda route: None)  # they never come
        page.goto(f"{server.url}?page=notation&theme={theme}", wait_until="commit")
        expect(page.get_by_role("status")).to_have_text("Loading the page …")
        expect(page.locator("#loader header")).to_have_text("Steinlab")
        expect(page.locator("#loader")).to_have_css("background-color", paper)
        box = page.locator("#loader header").bounding_box()
        assert box["width"] > 1000 and box["height"] == pytest.approx(53, abs=1)
