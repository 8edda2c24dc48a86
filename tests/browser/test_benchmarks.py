"""Page "Benchmarks" in a real browser."""

import pytest

pytestmark = pytest.mark.browser


def test_a_set_is_chosen_in_the_table_and_a_cell_is_computed(open_tab):
    tab = open_tab("?page=benchmarks", "window.Bokeh?.index?.roots?.length")
    tab.page.get_by_role("heading", name="SVGD on UCI regressions").wait_for()
    assert tab.page.get_by_text("2.957 ± 0.099").count() >= 1
    tab.page.goto(tab.page.url.split("?")[0] + "?page=benchmarks&table=damped&row=n+%3D+10&column=damped")
    tab.page.get_by_role("heading", name="Damped SVGD").wait_for()
    with tab.page.expect_download() as download:
        tab.page.get_by_role("button", name="Rows as JSON").click()
    assert download.value.suggested_filename == "rows.json"
    tab.page.get_by_role("button", name="Compute this cell here").click()
    tab.page.get_by_text("n = 10, damped, seed 0: computed here").wait_for(timeout=120_000)
    row = tab.page.locator("tr", has_text="variance").first.inner_text().split()
    assert row[0] == "variance" and abs(float(row[1]) - float(row[2])) < 0.01
