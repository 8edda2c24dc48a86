"""Batches: a run of a batch is the run that it would be alone, and each stops when the rule says so.

Nearly all of the time is compiling, so tests share programs where they can: two runs of 6 particles and rule `median`.
"""

from dataclasses import replace

import numpy as np
import pytest

from stein_core import DIAGNOSTICS, METHODS, Recipe, Spec, UnknownName, collect, stream
from stein_core.contract.spec import _target
from stein_core.sweep.batches import DIMS, padded_capacity, padded_dim, program_of, run_batch
from stein_core.sweep.stop import Stop

SHORT = Stop(noisy=350, most=700, stages=2)


def spec_of(method, dim=2, target="correlated", optimizer="adam"):
    return Spec.fitting(target=target, dim=dim, method=method, optimizer=optimizer, draws=2, capacity=8)


def five(method, dim=2, seed=0, target="correlated", **knobs):
    """Five particles, which share a program with six in up to ten dimensions."""
    knobs = {name.replace("_", ".", 1): value for name, value in knobs.items()}
    return Recipe(spec_of(method, dim, target), {"method.particles": 5, "bandwidth.rule": "median", **knobs}, seed)


def again(recipe, result):
    """The last frame of the same recipe by itself, with the step sizes that the batch lowered."""
    changes = tuple(tuple(change) for change in result["changes"])
    return collect(Recipe(recipe.spec, recipe.knobs, recipe.seed, changes), result["steps"])[-1]


# ---------------------------------------------------------------- padding

PADDED = [("smi", {}), ("langevin", {}), ("resampled", {}), ("mmd", {"method_driving": "closed_form"})]


def assert_alone(recipe, result):
    """It is the run alone, in all that is measured; the diagnostic `mmd` compares with other exact draws."""
    frame = again(recipe, result)
    assert frame.step == result["steps"] and list(result["metrics"]) == list(DIAGNOSTICS)
    for name in set(DIAGNOSTICS) - {"mmd"}:
        ours, alone = result["metrics"][name], frame.metrics[name]
        if ours is None:
            assert np.isnan(alone), name
        else:
            assert ours == pytest.approx(alone, rel=2e-3, abs=1e-3), name
    assert frame.metrics["sample_variance"] > 0.2


@pytest.mark.parametrize(
    "method, knobs",
    [pytest.param(m, k, marks=pytest.mark.long if m == "smi" else pytest.mark.rare, id=m) for m, k in PADDED],
)
def test_a_run_of_a_batch_is_the_run_alone(method, knobs):
    """5 particles in 2 dimensions among 6 in 8: spare rows, padded coordinates and other runs change nothing. Langevin
    goes on for a short while: its rounding errors stay. (Others: the next test.)"""
    target = "gaussian" if method == "mmd" else "correlated"
    recipes = [five(method, d, seed, target, method_particles=n, **knobs) for d, n, seed in ((8, 6, 1), (2, 5, 0))]
    result = run_batch(recipes, SHORT)[1]
    assert result["steps"] == METHODS[method].facts.rounds or 700 or result["stopped"] == "converged"
    assert_alone(recipes[1], result)


def test_runs_of_one_batch_have_their_own_knobs_of_the_target():
    """Chains of 3 and of 8 coordinates with other correlations, among the padded ones of one program."""
    chains = [(3, 0.9), (8, -0.5)]
    recipes = [five("svgd", d, target="autoregression", target_rho=rho) for d, rho in chains]
    assert len({program_of(recipe, SHORT) for recipe in recipes}) == 1
    for recipe, result in zip(recipes, run_batch(recipes, SHORT)):
        assert_alone(recipe, result)


@pytest.mark.rare
def test_methods_that_stack_are_runs_of_their_own_in_one_batch():
    """SVGD, annealed and damped SVGD (both rules for lambda) side by side on one program, with six particles in eight
    dimensions: each is the run alone."""
    free = {"method_damping": "free", "method_lambda_": 0.2}
    recipes = [
        five("svgd"), five("annealed", method_horizon=400), five("damped", **free), five("damped", 8),
        five("svgd", 8, method_particles=6),
    ]  # fmt: skip
    assert len({program_of(recipe, SHORT) for recipe in recipes}) == 1
    results = run_batch(recipes, SHORT)
    for recipe, result in zip(recipes[:4], results):
        assert_alone(recipe, result)
    plain, annealed, freely, damped, undamped = (result["metrics"]["sample_variance"] for result in results)
    assert annealed == pytest.approx(plain, rel=1e-3) and freely > 2 * plain and damped > 1.1 * undamped


@pytest.mark.rare
def test_in_a_batch_of_several_methods_each_is_measured_by_its_own_target_and_knobs():
    own = [("svgd", {}), ("annealed", {"method.horizon": 350})]
    recipes = [Recipe(spec_of(m, 41, "wave"), {**knobs, "method.particles": 4}) for m, knobs in own]
    results = run_batch(recipes, Stop(stages=1, most=350))
    assert all(result["metrics"]["width_between"] > 0 for result in results)


