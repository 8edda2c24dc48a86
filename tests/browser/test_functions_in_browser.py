"""The page "Function space" as a visitor uses it."""

import csv
from urllib.parse import parse_qs, urlparse
from xml.etree import ElementTree

import numpy as np
import pytest
from chromium import Tab

from stein_core.targets.small_networks import gap_data

pytestmark = pytest.mark.browser

PAGE = "?page=functions&methods=ensemble,wsvgd&width=2&method.particles=5"  # compiles soon
HOOK = "window.steinfunctions"


class Functions(Tab):
    """The page with its panels."""

    def seen(self, name="ensemble"):
        return self.page.evaluate(f"{HOOK}.seen({name!r})")

    def until(self, condition: str, name="ensemble"):
        """Wait for a JavaScript condition on p, what a method's panel shows."""
        self.wait(f"(() => {{ const p = {HOOK}.seen({name!r}); return p && ({condition}); }})()")

    def at(self, x, y=None, name="ensemble"):
        """The place of a point on the screen, or of a repulsion point on the axis, once the page has come to rest."""
        height = "null" if y is None else y
        return self.at_rest(lambda: self.page.evaluate(f"{HOOK}.at({x}, {height}, {name!r})"), still=0.3)

    def linked(self, field):
        return parse_qs(urlparse(self.page.url).query).get(field, [""])[0]


@pytest.fixture
def open_functions(chromium, server):
    """open_functions(query) -> Functions, moving; at the end its console must be clean and every request local."""
    tabs = []

    def opened(query=PAGE):
        tabs.append(Functions(chromium, server, query, ready=f"{HOOK}?.pictures > 1"))
        return tabs[-1]

    yield opened
    for tab in tabs:
        tab.close()


def test_curves_move_and_a_link_repeats_the_picture(open_functions):
    tab = open_functions()
    for name in ("ensemble", "wsvgd"):
        tab.until("p.curves === 5 && Number.isFinite(p.sd[70]) && p.exact[0] > p.exact[40]", name)
    before = tab.seen()["mean"]
    tab.until(f"p.mean[0] !== {before[0]!r}")
    tab.button("Pause").click()
    tab.button("Play").wait_for()
    tab.page.wait_for_url("**steps=*")
    step = int(tab.linked("steps"))
    tab.until(f"p.step === {step}", "wsvgd")
    again = open_functions(tab.page.url[len(tab.server.url) :])
    again.button("Play").wait_for()
    again.until(f"p.step === {step}", "wsvgd")
    np.testing.assert_allclose(again.seen("wsvgd")["mean"], tab.seen("wsvgd")["mean"], atol=1e-2)
    tab.button("Share").click()
    with tab.page.expect_download() as download:
        tab.page.get_by_text("Figure as SVG").click()
    assert ElementTree.parse(download.value.path()).getroot().tag.endswith("svg")
    with tab.page.expect_download() as download:
        tab.button("Numbers as CSV").click()
    rows = list(csv.DictReader(download.value.path().read_text().splitlines()[:142]))
    assert len(rows) == 141 and {row["step"] for row in rows} == {str(step)}


def test_a_repulsion_point_is_dragged_added_deleted_and_moved_by_keys(open_functions):
    tab = open_functions()
    tab.until("p.handles.length === 15")
    tab.page.mouse.move(*tab.at(3.5))
    tab.page.mouse.down()
    tab.page.mouse.move(*tab.at(3.7), steps=4)
    tab.page.mouse.up()
    tab.until("Math.abs(p.handles[7][0] - 3.7) < 0.06")
    tab.wait("location.search.includes('handles=')")
    tab.page.mouse.dblclick(*tab.at(4.2, 6))
    tab.until("p.handles.length === 16")
    tab.wait("new URLSearchParams(location.search).get('handles').split(';').length === 16")
    tab.page.locator("canvas").first.focus()
    tab.page.mouse.move(5, 5)
    before = tab.seen()["handles"][15][0]
    tab.page.keyboard.press("ArrowRight")
    tab.until(f"Math.abs(p.handles[15][0] - {before} - 0.1) < 1e-3")
    tab.page.keyboard.press("Delete")
    tab.until("p.handles.length === 15")
    tab.button("Reset points").click()
    tab.until("p.handles.length === 15 && Math.abs(p.handles[7][0] - 3.5) < 1e-6")
    tab.wait("!location.search.includes('handles=')")


def test_the_exact_band_follows_a_data_point_and_the_other_tab_shows_maps(open_functions):
    tab = open_functions(PAGE.replace("width=2", "width=10") + "&target.noise=0.1")
    tab.until("p.exact.length === 141")
    before, (x, y) = tab.seen()["exact"][68], gap_data()[:45][gap_data()[:45, 0].argmax()]
    tab.page.mouse.move(*tab.at(x, y))
    tab.page.mouse.down()
    tab.page.mouse.move(*tab.at(3.4, 0), steps=5)  # into the gap, where index 68 is
    tab.page.mouse.up()
    tab.until(f"p.exact[68] < 0.8 * {before}")
    tab.button("Reset points").click()
    tab.until(f"Math.abs(p.exact[68] - {before}) < 1e-3 * {before}")
    tab.page.get_by_text("Ring of classes").click()
    tab.until("p.entropy.length === 3600 && Math.max(...p.entropy) <= 1.62")
    tab.wait("location.search.includes('data=ring')")
    tab.page.get_by_text("Regression", exact=True).click()
    tab.until("p.mean.length === 141")
