"""Page Samplers without a browser: what its figures are told, and what nobody can edit."""

import numpy as np
import pytest

from stein_core import METHODS, TARGETS, Spec, Stepper, Target
from stein_core.contract.known import Start, Truth
from stein_core.contract.spec import Options
from steinlab.pages.samplers.figures import LEAST, LINE_ENDS, Course, Latent, Masses
from steinlab.pages.samplers.page import Samplers, offered
from steinlab.pages.samplers.view import SamplerView, reference, seen
from steinlab.stage.run import Run
from steinlab.stage.scene import density
from steinlab.stage.setup import Setup

KNOBS = {"method.particles": 8, "method.step_size": 1e-3}


def test_the_density_follows_the_knobs_of_its_target():
    """Its image is dark where the mass is."""

    def right(weight):
        drawn = density("unbalanced", 2, Options(), Options({"target.weight": weight}))
        return np.mean(np.array(drawn["draws"]).reshape(-1, 2)[:, 0] > 0), len(drawn["contours"])

    shares = [right(weight)[0] for weight in (0.9, 0.2)]
    assert shares[0] > 0.8 and shares[1] < 0.35
    heavy, light = (density("unbalanced", 2, Options(), Options({"target.weight": w})) for w in (0.9, 0.1))
    sides = [[np.mean(line[::2]) for line in drawn["contours"]] for drawn in (heavy, light)]
    assert sum(x > 0 for x in sides[0]) > sum(x < 0 for x in sides[0])
    assert sum(x > 0 for x in sides[1]) < sum(x < 0 for x in sides[1])


@pytest.mark.long
def test_the_tick_moves_with_the_weight_and_the_bars_do_not():
    spec = Spec("unbalanced", method="ksivi", capacity=8)
    stepper = Stepper(spec)
    frame = stepper.look(stepper.reset(0, KNOBS), KNOBS, measure=False)
    heavy, light = (seen(1, spec, frame, {}, Options({"target.weight": weight})) for weight in (0.9, 0.2))
    np.testing.assert_array_equal(heavy.mass, light.mass)
    assert heavy.truth[1] == pytest.approx(0.9, abs=0.03) and light.truth[1] == pytest.approx(0.2, abs=0.03)
    assert heavy.distance != light.distance and np.isfinite(heavy.loss)
    bars = Masses(False)
    bars.draw([heavy])
    assert bars.ticks.data["y"][0] == heavy.truth[0] and sum(bars.bars.data["top"]) == pytest.approx(1)
    course = Course(False)
    for step in (0, 10, 20):
        course.add([heavy._replace(step=step)])
    course.add([heavy._replace(step=10)])  # back: what came later never happened
    assert [step for step, _ in course.curves["ksivi", "distance"]] == [0, 10]
    course.draw([heavy])
    assert len(course.source.data["xs"]) >= 1
    below = Course(False)
    below.add([heavy._replace(step=0, loss=-0.1)])  # a U-statistic can be
    assert below.curves["ksivi", "loss"][-1] == (0, LEAST)


def test_a_target_without_draws_has_no_distance():
    assert reference("diffusion", 40, Options(), Options()).draws is None
    assert reference("x_shaped", 2, Options(), Options()).modes is None
    left, right = reference("unbalanced", 2, Options(), Options()).modes[:, 0]
    assert left < right  # as on the stage


def test_reference_draws_stand_in_for_the_contours_of_a_slice():
    """The slice of the waveform posterior through its centre, 0, lies where no draw is."""
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(800, 3)) @ np.diag([2.0, 0.5, 1.0]) + [3.0, -1.0, 0.0]

    @TARGETS.register("known_draws", label="Known draws", reference="here", dims=(3, 3), default_dim=3, sampled=False)
    def known_draws(dim):
        "A normal with draws of it."
        return Target(
            log_density=lambda theta: -0.5 * ((theta - 3.0) ** 2).sum(),
            start=Start(np.zeros(3), np.ones(3)),
            truth=Truth(reference=draws),
            extent=(-5.0, 11.0, -4.0, 2.0),
            coordinates=("x", "y", "z"),
            constrain=lambda theta: {"theta": theta},
        )

    try:
        shown = density("known_draws", 3)
    finally:
        del TARGETS._entries["known_draws"]
    assert "draws of NUTS" in shown["labels"][0] and shown["draws"] is None  # they are not exact
    largest = max((np.reshape(line, (-1, 2)) for line in shown["contours"]), key=lambda line: np.ptp(line[:, 0]))
    assert np.ptp(largest[:, 0]) == pytest.approx(2 * 3.03 * 2.0, rel=0.25)  # 99 % of a normal: 3.03 sds
    assert np.ptp(largest[:, 1]) == pytest.approx(2 * 3.03 * 0.5, rel=0.25)


def test_nobody_edits_a_run_of_samplers_alone():
    setup = Setup("multimodal", ("ksivi",), knobs=KNOBS)
    stepper = Stepper(setup.spec("ksivi", 8))
    run = Run(setup, [stepper])
    for change in (("add", (0.0, 0.0)), ("remove", 0), ("move", (0, 0.0, 0.0))):
        run.change(*change)
        assert run.count == 8 and not run.changes
    cards = SamplerView(lambda seen: None).scene([stepper.spec, Spec("multimodal", method="mala", capacity=8)])["cards"]
    assert [card["edit"] for card in cards] == [False, True]


def test_the_end_of_the_line_says_its_angle():
    said = []
    plane = Latent(said.append, False)
    plane.show(90.0)
    assert said == [] and plane.end.data["y"][0] == pytest.approx(LINE_ENDS)
    plane.end.data = {"x": [1.0], "y": [1.0]}
    assert said == [45.0]


def test_a_link_with_a_stranger_is_refused_with_the_names_that_are_allowed():
    assert Samplers.unfit(Setup("multimodal", ("ksivi", "svgd"))) == ""
    assert "SMI is not on this page; allowed: KSIVI" in Samplers.unfit(Setup("multimodal", ("smi",)))
    assert {name for name in METHODS if METHODS[name].facts.sampler} <= set(offered().values())
    for stop in Samplers.stops():
        assert Samplers.unfit(stop) == ""
