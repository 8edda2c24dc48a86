"""Reports on draws whose faults are known, against closed forms."""

import json
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from checks import COMPILE
from scipy.spatial.distance import cdist
from test_cli import run  # noqa: F401  (a fixture)

from stein_core import Report, Spec, collect, diagnose, fit, from_density, from_numpyro, from_rows, target_of
from stein_core.base.arviz_api import from_groups, pareto_k
from stein_core.base.distances import stein_matrix
from stein_core.contract.known import Start, Truth
from stein_core.contract.recipe import Recipe
from stein_core.contract.spec import data_of
from stein_core.posterior.discrepancy import discrepancy
from stein_core.posterior.evidence import CHECKS, Evidence
from stein_core.posterior.fitted import fit_of
from stein_core.posterior.functionals import control_functionals
from stein_core.posterior.regression import implied
from stein_core.targets.own.decentring import funnels
from stein_core.targets.own.numpyro_models import ModelWarning
from stein_core.theory import simplex_variance

COVARIANCE = np.array([[4.0, 1.5, 0.0], [1.5, 1.0, -0.2], [0.0, -0.2, 0.25]])
MEAN = np.array([3.0, -1.0, 100.0])


def scores_of(x):
    return -(x - MEAN) @ np.linalg.inv(COVARIANCE)


def normal(n, seed=0, mean=MEAN, covariance=COVARIANCE):
    return np.random.default_rng(seed).multivariate_normal(mean, covariance, n)


@pytest.mark.parametrize("n", [6, 50, 4000])
@pytest.mark.parametrize("shift, factor", [(0.0, 1.0), (0.5, 1.0), (0.0, 0.7), (-1.0, 2.0)])
def test_on_a_normal_target_the_scores_imply_its_mean_and_sds_whatever_the_draws(n, shift, factor):
    sd = np.sqrt(np.diagonal(COVARIANCE))
    x = MEAN + shift * sd + factor * (normal(n) - MEAN)
    ratios, shifts = implied(x, scores_of(x))
    np.testing.assert_allclose(ratios, x.std(axis=0, ddof=1) / sd, rtol=1e-6)
    np.testing.assert_allclose(shifts, (x.mean(axis=0) - MEAN) / sd, atol=1e-6)


def test_right_draws_are_not_blamed_and_wrong_ones_are_called_what_they_are():
    sd = np.sqrt(np.diagonal(COVARIANCE))
    verdicts = []
    for seed in range(40):
        x = normal(400, seed)
        verdicts.append(diagnose(x, scores=scores_of(x)).ok)
    assert sum(verdicts) >= 38
    for shift, factor, words in (
        (0.5, 1.0, "x1 is 0.5"),
        (0.0, 0.7, "Too narrow, worst"),
        (0.0, 1.4, "Too wide, worst"),
    ):
        x = MEAN + shift * sd + factor * (normal(4000) - MEAN)
        report = diagnose(x, scores=scores_of(x))
        assert report.ok is False
        said = report.verdict if "Too" in words else str(report.findings["location"].each)
        assert words in said or abs(report.findings["location"].value - 0.5) < 0.1, report.verdict


def test_the_stein_trace_is_that_of_the_runs_own_diagnostic():
    spec = Spec("correlated", dim=4, method="svgd", capacity=16)
    frame = collect(Recipe(spec, {"method.particles": 12}), 20, measure=("stein_trace",))[-1]
    found = diagnose(frame.particles, target_of(spec)).findings["stein_trace"].value
    assert found == pytest.approx(frame.metrics["stein_trace"], rel=1e-4)


def test_a_reference_sees_what_scores_do_not_and_needs_none():
    x = normal(2000)
    right, wide = diagnose(x, reference=normal(2000, 1)), diagnose(x, scores=scores_of(x), reference=2 * x)
    assert right.ok and not right.findings["reference"].wrong
    assert wide.ok is False and "of the reference's width" in wide.verdict
    only = x.copy()
    only[:, 2] += 0.3 * x[:, 2].std()
    finding = diagnose(x, reference=only[None]).findings["reference"]
    assert finding.wrong and finding.sentence.startswith("x3 has") and "-0.30 sd off" in finding.sentence


def test_without_scores_nobody_can_tell_and_the_report_shows_how_to_add_them():
    report = diagnose(normal(100))
    assert report.ok is None and "cannot be checked" in report.verdict and "np.savez" in str(report)


