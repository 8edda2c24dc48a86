"""Page "Which remedy": its numbers beside NumPy's and closed forms, its slots, its link, and its shipped runs."""

from dataclasses import replace
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from scipy import stats

from stein_core import METHODS, Spec, target_of, theory
from stein_core.base.samples import width_ratios
from stein_core.contract.spec import Options, target_at
from steinlab.pages.remedy import slots
from steinlab.pages.remedy.page import VIEW, Look, Remedy, fits, laws_of, shipped
from steinlab.pages.remedy.view import RemedyView, covariance_of, exact_widths, gradients_of, seen
from steinlab.stage.scene import density_of, is_product
from steinlab.stage.setup import Setup
from steinlab.ui import link

AR = Spec("autoregression", 6)


def matrix(rho, d):
    return rho ** np.abs(np.subtract.outer(np.arange(d), np.arange(d)))


@pytest.mark.parametrize("rho", [0.9, 0.0, -0.7])
def test_the_autoregression_is_its_normal_distribution(rho):
    target = target_at(AR, {"target.rho": rho})
    x = np.random.default_rng(0).normal(size=(5, 6))
    exact = stats.multivariate_normal(np.zeros(6), matrix(rho, 6))
    np.testing.assert_allclose([float(target.log_density(np.float32(row))) for row in x], exact.logpdf(x), rtol=2e-5)
    np.testing.assert_allclose(target.truth.matrix, matrix(rho, 6), atol=1e-6)
    draws = np.asarray(target.truth.sample(jax.random.key(0), 200_000), float)
    np.testing.assert_allclose(np.cov(draws.T), matrix(rho, 6), atol=0.015)


@pytest.mark.parametrize("name", ["banana_beside", "cross_beside"])
def test_a_plane_target_beside_normals(name):
    wide, plane = target_of(Spec(name, 5)), target_of(Spec({"banana_beside": "banana", "cross_beside": "cross"}[name]))
    x = np.float32(np.random.default_rng(0).normal(size=5))
    expected = float(plane.log_density(x[:2])) + stats.norm.logpdf(x[2:]).sum()
    assert float(wide.log_density(x)) == pytest.approx(expected, rel=1e-5)


def test_width_ratios_are_generalised_eigenvalues():
    rng = np.random.default_rng(1)
    x, sigma = rng.normal(size=(40, 4)) @ rng.normal(size=(4, 4)), matrix(0.6, 4) + np.eye(4)
    expected = np.sort(np.linalg.eigvals(np.linalg.solve(sigma, np.cov(x.T))).real)
    np.testing.assert_allclose(width_ratios(x, sigma), expected, rtol=1e-8)
    few = width_ratios(x[:3], sigma)  # three points have a width in two directions
    assert few[:2] == pytest.approx(0, abs=1e-12) and few[2] > 0.1


def test_exact_draws_have_the_range_of_marchenko_and_pastur():
    """The extreme eigenvalues of n draws in d dimensions are near (1 -+ sqrt(d / n))^2."""
    spec = Spec("autoregression", 20)
    least, most = exact_widths(spec, Options({}), 400)
    ratio = np.sqrt(20 / 400)
    assert least == pytest.approx((1 - ratio) ** 2, rel=0.08) and most == pytest.approx((1 + ratio) ** 2, rel=0.08)


def test_the_numbers_of_a_moment():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(30, 6))
    x[:, 0] = 0.01 * x[:, 0]
    frame = SimpleNamespace(locations=x, step=7)
    run = SimpleNamespace(knobs={"target.rho": 0.5}, methods={"newton": SimpleNamespace(seconds=0.25)})
    one = seen(3, AR.carried_to(method="newton"), frame, {"force": 2.0}, run)
    assert one.variance == pytest.approx(np.trace(np.cov(x.T)) / 6)
    ratios = width_ratios(x, matrix(0.5, 6))
    assert (one.least, one.most) == pytest.approx((ratios[0], ratios[-1]), rel=1e-5) and one.least < 1e-3
    assert (one.begun, one.step, one.seconds, one.force) == (3, 7, 0.25, 2.0)
    assert one.gradients == 7 * 30 * (1 + 6)  # with a Hessian at each particle
    assert gradients_of("noisy", 30, 6) == 30


