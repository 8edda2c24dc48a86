"""The page "1-D wave" as a visitor uses it."""

import csv
import re
import time
from urllib.parse import parse_qs, urlparse
from xml.etree import ElementTree

import numpy as np
import pytest
from chromium import Tab
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

PAGE = "?page=wave&methods=svgd,map&width=2"  # compiles soon
PANEL = "window.steinwave.panel"


class Wave(Tab):
    """The page with its panels."""

    def panel(self, name="svgd", row=0):
        return self.page.evaluate(f"{PANEL}({name!r}, {row})")

    def until(self, condition: str, name="svgd", row=0):
        """Wait for a JavaScript condition on p, the panel of a method."""
        self.wait(f"(() => {{ const p = {PANEL}({name!r}, {row}); return p && ({condition}); }})()")

    def at(self, x, y, name="svgd", row=0):
        """The place of a data point on the screen, once the page above it has stopped moving."""
        return self.at_rest(lambda: self.page.evaluate(f"window.steinwave.at({x}, {y}, {name!r}, {row})"), still=0.3)

    def linked(self, field):
        return parse_qs(urlparse(self.page.url).query).get(field, [""])[0]

    def reading(self) -> int:
        return int(
            self.page.get_by_text("step ").first.inner_text().split("·")[0].removeprefix("step ").replace(",", "")
        )

    def unfold(self, title: str):
        """Open a group of the sidebar."""
        self.page.get_by_role("button", name=re.compile(f"^{title}", re.IGNORECASE)).first.click()

    def said(self, text: str):
        self.page.get_by_text(text).first.wait_for()

    def pause(self):
        self.button("Pause").click()
        self.button("Play").wait_for()
        self.page.wait_for_url("**steps=*")


@pytest.fixture
def open_wave(chromium, server):
    """open_wave(query) -> Wave, moving; at the end its console must be clean and every request local."""
    tabs = []

    def opened(query=PAGE):
        tabs.append(Wave(chromium, server, query, ready="window.steinwave?.pictures > 1"))
        return tabs[-1]

    yield opened
    for tab in tabs:
        tab.close()


def test_bands_move_in_every_panel_and_a_link_repeats_the_picture(open_wave):
    tab = open_wave()
    tab.until("Number.isFinite(p.mean[100]) && p.curves === 5")
    tab.until("p.curves === 1", "map")
    before = tab.panel()["mean"]
    tab.wait(f"{PANEL}('svgd').mean[0] !== {before[0]!r}")
    tab.pause()
    step, panel = int(tab.linked("steps")), tab.panel()
    assert step > 2 and np.all(np.less_equal(panel["low"], panel["high"]))
    again = open_wave(tab.page.url[len(tab.server.url) :])
    again.button("Play").wait_for()
    again.wait(f"location.search.includes('steps={step}')")
    again.wait(f"Math.abs({PANEL}('svgd').mean[0] - {tab.panel()['mean'][0]!r}) < 1e-3")
    np.testing.assert_allclose(again.panel()["mean"], tab.panel()["mean"], atol=1e-3)


def test_the_page_opens_trained_and_trains_from_scratch_when_asked(open_wave):
    tab = open_wave("?page=wave")
    for name in ("svgd", "smi", "vi"):
        tab.until("p.step === 15000 && Number.isFinite(p.mean[100])", name)
    tab.button("Play").wait_for()
    assert not tab.linked("steps")  # the bare link shows just this
    gap = "p.high.reduce((s, v, i) => s + (Math.abs(i - 100) < 40 ? v - p.low[i] : 0), 0)"
    assert tab.page.evaluate(f"(p => {gap})({PANEL}('smi')) > 1.5 * (p => {gap})({PANEL}('svgd'))")
    trained = tab.panel()["mean"]
    tab.button("Share").click()
    tab.page.get_by_text("Copy as Python").click()
    assert tab.clipboard("measures").count("knobs, 15000)") == 3
    tab.page.keyboard.press("Escape")
    with tab.page.expect_download() as download:
        tab.button("Bands as CSV").click()
    rows = list(csv.DictReader(download.value.path().read_text().splitlines()))
    assert len(rows) == 3 * 201 and {row["step"] for row in rows} == {"15000"}
    tab.unfold("Model")
    tab.slide("noise sd", "ArrowRight")  # the bands answer as they would in a run
    tab.until("p.step > 15000")
    tab.button("Train from scratch").click()
    tab.until("p.step < 1000")
    tab.button("Pause").click()
    tab.wait("parseInt(new URLSearchParams(location.search).get('steps')) < 15000")
    again = open_wave("?page=wave&steps=15000")
    again.until("p.step === 15000")
    np.testing.assert_array_equal(again.panel()["mean"], trained)