def test_draws_without_variance_and_too_few_are_named():
    x = normal(50)
    x[:, 1] = 2.0
    report = diagnose(x, scores=scores_of(x))
    assert report.ok is False and "All draws have the same x2" in report.verdict
    few = normal(3)
    assert "span at most 2 of 3 directions" in diagnose(few, scores=scores_of(few)).verdict


def test_draws_outside_of_the_density_are_counted_and_nothing_else_is_claimed():
    x = normal(50)
    scores = scores_of(x)
    scores[[3, 7]] = np.nan
    report = diagnose(x, scores=scores)
    assert report.ok is False and "2 of 50 draws have no finite score" in report.verdict
    assert "Try" not in report.verdict
    judged = {name for name in report.findings if CHECKS[name].facts.judges}
    assert judged == {"finite"} and "2 of 50" in report.to_html() and json.loads(report.to_json())


@pytest.mark.parametrize("lost", [slice(None), slice(10, None)])
def test_when_hardly_a_draw_has_a_score_the_report_says_what_to_do(lost):
    x = normal(50) * 1e9
    scores = scores_of(x)
    scores[lost] = np.nan
    report = diagnose(x, scores=scores)
    for text in (report.verdict, str(report), report.to_html()):
        assert "Try other coordinates (scaled or raw), NUTS, or priors with lighter tails." in text
    assert report.ok is False and json.loads(report.to_json())["findings"]["finite"]["value"] == len(range(50)[lost])


def test_draws_in_a_plane_and_many_coordinates_are_not_taken_for_several_modes():
    x = normal(200)
    x[:, 2] = x[:, 0] - 2 * x[:, 1]
    assert "In 1 of 3 directions" in diagnose(x, scores=scores_of(x)).verdict
    many = np.random.default_rng(0).normal(size=(1000, 401))
    report = diagnose(many, scores=-many)
    assert report.ok is None and "curvature" not in report.findings
    two = np.random.default_rng(0).choice([-3.0, 3.0], 400)[:, None] + 0.1 * normal(400)[:, :1]
    report = diagnose(two, scores=two)  # a density that grows outwards
    assert report.findings["curvature"].wrong


def test_a_missing_log_jacobian_shows_in_its_coordinate():
    rng = np.random.default_rng(0)
    rate, shape = 2.0, 3.0  # of a gamma; theta = log x has scores shape - rate x, without the Jacobian one less
    theta = np.column_stack([np.log(rng.gamma(shape, 1 / rate, 4000)), rng.normal(size=4000)])
    right = np.column_stack([shape - rate * np.exp(theta[:, 0]), -theta[:, 1]])
    assert diagnose(theta, scores=right).ok
    report = diagnose(theta, scores=right - [1.0, 0.0])
    location = report.findings["location"]
    assert report.ok is False and abs(location.each["x1"]) > 0.3 > abs(location.each["x2"])


def test_chains_that_do_not_agree():
    rng = np.random.default_rng(0)
    same = rng.normal(size=(4, 250, 2))
    assert not diagnose(same, scores=-same).findings["chains"].wrong
    apart = same + np.array([0.0, 0.0, 0.0, 3.0])[:, None, None]
    assert diagnose(apart, scores=-apart).findings["chains"].wrong


@pytest.mark.parametrize("k", [0.3, 0.9])
def test_paretos_k_is_that_of_the_law_that_the_weights_have(k):
    weights = k * np.random.default_rng(0).exponential(size=20_000)  # their exponential is Pareto's, with this k
    assert pareto_k(weights) == pytest.approx(k, abs=0.06)


def test_named_values_and_arviz_are_mapped_to_theta():
    def model(y):
        m = numpyro.sample("m", dist.Normal(0, 1))
        numpyro.sample("y", dist.Normal(m, numpyro.sample("s", dist.HalfNormal(1))), obs=y)

    with jax.enable_x64():
        target = from_numpyro(model, np.arange(5.0))
    rng = np.random.default_rng(0)
    values = {"m": rng.normal(size=40), "s": rng.uniform(1, 2, 40)}
    one = diagnose(values, target)
    np.testing.assert_allclose(one.evidence.draws, np.column_stack([values["m"], np.log(values["s"])]))
    chains = {name: rows.reshape(2, 20) for name, rows in values.items()}
    two = diagnose(from_groups({"posterior": chains}), target)
    np.testing.assert_allclose(two.evidence.draws, one.evidence.draws)
    assert two.evidence.chains == 2
    with pytest.raises(ValueError, match="'s'"):
        diagnose({"m": values["m"]}, target)


