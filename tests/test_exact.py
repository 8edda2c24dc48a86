"""Facts that hold exactly, each derived in its test or named with its source."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from checks import assert_same_frame, force_of
from scipy import optimize, stats

from stein_core import KERNELS, Recipe, Spec, collect, compile
from stein_core.base.distances import squared_distances
from stein_core.forces.median import Pairs, by_digits, by_limits
from stein_core.forces.sums import kernel_forces
from stein_core.methods.parts.schedules import cyclical as schedule

HIGH = Spec("gaussian", 50, "svgd", optimizer="sgd", capacity=32)
LINE = Spec("gaussian", 1, "smi", draws=1000, capacity=8)  # 1-D mixtures: everything has a quadrature
PLANE = {g: Spec("correlated", method="smi", guide=g, draws=2, capacity=8) for g in ("point", "normal")}
CORRELATED = np.array([[1.0, 0.8], [0.8, 1.0]])
GRID = np.linspace(-12, 12, 24001)


def plane(method):
    return Spec("correlated", method=method, draws=2, capacity=8)


# ---------------------------------------------------------------- variance of SVGD on N(0, I)

LAWS = [("rbf", "median_log")] + [(k, r) for k in ("rbf", "imq", "log_inverse") for r in ("median", "fixed")]


@pytest.mark.parametrize("kernel, rule", LAWS)
def test_simplex_law(kernel, rule):
    """For d >= m - 1 the fixed point of SVGD on N(0, I) is a regular simplex: all pairs lie at the same u. With
    k = f(u), attraction and repulsion balance at the variance (1/(m-1) form) v = -alpha (m/d) u f'(u) / (1 - f(u)).
    """
    m, d = 20, 50
    slope = jax.grad(KERNELS[kernel].make)
    for alpha in (1.0, 2.0):

        def law(u):
            return float(-alpha * m / d * u * slope(u) / (1 - KERNELS[kernel].make(u)))

        if rule == "fixed":  # sigma^2 = d, so that u = v: the law is an equation for v
            expected = optimize.brentq(lambda v: law(v) - v, 0.05, 3.0, xtol=1e-6)
        else:
            expected = law({"median": 1.0, "median_log": np.log(m)}[rule])
        knobs = {
            "method.particles": m, "method.alpha": alpha, "method.step_size": 2.0, "kernel.name": kernel,
            "bandwidth.rule": rule, "bandwidth.factor": d**0.5 if rule == "fixed" else 1.0,
        }  # fmt: skip
        middle, last = collect(Recipe(HIGH, knobs), 2000, 1000)[1:]
        assert last.metrics["force"] < 1e-5
        measured = last.metrics["marginal_variance"]
        np.testing.assert_allclose(middle.metrics["marginal_variance"], measured, rtol=1e-4)
        np.testing.assert_allclose(measured, expected * (m - 1) / m, rtol=1e-3)
        if kernel == "rbf" and rule != "fixed":  # the printed form, with kappa = k at the median pair
            kappa = {"median": np.exp(-1), "median_log": 1 / m}[rule]
            np.testing.assert_allclose(
                measured, alpha * (m - 1) * kappa * np.log(1 / kappa) / ((1 - kappa) * d), rtol=1e-3
            )
        if (kernel, rule) == ("rbf", "median_log"):
            np.testing.assert_allclose(measured, alpha * np.log(20) / 50, rtol=1e-3)
        if (kernel, rule) == ("rbf", "fixed"):
            np.testing.assert_allclose(expected, np.log(1 + alpha * m / d), rtol=1e-3)


@pytest.mark.parametrize("alpha", [1.0, 2.0])
def test_linear_kernel_matches_mean_and_covariance(alpha):
    """k = 1 + <x, y>: phi_l = mean(s) + (mean(s x^T) + alpha I) x_l, and this vanishes at m > d points in general
    position only if mean(s) = 0 and mean(s x^T) = -alpha I. With s = -P x: mean 0 and covariance (1/m) alpha P^-1."""
    knobs = {
        "method.particles": 8, "kernel.name": "linear", "bandwidth.rule": "fixed", "method.alpha": alpha,
        "init.shift": 1.0,
    }  # fmt: skip
    changes = ((1000, "method.step_size", 0.005), (1500, "method.step_size", 0.0005))
    frame = collect(Recipe(plane("svgd"), knobs, changes=changes), 2000)[-1]
    assert frame.metrics["force"] < 1e-4
    np.testing.assert_allclose(frame.particles.mean(0), 0.0, atol=1e-3)
    np.testing.assert_allclose(np.cov(frame.particles.T, bias=True), alpha * CORRELATED, rtol=1e-3)


def test_kernels_are_those_of_the_literature():
    u = np.geomspace(1e-3, 20, 9)
    printed = {"rbf": np.exp(-u), "imq": (1 + u) ** -0.5, "log_inverse": 1 / (1 + np.log(1 + u)),
               "laplace": np.exp(-np.sqrt(2 * u)), "linear": 1 + u}  # fmt: skip
    for name, values in printed.items():
        np.testing.assert_allclose(KERNELS[name].make(u), values, rtol=1e-6)


# ---------------------------------------------------------------- one method is another one's special case


def assert_same_run(one, other, every=1, steps=20, atol=1e-5):
    runs = [collect(recipe, steps, every) for recipe in (one, other)]
    for a, b in zip(*runs, strict=True):
        assert_same_frame(a, b, rtol=1e-5, atol=atol)
    assert np.abs(runs[0][-1].particles - runs[0][0].particles).max() > 0.3


@pytest.mark.long
def test_reductions():
    knobs = {"method.particles": 5, "method.alpha": 1.7, "bandwidth.factor": 0.8}
    one = {"method.particles": 1}
    assert_same_run(Recipe(PLANE["point"], knobs), Recipe(plane("svgd"), knobs))
    assert_same_run(Recipe(PLANE["normal"], one), Recipe(plane("vi")))
    assert_same_run(Recipe(plane("svgd"), one), Recipe(plane("map")))
    assert_same_run(Recipe(plane("svgd"), knobs), Recipe(plane("annealed"), {**knobs, "method.cycles": 1}))
    swept = collect(Recipe(plane("annealed"), {**knobs, "method.cycles": 2}), 0)[0]
    assert not swept.attract.any() and swept.repulse.any()  # gamma(0) = 0 where there is more than one cycle


def test_ensemble_particles_do_not_interact():
    frame = collect(Recipe(plane("ensemble"), {"method.particles": 5}), 20)[-1]
    assert not frame.repulse.any()
    stepper = compile(plane("ensemble"))
    start = stepper.reset(0, {})
    for row in range(5):
        alone = np.array(start.particles)
        alone[0] = alone[row]
        end = stepper.advance(start._replace(particles=alone), {"method.particles": 1}, 20)
        np.testing.assert_allclose(end.particles[0], frame.particles[row], rtol=1e-5, atol=1e-6)


def test_annealing_schedule():
    """Worked by hand for horizon 100, 4 cycles (of 25 steps), power 2; the last cycle is plain SVGD for good."""
    by_hand = {
        0: 0.0,
        5: 0.04,
        20: 0.64,
        24: 0.9216,
        25: 0.0,
        35: 0.16,
        74: 0.9216,
        75: 1.0,
        80: 1.0,
        100: 1.0,
        1000: 1.0,
    }
    for step, gamma in by_hand.items():
        assert float(schedule(jnp.int32(step), 100.0, 4.0, 2.0)) == pytest.approx(gamma, rel=1e-5), step
    knobs = {"method.particles": 5, "method.horizon": 100, "method.cycles": 4, "method.power": 2.0}
    for step, gamma in ((20, 0.64), (35, 0.16), (80, 1.0)):
        end = compile(plane("annealed")).advance(compile(plane("annealed")).reset(0, knobs), knobs, step)
        frame = compile(plane("annealed")).look(end, knobs)
        count = {"method.particles": 5}
        state = compile(plane("svgd")).reset(0, count)._replace(particles=end.particles, step=end.step)
        plain = compile(plane("svgd")).look(state, count)
        np.testing.assert_allclose(frame.attract, gamma * plain.attract, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(frame.repulse, plain.repulse, rtol=1e-5, atol=1e-6)


# ---------------------------------------------------------------- constrained parameters, Gamma(3, 2)

GAMMA = Spec("gamma", method="svgd", optimizer="sgd", capacity=32)


def test_one_particle_climbs_the_density_with_the_log_jacobian():
    """u = log(rate): log p = 2 u - 2 e^u + u, the last u from d rate / d u; by hand in float64."""
    state = compile(GAMMA).reset(0, {"method.particles": 1, "method.step_size": 0.3})
    u = float(state.particles[0, 0])
    frames = collect(Recipe(GAMMA, {"method.particles": 1, "method.step_size": 0.3}), 20, 1)
    for frame in frames:
        np.testing.assert_allclose(frame.particles[0, 0], u, rtol=1e-5, atol=1e-6)
        u += 0.3 * (3 - 2 * np.exp(u))
    np.testing.assert_allclose(np.exp(u), 1.5, rtol=1e-3)  # the mode of u, not of the rate


def test_map_is_the_mode_and_svgd_has_the_mean_of_gamma():
    """Mode (3 - 1) / 2 = 1, mean 3 / 2; without the log-Jacobian SVGD's mean would be 1.0."""
    mode = collect(Recipe(Spec("gamma", method="map")), 1000)[-1]
    np.testing.assert_allclose(np.exp(mode.particles), 1.0, rtol=1e-3)
    knobs = {"method.particles": 32, "method.step_size": 0.5, "kernel.name": "imq"}
    frame = collect(Recipe(GAMMA, knobs), 2000)[-1]
    assert frame.metrics["force"] < 1e-3
    np.testing.assert_allclose(np.exp(frame.particles).mean(), 1.5, atol=0.05)


