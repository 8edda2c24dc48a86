"""What every registered entry promises. The tests iterate the registries, so a new entry is tested by being there."""

import inspect
import pkgutil
import sys
from dataclasses import fields

import jax
import numpy as np
import pytest
from conftest import ARRAYS, COMPILE, TRACE, assert_no_nan, assert_same_frame, force_of

import stein_core
from stein_core import (
    BANDWIDTHS, DIAGNOSTICS, FORCE_SCALES, GUIDES, KERNELS, METHODS, OPTIMIZERS, TARGETS,
    Recipe, Spec, UnknownName, collect, compile, stream, target_of,
)  # fmt: skip

M = 5
COUNT = {"method.particles": M}
VARIANTS = [(method, guide) for method in METHODS for guide in METHODS[method].facts["guides"]]
POINTS = [v for v in VARIANTS if v[1] == "point"]
PRECISION = np.linalg.inv([[1.0, 0.8], [0.8, 1.0]])  # of the target that every method is tested on
REGISTRIES = [TARGETS, METHODS, GUIDES, KERNELS, BANDWIDTHS, OPTIMIZERS, FORCE_SCALES, DIAGNOSTICS]


def spec_of(method, guide=None, capacity=8, optimizer="adam"):
    return Spec("correlated", method=method, guide=guide, draws=2, capacity=capacity, optimizer=optimizer)


# ---------------------------------------------------------------- methods


@pytest.mark.parametrize("method, guide", VARIANTS)
def test_method_gives_finite_frames_that_do_not_depend_on_how_the_run_is_cut(method, guide):
    spec = spec_of(method, guide)
    stepper = compile(spec)
    m = 1 if spec.capacity == 1 else M
    size = 2 * spec.dim if guide == "normal" else spec.dim
    start = stepper.reset(3, COUNT)
    frame = stepper.look(start, COUNT)
    shapes = {"particles": size, "attract": size, "repulse": size, "locations": spec.dim, "scales": spec.dim}
    for name, width in shapes.items():
        array = getattr(frame, name)
        assert isinstance(array, np.ndarray) and array.shape == (m, width) and np.isfinite(array).all(), name
    assert frame.step == 0 and frame.finite and list(frame.metrics) == list(DIAGNOSTICS)
    undefined = {"mixture_elbo"} if guide == "point" else set()
    assert {name for name, value in frame.metrics.items() if np.isnan(value)} == undefined

    halves = stepper.advance(stepper.advance(start, COUNT, 5), COUNT, 5)
    whole = stepper.advance(start, COUNT, 10)
    last = stepper.look(whole, COUNT)
    assert_same_frame(stepper.look(halves, COUNT), last, rtol=1e-6, atol=1e-6)
    assert last.step == 10 and np.abs(last.particles - frame.particles).max() > 0.1  # it did move
    again = collect(Recipe(spec, COUNT, seed=3), 10)
    assert_same_frame(again[0], frame)
    assert_same_frame(again[-1], last)
    other = collect(Recipe(spec, COUNT, seed=4), 0)[0]
    assert np.abs(other.particles - frame.particles).max() > 0.1  # the seed does something