@pytest.mark.parametrize(
    "draws, scores, message",
    [
        (np.array([[0.0, 1.0], [np.nan, 2.0]]), None, "row 1, column 0 is nan"),
        (np.zeros(3), None, r"shape \(3,\)"),
        (np.zeros((0, 2)), None, r"shape \(0, 2\)"),
        (np.zeros((4, 2)), np.zeros((3, 2)), "scores have shape"),
    ],
)
def test_what_is_wrong_with_draws_is_named(draws, scores, message):
    with pytest.raises(ValueError, match=message):
        diagnose(draws, scores=scores)


def test_a_report_is_one_page_that_loads_nothing_and_escapes_names(tmp_path):
    x = normal(200)
    target = from_density(
        lambda x: -0.5 * (x - MEAN) @ np.linalg.inv(COVARIANCE) @ (x - MEAN), MEAN, ("<script>a", "b", "c")
    )
    report = diagnose(x, target)
    page = report.to_html(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text() == page and "&lt;script&gt;a" in page
    assert "<script" not in page and "href" not in page and "src=" not in page and 'class="bars"' in page
    assert json.loads(report.to_json())["verdict"] == report.verdict
    assert report.plot()._repr_svg_().startswith("<svg")


def test_ten_thousand_coordinates_get_a_sentence(tmp_path):
    x = np.random.default_rng(0).normal(size=(30, 10_000))
    report = diagnose(x, scores=-x)
    assert "30 draws span at most 29 of 10000 directions" in report.verdict


def test_the_command_line_checks_a_file(run, tmp_path):  # noqa: F811
    theta = np.random.default_rng(0).normal(size=(300, 2))
    np.savez(tmp_path / "right.npz", draws=theta, scores=-theta)
    np.savez(tmp_path / "narrow.npz", draws=0.6 * theta)
    code, out, _ = run("diagnose", tmp_path / "right.npz")
    assert code == 0 and out.startswith("No sign")
    (tmp_path / "mine.csv").write_text("height,slope\n" + "".join(f"{x},1.0\n" for x in theta[:, 0]))
    code, out, _ = run("diagnose", tmp_path / "mine.csv")
    assert code == 0 and "All draws have the same slope." in out
    code, out, _ = run("diagnose", tmp_path / "narrow.npz", "--model", "gaussian", "--json")
    assert code == 4 and json.loads(out)["findings"]["width"]["value"] == pytest.approx(0.6, rel=0.15)
    np.savez(tmp_path / "odd.npz", draws=np.array([{}, {}], dtype=object))
    (tmp_path / "bad.csv").write_text("a,b\n1,2\n3,x\n")
    (tmp_path / "notes.txt").write_text("1")
    for file, message in (
        ("odd.npz", "Python objects as 'draws.npy'"),
        ("bad.csv", "row 3, column 'b' is 'x'"),
        ("notes.txt", "allowed: .npz, .csv, .nc"),
        ("none.npz", "no such file"),
    ):
        code, _, err = run("diagnose", tmp_path / file)
        assert code == 2 and message in err, err


def test_the_command_line_reads_arvizs_files(run, tmp_path):  # noqa: F811
    chains = np.random.default_rng(0).normal(size=(4, 100, 2))
    from_groups({"posterior": {"a": chains[..., 0], "b": chains[..., 1]}}).to_netcdf(tmp_path / "right.nc")
    code, out, _ = run("diagnose", tmp_path / "right.nc")
    assert code == 0 and "cannot be checked" in out and "R-hat" in out
    from_groups({"prior": {"a": chains[..., 0]}}).to_netcdf(tmp_path / "prior.nc")
    (tmp_path / "odd.nc").write_bytes(b"CDF no file")
    for file, message in (("prior.nc", "has no group 'posterior'"), ("odd.nc", "cannot be read")):
        code, _, err = run("diagnose", tmp_path / file)
        assert code == 2 and message in err, err


def test_a_plain_density_becomes_a_target():
    inverse = jnp.asarray(np.linalg.inv(COVARIANCE))
    target = from_density(
        lambda x: -0.5 * (x - MEAN) @ inverse.astype(x.dtype) @ (x - MEAN), np.zeros(3), ("a", "b", "c")
    )
    np.testing.assert_allclose(target.start.center, MEAN, atol=1e-3)
    np.testing.assert_allclose(target.start.root @ target.start.root.T, COVARIANCE, atol=1e-3)
    x = normal(300)
    report = diagnose({name: x[:, i] for i, name in enumerate("abc")}, target)
    assert report.ok and report.evidence.names == ("a", "b", "c")
    for start, names, message in (([[0.0]], None, "allowed: d finite"), ([0.0], ("a", "b"), "names has 2 entries")):
        with pytest.raises(ValueError, match=message):
            from_density(lambda x: -x @ x, start, names)
    with pytest.raises(ValueError, match=r"shape \(2,\)"):
        from_density(lambda x: -x, [0.0, 1.0])


@pytest.mark.long
def test_a_fit_of_a_model_is_right_and_says_so_and_a_collapsed_one_says_that(run, tmp_path):  # noqa: F811
    (tmp_path / "my_model.py").write_text(
        "import numpyro, numpyro.distributions as dist\n"
        "def model(x, y):\n"
        "    a = numpyro.sample('a', dist.Normal(0, 10).expand([8]).to_event(1))\n"
        "    numpyro.sample('y', dist.Normal(x @ a, 1.0), obs=y)\n"
    )
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 8)) @ np.diag(np.geomspace(0.1, 10, 8))
    y = x @ rng.normal(size=8) + rng.normal(size=60)
    np.savez(tmp_path / "data.npz", x=x, y=y)
    precision = x.T @ x + np.eye(8) / 100
    exact = np.linalg.solve(precision, x.T @ y), np.sqrt(np.diagonal(np.linalg.inv(precision)))
    model, data, draws = f"{tmp_path}/my_model.py:model", tmp_path / "data.npz", tmp_path / "draws.npz"
    code, out, err = run("fit", model, "--data", data, "--draws", draws, "--json")
    assert code == 0, err
    with np.load(draws) as file:
        a = file["a"]
    assert np.abs(a.mean(axis=0) - exact[0]).max() < 0.1 * exact[1].min() + 0.1 * exact[1].max()
    np.testing.assert_allclose((a.mean(axis=0) - exact[0]) / exact[1], 0, atol=0.1)
    np.testing.assert_allclose(a.std(axis=0) / exact[1], 1, atol=0.1)
    few = ["--method", "svgd", "--particles", "8", "--set", "bandwidth.rule=median_log"]
    code, out, _ = run("fit", model, "--data", data, *few)
    assert code == 4 and "span at most 7 of 8 directions" in out and "it is the collapse that its law says" in out
    code, _, err = run("fit", f"{tmp_path}/my_model.py:mdel", "--data", data)
    assert code == 2 and "did you mean 'model'" in err
    code, _, err = run("fit", model)
    assert code == 2 and "--data has: nothing" in err


