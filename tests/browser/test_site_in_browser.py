"""The site that needs no server: built small, opened from the disk, used as a visitor does."""

from urllib.parse import parse_qsl

import numpy as np
import pytest
from playwright.sync_api import expect
from test_axe import lasting

from stein_core import Spec, compile
from steinlab.site import record as of_app
from steinlab.site.build import build
from steinlab.stage.setup import Setup

pytestmark = pytest.mark.browser
METHODS = ("svgd", "smi", "map")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    build(folder / "all", ("banana", "two_modes"), METHODS)
    build(folder / "one.html", ("banana",), METHODS[:2])
    return folder


@pytest.fixture
def open_site(chromium, site):
    """open_site(query, file) -> page; at the end its console must be clean, and nothing was asked of a network."""
    opened, said, asked = [], [], []

    def visit(query="", file="all/index.html", ready="steinlab.lab?.run", **look):
        context = chromium.new_context(**{"viewport": {"width": 1280, "height": 900}, **look})
        opened.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"file://{site / file}{query}")
        page.wait_for_function(ready)
        return page

    yield visit
    for context in opened:
        context.close()
    assert said == [] and all(url.startswith(("file:", "data:", "blob:")) for url in asked), (said, asked)


def pause(page):
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("button", name="Play").wait_for()


def locations(page, method="svgd") -> np.ndarray:
    found = page.evaluate(f"[...steinlab.lab.run.seen.{method}.locations].slice(0, 2 * steinlab.lab.run.count)")
    return np.array(found).reshape(-1, 2)


@pytest.mark.parametrize("file", ["all/index.html", "one.html"])
def test_it_plays_from_the_disk_and_a_link_gives_the_picture_of_the_app(open_site, file):
    page = open_site("?target=banana&methods=svgd&method.alpha=0.5&kernel.name=imq&seed=3", file)
    page.wait_for_function("steinlab.lab.run.clock > 20 && window.steinlab.frames > 20")
    pause(page)
    page.get_by_role("button", name="Reset").click()
    page.wait_for_function("steinlab.lab.run.clock === 0")
    page.evaluate("steinlab.lab.run.advance(100)")
    knobs = {"method.alpha": 0.5, "kernel.name": "imq", "method.particles": 20}
    stepper = compile(Spec("banana", method="svgd", capacity=32))
    wanted = np.asarray(stepper.advance(stepper.reset(3, knobs), knobs, 100).particles)[:20]
    np.testing.assert_allclose(locations(page), wanted, atol=1e-4)
    setup, problems = Setup.from_query(dict(parse_qsl(page.url.partition("?")[2])))  # the app reads the same link
    assert not problems and (setup.target, setup.methods, setup.seed) == ("banana", ("svgd",), 3)
    assert (setup.knobs["method.alpha"], setup.knobs["kernel.name"]) == (0.5, "imq")


def test_controls_act_while_it_plays(open_site):
    page = open_site()
    page.wait_for_function("steinlab.lab.run.clock > 5")
    page.get_by_role("slider", name="alpha").focus()
    page.keyboard.press("Home")
    page.wait_for_function(
        "steinlab.lab.run.values['method.alpha'] === 0 && location.search.includes('method.alpha=0')"
    )
    page.get_by_role("combobox", name="kernel", exact=True).select_option("imq")
    page.wait_for_function("location.search.includes('kernel.name=imq')")
    page.get_by_role("checkbox", name="MAP").check()
    page.wait_for_function("Object.keys(steinlab.lab.run.programs).length === 3 && steinlab.lab.run.clock > 3")
    page.get_by_role("checkbox", name="SMI").uncheck()
    page.get_by_role("combobox", name="Posterior").select_option("two_modes")
    page.wait_for_function(
        "location.search.includes('target=two_modes&methods=svgd,map') && steinlab.lab.run.clock > 3"
    )
    pause(page)
    at, here = page.evaluate("steinlab.lab.run.clock"), locations(page)
    page.get_by_role("slider", name="particles").focus()
    page.keyboard.press("End")  # 200: a program with more room, in which the run goes on
    page.wait_for_function("steinlab.lab.run.count === 200 && steinlab.lab.run.seen.svgd.m === 200")
    np.testing.assert_array_equal(locations(page)[:20], here)
    assert page.evaluate("steinlab.lab.run.clock") == at
    page.keyboard.press("ArrowLeft")
    page.wait_for_function("steinlab.lab.run.seen.svgd.m === 199")


