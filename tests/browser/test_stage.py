"""What the stage draws and what its legend, its tour and the lecture do."""

import random
import re

import numpy as np
import pytest
from chromium import INSIDE, ROOT
from playwright.sync_api import expect

from steinlab.ui.theme import TOKENS

pytestmark = pytest.mark.browser

LEFT, RIGHT, TOP, BOTTOM = 38, 1, 1, 26  # pixels around a plot
PAUSED = "?target=gaussian&methods=svgd&steps=3&seed=1"

# How many pixels of the first panel have about this colour.
PIXELS = """([r, g, b]) => {
  const canvas = document.querySelector("body").__plot ?? [...(function* walk(root) {
    for (const e of root.querySelectorAll("*")) { if (e.matches("canvas.plot")) yield e; if (e.shadowRoot) yield* walk(e.shadowRoot); }
  })(document)][0];
  const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let found = 0;
  for (let i = 0; i < data.length; i += 4)
    found += Math.abs(data[i] - r) + Math.abs(data[i + 1] - g) + Math.abs(data[i + 2] - b) < 40;
  return found;
}"""  # noqa: E501
BLUE = [0, 0x72, 0xB2]
REPULSE = TOKENS["light"]["repulse"]


def pixels(tab, colour):
    return tab.page.evaluate(PIXELS, colour)


def exported(tab):
    tab.button("Share").click()
    with tab.page.expect_download() as download:
        tab.page.get_by_text("Figure as SVG").click()
    return download.value.path().read_text()


def thick(tab, svg, panel=0):
    """The points (k, 2), in data units, of the lines of 2.5 pixels in an exported figure of one panel."""
    (path,) = re.findall(r'<path d="([^"]*)" fill="none" stroke="[^"]*" stroke-width="2.5"', svg)
    points = np.array([[float(v) for v in at.split()] for at in re.findall(r"[ML]([-\d.]+ [-\d.]+)", path)])
    box = tab.page.locator("canvas.plot").nth(panel).bounding_box()
    x0, x1, y0, y1 = tab.stage(f"extent({panel})")
    w, h = box["width"] - LEFT - RIGHT, round(box["height"]) - TOP - BOTTOM
    shares = (points - (LEFT, round(box["height"]) - BOTTOM)) / (w, -h)
    return (x0, y0) + shares * (x1 - x0, y1 - y0)


def stand(tab, step):
    tab.wait(f"window.steinlab.step[0] === {step}")
    tab.until_settled()


def test_the_line_holds_half_of_the_mixture(open_tab):
    tab = open_tab("?target=banana&methods=smi&method.particles=12&method.alpha=0.05&steps=200&seed=3&show=guides")
    stand(tab, 200)
    rows, on_line = np.array(tab.rows()), thick(tab, exported(tab))
    assert len(on_line) > 40

    def density(points):
        z = (points[:, None, :] - rows[None, :, :2]) / rows[None, :, 2:4]
        return (np.exp(-0.5 * (z**2).sum(axis=-1)) / (2 * np.pi * rows[:, 2] * rows[:, 3])).mean(axis=1)

    x0, x1, y0, y1 = tab.stage("extent(0)")
    xs, ys = np.meshgrid(np.linspace(x0, x1, 400), np.linspace(y0, y1, 400))
    grid = density(np.stack([xs.ravel(), ys.ravel()], axis=1))
    levels = density(on_line)
    held = grid[grid >= np.median(levels)].sum() / grid.sum()
    assert held == pytest.approx(0.5, abs=0.04)
    assert np.percentile(np.abs(np.log(levels / np.median(levels))), 80) < 0.35  # a grid of 72 points is coarse


def test_in_one_dimension_bells_add_up_to_the_mixture(open_tab):
    tab = open_tab("?target=gaussian&dim=1&methods=smi&method.particles=3&method.alpha=0.05&steps=300&show=guides")
    stand(tab, 300)
    rows, line = np.array(tab.rows()), thick(tab, exported(tab))
    x, y = line.T
    mixture = np.mean(
        np.exp(-0.5 * ((x[:, None] - rows[:, 0]) / rows[:, 2]) ** 2) / rows[:, 2], axis=1
    )  # of a maximum of 1
    shown = np.abs(y) < 1.1
    np.testing.assert_allclose(y[shown], mixture[shown], atol=0.02)
    assert np.trapezoid(y, x) == pytest.approx(np.sqrt(2 * np.pi), rel=0.03)  # the area below the target's curve


