"""What float32 may not do to forces: against the same formulas in float64, in the places where digits cancel."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from checks import lazy
from scipy.spatial.distance import cdist

from stein_core import KERNELS, Spec, target_of
from stein_core.theory import profile

RADIAL = [e.name for e in KERNELS.entries() if profile(e.name)]


def exact(x, kernel, factor=1.0):
    """Attraction and repulsion (n, d) of SVGD on N(0, I), rule `median`, in float64."""
    x = np.asarray(x, float)
    f, slope = (np.vectorize(function) for function in profile(kernel))
    square = cdist(x, x, "sqeuclidean")
    twice = factor**2 * np.median(square[np.triu_indices(len(x), 1)])
    u = square / twice
    steep = np.where(u > 0, slope(np.where(u > 0, u, 1.0)), 0.0) * 2.0 / twice
    pushed = np.stack([np.sum(steep * (c[:, None] - c), axis=0) for c in x.T], axis=1)
    return f(u).T @ -x / len(x), pushed / len(x)


def found(x, kernel="rbf", spare=7.0, capacity=None, **knobs):
    """The frame at points x (n, d); spare rows lie at `spare`."""
    n, d = x.shape
    stepper = lazy(Spec("gaussian", d, "svgd", capacity=capacity or 64))
    knobs = {"method.particles": n, "kernel.name": kernel, "bandwidth.rule": "median", **knobs}
    state = stepper.reset(0, knobs)
    rows = np.full_like(state.particles, spare)
    rows[:n] = x
    return stepper.look(state._replace(particles=rows), knobs)


def assert_forces(frame, x, kernel, rtol, factor=1.0):
    for name, force in zip(("attract", "repulse"), exact(x, kernel, factor)):
        np.testing.assert_allclose(
            getattr(frame, name), force, atol=rtol * np.abs(force).max(), err_msg=f"{name} {kernel}"
        )


def normal(n, d, seed=0):
    return np.float32(np.random.default_rng(seed).normal(size=(n, d)))


@pytest.mark.long
@pytest.mark.parametrize("d", [2, 17, 50])
@pytest.mark.parametrize("spare", [1e5, -3e4])
def test_spare_rows_far_away_change_nothing(d, spare):
    x = normal(20, d)
    for kernel in RADIAL:
        assert_forces(found(x, kernel, spare), x, kernel, 1e-4 if d > 16 and kernel == "laplace" else 1e-5)


@pytest.mark.long
@pytest.mark.parametrize("shift", [100.0, 1e4])
def test_a_common_shift_changes_no_repulsion(shift):
    x = normal(20, 50)
    moved = np.float32(x + shift)
    for kernel in RADIAL:
        near, far = exact(moved.astype(float) - shift, kernel)[1], found(moved, kernel).repulse
        np.testing.assert_allclose(far, near, atol=1e-4 * np.abs(near).max(), err_msg=kernel)


@pytest.mark.long
@pytest.mark.parametrize("d", [16, 17, 50])
@pytest.mark.parametrize("n", [2, 3])
def test_particles_in_one_place_have_numpyros_bandwidth_of_one(d, n):
    """Every pair coincides: there is no length, so 2 sigma^2 = 1, and all act on all with k = 1."""
    place = normal(1, d, seed=3)
    frame = found(np.repeat(place, n, axis=0), spare=50.0)
    assert frame.metrics["bandwidth"] == pytest.approx(0.5**0.5, rel=1e-6)
    np.testing.assert_allclose(frame.attract, np.repeat(-place, n, axis=0), rtol=1e-5)
    np.testing.assert_array_equal(frame.repulse, 0.0)


def test_most_particles_in_two_places_have_it_too():
    """Within a place that is not the centre rounding leaves |x|^2 + |x|^2 - 2 <x, x> above 0."""
    places = np.float32([[1.0], [-0.7]]) * np.abs(normal(1, 50, seed=3))
    x = np.concatenate([np.repeat(places[:1], 9, axis=0), places[1:]])
    assert found(x).metrics["bandwidth"] == pytest.approx(0.5**0.5, rel=1e-6)
    within = found(np.repeat(places, 5, axis=0), **{"kernel.name": "imq"})
    assert within.metrics["bandwidth"] > 1.0  # 25 pairs of 45 are apart: the median is their distance


@pytest.mark.parametrize("d", [2, 17])
def test_an_outlier_costs_the_others_no_digits(d):
    x = normal(40, d)
    x[7] = 1e4
    for kernel in ("rbf", "imq"):
        frame = found(x, kernel)
        others = np.arange(len(x)) != 7
        for name, force in zip(("attract", "repulse"), exact(x, kernel)):
            np.testing.assert_allclose(
                getattr(frame, name)[others], force[others], atol=2e-5 * np.abs(force[others]).max(), err_msg=name
            )


@pytest.mark.rare
def test_close_pairs_of_a_steep_kernel_are_exact():
    x = normal(256, 1)
    assert_forces(found(x, "laplace", capacity=256), x, "laplace", 1e-5)
    x[9] = 1e4
    assert_forces(found(x, "laplace", capacity=256), x, "laplace", 1e-5)


@pytest.mark.rare
def test_spare_guides_far_away_change_nothing():
    """SMI in 20 dimensions: log q of a draw is a matmul around a centre."""
    stepper = lazy(Spec("gaussian", 20, "smi", capacity=16))
    knobs = {"method.particles": 5}
    state = stepper.reset(0, knobs)
    frames = []
    for spare in (0.0, 1e5):
        rows = np.array(state.particles)
        rows[5:, :20] = spare
        frames.append(stepper.look(state._replace(particles=rows), knobs))
    near, far = frames
    for name in ("attract", "repulse"):
        np.testing.assert_allclose(
            getattr(far, name), getattr(near, name), atol=2e-5 * np.abs(getattr(near, name)).max()
        )
    for name in ("mixture_elbo", "ksd", "mmd", "bandwidth", "marginal_variance"):
        assert far.metrics[name] == pytest.approx(near.metrics[name], rel=1e-4), name


def test_the_funnels_score_is_exact_beyond_the_square_of_its_scale():
    score = jax.grad(target_of(Spec("funnel")).log_density)
    for v in (1.0, 60.0, 80.0, 150.0):
        np.testing.assert_allclose(
            score(jnp.float32([2.0, v])), [-2 * np.exp(-v), 2 * np.exp(-v) - 0.5 - v / 2.25], rtol=1e-5, atol=1e-30
        )
