"""The 1-D wave: its data, network and density against the published numbers, plain NumPy and NumPyro; bands; NUTS."""

import inspect
import math
import subprocess
import sys

import arviz
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from checks import COMPILE, TRACE, lazy
from numpyro.infer import SVI, Trace_ELBO
from numpyro.infer.autoguide import AutoNormal
from scipy.stats import norm

from stein_core import TARGETS, Functions, Recipe, Spec, Target, collect, compile, target_of
from stein_core.base.bands import band, coverage, disagreement, lppd
from stein_core.contract.known import Start
from stein_core.papers.recovery import recovery, recovery_points
from stein_core.papers.wave_nuts import run_nuts
from stein_core.papers.widths import widths
from stein_core.runs.outputs import function_values
from stein_core.targets.data.datasets import WAVE_REGIONS, wave_region, wave_training
from stein_core.targets.wave import WIDTHS, dim_of, shapes_of, wave_model, width_of

FIVE = dim_of(5)


def test_data_have_the_published_sums():
    x, y = wave_training()
    np.testing.assert_allclose(x[:3], [-1.473882, -1.44611, -1.401716], atol=1e-6)
    np.testing.assert_allclose(y[:3], [-4.528758, -4.441356, -3.805945], atol=1e-6)
    np.testing.assert_allclose([x.sum(), y.sum()], [11.296494, 47.352591], atol=1e-6)
    for region, size, sums in (("Between", 60, [26.998723, 145.993520]), ("Entire", 120, [15.224784, 189.150664])):
        points = wave_region(region)
        assert points.shape == (2, size)
        np.testing.assert_allclose(points.sum(axis=1), sums, atol=1e-6)
    published = wave_region("In", seed=52)[0]
    assert (published < 0).sum() == 15 and np.isin(published.round(9), x.round(9)).sum() == 9
    assert not np.isin(wave_region("In")[0].round(9), x.round(9)).any()  # ours is fresh


def test_numbers_of_weights_are_the_published_ones():
    assert [dim_of(5), dim_of(100), dim_of(5, True), dim_of(100, True)] == [41, 10_301, 46, 10_401]
    assert [width_of(dim_of(h)) for h in WIDTHS] == list(WIDTHS)
    with pytest.raises(ValueError, match=r"dim = 50 .* nearest: 41 \(width 5\) and 55 \(width 6\)"):
        Spec("wave", dim=50)


@pytest.mark.parametrize("name, second_bias", [("wave", False), ("wave_bias", True)])
def test_density_and_function_against_numpy(name, second_bias):
    h, noise, scale = 3, 0.3, 0.7
    points = [(0.2, 1.0), (-1.0, 0.5), (1.5, -2.0)]
    make = TARGETS[name].make
    rows = np.zeros((48, 3), np.float32)
    rows[:3, :2], rows[:3, 2] = points, 1
    settings = {"noise": np.float32(noise), "prior_scale": np.float32(scale), "data": rows}
    target = make(dim_of(h, second_bias), width=h, second_bias="yes" if second_bias else "no", **settings)
    theta = np.random.default_rng(0).normal(size=target.dim)
    parts, at = {}, 0
    for key, shape in shapes_of(h, second_bias).items():
        size = math.prod(shape)
        parts[key], at = theta[at : at + size].reshape(shape), at + size
    x, y = np.array(points).T
    first = np.tanh(np.outer(x, parts["w1"]) + parts["b1"])
    f = np.tanh(first @ parts["w2"] + parts.get("b2", 0)) @ parts["w3"] + parts["b3"]
    expected = norm.logpdf(y, f, noise).sum() + norm.logpdf(theta, 0, scale).sum()
    np.testing.assert_allclose(target.log_density(jnp.float32(theta)), expected, rtol=1e-5)
    functions, theta = target.functions, jnp.float32(theta)
    np.testing.assert_allclose(functions.outputs(theta, jnp.float32(x))[:, 0], f, rtol=1e-4, atol=1e-5)
    seen = functions.rows(None)
    likelihood = functions.log_likelihood(functions.outputs(theta, seen.x), seen)
    np.testing.assert_allclose(functions.log_prior(theta) + likelihood, expected, rtol=1e-5)
    assert functions.prior_sample(jax.random.key(0), 2000).std() == pytest.approx(scale, rel=0.02)