def test_a_sampler_cannot_be_fitted_and_a_wrong_method_has_a_nearest_match():
    with pytest.raises(ValueError, match="did you mean 'svgd'"):
        fit("gaussian", method="svdg")


@pytest.mark.long
def test_log_densities_and_draws_of_a_fit_agree_with_the_closed_form():
    """One guide on a correlated normal: the mean-field optimum in whitened coordinates is the posterior itself."""
    made = fit("correlated", method="vi", progress=False)
    target = made.target
    np.testing.assert_allclose(np.cov(made.draws.T), target.truth.covariance, rtol=0.1, atol=0.05)
    exact = [
        float(jax.scipy.stats.multivariate_normal.logpdf(jnp.asarray(row), target.truth.mean, target.truth.covariance))
        for row in made.draws[:50]
    ]
    np.testing.assert_allclose(made.log_q[:50], exact, atol=0.15)
    assert diagnose(made).ok and made.to_arviz().posterior.sizes["draw"] == len(made.draws)


@pytest.mark.long
@pytest.mark.parametrize("coordinates", ["whitened", "scaled"])
def test_coordinates_that_a_fit_contradicts_are_found_anew(coordinates, counted):
    plain = target_of(Spec("gaussian", 3, "vi"))
    off = replace(plain, start=Start(np.full(3, 4.0), np.full(3, 0.2)), truth=Truth())
    compiled = {}
    with counted() as n:
        tell = lambda done, total: compiled.setdefault(done, n[COMPILE])  # noqa: E731
        made = fit(off, method="vi", coordinates=coordinates, progress=tell)
    assert made.rounds > 1 and made.consistent
    assert compiled[25] > 1 and compiled[1000] - compiled[500] <= 2  # the draws of a mixture and their scores, once
    np.testing.assert_allclose(made.draws.mean(axis=0), 0.0, atol=0.1)
    np.testing.assert_allclose(made.draws.std(axis=0), 1.0, rtol=0.1)


