"""Page "Your posterior" in a real browser."""

import io

import numpy as np
import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


def npz(name="mine.npz", **arrays):
    file = io.BytesIO()
    np.savez(file, **arrays)
    return {"name": name, "mimeType": "application/octet-stream", "buffer": file.getvalue()}


def test_upload_verdict_download_and_a_fit(open_tab):
    tab = open_tab("?page=posterior&posterior=gaussian&way=vi", "window.Bokeh?.index?.roots?.length")
    theta = np.random.default_rng(0).normal(size=(300, 3))
    tab.page.get_by_role("button", name="Fit and check").wait_for()
    tab.page.locator("input[type=file]").set_input_files(npz(draws=0.6 * theta, scores=-0.6 * theta))
    tab.page.get_by_text("Too narrow").wait_for()
    expect(tab.page.get_by_text("✕ No")).to_have_count(1)
    with tab.page.expect_download() as download:
        tab.page.get_by_role("button", name="Report as HTML").click()
    assert download.value.suggested_filename == "report.html"
    tab.page.get_by_role("button", name="Fit and check").click()
    tab.page.get_by_role("button", name="Cancel").wait_for()
    tab.page.get_by_text("No sign of a wrong location or width").wait_for()
    tab.page.get_by_role("button", name="Run", exact=True).nth(1).click()
    tab.page.get_by_role("button", name="Use it").wait_for()
    expect(tab.page.get_by_text("right: sd ×")).to_have_count(2)
    tab.page.wait_for_url("**page=posterior&posterior=gaussian&way=vi")


def test_the_second_of_two_quick_uploads_is_judged_and_named(open_tab):
    tab = open_tab("?page=posterior&posterior=gaussian&way=vi", "window.Bokeh?.index?.roots?.length")
    theta = np.random.default_rng(0).normal(size=(300, 3))
    tab.page.get_by_role("button", name="Fit and check").wait_for()
    file = tab.page.locator("input[type=file]")
    file.set_input_files(npz("good.npz", draws=theta, scores=-theta))
    tab.page.get_by_text("Checking good.npz").wait_for()
    file.set_input_files(npz("narrow.npz", draws=0.5 * theta, scores=-0.5 * theta))
    tab.page.get_by_text("Verdict on narrow.npz: 300 draws of 3 coordinates").wait_for()
    tab.page.get_by_text("Too narrow").wait_for()
    expect(tab.page.get_by_text("good.npz")).to_have_count(0)


def test_a_run_of_a_stage_is_diagnosed(open_tab):
    tab = open_tab("?page=particles&target=gaussian&methods=svgd", "window.Bokeh?.index?.roots?.length")
    tab.page.get_by_text("step 1", exact=False).first.wait_for()
    tab.page.get_by_role("button", name="Diagnose this run").click()
    tab.page.get_by_text("What to change, measured").wait_for()
    tab.page.wait_for_url("**page=posterior*")
    tab.page.get_by_text("particles on the stage").first.wait_for()


def test_a_calibration_shows_its_curves_and_can_be_saved(open_tab):
    tab = open_tab("?page=posterior&posterior=oring&way=vi", "window.Bokeh?.index?.roots?.length")
    tab.page.get_by_role("button", name="Calibrate").click()
    tab.page.get_by_role("button", name="Cancel").wait_for()
    expect(tab.page.get_by_role("img", name="intercept: ")).to_be_visible(timeout=120_000)
    expect(tab.page.get_by_role("img", name="slope: ")).to_be_visible()
    for name, file in (("Calibration as HTML", "calibration.html"), ("Ranks as CSV", "ranks.csv")):
        with tab.page.expect_download() as download:
            tab.page.get_by_role("button", name=name).click()
        assert download.value.suggested_filename == file