@pytest.mark.parametrize("method, guide", VARIANTS)
def test_eager_step_equals_jitted_step(method, guide):
    stepper = compile(spec_of(method, guide))
    knobs = {"method.particles": 3}
    state = stepper.reset(1, knobs)
    jitted = stepper.advance(state, knobs, 1)
    with jax.disable_jit():
        _, plain = stepper._build(stepper.coerce(knobs))
        eager, forces = plain.step(jax.random.fold_in(state.key, state.step), state)
    np.testing.assert_allclose(eager.particles, jitted.particles, rtol=1e-5, atol=1e-5)
    frame = stepper.look(state, knobs)
    np.testing.assert_allclose(forces.attract[: len(frame.attract)], frame.attract, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(forces.repulse[: len(frame.repulse)], frame.repulse, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("method, guide", [v for v in VARIANTS if not METHODS[v[0]].facts.get("single")])
def test_spare_rows_change_nothing(method, guide):
    runs = [collect(Recipe(spec_of(method, guide, capacity), COUNT), 10, 5) for capacity in (8, 16)]
    for few, many in zip(*runs, strict=True):
        assert_same_frame(few, many, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("method, guide", [v for v in POINTS if not METHODS[v[0]].facts.get("single")])
def test_permuting_the_particles_permutes_the_forces(method, guide):
    stepper = compile(spec_of(method, guide))
    order = np.array([3, 0, 4, 2, 1])
    state = stepper.reset(0, COUNT)
    mixed = np.array(state.particles)
    mixed[:M] = mixed[order]
    frame, other = stepper.look(state, COUNT), stepper.look(state._replace(particles=mixed), COUNT)
    for name in ARRAYS:
        np.testing.assert_allclose(getattr(other, name), getattr(frame, name)[order], rtol=1e-5, atol=1e-6)
    for name in set(DIAGNOSTICS) - {"mixture_elbo"}:
        np.testing.assert_allclose(other.metrics[name], frame.metrics[name], rtol=1e-4, err_msg=name)


@pytest.mark.parametrize("method, guide", VARIANTS)
def test_knobs_at_both_ends_never_show_nan(method, guide):
    stepper = compile(spec_of(method, guide))
    for name, knob in stepper.knobs.items():
        ends = list(knob.choices) if knob.choices else [knob.low, min(knob.high, 8) if "particles" in name else knob.high]
        for value in ends:
            knobs = {**COUNT, name: value}
            state = stepper.reset(0, knobs)
            frame = stepper.look(state, knobs)
            assert_no_nan(frame)
            after = stepper.advance(state, knobs, 3)
            last = stepper.look(after, knobs)
            assert_no_nan(last)
            # A run that stopped short must say so, at the very step where it stopped.
            assert last.step == int(after.step) and (last.step == 3 or not last.finite), (name, value)
            assert np.isfinite(last.particles).all(), (name, value)


# ---------------------------------------------------------------- kernels and bandwidth rules, in plain NumPy


def reference_forces(kernel, rule, factor, particles, g, alpha):
    """The forces in float64, pair by pair as the literature prints them; no code is shared with stein_core."""
    m = len(particles)
    apart = particles[:, None] - particles[None]  # psi_i - psi_l
    square = (apart**2).sum(-1)
    pairs = square[np.triu_indices(m, 1)]
    h = {
        "median": lambda: np.median(pairs),
        "median_log": lambda: np.median(pairs) / np.log(m),
        "numpyro": lambda: np.median(np.sqrt(square)) ** 2 / np.log(m),
        "fixed": lambda: 2.0,
    }[rule]() if m > 1 or rule == "fixed" else 0.0  # fmt: skip
    sigma = factor * np.sqrt((h if h > 0 else 1.0) / 2)
    u, r = square / (2 * sigma**2), np.sqrt(square)
    k = {
        "rbf": np.exp(-u),
        "imq": 1 / np.sqrt(1 + u),
        "log_inverse": 1 / (1 + np.log(1 + u)),
        "laplace": np.exp(-r / sigma),
        "linear": 1 + particles @ particles.T / sigma**2,
    }[kernel]
    if kernel == "linear":
        gradient = np.broadcast_to(particles[None] / sigma**2, apart.shape)
    else:
        slope = {  # d k / d psi_i = slope * (psi_i - psi_l)
            "rbf": -k / sigma**2,
            "imq": -0.5 * (1 + u) ** -1.5 / sigma**2,
            "log_inverse": -(k**2) / (1 + u) / sigma**2,
            "laplace": -k / (sigma * np.where(r > 0, r, np.inf)),
        }[kernel]
        gradient = slope[..., None] * apart
    return np.einsum("il,ip->lp", k, g) / m, alpha * gradient.mean(0), sigma


def reference_gradient(guide, particles, eps):
    """g at the particles on the target N(0, [[1, .8], [.8, 1]]), from the same standard normal draws."""
    if guide == "point":
        return -particles @ PRECISION
    location, u = particles[:, :2], particles[:, 2:]
    scale = np.log1p(np.exp(u))
    theta = location[:, None] + scale[:, None] * eps  # (m, draws, 2)
    standard = (theta[:, :, None] - location) / scale
    log_q = -0.5 * (standard**2).sum(-1) - np.log(scale).sum(-1)
    share = np.exp(log_q - log_q.max(-1, keepdims=True))
    share /= share.sum(-1, keepdims=True)
    total = -theta @ PRECISION + np.einsum("ldj,ldjk->ldk", share, standard / scale)
    return np.concatenate([total.mean(1), (total * eps).mean(1) / (1 + np.exp(-u))], axis=1)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("rule", BANDWIDTHS)
def test_forces_agree_with_plain_numpy(kernel, rule):
    """Also for an even and an odd number of pairs, one particle, and coincident particles (median > 0, and = 0)."""
    clouds = [(5, ()), (6, ()), (1, ()), (5, (0, 1, 2)), (5, (0, 1, 2, 3)), (4, (0, 1, 2, 3))]
    for guide, factor, alpha in (("point", 1.0, 1.0), ("normal", 0.7, 2.5)):
        stepper = compile(spec_of("smi", guide))
        for m, together in clouds:
            knobs = {
                "method.particles": m, "kernel.name": kernel, "bandwidth.rule": rule, "bandwidth.factor": factor,
                "method.alpha": alpha,
            }  # fmt: skip
            state = stepper.advance(stepper.reset(7, knobs), knobs, 2)
            particles = np.array(state.particles)
            particles[list(together)] = particles[:1]
            state = state._replace(particles=particles)
            eps = jax.random.normal(jax.random.fold_in(state.key, state.step), (8, stepper.spec.draws, 2))
            frame = stepper.look(state, knobs)
            psi = np.float64(frame.particles)
            g = reference_gradient(guide, psi, np.float64(eps)[:m])
            attract, repulse, sigma = reference_forces(kernel, rule, factor, psi, g, alpha)
            for name, expected in (("attract", attract), ("repulse", repulse)):
                tolerance = 1e-4 * np.abs(expected).max() + 1e-6
                np.testing.assert_allclose(getattr(frame, name), expected, atol=tolerance, err_msg=f"{name} {m} {together}")
            lengths = {"attraction": attract, "repulsion": repulse, "force": attract + repulse}
            for name, field in lengths.items():
                np.testing.assert_allclose(frame.metrics[name], np.sqrt((field**2).sum() / m), rtol=1e-3, atol=1e-5)
            np.testing.assert_allclose(frame.metrics["bandwidth"], sigma, rtol=1e-5)


# ---------------------------------------------------------------- targets and optimisers


@pytest.mark.parametrize("name", TARGETS)
def test_target_runs_and_says_what_it_is(name):
    spec = Spec(name, method="ensemble", capacity=8)
    target = target_of(spec)
    assert target.dim == spec.dim == len(target.scale) == len(target.coordinates)
    assert (target.scale > 0).all() and len(set(target.coordinates)) == target.dim
    x0, x1, y0, y1 = target.extent
    assert x0 < target.center[0] < x1 and y0 < y1
    values = target.constrain(np.float32(target.center))
    assert all(np.isfinite(v).all() for v in values.values())
    frames = collect(Recipe(spec, COUNT), 20)
    for frame in frames:
        assert frame.finite and frame.particles.shape == (M, spec.dim)
        undefined = {"mixture_elbo"} | ({"mmd"} if target.sample is None else set())
        assert {k for k, v in frame.metrics.items() if not np.isfinite(v)} == undefined
    density = jax.vmap(target.log_density)
    climbed = density(frames[-1].particles) - density(frames[0].particles)
    # `ensemble` climbs the density in the model's own space, which for a constrained target is another one.
    assert np.isfinite(climbed).all() and (target.log_joint is not None or climbed.mean() > 0.1)
    with pytest.raises(ValueError, match="dim = 1001"):
        Spec(name, dim=1001)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_optimizer_climbs_and_a_removed_particle_takes_its_memory_along(optimizer):
    """Ensemble particles are alone, so the others must go on as if nothing had happened."""
    stepper = compile(spec_of("ensemble", optimizer=optimizer))
    start = stepper.reset(5, COUNT)
    halfway = stepper.advance(start, COUNT, 10)
    untouched = stepper.look(stepper.advance(halfway, COUNT, 10), COUNT)
    state, knobs = stepper.remove(halfway, COUNT, 1)
    assert knobs == {"method.particles": 4} and COUNT["method.particles"] == M
    frame = stepper.look(stepper.advance(state, knobs, 10), knobs)
    np.testing.assert_allclose(frame.particles, untouched.particles[[0, 4, 2, 3]], rtol=1e-6)
    assert untouched.metrics["force"] < 0.8 * stepper.look(start, COUNT).metrics["force"]


def test_added_particle_starts_at_its_point_without_a_past():
    """Also in a row that another particle has just left: the old velocity is not its own."""
    stepper = compile(spec_of("ensemble"))
    four = {"method.particles": 4}
    fresh = stepper.advance(stepper.reset(5, four), four, 10)
    used = stepper.advance(stepper.reset(5, COUNT), COUNT, 10)
    used, knobs = stepper.remove(used, COUNT, 4)
    ends = []
    for state in (fresh, used):
        state, knobs = stepper.add(state, four, (1.5, -0.5))
        np.testing.assert_array_equal(stepper.look(state, knobs).particles[4], np.float32([1.5, -0.5]))
        ends.append(stepper.look(stepper.advance(state, knobs, 5), knobs).particles)
    np.testing.assert_allclose(ends[1], ends[0], rtol=1e-5, atol=1e-6)


def test_particles_are_added_and_removed_within_limits():
    stepper = compile(spec_of("svgd"))
    eight = {"method.particles": 8}
    state = stepper.reset(0, eight)
    assert stepper.add(state, eight, (0, 0)) == (state, eight)  # full
    assert stepper.remove(state, eight, 8) == (state, eight)  # no such particle
    one = {"method.particles": 1}
    assert stepper.remove(state, one, 0) == (state, one)  # the last one stays
    # The default (20) is more than this capacity: the run has 8, and removing must count from there.
    assert len(stepper.look(state, {}).particles) == 8
    assert stepper.remove(state, {}, 0)[1] == {"method.particles": 7}
    alone = compile(spec_of("map"))
    state = alone.reset(0, {})
    assert alone.remove(state, {}, 0) == (state, {}) and alone.add(state, {}, (0, 0)) == (state, {})


def test_changes_on_the_way_act_at_their_step():
    spec = spec_of("smi", "point")
    changes = ((3, "add", (2.0, 1.0)), (5, "remove", 0), (7, "method.alpha", 3.0))
    frames = collect(Recipe(spec, COUNT, changes=changes), 9, 1)
    assert [len(f.particles) for f in frames] == [5] * 3 + [6] * 2 + [5] * 5
    np.testing.assert_array_equal(frames[3].particles[5], np.float32([2, 1]))
    plain = collect(Recipe(spec, COUNT, changes=changes[:2]), 9, 1)
    np.testing.assert_allclose(frames[7].repulse, 3 * plain[7].repulse, rtol=1e-5)
    assert_same_frame(frames[6], plain[6])
    assert_same_frame(collect(Recipe(spec, COUNT, changes=changes), 9, 4)[-1], frames[-1], rtol=1e-5, atol=1e-6)


def test_divergence_stops_at_one_step_and_keeps_the_last_good_state():
    knobs = {**COUNT, "method.step_size": 1000.0}
    recipe = Recipe(spec_of("ensemble", optimizer="sgd"), knobs)
    frames = list(stream(recipe, 50, 1))
    last = frames[-1]
    assert 0 < last.step < 50 and not last.finite and all(f.finite for f in frames[:-1])
    assert np.abs(last.particles).max() < 1e6 < np.abs(last.particles + 1000 * force_of(last)).max()
    stepper = compile(recipe.spec)
    stopped = stepper.advance(stepper.reset(0, knobs), knobs, 50)
    assert int(stopped.step) == last.step == int(stepper.advance(stopped, knobs, 50).step)
    assert_same_frame(collect(recipe, 50, 7)[-1], last)


# ---------------------------------------------------------------- the compile promise


def test_no_knob_ever_compiles(counted):
    spec = Spec("gaussian", method="smi", draws=2, capacity=256)
    stepper = compile(spec)
    with counted() as control:  # the counter sees a compile where there is one
        jax.jit(lambda x: x + 1)(np.float32(1))
    assert control[TRACE] >= 1 and control[COMPILE] >= 1
    state = stepper.reset(0, {})
    with counted() as counts:
        for name, knob in stepper.knobs.items():
            low, high = (1, 256) if name == "method.particles" else (knob.low, knob.high)
            values = list(knob.choices) if knob.choices else [low, high, int(knob.default), np.float32(knob.default)]
            values += [] if knob.choices else [str(knob.default), np.float64(knob.default)]
            for value in values:
                stepper.look(stepper.advance(state, {name: value}, 1), {name: value})
                stepper.reset(1, {name: value})
        for steps in (0, 2, np.int64(3)):
            stepper.advance(state, {}, steps)
        stepper.reset(2**32 - 1, {})
        knobs = {"method.particles": 30}
        for _ in range(2):  # twice: what add and remove return goes in again
            state, knobs = stepper.add(state, knobs, (1.0, 2.0))
            state, knobs = stepper.remove(state, knobs, 3)
            state = stepper.advance(state, knobs, 1)
            stepper.look(state, knobs)
        assert compile(Spec("gaussian", 2, "smi", "normal", draws=2.0, capacity=np.int32(256))) is stepper
    assert counts == {TRACE: 0, COMPILE: 0}


@pytest.mark.parametrize("same", [[3, 3.0, "3", np.int64(3), np.float32(3)], [0.5, "0.5", np.float32(0.5), "5e-1"]])
def test_a_knob_value_may_come_in_any_type(same):
    spec = spec_of("svgd")
    name = "method.particles" if same[0] == 3 else "method.alpha"
    checked = [Recipe(spec, {name: value}).knobs[name] for value in same]
    assert checked == [same[0]] * len(same) and {type(v) for v in checked} == {type(same[0])}


# ---------------------------------------------------------------- registries


def test_every_entry_says_what_it_is_and_where_from():
    for registry in REGISTRIES:
        assert len(registry) > 0
        for entry in registry.entries():
            for text in (entry.label, entry.reference, entry.summary):
                assert isinstance(text, str) and text.strip(), (registry.kind, entry.name)
            for knob in entry.knobs:
                assert knob.label and knob.help and knob.check(knob.default) == knob.default
    for method in METHODS.entries():
        assert all(guide in GUIDES for guide in method.facts["guides"])


def test_every_module_of_methods_is_imported_and_registers():
    names = {info.name for info in pkgutil.iter_modules(stein_core.methods.__path__)}
    files = {inspect.getmodule(e.make).__name__.rpartition(".")[2] for e in METHODS.entries()}
    assert names == files and all(f"stein_core.methods.{name}" in sys.modules for name in names)


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda r: r.kind)
def test_a_wrong_name_names_the_nearest(registry):
    for name in registry:
        with pytest.raises(UnknownName, match=f"unknown {registry.kind} '{name}x'; did you mean '{name}'"):
            registry[name + "x"]
    with pytest.raises(UnknownName, match="Allowed: " + ", ".join(registry)) as error:
        registry["?"]
    assert "did you mean" not in str(error.value)


def test_specs_and_recipes_refuse_what_does_not_fit():
    bad = [
        (lambda: Spec(method="svgd", guide="normal"), "unknown guide for method 'svgd': 'normal'. Allowed: point"),
        (lambda: Spec(capacity=12), "capacity = 12 is not a power of two"),
        (lambda: Spec(draws=0), "draws = 0 is out of range"),
        (lambda: Recipe(spec_of("svgd"), {"method.alpa": 1}), "did you mean 'method.alpha'"),
        (lambda: Recipe(spec_of("svgd"), {"method.alpha": -1}), "method.alpha = -1 is out of range; allowed: 0 to 1000"),
        (lambda: Recipe(spec_of("svgd"), {"method.alpha": float("nan")}), "out of range"),
        (lambda: Recipe(spec_of("svgd"), {"method.particles": 2.5}), "not a whole number"),
        (lambda: Recipe(spec_of("svgd"), {"method.particles": 9}), "more than the capacity"),
        (lambda: Recipe(spec_of("svgd"), {"kernel.name": "rbff"}), "did you mean 'rbf'"),
        (lambda: Recipe(spec_of("svgd"), {"init.shift": "far"}), "'far' is not a number"),
        (lambda: Recipe(spec_of("svgd"), seed=-1), "seed = -1 is out of range"),
        (lambda: Recipe(spec_of("svgd"), changes=((5, "add", (0, 0)), (3, "remove", 0))), "step 3 comes after step 5"),
        (lambda: Recipe(spec_of("svgd"), changes=((5, "method.alpha", -1),)), "out of range"),
        (lambda: Recipe.from_dict({"metod": "svgd"}), "did you mean 'method'"),
    ]
    for make, message in bad:
        with pytest.raises(ValueError) as error:
            make()
        assert message in str(error.value)
    assert [f.name for f in fields(Spec)] == ["target", "dim", "method", "guide", "optimizer", "draws", "capacity"]
