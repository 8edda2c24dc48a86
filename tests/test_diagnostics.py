"""Diagnostics against plain NumPy on a state of our own. (Where they are NaN: test_contracts.)"""

import weakref
from dataclasses import replace

import jax
import numpy as np
import pytest
from checks import lazy

from stein_core import KERNELS, Spec, target_of
from stein_core.contract import spec as specs
from stein_core.runs.assembly import diagnostics_of
from stein_core.runs.runner import Stepper

M, D = 5, 4
EXACT = np.kron(np.eye(2), [[1.0, 0.8], [0.8, 1.0]])  # covariance of the target `correlated` in 4 dimensions
SMI = Spec("correlated", D, "smi", draws=1000, capacity=8)
SVGD = Spec("correlated", D, "svgd", capacity=8)


def seen(spec, particles, **knobs):
    """The frame at `particles` (active rows); spare rows hold what must not count."""
    stepper = lazy(spec)
    knobs = {"method.particles": len(particles), **{k.replace("__", "."): v for k, v in knobs.items()}}
    state = stepper.reset(3, knobs)
    rows = np.full_like(state.particles, 7.0)
    rows[: len(particles)] = particles
    return stepper.look(state._replace(particles=rows), knobs)


def guides(seed=0, spread=1.0):
    """(frame, locations, scales) of five guides; psi = (location, u) with sd = softplus(u)."""
    rng = np.random.default_rng(seed)
    locations, scales = spread * rng.normal(0.3, 1.0, (M, D)), rng.uniform(0.3, 1.2, (M, D))
    frame = seen(SMI, np.concatenate([locations, np.log(np.expm1(scales))], axis=1))
    np.testing.assert_allclose(frame.scales, scales, rtol=1e-5)
    return frame, locations, scales


def points(seed=0, m=M):
    return np.random.default_rng(seed).normal(0.3, 1.0, (m, D))


def log_densities(theta, locations, scales):
    standard = (theta[:, None] - locations) / scales
    return -0.5 * (standard**2).sum(-1) - np.log(scales).sum(-1) - 0.5 * D * np.log(2 * np.pi)


@pytest.mark.long
def test_effective_components_are_the_mutual_information_of_draw_and_guide():
    rng = np.random.default_rng(9)
    for spread in (0.2, 0.6, 20.0):
        frame, locations, scales = guides(spread=spread)
        which = np.repeat(np.arange(M), 100_000)
        theta = locations[which] + scales[which] * rng.normal(size=(len(which), D))
        log_q = log_densities(theta, locations, scales)
        own = np.take_along_axis(log_q, which[:, None], axis=1)[:, 0]
        expected = np.exp(np.mean(own - np.log(np.exp(log_q - own[:, None]).mean(1)) - own))
        # 5000 draws of a term with a spread of at most 0.8: five standard errors
        assert frame.metrics["components"] == pytest.approx(expected, rel=0.06)
        assert 1 <= frame.metrics["components"] < M * 1.001
    assert frame.metrics["components"] == pytest.approx(M, rel=1e-3)  # far apart
    for seed in range(20):  # the estimate alone would leave the range
        assert 1.0 <= guides(seed, spread=0.01)[0].metrics["components"] <= M
        assert 1.0 <= guides(seed, spread=20.0)[0].metrics["components"] <= M
    alone = seen(SMI, np.float32([[0.1] * D + [0.5] * D] * 3))  # three guides in one place are one
    assert alone.metrics["components"] == pytest.approx(1.0, abs=1e-5)


@pytest.mark.long
def test_variances_and_means():
    frame, locations, scales = guides()
    x = points()
    between, within = locations.var(0).mean(), (scales**2).mean()
    expected = {
        "between_variance": between, "within_variance": within, "marginal_variance": between + within,
        "sample_variance": between + within, "mean_location": locations.mean(),
    }  # fmt: skip
    random = np.random.default_rng(0)
    which = random.integers(len(locations), size=400_000)
    draws = locations[which] + scales[which] * random.standard_normal((len(which), D))
    assert draws.var(0).mean() == pytest.approx(between + within, rel=0.01)  # 1/(n-1) would be more
    for name, value in expected.items():
        assert frame.metrics[name] == pytest.approx(value, rel=1e-5), name
    metrics = seen(SVGD, x).metrics
    assert metrics["sample_variance"] == pytest.approx(x.var(0, ddof=1).mean(), rel=1e-5)
    assert metrics["mean_location"] == pytest.approx(x.mean(), rel=1e-5) and metrics["within_variance"] == 0
    alone = seen(SVGD, x[:1]).metrics
    assert alone["sample_variance"] == 0 and alone["norm_spread"] == 0 and alone["overlap"] == 0


def test_mean_location_is_counted_from_the_exact_mean():
    """two_modes has mean (2/3, 0): particles there have no bias."""
    stepper = lazy(Spec("two_modes", method="map"))
    for x, expected in (([2 / 3, 0.0], 0.0), ([1.0, -0.2], (1 / 3 - 0.2) / 2)):
        state = stepper.reset(0, {})._replace(particles=np.float32([x]))
        assert stepper.look(state, {}).metrics["mean_location"] == pytest.approx(expected, abs=1e-6)


