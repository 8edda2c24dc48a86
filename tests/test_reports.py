"""What a report shows and says of itself: its figure, its page, and how the draws were made."""

import html
import json
import re
import xml.etree.ElementTree as ET
from importlib.metadata import version

import jax.numpy as jnp
import numpy as np
import pytest
from test_cli import run  # noqa: F401  (a fixture)

from stein_core import collect, diagnose, fit, from_density, target_of
from stein_core.base.arviz_api import from_groups
from stein_core.contract.recipe import Recipe
from stein_core.contract.spec import Spec
from stein_core.posterior.evidence import CHECKS, Finding
from stein_core.posterior.fitted import Fit, fit_of

X = np.random.default_rng(0).normal(size=(400, 3)) * [1.0, 1.0, 0.6]
SVG = "{http://www.w3.org/2000/svg}"


def bands_and_lines(report):
    """Return what each panel of the figure has: label, line, band, numbers of the dots and numbers that are written."""
    found = []
    for axes in report.plot().figure.axes:
        (band,) = axes.patches
        dots, line = axes.lines[1], axes.lines[0]
        low, high = band.get_x(), band.get_x() + band.get_width()
        assert dots.get_markersize() > 3 and line.get_linewidth() >= 1 and dots.get_alpha() is None
        found.append((line.get_xdata()[0], low, high, list(dots.get_xdata()), [text.get_text() for text in axes.texts]))
    return found


def test_the_figure_has_a_line_a_band_and_a_number_for_each_coordinate_of_each_check():
    scores = -X / [1.0, 1.0, 1.0]  # a standard normal, and the third coordinate is 0.6 times as wide
    report = diagnose(X, scores=scores, reference=np.random.default_rng(1).normal(size=(2000, 3)))
    location, width, tails, trace, reference = bands_and_lines(report)
    assert (location[0], width[0]) == (0, 1) and width[1] == pytest.approx(0.85) and width[2] == pytest.approx(1 / 0.85)
    assert location[1:3] == pytest.approx((-0.2, 0.2)) and trace[1] == pytest.approx(0.85**2)
    ratios = sorted(X.std(axis=0, ddof=1), key=lambda ratio: -abs(ratio - 1))  # of a standard normal
    assert [float(text) for text in width[4]] == pytest.approx(ratios, abs=0.006)
    assert width[3] == pytest.approx(ratios, abs=0.006)
    assert float(reference[4][0]) == pytest.approx(0.6, abs=0.05)


def test_a_figure_is_never_empty_and_says_the_verdict(tmp_path):
    lost = diagnose(np.zeros((50, 2)) + np.arange(50)[:, None], scores=np.full((50, 2), np.nan))
    unscored, huge = diagnose(X), diagnose(np.r_[X, X + 1e9], scores=np.r_[-X, -X])
    for report in (lost, unscored, huge):
        svg = report.plot()._repr_svg_()
        root = ET.fromstring(svg)
        assert root.tag == f"{SVG}svg" and svg.count("<use") > 50  # letters are drawn
        texts = [each.get_text().replace("\n", " ") for each in report.plot().figure.findobj(match=type_of_text())]
        assert report.verdict in texts and any("versions" in text for text in texts)
    assert any("no finite score" in text for text in [each.get_text() for each in lost.plot().figure.axes[0].texts])
    for name in ("a.pdf", "a.svg", "a.png"):
        lost.plot().save(tmp_path / name)
        assert (tmp_path / name).stat().st_size > 3000


def type_of_text():
    from matplotlib.text import Text

    return Text


def test_a_notebook_shows_the_whole_report_and_its_style_stays_in_it():
    report = diagnose(X, scores=-X)
    page, part = report.to_html(), report._repr_html_()
    assert part in page and report.verdict in part and "<!doctype" not in part and "<html" not in part
    for title in ("Are the draws where the density says?", "All checks", "What was checked"):
        assert title in part
    style = re.search("<style>(.*)</style>", part, re.DOTALL)[1]
    depth, top = 0, ""
    for letter in style:  # what is outside of all braces selects
        depth += (letter == "{") - (letter == "}")
        top += letter if depth == 0 and letter != "}" else ""
    assert depth == 0 and all(each.startswith(".steinlab") for each in top.split("\n") if each.strip())


