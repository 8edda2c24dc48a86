"""The page "Particles" as a visitor uses it."""

import csv
import json
import subprocess
import sys
import time

import numpy as np
import pytest
from checks import until
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

SMALL = "?target=gaussian&methods=svgd"  # one cheap panel; the first tab's programs serve all tabs


def test_plays_at_once_on_a_real_posterior(open_tab):
    tab = open_tab("?page=particles")
    tab.page.get_by_text("SVGD huddles near the mode").first.wait_for()
    tab.page.get_by_text("Banana").first.wait_for()
    first = tab.step()
    tab.wait(f"window.steinlab.step[0] > {first} + 10 && window.steinlab.step[1] > {first} + 10")
    assert tab.stage("count") == [20, 20]
    tab.wait("Number.isFinite(window.steinlab.value(1, 'mixture_elbo'))")  # it moves before they are compiled
    expect(tab.page.get_by_text("mixture ELBO")).to_have_count(1)  # point masses have none
    expect(tab.page.get_by_text("of exact 1.75")).to_have_count(2)


def test_pause_step_reset_and_keys(open_tab):
    tab = open_tab(SMALL)
    tab.wait("window.steinlab.step[0] > 20")
    tab.pause()
    at = tab.step()
    time.sleep(0.5)
    assert tab.step() == at
    tab.button("Step").click()
    tab.wait(f"window.steinlab.step[0] === {at + 1}")
    tab.page.locator("canvas.plot").first.hover()
    tab.page.keyboard.press("ArrowRight")
    tab.wait(f"window.steinlab.step[0] === {at + 2}")
    tab.page.keyboard.press("ArrowLeft")
    tab.wait(f"window.steinlab.step[0] === {at + 1}")
    tab.page.keyboard.press("r")
    tab.wait("window.steinlab.step[0] === 0")
    tab.page.keyboard.press("Space")
    tab.wait("window.steinlab.step[0] > 5")


def test_the_rewind_bubble_says_the_step_and_is_seen_whole(open_tab):
    tab = open_tab(SMALL)
    tab.slide("Steps per frame", "ArrowRight", 3)  # ten steps a frame
    tab.wait("window.steinlab.step[0] > 100")
    tab.pause()
    tab.slide("Rewind", "ArrowLeft", 3)
    tab.until_settled()
    bubble = tab.page.locator(".MuiSlider-valueLabelOpen")
    tab.page.get_by_role("slider", name="Rewind").hover(force=True)
    bubble.filter(has_text=f"step {tab.step():,}").wait_for(timeout=20_000)
    box = bubble.bounding_box()
    over = tab.page.evaluate(
        "([x, y]) => document.elementsFromPoint(x, y).map(e => e.className?.toString() ?? '')",
        [box["x"] + box["width"] / 2, box["y"] + 3],
    )
    bar = tab.page.locator(".MuiAppBar-root").bounding_box()
    assert box["y"] > bar["y"] + bar["height"] and not any("AppBar" in name for name in over)


def test_paused_a_knob_changes_the_arrows_and_nothing_else(open_tab):
    tab = open_tab(SMALL + "&steps=30")
    tab.wait("window.steinlab.step[0] === 30")
    tab.unfold()
    for label, name, key in (
        ("alpha", "method.alpha", "PageUp"),
        ("bandwidth factor", "bandwidth.factor", "PageUp"),
        ("step size", "step_size", "PageUp"),
        ("initial shift", "shift", "ArrowRight"),
    ):
        tab.until_settled()
        before = np.array(tab.rows())
        tab.slide(label, key, 2)
        tab.wait(f"location.search.includes('{name}')")  # the session has heard of it
        tab.until_settled()
        after = np.array(tab.rows())
        assert tab.step() == 30
        np.testing.assert_array_equal(before[:, :4], after[:, :4])
        repulsion = np.linalg.norm(after[:, 6:]) / np.linalg.norm(before[:, 6:])
        attraction = np.linalg.norm(after[:, 4:6] - before[:, 4:6])
        if label == "alpha":
            assert repulsion > 1.05 and attraction == 0
        elif label == "bandwidth factor":
            assert abs(repulsion - 1) > 0.01 and attraction > 0
        else:
            assert repulsion == 1 and attraction == 0, label