def test_the_legend_hides_marks_and_lights_arrows(open_tab):
    tab = open_tab(PAUSED)
    stand(tab, 3)
    attraction, repulsion = (tab.page.get_by_role("button", name=name) for name in ("attraction", "repulsion"))
    full = pixels(tab, BLUE)
    repulsion.hover()
    tab.page.wait_for_function(f"(() => {{ return ({PIXELS})({BLUE}) < {0.5 * full} }})()")  # they step back
    tab.page.mouse.move(5, 5)
    tab.page.wait_for_function(f"(() => {{ return ({PIXELS})({BLUE}) > {0.9 * full} }})()")
    attraction.click()
    tab.page.mouse.move(5, 5)
    tab.page.wait_for_url("**show=repulse,guides,trails*")
    expect(attraction).to_have_attribute("aria-pressed", "false")
    tab.page.wait_for_function(f"(() => {{ return ({PIXELS})({BLUE}) < {0.05 * full} }})()")
    attraction.focus()
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_function("!location.search.includes('show=')")


# Page -> what is ready, its stage, its sliders, the stops of its tour, and what only the second has in the address.
LECTURES = {
    "particles": ("window.steinlab?.frames > 0", "canvas.plot", ["alpha", "particles"], 12, "method.particles=30"),
    "wave": ("window.steinwave?.pictures > 0", "canvas[role=application]", ["alpha", "particles"], 4, "width=100"),
    "functions": (
        "window.steinfunctions?.pictures > 0",
        "canvas[role=application]",
        ["alpha", "particles"],
        5,
        "methods=ens",
    ),
    "collapse": ("true", ".bk-Figure", ["alpha", "particles"], 8, "methods=svgd"),
}


# The parts of the heads of a lecture that lie on each other or beyond the window.
CROWDED = (
    f"() => {{ {INSIDE}"
    + """
  const seen = inside(document)
    .filter(n => n.matches(".lecture .head > .name, .lecture .head > .icon, .lecture .read-out > *"))
    .map(n => [n.className, n.getBoundingClientRect()]).filter(([name, box]) => box.width && box.height);
  return seen.flatMap(([name, a], i) => [
    ...(a.right > innerWidth + 1 ? [name] : []),
    ...seen.slice(i + 1)
      .filter(([other, b]) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom && b.top < a.bottom)
      .map(([other]) => `${name} on ${other}`)]);
}"""
)


@pytest.mark.parametrize(
    "page", ["particles", *(pytest.param(page, marks=pytest.mark.rare) for page in list(LECTURES)[1:])]
)
def test_a_lecture_fills_the_screen_and_arrows_go_through_the_tour(open_tab, page):
    ready, stage, dials, stops, second = LECTURES[page]
    tab = open_tab(f"?page={page}", ready)
    stage = tab.page.locator(stage).first
    stage.wait_for()
    bar, caption = tab.page.get_by_role("banner"), tab.page.locator(".caption.lecture")
    small = stage.bounding_box()
    tab.page.keyboard.press("p")
    caption.wait_for()
    bar.wait_for(state="hidden")
    tab.page.wait_for_url("**lecture=on*")
    tab.wait(f"document.querySelector('body') && innerHeight > 0 && {small['width']} > 0")
    large = tab.at_rest(stage.bounding_box)  # it is laid out once the bar is gone
    assert large["width"] > 1.2 * small["width"] and large["y"] + large["height"] <= 720
    assert tab.page.evaluate("document.documentElement.scrollHeight <= innerHeight + 8")
    assert tab.page.evaluate(CROWDED) == []
    sliders = [s.get_attribute("aria-label") for s in tab.page.get_by_role("slider").all() if s.is_visible()]
    assert sliders == dials
    tab.page.keyboard.press("ArrowRight")
    caption.filter(has_text=f"2 / {stops}").wait_for()
    tab.page.wait_for_url(f"**{second}*")
    tab.page.keyboard.press("ArrowLeft")
    caption.filter(has_text=f"1 / {stops}").wait_for()
    tab.page.wait_for_function(f"!location.search.includes('{second}') && location.search.includes('lecture=on')")
    again = open_tab(tab.page.url[len(tab.server.url) :], ready)  # the link opens the lecture, at its stop
    again.page.locator(".caption.lecture").filter(has_text=f"1 / {stops}").wait_for()
    tab.page.keyboard.press("Escape")
    bar.wait_for()
    tab.page.wait_for_function("!location.search.includes('lecture')")