def test_a_target_that_has_to_be_built_is_built_before_the_program_is_traced():
    _target.cache_clear()
    recipes = [Recipe(Spec("oring", method="ensemble", capacity=8), {"method.particles": 5}, seed) for seed in (0, 1)]
    assert all(result["metrics"]["ksd"] > 0 for result in run_batch(recipes, Stop(most=350)))


def test_rooms_and_padded_dimensions_are_the_least_that_hold_a_run():
    assert padded_capacity(1) == 1
    for n in range(2, 600):
        assert n <= padded_capacity(n) <= max(n + 1, 1.25 * n) and padded_capacity(n) % 2 == 0
    assert [padded_dim(Spec("gaussian", d)) for d in (1, 10, 11, 1000)] == [10, 10, 40, 1000]
    assert padded_dim(Spec("oring")) == 2 and all(d % 2 == 0 for d in DIMS)


# ---------------------------------------------------------------- when a run has settled


def norms_of(recipe, steps, changes=()):
    """The force norm at every step of the run."""
    frames = list(stream(Recipe(recipe.spec, recipe.knobs, recipe.seed, changes), steps, 1))
    return np.array([f.metrics["force"] for f in frames[:-1]], float)


def fires_by_means(norms, since, least):
    """The first multiple of 35 at which the mean of 35 norms exceeds that of 350; looks at the stage from `since`
    on."""
    for end in range(since + max(least, 350), len(norms) + 1):
        blocks = (end - since) % 35 == 0
        if blocks and np.mean(norms[end - 35 : end]) > np.mean(norms[end - 350 : end]) * (1 - 1e-6):
            return end
    return None


def fires_by_recursion(norms, since, least):
    """The published code: periods 35 and 350, discount 0.001^(1/period), fast > 2 slow at any time in a block."""
    fast = slow = 0.0
    latched = False
    for t in range(since, len(norms)):
        i = t - since
        for period in (35, 350):
            tau, discount = min(i, period), 0.001 ** (1 / period)
            new = norms[t] / (tau + 1) + tau / (tau + 1) * discount * (fast if period == 35 else slow)
            fast, slow = (new, slow) if period == 35 else (fast, new)
        latched = latched or fast > 2 * slow
        if (i + 1) % 35 == 0:
            if latched and i + 1 >= least:
                return t + 1
            latched = False
    return None


@pytest.mark.long
def test_the_means_rule_on_the_recorded_norms():
    """A noisy method, and a seed at which its norms stay far from where rounding, which grows from step to step,
    decides. A guide's draws make a stage longer."""
    recipe, shortest = replace(five("smi"), seed=2), 490
    result = run_batch([recipe], replace(SHORT, noisy=shortest, most=1400))[0]
    changes = tuple(tuple(c) for c in result["changes"])
    norms = norms_of(recipe, result["steps"], changes)
    first = fires_by_means(norms, 0, shortest)
    assert changes == ((first, "method.step_size", pytest.approx(0.005)),) and first >= shortest
    second = fires_by_means(norms, first, shortest)
    assert (second or 1400) == result["steps"]
    assert result["stopped"] == ("converged" if second else "steps")


def test_langevin_keeps_its_step_size_and_has_time_to_forget_its_start():
    recipes = [five("langevin", method_step_size=e) for e in (0.05, 0.01)]
    for result, least in zip(run_batch(recipes, replace(SHORT, most=Stop.most)), (350, 1000)):
        assert result["stopped"] == "converged" and result["changes"] == [] and least <= result["steps"] < least + 700


@pytest.mark.long
def test_a_force_that_rises_is_no_rest():
    """SVGD on a cross in 40 dimensions leaves a saddle: with the bare rule it stopped at a force of 1e-2."""
    recipes = [Recipe(Spec("cross", 40, "svgd", capacity=32), {"method.particles": 20}, seed) for seed in range(2)]
    for result in run_batch(recipes, Stop()):
        assert result["stopped"] == "converged" and result["metrics"]["force"] < 1e-4 * result["metrics"]["attraction"]


@pytest.mark.long
def test_a_guide_that_shrinks_to_a_point_has_diverged():
    recipe = Recipe(Spec("gaussian", 1, "smi", capacity=32), {"method.particles": 20, "method.alpha": 10.0})
    assert run_batch([recipe], Stop())[0]["stopped"] == "diverged"


@pytest.mark.long
def test_the_recursion_on_the_recorded_norms():
    """x <- (1 - e) x on N(0, I): the norm grows by 2.8% a step, which fires, or by 2%, which does not."""
    spec = Spec("gaussian", 2, "ensemble", optimizer="sgd", capacity=8)
    recipes = [Recipe(spec, {"method.particles": 5, "method.step_size": e}) for e in (2.028, 2.02)]
    results = run_batch(recipes, Stop("recursion", stages=2, most=560))
    firsts = [fires_by_recursion(norms_of(recipe, 500), 0, 350) for recipe in recipes]
    assert firsts == [350, None]
    assert [[c[0] for c in result["changes"]] for result in results] == [[350], []]