def test_particles_are_added_and_removed_and_the_way_back_is_kept(open_site):
    page = open_site("?methods=svgd,smi")
    page.wait_for_function("steinlab.lab.run.clock > 10")
    pause(page)
    before = page.evaluate("steinlab.lab.run.clock")
    canvas = page.locator("canvas.plot").first
    box = canvas.bounding_box()
    canvas.click(position={"x": box["width"] * 0.6, "y": 30})
    page.wait_for_function("steinlab.lab.run.count === 21")
    added = locations(page)[20]
    np.testing.assert_allclose(locations(page, "smi")[20], added, atol=1e-6)  # each method has it at this place
    assert page.evaluate("steinlab.lab.run.clock") == before and added[1] > 3
    canvas.dblclick(position={"x": box["width"] * 0.6, "y": 30})
    page.wait_for_function("steinlab.lab.run.count === 20")
    assert not np.any(np.all(np.isclose(locations(page), added), axis=1))
    here = locations(page)
    page.keyboard.press("ArrowRight")
    page.wait_for_function(f"steinlab.lab.run.clock === {before + 1}")
    assert np.abs(locations(page) - here).max() > 0
    page.keyboard.press("ArrowLeft")
    page.wait_for_function(f"steinlab.lab.run.clock === {before}")
    np.testing.assert_array_equal(locations(page), here)
    page.evaluate("steinlab.lab.run.edit({ remove: 2 })")  # the last one takes its place
    np.testing.assert_array_equal(locations(page), [*here[:2], here[19], *here[3:19]])
    page.locator("#past").fill("0")
    page.wait_for_function("steinlab.lab.run.clock === 0")


def at(page, point, panel=0):
    """Where a place of a panel is on the screen."""
    return page.evaluate(f"window.steinlab.at({panel}, {point[0]}, {point[1]})")


def test_a_dragged_particle_goes_on_as_the_app_has_it(open_site):
    page = open_site("?methods=svgd,smi&seed=3")
    page.wait_for_function("steinlab.lab.run.clock > 5")
    pause(page)
    page.get_by_role("button", name="Reset").click()
    page.wait_for_function("steinlab.lab.run.clock === 0 && window.steinlab.step.join() === '0,0'")
    page.evaluate("steinlab.lab.run.advance(10)")
    page.keyboard.press("ArrowRight")
    page.wait_for_function("window.steinlab.step.join() === '11,11'")
    before, widths = locations(page, "smi"), page.evaluate("[...steinlab.lab.run.seen.smi.scales]")
    index = int(np.argmin(before[:, 1]))  # no other one is near
    page.mouse.move(*at(page, before[index], 1))
    page.mouse.down()
    page.mouse.move(*at(page, (2.0, 4.0), 1), steps=5)
    page.mouse.up()
    page.wait_for_function(f"steinlab.lab.run.seen.svgd.locations[{2 * index + 1}] > 3.9")
    there = locations(page)[index]
    np.testing.assert_allclose(there, [2, 4], atol=0.05)  # a pixel
    np.testing.assert_array_equal(locations(page, "smi"), [*before[:index], there, *before[index + 1 :]])
    assert page.evaluate("[...steinlab.lab.run.seen.smi.scales]") == widths
    assert page.evaluate("[steinlab.lab.run.count, steinlab.lab.run.clock]") == [20, 11]
    page.evaluate("steinlab.lab.run.advance(20)")
    for method in ("svgd", "smi"):
        stepper = compile(Spec("banana", method=method, capacity=32))
        state = stepper.advance(stepper.reset(3, {}), {}, 11)
        state, _ = stepper.move(state, {}, index, there)
        wanted = stepper.look(stepper.advance(state, {}, 20), {}, False).locations
        np.testing.assert_allclose(locations(page, method), wanted, atol=1e-4)