def test_frobenius_distances_of_full_covariance_and_diagonal():
    frame, locations, scales = guides()
    covariance = np.diag((scales**2).mean(0)) + np.cov(locations.T, bias=True)
    x = points()
    for metrics, ours in ((frame.metrics, covariance), (seen(SVGD, x).metrics, np.cov(x.T, bias=True))):
        gap = ours - EXACT
        assert metrics["covariance_error"] == pytest.approx(np.linalg.norm(gap), rel=1e-5)
        assert metrics["diagonal_error"] == pytest.approx(np.linalg.norm(np.diag(gap)), rel=1e-5)
        assert abs(np.linalg.norm(ours - np.eye(D)) / np.linalg.norm(gap) - 1) > 0.05  # the 0.8 counts


def test_norms_and_angles():
    x = points()
    centered = x - x.mean(0)
    gram = centered @ centered.T
    norms = np.diag(gram)
    metrics = seen(SVGD, x).metrics
    assert metrics["norm_spread"] == pytest.approx(np.abs(norms - norms.mean()).max() / np.sqrt(D), rel=1e-5)
    assert metrics["overlap"] == pytest.approx(np.abs(gram - np.diag(norms)).max() / np.sqrt(D), rel=1e-5)
    tetrahedron = np.float32([[1, 1, 1, 0], [1, -1, -1, 0], [-1, 1, -1, 0], [-1, -1, 1, 0]])
    metrics = seen(SVGD, tetrahedron + 0.5).metrics
    assert metrics["norm_spread"] == pytest.approx(0, abs=1e-5) and metrics["overlap"] == pytest.approx(0.5, rel=1e-5)


@pytest.mark.parametrize("kernel", KERNELS)
def test_fluctuations_of_both_forces(kernel):
    """Variance over sources j of S1 = k(x_j, x) s(x_j) and S2 = grad_1 k(x_j, x), mean over x; k by autodiff."""
    x = np.float32(points(1))
    metrics = seen(SVGD, x, kernel__name=kernel, bandwidth__rule="fixed", bandwidth__factor=1.7).metrics
    profile = KERNELS[kernel].make
    inner = KERNELS[kernel].facts.argument == "inner"

    def k(a, b):
        return profile(a @ b / 1.7**2 if inner else (a - b) @ (a - b) / (2 * 1.7**2))

    score = -x @ np.linalg.inv(EXACT)
    s1, s2 = (np.zeros((M, M, D)) for _ in range(2))
    for j, i in np.ndindex(M, M):
        same = j == i and not inner  # a radial kernel is 1 and flat there
        s1[j, i] = (1.0 if same else k(x[j], x[i])) * score[j]
        s2[j, i] = 0.0 if same else jax.grad(k)(x[j], x[i])
    for name, parts in (("driving_noise", s1), ("repulsion_noise", s2)):
        assert metrics[name] == pytest.approx(parts.var(0).sum(-1).mean(), rel=1e-4, abs=1e-7), name


@pytest.mark.long
def test_methods_of_one_problem_share_the_compiled_diagnostics():
    """Which say the same of the same particles, whoever moves them; the forces are each method's own."""
    methods = ("svgd", "annealed", "langevin", "ensemble", "mmd")
    specs = [Spec("gaussian", D, method, optimizer="sgd", capacity=8) for method in methods]
    held = [diagnostics_of(spec) for spec in specs]
    assert len(set(map(id, held))) == 1
    others = (SVGD, replace(specs[0], dim=3), replace(specs[0], capacity=6), Spec("gaussian", D, "smi", capacity=8))
    held = [diagnostics_of(spec) for spec in (specs[0], *others)]
    assert len(set(map(id, held))) == 5
    frames = [seen(spec, points()).metrics for spec in specs]
    assert len({frame["force"] for frame in frames}) > 2
    same = [{k: v for k, v in frame.items() if k not in ("attraction", "repulsion", "force")} for frame in frames]
    for frame in same[1:]:
        np.testing.assert_equal(frame, same[0])


@pytest.mark.long
def test_diagnostics_are_of_the_target_that_the_run_began_with_and_go_with_its_last_program():
    steppers = [Stepper(Spec("oring", method=method, capacity=8)) for method in ("svgd", "ensemble")]
    # Another could be there by now; and what is built while a program is traced is of no use later.
    specs._target.cache_clear()
    frames = [stepper.look(stepper.reset(0, {}), {}) for stepper in steppers]
    assert frames[0].metrics["ksd"] == frames[1].metrics["ksd"] > 0
    target_of(steppers[0].spec).log_density(frames[0].particles[0])
    (program,) = steppers[0]._diagnostics.values()
    meter = weakref.ref(program)
    del program
    del steppers[0]
    assert meter()
    del steppers[0]
    assert not meter()


@pytest.mark.long
def test_the_stein_discrepancy_does_not_see_a_collapse():
    """20 particles in 50 dimensions: SVGD's variance is ln(20) / 50, that of exact draws 1, yet its KSD is smaller."""
    stepper = lazy(Spec("gaussian", 50, "svgd", capacity=20))
    knobs = {"method.particles": 20}
    state = stepper.advance(stepper.reset(0, knobs), knobs, 3000)
    draws = np.float32(np.random.default_rng(0).normal(size=(20, 20, 50)))
    exact = [stepper.look(state._replace(particles=x), knobs, ("ksd",)).metrics["ksd"] for x in draws]
    found = stepper.look(state, knobs, ("ksd", "sample_variance")).metrics
    assert found["sample_variance"] < 0.07
    assert found["ksd"] == pytest.approx(2.14, abs=0.02) and np.mean(exact) == pytest.approx(2.23, abs=0.02)
