"""The page "Variance collapse" as a visitor uses it."""

import csv
import os
import re
import time

import pytest
from checks import until
from chromium import Server, Tab, executable
from playwright.sync_api import expect

from stein_core import cache_folder, keep_compiled

pytestmark = pytest.mark.browser

# What the visible chart shows: its points with their place on the screen, its lines, its axes.
CHART = """() => {
  const seen = new Set(), found = [];
  const walk = view => {
    if (!view || seen.has(view)) return;
    seen.add(view);
    const source = view.model?.renderers && view.model.renderers.map(r => r.data_source).find(s => s?.data.marker);
    if (source && view.el.offsetParent !== null && view.frame?.bbox.width > 0) found.push([view, source]);
    for (const child of view.child_views ?? []) walk(child);
    for (const child of view._child_views?.values() ?? []) walk(child);
  };
  for (const root of Bokeh.index.roots) walk(root);
  if (!found.length) return null;
  const [view, source] = found[0], box = view.canvas_view.el.getBoundingClientRect(), data = source.data;
  const lines = view.model.renderers.map(r => r.data_source).find(s => s?.data.dash).data;
  return {
    points: Array.from(data.x, (x, i) => ({
      x: box.left + view.frame.x_scale.compute(x), y: box.top + view.frame.y_scale.compute(data.y[i]),
      value: data.y[i], label: data.label[i], d: data.d[i], runs: data.runs[i], law: data.law[i],
    })),
    dashes: Array.from(lines.dash), axis: view.model.x_range.end,
  };
}"""
READY = f"window.Bokeh?.index?.roots && ({CHART})()?.dashes.includes('solid')"
TINY = "?page=collapse&methods=svgd&dims=5,6&particles=4&seeds=2"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server with a sweep store of its own and the programs that are compiled already."""
    executable()
    cache = tmp_path_factory.mktemp("cache")
    (cache / "jax").symlink_to(cache_folder() / "jax")
    running = Server(
        tmp_path_factory.mktemp("server"),
        ["--unused-session-lifetime", "15000", "--check-unused-sessions", "500"],
        {**os.environ, "STEINLAB_CACHE": str(cache)},
    )
    yield running
    running.stop()
    assert "Traceback" not in running.log(), running.log()


@pytest.fixture
def open_page(chromium, server):
    """open_page(query) -> Tab with the chart and its laws drawn."""
    keep_compiled()
    tabs = []

    def opened(query="?page=collapse", ready=READY):
        tabs.append(Tab(chromium, server, query, ready))
        return tabs[-1]

    yield opened
    for tab in tabs:
        tab.close()


def chart(tab):
    return tab.page.evaluate(CHART)


def says(tab, text):
    tab.page.get_by_text(text).first.wait_for()


def write(tab, label, text):
    box = tab.page.get_by_role("textbox", name=label, exact=True)
    box.fill(text)
    box.press("Enter")


def test_the_reference_is_there_at_once_with_its_laws(open_page):
    tab = open_page()
    says(tab, "120 of 120 runs shipped")
    tab.wait(f"({CHART})()?.points.length === 40")
    shown = chart(tab)
    assert len(shown["points"]) == 40
    (svgd,) = [p for p in shown["points"] if p["label"] == "SVGD" and p["d"] == 100]
    assert svgd["law"] == "0.031534" and svgd["value"] == pytest.approx(0.031534, rel=1e-4)


def test_a_sweep_arrives_live_and_is_there_for_the_next_visitor(open_page):
    tab = open_page(TINY)
    assert chart(tab)["points"] == []
    tab.button("Run 4 runs").click()
    tab.button("Cancel").wait_for()
    says(tab, "4 computed here")
    tab.wait(f"({CHART})()?.points.length === 2")
    assert [p["d"] for p in chart(tab)["points"]] == [5, 6]
    assert all(p["value"] == pytest.approx(float(p["law"]), rel=1e-3) for p in chart(tab)["points"])
    expect(tab.button("All runs are computed")).to_be_disabled()
    other = open_page(TINY)
    says(other, "4 computed here")
    other.wait(f"({CHART})()?.points.length === 2")


@pytest.mark.rare
def test_sweeps_wait_for_each_other_can_be_cancelled_and_end_with_their_tab(open_page, server):
    long = open_page("?page=collapse&methods=smi&dims=90,100&particles=40&seeds=4", "window.Bokeh?.index?.roots")
    long.button("Run 8 runs").click()
    long.button("Cancel").wait_for()
    long.wait_enabled("Running 8 runs", False)
    write(long, "Dimensions", "9")  # what runs is said, not what could be run
    long.wait_enabled("Running 8 runs of the earlier settings", False)
    short = open_page("?page=collapse&methods=svgd&dims=6,7&particles=4&seeds=2")
    short.button("Run").click()
    says(short, "Waiting for a sweep to finish: position 1 of 1 in the queue")
    short.button("Cancel").click()
    says(short, "cancelled")
    short.button("Run").click()
    says(short, "Waiting for a sweep to finish: position 1 of 1 in the queue")
    long.page.close()
    says(short, "4 computed here")


def test_a_click_on_a_point_opens_its_run(open_page):
    tab = open_page("?page=collapse&methods=svgd&dims=8,9&particles=4&seeds=2")
    tab.button("Run 4 runs").click()
    tab.wait(f"({CHART})()?.points.length === 2")
    here = tab.page.get_by_text("You are here: SVGD on Gaussian, d = 8, n = 4, seed 0").first

    def click():
        point = chart(tab)["points"][0]  # the chart may be laid out anew meanwhile: then the point is somewhere else
        tab.page.mouse.click(point["x"], point["y"])

    until(lambda: (click(), time.sleep(1), here.is_visible())[-1])
    slider = tab.page.locator("input[type=range]:visible").first
    slider.wait_for()
    says(tab, re.compile(r"^step \d,\d{3}"))  # the last one
    slider.press("Home")
    tab.page.get_by_text("step 0", exact=True).wait_for()
    link = tab.page.get_by_role("link", name="Open in Particles").get_attribute("href")
    assert "methods=svgd" in link and "dim=8" in link and "method.particles=4" in link and "changes=" in link
    particles = open_page(link, "window.steinlab && window.steinlab.frames > 0")
    assert particles.stage("count") == [4]


def test_tabs_and_axes_are_in_the_link_and_a_reload_repeats_them(open_page):
    tab = open_page()
    tab.button("Frobenius distance").click()
    tab.button("diagonal only").click()
    tab.page.wait_for_url("**y=diagonal_error*")
    tab.button("Mean location").click()
    tab.page.wait_for_url("**y=mean_location*")
    tab.wait(f"({CHART})()?.points.length === 40")
    tab.button("Variance").click()
    tab.button("against gamma").click()
    tab.page.wait_for_url("**x=gamma*")
    tab.wait(f"({CHART})()?.points.length === 30")  # VI has no n
    write(tab, "Dimensions", "20, 40,80")
    tab.page.wait_for_url("**dims=20,40,80*")
    tab.page.reload()
    tab.wait(f"({CHART})()?.points.length === 9")
    assert "x=gamma" in tab.page.url
    tab.button("Rows as CSV").wait_for()
    with tab.page.expect_download() as download:
        tab.button("Rows as CSV").click()
    rows = list(csv.DictReader(open(download.value.path())))
    assert len(rows) == 36 and {"source", "method", "dim", "seed", "sample_variance"} <= set(rows[0])


def test_presets_and_python(open_page):
    tab = open_page()
    tab.tour("SVGD's variance is linear")
    says(tab, "81 of 81 runs shipped")
    tab.wait(f"({CHART})()?.points.length === 27")
    says(tab, "it changes the answer")
    tab.button("Share").click()
    tab.page.get_by_role("menuitem", name="Copy as Python").click()
    assert "alphas=(0.1, 1.0, 10.0)" in tab.clipboard("variance_collapse(")


def test_what_is_wrong_is_said_and_nothing_is_lost(open_page):
    tab = open_page("?page=collapse&dims=1,%3Cimg%20src%3Dx%20onerror%3D%22window.hacked%3D1%22%3E&seeds=2")
    says(tab, "whole numbers with commas between")
    assert tab.page.evaluate("window.hacked") is None
    write(tab, "Dimensions", "1,2,three")
    says(tab, "'1,2,three'; allowed")
    expect(tab.page.get_by_label("Dimensions", exact=True)).to_have_value("1,2,three")
    tab.wait(f"({CHART})()?.points.length === 40")
    write(tab, "Dimensions", "20,40")
    tab.wait(f"({CHART})()?.points.length === 8")
    tab.page.get_by_text("'1,2,three'; allowed").first.wait_for(state="hidden")


def test_turning_to_the_page_from_another_one(open_page):
    tab = open_page("?target=gaussian&methods=svgd", "window.steinlab && window.steinlab.frames > 0")
    tab.choose("Particles", "Variance collapse")
    tab.wait(f"({CHART})()?.points.length === 40")


def test_the_statements_lead_to_their_presets_and_other_settings_are_in_the_link(open_page):
    tab = open_page()
    tab.button("its bias is sampling noise").click()
    tab.page.wait_for_url("**y=mean_location*")
    assert tab.page.get_by_text("Other settings").first.is_hidden()
    tab.tour("What does not collapse?")
    tab.page.get_by_text("Other settings").first.click()
    tab.page.get_by_text("Ba et al.", exact=True).first.wait_for()
    assert tab.page.get_by_text("step s costs as much").is_hidden()
    tab.choose("Ba et al.", "free")
    tab.page.wait_for_url("**method.damping=free*")
    tab.wait(f"({CHART})()?.dashes.includes('solid')")
    tab.page.reload()
    tab.wait(READY)
    assert "method.damping=free" in tab.page.url


def test_all_that_is_wrong_is_listed_by_label_and_marked(open_page):
    tab = open_page("?page=collapse&methods=svgd&dims=19&particles=4&seeds=1")
    tab.page.get_by_role("button", name="Target and seeds").click()
    wrong = {"Dimensions": "", "Particles n": "999999", "alpha": "-1", "Seeds": "x"}
    for label, text in wrong.items():
        write(tab, label, text)
    for text in (
        "Dimensions: the list is empty; allowed: at least one.",
        "Particles n = 999999 is out of range; allowed: 1 to",
        "alpha = -1.0 is out of range; allowed: 0 to",
        "Seeds = 'x'; allowed: whole numbers.",
    ):
        says(tab, text)
    for label, text in wrong.items():
        made = tab.page.get_by_role("textbox", name=label, exact=True)
        expect(made).to_have_attribute("aria-invalid", "true")
        expect(made).to_have_value(text)
    for label, text in {"Dimensions": "18", "Particles n": "4", "alpha": "1"}.items():
        write(tab, label, text)
        tab.page.locator(f"[aria-invalid=false][value='{text}']").first.wait_for()
    says(tab, "Seeds = 'x'")
    expect(tab.page.get_by_text("Particles n = 999999")).to_be_hidden()
    write(tab, "Seeds", "1")
    tab.page.wait_for_url("**dims=18*")
    tab.page.get_by_text("Seeds = 'x'").wait_for(state="hidden")


def test_every_edit_of_a_list_is_taken(open_page):
    tab = open_page("?page=collapse&methods=svgd&dims=19&particles=4&seeds=1")
    box = tab.page.get_by_label("Dimensions", exact=True)
    for text, leave in (
        ("20", "Enter"), ("21", "click"), ("x", "click"), ("22", "click"), ("x", "Enter"), ("23", "Tab"),
        ("24", "Enter"),
    ):  # fmt: skip
        box.click()
        tab.page.keyboard.press("Control+a")
        tab.page.keyboard.type(text)
        if leave == "click":
            tab.page.mouse.click(900, 25)  # nothing is there in the bar
        else:
            tab.page.keyboard.press(leave)
        if text == "x":
            says(tab, "Dimensions = 'x'; allowed")
        else:
            tab.page.wait_for_url(f"**dims={text}*")
            tab.page.locator(f"[aria-invalid=false][value='{text}']").first.wait_for()


def test_run_waits_while_the_settings_are_wrong(open_page):
    tab = open_page("?page=collapse&methods=svgd&dims=19&particles=4&seeds=1")
    tab.wait_enabled("Run 1 run", True)
    write(tab, "Dimensions", "19,x")
    says(tab, "'19,x'; allowed")
    tab.wait_enabled("Run 1 run", False)
    write(tab, "Dimensions", "18")
    tab.page.wait_for_url("**dims=18*")
    tab.wait_enabled("Run 1 run", True)


@pytest.mark.rare
def test_the_server_ends_at_once_in_the_midst_of_a_sweep(chromium, tmp_path):
    executable()
    server = Server(tmp_path, (), {**os.environ, "STEINLAB_CACHE": str(tmp_path)})
    tab = Tab(
        chromium, server, "?page=collapse&methods=smi&dims=90,100&particles=40&seeds=8", "window.Bokeh?.index?.roots"
    )
    tab.button("Run 16 runs").click()
    tab.button("Cancel").wait_for()
    time.sleep(1)
    began = time.monotonic()
    server.stop()
    assert time.monotonic() - began < 10 and server.process.returncode == 0, server.log()
    tab.context.close()