def test_escape_gives_a_drag_up_and_a_single_particle_is_dragged(open_site):
    page = open_site("?methods=map")
    page.wait_for_function("steinlab.lab.run.clock > 5")
    pause(page)
    start, clock = locations(page, "map")[0], page.evaluate("steinlab.lab.run.clock")
    page.mouse.move(*at(page, start))
    page.mouse.down()
    page.mouse.move(*at(page, (2.0, 4.0)), steps=5)
    page.wait_for_function("steinlab.lab.run.seen.map.locations[1] > 3.9")
    held = page.evaluate("[...steinlab.lab.run.seen.map.locations]")
    page.keyboard.press("ArrowRight")  # one step carries it on, and it is put back
    page.wait_for_function(f"steinlab.lab.run.clock === {clock + 1}")
    page.wait_for_function(f"steinlab.lab.run.seen.map.locations.join() === {held}.join()")
    page.keyboard.press("Escape")
    page.wait_for_function(f"steinlab.lab.run.clock === {clock} && window.steinlab.step[0] === {clock}")
    np.testing.assert_array_equal(locations(page, "map")[0], start)
    assert page.evaluate("steinlab.lab.run.history.length - 1 === steinlab.lab.run.place")
    page.mouse.move(*at(page, (-2.0, 4.0)))
    page.mouse.up()
    page.mouse.move(*at(page, start))
    page.mouse.down()
    page.mouse.move(*at(page, (-2.0, 4.0)), steps=5)
    page.mouse.up()
    page.wait_for_function(
        "steinlab.lab.run.seen.map.locations[0] < -1.9 && steinlab.lab.run.seen.map.locations[1] > 3.9"
    )
    assert page.evaluate("steinlab.lab.run.count") == 20


def test_a_finger_drags_a_particle_and_scrolls_elsewhere(open_site):
    phone = {"width": 390, "height": 600}
    page = open_site("?methods=svgd", viewport=phone, has_touch=True, reduced_motion="reduce")
    page.get_by_role("button", name="Play").wait_for()
    page.locator("canvas.plot").scroll_into_view_if_needed()
    page.wait_for_function("window.steinlab.frames > 0")
    index, fingers = int(np.argmin(locations(page)[:, 1])), page.context.new_cdp_session(page)

    def swipe(start, end):
        ways = np.linspace(start, end, 9)
        kinds = ["touchStart", *["touchMove"] * 7, "touchEnd"]
        for kind, (x, y) in zip(kinds, ways):
            points = [] if kind == "touchEnd" else [{"x": x, "y": y}]
            fingers.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    before, top = locations(page), page.evaluate("scrollY")
    swipe(at(page, before[index]), at(page, (0.5, before[index][1] + 3)))  # as one scrolls down
    page.wait_for_function(f"Math.abs(steinlab.lab.run.seen.svgd.locations[{2 * index}] - 0.5) < 0.3")
    after = locations(page)
    np.testing.assert_array_equal(np.delete(after, index, 0), np.delete(before, index, 0))
    assert page.evaluate("scrollY") == top
    box = page.locator("canvas.plot").bounding_box()
    empty = box["x"] + box["width"] - 20, box["y"] + box["height"] - 40
    swipe(empty, (empty[0], empty[1] - 250))
    page.wait_for_function(f"scrollY > {top} + 20")
    np.testing.assert_array_equal(locations(page), after)


def test_what_is_wrong_in_a_link_is_said_and_the_rest_is_kept(open_site):
    page = open_site("?target=moon&methods=svgd,magic&method.alpha=x&method.particles=7&seed=1.5&dim=50&guide=full")
    said = page.get_by_role("alert").filter(has_text="moon")
    expect(said).to_contain_text("target = moon; here: banana, two_modes.")
    expect(said).to_contain_text("methods = svgd,magic; here: up to 3 of svgd, smi, map.")
    expect(said).to_contain_text("method.alpha = x; allowed: 0 to 1000.")
    expect(said).to_contain_text("seed = 1.5; allowed: whole numbers, 0 to 4294967295.")
    expect(said).to_contain_text("dim = 50; here: 2.")
    expect(said).to_contain_text("guide: only the app reads this; here it has no effect.")
    assert page.evaluate("steinlab.lab.run.count") == 7


