"""Calibration over simulated data sets: ranks, their bands and sentences, and methods that are right or wrong."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from scipy.stats import kstest, norm
from test_cli import run  # noqa: F401  (a fixture)

from stein_core.cli.bench_calibrate import false_alarms
from stein_core.posterior.calibration import Calibration, calibrate
from stein_core.posterior.many import DRAWS, laplace, of_posterior
from stein_core.posterior.ranks import band, curve, named, places
from stein_core.posterior.simulating import Simulator
from stein_core.targets.posteriors import MODELS

X = np.random.default_rng(0).normal(size=(12, 2))


def linear(x, y=None):
    slopes = numpyro.sample("slopes", dist.Normal(0, 1).expand([2]).to_event(1))
    numpyro.sample("y", dist.Normal(x @ slopes, 0.5), obs=y)


def ranks_of(width: float, shift: float, n: int = 400, most: int = 99, seed: int = 1) -> np.ndarray:
    """Ranks of truths N(0, 1) among draws N(shift, width^2), in closed form: binomial of their distribution."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=n)
    return (shift + width * rng.normal(size=(n, most)) < truth[:, None]).sum(axis=1)


@pytest.mark.parametrize("width, shift, kind, near", [
    (1.0, 0.0, "calibrated", 1.0),
    (0.7, 0.0, "too narrow", 0.7),
    (1.4, 0.0, "too wide", 1.4),
    (1.0, 0.5, "shifted", 1.0),
])  # fmt: skip
def test_ranks_say_what_is_wrong_and_by_how_much(width, shift, kind, near):
    found = named(ranks_of(width, shift, seed=3), 99)
    assert found.kind == kind and found.width == pytest.approx(near, rel=0.12) and not found.bound
    assert found.shift == pytest.approx(-shift / width, abs=0.15)
    if kind != "calibrated":
        assert found.sentence.lower().startswith(kind)


def test_of_very_narrow_draws_the_width_is_a_bound():
    found = named(ranks_of(0.05, 0.0), 99)
    assert found.kind == "too narrow" and found.bound and found.width > 0.05 and "at most" in found.sentence


def test_a_shift_and_a_width_are_both_said():
    assert named(ranks_of(0.5, 1.0), 99).sentence.count(":") == 2


def test_one_curve_in_twenty_leaves_its_band():
    """Of 1,000 exact procedures about 50 must leave it: 4 sds of a binomial are 28."""
    out = sum(named(np.random.default_rng(k).integers(0, 100, 200), 99).kind != "calibrated" for k in range(1000))
    assert 22 < out < 78
    few, many = band(200), band(200, 10)
    assert (many.low <= few.low).all() and (many.high >= few.high).all() and (many.high > few.high).any()
    pointwise = band(200, chance=1.0)
    assert np.mean(few.high - few.low) > np.mean(pointwise.high - pointwise.low)


def test_exact_draws_of_a_model_are_blamed_as_rarely_as_the_band_says():
    """Of 300 calibrations at most 15 are due: 4 sds of a binomial are 15."""
    assert 0 < false_alarms(300, 100, seed=1) <= 30


def test_arviz_gets_the_places_of_the_truths():
    ranks = np.stack([ranks_of(1.0, 0.0), ranks_of(0.5, 0.0)], axis=1)
    shown = Calibration("svgd", ("right", "narrow"), ranks, 99, 0, 1.0).to_arviz()
    u = {name: np.asarray(shown["prior_sbc"][name]) for name in ("right", "narrow")}
    assert u["right"].shape == (1, 400) and kstest(u["right"][0], "uniform").pvalue > 0.01
    assert kstest(u["narrow"][0], "uniform").pvalue < 1e-6  # many truths lie outside


def test_places_of_uniform_ranks_are_uniform():
    u = places(np.random.default_rng(0).integers(0, 21, 4000), 20)
    assert kstest(u, "uniform").pvalue > 0.01 and 0 < u.min() and u.max() < 1
    np.testing.assert_allclose(curve(np.array([0.1, 0.2, 0.9]), np.array([0.15, 0.5, 0.95])), [1 / 3, 2 / 3, 1])


