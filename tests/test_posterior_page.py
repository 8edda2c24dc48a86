"""Page "Your posterior": its jobs, what it shows of them, and what it refuses."""

import io
import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import param
import pytest
from bokeh.document import Document
from checks import until
from panel.io.state import set_curdoc

from stein_core import Recipe, Spec
from stein_core.posterior import weigh
from stein_core.posterior.weighing import MOST
from steinlab.pages.posterior.choice import WAYS
from steinlab.pages.posterior.costs import costs
from steinlab.pages.posterior.page import PosteriorPage
from steinlab.pages.posterior.tables import tables
from steinlab.server.folders import ASSETS


class Frame(param.Parameterized):
    dark_theme = param.Boolean(default=False)


@pytest.fixture
def page():
    document = Document()
    with set_curdoc(document):
        yield PosteriorPage(SimpleNamespace(frame=Frame()), {"posterior": "oring", "way": "smi"})
    for leave in document.session_destroyed_callbacks:
        leave(None)


def ended(page):
    until(lambda: page.refresh() or page.turns.job, lambda job: job is None, pause=0.05)
    return page


def words(page) -> str:
    return " ".join(row[0].html for row in page.further[1:])


def npz(**arrays) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def chosen(page, name, content):
    """Send a file as a browser does."""
    for message in ({"status": "upload_event", "data": content, "name": name}, {"status": "finished"}):
        page.file._handle_msg(message)


@pytest.mark.long
def test_the_later_of_two_uploads_is_the_one_that_is_shown_by_its_name(page):
    theta = np.random.default_rng(0).normal(size=(500, 2))
    chosen(page, "good.npz", npz(draws=theta, scores=-theta))
    first = page.turns.job
    chosen(page, "narrow <2>.npz", narrow := npz(draws=0.5 * theta, scores=-0.5 * theta))
    assert ended(page).shown.title == "narrow <2>.npz" and page.shown.ok is False and not page.error.visible
    assert first.state == "cancelled" and page.shown.findings["width"]["value"] == pytest.approx(0.5, rel=0.05)
    said = "Verdict on narrow &lt;2&gt;.npz: 500 draws of 2 coordinates, by their scores."
    said += f" The file has {len(narrow) / 1000:.1f} kB."
    assert said in page.verdict.html and page.shown.numbers["about"]["name"] == "narrow <2>.npz"
    assert "narrow &lt;2&gt;.npz" in page.shown.page and "good.npz" not in page.shown.page + page.verdict.html
    chosen(page, "bad.npz", b"PK\x03\x04 no archive")
    assert ended(page).error.object.startswith("bad.npz: draws &#x27;bad.npz&#x27; is no .npz file")
    assert said in page.verdict.html  # what is shown is still that of its file


def test_an_upload_waits_for_the_end_of_a_fit_and_the_last_one_counts(page, monkeypatch):
    begun = []
    monkeypatch.setattr("steinlab.server.jobs.JOBS.add", begun.append)
    monkeypatch.setattr("steinlab.server.jobs.JOBS.ahead", lambda job: 0)
    theta = np.random.default_rng(0).normal(size=(40, 2))
    page.fit()
    for name in ("a.npz", "b.npz"):
        chosen(page, name, npz(draws=theta, scores=-theta))
    page.refresh()
    assert begun == [page.turns.job] and page.reading.object.endswith("Then b.npz")
    page.turns.job.state, page.turns.job.error = "failed", "no memory"
    page.refresh()
    assert [job.title for job in begun[1:]] == ["b.npz"] and page.turns.job is begun[1]
    assert page.error.visible and "no memory" in page.error.object and page.reading.object == "Checking b.npz"


@pytest.mark.long
def test_uploaded_draws_with_scores_get_a_verdict_and_a_bad_file_a_sentence(page):
    theta = np.random.default_rng(0).normal(size=(400, 3))
    page.upload(npz(draws=0.6 * theta, scores=-0.6 * theta))
    assert ended(page).shown.ok is False and "Too narrow" in page.verdict.html and "✕ No" in page.text.html
    before = page.text.html
    page.upload(b"PK\x03\x04 no archive")
    assert ended(page).error.visible and "is no .npz file" in page.error.object
    assert page.text.html == before  # nothing is lost
    page.upload(npz(draws=theta, scores=-theta))
    assert ended(page).shown.ok and not page.error.visible and "No sign of a wrong" in page.verdict.html
    assert page.shown.page.startswith("<!doctype html>") and "<script" not in page.shown.page
    assert page.file.accept == ".npz,.csv,.nc"


