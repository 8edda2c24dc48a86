"""What every registered entry promises. The tests iterate the registries, so a new entry is tested by being there."""

import pickle
from dataclasses import replace

import jax
import numpy as np
import pytest
from checks import ARRAYS, COMPILE, TRACE, assert_no_nan, assert_same_frame, few, force_of, lazy
from scipy import stats

from stein_core import (
    DIAGNOSTICS,
    GUIDES,
    METHODS,
    OPTIMIZERS,
    TARGETS,
    Knob,
    Recipe,
    Spec,
    collect,
    compile,
    stream,
    target_of,
)
from stein_core.base.noise import normal
from stein_core.contract import recipe
from stein_core.runs import runner
from stein_core.runs.assembly import assemble, guide_of
from stein_core.runs.runner import Stepper

M = 5
COUNT = {"method.particles": M}
VARIANTS = [(method, guide) for method in METHODS for guide in METHODS[method].facts.guides]
POINTS = [v for v in VARIANTS if v[1] == "point"]
QUICK = [("svgd", "point"), ("smi", "normal"), ("resampled", "point"), ("wgd", "point")]  # the others are long tests
QUICK_TARGETS = ("gaussian", "correlated", "oring", "wave")
NO_DENSITY = {"mixture_elbo", "components"}  # what point masses do not have


def quick(variants):
    """Mark what is not QUICK as long, and what takes minutes as rare."""
    mark = {"hksivi": pytest.mark.rare}
    return [
        pytest.param(*each, marks=() if each in QUICK else mark.get(each[0], pytest.mark.long)) for each in variants
    ]


def spec_of(method, guide=None, capacity=8, optimizer=None):
    return Spec(
        "correlated", method=method, guide=guide, draws=2, capacity=capacity, optimizer=optimizer, options=few(method)
    )


# ---------------------------------------------------------------- methods


@pytest.mark.parametrize("method, guide", quick(VARIANTS))
def test_method_gives_finite_frames_that_do_not_depend_on_how_the_run_is_cut(method, guide):
    spec = spec_of(method, guide)
    stepper = compile(spec)
    m = 1 if spec.capacity == 1 else M
    size = GUIDES[guide].facts.size(spec.dim, **spec.options_of("guide"))
    start = stepper.reset(3, COUNT)
    frame = stepper.look(start, COUNT)
    shapes = {"particles": size, "attract": size, "repulse": size, "locations": spec.dim, "scales": spec.dim}
    for name, width in shapes.items():
        array = getattr(frame, name)
        assert isinstance(array, np.ndarray) and array.shape == (m, width) and np.isfinite(array).all(), name
    assert frame.step == 0 and frame.finite and list(frame.metrics) == list(DIAGNOSTICS)
    undefined = NO_DENSITY | ({"stein_trace"} if m == 1 else set()) if guide == "point" else set()
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


SEVERAL = [v for v in VARIANTS if not METHODS[v[0]].facts.single]
# Distances of many coordinates are a matrix product around a centre, whatever the method.
MANY = [("svgd", "point", 20), ("smi", "normal", 20), ("smi", "full", 20)]


