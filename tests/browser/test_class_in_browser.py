"""A class in real browsers: one lecturer and phones that follow, answer, and come back."""

import math
import re
from contextlib import contextmanager

import pytest
from checks import until
from playwright.sync_api import expect

pytestmark = pytest.mark.browser
FRAMES = "() => window.steinlab?.frames ?? 0"
PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
WIDE = {"viewport": {"width": 1200, "height": 800}}


@contextmanager
def phone(chromium, server, path, dark=False, **look):
    """A page of a follower, without a word in its console."""
    context = chromium.new_context(color_scheme="dark" if dark else "light", **{**PHONE, **look})
    page, said = context.new_page(), []
    page.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(server.url + path)
    try:
        yield page
    finally:
        context.close()
    assert not said, said


def begin(tab):
    """Begin a class; its code."""
    tab.page.get_by_role("button", name="Class").click()
    return until(lambda: tab.page.locator(".join b").first.text_content()).replace("-", "")


def test_phones_show_the_lecturers_stage_and_answer(open_tab, chromium, server):
    tab = open_tab("?target=banana&methods=svgd,smi", "window.steinlab?.frames > 5")
    code = begin(tab)
    with (
        phone(chromium, server, f"/class/{code}") as one,
        phone(chromium, server, "/class", dark=True) as other,
        phone(chromium, server, f"/class/{code.lower()}", **WIDE) as wide,
    ):
        other.get_by_label(re.compile("code")).fill(code[:4] + "-" + code[4:].lower())
        other.get_by_role("button", name="Join").click()
        pages = (one, other, wide)
        for page in pages:
            page.wait_for_function("window.steinlab?.frames > 3")
        tab.page.keyboard.press("Space")
        shown = until(
            lambda: [page.evaluate("steinlab.step") for page in (tab.page, *pages)],
            lambda at: len({*map(tuple, at)}) == 1,
        )
        assert shown[0][0] > 0
        here = [page.evaluate("[steinlab.particles(0), steinlab.particles(1)]") for page in (tab.page, *pages)]
        assert all(there == here[0] for there in here)  # the same bytes
        expect(one.locator("#knobs")).to_contain_text("alpha 1")

        tab.page.get_by_label("Question").fill("How much is left?")
        tab.page.get_by_role("button", name="Ask the class").click()
        for page, value in zip(pages, (0.25, 0.25, 0.75)):
            expect(page.get_by_role("heading", name="How much is left?")).to_be_visible()
            page.get_by_role("textbox", name="How much is left? A number").fill(str(value))
            page.get_by_role("button", name="Send").click()
            expect(page.locator(".said")).to_have_text(f"You said {value}.")
        expect(tab.page.locator(".count-of-answers")).to_have_text("3 answers")
        assert other.locator("svg.chart").count() == 0
        tab.page.get_by_role("button", name="Reveal").click()
        for page in pages:
            expect(page.locator("svg.chart")).to_be_visible()
            expect(page.locator(".count-of-answers")).to_have_text("3 answers")

        tab.page.reload()  # the class goes on, led by the same tab
        until(lambda: tab.page.locator(".join b").first.text_content().replace("-", ""), lambda text: text == code)
        tab.page.wait_for_function("window.steinlab?.frames > 0")
        before = one.evaluate(FRAMES)
        tab.page.keyboard.press("Space")
        one.wait_for_function(f"window.steinlab.frames > {before + 5}")
        one.reload()  # a follower who comes back has its answer still
        expect(one.locator(".said")).to_have_text("You said 0.25.")

        tab.page.get_by_role("button", name="End the class").click()
        tab.page.get_by_role("button", name="End it").click()
        for page in pages:
            expect(page.locator("#problem")).to_have_text("The class has ended. Nothing of it is kept.")


def sent(page):
    """Send an alpha of 1; what the own run has come to. Without a script yet, the server makes it."""
    page.get_by_role("textbox", name=re.compile("A number")).fill("1")
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".said")).to_contain_text("In your run the variance is", timeout=60_000)
    return page.locator(".said").text_content()


def test_phones_make_their_own_runs_and_the_question_is_taken_away(open_tab, chromium, server):
    tab = open_tab("?target=gaussian&dim=10&methods=svgd&method.particles=5", "window.steinlab?.frames > 5")
    code = begin(tab)
    with phone(chromium, server, f"/class/{code}") as one, phone(chromium, server, f"/class/{code}") as two:
        asked = []
        one.on("request", lambda request: asked.append(request.url))
        tab.page.get_by_role("button", name="A run each").click()
        tab.page.get_by_role("button", name="Ask the class").click()
        said = [until(lambda: sent(page), lambda text: "Your own device computed it." in text) for page in (one, two)]
        left = [float(re.search(r"the variance is (0\.\d+)", text)[1]) for text in said]
        regular = math.log(5) / 10 * 5 / 4  # a regular simplex, of five points with alpha 1
        assert left == pytest.approx([regular, regular], rel=1e-2)
        assert any(f"/class/{code}/run/" in url for url in asked)
        expect(tab.page.locator(".count-of-answers")).to_have_text("2 answers")
        tab.page.get_by_role("button", name="Take away").click()
        for page in (one, two):
            expect(page.locator("#question")).to_be_hidden()


def test_a_class_sees_what_its_lecturer_chooses(open_tab, chromium, server):
    tab = open_tab("?target=banana&methods=svgd,smi&see=cards~1;numbers~force;knobs~dim", "window.steinlab?.frames > 5")
    code = begin(tab)
    with phone(chromium, server, f"/class/{code}") as page:
        page.wait_for_function("window.steinlab?.frames > 3")
        assert page.locator(".head .name").all_text_contents() == ["SMI"]
        assert page.locator(".read-out .label").all_text_contents() == ["total force"]
        expect(page.locator("#knobs")).to_have_text("2 dimensions")
        tab.page.keyboard.press("Space")
        until(
            lambda: [page.evaluate("steinlab.particles(0)"), tab.page.evaluate("steinlab.particles(1)")],
            lambda both: both[0] == both[1],
        )
        tab.choose("Particles", "Variance collapse")
        expect(page.locator("#away")).to_contain_text("Variance collapse")


def test_phones_follow_to_a_page_on_which_networks_train(open_tab, chromium, server):
    tab = open_tab("?target=banana&methods=svgd", "window.steinlab?.frames > 5")
    code = begin(tab)
    with phone(chromium, server, f"/class/{code}") as page:
        page.wait_for_function("window.steinlab?.frames > 3")
        tab.choose("Particles", "1-D wave")
        page.wait_for_function("window.steinwave?.pictures > 0")
        read = "(steinwave.panel('svgd') ?? steinwave.panel('smi'))?.mean"
        until(lambda: [one.evaluate(read) for one in (page, tab.page)], lambda both: both[0] and both[0] == both[1])
        expect(page.locator("#legend")).to_contain_text("data")
        tab.choose("1-D wave", "Particles")
        until(lambda: page.locator(".head .name").all_text_contents(), lambda names: names == ["SVGD"])


def test_a_wrong_code_is_said(chromium, server):
    context = chromium.new_context(**PHONE)
    page = context.new_page()
    page.goto(f"{server.url}/class/AAAA2222")
    expect(page.locator("#problem")).to_have_text("There is no class with this code. Ask your lecturer for it again.")
    expect(page.get_by_label(re.compile("code"))).to_have_value("AAAA2222")
    context.close()