@pytest.mark.long
def test_a_network_of_another_width_leaves_few_programs(counted):
    """Each operation outside a program is one that JAX keeps for good, with its memory maps."""
    grid = np.array([0.0, 1.0])
    run_nuts("wave", dim_of(11), {}, grid, 2, 1, 1)  # what does not depend on the width
    with counted() as programs:
        target_of(Spec("wave", dim_of(12)))
    assert programs[COMPILE] == 0
    with counted() as programs:
        run_nuts("wave", dim_of(12), {}, grid, 2, 1, 1)
    assert 5 < programs[COMPILE] < 30


@pytest.mark.long
def test_data_noise_and_prior_are_knobs_that_compile_nothing(counted):
    stepper = compile(Spec("wave", dim=FIVE, method="svgd", capacity=6))
    known = {"method.particles": 5, "method.step_size": 1e-3}
    state = stepper.advance(stepper.reset(0, known), known, 5)
    before = stepper.look(state, known)
    with counted() as counts:
        for change in (
            {"target.noise": 0.2}, {"target.prior_scale": 0.5}, {"target.data": [(0.0, 1.0)]},
            {"target.data": [(0.1 * i, 1.0) for i in range(48)]},
        ):  # fmt: skip
            frame = stepper.look(state, {**known, **change})
            assert np.abs(frame.attract - before.attract).max() > 1e-2, change
            stepper.advance(state, {**known, **change}, 1)
    assert counts[TRACE] == 0 and counts[COMPILE] == 0


@pytest.mark.parametrize(
    "data, message",
    [
        ([], "target.data has 0 points; allowed: 1 to 512"),
        ([(0.0, 1.0)] * 513, "513 points"),
        ([(0.0, 1.0), (0.5, float("nan"))], r"point 2 is \(0.5, nan\)"),
        ([(0.0, 1e9)], "point 1"),
        ([(0.0,)], "not a list of points"),
        ("words", "not a list of points"),
    ],
)
def test_wrong_data_are_refused_with_the_point(data, message):
    with pytest.raises(ValueError, match=message):
        Recipe(Spec("wave", method="map"), {"target.data": data})


def test_points_at_one_place_and_a_width_of_one_are_allowed():
    frames = collect(Recipe(Spec("wave", dim=dim_of(1), method="map"), {"target.data": [(0.5, 1.0), (0.5, 2.0)]}), 200)
    assert frames[-1].finite and frames[-1].particles.shape == (1, 5)


@pytest.mark.long
def test_one_guide_climbs_as_numpyros_svi_does():
    """The gradient of NumPyro's own ELBO at our start, in expectation; both are Monte Carlo means."""
    stepper = lazy(Spec("wave", dim=FIVE, method="vi", draws=1000))
    state = stepper.reset(1, {})
    ours = np.stack([stepper.look(state._replace(key=jax.random.PRNGKey(k)), {}, False).attract[0] for k in range(20)])

    shapes = shapes_of(5, False)
    rows = np.zeros((40, 3), np.float32)
    rows[:, :2], rows[:, 2] = wave_training().T, 1
    model = lambda: wave_model(rows, 0.1, 1.0, shapes)  # noqa: E731
    guide = AutoNormal(model)
    loss = Trace_ELBO(num_particles=1000)
    svi = SVI(model, guide, numpyro.optim.Adam(1.0), loss)
    start = svi.init(jax.random.key(0))
    size = len(state.particles[0]) // 2
    location, u = np.split(np.asarray(state.particles[0]), 2)
    bounds = np.cumsum([0, *(math.prod(shape) for shape in shapes.values())])
    params = {}
    for name, shape, low, high in zip(shapes, shapes.values(), bounds[:-1], bounds[1:], strict=True):
        params[f"{name}_auto_loc"] = jnp.reshape(location[low:high], shape)
        params[f"{name}_auto_scale"] = jnp.reshape(u[low:high], shape)
    assert set(params) == set(svi.get_params(start))

    @jax.jit
    def gradient(key):
        return jax.grad(lambda p: -loss.loss(key, svi.constrain_fn(p), model, guide))(params)

    theirs = []
    for k in range(20):
        g = gradient(jax.random.key(k))
        sides = [np.concatenate([np.ravel(g[f"{name}_auto_{side}"]) for name in shapes]) for side in ("loc", "scale")]
        theirs.append(np.concatenate(sides))
    theirs = np.stack(theirs)
    error = np.sqrt((ours.var(0, ddof=1) + theirs.var(0, ddof=1)) / 20)
    gap = np.abs(ours.mean(0) - theirs.mean(0)) / error
    assert gap.max() < 5 and np.abs(theirs.mean(0)).max() > 20 * error.max() and size == FIVE