@pytest.mark.parametrize(
    "method, guide, dim",
    [
        pytest.param(*each, marks=pytest.mark.long if each[:2] in QUICK and each[2] == 2 else pytest.mark.rare)
        for each in [(*each, 2) for each in SEVERAL] + MANY
    ],
)
def test_spare_rows_change_nothing(method, guide, dim):
    measure = method in ("svgd", "smi")  # diagnostics do not know the method

    def run(stepper):
        states = [stepper.reset(0, COUNT)]
        for _ in range(2):
            states.append(stepper.advance(states[-1], COUNT, 5))
        return [stepper.look(state, COUNT, measure) for state in states]

    spec = replace(spec_of(method, guide), dim=dim)
    small, large = compile(spec), lazy(replace(spec, capacity=16))
    with jax.enable_x64(guide == "full"):  # in float32 the optimiser amplifies the rounding of its many parameters
        pair = (lazy(replace(spec)), lazy(replace(spec, capacity=16))) if guide == "full" else (small, large)
        for few, many in zip(*map(run, pair), strict=True):
            assert_same_frame(few, many, rtol=1e-4, atol=1e-4)
    state = large.reset(0, COUNT)
    rows = np.array(state.particles)
    rows[M:] = 1e5
    here, there = (large.look(state._replace(particles=table), COUNT, measure) for table in (state.particles, rows))
    assert_same_frame(here, there, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("method, guide", quick([v for v in POINTS if not METHODS[v[0]].facts.single]))
def test_permuting_the_particles_permutes_the_forces(method, guide):
    stepper = compile(spec_of(method, guide))
    order = np.array([3, 0, 4, 2, 1])
    state = stepper.reset(0, COUNT)
    mixed = np.array(state.particles)
    mixed[:M] = mixed[order]
    frame, other = stepper.look(state, COUNT), stepper.look(state._replace(particles=mixed), COUNT)
    for name in ARRAYS:
        np.testing.assert_allclose(getattr(other, name), getattr(frame, name)[order], rtol=1e-5, atol=1e-6)
    for name in set(DIAGNOSTICS) - NO_DENSITY:
        np.testing.assert_allclose(other.metrics[name], frame.metrics[name], rtol=1e-4, err_msg=name)


@pytest.mark.parametrize("method, guide", quick(VARIANTS))
def test_knobs_at_both_ends_never_show_nan(method, guide):
    stepper = compile(spec_of(method, guide))
    for name, knob in stepper.knobs.items():
        ends = (
            list(knob.choices) if knob.choices else [knob.low, min(knob.high, 8) if "particles" in name else knob.high]
        )
        for value in ends:
            if value == "closed_form":  # for the standard normal only
                continue
            knobs = {**COUNT, name: value}
            state = stepper.reset(0, knobs)
            frame = stepper.look(state, knobs)
            assert_no_nan(frame, f"{name} = {value}")
            after = stepper.advance(state, knobs, 3)
            last = stepper.look(after, knobs)
            assert_no_nan(last, f"{name} = {value}")
            # A run that stopped short must say so, at the very step where it stopped.
            assert last.step == int(after.step) and (last.step == 3 or not last.finite), (name, value)
            assert np.isfinite(last.particles).all(), (name, value)


# ---------------------------------------------------------------- targets and optimisers


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(entry.name, marks=() if entry.name in QUICK_TARGETS else pytest.mark.long)
        for entry in TARGETS.entries()
        if entry.facts.data is None
    ],
)
def test_target_runs_and_says_what_it_is(name):
    spec = Spec(name, method="map")
    target = target_of(spec)
    assert target.dim == spec.dim == len(target.start.scale) == len(target.coordinates)
    assert (target.start.scale > 0).all() and len(set(target.coordinates)) == target.dim
    x0, x1, y0, y1 = target.extent
    assert x0 < target.start.center[0] < x1 and y0 < y1
    values = target.constrain(np.float32(target.start.center))
    assert all(np.isfinite(v).all() for v in values.values())
    frames = collect(Recipe(spec, {"init.spread": 3.0}), 20)
    for frame in frames:
        assert frame.finite and frame.particles.shape == (1, spec.dim)
        undefined = NO_DENSITY | {"stein_trace"} | ({"mmd"} if target.truth.sample is None else set())
        undefined |= {"mean_location"} if target.truth.mean is None else set()
        undefined |= {"covariance_error", "diagonal_error"} if target.truth.variance is None else set()
        assert {k for k, v in frame.metrics.items() if not np.isfinite(v)} == undefined
    density = jax.jit(jax.vmap(target.log_density))
    climbed = density(frames[-1].particles) - density(frames[0].particles)
    # `map` climbs the density in the model's own space, which for a constrained target is another one.
    assert np.isfinite(climbed).all() and (target.log_joint is not None or climbed.mean() > 0.1)
    with pytest.raises(ValueError, match="dim = 1001"):
        Spec(name, dim=1001)