def test_the_tails_check_leaves_right_draws_of_a_funnel_alone_and_sees_a_normal_fit_of_it():
    """v ~ N(0, 1.5^2), x_i | v ~ N(0, e^v). The best normal with independent coordinates has an sd of v of
    (2 + 2 / 4.5)^-1/2 = 0.64, and passes the two moments that `width` and `location` read."""

    def scores_at(v, x):
        each = np.exp(-v)[:, None] * x**2
        return np.column_stack([-v / 1.5**2 + 0.5 * np.sum(each - 1, axis=1), -np.exp(-v)[:, None] * x])

    for seed in range(20):
        rng = np.random.default_rng(seed)
        v = 1.5 * rng.normal(size=2000)
        x = np.exp(v / 2)[:, None] * rng.normal(size=(2000, 4))
        assert not diagnose(np.column_stack([v, x]), scores=scores_at(v, x)).findings["tails"].wrong
    sd = (2 + 2 / 4.5) ** -0.5
    v, x = sd * rng.normal(size=4000), np.exp(-(sd**2) / 4) * rng.normal(size=(4000, 4))
    found = diagnose(np.column_stack([v, x]), scores=scores_at(v, x)).findings
    assert found["tails"].wrong and found["tails"].each["x1"] < 0.75 and not found["width"].wrong


def test_the_tails_check_sees_draws_that_lie_far_out_where_scores_are_flat():
    """The logarithm of a half-Cauchy scale has density sech(v) / pi, sd pi / 2 and bounded scores."""
    rng = np.random.default_rng(0)
    v = np.log(np.tan(np.pi / 2 * rng.uniform(size=4000)))
    assert diagnose(v[:, None], scores=-np.tanh(v)[:, None]).ok
    far = rng.uniform(size=4000) < 0.1
    v = np.where(far, 5 + 0.5 * rng.normal(size=4000), 0.7 * v)
    findings = diagnose(v[:, None], scores=-np.tanh(v)[:, None]).findings
    assert not findings["width"].wrong and not findings["location"].wrong and findings["tails"].wrong
    assert findings["tails"].value == pytest.approx(v.std() / (np.pi / 2), abs=0.05)
    assert f"{v.mean() / (np.pi / 2):+.1f}" in findings["tails"].sentence


@pytest.mark.parametrize("shift, factor", [(0.3, 1.0), (0.0, 0.6), (-1.0, 2.0)])
def test_control_functionals_are_exact_but_for_their_ridge_on_a_normal_target_whatever_the_draws(shift, factor):
    sd = np.sqrt(np.diagonal(COVARIANCE))
    x = MEAN + shift * sd + factor * (normal(500) - MEAN)
    found = control_functionals(x, scores_of(x), 500)
    np.testing.assert_allclose(found.ratios, x.std(axis=0) / sd, rtol=0.03)
    np.testing.assert_allclose(found.shifts, (x.mean(axis=0) - MEAN) / sd, atol=0.03)


def test_the_scale_of_a_hierarchical_site_is_found_and_others_are_left_alone():
    def model(y, x):
        mu, tau = numpyro.sample("mu", dist.Normal(0, 5)), numpyro.sample("tau", dist.HalfCauchy(5))
        with numpyro.plate("group", len(y)):
            theta = numpyro.sample("theta", dist.Normal(mu, tau))
        numpyro.sample("slope", dist.Normal(mu, 1.0))
        numpyro.sample("log", dist.LogNormal(mu, tau))  # LocScaleReparam does not take it
        numpyro.sample("y", dist.Normal(theta, tau), obs=y)

    assert funnels(model, (np.arange(3.0), np.arange(3.0)), {}) == ("theta",)


def test_a_model_may_have_arguments_with_the_names_of_settings():
    def model(y, seed, steps, kwargs=0.0):
        mu = numpyro.sample("mu", dist.Normal(seed, steps))
        numpyro.sample("y", dist.Normal(mu + kwargs, 1.0), obs=y)

    settings = {"method": "vi", "steps": 8, "coordinates": "raw", "progress": False}
    made = fit(model, 1.0, kwargs={"seed": 3.0, "steps": 2.0, "kwargs": 0.5}, **settings)
    mean = (3 / 4 + 0.5) / (1 / 4 + 1)  # of the normal posterior
    assert made.target.start.center == pytest.approx([mean], abs=1e-4)