def test_every_slider_is_heard(open_tab):
    tab = open_tab("?target=gaussian&methods=annealed,smi&steps=2")
    tab.wait("window.steinlab.step[0] === 2")
    tab.until_settled()
    tab.unfold()
    sliders = tab.page.get_by_role("slider")
    wanted = {"alpha", "particles", "horizon", "cycles", "power", "initial width (at Reset)"}
    until(lambda: wanted <= {slider.get_attribute("aria-label") for slider in sliders.all()})
    tab.press_each_slider("ArrowRight")
    names = ["alpha", "particles", "step_size", "horizon", "cycles", "power", "factor", "spread", "shift", "width"]
    tab.wait("[" + ",".join(f"'.{name}~'" for name in names) + "].every(n => location.search.includes(n))")


def test_a_link_keeps_what_is_drawn(open_tab):
    tab = open_tab(SMALL + "&steps=2")
    tab.page.get_by_role("button", name="Repulsion").click()
    tab.page.wait_for_url("**show=attract,guides*")
    again = open_tab(tab.page.url[len(tab.server.url) :])
    for name, pressed in (("Attraction", "true"), ("Repulsion", "false")):
        expect(again.page.get_by_role("button", name=name)).to_have_attribute("aria-pressed", pressed)


def test_particle_slider_grows_a_running_system_past_its_first_program(open_tab):
    tab = open_tab(SMALL)
    tab.wait("window.steinlab.step[0] > 30")
    tab.slide("particles", "End")
    tab.wait("window.steinlab.count[0] === 256")
    at = tab.step()
    assert at > 30  # it went on, it did not start again
    tab.wait(f"window.steinlab.step[0] > {at} + 5")
    tab.slide("particles", "Home")
    tab.wait("window.steinlab.count[0] === 1")


def test_click_adds_and_double_click_removes(open_tab):
    tab = open_tab(SMALL + "&steps=10")
    tab.wait("window.steinlab.step[0] === 10")
    tab.until_settled()
    plot = tab.page.locator("canvas.plot").first
    box = plot.bounding_box()
    there = {"x": box["width"] * 0.9, "y": box["height"] * 0.2}
    plot.click(position=there)
    tab.wait("window.steinlab.count[0] === 21")
    new = tab.rows()[20]
    assert new[0] > 2 and new[1] > 2
    plot.dblclick(position=there)
    tab.wait("window.steinlab.count[0] === 20")


def test_a_particle_is_dragged_and_a_link_repeats_it(open_tab):
    tab = open_tab("?target=gaussian&methods=svgd,map&steps=10")
    tab.wait("window.steinlab.step[0] === 10")
    tab.until_settled()
    before, there, mouse = tab.rows(), [1.5, -1.25], tab.page.mouse
    farthest = max(range(20), key=lambda i: np.hypot(*before[i][:2]))  # none is nearer to the pointer
    assert farthest > 0  # the one of MAP has index 0
    plot = tab.page.locator("canvas.plot").first
    mouse.move(*tab.stage(f"at(0, {before[farthest][0]}, {before[farthest][1]})"))
    expect(plot).to_have_css("cursor", "grab")
    mouse.down()
    mouse.move(*tab.stage("at(0, 1.5, 1.5)"), steps=4)
    expect(plot).to_have_css("cursor", "grabbing")
    tab.wait("location.search.includes('~move~')")  # it is told on the way
    mouse.move(*tab.stage("at(0, 1.5, -1.25)"), steps=4)
    mouse.up()
    tab.wait(
        f"location.search.split('~move~').length === 2 && /changes=10~move~{farthest},1.5[^;]*$/.test(location.search)"
    )
    tab.until_settled()
    rows = tab.rows()
    np.testing.assert_allclose(rows[farthest][:2], there, atol=0.02)  # a pixel
    np.testing.assert_array_equal(np.delete(rows, farthest, 0)[:, :2], np.delete(before, farthest, 0)[:, :2])
    tab.wait("window.steinlab.step[0] === 10 && window.steinlab.count.join() === '20,1'")
    expect(plot).to_have_css("cursor", "grab")
    again = open_tab(tab.page.url[len(tab.server.url) :])
    again.wait("window.steinlab.step[0] === 10")
    again.until_settled()
    np.testing.assert_allclose(again.rows(), rows, rtol=1e-5, atol=1e-6)