# ---------------------------------------------------------------- bands and predictive densities


def test_band_is_arvizs_hdi_and_noise_widens_it():
    draws = np.random.default_rng(0).gamma(2.0, size=(4000, 3))
    found = band(draws, 0.8)
    asked = "hdi_prob" if "hdi_prob" in inspect.signature(arviz.hdi).parameters else "prob"  # ArviZ 0.2x, or 1.x
    low, high = arviz.hdi(draws[:, 0], **{asked: 0.8})
    np.testing.assert_allclose([found.low[0], found.high[0]], [low, high], atol=0.02)
    wide = band(np.zeros((4000, 3)), 0.9, noise=2.0)
    np.testing.assert_allclose(wide.high - wide.low, 2 * norm.ppf(0.95) * 2.0, rtol=0.05)
    with pytest.raises(ValueError, match="probability = 1.5"):
        band(draws, 1.5)
    one = band(np.zeros((1, 50)), 0.9, noise=2.0)  # a single curve has a band of y too
    assert np.mean(one.high - one.low) == pytest.approx(2 * 1.645 * 2.0, rel=0.03)


def test_lppd_is_the_mean_over_draws_and_the_published_one_is_not():
    values, y = np.random.default_rng(1).normal(size=(2, 8, 60))[0], np.zeros(60)
    brute = np.log(norm.pdf(y, values, 0.5).mean(axis=0)).sum()
    assert lppd(values, y, 0.5) == pytest.approx(brute, rel=1e-9)
    assert lppd(values, y, 0.5, inflated=True) - brute == pytest.approx(60 * math.log(8))
    assert 120 * math.log(8) == pytest.approx(249.5, abs=0.05)  # what it gives eight particles on Entire


def test_coverage_and_disagreement():
    rng = np.random.default_rng(2)
    values = rng.normal(size=(4000, 500))
    y = rng.normal(size=500) * math.sqrt(1 + 0.5**2)
    assert coverage(values, y, 0.9, 0.5) == pytest.approx(0.9, abs=0.05)
    assert coverage(0.3 * values, y, 0.9, 0.5) < 0.7
    chains = rng.normal(size=(4, 500, 2))
    chains[0, :, 1] += 3
    agree, differ = disagreement(chains)
    assert agree < 1.02 and differ > 1.5


def test_function_values_are_those_of_the_particles():
    spec = Spec("wave", dim=FIVE, method="svgd", capacity=6)
    stepper, knobs, x = lazy(spec), {"method.particles": 5}, np.linspace(-1, 1, 7)
    state = stepper.reset(0, knobs)
    values = function_values(spec, state.particles, knobs, x)
    expected = [target_of(spec).functions.outputs(p, jnp.float32(x))[:, 0] for p in state.particles[:5]]
    np.testing.assert_allclose(values, expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="no regression function"):
        function_values(Spec("ring"), state.particles, {}, x)


