"""The page "Location and variance" as a visitor uses it."""

import csv

import numpy as np
import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

PAGE = "?page=location"


def stand(tab, step):
    tab.wait(f"window.steinlab.step[0] === {step}")
    tab.until_settled()


def test_two_guides_reach_the_exact_fixed_point_in_both_spaces(open_tab):
    tab = open_tab(PAGE + "&steps=600")
    stand(tab, 600)
    locations, scales, points = (np.array(tab.rows(p)) for p in range(3))
    fixed = [np.array(tab.stage(f"fixed[{p}]")).reshape(-1, 2) for p in range(3)]
    assert [len(f) for f in fixed] == [4, 2, 0]  # split along either axis; SVGD has none drawn
    apart = (locations[0, :2] - locations[1, :2]) / 2  # the pair's centre still wanders with the noise of the draws
    for at, marks in ((apart, fixed[0]), (scales[0, :2], fixed[1]), (scales[1, :2], fixed[1])):
        assert np.linalg.norm(at - marks, axis=1).min() < 0.08
    np.testing.assert_allclose(
        np.linalg.norm(points[:, :2], axis=1), np.log(2) ** 0.5, atol=0.01
    )  # SVGD: variance ln(2)/2
    tab.page.get_by_text("locations ±1.0714, sd 0.7383").wait_for()
    tab.page.get_by_text("and 2 if none overlap").wait_for()
    assert 1.5 < tab.stage("value(1, 'components')") < 1.9
    expect(tab.page.get_by_text("components")).to_have_count(2)  # the number stands in one place


def test_beyond_some_alpha_the_page_says_that_runs_leave_the_fixed_point(open_tab):
    tab = open_tab(PAGE + "&steps=3&method.alpha=1.1")
    stand(tab, 3)
    tab.page.get_by_text("on one axis; 0, 1 and 1 across.").wait_for()
    leave = tab.page.get_by_text("Runs leave it: with so much repulsion one guide narrows")
    expect(leave).to_have_count(0)
    tab.slide("alpha", "PageUp")
    leave.wait_for()


def test_the_scale_axis_moves_points_arrows_and_marks_together(open_tab):
    tab = open_tab(PAGE + "&steps=20&method.alpha=10.0")
    stand(tab, 20)
    tables, marks = {}, {}
    for axis, shown in (("sd", None), ("u", "sd"), ("variance", "u")):
        if shown:
            tab.page.get_by_role("combobox", name="Scales as").first.click()
            tab.page.get_by_role("menuitem", name=axis, exact=True).first.click()
            tab.page.wait_for_url(f"**axis={axis}*")
            tab.until_changed(tables[shown].tolist(), 1)
        tables[axis], marks[axis] = np.array(tab.rows(1)), np.array(tab.stage("fixed[1]"))
    assert tab.step() == 20
    u, sd, variance = (tables[name] for name in ("u", "sd", "variance"))
    slope = 1 / (1 + np.exp(-u[:, :2]))
    np.testing.assert_allclose(sd[:, :2], np.log1p(np.exp(u[:, :2])), rtol=1e-5)
    np.testing.assert_allclose(variance[:, :2], sd[:, :2] ** 2, rtol=1e-5)
    for force in (slice(4, 6), slice(6, 8)):
        assert np.abs(u[:, force]).max() > 1e-4
        np.testing.assert_allclose(sd[:, force], u[:, force] * slope, rtol=1e-4, atol=1e-8)
        np.testing.assert_allclose(variance[:, force], 2 * sd[:, :2] * sd[:, force], rtol=1e-4, atol=1e-8)
    np.testing.assert_allclose(marks["variance"], marks["sd"] ** 2, rtol=1e-4)
    np.testing.assert_allclose(np.log1p(np.exp(marks["u"])), marks["sd"], rtol=1e-4)