def test_escape_gives_a_drag_up(open_tab):
    tab = open_tab(SMALL + "&steps=10")
    tab.wait("window.steinlab.step[0] === 10")
    tab.until_settled()
    before, link, mouse = tab.rows(), tab.page.url, tab.page.mouse
    mouse.move(*tab.stage(f"at(0, {before[3][0]}, {before[3][1]})"))
    mouse.down()
    mouse.move(*tab.stage("at(0, 2.5, 2.5)"), steps=4)
    tab.wait("location.search.includes('~move~')")
    tab.page.keyboard.press("Escape")
    tab.page.wait_for_url(link)
    until(lambda: tab.rows() == before)
    mouse.move(*tab.stage("at(0, 2.5, -2.5)"), steps=4)
    mouse.up()  # on an empty place: a click would add a particle
    tab.at_rest(lambda: tab.stage("count"), 1.0)
    assert tab.rows() == before and tab.page.url == link


def test_a_particle_is_held_while_the_others_move(open_tab):
    tab = open_tab(SMALL + "&steps=10")
    tab.wait("window.steinlab.step[0] === 10")
    tab.until_settled()
    before, mouse = tab.rows(), tab.page.mouse
    mouse.move(*tab.stage(f"at(0, {before[3][0]}, {before[3][1]})"))
    mouse.down()
    mouse.move(*tab.stage("at(0, 2.5, 2.5)"), steps=4)
    tab.page.keyboard.press("Space")
    tab.wait("window.steinlab.step[0] > 40")
    tab.page.keyboard.press("Space")
    tab.button("Play").wait_for()
    tab.wait("location.search.includes(`steps=${window.steinlab.step[0]}`)")
    mouse.up()
    tab.wait("location.search.split(/~move~3,2[.][45]/).length > 5")  # at many steps
    tab.until_settled()
    rows = tab.rows()
    np.testing.assert_allclose(rows[3][:2], [2.5, 2.5], atol=0.02)
    assert np.abs(np.subtract(rows, before)[:3, :2]).max() > 0.05
    again = open_tab(tab.page.url[len(tab.server.url) :])
    again.wait(f"window.steinlab.step[0] === {tab.step()}")
    again.until_settled()
    np.testing.assert_allclose(again.rows(), rows, rtol=1e-5, atol=1e-6)


def test_rewind_and_go_on(open_tab):
    tab = open_tab(SMALL + "&steps=40")
    tab.wait("window.steinlab.step[0] === 40")
    tab.until_settled()
    for _ in range(5):
        tab.button("Step").click()
    tab.wait("window.steinlab.step[0] === 45")
    tab.slide("Rewind", "Home")
    tab.wait("window.steinlab.step[0] < 45")
    past = tab.step()
    tab.button("Step").click()
    tab.wait(f"window.steinlab.step[0] === {past + 1}")


def test_a_link_gives_the_same_picture(open_tab):
    tab = open_tab("?target=banana&methods=svgd&seed=7")
    tab.wait("window.steinlab.step[0] > 40")
    tab.slide("alpha", "ArrowRight", 3)
    time.sleep(0.3)
    tab.pause()
    tab.page.wait_for_url(f"**steps={tab.step()}*")
    link = tab.page.url[len(tab.server.url) :]
    again = open_tab(link)
    again.wait(f"window.steinlab.step[0] === {tab.step()}")
    again.until_settled()
    np.testing.assert_allclose(again.rows(), tab.rows(), rtol=1e-5, atol=1e-6)