def test_a_point_is_added_moved_and_deleted_and_the_data_come_back(open_wave):
    tab = open_wave("?page=wave&methods=svgd,map&width=5")
    tab.until("Number.isFinite(p.nuts[0])")
    tab.page.mouse.click(*tab.at(0.4, 6))
    tab.until("p.x.length === 41")
    tab.wait("location.search.includes('data=')")
    tab.said("the data differ from the shipped")
    tab.until("p.nuts.length === 0")
    tab.button("Compute NUTS here").wait_for()
    tab.page.mouse.move(*tab.at(0.4, 6))
    tab.page.mouse.down()
    (x, low), (_, high) = tab.at(0.4, 6), tab.at(0.4, 8)
    for y in np.linspace(low, high, 9):
        tab.page.mouse.move(x, y)
        time.sleep(0.05)
    tab.until("p.y[40] > 6.5")
    tab.page.mouse.up()
    tab.wait("parseFloat(new URLSearchParams(location.search).get('data').split(';')[40].split(',')[1]) > 7.5")
    tab.page.mouse.down()  # into the panel beside it, where the point stays at the edge of its own
    tab.page.mouse.move(*tab.at(0.0, 8, "map"), steps=3)
    tab.page.mouse.up()
    tab.until("p.x[40] === 2")
    tab.page.mouse.click(*tab.at(1.98, 8))
    tab.page.keyboard.press("Backspace")
    tab.until("p.x.length === 40")
    tab.wait("!location.search.includes('data=')")
    tab.until("Number.isFinite(p.nuts[0])")
    tab.page.mouse.click(*tab.at(-1.8, 9))
    tab.until("p.x.length === 41")
    tab.button("Reset points").click()
    tab.until("p.x.length === 40")


def test_the_last_point_stays(open_wave):
    tab = open_wave(PAGE + "&data=0.5,1.0")
    tab.page.mouse.click(*tab.at(0.5, 1))
    tab.page.keyboard.press("Delete")
    tab.said("0 points")
    tab.until("p.x.length === 1")


def test_bad_text_is_refused_with_a_reason_and_good_text_is_shown(open_wave):
    tab = open_wave()
    tab.unfold("Your own data")
    area = tab.page.get_by_role("textbox", name="Other data, as text")
    bad = {
        "x,y\n1,2\n2,cat": "row 3: 'cat' is not a number",
        "1,nan": "allowed: finite numbers",
        "1,2,3": "row 1: 3 columns",
        "1,2\n" * 600: "more than 512 points",
        "": "0 points",
        "1,5000": "-1000 to 1000",
        "1,<img src=x onerror=alert(1)>": "is not a number",
    }
    for text, message in bad.items():
        area.fill(text)
        tab.button("Use these points").click()
        tab.said(message)
        expect(area).to_have_attribute("aria-invalid", "true")
        assert len(tab.panel()["x"]) == 40
    area.fill("x;y\n" + "\n".join(f"0.5;{y}" for y in range(4)))  # several at the same x
    tab.button("Use these points").click()
    tab.until("p.x.length === 4")
    expect(area).to_have_attribute("aria-invalid", "false")
    tab.page.locator("input[type=file]").set_input_files(
        {"name": "big.csv", "mimeType": "text/csv", "buffer": b"0.1,0.2\n" * 1_000_000}
    )
    tab.said("allowed: at most 1 MB")
    tab.errors[:] = [
        error for error in tab.errors if "exceeds maximum file size" not in error
    ]  # the widget logs it too
    tab.until("p.x.length === 4")
    assert tab.page.locator("img[src=x]").count() == 0
    tab.page.locator("input[type=file]").set_input_files(
        {"name": "a.csv", "mimeType": "text/csv", "buffer": b"x,y\n0.1,0.2\n"}
    )
    tab.until("p.x.length === 1")