@pytest.mark.long
def test_a_report_of_a_fit_says_what_repeats_it():
    made = fit("gaussian", steps=40, seed=3, particles=6, knobs={"method.alpha": 0.2}, progress=False)
    report = diagnose(made)
    about = report.about
    assert about["posterior"] == "gaussian" and about["seed"] == 3 and about["steps"] == 40
    assert about["method"] == "SMI" and about["guide"] == made.recipe.spec.guide and about["draws"] == 4000
    assert about["knobs"]["method.alpha"] == 0.2 and about["knobs"]["method.particles"] == 6
    assert about["versions"]["jax"] == version("jax") and about["versions"]["numpyro"] == version("numpyro")
    assert re.fullmatch(r"20\d\d-\d\d-\d\d \d\d:\d\d UTC", about["date"]) and about["date"] == report.about["date"]
    assert json.loads(report.to_json())["about"]["knobs"]["method.alpha"] == 0.2
    for text in (str(report), report.to_html()):
        for fact in ("gaussian", "method.alpha 0.2", f"jax {version('jax')}", about["date"], version("numpyro")):
            assert fact in text
    spec = Spec("correlated", 2, "svgd")
    stage = diagnose(fit_of(Recipe(spec, seed=5), X[:30, :2], step=70)).about
    assert (stage["posterior"], stage["steps"], stage["seed"], stage["of"]) == ("correlated", 70, 5, "particles")


def test_a_report_of_draws_from_elsewhere_says_what_was_handed_in(run, tmp_path):  # noqa: F811
    target = from_density(gauss, np.zeros(3), ("a", "b", "c"))
    chains = diagnose(X.reshape(4, 100, 3), target, reference=X[None, :50].repeat(2, axis=0))
    assert chains.about["of"] == "4 chains of 100" and chains.about["reference"] == "2 chains of 50 draws"
    assert chains.about["posterior"] == "gauss" and chains.about["scores"] == "of the posterior"
    assert chains.about["coordinate names"] == "a, b, c" and "method" not in chains.about
    np.savez(tmp_path / "mine.npz", draws=X, scores=-X)
    code, out, err = run("diagnose", tmp_path / "mine.npz", "--out", tmp_path / "r.html")
    assert "name: mine.npz; draws: 400; of: independent draws, or one chain; coordinates: 3" in out
    assert "scores: handed in" in out and "mine.npz" in (tmp_path / "r.html").read_text()
    run("diagnose", tmp_path / "mine.npz", "--out", tmp_path / "r.json", "--name", "my draws")
    assert json.loads((tmp_path / "r.json").read_text())["about"]["name"] == "my draws"


def gauss(theta):
    return -0.5 * jnp.sum(theta**2)


def test_the_law_of_a_random_walk_on_a_standard_normal_is_told_of_no_other_density():
    """Langevin with step size e on N(0, s^2) has the Stein trace 1 / (1 - e / (2 s^2)), by its autoregression."""
    step, variance, x = 0.1, 0.25, np.random.default_rng(0).normal(size=40_000)
    for _ in range(100):
        x = x - step / variance * x + np.sqrt(2 * step) * np.random.default_rng(_).normal(size=40_000)
    assert x.var() / variance == pytest.approx(1 / (1 - step / (2 * variance)), rel=0.03)  # 1.25, not 1.05
    walk = diagnose(fit_of(Recipe(Spec("correlated", 2, "langevin", capacity=32)), X[:20, :2], step=70))
    assert not np.isfinite(walk.evidence.law) and "count" not in walk.findings
    few = diagnose(fit_of(Recipe(Spec("gaussian", 50, "svgd", capacity=32)), np.eye(50)[:20], step=70))
    assert "By its law the Stein trace of 20 particles" in few.findings["count"].sentence


def test_a_reference_with_divergences_is_told_and_blames_nobody_alone():
    rng = np.random.default_rng(0)
    draws, right = rng.normal(size=(1000, 2)), rng.normal(size=(4, 500, 2))
    diverging = np.arange(500) < np.array([[3], [0], [4], [0]])
    target = from_density(gauss, np.zeros(2), ("a", "b"))

    def chains(x, stats=True):
        named = {"a": x[..., 0], "b": x[..., 1]}
        return from_groups({"posterior": named, **({"sample_stats": {"diverging": diverging}} if stats else {})})

    clean = diagnose(draws, target, reference=chains(0.5 * right, stats=False))
    assert clean.ok is False and "of the reference's width" in clean.verdict  # without divergences it is believed
    doubted = diagnose(draws, target, reference=chains(0.5 * right))
    assert doubted.ok is None and doubted.findings["reference"].wrong is None
    assert doubted.verdict.startswith("No fault was found") and "the reference has 7 divergences" in doubted.verdict
    assert "7 of its draws ended a diverging trajectory" in str(doubted)
    assert doubted.about["divergences of the reference"] == 7
    agreed = diagnose(draws, target, reference=chains(right))
    assert agreed.ok and "but the reference has 7 divergences" in agreed.verdict
    narrow = diagnose(0.5 * draws, target, reference=chains(right))
    assert narrow.ok is False and "Too narrow" in narrow.verdict  # the scores say so, too


