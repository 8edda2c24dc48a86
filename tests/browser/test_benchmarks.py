"""Page "Benchmarks" in a real browser."""

import pytest

pytestmark = pytest.mark.browser


def test_a_set_is_chosen_in_the_table_and_a_cell_is_computed(open_tab):
    tab = open_tab("?page=benchmarks", "window.Bokeh?.index?.roots?.length")
    tab.page.get_by_role("heading", name="SVGD on UCI regressions").wait_for()
    tab.page.get_by_text("2.957 ± 0.099").first.wait_for()
    tab.page.goto(tab.page.url.split("?")[0] + "?page=benchmarks&table=damped&row=n+%3D+10&column=damped")
    tab.page.get_by_role("heading", name="Damped SVGD").wait_for()
    with tab.page.expect_download() as download:
        tab.page.get_by_role("button", name="Rows as JSON").click()
    assert download.value.suggested_filename == "rows.json"
    tab.page.get_by_role("button", name="Compute this cell here").click()
    tab.page.get_by_text("n = 10, damped, seed 0: computed here").wait_for(timeout=120_000)
    row = tab.page.locator("tr", has_text="variance").first.inner_text().split()
    assert row[0] == "variance" and abs(float(row[1]) - float(row[2])) < 0.01


def test_a_number_opens_its_run_by_keyboard_or_says_that_no_page_has_it(open_tab):
    tab = open_tab("?page=benchmarks&table=svgd_uci&row=Yacht", "window.Bokeh?.index?.roots?.length")
    number = tab.page.locator("td a[href^='?page=particles']").first
    number.wait_for()
    number.focus()
    tab.page.keyboard.press("Enter")
    tab.page.wait_for_function("location.search.includes('target.dataset=yacht')")
    tab.page.get_by_text("SVGD", exact=True).first.wait_for()
    tab.page.get_by_role("combobox", name="Target").filter(has_text="UCI").wait_for()
    query = tab.page.evaluate("location.search")
    assert "target=uci" in query
    assert "page=" not in query and "optimizer=svgd_code" in query and "bandwidth.rule=liuwang" in query
    tab.page.go_back()
    tab.page.get_by_role("heading", name="SVGD on UCI regressions").wait_for()
    tab.page.goto(tab.page.url.split("?")[0] + "?page=benchmarks&table=damped")
    tab.page.locator("td a[title^='No page runs this']").first.press("Enter")
    tab.page.get_by_text("it is a run of NUTS").wait_for()
    tab.page.wait_for_function("location.search.includes('row=truth')")
    tab.page.get_by_role("button", name="Compute this cell here").wait_for()
