"""The essay of the site and the pages beside it, opened from the disk: figures run, and come out as it is told."""

from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import numpy as np
import pytest
from checks import until
from playwright.sync_api import expect
from test_axe import lasting
from test_site_in_browser import open_site, site  # noqa: F401  (fixtures)

from steinlab.site.build import build
from steinlab.site.essay import FIGURES, PREDICTIONS

pytestmark = pytest.mark.browser
PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def essay(site):  # noqa: F811
    build(site / "essay", ("banana",), ("svgd",), told=True, taught=("02",))
    return "essay/index.html"


@pytest.fixture
def open_essay(essay, open_site):  # noqa: F811
    return lambda page="index", **look: open_site("", f"essay/{page}.html", ready="steinlab.figures", **look)


def begin(page, name: str):
    page.evaluate(f"document.getElementById('figure-{name}').scrollIntoView({{ block: 'center' }})")
    page.wait_for_function(f"steinlab.figures['figure-{name}']?.player?.run")


def ask(page, name: str):
    return page.locator(f"[data-key='essay.{name}']")


def lock(page, name: str):
    ask(page, name).get_by_role("button", name="Lock in").click()


def seen(page, name: str, method: str, what: str):
    return page.evaluate(f"steinlab.figures['figure-{name}'].player.run.seen.{method}.{what}")


def points(page, name: str, method: str = "svgd") -> np.ndarray:
    run = f"steinlab.figures['figure-{name}'].player.run"
    size = f"{run}.programs.{method}.meta.dim"
    rows = page.evaluate(f"[...{run}.seen.{method}.locations].slice(0, {run}.count * {size})")
    return np.reshape(rows, (-1, page.evaluate(size)))


def on(page, name: str, steps: int):
    """Go on by so many steps at once; as fast as the browser can."""
    page.evaluate(f"steinlab.figures['figure-{name}'].player.run.advance({steps})")


def test_each_figure_plays_after_its_question_and_not_before(open_essay):
    page = open_essay()
    for name in FIGURES:
        begin(page, name)
        assert page.evaluate(f"steinlab.figures['figure-{name}'].player.run.clock") == 0
        facts = PREDICTIONS[name]
        expect(ask(page, name).get_by_role("button", name="Lock in")).to_be_disabled()
        if "choices" in facts:
            ask(page, name).get_by_role("radio").nth(facts["answer"]).check()
        else:
            ask(page, name).get_by_role("textbox").fill(str(facts["answer"]))
        lock(page, name)
        page.wait_for_function(f"steinlab.figures['figure-{name}'].player.run.clock > 3")
        said = "You were right." if "choices" in facts else "Right. You said"
        expect(ask(page, name).get_by_role("status")).to_contain_text(said)
        page.evaluate(f"steinlab.figures['figure-{name}'].player.play(false)")
    expect(page.locator(".scores")).to_contain_text(f"{len(FIGURES)} right of {len(FIGURES)} made")


def variance(page, name: str, method: str) -> float:
    return seen(page, name, method, "metrics")[0]