def test_a_target_without_moments_has_no_shares():
    assert covariance_of(Spec("ksivi_banana"), Options({})) is not None
    frame, run = SimpleNamespace(locations=np.zeros((4, 2)), step=0), SimpleNamespace(knobs={})
    assert np.isnan(seen(1, Spec("student2"), frame, {"force": 1.0}, run).least)


def test_slots_have_every_method_that_changes_svgd_in_one_place():
    there = [name for names in slots.remedies().values() for name in names]
    assert sorted(there) == sorted(e.name for e in METHODS.entries() if e.facts.slot) and len(set(there)) == len(there)
    assert all(METHODS[name].facts.formula for name in there)
    assert slots.unfit(("svgd", "noisy")) == slots.unfit(("svgd",)) == ""
    assert "ignored" in slots.unfit(("svgd", "smi")) and "ignored" in slots.unfit(("noisy", "svgd"))


def test_laws_are_those_of_theory_with_the_settings_on_screen():
    setup = Remedy.plain
    laws = laws_of(setup, ("svgd", "random_subspace"))
    dims, values = laws["svgd"]
    assert values[dims.index(50)] == pytest.approx(theory.simplex_variance(50, 20), rel=1e-6) and min(dims) == 19
    dims, values = laws["random_subspace"]
    assert values[dims.index(50)] == pytest.approx(0.763, abs=1e-3)


def test_the_link_has_the_axes():
    assert (
        link.write(VIEW, Look((2, 0)), Look()) == "axes=3,1" or link.write(VIEW, Look((2, 0)), Look()) == "axes=3%2C1"
    )
    assert link.read(VIEW, {"axes": "3,1"}, Look())[0] == Look((2, 0))
    for wrong in ("1,1", "0,2", "1", "a,b", "1,5000"):
        found, problems = link.read(VIEW, {"axes": wrong}, Look())
        assert found == Look() and wrong in problems["axes"]


def test_two_coordinates_show_their_marginal_density():
    assert is_product(target_of(Spec("gaussian", 4)), (0, 3)) and is_product(
        target_of(Spec("banana_beside", 4)), (0, 1)
    )
    assert not is_product(target_of(Spec("autoregression", 4)), (0, 1))
    assert not is_product(target_of(Spec("banana_beside", 4)), (0, 2))
    view = RemedyView((0, 3), lambda moments: None)
    assert view.drawn(4) == (0, 3) and view.drawn(3) == (0, 1)
    here = density_of(Spec("autoregression", 4), {"target.rho": 0.9}, (0, 3))
    far = density_of(Spec("autoregression", 4), {"target.rho": 0.0}, (0, 3))
    tilt = [np.corrcoef(np.reshape(one["draws"], (-1, 2)).T)[0, 1] for one in (here, far)]
    assert tilt[0] == pytest.approx(0.9**3, abs=0.1) and tilt[1] == pytest.approx(0, abs=0.2)
    assert "exact draws" in here["labels"][0] and here["labels"][1] == "θ₄"


def test_shipped_runs_have_the_variance_of_their_laws():
    """Where a law is exact, to 1 %; the noise of a leading one's runs is a few per cent."""
    assert {row["method"] for row in shipped()} >= {"svgd", *slots.remedies()["front"], "noisy", "random_subspace"}
    held = 0
    for row in shipped():
        facts = METHODS[row["method"]].facts
        spec = Spec("gaussian", row["dim"], row["method"], optimizer="sgd")
        knobs = {name: knob.default for name, knob in spec.knobs().items()} | row["recipe"]["knobs"]
        law = facts.law(row["dim"], row["particles"], knobs)
        if np.isfinite(law) and row["stopped"] == "converged" and row["method"] != "blocks":
            assert row["sample_variance"] == pytest.approx(law, rel=0.2 if facts.leading else 0.01), row["key"]
            held += 1
    assert held > 20


def test_a_shipped_run_is_shown_with_its_own_settings_only():
    row = next(row for row in shipped() if row["method"] == "noisy" and row["particles"] == 20)
    knobs = {"method.particles": 20, "method.step_size": 0.7}
    like = Setup("gaussian", ("svgd", "noisy"), dim=50, optimizer="sgd", knobs=knobs)
    assert fits(row, like)
    for other in ({"method.particles": 21}, {"method.beta": 3.0}, {"kernel.name": "imq"}):
        assert not fits(row, replace(like, knobs={**knobs, **other}))