@pytest.mark.long
def test_nuts_gives_the_posterior_of_a_line():
    """f = a + b x, unit normal prior and noise: the posterior of f is normal with known mean and sd."""
    x, y = np.array([-1.0, 0.0, 2.0]), np.array([0.5, 1.0, 3.0])

    @TARGETS.register("line", label="Line", reference="closed form", dims=(2, 2), default_dim=2)
    def line(dim):
        "A line."
        return Target(
            log_density=lambda t: jnp.sum(dist.Normal(t[0] + t[1] * x, 1.0).log_prob(y)) + jnp.sum(-0.5 * t**2),
            start=Start(np.zeros(2), np.ones(2)), extent=(-1, 1, -1, 1), coordinates=("a", "b"),
            constrain=lambda t: {"t": t},
            functions=Functions(lambda t, x: (t[0] + t[1] * x)[:, None], None, None, None, None),
        )  # fmt: skip

    grid, seen = np.array([-1.0, 0.5, 3.0]), []
    try:
        values = run_nuts("line", 2, {}, grid, warmup=300, samples=1500, report=lambda *news: seen.append(news))
    finally:
        del TARGETS._entries["line"]
    design = np.stack([np.ones(3), x], axis=1)
    covariance = np.linalg.inv(np.eye(2) + design.T @ design)
    at = np.stack([np.ones(3), grid], axis=1)
    sd = np.sqrt(np.einsum("ki,ij,kj->k", at, covariance, at))
    np.testing.assert_allclose(values.reshape(-1, 3).mean(0), at @ covariance @ design.T @ y, atol=0.15 * sd.min())
    np.testing.assert_allclose(values.reshape(-1, 3).std(0), sd, rtol=0.1)
    assert disagreement(values).max() < 1.02 and seen[-1][0] == seen[-1][1] == 1800


def test_the_sweep_of_widths_trains_every_method_as_published():
    recipes = widths(widths=(5, 100), seeds=2)
    assert [(r.spec.method, r.spec.dim, r.seed) for r in recipes[:3]] == [
        ("svgd", 41, 0),
        ("svgd", 41, 1),
        ("annealed", 41, 0),
    ]
    assert len(recipes) == 12 and {r.spec.dim for r in recipes} == {41, 10301}
    assert all(r.knobs["method.step_size"] == 1e-3 and r.knobs["method.particles"] == 5 for r in recipes)
    assert [r.knobs.get("method.horizon") for r in recipes[::2]] == [None, 15_000, None] * 2


# ---------------------------------------------------------------- recovery point


def test_recovery_point_of_rows():
    def row(method, m, seed, value):
        names = {f"lppd_{region.lower()}": value for region in WAVE_REGIONS}
        return {"dim": FIVE, "method": method, "particles": m, "seed": seed, **names}

    rows = [row("smi", 5, seed, -100.0) for seed in range(3)]
    for seed, first in enumerate((1, 4, 99)):
        rows += [row("svgd", m, seed, -90.0 if m >= first else -150.0) for m in (1, 2, 4)]
    assert recovery_points(rows) == {5: {"In": 4, "Between": 4, "Entire": 4}}
    # 120 points: -150 + 120 log 2 = -67 beats -100 with two particles; 60: -150 + 60 log 2 = -108 does not.
    assert recovery_points(rows, inflated=True) == {5: {"In": 4, "Between": 4, "Entire": 2}}
    even = [row for row in rows if row["seed"] < 2]  # of 1 and 4 the median lies between
    assert recovery_points(even) == {5: {"In": 2.5, "Between": 2.5, "Entire": 2.5}}
    assert len(recovery(particles=(1, 2), seeds=2)) == 6


@pytest.mark.rare
def test_a_wide_network_fits_in_a_gigabyte():
    """h = 100, m = 5, L = 100, as the SMI paper runs it: the memory that one step adds to the process."""
    code = (
        "import resource; from stein_core import *; "
        "spec = Spec('wave', dim=10301, method='smi', draws=100, capacity=6); target_of(spec); "
        "most = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20; before = most(); "
        "s = compile(spec); k = {'method.particles': 5}; s.advance(s.reset(0, k), k, 1).particles.block_until_ready(); "
        "print(most() - before)"
    )
    added = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert float(added) < 1.0