def test_copied_python_reproduces_the_frame(open_tab):
    tab = open_tab(SMALL + "&steps=25&method.alpha=2.5")
    tab.wait("window.steinlab.step[0] === 25")
    tab.unfold("Optimiser")
    tab.slide("step size", "ArrowRight", 2)
    tab.button("Step").click()
    tab.wait("window.steinlab.step[0] === 26")
    tab.until_settled()
    tab.button("Share").click()
    tab.page.get_by_text("Copy as Python").click()
    tab.page.get_by_text("Copied.").wait_for()
    script = tab.clipboard("collect(")
    script += "\nimport json; print(json.dumps(frame.locations.tolist()))"
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=tab.server.log_file.parent)
    assert out.returncode == 0, out.stderr
    np.testing.assert_allclose(
        json.loads(out.stdout.splitlines()[-1]), np.array(tab.rows())[:, :2], rtol=1e-5, atol=1e-6
    )


def test_exports(open_tab, tmp_path):
    tab = open_tab(SMALL + "&steps=10")
    tab.wait("window.steinlab.step[0] === 10")
    tab.until_settled()
    for name, start in (("PNG", b"\x89PNG"), ("SVG", b"<svg")):
        tab.button("Share").click()
        with tab.page.expect_download() as download:
            tab.page.get_by_text(f"Figure as {name}").click()
        content = download.value.path().read_bytes()
        assert content.startswith(start) and len(content) > 5000
    with tab.page.expect_download() as download:
        tab.button("Data as CSV").click()
    table = list(csv.DictReader(download.value.path().read_text().splitlines()))
    assert len(table) == 20
    tab.until_settled()
    shown = np.array(tab.rows())
    np.testing.assert_allclose([float(row["location[0]"]) for row in table], shown[:, 0], rtol=1e-6)


def exported(tab) -> str:
    tab.button("Share").click()
    with tab.page.expect_download() as download:
        tab.page.get_by_text("Figure as SVG").click()
    return download.value.path().read_text()


def test_particles_that_leave_the_picture_are_followed_and_counted_where_they_are_too_far(open_tab):
    tab = open_tab(SMALL + "&steps=1&init.shift=20")
    tab.wait("window.steinlab.step[0] === 1")
    tab.until_settled()
    x0, x1, y0, y1 = tab.stage("extent(0)")
    shown = np.array(tab.rows())
    assert (
        x0 < -2
        and shown[:, 0].min() > 13
        and shown[:, 0].max() < x1
        and y0 < shown[:, 1].min()
        and shown[:, 1].max() < y1
    )
    assert " outside" not in exported(tab)
    tab.unfold("Start")
    tab.slide("initial spread", "End")
    tab.button("Reset").click()
    tab.wait("window.steinlab.step[0] === 0")
    tab.until_settled()
    x, y = np.array(tab.rows())[:, :2].T
    x0, x1, y0, y1 = tab.stage("extent(0)")
    away = np.sum((x < x0) | (x > x1) | (y < y0) | (y > y1))
    assert 0 < away < 20 and f">{away} of 20 outside<" in exported(tab)
    for label in ("initial spread", "initial shift"):
        tab.slide(label, "Home")
    tab.wait("window.steinlab.extent(0)[1] < 13")  # the first picture again


def test_at_rest_arrows_are_gone(open_tab):
    tab = open_tab("?target=gaussian&methods=map&steps=600")
    tab.wait("window.steinlab.step[0] === 600")
    tab.until_settled()
    x0, x1, _, _ = tab.stage("extent(0)")
    for _ in range(2):
        force = np.abs(np.array(tab.rows())[:, 4:6]).max()
        assert 0 < force * tab.stage("scale[0]") < 0.002 * (x1 - x0)
        tab.page.locator("canvas.plot").first.hover()
        tab.page.keyboard.press("ArrowLeft")  # nor after a step back
        tab.wait("window.steinlab.step[0] < 600")
        tab.until_settled()