@pytest.mark.parametrize("name", [name for name in TARGETS if TARGETS[name].facts.pads])
def test_padding_adds_nothing_to_a_density(name):
    """Whatever stands in padded coordinates, density and score are those of the smaller target."""
    own = {knob.name: knob.default for knob in TARGETS[name].knobs}
    small, mask = TARGETS[name].make(4, **own), np.float32([1, 1, 1, 1, 0, 0])
    padded = TARGETS[name].make(6, mask, **own)
    x = np.float32(np.random.default_rng(0).normal(size=(9, 6)))
    x[:3, 4:] = 0.0
    values, slopes = jax.jit(jax.vmap(jax.value_and_grad(padded.log_density)))(x)
    expected, of_small = jax.jit(jax.vmap(jax.value_and_grad(small.log_density)))(x[:, :4])
    np.testing.assert_allclose(values, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(slopes[:, :4], of_small, rtol=1e-5, atol=1e-6)
    assert not slopes[:, 4:].any()


@pytest.mark.rare
def test_normal_noise_does_not_depend_on_how_much_follows():
    """Standard normal, independent between rows and coordinates; its leading block is the same for every shape."""
    key = jax.random.key(3)
    x = np.float64(normal(key, (20_000,), 12))
    assert stats.kstest(x.ravel(), "norm").pvalue > 1e-3 and np.abs(x).max() < 6
    pairs = (x[:, :-1] * x[:, 1:], x[:-1] * x[1:], x[0:-1:2] * x[1::2], x[:-2] * x[2:])
    for product in pairs:
        assert abs(product.mean()) < 5 / np.sqrt(product.size)
        assert product.var() == pytest.approx(1, abs=5 * np.sqrt(8 / product.size))
    for rows, dim in ((20_000, 5), (7, 12), (8, 1), (1, 3)):
        np.testing.assert_array_equal(normal(key, (rows,), dim), np.float32(x)[:rows, :dim])
    shaped = np.asarray(normal(key, (10, 4), 12))
    np.testing.assert_array_equal(shaped.reshape(40, 12), np.float32(x)[:40])
    assert np.abs(normal(jax.random.key(4), (50,), 12) - x[:50]).min() > 0
    old = jax.random.PRNGKey(3)  # either kind of key
    np.testing.assert_array_equal(normal(old, (7,), 12), np.float32(x)[:7])


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


def test_editing_moves_what_belongs_to_a_particle_and_nothing_else():
    """Resampled SVGD keeps 250 sets: their number is the capacity here, and is no axis of particles."""
    stepper = lazy(Spec("gaussian", 2, "resampled", capacity=250))
    knobs = {"method.particles": 5}
    state = stepper.advance(stepper.reset(0, knobs), knobs, 3)
    before = np.array(state.memory)
    (after, _), (added, _) = stepper.remove(state, knobs, 1), stepper.add(state, knobs, (0.0, 0.0))
    order = np.arange(250)
    order[[1, 4]] = 4, 1
    np.testing.assert_array_equal(after.memory, before[:, order])
    assert before[:3, 5].any() and not np.array(added.memory)[:, 5].any()
    np.testing.assert_array_equal(np.delete(added.memory, 5, axis=1), np.delete(before, 5, axis=1))


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


@pytest.mark.parametrize("method, guide", quick([v for v in VARIANTS if not METHODS[v[0]].facts.sampler]))
def test_a_moved_particle_is_at_its_point_and_has_no_past(method, guide):
    """Its width stays, and so does all that belongs to the others."""
    stepper = lazy(replace(spec_of(method, guide), target="gaussian", dim=3))
    single = METHODS[method].facts.single
    state, index = stepper.reset(0, COUNT), 0 if single else 3
    used = state._replace(memory=jax.tree.map(np.ones_like, state.memory))
    moved, knobs = stepper.move(used, COUNT, index, (1.5, -0.5))
    assert knobs == COUNT
    guide = guide_of(stepper.spec, stepper.knobs_of(COUNT).traced)
    before, after = (np.array(guide.location(one.particles)) for one in (used, moved))
    np.testing.assert_array_equal(after[index], [1.5, -0.5, before[index, 2]])
    np.testing.assert_array_equal(guide.scale(moved.particles), guide.scale(used.particles))
    np.testing.assert_array_equal(np.delete(moved.particles, index, 0), np.delete(used.particles, index, 0))
    np.testing.assert_array_equal(moved.particles[index, 2:], used.particles[index, 2:])
    rows = []
    assemble(stepper.spec, stepper.knobs_of(COUNT).traced)[1].per_particle(
        lambda leaf: rows.append(np.array(leaf)) or leaf, moved.memory
    )
    assert all((row[index] == 0).all() and (np.delete(row, index, 0) == 1).all() for row in rows)
    assert stepper.move(used, COUNT, 1 if single else M, (0, 0)) == (used, COUNT)  # no such particle


@pytest.mark.parametrize("method", ["ksivi", pytest.param("uivi", marks=pytest.mark.long)])
def test_no_draw_of_a_sampler_is_moved(method):
    stepper = lazy(spec_of(method))
    state = stepper.reset(0, COUNT)
    assert stepper.move(state, COUNT, 0, (0, 0)) == (state, COUNT)


def test_a_moved_particle_does_not_fly_on():
    """Ensemble particles are alone: from its point it goes on as a new one does."""
    stepper = compile(spec_of("ensemble"))
    state = stepper.advance(stepper.reset(5, COUNT), COUNT, 10)
    ends = []
    for edited, knobs in (stepper.move(state, COUNT, 1, (1.5, -0.5)), stepper.add(state, COUNT, (1.5, -0.5))):
        ends.append(stepper.look(stepper.advance(edited, knobs, 5), knobs).particles)
    np.testing.assert_allclose(ends[0][1], ends[1][M], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(np.delete(ends[0], 1, 0), np.delete(ends[1], [1, M], 0), rtol=1e-5, atol=1e-6)


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


@pytest.mark.long
@pytest.mark.parametrize("target", ["correlated", "wave"])  # the wave's data is a knob, an array
def test_a_wide_program_gives_the_same_run_whether_looked_at_or_not_and_takes_each_step_once(monkeypatch, target):
    spec = replace(spec_of("svgd"), target=target, dim=None)
    narrow = Stepper(spec)
    monkeypatch.setattr(runner, "WIDE", spec.capacity)
    wide, looks = Stepper(spec), []
    look = wide._look
    monkeypatch.setattr(wide, "_look", counting := lambda *a: looks.append(a) or look(*a))
    counting.trace = look.trace
    louder = {**COUNT, "method.alpha": 2.0}

    def run(stepper, look):
        state = stepper.reset(3, COUNT)
        for knobs in (*[COUNT] * 4, *[louder] * 4):  # with the second knobs it has to step anew where it has looked
            look(state, COUNT)
            state = stepper.advance(state, knobs, 1)
        return stepper.look(state, louder)

    looked = run(wide, wide.look)
    assert len(looks) == 13  # 8 looks, 4 steps that nobody had looked ahead to, the last look
    assert_same_frame(run(wide, lambda state, knobs: None), looked)
    assert_same_frame(wide.look(wide.advance(wide.advance(wide.reset(3, COUNT), COUNT, 4), louder, 4), louder), looked)
    assert_same_frame(run(narrow, narrow.look), looked, rtol=1e-4, atol=1e-5)


def test_a_wide_program_stops_where_it_diverges(monkeypatch):
    knobs = {**COUNT, "method.step_size": 1000.0}
    spec = spec_of("ensemble", optimizer="sgd")
    narrow = compile(spec)
    monkeypatch.setattr(runner, "WIDE", spec.capacity)
    stopped = [stepper.advance(stepper.reset(0, knobs), knobs, 50) for stepper in (narrow, Stepper(spec))]
    assert 0 < stopped[0].step == stopped[1].step < 50


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
            kinds = (np.float64, np.float32, str) + ((int,) if knob.scale == "integer" else ())
            values = list(knob.choices) if knob.choices else [low, high] + [kind(knob.default) for kind in kinds]
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


# ---------------------------------------------------------------- knobs are checked where they enter


def test_checked_knobs_are_not_checked_again(monkeypatch):
    stepper = compile(spec_of("svgd"))
    knobs, other = stepper.knobs_of(COUNT), Spec("correlated", method="svgd", capacity=4)
    assert knobs == COUNT and stepper.knobs_of(Recipe(stepper.spec, COUNT).knobs) == COUNT
    assert pickle.loads(pickle.dumps(knobs)) == knobs
    with pytest.raises(TypeError):
        knobs["method.particles"] = 9
    with pytest.raises(ValueError, match="more than the capacity"):  # checked for a larger program
        recipe.knobs_of(other, knobs)
    with monkeypatch.context() as patch:
        patch.setattr(recipe, "check_knobs", lambda *_: pytest.fail("checked again"))
        state = stepper.advance(stepper.reset(0, knobs), knobs, 1)
        assert len(stepper.look(state, knobs).particles) == M
        assert stepper.add(state, knobs, (0, 0))[1] == {"method.particles": M + 1}
        assert stepper.remove(state, knobs, 0)[1] == {"method.particles": M - 1}
    with pytest.raises(ValueError, match="out of range"):
        stepper.advance(state, {"method.alpha": -1.0}, 1)


def test_knobs_of_an_entry_that_was_registered_again_are_checked_again():
    entry = METHODS["ensemble"]

    def register(high):
        knob = Knob("pull", 1.0, 0.0, high)
        METHODS.register("own", label="Own", reference="me", guides=("point",), kernel=False, knobs=(knob,))(make)

    def make(problem, pull):
        "Every point climbs alone."
        return entry.make(problem)

    try:
        register(9.0)
        spec = spec_of("own")
        knobs = Recipe(spec, {"method.pull": 5.0}).knobs
        assert recipe.knobs_of(spec, knobs) is knobs
        register(2.0)
        with pytest.raises(ValueError, match="allowed: 0 to 2"):
            recipe.knobs_of(spec, knobs)
    finally:
        METHODS._entries.pop("own")