def test_runs_come_out_as_the_questions_say(open_essay):
    page = open_essay()
    for name in FIGURES:
        begin(page, name)
    on(page, "one", 600)
    np.testing.assert_allclose(points(page, "one"), points(page, "one", "map"), atol=0.05)
    on(page, "two", 600)
    assert np.abs(points(page, "two")).mean() == pytest.approx(PREDICTIONS["two"]["answer"], abs=1e-3)
    on(page, "alpha", 600)
    before = variance(page, "alpha", "svgd")
    page.evaluate("steinlab.figures['figure-alpha'].player.set('method.alpha', 2)")
    on(page, "alpha", 800)
    assert variance(page, "alpha", "svgd") == pytest.approx(2 * before, rel=0.02)
    page.evaluate("steinlab.figures['figure-kernel'].player.set('bandwidth.factor', 0.01)")
    on(page, "kernel", 1500)
    angles = np.pi / 2 + np.arange(3) * 2 * np.pi / 3
    tops = 2.5 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    away = np.linalg.norm(points(page, "kernel")[:, None] - tops, axis=2).min(axis=1)
    assert np.median(away) < 0.1
    on(page, "fifty", 1500)
    assert variance(page, "fifty", "svgd") == pytest.approx(PREDICTIONS["fifty"]["answer"], abs=5e-4)
    on(page, "blocks", 3000)
    assert "Stein trace is 0.94" in PREDICTIONS["blocks"]["ask"]
    assert seen(page, "blocks", "blocks", "metrics")[2] == pytest.approx(0.94, abs=0.005)
    widest = points(page, "blocks", "blocks").sum(axis=1)  # nearly the widest direction of the chain
    rho = 0.9 ** np.abs(np.subtract.outer(np.arange(10), np.arange(10)))
    assert widest.var(ddof=1) / rho.sum() < 0.02
    on(page, "guides", 400)
    low, high = PREDICTIONS["guides"]["right"]
    assert low < variance(page, "guides", "smi") < high
    on(page, "ring", 600)
    radius = np.linalg.norm(points(page, "ring", "smi"), axis=1)
    apart = np.linalg.norm(points(page, "ring", "smi")[:, None] - points(page, "ring", "smi"), axis=2)
    assert radius.min() > 1 and apart[np.triu_indices(5, 1)].min() > 0.8


def test_the_chart_follows_its_slider_and_the_theme(open_essay):
    page = open_essay()
    page.evaluate("document.getElementById('figure-law').scrollIntoView({ block: 'center' })")
    chart = page.locator("#figure-law")
    chart.get_by_text("SVGD, 20 points").wait_for()
    circles = chart.locator("circle").count()
    assert circles >= 5
    chart.get_by_role("slider").press("ArrowRight")
    chart.get_by_text("SVGD, 50 points").wait_for()
    colour = chart.locator("path").get_attribute("stroke")
    page.get_by_role("button", name="Dark").click()
    until(lambda: chart.locator("path").get_attribute("stroke"), lambda now: now != colour)


def test_it_leads_to_the_lab_which_has_fifty_dimensions_too(open_essay):
    page = open_essay()
    page.get_by_role("link", name="Open the lab").first.click()
    page.wait_for_function("steinlab.lab?.run")
    page.get_by_role("combobox", name="Posterior").select_option("gaussian-50")
    page.wait_for_function("location.search.includes('target=gaussian&dim=50')")
    page.wait_for_function("steinlab.lab.run.programs.svgd.meta.dim === 50 && steinlab.lab.run.clock > 3")


def test_without_javascript_the_text_is_there(chromium, site, essay):  # noqa: F811
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"file://{site / essay}")
    expect(page.get_by_role("heading", name="What happens in fifty dimensions?")).to_be_visible()
    context.close()