def test_averages_of_a_constant_norm_in_the_recursion():
    """They are not normalised: fast -> 0.1376 n and slow -> 0.1276 n, so fast > 2 slow needs a rise."""
    for period, expected in ((35, 0.1376), (350, 0.1276)):
        average, discount = 0.0, 0.001 ** (1 / period)
        for t in range(20 * period):
            tau = min(t, period)
            average = 1 / (tau + 1) + tau / (tau + 1) * discount * average
        assert average == pytest.approx(expected, abs=1e-4)
    assert fires_by_recursion(np.ones(3000), 0, 350) is None


def test_a_force_that_stands_still_has_settled():
    """One point on N(0, I) with x <- x / 2 comes to exactly 0 within 200 steps, and its force with it."""
    recipe = Recipe(Spec("gaussian", 2, "map", optimizer="sgd"), {"method.step_size": 0.5})
    stop = Stop(stages=1, most=3500)
    result = run_batch([recipe], stop)[0]
    assert result["stopped"] == "converged" and result["steps"] <= 700
    assert result["metrics"]["force"] == 0


@pytest.mark.long
def test_a_run_at_its_last_step_is_not_converged():
    recipe = five("svgd")
    result = run_batch([recipe, five("svgd", 8)], replace(SHORT, most=360))[0]
    assert result["stopped"] == "steps" and result["steps"] == 360  # in the middle of a block of 35
    alone = again(recipe, result).metrics["sample_variance"]
    assert result["metrics"]["sample_variance"] == pytest.approx(alone, rel=1e-3)


def test_a_diverged_run_stops_alone_at_its_last_good_step():
    """theta <- -999 theta + noise leaves 1e6 at the third step or so; its neighbour goes on."""
    recipes = [five("langevin", method_step_size=e) for e in (1000.0, 0.01)]
    diverged, fine = run_batch(recipes, SHORT)
    frame = collect(recipes[0], 50)[-1]
    assert not frame.finite and diverged["stopped"] == "diverged" and diverged["steps"] == frame.step < 10
    assert diverged["metrics"]["sample_variance"] == pytest.approx(frame.metrics["sample_variance"], rel=1e-3)
    assert fine["stopped"] != "diverged" and fine["steps"] >= 700


@pytest.mark.long
@pytest.mark.parametrize("method, more", [("annealed", {}), ("wsvgd", {"method_schedule": "cyclical"})])
def test_a_schedule_ends_before_its_run_does(method, more):
    recipes = [five(method, method_horizon=h, **more) for h in (350, 600)]
    for recipe, result in zip(recipes, run_batch(recipes, SHORT)):
        first = [c[0] for c in result["changes"]] + [result["steps"]]
        assert first[0] >= recipe.knobs["method.horizon"]


# ---------------------------------------------------------------- what a batch takes and says


def test_results_are_reported_once_and_a_cancelled_batch_is_left():
    recipes = [five("langevin", method_step_size=e) for e in (1000.0, 0.01)]
    reports = []
    results = run_batch(recipes, SHORT, lambda i, result: reports.append((i, result)))
    assert sorted(i for i, _ in reports) == [0, 1] and reports[0][0] == 0  # the diverged one is known first
    assert all(result is results[i] for i, result in reports)
    assert run_batch(recipes, SHORT, cancelled=lambda: True) == [{}, {}]


def test_batches_and_stops_refuse_what_does_not_fit():
    one = Recipe(spec_of("svgd"), {"method.particles": 5})
    others = [Recipe(spec_of("smi"), {"method.particles": 5}), Recipe(spec_of("svgd"), {"kernel.name": "imq"}),
              Recipe(spec_of("svgd", 20), one.knobs)]  # fmt: skip
    for other in others:
        with pytest.raises(ValueError, match="a batch has one program, not 2"):
            run_batch([one, other], SHORT)
    alike = Recipe(spec_of("svgd", 10), {"method.particles": 6, "method.alpha": 3.0, "init.shift": 1.0}, 7)
    assert program_of(one, SHORT) == program_of(alike, SHORT)
    with pytest.raises(ValueError, match="allowed: recipes without changes"):
        run_batch([Recipe(one.spec, one.knobs, changes=((5, "method.alpha", 2.0),))], SHORT)
    with pytest.raises(UnknownName, match="did you mean 'means'"):
        Stop("mean")
    for name, value in (("stages", 0), ("stages", 7), ("least", 349), ("noisy", 10), ("most", 100)):
        with pytest.raises(ValueError, match=f"{name} = {value} is"):
            Stop(**{name: value})
