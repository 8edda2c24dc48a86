"""Sums over many particles, block by block: the same as over arrays of all pairs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stein_core import Spec, collect
from stein_core.contract.facts import MAX_CAPACITY
from stein_core.contract.recipe import Recipe, knobs_of
from stein_core.contract.registry import BANDWIDTHS, GUIDES, KERNELS, METHODS
from stein_core.forces import interaction, median, sums
from stein_core.runs.assembly import assemble
from stein_core.runs.diagnostics import DIAGNOSTICS, evaluate
from stein_core.runs.runner import Stepper

N, M = 40, 37  # three spare rows, and a last block that is not full
LINEAR = [entry.name for entry in METHODS.entries() if entry.facts.linear]


@pytest.fixture
def in_blocks(monkeypatch):
    """Return what makes programs sum in small blocks, with all pairs in the sample."""

    def begin():
        monkeypatch.setattr(interaction, "DENSE", 8)
        monkeypatch.setattr(interaction, "LOGS", 2 * N)
        monkeypatch.setattr(sums, "ROWS", 8)
        monkeypatch.setattr(sums, "COLUMNS", 12)
        monkeypatch.setattr(median, "PARTNERS", M)

    return begin


def step_of(spec, knobs, measured):
    """Return the forces of one step, and diagnostics."""
    known = {name: jnp.asarray(value) for name, value in knobs_of(spec, knobs).traced.items()}

    def both():
        problem, method = assemble(spec, known)  # not traced: one kernel and one rule are compiled
        key, state = jax.random.PRNGKey(1), method.init(jax.random.PRNGKey(0), spec.capacity)
        state = state._replace(particles=state.particles.at[1].set(state.particles[0]))  # two at one place
        forces = method.step(key, state)[1]
        return forces, evaluate(problem, key, state, forces, measured)

    return jax.jit(both)()


def agree(spec, knobs, in_blocks, measured=("bandwidth",)):
    with jax.enable_x64():
        whole = step_of(spec, knobs, measured)
        in_blocks()
        for one, other in zip(jax.tree.leaves(whole), jax.tree.leaves(step_of(spec, knobs, measured))):
            np.testing.assert_allclose(other, one, rtol=1e-11, atol=1e-12 * np.nanmax(np.abs(one), initial=1.0))


@pytest.mark.long
@pytest.mark.parametrize("kernel", list(KERNELS))
def test_every_kernel_has_the_same_forces_and_diagnostics_in_blocks(kernel, in_blocks):
    knobs = {"kernel.name": kernel, "method.particles": M}
    agree(Spec("gaussian", 3, "svgd", capacity=N), knobs, in_blocks, None)  # differences


@pytest.mark.parametrize(
    "kernel",
    [pytest.param(k, marks=pytest.mark.long if k in ("rbf", "laplace") else pytest.mark.rare) for k in KERNELS],
)
def test_every_kernel_has_the_same_forces_in_blocks_by_products(kernel, in_blocks, optimized):
    """The median is found to the digits of float32, so rounding must not differ in the last digit of a distance: it
    does without optimization."""
    knobs = {"kernel.name": kernel, "method.particles": M}
    agree(Spec("gaussian", 20, "svgd", capacity=N), knobs, in_blocks, None)


@pytest.mark.parametrize("particles", [M - 1, M])
@pytest.mark.parametrize("rule", list(BANDWIDTHS))
def test_every_rule_has_the_same_forces_in_blocks(rule, particles, in_blocks):
    agree(Spec("gaussian", 2, "svgd", capacity=N), {"bandwidth.rule": rule, "method.particles": particles}, in_blocks)


@pytest.mark.long
@pytest.mark.parametrize("method", LINEAR)
def test_every_method_that_takes_many_particles_has_the_same_forces_in_blocks(method, in_blocks):
    agree(Spec("gaussian", 3, method, capacity=N), {"method.particles": M}, in_blocks)


GUIDES_AND_DIMS = [(entry.name, dim) for entry in GUIDES.entries() if entry.facts.has_density for dim in (3, 20)]
USUAL = [("normal", 20), ("full", 3), ("low_rank", 20)]


@pytest.mark.parametrize(
    "guide, dim",
    [pytest.param(*each, marks=pytest.mark.long if each in USUAL else pytest.mark.rare) for each in GUIDES_AND_DIMS],
)
def test_the_mixture_of_guides_is_the_same_in_blocks(guide, dim, in_blocks, optimized):
    agree(
        Spec("gaussian", dim, "smi", guide, draws=3, capacity=N),
        {"method.particles": M},
        in_blocks,
        ("mixture_elbo", "components"),
    )


@pytest.mark.long
def test_twenty_thousand_particles_take_steps_and_feel_all_others(optimized):
    spec = Spec("gaussian", 2, "svgd", capacity=20_000)
    knobs = {"method.particles": 20_000, "kernel.name": "imq"}
    stepper = Stepper(spec)
    state = stepper.advance(stepper.reset(0, knobs), knobs, 2)
    frame = stepper.look(state, knobs, ("bandwidth", "ksd", "overlap"))
    x, sigma = np.float64(frame.particles), frame.metrics["bandwidth"]
    some = np.random.default_rng(0).choice(20_000, 300)
    exact = np.median(((x[some, None] - x) ** 2).sum(-1)) / np.log(20_000)
    assert abs(2 * sigma**2 / exact - 1) < 0.1  # the median of 300 rows
    for one in (0, 7, 12_345, 19_999):
        apart = x - x[one]
        base = 1 + (apart**2).sum(1) / (2 * sigma**2)
        np.testing.assert_allclose(frame.attract[one], base**-0.5 @ -x / 20_000, atol=1e-5)
        repulse = (-0.5 * base**-1.5 / sigma**2) @ apart / 20_000
        np.testing.assert_allclose(frame.repulse[one], repulse, atol=1e-5)
    assert np.isfinite(list(frame.metrics.values())).all()


def test_the_median_of_a_sample_is_near_that_of_all_pairs():
    x = np.float32(np.random.default_rng(0).normal(size=(5002, 2)))
    for m in (5001, 1024, 129):
        squared = ((x[:m, None] - x[:m]) ** 2).sum(-1)
        exact = np.median(squared[np.triu_indices(m, 1)])
        found = median.Sampled.of(jnp.asarray(x), jnp.float32(m), 2).median()
        assert abs(found / exact - 1) < 0.01, m


@pytest.mark.long
@pytest.mark.parametrize("method, guide", [("svgd", "point"), ("smi", "normal")])
def test_memory_grows_as_the_number_of_particles(method, guide, optimized):
    def used(n):
        spec = Spec("gaussian", 20, method, guide, draws=2, capacity=n)
        knobs = {k: jnp.asarray(v) for k, v in knobs_of(spec, {"method.particles": n}).traced.items()}

        def look(knobs, state):
            problem, method = assemble(spec, knobs)
            after, forces = method.step(jax.random.PRNGKey(0), state)
            return after, evaluate(problem, state.key, state, forces)

        state = jax.eval_shape(lambda: assemble(spec, knobs)[1].init(jax.random.PRNGKey(0), n))
        return jax.jit(look).lower(knobs, state).compile().memory_analysis().temp_size_in_bytes

    assert used(20_000) < 2.2 * used(10_000)


def test_a_method_that_forms_all_pairs_says_how_many_particles_it_takes():
    with pytest.raises(ValueError, match=r"capacity = 8192 is too many for method 'newton'.*allowed: .* 4096\."):
        Spec("gaussian", 2, "newton", capacity=8192)
    with pytest.raises(ValueError, match=f"allowed: 1 to {MAX_CAPACITY}"):
        Spec("gaussian", 2, "svgd", capacity=2 * MAX_CAPACITY)
    assert Spec("gaussian", 2, "vi", capacity=8192).capacity == 1


@pytest.mark.long
def test_what_a_method_may_hold_follows_from_its_fact(optimized):
    last = collect(Recipe(Spec("gaussian", 2, "langevin", capacity=8192), {"method.particles": 5000}), 1)[-1]
    assert len(last.particles) == 5000 and set(last.metrics) == set(DIAGNOSTICS)