def test_knobs_warm_start_and_the_width_starts_again(open_wave):
    tab = open_wave()
    tab.wait(f"document.body && {PANEL}('svgd').mean[200] > 1")
    tab.pause()
    step = int(tab.linked("steps"))
    for title in ("Model", "Optimiser", "Band "):
        tab.unfold(title)
    for label in ("noise sd", "prior sd", "learning rate", "alpha", "particles"):
        tab.slide(label, "ArrowRight")
    tab.wait(
        "['noise', 'prior_scale', 'step_size', 'alpha', 'particles'].every(n => location.search.includes(n + '='))"
    )
    tab.until("p.curves === 6")
    assert int(tab.linked("steps")) == step
    narrow = np.mean(np.subtract(tab.panel()["high"], tab.panel()["low"]))
    tab.page.get_by_text("band of a new observation y, not of f").click()
    tab.wait("location.search.includes('of=y')")
    tab.until(f"p.high.reduce((s, v, i) => s + v - p.low[i], 0) / 201 > {narrow + 0.02}")
    tab.slide("Width", "ArrowRight")
    tab.wait("location.search.includes('width=3')")
    tab.until("Math.abs(p.mean[0]) < 1")
    tab.wait("location.search.includes('steps=') === false")


def test_methods_come_and_go_and_one_stays(open_wave):
    tab = open_wave("?page=wave&methods=map&width=2")
    tab.page.get_by_role("combobox", name="Methods").click()
    tab.page.get_by_role("menuitem", name="Deep ensemble").click()
    tab.page.keyboard.press("Escape")
    tab.until("p.curves === 5", "ensemble")
    tab.page.wait_for_url("**methods=map,ensemble*")
    assert tab.linked("methods") == "map,ensemble"
    tab.page.get_by_text("Deep ensemble").first.wait_for()


def test_a_key_at_the_first_picture_counts_although_the_page_is_not_complete(open_wave):
    tab = open_wave()
    tab.page.add_init_script("""const early = setInterval(() => {
        if (!window.steinwave?.pictures) return;
        clearInterval(early);
        document.dispatchEvent(new KeyboardEvent("keydown", {key: " ", bubbles: true, composed: true}));
    }, 1)""")
    tab.page.reload()
    tab.button("Play").wait_for()


def test_keys_and_exports(open_wave):
    tab = open_wave()
    tab.wait(f"{PANEL}('svgd').mean.length > 0")  # compiled, too
    tab.page.keyboard.press("Space")
    tab.button("Play").wait_for()
    tab.page.wait_for_url("**steps=*")
    step = int(tab.linked("steps"))
    tab.page.keyboard.press("ArrowRight")
    tab.wait(f"location.search.includes('steps={step + 1}') && {PANEL}('svgd').step === {step + 1}")
    with tab.page.expect_download() as download:
        tab.button("Bands as CSV").click()
    rows = list(csv.DictReader(download.value.path().read_text().splitlines()))
    assert len(rows) == 2 * 201 and {int(row["step"]) for row in rows} == {step + 1}
    for kind, start in (("PNG", b"\x89PNG"), ("SVG", b"<svg")):
        tab.button("Share").click()
        with tab.page.expect_download() as download:
            tab.page.get_by_text(f"Figure as {kind}").click()
        figure = download.value.path().read_bytes()
        assert figure.startswith(start) and len(figure) > 20_000
    for text in (">SVGD<", ">MAP<", ">f(x)<"):
        assert text in figure.decode()
    ElementTree.fromstring(figure)
    tab.button("Share").click()
    tab.page.get_by_text("Copy as Python").click()
    script = tab.clipboard("measures")
    assert f"knobs, {step + 1})" in script and script.count("compile(spec)") == 2
    tab.page.keyboard.press("Escape")