def test_arrows_have_one_scale_for_a_run_until_they_are_fitted(open_tab):
    tab = open_tab("?target=gaussian&methods=svgd&init.spread=4.0&method.step_size=0.02")
    # Of the axis, a unit of force.
    share = "window.steinlab.scale[0] / (window.steinlab.extent(0)[1] - window.steinlab.extent(0)[0])"

    def paused_after(step):
        tab.wait(f"window.steinlab.step[0] > {step}")
        tab.button("Pause").click()
        tab.until_settled()
        return tab.page.evaluate(share), np.hypot(*np.array(tab.rows())[:, 4:6].T).max()

    unit, longest = paused_after(100)
    tab.button("Play").click()
    later = paused_after(800)
    assert later[1] < 0.5 * longest and later[0] == pytest.approx(unit, rel=1e-6)  # so the arrows are shorter
    tab.button("Fit arrows").click()
    tab.wait(f"{share} > {1.5 * unit}")
    fitted = tab.page.evaluate(share)
    tab.button("Reset").click()
    tab.wait(f"window.steinlab.step[0] === 0 && {share} < {0.8 * fitted}")
    wide = tab.page.evaluate(share)
    tab.unfold("Start")
    tab.slide("initial spread", "Home")
    tab.slide("initial spread", "ArrowRight", 3)  # another start, where the repulsion is large
    tab.wait(f"window.steinlab.step[0] === 0 && {share} < {0.2 * wide}")


def test_the_arrows_of_guides_are_a_mean_over_frames(open_tab):
    """At rest one estimate of the attraction is all noise: the mean of many is not."""
    tab = open_tab(
        "?target=gaussian&methods=smi&method.particles=5&method.alpha=0.05&method.step_size=0.002&steps=2000"
    )
    tab.wait("window.steinlab.step[0] === 2000")
    frames = tab.stage("frames")
    tab.button("Play").click()
    tab.wait(f"window.steinlab.frames > {frames + 250}")
    tab.button("Pause").click()
    tab.until_settled()
    # The repulsion has no noise: at rest the attraction that is drawn is its opposite, one estimate is not.
    one, mean = (np.array(table) for table in (tab.rows(), tab.stage("arrows(0)")))
    gap, drawn = (np.hypot(*(table[:, 4:6] + table[:, 6:8]).T).mean() for table in (one, mean))
    assert drawn < 0.5 * gap
    said = "arrows: mean of recent frames"
    assert f">{said}<" in exported(tab) and tab.page.get_by_text(said).first.is_visible()


# The part of a small curve's columns in which something is drawn.
COLUMNS = """canvas => {
  const {width, height} = canvas, {data} = canvas.getContext("2d").getImageData(0, 0, width, height);
  const drawn = x => [...Array(height).keys()].some(y => data[4 * (y * width + x) + 3]);
  return [...Array(width).keys()].filter(drawn).length / width; }"""


def test_a_step_back_keeps_the_curves_so_far(open_tab):
    tab = open_tab(SMALL)
    tab.wait("window.steinlab.step[0] > 60")
    tab.pause()
    at = tab.step()
    tab.page.locator("canvas.plot").first.hover()
    tab.page.keyboard.press("ArrowLeft")
    tab.wait(f"window.steinlab.step[0] < {at}")
    columns = tab.at_rest(lambda: tab.page.locator("canvas.spark").nth(1).evaluate(COLUMNS))  # ten times a second
    assert columns > 0.4  # a gap at its beginning: it moves before metrics are compiled
    tab.page.keyboard.press("r")
    tab.wait("window.steinlab.step[0] === 0")
    until(lambda: tab.page.locator("canvas.spark").nth(1).evaluate(COLUMNS) < 0.2)  # nothing of the run before


