"""A run and its link: everything done on the way can be repeated."""

from dataclasses import replace
from urllib.parse import parse_qsl

import numpy as np
import pytest

from stein_core import collect, compile
from steinlab.pages.location import Location
from steinlab.pages.particles import Particles
from steinlab.stage.programs import FIRST_CAPACITY
from steinlab.stage.run import Run, resize
from steinlab.stage.setup import MOST_CHANGES, Setup
from steinlab.stage.wire import rows

SMALL = {"target": "gaussian", "methods": ("svgd",)}


def run_of(**fields) -> Run:
    setup = Setup(**{**SMALL, **fields})
    return Run(setup, [compile(setup.spec(method, FIRST_CAPACITY)) for method in setup.methods])


def test_everything_done_on_the_way_is_in_the_recipe():
    run = run_of(seed=2)
    run.advance(10)
    run.look()
    run.change("method.alpha", 4.0)
    run.change("method.alpha", 5.0)  # the same moment: one change
    run.advance(7)
    run.change("add", (1.5, -0.5))
    run.change("remove", 3)
    run.change("move", (4, 0.25, 2.0))
    run.change("kernel.name", "imq")
    run.advance(9)
    run.change("bandwidth.factor", 2.0)
    last = run.look()[0]
    done = [(10, "method.alpha"), (17, "add"), (17, "remove"), (17, "move"), (17, "kernel.name")]
    done += [(26, "bandwidth.factor")]
    assert [c[:2] for c in run.changes] == done
    setup = run.present()
    again = collect(setup.recipe("svgd", run.capacity), steps=26)[-1]
    np.testing.assert_array_equal(again.particles, last.particles)
    linked, problems = Setup.from_query(parsed(setup.to_query()))
    assert not problems and linked == setup
    replay = Run(linked, run.steppers)
    while replay.clock < 26:
        replay.advance(26 - replay.clock)
    np.testing.assert_array_equal(replay.look()[0].particles, last.particles)
    np.testing.assert_array_equal(replay.frames[0].repulse, last.repulse)


def test_rewinding_restores_and_going_on_forgets_the_rest():
    run = run_of()
    shown = []
    for _ in range(6):
        shown.append(run.look()[0])
        run.advance(3)
    run.change("add", (1.0, 1.0))
    run.look()
    run.rewind(2)
    back = run.look()[0]
    np.testing.assert_array_equal(back.particles, shown[2].particles)
    assert len(run.history) == 7 and run.count == 20
    run.rewind(6)
    assert run.count == 21
    run.rewind(2)
    run.advance(3)
    np.testing.assert_array_equal(run.look()[0].particles, shown[3].particles)
    assert len(run.history) == 4 and not run.changes


def test_a_drag_is_one_change_at_a_moment_and_in_each_method():
    run = run_of(methods=("svgd", "smi", "map"))
    run.advance(5)
    run.look()
    for x in (0.5, 1.0, 1.5):
        run.change("move", (2, x, -1.0))
    for _ in range(2):  # it plays on, and the particle is held
        run.advance(1)
        run.change("move", (2, 1.5, -1.0))
    run.change("move", (0, -1.0, 1.0))
    assert run.changes == [
        *((step, "move", (2, 1.5, -1.0)) for step in (5, 6, 7)),
        (7, "move", (0, -1.0, 1.0)),
    ]
    frames = run.look()
    for frame, index in zip(frames, (2, 2, 0)):  # MAP has one particle
        there = [1.5, -1.0] if index else [-1.0, 1.0]
        np.testing.assert_array_equal(frame.locations[index], np.float32(there))
    again = replayed(run)
    for one, other in zip(again.look(), frames):
        np.testing.assert_array_equal(one.particles, other.particles)


def test_a_particle_that_is_not_there_is_not_dragged():
    run = run_of()
    run.change("move", (20, 0.0, 0.0))
    assert not run.changes
    alone = run_of(methods=("map",))
    alone.change("move", (1, 0.0, 0.0))
    assert not alone.changes
    alone.change("move", (0, 1.5, 0.5))
    np.testing.assert_array_equal(alone.look()[0].particles, [[1.5, 0.5]])