def test_a_simulator_draws_data_from_the_truths_and_its_density_takes_them():
    made = Simulator(linear, (X,), {"y": np.zeros(12)})
    truths, (y,) = made.simulate(0, 2000)
    assert made.names == ("slopes[0]", "slopes[1]") and truths.shape == (2000, 2) and y.shape == (2000, 12)
    assert np.std(y - truths @ X.T) == pytest.approx(0.5, rel=0.02) and truths.std() == pytest.approx(1, rel=0.04)
    theta = np.array([0.3, -0.2])
    gaps = [float(made.density((theta, [y[k]])) - made.density((0 * theta, [y[k]]))) for k in range(3)]
    wanted = [-0.5 * (theta @ theta) - 2 * np.sum((y[k] - X @ theta) ** 2) + 2 * np.sum(y[k] ** 2) for k in range(3)]
    np.testing.assert_allclose(gaps, wanted, rtol=1e-4)


def exact(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the slopes."""
    covariance = np.linalg.inv(np.eye(2) + X.T @ X / 0.25)
    return covariance @ X.T @ y / 0.25, covariance


def test_laplace_is_exact_on_a_linear_model_and_its_ranks_are_those_of_the_closed_form():
    found = calibrate(linear, X, y=np.zeros(12), method="laplace", n=60, progress=False)
    assert found.ok and found.failed == 0 and "calibrated on 60 data sets" in found.verdict
    with jax.enable_x64():  # as `calibrate` does: other precisions have other draws
        truths, (y,) = Simulator(linear, (X,), {"y": np.zeros(12)}).simulate(0, 60)
    means, covariance = np.stack([exact(one)[0] for one in y]), exact(y[0])[1]
    shares = norm.cdf((truths - means) / np.sqrt(np.diag(covariance)))
    assert np.abs(found.ranks / DRAWS - shares).max() < 0.2  # 4 sds of a share of 100 draws


def test_around_a_posterior_truths_are_its_draws_and_fits_take_both_data():
    y = X @ [1.5, -2.0] + 0.5 * np.random.default_rng(3).normal(size=len(X))
    with jax.enable_x64():
        made = Simulator(linear, (jnp.asarray(X),), {"y": jnp.asarray(y)}, joint=True)
        thetas = of_posterior(made, made.starts(0, 8), 0, 500)
        truths, data = made.simulate(1, 500, thetas)
    mean, covariance = exact(y)
    assert np.abs(thetas.mean(axis=0) - mean).max() < 0.3 * np.sqrt(covariance.diagonal().min())
    assert np.cov(thetas.T) == pytest.approx(covariance, rel=0.35, abs=0.2 * covariance.diagonal().min())
    assert truths == pytest.approx(thetas) and np.std(data[0] - thetas @ X.T) == pytest.approx(0.5, rel=0.05)
    at = np.array([[0.0, 0.0], [1.2, -1.0], [1.6, -2.1]])
    with jax.enable_x64():
        found = [float(made.density((jnp.asarray(theta), [jnp.asarray(data[0][0])]))) for theta in at]
    right = norm.logpdf(at, 0, 1).sum(axis=1)  # prior, given data and simulated data of N(x theta, 0.25)
    right += norm.logpdf(np.r_[y, data[0][0]], at @ np.r_[X, X].T, 0.5).sum(axis=1)
    assert np.diff(found) == pytest.approx(np.diff(right), rel=1e-6)


@pytest.mark.long
def test_around_a_posterior_laplace_is_exact_on_a_linear_model():
    y = X @ [1.5, -2.0] + 0.5 * np.random.default_rng(3).normal(size=len(X))
    made = calibrate(linear, X, y=y, method="laplace", n=200, around="posterior", progress=False)
    assert made.ok and "200 data sets around the posterior" in made.verdict
    assert all(kstest(places(column, made.most), "uniform").pvalue > 0.01 for column in made.ranks.T)
    with pytest.raises(ValueError, match="around 'postrior'.*posterior"):
        calibrate(linear, X, y=y, around="postrior", progress=False)


def test_a_mode_is_found_for_every_data_set_also_for_those_with_a_far_truth():
    """A truth `tau` comes from a half-Cauchy: some are hundreds of its scale."""

    def schools(errors, y=None):
        mu, tau = numpyro.sample("mu", dist.Normal(0, 5)), numpyro.sample("tau", dist.HalfCauchy(5))
        z = numpyro.sample("z", dist.Normal(0, 1).expand([8]).to_event(1))
        numpyro.sample("y", dist.Normal(mu + tau * z, errors), obs=y)

    with jax.enable_x64():
        made = Simulator(schools, (np.linspace(9, 18, 8),), {"y": np.zeros(8)})
        truths, data = made.simulate(0, 100)
        starts = jnp.asarray(made.starts(1, 8))
        assert truths[:, made.names.index("tau")].max() > 100
        modes, roots = jax.jit(jax.vmap(lambda d: laplace(made.density, starts, d)))(data)
        slopes = jax.vmap(jax.grad(made.density))((modes, data))[0]
    assert np.linalg.norm(np.einsum("bji,bj->bi", roots, slopes), axis=1).max() < 1e-3  # in sds


@pytest.mark.long
def test_svgd_is_too_narrow_smi_and_nuts_are_right():
    ten = np.random.default_rng(1).normal(size=(30, 10))

    def wide(x, y=None):
        slopes = numpyro.sample("slopes", dist.Normal(0, 1).expand([10]).to_event(1))
        numpyro.sample("y", dist.Normal(x @ slopes, 1.0), obs=y)

    usual = {"n": 50, "progress": False, "y": np.zeros(30)}
    few = {"method": "svgd", "particles": 10, "knobs": {"bandwidth.rule": "median_log"}}
    svgd = calibrate(wide, ten, **few, **{**usual, "n": 200})  # a width of 3/4 is 5 standard errors from 1
    assert not svgd.ok and all(one.kind == "too narrow" for one in svgd.findings.values())
    assert "SVGD is not calibrated for 10 of 10 parameters" in svgd.verdict
    assert calibrate(linear, X, method="smi", **{**usual, "y": np.zeros(12)}).ok
    assert calibrate(linear, X, method="nuts", **{**usual, "y": np.zeros(12)}).ok


@pytest.mark.parametrize("name", MODELS)
def test_targets_with_data_can_simulate_them(name):
    model, given = MODELS[name]
    with jax.enable_x64():
        arguments = given()
        made = Simulator(model, arguments, {})
        truths, data = made.simulate(0, 20)
        assert [each.shape[1:] for each in data] == [arguments[-1].shape] and len(truths) == 20
        assert all(np.ptp(each, axis=1).any() for each in data)
        assert np.isfinite(made.density((made.starts(0, 1)[0], [each[0] for each in data])))


def test_a_run_goes_on_where_it_was_ended(tmp_path):
    file, told = tmp_path / "ranks.npz", []

    def stop(done, total):
        told.append((done, total))
        if done == 50:
            raise KeyboardInterrupt

    usual = {"method": "laplace", "n": 70, "store": file, "y": np.zeros(12)}
    with pytest.raises(KeyboardInterrupt):
        calibrate(linear, X, progress=stop, **usual)
    found = calibrate(linear, X, progress=lambda *at: told.append(at), **usual)
    assert told == [(25, 70), (50, 70), (70, 70)] and len(found.ranks) == 70
    whole = calibrate(linear, X, progress=False, **{**usual, "store": None})
    np.testing.assert_array_equal(found.ranks, whole.ranks)
    with pytest.raises(ValueError, match="is of another call"):
        calibrate(linear, X, seed=1, progress=False, **usual)
    assert found.to_csv().splitlines()[0] == "slopes[0],slopes[1]" and len(found.to_csv().splitlines()) == 71


@pytest.mark.long
def test_workers_of_dask_give_the_ranks_of_one_process(tmp_path):
    distributed = pytest.importorskip("distributed", reason="the extra `cluster` is not installed")

    def model(x, y=None):  # of a function, so that it travels to workers that cannot import this file
        slopes = numpyro.sample("slopes", dist.Normal(0, 1).expand([2]).to_event(1))
        numpyro.sample("y", dist.Normal(x @ slopes, 0.5), obs=y)

    settings = {"y": np.zeros(12), "method": "laplace", "n": 60, "progress": False}
    here, told = calibrate(model, X, **settings), []
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with cluster, distributed.Client(cluster) as client, client.get_executor(pure=False) as executor:
        settings |= {"progress": lambda done, total: told.append(done), "store": tmp_path / "ranks.npz"}
        there = calibrate(model, X, executor=executor, **settings)
    assert (here.ranks == there.ranks).all() and sorted(told) == told and told[-1] == 60
    del told[:]
    assert (calibrate(model, X, **settings).ranks == here.ranks).all() and told == []  # nothing is left to do


def test_a_fit_that_is_not_finite_is_counted(tmp_path):
    def broken(x, y=None):
        slope = numpyro.sample("slope", dist.Normal(0, 1))
        numpyro.sample("y", dist.Normal(jnp.where(slope > 1, jnp.nan, slope) * x, 1.0), obs=y)

    found = calibrate(broken, np.ones(4), y=np.zeros(4), method="laplace", n=40, progress=False)
    assert found.failed and not found.ok and "fits are not finite" in found.verdict


def unseen(x, y=None):
    numpyro.sample("y", dist.Normal(numpyro.sample("m", dist.Normal(0, 1)), 1.0), obs=None if y is None else 2 * y)


def flat(x, y=None):
    numpyro.sample("y", dist.Normal(numpyro.sample("m", dist.ImproperUniform(dist.constraints.real, (), ())), 1), obs=y)


@pytest.mark.parametrize("call, message", [
    (lambda: calibrate(flat, X, y=np.zeros(12)), "a prior of the model cannot be drawn from"),
    (lambda: calibrate(linear, X, method="laplac", y=np.zeros(12)), "did you mean 'laplace'"),
    (lambda: calibrate(linear, X, n=3, y=np.zeros(12)), "n = 3"),
    (lambda: calibrate(linear, X), "no observed site"),
    (lambda: calibrate(unseen, X, y=np.zeros(12)), "site 'y' reads no argument of the model as it is"),
    (lambda: calibrate(linear, X, y=np.zeros(12), store="ranks.csv"), "ends in .npz"),
])  # fmt: skip
def test_what_cannot_be_calibrated_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


MODEL = """
import numpyro, numpyro.distributions as dist
def linear(x, y=None):
    slopes = numpyro.sample("<slopes>", dist.Normal(0, 1).expand([2]).to_event(1))
    numpyro.sample("y", dist.Normal(x @ slopes, 0.5), obs=y)
"""


def test_the_command_writes_a_page_with_a_curve_for_each_parameter(run, tmp_path):  # noqa: F811
    (tmp_path / "own.py").write_text(MODEL)
    np.savez(tmp_path / "data.npz", x=X, y=np.zeros(12))
    given = (f"{tmp_path / 'own.py'}:linear", "--data", tmp_path / "data.npz", "--method", "laplace", "--n", "40")
    code, out, _ = run("calibrate", *given, "--out", tmp_path / "report.html", "--json")
    said = json.loads(out)
    assert code == 0 and said["ok"] and said["n"] == 40 and said["parameters"]["<slopes>[1]"]["kind"] == "calibrated"
    page = (tmp_path / "report.html").read_text()
    assert page.count('class="curve"') == 2 and "&lt;slopes&gt;[0]" in page and "<slopes>" not in page
    assert "Calibration of Laplace" in page and "http" not in page
    code, out, _ = run("calibrate", *given, "--ranks", tmp_path / "ranks.csv")
    assert code == 0 and len((tmp_path / "ranks.csv").read_text().splitlines()) == 41 and "is calibrated on 40" in out


@pytest.mark.parametrize("arguments, message", [
    (["own.py"], "own.py"),
    (["own.py:linear"], "--data has: nothing"),
    (["own.py:linear", "--out", "report.pdf"], "allowed: .html"),
    (["own.py:linear", "--ranks", "ranks.txt"], "--ranks"),
    (["gaussian"], "has no data that it could make; allowed: oring"),
])  # fmt: skip
def test_the_command_refuses_what_it_cannot_do(run, tmp_path, monkeypatch, arguments, message):  # noqa: F811
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(MODEL)
    code, _, err = run("calibrate", *arguments)
    assert code == 2 and message in err