def test_read_outs_are_those_that_mean_something(open_tab):
    tab = open_tab("?target=gaussian&methods=map,svgd,smi&steps=2")
    stand(tab, 2)
    tab.page.locator("summary").first.click()

    def labels(panel):
        return tab.page.locator(".outs").nth(panel).locator(".label").all_inner_texts()

    alone, points, guides = map(set, tab.at_rest(lambda: [labels(panel) for panel in range(3)]))
    assert {"variance", "total force"} <= alone and not alone & {
        "repulsion",
        "bandwidth",
        "within guides",
        "mixture ELBO",
    }
    assert points - alone == {"repulsion", "bandwidth"}
    assert guides - points == {"within guides", "between guides", "mixture ELBO"}
    tab.page.get_by_text("% of exact 1").nth(2).wait_for()


def arrows(svg, colour):
    """Length in pixels and opacity of each arrow of this colour in the panel of an exported figure."""
    found = []
    for path, more in re.findall(rf'<path d="([^"]*)" fill="none" stroke="{colour}" stroke-width="1.8"([^>]*)/>', svg):
        if "clip-path" in more:  # the legend has arrows too
            alpha = re.search(r'opacity="([.\d]+)"', more)
            shafts = re.findall(r"M([-.\d]+) ([-.\d]+)L([-.\d]+) ([-.\d]+)(?=M)", path)
            x0, y0, x1, y1 = np.array(shafts, float).reshape(-1, 4).T
            found += [(length, float(alpha[1]) if alpha else 1.0) for length in np.hypot(x1 - x0, y1 - y0)]
    return np.array(sorted(found)).reshape(-1, 2).T


def test_long_arrows_are_cut_and_short_ones_are_pale(open_tab):
    tab = open_tab(PAUSED + "&method.alpha=0.25&show=repulse")
    stand(tab, 3)
    box, (x0, x1, _, _) = tab.page.locator("canvas.plot").first.bounding_box(), tab.stage("extent(0)")
    pixels = tab.stage("scale[0]") * (box["width"] - LEFT - RIGHT) / (x1 - x0)  # of a unit of force
    most = 0.15 * min(box["width"], round(box["height"]))

    def drawn_and_meant():
        meant = np.sort(np.hypot(*np.array(tab.rows())[:, 6:8].T)) * pixels
        return *arrows(exported(tab), REPULSE), meant[meant > 1.5]

    lengths, opacity, meant = drawn_and_meant()
    assert meant.min() < 4 and meant.max() > 5
    np.testing.assert_allclose(lengths, meant, atol=0.05)
    np.testing.assert_array_equal(opacity, np.where(meant > 5, 1.0, 0.4))
    tab.slide("alpha", "End")  # a knob that is turned at rest changes no scale
    tab.wait("location.search.includes('method.alpha~')")
    tab.until_settled()
    lengths, opacity, meant = drawn_and_meant()
    assert meant.max() > 2 * most
    np.testing.assert_allclose(lengths, np.minimum(meant, most), atol=0.05)


# The arrows' scale of a card 400 pixels wide at 1 pixel a unit, after frames of forces.
SCALES = """([source, frames]) => {
  const Background = new Function("THEMES", source + "; return Background")({});
  const background = new Background({extent: [-200, 200, -200, 200], equal: true});
  background.map = {w: 400, h: 400, kx: 1, ky: 1};
  return frames.map((forces, step) => {
    if (!forces) return background.fit();
    background.followForces([new Float32Array(forces.flatMap(force => [0, 0, 0, 0, force, 0, 0, 0]))], step, Infinity);
    return background.scale;
  });
}"""