def test_the_data_of_a_target_are_kept_in_each_precision():
    rows = np.random.default_rng(0).normal(size=(2000, 1))
    target = from_rows(lambda theta: -0.5 * theta @ theta, lambda theta, x: -0.5 * (x[:, 0] - theta[0]) ** 2, rows,
                       batch=None, start=Start(np.zeros(1), np.ones(1)), extent=(-1, 1, -1, 1), coordinates=("a",),
                       constrain=lambda theta: {"a": theta[..., 0]})  # fmt: skip
    assert data_of(Spec(target)).dtype == np.float32
    with jax.enable_x64():
        assert data_of(Spec(target)).dtype == np.float64


def test_more_coordinates_than_a_covariance_is_made_of_get_a_sentence():
    wide = target_of(Spec("gaussian", 2, "vi"))
    wide = replace(wide, start=Start(np.zeros(10_000), np.ones(10_000)), coordinates=("x",) * 10_000, truth=Truth())
    with pytest.raises(ValueError, match="10000 coordinates. Allowed: 'scaled' or 'raw' above 2000"):
        fit(wide, method="vi", coordinates="whitened", progress=False)
    found = from_density(lambda x: -x @ x, np.ones(10_000)).start
    assert found.center == pytest.approx(0, abs=1e-4) and found.scale == pytest.approx(0.5**0.5)
    assert found.root is None and "10,000 coordinates" in found.note


def test_few_independent_draws_of_many_coordinates_are_no_fault_of_theirs():
    x = np.random.default_rng(0).normal(size=(600, 700))
    report = diagnose(x, scores=-x)
    assert report.findings["spread"].wrong is None and report.findings["shape"].wrong is False
    assert report.ok is None and "spread" in report.verdict
    assert diagnose(x, scores=-x, particles=True).findings["spread"].wrong is True


@pytest.mark.rare
def test_centred_eight_schools_is_decentred_and_right():
    """Against the posterior by quadrature: given mu and tau each theta is normal, so (mu, log tau) is a 2-D grid."""
    y, errors = np.array([28.0, 8, -3, 7, -1, 1, 18, 12]), np.array([15.0, 10, 16, 11, 9, 11, 10, 18])

    def schools(y, errors):
        mu, tau = numpyro.sample("mu", dist.Normal(0, 5)), numpyro.sample("tau", dist.HalfCauchy(5))
        theta = numpyro.sample("theta", dist.Normal(mu, tau).expand([8]).to_event(1))
        numpyro.sample("y", dist.Normal(theta, errors), obs=y)

    mu, log_tau = np.meshgrid(np.linspace(-20, 30, 401), np.linspace(-12, 6, 721), indexing="ij")
    variance = errors**2 + np.exp(2 * log_tau)[..., None]
    log_p = -0.5 * np.sum((y - mu[..., None]) ** 2 / variance + np.log(variance), axis=-1)
    log_p += -(mu**2) / 50 - np.log1p(np.exp(2 * log_tau) / 25) + log_tau
    p = np.exp(log_p - log_p.max())
    mean = [np.sum(p * each) / p.sum() for each in (mu, log_tau)]
    sd = [np.sqrt(np.sum(p * (each - m) ** 2) / p.sum()) for each, m in zip((mu, log_tau), mean)]
    with pytest.warns(ModelWarning, match=r"width of theta depends on other sites"):
        made = fit(schools, y, errors, progress=False)
    found = [made.values["mu"], np.log(made.values["tau"])]
    for draws, m, s in zip(found, mean, sd):
        assert abs(draws.mean() - m) < 0.1 * s and 0.85 < draws.std() / s < 1.15
    assert diagnose(made).ok and "theta_decentered[0]" in made.target.coordinates and made.values["theta"].shape[1] == 8
    assert "(site - loc) / scale is fitted" in made.note and "Note: The width of theta" in str(diagnose(made))


@pytest.mark.long
def test_a_target_made_in_float32_is_fitted_in_float32_and_says_so():
    def model():
        numpyro.sample("a", dist.Normal(2.0, 3.0))

    with pytest.warns(ModelWarning):
        target = from_numpyro(model)
    made = fit(target, method="vi", steps=400, progress=False)
    assert made.note == "The target was made in float32, and is fitted in float32."
    np.testing.assert_allclose([made.draws.mean(), made.draws.std()], [2.0, 3.0], atol=0.3)


def two_normals(theta):
    """Return the log density of 0.7 N(-4, 1) + 0.3 N(4, 1) in each of the first coordinate, N(0, 1) in the second."""
    x = theta[0]
    mixed = jnp.logaddexp(jnp.log(0.7) - 0.5 * (x + 4) ** 2, jnp.log(0.3) - 0.5 * (x - 4) ** 2)
    return mixed - 0.5 * theta[1] ** 2


