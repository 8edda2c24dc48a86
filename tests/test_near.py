"""Sums over near particles only: as far from the exact ones as their bound says, and where they are allowed."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stein_core import METHODS, Recipe, Spec, collect
from stein_core.contract.recipe import knobs_of
from stein_core.forces import interaction, near
from stein_core.runs import nearness
from stein_core.runs.assembly import assemble
from stein_core.runs.runner import Stepper

METHODS_OF_POINTS = [e.name for e in METHODS.entries() if e.facts.linear and e.facts.interacts and e.name != "smi"]


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(near, "BLOCK", 8)


def exact(x, weights, g, sigma):
    """Both sums over all pairs, in float64."""
    away = x[:, None] - x
    k = weights[:, None] * np.exp(-(away**2).sum(-1) / (2 * sigma**2))
    return k.T @ g, -np.einsum("il,ilp->lp", k, away) / sigma**2


def cloud(p, n=400, active=350):
    random = np.random.default_rng(p)
    x, g = random.normal(size=(2, n, p))
    x[:60] = 100 + 0.1 * random.normal(size=(60, p))  # a far group
    x[active:] = 1e5  # spare rows
    return x, np.where(np.arange(n) < active, 1 / active, 0.0), g


@pytest.mark.parametrize("p", [1, 2, 5])
@pytest.mark.parametrize("tolerance", [1e-7, 1e-2])
def test_the_sums_are_off_by_no_more_than_the_bound(p, tolerance, small_blocks):
    with jax.enable_x64():
        x, weights, g = cloud(p)
        sigma = 0.15 * np.sqrt(p)
        found = jax.jit(near.near_forces, static_argnums=4)(x, weights, g, sigma, tolerance)
        attract, repulse = exact(x, weights, g, sigma)
        share = float(near.share_of(jnp.asarray(x), jnp.asarray(weights), sigma, tolerance))
    active = weights > 0
    cut = sigma * np.sqrt(2 * np.log(1 / tolerance))
    off = [np.abs(a[active] - b[active]).max() for a, b in zip(found, (attract, repulse))]
    assert off[0] <= tolerance * np.abs(weights[:, None] * g).sum() and off[1] <= tolerance * cut / sigma**2
    assert (np.asarray(found)[:, ~active] == 0).all()
    away = np.linalg.norm(x[:, None] - x, axis=2)
    beyond = weights[:, None] * np.where(
        away > cut, np.exp(-(away**2) / (2 * sigma**2)), 0.0
    )  # all that may be missing
    for one, other, scale in zip(found, (attract, repulse), (np.abs(g).max(axis=1)[:, None], away / sigma**2)):
        missing = np.abs(np.asarray(one) - other).max(axis=1)
        assert (missing <= (beyond * scale).sum(axis=0) + 1e-9)[active].all()
    assert share < 0.9  # the far group is left out, at least
    if tolerance == 1e-7:  # 10,000 times smaller than what is to be seen
        assert off[0] < 1e-5 * np.abs(attract).max() and off[1] < 1e-5 * np.abs(repulse).max()
    else:  # pairs are left out indeed
        assert off[0] > 1e-9


def test_blocks_are_neighbours_and_spare_rows_are_in_none(small_blocks):
    x = np.random.default_rng(0).normal(size=(256, 2))
    active = np.arange(256) % 4 > 0
    order = np.asarray(near.neighbours(jnp.asarray(x), jnp.asarray(active)))
    assert sorted(order) == list(range(256))
    low, high = near.boxes(jnp.asarray(x)[order], jnp.asarray(active)[order])
    full = np.isfinite(np.asarray(low)[:, 0])
    assert full.sum() <= 192 / 8 + 8
    sides = np.asarray(high - low)[full]
    assert np.prod(sides, axis=1).sum() < 1.5 * np.prod(np.ptp(x, axis=0))  # they hardly overlap
    assert np.median(sides.max(axis=1)) < 0.35 * np.ptp(x, axis=0).min()  # and are no strips


def test_a_wide_kernel_sums_all_pairs(small_blocks):
    x, weights, _ = cloud(2)
    x[:60] = 0.0
    assert float(near.share_of(jnp.float32(x), jnp.float32(weights), 10.0, 1e-7)) == 1.0


@pytest.mark.long
@pytest.mark.parametrize("method", METHODS_OF_POINTS)
def test_every_method_that_may_has_the_forces_of_exact_sums(method, small_blocks, monkeypatch):
    spec = Spec("gaussian", 3, method, "point", capacity=64)
    knobs = knobs_of(spec, {"method.particles": 61, "bandwidth.factor": 0.3}).traced
    monkeypatch.setattr(interaction, "DENSE", 8)

    def forces(tolerance):
        _, made = assemble(spec, {k: jnp.asarray(v) for k, v in knobs.items()}, near=tolerance)
        return jax.jit(lambda: made.step(jax.random.PRNGKey(1), made.init(jax.random.PRNGKey(0), 64))[1])()

    with jax.enable_x64():
        for one, other in zip(forces(1e-9), forces(None)):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-6 * np.abs(other).max())


@pytest.mark.long
def test_a_run_of_near_sums_says_how_far_off_it_is():
    spec, knobs = Spec("gaussian", 2, "svgd", capacity=8192), {"method.particles": 8000, "bandwidth.factor": 0.1}
    recipe = Recipe(spec, knobs)
    measured = nearness.without_pairs()
    assert "ksd" not in measured and "sample_variance" in measured
    last = collect(recipe, 2, measure=("bandwidth",), near=1e-3)[-1]
    plain = collect(recipe, 2, measure=("bandwidth",))[-1]
    np.testing.assert_allclose(last.particles, plain.particles, atol=0.02)  # Adam's first steps have the sign only
    error = nearness.error_of(Stepper(spec, near=1e-3), recipe, last)
    sigma, x = plain.metrics["bandwidth"], np.float64(last.particles)
    away = x[[5, 4000, 7999]][:, None] - x
    k = np.exp(-(away**2).sum(-1) / (2 * sigma**2)) / len(x)
    off = np.abs(np.float64(last.attract)[[5, 4000, 7999]] - k @ -x).max()
    assert 0 < off < 10 * error["attract"] * np.abs(last.attract).max() and 1e-7 < error["attract"] < 1e-2
    assert 0.01 < error["share"] < 0.3 and 0 < error["repulse"] < 0.05


@pytest.mark.parametrize(
    "spec, near, devices, text",
    [
        (Spec("gaussian", 2, "svgd", capacity=8192), 0.5, None, "near = 0.5 is out of range; allowed: 1e-07 to 0.1"),
        (Spec("gaussian", 2, "svgd", capacity=8192), "x", None, "near = 'x' is out of range"),
        (Spec("gaussian", 2, "svgd", capacity=4096), 1e-3, None, "capacity = 4096.*allowed: beyond 4096"),
        (Spec("gaussian", 11, "svgd", capacity=8192), 1e-3, None, "11 coordinates of a particle; allowed: 1 to 10"),
        (Spec("gaussian", 2, "smi", capacity=8192), 1e-3, None, "method 'smi', guide 'normal'; allowed: svgd"),
        (Spec("gaussian", 2, "langevin", capacity=8192), 1e-3, None, "method 'langevin'.*allowed: svgd"),
        (Spec("gaussian", 2, "svgd", capacity=8192), 1e-3, 2, "devices = 2; allowed: 1"),
    ],
)
def test_near_sums_are_refused_by_name(spec, near, devices, text):
    with pytest.raises(ValueError, match=text):
        Stepper(spec, devices, near)


def test_near_sums_need_a_kernel_that_vanishes():
    stepper = Stepper(Spec("gaussian", 2, "svgd", capacity=8192), near=1e-3)
    with pytest.raises(ValueError, match="kernel.name = 'imq' does not vanish far away, as near needs; allowed: 'rbf'"):
        stepper.knobs_of({"kernel.name": "imq"})