def test_two_rows_train_together_and_a_link_repeats_them(open_wave):
    tab = open_wave(PAGE + "&seed=1")  # with seed 0 the first row comes trained
    tab.page.get_by_role("button", name="two rows").click()
    tab.wait("window.steinwave.below > 2")
    tab.until("p.curves === 5 && p.step > 0", row=1)
    tab.until("p.curves === 1", "map", row=1)
    tab.wait("location.search.includes('rows=2')")
    assert tab.linked("rows") == "2"
    pictures = tab.page.evaluate("window.steinwave.pictures")
    tab.wait(f"window.steinwave.pictures > {pictures + 3}")  # the first row goes on
    tab.pause()
    tab.wait("location.search.includes('below=')")
    below, steps = int(tab.linked("below")), int(tab.linked("steps"))
    tab.until(f"p.step === {below}", row=1)
    tab.page.get_by_text("SVGD, h = 100").first.wait_for()
    again = open_wave(tab.page.url[len(tab.server.url) :])
    again.until(f"p.step === {below}", row=1)
    again.until(f"p.step === {steps}")
    np.testing.assert_allclose(again.panel(row=1)["mean"], tab.panel(row=1)["mean"], atol=1e-3)
    again.page.get_by_role("button", name="one width").click()
    again.wait(f"{PANEL}('svgd', 1) === null")


def test_points_are_deleted_by_a_tap_and_by_keys_alone(open_wave):
    tab = open_wave(PAGE + "&data=-1.0,-1.0;0.0,0.5;1.0,1.0")
    tab.pause()
    tab.button("Delete points").click()
    tab.wait("window.steinwave.erasing()")
    tab.page.mouse.click(*tab.at(0.5, 6))  # nothing there: nothing is added either
    tab.page.mouse.click(*tab.at(0, 0.5))
    tab.wait("location.search.includes('data=-1.0,-1.0;1.0,1.0')")
    tab.page.get_by_role("application").focus()
    tab.page.keyboard.press("ArrowRight")
    tab.page.keyboard.press("ArrowRight")
    tab.until("p.x[p.selected] === 1")
    tab.page.keyboard.press("Delete")
    tab.wait("location.search.includes('data=-1.0,-1.0&') || location.search.endsWith('data=-1.0,-1.0')")


def test_the_recovery_table_opens_and_its_job_can_be_cancelled(open_wave):
    tab = open_wave("?page=wave&methods=map&width=1")
    tab.pause()
    tab.page.get_by_text("Recovery point: SVGD").click()
    tab.said("> 256")
    tab.said("forgets to divide by m")
    tab.said("Ours: 100 runs")
    tab.button("Compute here").click()
    tab.button("Compute here").wait_for(state="hidden")  # else the next click finds it still there
    tab.button("Cancel").click()
    tab.button("Compute here").wait_for()


def test_nuts_is_computed_here_and_can_be_cancelled(open_wave):
    tab = open_wave("?page=wave&methods=map&width=1&data=-1.0,-1.0;0.0,0.5;1.0,1.0&target.noise=0.5")
    tab.said("the noise and data differ")
    tab.button("Compute NUTS here").click()
    tab.button("Compute NUTS here").wait_for(state="hidden")  # else the next click finds it still there
    tab.button("Cancel").click()
    tab.button("Compute NUTS here").wait_for()
    tab.button("Compute NUTS here").click()
    tab.said("Pages that are playing come first.")
    tab.button("Pause this page to speed up the job").click()
    tab.button("Play").wait_for()
    tab.page.get_by_role("button", name="Pause this page").wait_for(state="hidden")
    tab.until("Number.isFinite(p.nuts[0])", "map")
    tab.said("computed here")