# ---------------------------------------------------------------- mixtures on N(0, 1), by quadrature


def mixture_elbo(particles):
    """E_{q_mix}[log p - log q_mix] on a grid; particles (m, 2) are (location, u) with sd = softplus(u)."""
    location, scale = particles[:, :1], np.log1p(np.exp(particles[:, 1:]))
    q = stats.norm.pdf(GRID, location, scale).mean(0)
    log_q = np.log(np.maximum(q, 1e-300))
    return np.trapezoid(q * (stats.norm.logpdf(GRID) - log_q), GRID)


def test_gradient_and_elbo_of_a_mixture_by_quadrature():
    """g is m times the gradient of the ELBO (central differences here), so with k = identity attract is the gradient
    itself. 100 keys x 1000 draws; within five standard errors."""
    m = 3
    knobs = {"method.particles": m, "bandwidth.rule": "fixed", "bandwidth.factor": 0.01}
    particles = np.array([[-1.0, 0.2], [0.4, -0.5], [1.3, 0.6]])
    stepper = compile(LINE)
    state = stepper.reset(0, knobs)
    padded = np.zeros_like(state.particles)
    padded[:m] = particles
    frames = [stepper.look(state._replace(particles=padded, step=np.int32(t)), knobs) for t in range(100)]
    expected = np.zeros_like(particles)
    for index in np.ndindex(*particles.shape):
        h = np.zeros_like(particles)
        h[index] = 1e-4
        expected[index] = (mixture_elbo(particles + h) - mixture_elbo(particles - h)) / 2e-4
    attract = np.stack([f.attract for f in frames]).astype(float)
    error = attract.std(0) / 10
    assert (error < 0.02 * np.abs(expected).max()).all()  # the test has the power to see a 10% error
    assert (np.abs(attract.mean(0) - expected) < 5 * error + 1e-5).all()

    elbo = np.array([f.metrics["mixture_elbo"] for f in frames])
    exact = mixture_elbo(particles)
    assert exact < -0.05 and elbo.std() / 10 < 0.05 * abs(exact)  # below log p(data) = 0, and well resolved
    np.testing.assert_allclose(elbo.mean(), exact, atol=5 * elbo.std() / 10)


