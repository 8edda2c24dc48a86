"""The exact fixed points of two guides against known numbers and long runs, and what a fault does to them."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from scipy.special import logsumexp
from scipy.stats import norm

from stein_core import KERNELS, Recipe, Spec, collect
from stein_core.theory.fixed_points import two_guides, why_none

SPEC = Spec("gaussian", dim=2, method="smi", optimizer="sgd", draws=1000, capacity=8)
TWO = {"method.particles": 2}


def ended(knobs, spec=SPEC, steps=1500):
    """Locations and scales of the mean of a run's last frames: it stands still but for the noise of its draws."""
    recipe = Recipe(spec, {**TWO, "method.step_size": 0.5, "init.spread": 0.5, **knobs})
    frames = collect(recipe, steps, every=20)[-15:]
    return np.mean([f.locations for f in frames], axis=0), np.mean([f.scales for f in frames], axis=0)


@pytest.mark.parametrize("rule, force_scale, a, s, variance", [
    ("numpyro", "paper", 0.8107, 0.7263, 1.1848),
    ("numpyro", "numpyro", 0.7334, 0.7447, 1.0924),
    ("median_log", "paper", 1.0714, 0.7383, 1.6931),
])  # fmt: skip
def test_known_numbers(rule, force_scale, a, s, variance):
    point = two_guides(SPEC, {**TWO, "bandwidth.rule": rule, "method.force_scale": force_scale})
    np.testing.assert_allclose([point.location, point.scale, point.variance], [a, s, variance], atol=6e-5)


@pytest.mark.parametrize("alpha", [0.001, 0.1, 1.0, 10.0, 1000.0])
def test_the_total_variance_at_a_half_kernel_is_one_plus_alpha_log_two(alpha):
    # E[theta G] = 1 - variance by integration by parts, and u = log 2, f(u) = -f'(u) = 1/2 there.
    point = two_guides(SPEC, {**TWO, "method.alpha": alpha})
    np.testing.assert_allclose(point.variance, 1 + alpha * np.log(2), rtol=2e-5)


@pytest.mark.rare
@pytest.mark.parametrize("knobs", [
    {},
    {"bandwidth.rule": "numpyro", "method.force_scale": "numpyro"},
    {"bandwidth.rule": "fixed", "bandwidth.factor": 0.5, "method.alpha": 3.0},
    {"kernel.name": "imq", "bandwidth.factor": 0.7},
    {"kernel.name": "laplace", "method.alpha": 2.0},
])  # fmt: skip
def test_long_runs_end_there(knobs):
    point = two_guides(SPEC, {**TWO, **knobs})
    locations, scales = ended(knobs)
    axis = np.argmax(np.abs(locations[0]))
    np.testing.assert_allclose(np.sort(locations[:, axis]), [-point.location, point.location], atol=0.015)
    np.testing.assert_allclose(scales[:, axis], point.scale, atol=0.015)
    np.testing.assert_allclose(locations[:, 1 - axis], 0.0, atol=0.03)
    np.testing.assert_allclose(scales[:, 1 - axis], 1.0, atol=0.015)


def test_without_repulsion_the_guides_meet():
    point = two_guides(SPEC, {**TWO, "method.alpha": 0.0})
    assert point == (0.0, 1.0, True)


# For d = 2 from somebody else's quadrature of the full Jacobian, to the digits that it gave.
@pytest.mark.parametrize("dim, rule, force_scale, largest", [
    (2, "median_log", "paper", 1.139), (5, "median_log", "paper", 1.139), (2, "median", "paper", 1.357),
    (2, "numpyro", "paper", 4.27), (2, "median_log", "numpyro", 2.28), (1, "median_log", "paper", 2.136),
    (1, "numpyro", "paper", 8.01),
])  # fmt: skip
def test_beyond_some_alpha_it_does_not_hold(dim, rule, force_scale, largest):
    knobs = {**TWO, "bandwidth.rule": rule, "method.force_scale": force_scale}
    points = [two_guides(replace(SPEC, dim=dim), {**knobs, "method.alpha": side * largest}) for side in (0.998, 1.002)]
    assert [point.stable for point in points] == [True, False]


@pytest.mark.long
@pytest.mark.parametrize("dim, alphas", [(1, (1.9, 2.4)), (2, (1.1, 1.2)), (3, (1.1, 1.2))])
def test_stability_is_that_of_the_whole_jacobian(dim, alphas):
    """Equation 9 with `median_log` (k = 1/2) on a grid in all dimensions, differentiated by JAX in float64."""
    nodes, weights = hermegauss(40)
    eps = np.stack(np.meshgrid(*[nodes] * dim, indexing="ij"), axis=-1).reshape(-1, dim)
    weights = np.prod(np.stack(np.meshgrid(*[weights / weights.sum()] * dim, indexing="ij"), axis=-1), axis=-1).ravel()
    points = [two_guides(replace(SPEC, dim=dim), {**TWO, "method.alpha": alpha}) for alpha in alphas]
    held = []
    with jax.enable_x64():

        def log_mixture(theta, psi):
            log_q = [jnp.sum(jax.scipy.stats.norm.logpdf(theta, one[0], jax.nn.softplus(one[1]))) for one in psi]
            return jax.nn.logsumexp(jnp.stack(log_q)) - jnp.log(2.0)

        def field(flat, alpha):
            psi = flat.reshape(2, 2, dim)

            def gradient(one):
                def elbo(one):  # the mixture, that is psi, is held fixed
                    theta = one[0] + jax.nn.softplus(one[1]) * eps
                    terms = jax.vmap(lambda t: -0.5 * t @ t - log_mixture(t, psi))(theta)
                    return jnp.asarray(weights) @ terms

                return jax.grad(elbo)(one)

            g, apart = [gradient(one) for one in psi], psi[0] - psi[1]
            push = alpha * jnp.log(2.0) * apart / jnp.sum(apart**2)  # -alpha f'(u) / sigma^2, 2 sigma^2 = r^2 / ln 2
            return jnp.stack([g[0] + 0.5 * g[1] + push, g[1] + 0.5 * g[0] - push]).ravel()

        for alpha, point in zip(alphas, points):
            scales = np.ones(dim)
            scales[0] = point.scale
            u, at = np.log(np.expm1(scales)), point.location * np.eye(dim)[0]
            here = np.array([at, u, -at, u]).ravel()
            assert np.abs(field(here, alpha)).max() < 1e-4
            largest = np.linalg.eigvals(np.asarray(jax.jit(jax.jacfwd(field))(here, alpha))).real.max()
            assert abs(largest) > 1e-3
            held.append(bool(largest < 0))
    assert held == [point.stable for point in points] == [True, False]


