"""When a run is at rest: by closed forms, with steps that are too small, with noise, and after a change."""

import math

import numpy as np
import pytest
from desks import desk  # noqa: F401  (a fixture)

from stein_core import Recipe, Spec, collect, stream
from stein_core.cli.bench_rest import Tried, away, line
from stein_core.contract.types import Frame
from stein_core.runs.rest import Rest
from stein_core.theory.laws import simplex_variance

SVGD = Spec("gaussian", dim=20, method="svgd")


def frame(step: int, location: np.ndarray, force: np.ndarray, attract: float = 1.0) -> Frame:
    pull = np.full_like(location, attract)
    return Frame(step, location, location, np.zeros_like(location), pull, force - pull, {})


def watched(location, force, steps: int = 2000, every: int = 10, method: str = "svgd"):
    """Return the step at which a made-up run of 10 points is called at rest. location(t) scales them, force(t) acts."""
    rest, points = Rest(Spec("gaussian", method=method, dim=2)), np.random.default_rng(0).normal(size=(10, 2))
    for step in range(0, steps, every):
        rest.add(frame(step, points * location(step), force(step) * np.ones((10, 2))), {})
        if rest.since is not None:
            return rest.since
    return None


def test_what_stands_still_is_at_rest_after_the_first_steps():
    assert 500 <= watched(lambda t: 1.0, lambda t: 0.0) <= 520


def test_what_shrinks_to_a_limit_is_at_rest_once_a_quarter_of_the_run_changes_little():
    for scale in (50, 200):
        stop = watched(lambda t: 1 + 2 * math.exp(-t / scale), lambda t: 0.0)
        assert 2 * math.exp(-stop / scale) < 0.1  # of the width at the end
        assert stop < 8 * scale + 400


@pytest.mark.long
def test_small_steps_are_no_rest():
    """Nothing moves, but a tenth of the attraction and more pulls on."""
    assert watched(lambda t: 1.0, lambda t: 0.2) is None
    assert watched(lambda t: 1.0, lambda t: 0.05) is not None
    run = Recipe(SVGD, {"method.step_size": 1e-5})
    assert collect(run, 1000, until="rest")[-1].step == 1000


def test_noise_of_the_force_cancels_and_a_steady_part_does_not():
    rng = np.random.default_rng(1)
    noise = lambda t: rng.normal(size=(10, 2))  # noqa: E731
    assert watched(lambda t: 1.0, noise, method="smi") is not None
    assert watched(lambda t: 1.0, lambda t: 0.5 + noise(t), method="smi") is None
    assert watched(lambda t: 1.0, noise, steps=800) is None  # of points, whose force has no noise


def test_svgd_rests_at_the_variance_of_its_law():
    run = Recipe(SVGD, {"method.particles": 10, "method.step_size": 0.05})
    last = collect(run, 20_000, until="rest")[-1]
    assert last.step < 3000
    assert last.metrics["sample_variance"] == pytest.approx(simplex_variance(20, 10), rel=0.02)


@pytest.mark.long
def test_guides_rest_though_their_force_is_noisy(optimized):
    run = Recipe(Spec("gaussian", dim=5, method="smi"), {"method.particles": 5, "method.step_size": 0.05})
    last = collect(run, 20_000, until="rest")[-1]
    assert last.step < 10_000
    assert last.metrics["sample_variance"] == pytest.approx(1.09, rel=0.1)  # its mean of steps 3,000 to 6,000


def test_a_change_or_a_step_back_begins_the_watch_anew():
    rest, points = Rest(Spec("gaussian", dim=2, method="svgd")), np.random.default_rng(0).normal(size=(10, 2))
    still = [frame(step, points, np.zeros((10, 2))) for step in range(0, 1000, 5)]
    assert [rest.add(each, {}) for each in still][-1] and 500 <= rest.since <= 510
    since = rest.since
    assert rest.add(still[-1], {}) and rest.since == since  # the same moment again
    assert not rest.add(frame(1005, points, np.zeros((10, 2))), {"method.alpha": 2.0})
    assert not rest.add(frame(1010, points, np.zeros((10, 2))), {"method.alpha": 2.0}) and rest.since is None
    assert [rest.add(each, {}) for each in still][-1]  # from step 0 on
    assert rest.add(frame(1000, points, np.zeros((10, 2))), {})
    assert not rest.add(frame(1005, points, np.zeros((10, 2))), {}, changes=1)
    assert [rest.add(each, {}, 1) for each in still][-1] and not rest.add(frame(1000, points[1:], points[1:]), {}, 1)


def test_a_session_tells_which_methods_are_at_rest_until_a_knob_is_turned(desk):  # noqa: F811
    one = desk(methods=("svgd", "langevin"), dim=2)
    one.session.speed(20)
    one.until(lambda: one.news.get("rest", {}).get("svgd"))
    assert one.news["rest"]["svgd"] >= 500 and one.news["rest"]["langevin"] is None
    one.session.turn("method.alpha", 2.0)
    one.until(lambda: one.news["rest"]["svgd"] is None)
    before = one.frame.step
    one.until(lambda: one.news["rest"]["svgd"])
    assert one.news["rest"]["svgd"] >= before + 400
    one.session.reset()
    one.until(lambda: one.news["rest"] == {} or one.news["rest"]["svgd"] is None)


def test_few_blocks_are_kept_of_a_long_run():
    rest, points = Rest(Spec("gaussian", dim=2, method="svgd")), np.random.default_rng(0).normal(size=(1000, 2))
    for step in range(5000):
        rest.add(frame(step, points * math.exp(-step / 1000), np.ones_like(points)), {})
    assert len(rest.blocks) <= 64 and sum(block.count for block in rest.blocks) == 5000
    assert rest.blocks[-1].force.shape[0] <= 200


@pytest.mark.parametrize("run, until, message", [
    (Recipe(SVGD), "rst", r"until 'rst'.*rest"),
    (Recipe(Spec("gaussian", method="langevin")), "rest", "Langevin moves at random and is never at rest"),
    (Recipe(Spec("gaussian", method="noisy"), {"method.beta": 2.0}), "rest", "Noisy SVGD moves at random"),
])  # fmt: skip
def test_what_has_no_rest_is_refused(run, until, message):
    with pytest.raises(ValueError, match=message):
        next(stream(run, 10, until=until))


def test_the_benchmark_counts_what_is_early_late_and_never():
    moments = np.ones((1000, 2, 3))
    moments[:, 1] += np.exp(-np.arange(1000) / 30)[:, None]  # a variance that falls from 2 to 1
    moments[:, 0] = 0
    off = away(moments)
    assert off[50] > 0.1 > off[300] and off[-1] < 1e-6
    turning = np.ones((1000, 2, 2))
    turning[:, 1] += 0.5 * np.stack([np.cos(np.arange(1000) / 50), -np.cos(np.arange(1000) / 50)], axis=1)
    assert away(turning)[200:].max() < 0.1  # both sds change, their mean does not
    rows = [
        Tried((), 1000, 500, 0.2, False), Tried((), 3000, 500, 0.0, False), Tried((), None, 500, 0.0, False),
        Tried((), None, 0, 0.0, True),
    ]  # fmt: skip
    assert line("x", "SVGD", rows).split() == ["x", "SVGD", "4", "1", "4.0", "6.0", "1", "1"]