@pytest.mark.parametrize("scale, variance, location", [("paper", 1.1848, 0.8107), ("numpyro", 1.0924, 0.7334)])
def test_two_particle_smi_has_its_exact_variance(scale, variance, location):
    """m = 2, d = 1, NumPyro's bandwidth rule (k = 1/16 at the pair): the fixed point by Gauss-Hermite quadrature."""
    knobs = {
        "method.particles": 2, "bandwidth.rule": "numpyro", "method.force_scale": scale, "method.step_size": 0.02,
    }  # fmt: skip
    frames = collect(Recipe(LINE, knobs, changes=((700, "method.step_size", 0.002),)), 1500, 100)
    totals = np.array([f.metrics["marginal_variance"] for f in frames])
    early, late = totals[8:12].mean(), totals[12:].mean()
    assert abs(early - late) < 0.005 * variance  # it has settled
    assert late == pytest.approx(variance, rel=0.01)
    np.testing.assert_allclose(np.sort(frames[-1].locations[:, 0]), [-location, location], rtol=0.02)


def test_alpha_of_the_paper_is_alpha_of_numpyro_over_m():
    m, alpha = 4, 3.0
    knobs = {"method.particles": m}
    paper, numpyro = (
        collect(Recipe(PLANE["normal"], {**knobs, "method.force_scale": scale, "method.alpha": a}), 0)[0]
        for scale, a in (("paper", alpha / m), ("numpyro", alpha))
    )
    assert np.abs(force_of(paper)).max() > 0.1
    np.testing.assert_allclose(force_of(numpyro), m * force_of(paper), rtol=1e-5, atol=1e-5)