def test_divergence_is_said_and_reset_offered(open_tab):
    tab = open_tab(SMALL + "&optimizer=sgd&method.step_size=1000.0")
    banner = tab.page.locator(".banner")
    tab.page.get_by_text("diverged at step").wait_for()
    assert "SVGD diverged at step" in banner.inner_text() and "Reset" in banner.inner_text()
    assert np.isfinite(np.array(tab.rows())).all()


def test_a_wrong_link_is_explained_and_the_default_shown(open_tab):
    tab = open_tab("?target=rign&methods=svgd&method.alpha=lots")
    text = tab.page.get_by_text("unknown target").first.inner_text()
    assert "did you mean 'ring'" in text and "'lots' is not a number" in text
    tab.page.get_by_text("Challenger O-rings").first.wait_for()


def test_a_link_cannot_bring_markup_into_the_page(open_tab):
    tab = open_tab("?methods=svgd&target=%3Cimg%20src%3Dx%20onerror%3D%22window.hacked%3D1%22%3E")
    tab.page.get_by_text("unknown target").first.wait_for()
    assert "<img src=x" in tab.page.get_by_text("unknown target").first.inner_text()
    assert tab.page.evaluate("window.hacked") is None


def test_paused_another_kernel_or_rule_changes_the_forces_at_once(open_tab):
    tab = open_tab(SMALL + "&steps=30")
    tab.wait("window.steinlab.step[0] === 30")
    for shown, option in (("RBF", "IMQ"), ("median, with log n", "fixed length")):
        tab.until_settled()
        before = np.array(tab.rows())
        tab.choose(shown, option)
        after = np.array(tab.until_changed(before.tolist()))
        np.testing.assert_array_equal(before[:, :2], after[:, :2])
        assert np.abs(after[:, 4:] - before[:, 4:]).max() > 1e-3


def test_new_seed_and_another_optimiser_start_again(open_tab):
    tab = open_tab(SMALL + "&steps=3")
    tab.wait("window.steinlab.step[0] === 3")
    before = np.array(tab.rows())
    tab.unfold("Start", "Optimiser")
    tab.button("New seed").click()
    tab.wait("window.steinlab.step[0] === 0")
    tab.page.wait_for_url("**seed=*")
    assert not np.allclose(before[:, :2], np.array(tab.rows())[:, :2])
    tab.choose("Adam", "Plain steps")
    tab.page.wait_for_url("**optimizer=sgd*")


def test_presets_load_and_tell_what_they_show(open_tab):
    tab = open_tab(SMALL)
    tab.tour("One guide is VI")
    tab.page.get_by_text("A mixture of one guide").wait_for()
    tab.wait("window.steinlab.count.length === 2 && window.steinlab.count[0] === 1")


def test_two_tabs_are_independent(open_tab):
    one, two = open_tab(SMALL), open_tab(SMALL)
    one.pause()
    at, other = one.step(), two.step()
    two.wait(f"window.steinlab.step[0] > {other} + 10")
    assert one.step() == at


def test_a_cut_connection_is_taken_up_and_the_run_goes_on(open_tab):
    tab = open_tab(SMALL)
    tab.wait("window.steinlab.step[0] > 20")
    at = tab.step()
    before = tab.page.evaluate("() => { window.sockets.forEach(one => one.close()); return window.sockets.length; }")
    tab.wait(f"window.sockets.length >= {before} + 2")  # the page's and the stage's own
    tab.wait(f"window.steinlab.step[0] > {at} + 20")


def test_the_theme_can_be_changed(open_tab):
    tab = open_tab(SMALL)
    dark = tab.page.locator(".stage.dark:has(> .deck)")
    assert dark.count() == 0
    tab.button("Toggle theme").click()
    dark.wait_for()
    tab.page.wait_for_url("**theme=dark*")  # a reload or a link keeps it