@pytest.mark.long
def test_nuts_counts_its_divergences(optimized):
    from stein_core.posterior.reference import nuts

    def funnel(theta):  # Neal's: trajectories diverge in its neck
        return -0.5 * (theta[0] / 3) ** 2 - 0.5 * jnp.sum(theta[1:] ** 2) * jnp.exp(-theta[0]) - 4.5 * theta[0]

    found = {
        name: nuts(from_density(f, np.zeros(10)), warmup=200, samples=300) for name, f in (("f", funnel), ("g", gauss))
    }
    assert found["f"].diverging > 5 and found["g"].diverging == 0 and found["f"].shape == (4, 300, 10)
    assert (
        diagnose(np.array(found["g"][0]), scores=-np.array(found["g"][0]), reference=found["g"]).about[
            "divergences of the reference"
        ]
        == 0
    )


def test_a_check_stands_under_its_question_by_its_fact_alone(monkeypatch):
    monkeypatch.setattr(CHECKS, "_entries", dict(CHECKS._entries))

    @CHECKS.register("mine", label="Mine", reference="-", judges=False, question=3)
    def mine(seen):
        "Say something."
        return Finding(1.0, 1.0, 0.0, False, "Mine says hello.")

    draws = np.random.default_rng(0).normal(size=(200, 2))
    answers = diagnose(draws, scores=-draws).to_html().split("<h2>All checks")[0]
    assert "Mine says hello." in answers.split("<b>3</b>")[1]


def test_what_holds_arrays_is_printed_in_one_line_and_is_equal_to_itself_only():
    x = np.random.default_rng(0).normal(size=(500, 3))
    report, other = (diagnose(0.5 * x, scores=-0.5 * x) for _ in range(2))
    assert repr(report) == f"<Report: {report.verdict}>" and report.verdict.startswith("Too narrow, worst in x")
    assert repr(report.evidence) == "<Evidence: 500 draws of 3 coordinates>"
    assert report == report and report != other and report.evidence != other.evidence  # no arrays are compared
    frame = collect(Recipe(Spec("gaussian", method="svgd"), {"method.particles": 7}), steps=3)[-1]
    assert repr(frame) == "<Frame at step 3: 7 particles>"
    fitted = Fit(target_of(Spec("gaussian")), x[:, :2], None, Recipe(Spec("gaussian", method="svgd")))
    assert repr(fitted).startswith("<Fit of <Target of 2 coordinates: ")
    assert repr(fitted).endswith("by SVGD: 500 draws of 2 coordinates>")


def test_a_report_says_how_its_draws_were_made_for_a_methods_section():
    target = from_density(lambda x: -0.5 * jnp.sum(x**2), np.zeros(2))
    made = fit(target, method="svgd", particles=30, steps=40, seed=7, progress=False)
    text = diagnose(made).methods
    for part in ("by SVGD [Liu & Wang 2016, eq. 8] with 30 particles", "2 unconstrained coordinates", "seed 7"):
        assert part in text
    assert f"JAX {version('jax')}" in text and f"{made.gradients:,} gradients" in text
    assert html.escape(text) in diagnose(made).to_html() and diagnose(made).to_dict()["methods"] == text
    vi = diagnose(fit(target, method="vi", steps=40, progress=False)).methods
    assert "with 1 guide (diagonal normal)" in vi and "Rønning et al. 2025" in vi
    handed = diagnose(X, scores=-X, reference=X).methods
    assert handed.startswith("We checked 400 draws of a posterior") and "NumPyro" not in handed


def test_one_point_is_a_fit():
    made = fit(from_density(lambda x: -0.5 * jnp.sum((x - 3) ** 2), np.zeros(2)), method="map", progress=False)
    assert made.draws.shape == (1, 2) and made.draws == pytest.approx(3, abs=0.01)
    assert "1 draw was checked" in diagnose(made).methods