@pytest.mark.long
def test_vi_on_a_normal():
    """On N(0, 1) the guide can be exact; on a correlated normal its variances are 1 / P_ii = 1 - 0.8^2."""
    decay = ((1500, "method.step_size", 0.005),)
    frame = collect(Recipe(LINE, {"method.particles": 1}, changes=decay), 2000)[-1]
    np.testing.assert_allclose(frame.scales**2, 1.0, rtol=0.01)
    np.testing.assert_allclose(frame.locations, 0.0, atol=0.02)
    frames = collect(Recipe(plane("vi"), changes=decay), 6000, 10)[300:]  # two draws a step: a mean over time
    np.testing.assert_allclose(np.mean([f.scales**2 for f in frames], axis=0), 0.36, rtol=0.03)


# ---------------------------------------------------------------- diagnostics and the median


def test_total_variance_is_that_of_the_mixture():
    frame = collect(Recipe(PLANE["normal"], {"method.particles": 5}), 20)[-1]
    rng = np.random.default_rng(0)
    which = rng.integers(5, size=400_000)
    draws = frame.locations[which] + frame.scales[which] * rng.normal(size=(400_000, 2))
    total, within = frame.metrics["marginal_variance"], frame.metrics["within_variance"]
    assert 0.01 < within < 0.9 * total
    np.testing.assert_allclose(draws.var(0).mean(), total, rtol=0.01)
    np.testing.assert_allclose((frame.scales**2).mean(), within, rtol=1e-5)
    np.testing.assert_allclose(frame.locations.var(0).mean(), frame.metrics["between_variance"], rtol=1e-5)


def test_ksd_and_mmd_in_plain_numpy():
    spec = plane("svgd")
    stepper = compile(spec)
    for m in (8, 5):
        knobs = {"method.particles": m}
        state = stepper.reset(0, knobs)
        x = np.asarray(stepper.target.truth.sample(jax.random.key(1), 8))
        metrics = stepper.look(state._replace(particles=x), knobs).metrics
        x, score = x[:m], -x[:m] @ np.linalg.inv(CORRELATED).astype(np.float32)

        def k(a, b):
            return (1 + jnp.sum((a - b) ** 2)) ** -0.5

        def stein(a, b, s, t):
            cross = jnp.trace(jax.jacfwd(jax.grad(k, 0), 1)(a, b))
            return s @ t * k(a, b) + s @ jax.grad(k, 1)(a, b) + t @ jax.grad(k, 0)(a, b) + cross

        pairs = jax.jit(jax.vmap(jax.vmap(stein, (None, 0, None, 0)), (0, None, 0, None)))(x, x, score, score)
        assert metrics["ksd"] == pytest.approx(np.sqrt(np.mean(pairs)), rel=1e-4)

        exact = np.float64(stepper.target.truth.sample(jax.random.fold_in(state.key, 2**31 - 1), 256))
        square = ((exact[:, None] - exact) ** 2).sum(-1)
        within, between, own = (
            np.exp(-((a[:, None] - b) ** 2).sum(-1) / square.mean()).mean()
            for a, b in ((exact, exact), (x, exact), (x, x))
        )
        assert metrics["mmd"] == pytest.approx(np.sqrt(own - 2 * between + within), rel=1e-3)


