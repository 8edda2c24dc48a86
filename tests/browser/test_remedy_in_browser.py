"""The page "Which remedy" as a visitor uses it."""

import numpy as np
import pytest
from checks import until
from playwright.sync_api import expect

pytestmark = pytest.mark.browser

PAGE = "?page=remedy&target=gaussian&methods=svgd,noisy&dim=50"


def cells(tab, row: str) -> list[str]:
    """The cells of the row that begins with this text; [] if there is none yet."""
    rows = [one.locator("td").all_inner_texts() for one in tab.page.locator("table.remedies tr").all()]
    return next((texts for texts in rows if texts and texts[0].strip() == row), [])


def number(text: str) -> float:
    return float(text) if text not in ("", "–") else np.nan


def test_a_bare_address_opens_on_a_run_at_rest_and_goes_on(open_tab):
    tab = open_tab("?page=remedy")
    tab.wait("window.steinlab.step[0] >= 3000")
    assert until(lambda: cells(tab, "SVGD"), lambda row: row and row[2] != "–")[1:3] == ["0.0631", "0.0631"]
    until(lambda: number(cells(tab, "SVGD")[5]), lambda milliseconds: milliseconds > 0)  # its program has come
    tab.wait("window.steinlab.step[0] > 3020")
    assert number(cells(tab, "SVGD")[1]) == pytest.approx(0.0631, abs=2e-4)
    assert 0.6 < number(cells(tab, "Random-subspace SVGD")[1]) < 0.95


def test_svgd_comes_to_its_law_and_the_table_says_what_each_keeps_and_costs(open_tab):
    tab = open_tab(PAGE)
    tab.wait("window.steinlab.step[0] > 20 && window.steinlab.step[1] > 20")
    head, value, law, least, most, cost, gradients = until(
        lambda: cells(tab, "SVGD"), lambda row: row and row[2] != "–"
    )
    assert head.strip() == "SVGD" and number(law) == pytest.approx(0.0631, abs=2e-4) and gradients == "20"
    until(lambda: number(cells(tab, "SVGD")[1]), lambda share: share < 0.09)
    until(lambda: number(cells(tab, "SVGD")[5]), lambda milliseconds: milliseconds > 0)
    noisy = until(lambda: cells(tab, "Noisy SVGD"), lambda row: row and number(row[2]) > 0.9)
    assert number(noisy[1]) > 0.5 and number(noisy[4]) > 2
    exact = until(lambda: cells(tab, "20 exact draws"), lambda row: row and row[4] != "–")
    assert number(exact[3]) == 0 and 5 < number(exact[4]) < 7.5  # (1 + sqrt(50 / 20))^2 = 6.7, and less on average


def test_a_slot_is_filled_by_a_click_and_holds_two_at_most(open_tab):
    tab = open_tab(PAGE)
    tab.wait("window.steinlab.step[0] > 5")
    tab.page.get_by_text("moves the rest").first.wait_for()
    tab.page.get_by_role("checkbox", name="Accelerated SVGD").check()
    tab.page.get_by_text("only the road").first.wait_for()
    tab.wait(
        "decodeURIComponent(location.search).includes('svgd,noisy,accelerated') && window.steinlab.step.length === 3"
    )
    tab.page.get_by_role("checkbox", name="Two-kernel SVGD").check()
    tab.wait("decodeURIComponent(location.search).includes('svgd,accelerated,two_kernels')")
    expect(tab.page.get_by_role("checkbox", name="Noisy SVGD")).not_to_be_checked()
    tab.wait("window.steinlab.step[2] > 3")
    tab.page.get_by_role("checkbox", name="Accelerated SVGD").uncheck()
    tab.page.get_by_role("checkbox", name="Two-kernel SVGD").uncheck()
    tab.wait("window.steinlab.step.length === 1 && window.steinlab.step[0] > 3")


def test_knobs_of_remedy_and_target_act_while_it_plays_and_axes_are_chosen(open_tab):
    tab = open_tab("?page=remedy&target=autoregression&methods=svgd,blocks&dim=6&method.step_size=0.02&axes=1,6")
    tab.wait("window.steinlab.step[0] > 20")
    tab.slide("coordinates together", "ArrowRight", 2)
    tab.wait("location.search.includes('method.size')")
    tab.slide("rho", "Home")
    tab.wait("location.search.includes('target.rho')")
    at = tab.step()
    tab.wait(f"window.steinlab.step[0] > {at} + 5")
    tab.pause()
    before = tab.rows()
    tab.page.get_by_role("combobox", name="Up").first.click()
    tab.page.get_by_role("menuitem", name="θ₂", exact=True).first.click()
    assert np.array(tab.until_changed(before))[:, 0] == pytest.approx(np.array(before)[:, 0], rel=1e-5)
    tab.wait("!location.search.includes('axes')")  # the first two are the plain ones
