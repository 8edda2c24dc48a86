"""Targets in other coordinates, and NumPyro targets from and to their own space."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest

from stein_core import Recipe, Spec, collect, from_numpyro, target_of
from stein_core.contract.known import Truth
from stein_core.contract.target import precondition
from steinlab.stage.scene import density_of


@pytest.mark.parametrize("kind", ["scaled", "whitened"])
@pytest.mark.parametrize("name", ["correlated", "oring"])
def test_the_density_changes_by_the_volume_alone(name, kind):
    target = target_of(Spec(name))
    moved = precondition(target, kind)
    z = jax.random.normal(jax.random.key(0), (5, 2))
    eye = jnp.eye(2)
    origin = moved.constrain(jnp.zeros(2))
    assert set(origin) == set(target.constrain(jnp.zeros(2)))
    # theta(z) is found from the other side: `unconstrain` of the model, or the exact draws' own space.
    theta = jnp.stack([target.unconstrain(moved.constrain(row)) for row in z]) if target.unconstrain else None
    if theta is None:
        theta = jnp.stack([moved.constrain(row)["theta"] for row in z])
        at = [moved.constrain(row)["theta"] for row in (jnp.zeros(2), *eye)]
    else:
        at = [target.unconstrain(moved.constrain(row)) for row in (jnp.zeros(2), *eye)]
    columns = np.stack([at[1] - at[0], at[2] - at[0]], axis=1)
    volume = np.log(abs(np.linalg.det(columns)))
    found = jax.vmap(moved.log_density)(z) - jax.vmap(target.log_density)(theta)
    np.testing.assert_allclose(found, volume, rtol=1e-3, atol=1e-3)
    if kind == "scaled":
        assert abs(columns[0, 1]) + abs(columns[1, 0]) < 1e-3 * abs(columns).max()


def test_whitened_draws_are_white_and_names_say_so():
    moved = precondition(target_of(Spec("correlated")), "whitened")
    draws = moved.truth.sample(jax.random.key(0), 20_000)
    np.testing.assert_allclose(np.cov(draws.T), np.eye(2), atol=0.03)
    np.testing.assert_allclose(moved.truth.variance, 1, rtol=1e-6)
    assert moved.truth.covariance is None and moved.coordinates == ("z1 (whitened)", "z2 (whitened)")
    spec = Spec("oring", options={"target.coordinates": "scaled"})
    assert target_of(spec).coordinates == ("intercept (scaled)", "slope (scaled)")
    assert density_of(spec)["labels"] == ["intercept (scaled)", "slope (scaled)"]  # the axes of the stage
    with pytest.raises(ValueError, match="did you mean 'whitened'"):
        precondition(moved, "whitend")


@pytest.mark.parametrize("kind", ["scaled", "whitened"])
def test_what_is_known_of_a_target_moves_with_its_coordinates(kind):
    places = np.array([[-2.0, 0.5], [2.0, -0.5]])
    plain, covariance = target_of(Spec("correlated")), np.array([[4.0, 0.5], [0.5, 0.25]])
    moments = {"covariance": covariance, "variance": np.diagonal(covariance)}
    known = replace(
        plain,
        start=replace(plain.start, draw=lambda key, n: jnp.asarray(places)[:n]),
        truth=replace(plain.truth, **moments, reference=places, mode_centers=places),
    )
    moved = precondition(known, kind)
    for found in (moved.start.draw(jax.random.key(0), 2), moved.truth.reference, moved.truth.mode_centers):
        np.testing.assert_allclose(moved.constrain(jnp.asarray(found))["theta"], places, atol=1e-5)
        assert np.abs(np.asarray(found) - places).max() > 0.1


@pytest.mark.long
def test_a_target_without_a_name_has_the_option_if_its_covariance_is_known():
    def line(y):
        a, b = numpyro.sample("a", dist.Normal(0, 3)), numpyro.sample("b", dist.Normal(0, 1))
        numpyro.sample("y", dist.Normal(a + b, 0.1), obs=y)

    target = from_numpyro(line, jnp.array([1.0, 1.1]))
    spec = Spec(target, method="svgd", capacity=8, options={"target.coordinates": "whitened"})
    assert target_of(spec).coordinates == ("z1 (whitened)", "z2 (whitened)")
    assert target_of(Spec(target)) is target
    frame = collect(Recipe(spec, {"method.particles": 5}), 3)[-1]
    assert frame.finite
    with pytest.raises(ValueError, match="unknown option 'target.coordinates'"):
        Spec(
            replace(target, start=replace(target.start, root=None), truth=Truth()),
            options={"target.coordinates": "scaled"},
        )


@pytest.mark.rare
def test_svgd_recovers_the_spread_of_a_regression_in_whitened_coordinates_only():
    """Inputs far from 0: intercept and slope are correlated by -0.999. The posterior is Gaussian and known."""
    draw = np.random.default_rng(0)
    x = (20 + draw.normal(size=50)).astype(np.float32)
    y = (1 + 0.5 * x + draw.normal(size=50)).astype(np.float32)

    def line(x, y):
        a, b = numpyro.sample("a", dist.Normal(0, 10)), numpyro.sample("b", dist.Normal(0, 10))
        numpyro.sample("y", dist.Normal(a + b * x, 1), obs=y)

    design = np.stack([np.ones(50), x], axis=1)
    covariance = np.linalg.inv(np.eye(2) / 100 + design.T @ design)
    ends = np.array([[1, 0], [1, 20], [0, 1]])  # the intercept, the line at x = 20, the slope
    exact = np.sqrt(np.einsum("ki,ij,kj->k", ends, covariance, ends))
    target = from_numpyro(line, x, y)

    def spread(kind):
        moved = precondition(target, kind)
        recipe = Recipe(Spec(moved, method="svgd", capacity=100), {"method.particles": 100, "bandwidth.rule": "median"})
        particles = jnp.asarray(collect(recipe, 1500, measure=False)[-1].locations)
        values = moved.constrain(particles)
        return np.std(ends @ np.stack([values["a"], values["b"]]), axis=1) / exact

    assert (np.abs(spread("whitened") - 1) < 0.15).all()
    assert (np.abs(spread("raw") - 1) > 0.3).any()


def test_constrain_takes_one_or_many_and_unconstrain_is_its_inverse():
    def model(y):
        scale = numpyro.sample("scale", dist.HalfNormal(1.0))
        share = numpyro.sample("share", dist.Dirichlet(jnp.ones(3)))
        numpyro.deterministic("precision", 1 / scale**2)
        numpyro.sample("y", dist.Normal(share[0], scale), obs=y)

    target = from_numpyro(model, jnp.array([0.1, 0.4, 0.3]))
    theta = jax.random.normal(jax.random.key(0), (4, target.dim))
    many, one = target.constrain(theta), target.constrain(theta[0])
    assert set(many) == {"scale", "share", "precision"} and many["share"].shape == (4, 3)
    for name in many:
        np.testing.assert_allclose(many[name][0], one[name], rtol=1e-5)
    np.testing.assert_allclose(many["precision"], many["scale"] ** -2, rtol=1e-4)
    back = target.unconstrain({name: one[name] for name in ("scale", "share")})
    np.testing.assert_allclose(back, theta[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["wave", "gap_regression", "oring", "earth", "banana", "gaussian"])
def test_every_kind_of_target_constrains_one_or_many(name):
    target = target_of(Spec(name))
    theta = np.float32(np.random.default_rng(0).normal(size=(3, target.dim)))
    many, one = target.constrain(theta), target.constrain(theta[1])
    for key, values in many.items():
        np.testing.assert_allclose(values[1], one[key], rtol=1e-5, err_msg=key)


@pytest.mark.long
def test_large_data_of_a_model_are_arguments_of_its_programs():
    draw = np.random.default_rng(0)
    x, y = draw.normal(size=(2, 5000)).astype(np.float32)

    def line(x, y):
        slope = numpyro.sample("slope", dist.Normal(0, 1))
        numpyro.sample("y", dist.Normal(slope * x, 1), obs=y)

    target = from_numpyro(line, x, y)
    assert {array.shape for array in target.data} == {(5000,)} and len(target.data) >= 2
    theta = jnp.array([0.3])
    np.testing.assert_allclose(target.remake(data=target.data).log_density(theta), target.log_density(theta))
    halved = [array / 2 if array.dtype == np.float32 else array for array in target.data]
    assert abs(target.remake(data=halved).log_density(theta) - target.log_density(theta)) > 1
    knobs = {"method.particles": 8, "method.step_size": 0.003}  # small beside the sd of 0.014
    frame = collect(Recipe(Spec(target, method="svgd", capacity=8), knobs), 400)[-1]
    assert frame.locations.mean() == pytest.approx(x @ y / (1 + x @ x), abs=1e-4)