@pytest.mark.parametrize("n, counts", [(16, [1, 2, 3, *range(4, 17)] * 3), (264, [1, 2, 3, 100, 263, 264])])
@pytest.mark.parametrize("power, diagonal", [(2.0, False), (1.0, True), (1.0, False)])
@pytest.mark.parametrize("find", [by_limits, by_digits])  # of a CPU and of a GPU
def test_the_median_found_by_counting_is_the_median(n, counts, power, diagonal, find, monkeypatch):
    monkeypatch.setattr("stein_core.forces.median.by_limits", find)
    monkeypatch.setattr("stein_core.forces.median.by_digits", find)
    median = jax.jit(lambda squared, m: Pairs(squared, m, 2).median(power, diagonal))
    rng = np.random.default_rng(0)
    for m in counts:
        x = rng.normal(size=(n, 2)) * 10.0 ** rng.integers(-3, 4)
        if m % 3 == 0:
            x = np.round(x / np.abs(x).max() * 3)  # ties
        squared = np.float32(((x[:, None] - x) ** 2).sum(-1))
        active = squared[:m, :m]
        values = (active.ravel() if diagonal else active[np.triu_indices(m, 1)]).astype(float) ** (power / 2)
        expected = np.median(values) ** (2 / power) if len(values) else 0.0
        np.testing.assert_allclose(median(squared, np.float32(m)), expected, rtol=1e-5, err_msg=str(m))


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_the_influence_of_many_sources_is_the_sum_of_their_influences(kernel):
    """Of more than 512 some are taken at a time."""
    problem = SimpleNamespace(kernel=jnp.float32(KERNELS.index(kernel)), mesh=None)
    rng = np.random.default_rng(0)
    x, g, y = (np.float32(rng.normal(size=(n, 3))) for n in (600, 600, 9))
    weights = np.float32(rng.dirichlet(np.ones(600)))

    def forces(some):
        return kernel_forces(
            problem, x[some], weights[some], g[some], y, squared_distances(x[some], y), jnp.float32(1.5)
        )

    parts = [forces(slice(at, at + 200)) for at in (0, 200, 400)]
    for whole, *part in zip(forces(slice(None)), *parts):
        np.testing.assert_allclose(whole, sum(part), rtol=1e-5, atol=1e-5 * np.abs(whole).max())


@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_both_searches_find_the_same_entry_of_the_same_bits(real):
    with jax.enable_x64():
        squared = np.asarray(np.random.default_rng(1).exponential(size=(8, 16)) * 10.0 ** np.arange(-8, 8), real)
        bits = jnp.asarray(squared.view(f"int{squared.itemsize * 8}"))
        for rank in (0, 1, 100, 255):
            found = [tuple(map(int, find(bits, rank, 0))) for find in (by_limits, by_digits)]
            assert found[0] == found[1] and found[0][0] == np.sort(bits.ravel())[rank // 2]


def test_the_search_for_the_median_of_undefined_distances_ends():
    for n in (8, 256):
        squared = np.ones((n, n), np.float32)
        squared[:, :3], squared[:, 3:5] = np.uint32([0x7FC00000, 0xFFC00000]).view(np.float32)  # processors make both
        Pairs(jnp.asarray(squared), jnp.float32(n), 2).median()
        by_digits(jnp.asarray(squared[: n // 2].view(np.int32)), n * n // 2, 0)


def test_points_that_all_but_coincide_go_on_together():
    "Without repulsion two points meet; 1e-20 apart their squared distance is no length any more."
    frame = collect(
        Recipe(Spec("gaussian", method="svgd", capacity=2), {"method.particles": 2, "method.alpha": 0}), 1500
    )[-1]
    assert frame.finite and frame.step == 1500 and frame.metrics["marginal_variance"] < 1e-6
