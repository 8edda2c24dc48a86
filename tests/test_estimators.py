"""Estimators of the particles' score, forces from features, and noise with a Gram matrix."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stein_core import METHODS, Recipe, Spec, collect, compile
from stein_core.contract.recipe import knobs_of
from stein_core.contract.spec import target_of
from stein_core.contract.types import Forces, Method, State
from stein_core.forces.gram import gram_root
from stein_core.forces.interaction import forces_from
from stein_core.runs.assembly import assemble
from stein_core.runs.runner import Stepper


@pytest.mark.parametrize("rule", ["median_log", pytest.param("median", marks=pytest.mark.long)])
@pytest.mark.parametrize("estimator", ["stein", "kde", "sge", "ssge"])
def test_each_estimator_ends_at_its_law(estimator, rule):
    """Closed forms at the regular simplex; SVGD's law, which `theory` has, is that of `stein`."""
    n, d = 10, 20
    knobs = {"method.particles": n, "method.estimator": estimator, "bandwidth.rule": rule}
    spec = Spec("gaussian", d, "wgd", capacity=10)
    stepper = compile(spec, measure=("sample_variance", "stein_trace"))
    state = stepper.reset(0, knobs)
    for step_size in (0.1, 0.01, 1e-3, 1e-4):
        state = stepper.advance(state, {**knobs, "method.step_size": step_size}, 1500)
    found = stepper.look(state, knobs, ("sample_variance", "stein_trace")).metrics
    every = {name: knob.default for name, knob in spec.knobs().items()} | knobs
    law = METHODS["wgd"].facts.law(d, n, every)
    assert found["sample_variance"] == pytest.approx(law, rel=1e-5)
    assert found["stein_trace"] == pytest.approx(law, rel=1e-5)  # on a standard normal both are one
    u = {"median_log": np.log(n), "median": 1.0}[rule]
    kappa, eta = np.exp(-u), 0.01
    below = {
        "stein": 1 - kappa,
        "kde": 1 + (n - 1) * kappa,
        "sge": 1 - kappa + eta,
        "ssge": (1 - kappa + eta) ** 2 / (1 - kappa),
    }
    assert law == pytest.approx(n * kappa * u / (below[estimator] * d), rel=1e-12)


@pytest.mark.long
def test_the_stein_trace_is_the_law_on_a_target_whose_variances_are_not():
    """Student-t coordinates: families that are no Gaussian have the same trace at rest, another variance."""
    n, d = 10, 20
    spec, knobs = Spec("student", d, "svgd", capacity=10), {"method.particles": n}
    stepper = compile(spec, measure=("sample_variance", "stein_trace"))
    state = stepper.reset(0, knobs)
    for step_size in (0.1, 0.01, 1e-3, 1e-4):
        state = stepper.advance(state, {**knobs, "method.step_size": step_size}, 2000)
    found = stepper.look(state, knobs, ("sample_variance", "stein_trace")).metrics
    every = {name: knob.default for name, knob in spec.knobs().items()} | knobs
    law = METHODS["svgd"].facts.law(d, n, every)
    assert found["stein_trace"] == pytest.approx(law, rel=0.05)
    assert found["sample_variance"] > 1.2 * law


@pytest.mark.parametrize(
    "name", ["gaussian", "banana", *(pytest.param(n, marks=pytest.mark.long) for n in ("student", "funnel"))]
)
def test_exact_draws_have_a_stein_trace_of_one(name):
    target = target_of(Spec(name, 2 if name != "gaussian" else 5))
    draws = target.truth.sample(jax.random.key(0), 4000)
    scores = jax.vmap(jax.grad(target.log_density))(draws)
    each = -np.sum(np.asarray(scores * (draws - draws.mean(axis=0)), float), axis=1) / target.dim
    stepper = compile(Spec(name, target.dim, "svgd", capacity=4000), measure=("stein_trace",))
    state = stepper.reset(0, {})._replace(particles=draws)
    found = stepper.look(state, {"method.particles": 4000}, ("stein_trace",)).metrics["stein_trace"]
    assert found == pytest.approx(each.sum() / 3999, rel=1e-3)
    assert abs(found - 1) < 4 * each.std() / np.sqrt(4000)