def test_the_scale_of_a_run_hears_no_outlier_and_only_gives_way_to_larger_forces(chromium):
    source = "".join((ROOT / "app" / "stage" / name).read_text() for name in ("draw.js", "background.js"))
    most = lambda force, one=None: [force] * 20 + [one or force]  # noqa: E731
    frames = [most(1.0, 1000.0)] * 50 + [most(0.01)] * 50 + [most(50.0)] + [most(0.01)] * 50  # a jump of one frame
    frames += [most(4.0)] * 30 + [most(0.01)] * 50 + [None] + [most(0.01)] * 3
    page = chromium.new_page()
    scales = page.evaluate(SCALES, [source, frames])
    page.close()
    small, large, fitted = np.array(scales[:151]), np.array(scales[181:231]), np.array(scales[232:])
    np.testing.assert_allclose(small, 40.0, rtol=1e-5)  # a force of 1 is a tenth of the card
    np.testing.assert_allclose(large, 10.0, rtol=1e-5)
    np.testing.assert_allclose(fitted, 4000.0, rtol=1e-5)


# The force that a card draws in the end, when each frame shows another estimate of it.
MEAN = """([source, estimates, moving]) => {
  const averaged = new Function("THEMES", source + "; return averaged")({});
  const card = {raw: null, arrows: [], step: -1, trail: [1], restarted: false};
  estimates.forEach((force, step) => {
    card.arrows = averaged(card, {noisy: true, step, rows: new Float32Array([0, 0, 1, 1, force, 0, 0, 0])}, moving);
    card.step = step;
  });
  return card.arrows[4];
}"""


def test_the_arrow_of_a_guide_at_rest_is_a_mean_over_hundreds_of_frames(chromium):
    """Of estimates with a standard deviation of 1: 300^(-1/2) = 0.06 is left at rest, 39^(-1/2) = 0.16 on the way."""
    source = "".join((ROOT / "app" / "stage" / name).read_text() for name in ("draw.js", "frames.js"))
    estimates, page = np.random.default_rng(0).normal(size=(60, 300)), chromium.new_page()
    rest, way = (
        np.sqrt(np.mean([page.evaluate(MEAN, [source, each.tolist(), moving]) ** 2 for each in estimates]))
        for moving in (False, True)
    )
    page.close()
    assert rest == pytest.approx(300**-0.5, rel=0.3) and way == pytest.approx(39**-0.5, rel=0.3)


# Where the path of a card begins, and its length, after one particle has moved for 300 frames and rested for 2000.
PATH = """source => {
  const take = new Function("THEMES", source + "; return takePanel")({}), background = {map: {kx: 50, ky: 50}};
  const card = {trail: [], recent: [], step: 0, raw: null, arrows: [], readouts: [], background};
  for (let step = 1; step <= 2300; step++) {
    const x = Math.min(step, 300) / 100, rows = new Float32Array([x + 0.001 * Math.sin(step), x, 1, 1, 0, 0, 0, 0]);
    take(card, {count: 1, drawn: 1, step, noisy: false, rows}, background, false);
  }
  return [card.trail[0][1], card.trail.length];
}"""


def test_the_path_of_one_particle_stays_when_it_has_come_to_rest(chromium):
    source = "".join((ROOT / "app" / "stage" / name).read_text() for name in ("draw.js", "frames.js"))
    page = chromium.new_page()
    start, length = page.evaluate(PATH, source)
    page.close()
    assert start == pytest.approx(0.01) and length < 310


# What is on screen every few milliseconds: run, status, extent, and the step of the particles, null without any.
WATCH = (
    f"() => {{ {INSIDE}"
    + """
  const stage = inside(document).find(node => node.matches(".stage"));
  const model = [...Bokeh.documents].flatMap(d => [...d._all_models.values()]).find(m => m.starting !== undefined);
  const hook = window.steinlab, first = model.starting;
  window.watched = [];
  window.titles = [];
  setInterval(() => {
    let step = null;
    try { step = hook.particles(0) && hook.step[0]; } catch { /* there are none */ }
    window.watched.push([model.starting - first, model.status, hook.extent(0), step]);
    const names = [...stage.querySelectorAll(".head .name")].map(node => node.textContent);
    window.titles.push([model.starting - first, names,
      stage.querySelector(".badge").textContent, stage.classList.contains("waiting")]);
  }, 5);
}"""
)