@pytest.mark.long
def test_stein_weights_are_measured_beside_what_is_shown(page):
    theta = np.random.default_rng(0).normal(size=(300, 2))
    page.upload(npz(draws=0.6 * theta, scores=-0.6 * theta))
    ended(page)
    assert "Stein weights for these draws" in words(page) and "NUTS" not in words(page)  # there is no density for NUTS
    page.change("weigh ")
    expected = weigh(0.6 * theta, scores=-0.6 * theta)
    said = f"the kernel Stein discrepancy is {expected.ksd[1]:.3g}, and was {expected.ksd[0]:.3g}"
    assert said in words(ended(page)) and "Weights cannot widen draws" in words(page) and page.shown.way == "upload"
    page.change("weigh ")  # look at it
    ratios = expected.sd / (0.6 * theta).std(axis=0)
    np.testing.assert_allclose(list(page.shown.findings["weighing"]["each"].values()), ratios, rtol=1e-6)
    assert "Verdict on draws, with Stein weights" in page.verdict.html and not page.shown.ok  # it cannot widen
    page.upload(npz(draws=np.random.default_rng(1).normal(size=(MOST + 1, 2)), scores=np.ones((MOST + 1, 2))))
    assert "Stein weights" not in words(ended(page)) and page.shown.findings


@pytest.mark.long
def test_runs_of_a_stage_are_checked_the_first_is_shown_and_the_others_are_beside_it(page):
    rng = np.random.default_rng(0)
    spec = Spec("gaussian", 2, "svgd", capacity=32)
    theta = rng.normal(size=(30, 2))
    theta -= theta.mean(axis=0)
    theta = theta @ np.linalg.inv(np.linalg.cholesky(np.cov(theta.T))).T  # right in every direction
    page.check([("SVGD", Recipe(spec), 0.5 * theta, 7), ("Damped", Recipe(replace(spec, method="damped")), theta, 7)])
    until(lambda: page.refresh() or page.tried, pause=0.05)
    assert page.shown.title == "SVGD, 30 particles on the stage" and page.shown.of.endswith("2 coordinates")
    assert page.shown.findings["width"]["value"] == pytest.approx(0.5, rel=0.01) and not page.shown.ok
    assert "still moves" in page.shown.findings["rest"]["sentence"]
    assert [one.ok for one in page.tried] == [True] and "Damped, 30 particles" in words(page)
    page.change("run damped")
    assert page.shown.ok and "No sign" in page.verdict.html and page.tried[0].way == "run svgd"
    assert not page.error.visible and page.shown.page.startswith("<!doctype html>")


def test_the_shipped_table_says_how_often_the_verdict_is_right():
    text = tables()
    rows = json.loads((ASSETS / "posteriors.json").read_text())["rows"]
    wrong = [row for row in rows if row["wrong"]]
    assert f"finds {sum(not r['ok'] for r in wrong)} of {len(wrong)} sets of draws that are wrong" in text
    assert text.count("<tr") == len(rows) + 1 and len({row["posterior"] for row in rows}) > 10


@pytest.mark.long
def test_a_fit_is_shown_and_a_change_that_is_right_takes_its_place(page, monkeypatch):
    label, method, given = WAYS["few"]
    monkeypatch.setitem(WAYS, "few", (label, method, (*given, "--set", "method.alpha=0.3")))  # narrow in 2 dimensions
    page.posterior.value, page.way.value = "correlated", "few"
    page.fit()
    page.fit()  # the second of two quick clicks
    ended(page)
    assert page.shown.ok is False and page.link() == "posterior=correlated&way=few"
    page.fit(way="smi")
    ended(page)
    assert page.shown.way == "few" and page.tried[0].ok and "right: sd × 1.0" in words(page)
    page.change("smi")  # it was measured: look at it
    assert page.shown.way == "smi" and page.shown.ok and [one.way for one in page.tried] == ["few"]
    page.change("twice smi")
    ended(page)
    more = next(one for one in page.tried if one.way == "twice smi")
    assert more.particles == 40 and more.title.endswith("with 40 particles")
    page.fit(reference=True)
    ended(page)
    rows = page.shown.report["reference"]
    assert (
        len(rows) == 2 and all(abs(row["sd ratio"] - 1) < 0.15 for row in rows) and "Against NUTS" in page.verdict.html
    )