def test_an_address_is_not_written_again_at_each_frame(open_site):
    """Safari ends a page's script that writes it a hundred times in half a minute."""
    page = open_site("?methods=svgd")
    page.evaluate("""() => {
      const own = history.replaceState;
      window.written = 0;
      history.replaceState = (...all) => { window.written++; own.apply(history, all); };
    }""")
    at = page.evaluate("steinlab.lab.run.clock")
    page.wait_for_function(f"steinlab.lab.run.clock > {at} + 30")
    assert page.evaluate("window.written") <= 1


def test_a_method_that_diverges_is_named_and_the_others_go_on(open_site):
    page = open_site("?methods=map,svgd&method.step_size=0.05")
    page.evaluate("steinlab.lab.run.set('method.step_size', 1e7)")
    page.get_by_text("diverged: a smaller step size helps").wait_for()
    assert page.evaluate("steinlab.lab.run.stopped.length") > 0


def test_what_takes_longer_than_a_frame_is_computed_beside_the_page_with_the_same_outcome(open_site):
    page = open_site("?methods=smi,svgd")
    page.evaluate("steinlab.patience = -1")  # every frame takes too long
    page.wait_for_function("steinlab.lab.player.helper")
    pause(page)
    page.get_by_role("button", name="Reset").click()
    page.wait_for_function("steinlab.lab.run.clock === 0 && steinlab.lab.player.helper === null")
    page.get_by_role("button", name="Play").click()
    page.wait_for_function("steinlab.lab.player.helper && steinlab.lab.run.clock > 40")
    pause(page)
    page.wait_for_function("!steinlab.lab.player.waiting")
    clock, here = page.evaluate("steinlab.lab.run.clock"), locations(page, "smi")
    assert page.evaluate("steinlab.lab.player.helper !== null")
    page.evaluate("steinlab.lab.player.set('method.alpha', 3)")  # what is seen then is computed there, too
    page.wait_for_function("!steinlab.lab.player.waiting && steinlab.lab.run.fresh === steinlab.lab.run.turned")
    page.get_by_role("button", name="Step").click()
    page.wait_for_function(f"steinlab.lab.run.clock === {clock + 1} && !steinlab.lab.player.waiting")
    after = locations(page, "smi")
    page.evaluate("steinlab.lab.run.set('method.alpha', 0.2, false)")  # nobody has looked since
    page.get_by_role("button", name="Step").click()
    page.wait_for_function(f"steinlab.lab.run.clock === {clock + 2} && !steinlab.lab.player.waiting")
    last = locations(page, "smi")
    page.evaluate(
        "steinlab.lab.player.ahead(1); steinlab.lab.player.change(() => steinlab.lab.run.edit({ remove: 0 }))"
    )
    page.wait_for_function("!steinlab.lab.player.waiting")
    assert page.evaluate("[steinlab.lab.run.clock, steinlab.lab.run.count]") == [clock + 2, 19]  # the edit counts
    page.evaluate("steinlab.patience = Infinity")
    page.get_by_role("button", name="Reset").click()
    page.wait_for_function("steinlab.lab.run.clock === 0 && steinlab.lab.player.helper === null")
    page.evaluate("steinlab.lab.run.set('method.particles', 20); steinlab.lab.run.set('method.alpha', 1)")
    page.evaluate(f"steinlab.lab.run.advance({clock})")
    np.testing.assert_array_equal(locations(page, "smi"), here)
    page.evaluate("steinlab.lab.run.set('method.alpha', 3); steinlab.lab.run.advance(1)")
    np.testing.assert_array_equal(locations(page, "smi"), after)
    page.evaluate("steinlab.lab.run.set('method.alpha', 0.2); steinlab.lab.run.advance(1)")
    np.testing.assert_array_equal(locations(page, "smi"), last)