@pytest.mark.rare
@pytest.mark.parametrize("rule, alpha, wide, narrow", [("median_log", 1.5, 1.59, 0.14), ("numpyro", 6.0, 1.61, 0.13)])
def test_beyond_it_both_locations_go_to_the_centre(rule, alpha, wide, narrow):
    """From random starts: one guide is wide and the other narrow on one axis, both have the target's width across
    it."""
    spec, knobs = replace(SPEC, optimizer="adam", draws=100), {"bandwidth.rule": rule, "method.alpha": alpha}
    for seed in (0, 1):
        frames = collect(Recipe(spec, {**TWO, **knobs}, seed=seed), 5000, every=50)[-40:]
        locations, scales = (np.mean([getattr(f, name) for f in frames], axis=0) for name in ("locations", "scales"))
        axis = np.argmax(np.ptp(scales, axis=0))
        np.testing.assert_allclose(locations, 0.0, atol=0.1)
        np.testing.assert_allclose(np.sort(scales[:, axis]), [narrow, wide], atol=0.05)
        np.testing.assert_allclose(scales[:, 1 - axis], 1.0, atol=0.02)


@pytest.mark.rare
def test_a_run_leaves_a_fixed_point_that_does_not_hold():
    knobs = {**TWO, "method.alpha": 10.0, "method.step_size": 0.2, "guide.width": 0.9}
    frames = collect(Recipe(replace(SPEC, draws=100), knobs), 3000, every=100)
    scales = [frame.scales.min() for frame in frames]
    assert min(scales[2:5]) > 0.7 and scales[-1] < 0.3  # first there, later one guide is narrow


def test_the_gradient_is_that_of_the_mixture_elbo():
    # d/da and d/ds of L, from its definition by quadrature: what the closed form of G says.
    from stein_core.theory.fixed_points import _gradient

    x, w = hermegauss(200)
    w = w / w.sum()

    def elbo(a, s):
        theta = a + s * x  # by symmetry one guide stands for both
        log_q = logsumexp([norm.logpdf(theta, m, s) for m in (a, -a)], axis=0) - np.log(2)
        return w @ (norm.logpdf(theta) - log_q)

    a, s, h = 0.9, 0.7, 1e-4
    slopes = [(elbo(a + h, s) - elbo(a - h, s)) / (2 * h), (elbo(a, s + h) - elbo(a, s - h)) / (2 * h)]
    np.testing.assert_allclose(_gradient(a, s), slopes, atol=1e-6)


@pytest.mark.parametrize("spec, knobs, why", [
    (Spec("banana", method="smi"), TWO, "standard Gaussian"),
    (Spec("gaussian", method="svgd"), TWO, "SMI"),
    (Spec("gaussian", method="smi", guide="normal_twice"), TWO, "normal guides"),
    (SPEC, {"method.particles": 3}, "two particles"),
    (SPEC, {**TWO, "kernel.name": "linear"}, "kernels of the distance"),
])  # fmt: skip
def test_where_there_is_none_the_reason_is_said(spec, knobs, why):
    assert two_guides(spec, knobs) is None and why in why_none(spec, knobs)


@pytest.mark.parametrize("kernel", [e.name for e in KERNELS.entries() if e.facts.argument != "inner"])
@pytest.mark.parametrize("knobs", [{"method.alpha": 1000.0}, {"method.alpha": 1e-3}, {"bandwidth.factor": 100.0},
                                   {"bandwidth.factor": 0.01},
                                   {"bandwidth.rule": "fixed", "bandwidth.factor": 0.01}])  # fmt: skip
def test_both_ends_of_every_slider_have_one(kernel, knobs):
    point = two_guides(SPEC, {**TWO, "kernel.name": kernel, **knobs})
    assert 0 <= point.location < 60 and 0.6 < point.scale < 1 + 1e-9


@pytest.mark.rare
def test_a_scale_constrained_twice_gives_one_guide_a_wrong_sd():
    spec = Spec("gaussian", dim=2, method="smi", guide="normal_twice", optimizer="sgd", draws=1000, capacity=8)
    locations, scales = ended({"method.particles": 1, "method.step_size": 0.1}, spec)
    np.testing.assert_allclose(scales, np.log(np.e - 1), atol=0.01)  # 0.54132
    np.testing.assert_allclose(locations, 0.0, atol=0.03)


@pytest.mark.rare
def test_a_scale_constrained_twice_brings_two_guides_to_the_centre():
    spec = Spec("gaussian", dim=2, method="smi", guide="normal_twice", optimizer="adam", draws=200, capacity=8)
    locations, scales = ended({"method.step_size": 0.05}, spec, 3000)
    assert np.abs(locations).max() < 0.15
    assert scales.min() < 0.1 < 0.5 < scales.max()