def test_a_mode_that_no_draw_has_seen_is_named_with_its_mass():
    target = from_density(two_normals, np.array([-3.0, 0.0]), ("x", "y"))
    assert [round(mode.share, 2) for mode in target.start.modes] == [0.7, 0.3]
    rng = np.random.default_rng(0)
    one = rng.normal(size=(2000, 2)) - [4.0, 0.0]
    both = one + np.outer(rng.uniform(size=2000) < 0.3, [8.0, 0.0])
    found = diagnose(one, target).findings["modes"]
    assert found.wrong and found.value == pytest.approx(0.3, abs=0.01) and "at x = 4" in found.sentence
    report = diagnose(both, target)
    assert not report.findings["modes"].wrong and report.ok


def test_a_run_is_diagnosed_as_it_stands_at_its_own_knobs(run, tmp_path):  # noqa: F811
    spec = Spec("correlated", method="svgd", capacity=16)
    recipe = Recipe(spec, {"method.particles": 10, "target.rho": 0.5} if "target.rho" in spec.knobs() else {})
    frame = collect(recipe, 20, measure=("stein_trace",))[-1]
    made = fit_of(recipe, frame.particles, step=20)
    left = [np.linalg.norm(force) for force in (frame.attract + frame.repulse, frame.attract)]
    assert made.rest == pytest.approx(left[0] / left[1], rel=1e-4) and fit_of(recipe, frame.particles).rest is None
    assert diagnose(made).findings["stein_trace"].value == pytest.approx(frame.metrics["stein_trace"], rel=1e-4)
    (tmp_path / "recipe.json").write_text(json.dumps(recipe.to_dict()))
    np.savez(tmp_path / "run.npz", particles=frame.particles, step=20)
    code, out, _ = run("diagnose", tmp_path / "run.npz", "--model", tmp_path / "recipe.json", "--json")
    assert json.loads(out)["findings"]["stein_trace"]["value"] == pytest.approx(frame.metrics["stein_trace"], rel=1e-4)
    with pytest.raises(ValueError, match=r"shape \(10, 3\); allowed: \(m, 2\)"):
        fit_of(recipe, np.zeros((10, 3)))


@pytest.mark.rare
def test_a_run_that_still_moves_says_so_and_the_count_says_what_twice_as_many_would_give():
    gaussian = target_of(Spec("gaussian", dim=40, method="svgd"))
    made = {steps: fit(gaussian, method="svgd", particles=10, steps=steps, progress=False) for steps in (8, 2000)}
    soon, late = (diagnose(each) for each in made.values())
    assert "still moves" in soon.findings["rest"].sentence and "at rest" in late.findings["rest"].sentence
    force = made[8].frame.attract + made[8].frame.repulse
    left = np.linalg.norm(force) / np.linalg.norm(made[8].frame.attract)
    assert soon.findings["rest"].value == pytest.approx(left) and left > 0.02
    laws = [simplex_variance(40, n, "rbf", "median") for n in (10, 20)]
    count = late.findings["count"]
    assert count.value == pytest.approx(laws[0]) and f"With 20 it is {laws[1]:.3f}" in count.sentence
    assert "still moves" in soon.to_html() and count.sentence in late.to_html()
    (change,) = late.twice
    (row,) = late.try_changes((change,), progress=False)
    assert row["report"].evidence.n == 20 and row["r"] == pytest.approx(laws[1], rel=0.02)
    assert late.findings["stein_trace"].value == pytest.approx(laws[0], rel=0.02)
    full = diagnose(fit("gaussian", particles=2, steps=8, guide="full", progress=False))
    assert "mean force" in full.findings["rest"].sentence and "still moves" in full.findings["rest"].sentence
    (row,) = full.try_changes(full.twice, progress=False)
    assert row["report"].made.recipe.spec.guide == "full" and row["report"].made.recipe.knobs["method.particles"] == 4


def test_particles_at_one_place_are_counted():
    x = normal(60)
    clean, doubled = (replace_rows(x, count) for count in (0, 5))
    assert not clean.findings["coincident"].wrong
    found = doubled.findings["coincident"]
    assert found.wrong and found.value == 10 and not doubled.ok and doubled.to_html().count(found.sentence) >= 2
    assert "coincident" not in diagnose(normal(60)).findings  # a chain may stay at its place