def test_a_helper_that_fails_is_said(open_site):
    page = open_site("?methods=svgd")
    page.evaluate("steinlab.helpers += 'nothing.here();'; steinlab.patience = -1")
    page.get_by_text("nothing is not defined").wait_for()
    page.get_by_role("button", name="Play").wait_for()


PARENT = """<!doctype html><iframe src="one.html?ui=min&method.alpha=0.05" style="width: 100%; height: 300px"></iframe>
<script>
const frame = document.querySelector("iframe");
addEventListener("message", ({ data }) => { if (data.steinlab) frame.style.height = `${data.steinlab.height}px`; });
</script>"""


def test_within_another_page_it_is_short_grows_and_takes_its_theme(open_site, site):
    (site / "parent.html").write_text(PARENT)
    page = open_site("", "one.html")
    assert 'ui=min" title="Stein particle inference, live"' in page.evaluate("steinlab.lab.embed()")
    page.goto(f"file://{site / 'parent.html'}")
    inner = page.frame_locator("iframe")
    inner.get_by_role("slider", name="alpha").wait_for()
    expect(inner.get_by_role("combobox", name="Posterior")).to_be_hidden()
    expect(inner.get_by_role("slider", name="step size")).to_be_hidden()
    frame = page.frames[1]
    grown = "document.body.scrollHeight <= innerHeight && innerHeight > 400"
    frame.wait_for_function(f"steinlab.lab.run.clock > 5 && {grown}")
    page.evaluate("frame.contentWindow.postMessage({ steinlab: { theme: 'dark' } }, '*')")
    frame.wait_for_function("document.documentElement.dataset.theme === 'dark'")
    assert frame.evaluate("steinlab.lab.run.values['method.alpha']") == 0.05


@pytest.fixture(scope="module")
def replay(site):
    """A replay beside the site."""
    of_app.record(of_app.read("target=banana&methods=svgd"), site / "run.html", 20, 1, 720, lambda step, text: None)


def test_a_replay_within_another_page_grows_and_takes_its_theme(open_site, site, replay):
    (site / "parent.html").write_text(PARENT.replace("one.html?ui=min&method.alpha=0.05", "run.html"))
    page = open_site("", "parent.html", ready="frames.length === 1")
    frame = page.frames[1]
    frame.wait_for_function(
        "window.replay?.frames.length && document.body.scrollHeight <= innerHeight && innerHeight > 400"
    )
    page.evaluate("frame.contentWindow.postMessage({ steinlab: { theme: 'dark' } }, '*')")
    frame.wait_for_function("document.documentElement.dataset.theme === 'dark'")


COURSE = "".join(
    f'<p><iframe src="{name}" width="100%" height="340"></iframe></p>' for name in ("one.html?ui=min", "run.html")
)


def test_in_a_low_frame_play_stays_in_sight_without_a_script(open_site, site, replay):
    """As on a page of Moodle, which takes scripts away, and in a book that gives each frame the same shape."""
    (site / "course.html").write_text(f"<!doctype html>{COURSE}")
    page = open_site("", "course.html", ready="frames.length === 2", viewport={"width": 700, "height": 800})
    for frame, ready in zip(
        page.frames[1:], ("steinlab.lab?.run?.clock > 5", "window.replay?.frames.length"), strict=True
    ):
        frame.wait_for_function(f"{ready} && document.body.scrollHeight > innerHeight")
        frame.wait_for_function("document.getElementById('play').getBoundingClientRect().bottom <= innerHeight")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious_and_a_phone_scrolls_one_way(open_site, scheme):
    phone = {"width": 390, "height": 844}
    page = open_site("", "one.html", color_scheme=scheme, viewport=phone, reduced_motion="reduce")
    page.get_by_role("button", name="Play").wait_for()  # who wants no motion gets none at first
    assert lasting(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