@pytest.fixture
def host(site):  # noqa: F811
    """The address of a static host of the site: axe reads style sheets, which no page may do on a disk."""
    quiet = type("Quiet", (SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    server = ThreadingHTTPServer(("localhost", 0), partial(quiet, directory=site))
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://localhost:{server.server_port}"
    server.shutdown()


def test_a_lesson_has_formulas_a_stage_and_numbers_that_move_it(open_essay):
    page = open_essay("lesson-02")
    page.locator("main > section").first.locator(".display svg").first.wait_for()
    assert "\\\\[" not in page.locator("main").inner_text()
    begin(page, "02-2")
    first = page.locator("main > section").first
    first.get_by_role("slider", name="particles").first.press("ArrowLeft")  # the number in the text
    page.wait_for_function("steinlab.figures['figure-02-2'].player.run.count === 29")
    expect(page.locator("#figure-02-2 output").filter(has_text="29")).to_be_visible()
    page.locator("#figure-02-2").get_by_role("slider", name="particles").press("ArrowRight")
    expect(first.locator("[data-dial='method.particles']")).to_have_text("30")
    first.get_by_text("attraction", exact=True).first.hover()
    page.wait_for_function("steinlab.figures['figure-02-2'].player.model.lit === 'attract'")
    first.get_by_text("Enter your prediction").click()
    first.get_by_role("textbox").fill("2")
    first.get_by_role("button", name="Lock in and run").click()
    page.wait_for_function("steinlab.figures['figure-02-2'].player.run.clock > 3")
    expect(page.locator(".scores")).to_contain_text("1 right of 1 made, 2 in all")


def test_a_drawing_of_a_lesson_follows_its_slider_its_number_and_the_theme(open_essay):
    page = open_essay("lesson-02")
    page.evaluate("document.getElementById('figure-02-6').scrollIntoView({ block: 'center' })")
    drawn, end = page.locator("#figure-02-6"), "steinlab.figures['figure-02-6']"
    ours = "(m) => m.type === 'ColumnDataSource' && m.data.alpha?.length === 2"  # those of the line
    line = f"Math.max(...{end}.document._all_models.values().filter({ours}).next().value.data.variance)"
    page.wait_for_function(f"{end}?.shown !== undefined && {line} === 2.5")  # half of the largest alpha
    drawn.get_by_role("slider").press("End")
    page.wait_for_function(f"Math.abs({line} - 5 * 1.2) < 1e-6")
    number = page.locator("[data-dial='slope']")
    expect(number).to_have_text("1.2")
    number.press("Home")
    number.press("ArrowLeft")
    page.wait_for_function(f"Math.abs({line} - 5 * {end}.rows.slope.facts().value) < 1e-6 && {line} < 6")
    colour = f"{end}.document.roots()[0].title.text_color"
    light = page.evaluate(colour)
    page.get_by_role("button", name="Dark").click()
    page.wait_for_function(f"{colour} !== '{light}' && Math.abs({line} - 5 * {end}.rows.slope.facts().value) < 1e-6")


def test_a_remedy_is_chosen_and_rests_as_its_law_says(open_essay):
    page = open_essay("remedy")
    page.evaluate("document.getElementById('figure-remedy').scrollIntoView({ block: 'center' })")
    chart = page.locator("#figure-remedy")
    chart.get_by_role("combobox").select_option("Two-kernel SVGD")
    expect(chart.locator("text.name").last).to_have_text("Two-kernel SVGD")
    assert chart.locator("path").count() == 2 and chart.locator("circle").count() >= 6
    begin(page, "remedies")
    page.locator("#figure-remedies").get_by_role("combobox").select_option("accelerated")
    page.wait_for_function("steinlab.figures['figure-remedies'].player.run.seen.accelerated")
    on(page, "remedies", 3000)
    law = PREDICTIONS["fifty"]["answer"]
    assert variance(page, "remedies", "accelerated") == pytest.approx(law, abs=5e-4)
    page.locator("#figure-remedies").get_by_role("combobox").select_option("newton")
    page.wait_for_function("steinlab.figures['figure-remedies'].player.run.seen.newton?.m === 20")


@pytest.mark.parametrize("file, name", [("lesson-02", "02-2"), ("collapse", "points"), ("remedy", "remedies")])
def test_pages_beside_the_essay_scroll_one_way_and_axe_finds_nothing_serious(chromium, host, essay, file, name):
    context = chromium.new_context(color_scheme="dark", viewport=PHONE)
    page = context.new_page()
    page.goto(f"{host}/essay/{file}.html")
    begin(page, name)
    assert lasting(page) == []
    page.wait_for_function(f"document.documentElement.scrollWidth <= {PHONE['width']}")
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_host_axe_finds_nothing_serious_and_a_phone_scrolls_one_way(chromium, host, essay, scheme):
    context, failed = chromium.new_context(color_scheme=scheme, viewport=PHONE), []
    page = context.new_page()
    page.on("requestfailed", lambda request: failed.append(request.url))
    page.goto(f"{host}/{essay}")
    for name in ("one", "fifty"):
        begin(page, name)
    assert lasting(page) == [] and failed == []
    page.wait_for_function(f"document.documentElement.scrollWidth <= {PHONE['width']}")
    context.close()