def test_the_bug_brings_the_locations_to_the_centre_and_back(open_tab):
    tab = open_tab(PAGE)
    tab.button("Show NumPyro's bug").click()
    tab.page.wait_for_url("**guide.density=twice*")
    tab.wait("window.steinlab.step[0] < 200")  # the page opens on a later step
    tab.wait("window.steinlab.step[0] > 250")
    locations, scales = np.array(tab.rows(0))[:, :2], np.array(tab.rows(1))[:, :2]
    assert np.abs(locations).max() < 0.3 and scales.min() < 0.1
    assert tab.stage("fixed[0]") == []
    tab.page.get_by_text("known only for SMI with normal guides").wait_for()
    tab.button("Show NumPyro's bug").click()
    tab.page.wait_for_function("!location.search.includes('guide.density=twice')")
    tab.wait("window.steinlab.fixed[0].length === 8")


def test_sliders_move_the_fixed_points_while_paused(open_tab):
    tab = open_tab(PAGE + "&steps=30")
    stand(tab, 30)
    before, at = np.array(tab.rows(0)), tab.stage("fixed[0][0]")
    tab.slide("alpha", "PageUp", 2)
    tab.wait(f"window.steinlab.fixed[0][0] > {at} + 0.02")
    tab.until_settled()
    after = np.array(tab.rows(0))
    np.testing.assert_array_equal(before[:, :4], after[:, :4])
    tab.slide("particles", "ArrowRight")
    tab.wait("window.steinlab.count[0] === 3")
    tab.wait("window.steinlab.fixed[0].length === 0")
    tab.page.get_by_text("known only for two particles").wait_for()


def test_point_masses_have_no_scale_and_equal_svgd(open_tab):
    tab = open_tab(PAGE + "&guide=point&method.particles=12&steps=15")
    stand(tab, 15)
    assert tab.stage("count") == [12, 0, 12]
    np.testing.assert_allclose(np.array(tab.rows(0))[:, :2], np.array(tab.rows(2))[:, :2], atol=1e-5)
    tab.page.get_by_text("Point masses have no effective number").wait_for()


def test_many_guides_on_a_bent_target_and_every_slider_is_heard(open_tab):
    tab = open_tab(PAGE + "&target=banana&method.particles=15&steps=5")
    stand(tab, 5)
    assert tab.stage("count") == [15, 15, 15]
    tab.page.get_by_text("the target's is 1.75").first.wait_for()  # (1 + 2.5) / 2
    tab.unfold()
    tab.press_each_slider("ArrowRight")
    names = ["alpha", "particles", "step_size", "factor", "spread", "shift", "width"]
    tab.wait("[" + ",".join(f"'.{name}~'" for name in names) + "].every(n => location.search.includes(n))")


def test_a_link_and_the_exports_repeat_the_picture(open_tab):
    tab = open_tab(PAGE + "&steps=12&seed=4&axis=u&show=sum,fixed")
    stand(tab, 12)
    assert "axis=u" in tab.page.url and "show=sum,fixed" in tab.page.url
    link = tab.page.url[len(tab.server.url) :]
    again = open_tab(link)
    stand(again, 12)
    np.testing.assert_allclose(again.rows(1), tab.rows(1), rtol=1e-5, atol=1e-6)
    with tab.page.expect_download() as download:
        tab.button("Data as CSV").click()
    table = list(csv.DictReader(download.value.path().read_text().splitlines()))
    assert [row["method"] for row in table] == ["smi", "smi", "svgd", "svgd"]
    tab.button("Share").click()
    with tab.page.expect_download() as download:
        tab.page.get_by_text("Figure as SVG").click()
    assert "SMI: scales" in download.value.path().read_text()
    tab.button("Share").click()
    tab.page.get_by_text("Copy as Python").click()
    script = tab.clipboard("collect(")
    assert script.count("collect(") == 2 and "draws=100" in script and "seed=4" in script and "steps=12" in script


def test_what_a_link_cannot_show_is_said(open_tab):
    tab = open_tab(PAGE + "&target=gamma")
    tab.page.get_by_text("needs two dimensions").first.wait_for()
    assert tab.stage("count")[0] == 2