@pytest.mark.long
def test_a_calibration_is_drawn_in_the_theme_beside_what_is_shown(page):
    page.way.value = "few"
    page.calibrate(50)
    job = page.turns.job
    page.fit()  # it runs alone
    assert page.turns.job is job and job.words[-2:] == ("--n", "50") and "bandwidth.rule=median_log" in job.words
    page.refresh()
    assert page.calibrated.button.disabled and page.run.disabled
    text = ended(page).calibrated.text
    assert not page.error.visible and page.calibrated.result.visible and page.shown is None
    assert "Calibration of SVGD, 20 points, as published, on Challenger O-rings" in text.html
    assert text.html.count('class="curve"') == 2 and "#066650" in text.html and "grey band" in text.html
    assert page.reading.object.startswith("SVGD is ") and page.reading.object.endswith("on 50 data sets. See below.")
    assert "intercept" in job.report and len(job.ranks.splitlines()) == 51
    page.shell.frame.dark_theme = True
    assert "#3ED8A5" in text.html and "#066650" not in text.html


def test_what_has_no_data_is_not_calibrated_and_the_page_says_why(page):
    assert page.calibrated.button.visible and "Is the method right" in page.calibrated.about.object
    page.posterior.value = "gaussian"
    assert not page.calibrated.button.visible and "is a density without data" in page.calibrated.about.object
    page.open({"posterior": "oring"})
    assert page.calibrated.button.visible


def test_a_calibration_can_be_cancelled(page):
    page.calibrate(50)
    page.turns.cancel()
    assert not ended(page).calibrated.result.visible and page.reading.object == "Cancelled."


@pytest.mark.long
def test_a_job_can_be_cancelled_and_draws_without_scores_are_those_of_the_chosen_posterior(page):
    page.fit()
    page.refresh()
    page.turns.job.cancel()
    assert ended(page).shown is None and page.reading.object == "Cancelled."
    page.posterior.value = "gaussian"
    page.upload(npz(draws=np.random.default_rng(0).normal(size=(500, 2)) + 1.0))
    assert ended(page).shown.ok is False and "sd above" in page.text.html


def test_a_bare_page_shows_an_example_that_gives_way_to_the_first_check():
    with set_curdoc(Document()):
        page = PosteriorPage(SimpleNamespace(frame=Frame()), {})
        assert all(
            words in page.verdict.html for words in ("Stack loss of a plant", "an example", "Too narrow, worst in")
        )
        assert page.shown.ok is False
        assert (
            "right: sd" in words(page)
            and page.shown.page.startswith("<!doctype html>")
            and json.dumps(page.shown.numbers)
        )
        page.change("smi")  # the other one takes its place
        assert page.shown.ok and page.shown.way == "smi"
        theta = np.random.default_rng(0).normal(size=(400, 3))
        page.upload(npz(draws=0.6 * theta, scores=-0.6 * theta))
        page.refresh()
        assert page.shown.way == "smi" and page.aside.visible and float(page.text.styles["opacity"]) < 1  # until then
        assert ended(page).shown.way == "upload" and not page.tried
        assert "opacity" not in page.text.styles and "0.59" in page.text.html
        again = PosteriorPage(SimpleNamespace(frame=Frame()), {"posterior": "gausian"})
        assert again.shown is None and again.error.visible


def test_a_link_names_what_is_wrong_and_keeps_the_rest():
    with set_curdoc(Document()):
        page = PosteriorPage(SimpleNamespace(frame=Frame()), {"posterior": "gausian", "way": "vi"})
    assert page.error.visible and "did you mean &#x27;gaussian&#x27;" in page.error.object and page.way.value == "vi"


def test_the_picture_of_costs_says_what_its_rows_say_and_has_a_mark_for_each():
    rows = json.loads((ASSETS / "tables_posteriordb.json").read_text(encoding="utf-8"))["rows"]
    assert len({row["row"] for row in rows}) == 12
    smi = sorted(row["numbers"]["gradients"] for row in rows if row["column"] == "SMI")
    assert smi[-1] < 80_000  # a tenth of 20 guides with 20 draws and 2,000 steps
    assert f"{(smi[5] + smi[6]) / 2:,.0f} gradients" in costs() and costs().count("<title>") == len(rows)