def replace_rows(x, count):
    """Return the report on particles x, of which `count` have moved to the place of another."""
    x = x.copy()
    x[:count] = x[10 : 10 + count] + 1e-6
    return diagnose(Evidence(x, ("a", "b", "c"), scores_of(x), chains=0))


def test_a_report_draws_the_law_and_what_a_reference_says():
    x = normal(500)
    report = diagnose(0.7 * (x - MEAN) + MEAN, scores=0.7 * scores_of(x), reference=normal(500, 1))
    page = report.to_html()
    assert page.count("<circle") == 2 * 3 * 150 and "ranks of x3" in page and "href" not in page
    ranks = np.array(report.to_dict()["against"]["ranks"])
    assert ranks.shape == (3, 20) and (ranks.sum(axis=1) == 500).all() and (ranks[:, [0, -1]] < 13).all()
    lawful = Report(replace(report.evidence, law=0.25, chains=0), report.findings)
    assert 'class="law"' in lawful.to_html() and 'class="law"' not in page and "dashed line is 0.50" in lawful.to_html()


def test_the_stein_kernel_is_the_one_that_autodiff_gives():
    x = np.random.default_rng(0).normal(size=(4, 3))
    k = lambda a, b: (1.0 + jnp.sum((a - b) ** 2)) ** -0.5

    def u(a, b, s, t):
        mixed = jnp.trace(jax.jacfwd(jax.grad(k, 0), 1)(a, b))
        return jnp.dot(s, t) * k(a, b) + jnp.dot(s, jax.grad(k, 1)(a, b)) + jnp.dot(t, jax.grad(k, 0)(a, b)) + mixed

    scores = scores_of(x)
    expected = [[float(u(a, b, s, t)) for b, t in zip(x, scores)] for a, s in zip(x, scores)]
    np.testing.assert_allclose(stein_matrix(x, scores, cdist(x, x, "sqeuclidean"), 3), expected, rtol=1e-3, atol=1e-3)


def test_the_discrepancy_of_20_exact_draws_in_50_dimensions():
    """KSD^2 is 5.01 in the mean, and 4.80 to 5.20 for nine of ten sets: simulated elsewhere."""
    values = []
    for seed in range(60):
        x = np.random.default_rng(seed).normal(size=(20, 50))
        values.append(discrepancy(x, -x)[0] ** 2)
    assert np.mean(values) == pytest.approx(5.01, abs=0.06)
    np.testing.assert_allclose(np.quantile(values, [0.05, 0.95]), [4.80, 5.20], atol=0.08)


def test_the_p_value_is_uniform_for_exact_draws_and_small_for_others():
    p = [discrepancy(x, -x, seed)[1] for seed in range(60) for x in [np.random.default_rng(seed).normal(size=(100, 2))]]
    assert 0.38 < np.mean(p) < 0.62 and np.mean(np.array(p) < 0.1) < 0.25
    x = np.random.default_rng(0).normal(size=(300, 2))
    assert discrepancy(x, -(x + 0.4))[1] < 0.01 and discrepancy(x, -x * 2)[1] < 0.01


def test_the_discrepancy_is_told_with_its_warning_and_never_judges():
    x = MEAN + 1.5 * (normal(500) - MEAN)
    report = diagnose(x, scores=scores_of(x))
    found = report.findings["ksd"]
    assert not found.wrong and found.value > 0.1 and "proves nothing" in found.sentence and "KSD  –" in str(report)
    assert "kernel Stein discrepancy" in report.to_html()
    points = Evidence(x, ("a", "b", "c"), scores_of(x), chains=0)  # no independent draws
    assert "bootstrap" not in CHECKS["ksd"].make(points).sentence and "bootstrap" in found.sentence


@pytest.mark.long
def test_the_mean_force_on_guides_tells_a_run_at_its_end_from_one_that_has_begun():
    """One estimate is noise: of N(0, 1) in 2 dimensions it is as large at the end as on the way."""
    made = {steps: fit("gaussian", steps=steps, progress=False) for steps in (20, 2000)}
    soon, late = (diagnose(each).findings["rest"] for each in made.values())
    assert soon.value > 0.6 and "still moves" in soon.sentence
    assert late.value < 0.35 and "no more than noisy steps leave" in late.sentence
    one = [np.linalg.norm(m.frame.attract + m.frame.repulse) / np.linalg.norm(m.frame.attract) for m in made.values()]
    assert min(one) > 0.6
    alone = fit("gaussian", method="svgd", knobs={"method.alpha": 0.0}, steps=20, progress=False)
    assert alone.rest is None  # without repulsion there is nothing to compare the force with