@pytest.mark.parametrize("steps", [0, 3])
def test_a_drag_that_is_given_up_never_happened(steps):
    """Neither its moves nor the steps since, but a knob that was turned meanwhile keeps its value."""
    run = run_of(methods=("svgd", "smi"))
    run.look()
    run.advance(4)
    run.change("move", (3, 2.0, 2.0))
    before = run.look()
    run.grab()
    for _ in range(1 + steps):
        run.change("move", (3, -2.0, -2.0))
        run.look()
        run.advance(steps > 0)
    run.change("method.alpha", 2.0)
    run.let_go()
    for one, other in zip(run.look(), before):
        np.testing.assert_array_equal(one.particles, other.particles)
    assert run.changes == [(4, "move", (3, 2.0, 2.0)), (4, "method.alpha", 2.0)] and len(run.history) == 2
    run.let_go()  # there is no drag any more
    run.advance(6)
    np.testing.assert_array_equal(replayed(run).look()[0].particles, run.look()[0].particles)


def test_a_long_run_keeps_its_history_small():
    run = run_of()
    run.look()
    for _ in range(700):
        run.advance(1)
        run.look()
    assert 300 <= len(run.history) <= 601 and run.history[0].clock == 0 and run.history[-1].clock == 700


def test_where_one_method_diverges_all_stop_on_the_same_step():
    run = run_of(methods=("svgd", "ensemble"), optimizer="sgd", knobs={"method.step_size": 1000.0})
    diverged = run.advance(50)
    frames = run.look()
    assert diverged and run.clock < 50 and [f.step for f in frames] == [run.clock] * 2


@pytest.mark.parametrize("query, sentence", [
    ({"target": "rign"}, "did you mean 'ring'"),
    ({"methods": "svgd,svgd"}, "different"),
    ({"methods": "svgd,smi,vi,map"}, "1 to 3"),
    ({"method.alpha": "-1"}, "method.alpha = -1 is out of range"),
    ({"method.alpha": "nan"}, "out of range"),
    ({"method.particles": "3.5"}, "not a whole number"),
    ({"method.particles": "300"}, "allowed: 1 to 256"),
    ({"seed": "abc"}, "seed"),
    ({"dim": "7", "target": "ring"}, "dim = 7"),
    ({"kernel.name": "rfb"}, "did you mean 'rbf'"),
    ({"changes": "nonsense"}, "changes"),
    ({"steps": "-4"}, "steps = -4"),
    ({"guide": "norml"}, "did you mean 'normal'"),
    ({"wat": "1"}, "'wat'"),
])  # fmt: skip
def test_a_bad_link_names_what_is_wrong_and_keeps_the_rest(query, sentence):
    setup, problems = Setup.from_query({"optimizer": "sgd", **query})
    assert any(sentence in problem for problem in problems), problems
    assert setup.optimizer == "sgd"


def test_a_dragged_slider_does_not_outgrow_the_link():
    run = run_of()
    for i in range(MOST_CHANGES + 1):
        run.advance(1)
        run.change("method.alpha", 1.0 + i)
    setup = run.present()
    assert not setup.linkable and len(setup.changes) == MOST_CHANGES + 1  # a script is exact all the same
    assert len(setup.to_query()) < 300
    linked, problems = Setup.from_query(parsed(setup.to_query()))
    assert not problems and linked.knobs["method.alpha"] == 1.0 + MOST_CHANGES


def parsed(query: str) -> dict[str, str]:
    return dict(part.split("=") for part in query.split("&"))


def replayed(run: Run) -> Run:
    """The run of `run`'s link, as far as `run` is."""
    setup, problems = Setup.from_query(parsed(run.present().to_query()))
    assert not problems
    again = Run(setup, run.steppers)
    while again.clock < setup.steps:
        again.advance(setup.steps - again.clock)
    again.advance(0)
    again.look()
    return again


def test_a_link_repeats_edits_and_knobs_at_step_0():
    run = run_of()
    run.look()
    run.change("add", (1.0, 1.0))
    run.change("method.alpha", 3.0)
    frame = run.look()[0]
    assert len(frame.particles) == 21
    np.testing.assert_array_equal(replayed(run).frames[0].repulse, frame.repulse)
    run.advance(5)
    run.look()
    run.change("method.alpha", 5.0)
    run.rewind(0)
    run.change("method.alpha", 7.0)
    frame = run.look()[0]
    np.testing.assert_array_equal(replayed(run).frames[0].repulse, frame.repulse)