def test_while_a_program_compiles_its_contours_and_start_are_shown_and_nothing_of_the_run_before(open_tab):
    draws = random.randrange(30, 900)  # no cache has its program
    tab = open_tab(f"?target=ring&methods=smi&steps=40&draws={draws}")
    stand(tab, 40)
    old = tab.stage("extent(0)")
    tab.page.evaluate(WATCH)
    tab.choose("Ring", "Banana")
    tab.wait("window.watched.at(-1)[0] > 0 && window.watched.at(-1)[1] === '' && window.watched.at(-1)[3] !== null")
    new, watched = tab.stage("extent(0)"), tab.page.evaluate("window.watched")
    assert new != old
    after = [(status, extent, step) for starting, status, extent, step in watched if starting > 0]
    assert not [each for each in after if each[1] == old and each[2] is not None]  # no particle on the old contours
    waiting = [(extent, step) for status, extent, step in after if status.startswith("compiling")]
    assert (new, 0) in waiting and {step for _, step in waiting} <= {None, 0}


def test_no_stage_waits_without_a_word_or_under_the_title_of_another_method(open_tab):
    draws = random.randrange(30, 900)  # no cache has its program
    tab = open_tab(f"?target=ring&methods=smi&steps=40&draws={draws}")
    stand(tab, 40)
    tab.page.evaluate(WATCH)
    tab.page.get_by_role("button", name="Lecture (P)").click()
    tab.page.get_by_role("button", name="The next stop").click()  # SVGD and SMI
    tab.wait("window.titles.at(-1)[0] > 0 && window.titles.at(-1)[1][0] === 'SVGD' && !window.titles.at(-1)[3]")
    watched = [each for each in tab.page.evaluate("window.titles") if each[0] > 0]
    assert {tuple(titles) for _, titles, _, _ in watched} <= {("",), ("", ""), ("SVGD", "SMI")}
    assert not [each for each in watched if each[3] and not each[2]]


# Keep the frames after the next one, and hand one over again later. The stage's socket is seen when it answers.
KEEP = """() => {
  const send = WebSocket.prototype.send;
  window.kept = null;
  WebSocket.prototype.send = function (message) {
    if (!window.kept && this.url.includes("/frames/")) {
      window.kept = [];
      this.addEventListener("message", ({data}) => window.kept.push(data));
      window.again = () => this.onmessage({data: window.kept[0]});
    }
    send.call(this, message);
  };
}"""


def test_a_frame_of_the_run_before_that_comes_late_is_not_drawn(open_tab):
    tab = open_tab("?target=ring&methods=svgd&steps=40")
    stand(tab, 40)
    tab.page.evaluate(KEEP)
    tab.page.keyboard.press("ArrowRight")
    tab.wait("window.kept !== null && window.steinlab.step[0] === 41")
    tab.page.keyboard.press("ArrowRight")
    tab.wait("window.kept.length > 0 && window.steinlab.step[0] === 42")
    tab.choose("Ring", "Banana")
    tab.wait("window.steinlab.step[0] === 0")
    extent = tab.stage("extent(0)")
    tab.page.evaluate("window.again()")
    tab.page.wait_for_timeout(500)
    assert tab.page.evaluate("window.steinlab.step[0]") == 0 and tab.stage("extent(0)") == extent


def test_a_scene_that_comes_after_its_only_frame_gets_one(open_tab):
    """Scenes and frames come on two sockets. A paused run sends one frame, which may overtake the scene."""
    tab = open_tab("?target=ring&methods=svgd&steps=40")
    stand(tab, 40)
    tab.wait("window.steinlab.metrics[0].some(Number.isFinite)")  # the last frame of its own
    tab.until_settled()
    drawn = tab.rows()
    cleared = tab.page.evaluate("""() => {
      const models = [...Bokeh.documents].flatMap(d => [...d._all_models.values()]);
      const {data} = models.find(m => m.data?.starting !== undefined), {cards, backgrounds, note} = data.scene;
      data.scene = {cards, backgrounds: backgrounds.map(b => ({...b, labels: ["across", "up"]})), note};
      return window.steinlab.particles(0) === null;
    }""")
    assert cleared and tab.rows() == drawn