def test_a_kernel_of_features_is_svgd_with_the_composed_kernel():
    """k(A x, A y): the repulsion, pulled back by A, is the gradient of the composed kernel by automatic
    differentiation."""
    spec = Spec("correlated", 4, "svgd", capacity=6)
    knobs = knobs_of(spec, {"method.particles": 5}).traced
    problem, _ = assemble(spec, knobs)
    x = jax.random.normal(jax.random.key(0), (6, 4))
    g = jax.random.normal(jax.random.key(1), (6, 4))
    to_features = jax.random.normal(jax.random.key(2), (3, 4))
    features = x @ to_features.T
    found = forces_from(problem, features, g, 1.7)
    pairs = np.asarray(jnp.sum((features[:5, None] - features[None, :5]) ** 2, axis=-1))
    sigma = np.sqrt(0.5 * np.median(pairs[np.triu_indices(5, 1)]) / np.log(5))
    kernel = lambda a, b: jnp.exp(-jnp.sum((to_features @ (a - b)) ** 2) / (2 * sigma**2))  # noqa: E731
    for one in range(5):
        attract = sum(kernel(x[i], x[one]) * g[i] for i in range(5)) / 5
        repulse = 1.7 * sum(jax.grad(kernel)(x[i], x[one]) for i in range(5)) / 5
        np.testing.assert_allclose(found.attract[one], attract, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(to_features.T @ found.repulse[one], repulse, rtol=1e-3, atol=1e-5)


@pytest.mark.rare
@pytest.mark.parametrize("noise, low, high", [("cholesky", 0.95, 1.05), ("elementwise", 1.5, 2.0)])
def test_noise_with_the_cholesky_factor_samples_the_posterior(noise, low, high):
    """20 particles on N(0, 1): E[x^2] is 1 with the Cholesky factor and 1.5 to 2 with the square root of each entry."""
    knobs = {"method.particles": 20, "method.noise": noise, "method.step_size": 0.05}
    stepper = compile(Spec("gaussian", 1, "stochastic", capacity=32), measure=False)
    state, seen = stepper.advance(stepper.reset(0, knobs), knobs, 2000), []
    for _ in range(3000):
        state = stepper.advance(state, knobs, 20)
        seen.append(np.mean(np.asarray(state.particles, float)[:20] ** 2))
    blocks = np.reshape(seen, (30, -1)).mean(axis=1)
    assert blocks.std() / np.sqrt(30) < 0.1 * (high - low) + 0.01
    assert low < np.mean(seen) < high


def test_the_root_of_a_singular_gram_matrix_is_finite_and_ignores_spare_rows():
    spec = Spec("gaussian", 2, "stochastic", capacity=6)
    knobs = knobs_of(spec, {"method.particles": 4}).traced
    problem, _ = assemble(spec, knobs)
    x = jnp.concatenate([jnp.zeros((2, 2)), jnp.ones((2, 2)), jnp.full((2, 2), 1e5)])  # two pairs coincide
    root = gram_root(problem, x)
    assert np.isfinite(root).all()
    np.testing.assert_array_equal(root[4:, :4], 0)
    np.testing.assert_allclose((root @ root.T)[:2, :2], np.ones((2, 2)), atol=0.02)


@pytest.mark.long
def test_diagnostics_on_demand_are_those_of_all():
    recipe = Recipe(Spec("correlated", 2, "smi", draws=2, capacity=4), {"method.particles": 3})
    every, some = collect(recipe, 5)[-1].metrics, collect(recipe, 5, measure=("ksd", "force"))[-1].metrics
    assert some == {name: pytest.approx(every[name], rel=1e-5) for name in ("force", "ksd")}
    stepper = Stepper(recipe.spec)
    with pytest.raises(ValueError, match="did you mean 'force'"):
        stepper.look(stepper.reset(0, {}), {}, ("forces",))


def test_a_sampler_keeps_its_rows_and_shows_extra_arrays():
    """A method whose particles are draws of one network: mu(z) = a + b z, with (a, b) in its memory."""

    @METHODS.register("line_sampler", label="Line", reference="test", guides=("normal",), sampler=True, listed=False)
    def line_sampler(problem):
        "Draws of N(a, b^2), each a guide."

        def draws(key, memory, n):
            z = jax.random.normal(key, (n, 1))
            return problem.guide.init(memory[0] + memory[1] * z)

        def init(key, n):
            memory = jnp.array([0.5, 2.0])
            return State(jnp.int32(0), key, draws(key, memory, n), memory)

        def step(key, state):
            memory = 0.9 * state.memory
            forces = Forces(*(jnp.zeros_like(state.particles) for _ in range(2)))
            return State(state.step + 1, state.key, draws(state.key, memory, len(state.particles)), memory), forces

        return Method(init, step, extra=lambda key, state: {"line": state.memory})

    try:
        spec = Spec("gaussian", 1, "line_sampler", capacity=4)
        stepper, knobs = compile(spec, measure=False), {"method.particles": 3}
        state = stepper.advance(stepper.reset(0, knobs), knobs, 2)
        frame = stepper.look(state, knobs, False)
        np.testing.assert_allclose(frame.extra["line"], [0.405, 1.62], rtol=1e-5)
        assert stepper.add(state, knobs, (1.0,)) == (state, knobs) and stepper.remove(state, knobs, 0) == (state, knobs)
    finally:
        del METHODS._entries["line_sampler"]