def test_a_link_to_a_rewound_frame_has_its_past_and_the_present_knobs():
    run = run_of()
    for _ in range(4):
        run.look()
        run.advance(3)
    run.look()
    run.change("method.alpha", 4.0)
    run.rewind(1)
    frame = run.look()[0]
    assert run.present().steps == 3
    np.testing.assert_array_equal(replayed(run).frames[0].repulse, frame.repulse)


def test_a_long_run_still_has_a_setup():
    run = run_of()
    run.clock = 200_000
    assert not run.present().linkable and "steps" not in run.present().to_query()


def test_nothing_is_added_to_a_single_particle_or_taken_away():
    run = run_of(methods=("map",))
    run.change("add", (1.0, 1.0))
    run.change("remove", 0)
    assert run.count == 20 and not run.changes and len(run.look()[0].particles) == 1


@pytest.mark.parametrize(
    "changes",
    [
        "0~add~nan,1",
        "3~remove~-5",
        "3~move~1,2",
        "3~move~-1,0,0",
        "3~move~0,nan,0",
        "5~method.alpha~2;3~method.alpha~1",
    ],
)
def test_nonsense_changes_in_a_link_are_refused(changes):
    setup, problems = Setup.from_query({"changes": changes})
    assert problems and not setup.changes


@pytest.mark.long
def test_rows_of_a_one_dimensional_frame_lie_on_the_axis():
    frame = run_of(target="gamma").look()[0]
    table = rows(frame)
    assert table.shape == (20, 9) and (table[:, 1::2] == 0).all()
    np.testing.assert_array_equal(table[:, 0], frame.particles[:, 0])


@pytest.mark.parametrize("page", [Particles, Location])
def test_every_preset_is_a_link_without_a_problem(page):
    assert len(page.presets) >= 4 and len({preset["name"] for preset in page.presets}) == len(page.presets)
    for preset in page.presets:
        setup, problems = Setup.from_query(dict(parse_qsl(preset["link"])), page.plain)
        assert not problems and preset["text"].endswith(".")
        assert len(preset["caption"]) <= 60 and preset["caption"][-1] in ".?"  # it is read from the last row
        assert Setup.from_query(parsed(setup.to_query(page.plain)), page.plain)[0] == setup


def test_a_state_is_resized_along_every_axis_and_back():
    small = {"particles": np.ones((3, 2)), "memory": np.full((4, 3, 2), 2.0), "step": np.int32(7)}
    large = {"particles": np.zeros((5, 2)), "memory": np.zeros((4, 5, 2)), "step": np.int32(0)}
    grown = resize(small, large)
    assert grown["step"] == 7 and (grown["memory"][:, :3] == 2).all() and (grown["memory"][:, 3:] == 0).all()
    assert grown["particles"].tolist() == [[1, 1]] * 3 + [[0, 0]] * 2
    for name, back in resize(grown, small).items():
        np.testing.assert_array_equal(back, small[name])


@pytest.mark.long
def test_a_method_with_stored_sets_grows_too():
    setup = Setup(target="gaussian", methods=("resampled",), knobs={"method.particles": 8})
    run = Run(setup, [compile(setup.spec("resampled", 8))])
    run.advance(3)
    stored = np.array(run.methods["resampled"].state.memory)
    run.install([compile(setup.spec("resampled", 16))])
    assert np.abs(stored[:3]).min() > 0
    np.testing.assert_array_equal(run.methods["resampled"].state.memory[:, :8], stored)
    run.change("method.particles", 16)
    assert run.advance(1) == [] and run.look()[0].particles.shape == (16, 2)


@pytest.mark.long
def test_a_knob_that_does_not_fit_the_others_is_refused_and_changes_nothing():
    setup = Setup(target="gaussian", methods=("mmd",), knobs={"method.driving": "closed_form", "method.particles": 8})
    run = Run(setup, [compile(setup.spec("mmd", 8))])
    run.advance(2)
    with pytest.raises(ValueError, match="closed_form"):
        run.change("kernel.name", "imq")
    assert "kernel.name" not in run.knobs and not run.changes
    assert run.advance(2) == [] and run.look()[0].step == 4
    with pytest.raises(ValueError, match="closed_form"):
        replace(setup, changes=((3, "kernel.name", "imq"),))
