"""The session without a browser: a thread, a queue and a fake screen."""

import time

import numpy as np
import pytest

from app.run import Run
from app.session import FIRST_CAPACITY, Session, rows
from app.setup import CAPACITY, MOST_CHANGES, Setup, all_knobs
from stein_core import METHODS, TARGETS, collect, compile

SMALL = {"target": "gaussian", "methods": ("svgd",)}


class Screen:
    """Takes every frame at once, as a fast browser would."""

    def __init__(self):
        self.frames, self.closed = [], False

    def wait_slot(self, timeout):
        return not self.closed

    def publish(self, frame):
        self.frames.append(frame)

    def close(self):
        self.closed = True


class Desk:
    """A session with what it told."""

    def __init__(self, **fields):
        self.screen, self.news = Screen(), {}
        self.session = Session(Setup(**{**SMALL, **fields}), self.screen, self.news.update)
        self.session.start()

    def until(self, happened, seconds=60):
        end = time.monotonic() + seconds
        while not happened():
            assert time.monotonic() < end, self.news
            time.sleep(0.01)

    @property
    def frame(self):
        return self.session.frames[0]

    def at(self, step):
        self.until(lambda: self.session.frames and self.frame.step >= step)


@pytest.fixture
def desk():
    desks = []

    def made(**fields):
        desks.append(Desk(**fields))
        return desks[-1]

    yield made
    for each in desks:
        each.session.close()
        each.session._thread.join(10)
        assert not each.session._thread.is_alive()


def run_of(**fields) -> Run:
    setup = Setup(**{**SMALL, **fields})
    return Run(setup, [compile(setup.spec(method, FIRST_CAPACITY)) for method in setup.methods])


def test_plays_from_the_start_and_pauses(desk):
    d = desk()
    d.at(5)
    d.session.toggle()
    d.until(lambda: d.news["playing"] is False)
    time.sleep(0.2)
    at = d.frame.step
    time.sleep(0.2)
    assert d.frame.step == at


def test_a_link_with_steps_stops_there_and_equals_the_recipe(desk):
    d = desk(steps=17, knobs={"method.alpha": 3.0}, seed=5)
    d.at(17)
    d.until(lambda: d.news.get("status") == "")
    time.sleep(0.2)
    assert d.frame.step == 17
    setup, capacity = d.session.shown()
    again = collect(setup.recipe("svgd", capacity), steps=17)[-1]
    np.testing.assert_array_equal(again.particles, d.frame.particles)


def test_everything_done_on_the_way_is_in_the_recipe():
    run = run_of(seed=2)
    run.advance(10)
    run.look()
    run.change("method.alpha", 4.0)
    run.change("method.alpha", 5.0)  # the same moment: one change
    run.advance(7)
    run.change("add", (1.5, -0.5))
    run.change("remove", 3)
    run.change("kernel.name", "imq")
    run.advance(9)
    run.change("bandwidth.factor", 2.0)
    last = run.look()[0]
    done = [(10, "method.alpha"), (17, "add"), (17, "remove"), (17, "kernel.name"), (26, "bandwidth.factor")]
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


def test_a_long_run_keeps_its_history_small():
    run = run_of()
    run.look()
    for _ in range(700):
        run.advance(1)
        run.look()
    assert 300 <= len(run.history) <= 601 and run.history[0].clock == 0 and run.history[-1].clock == 700


def test_paused_a_knob_moves_nothing(desk):
    d = desk(steps=5)
    d.at(5)
    before = d.frame
    d.session.turn("method.alpha", 2.0)
    d.until(lambda: d.frame is not before)
    np.testing.assert_array_equal(d.frame.particles, before.particles)
    np.testing.assert_allclose(d.frame.repulse, 2 * before.repulse, rtol=1e-6)


def test_more_particles_than_the_first_program_holds(desk):
    d = desk(steps=5)
    d.at(5)
    old = d.frame.particles
    d.session.turn("method.particles", 40)
    d.until(lambda: len(d.frame.particles) == 40)
    assert d.frame.step == 5
    np.testing.assert_allclose(d.frame.particles[:20], old, rtol=1e-6)
    setup, capacity = d.session.shown()
    assert capacity == CAPACITY
    again = collect(setup.recipe("svgd", capacity), steps=5)[-1]
    np.testing.assert_allclose(again.particles, d.frame.particles, rtol=1e-4, atol=1e-5)
    d.session.rewind(0)
    d.until(lambda: d.frame.step == 0 and len(d.frame.particles) == 20)


def test_divergence_is_told_with_its_step_and_reset_helps(desk):
    d = desk(optimizer="sgd", knobs={"method.step_size": 1000.0})
    d.until(lambda: "diverged at step" in d.news.get("alarm", ""))
    assert d.news["playing"] is False and np.isfinite(d.frame.particles).all()
    assert f"step {d.frame.step + 1}" in d.news["alarm"]
    d.session.turn("method.step_size", 0.1)
    d.session.reset()
    d.session.toggle()
    d.at(20)
    assert d.news["alarm"] == ""


def test_where_one_method_diverges_all_stop_on_the_same_step():
    run = run_of(methods=("svgd", "ensemble"), optimizer="sgd", knobs={"method.step_size": 1000.0})
    diverged = run.advance(50)
    frames = run.look()
    assert diverged is not None and run.clock < 50 and [f.step for f in frames] == [run.clock] * 2


def test_particles_turned_up_while_compiling(desk):
    d = desk(target="cross")
    d.session.turn("method.particles", 100)
    d.until(lambda: d.session.frames and len(d.frame.particles) == 100)
    assert not d.news["alarm"]


def test_an_error_in_a_command_is_shown_and_the_session_goes_on(desk):
    d = desk()
    d.at(2)
    d.session.turn("method.particles", CAPACITY + 1)
    d.until(lambda: str(CAPACITY) in d.news["alarm"])
    d.session.toggle()
    at = d.frame.step
    d.at(at + 3)


def test_sessions_are_independent(desk):
    one, two = desk(), desk(seed=1)
    one.at(3), two.at(3)
    one.session.toggle()
    one.until(lambda: one.news["playing"] is False)
    time.sleep(0.1)
    at = one.frame.step
    two.at(two.frame.step + 5)
    assert one.frame.step == at


def test_the_last_choice_wins_while_compiling(desk):
    d = desk(methods=("svgd",))
    d.session.choose(target="banana")
    d.session.choose(target="ring")
    d.until(lambda: d.session.frames and d.session._run.setup.target == "ring")
    assert d.news["setup"].target == "ring" and d.news["scene"]["labels"]


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
    return dict(part.split("=") for part in query[1:].split("&"))


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


def test_a_link_that_grows_on_the_way_starts_on_a_program_that_is_large_enough(desk):
    d = desk(steps=8, changes=((2, "method.particles", 100), (5, "add", (1.0, 1.0))))
    d.until(lambda: d.session.frames and len(d.frame.particles) == 101)
    assert not d.news["alarm"]


def test_a_single_particle_takes_no_edits():
    run = run_of(methods=("map",))
    run.change("add", (1.0, 1.0))
    run.change("remove", 0)
    assert run.count == 20 and not run.changes and len(run.look()[0].particles) == 1


def test_a_slider_back_below_the_first_program_while_it_grows(desk):
    d = desk(target="student", steps=3)
    d.at(3)
    d.session.turn("method.particles", 50)
    d.session.turn("method.particles", 10)
    d.until(lambda: len(d.frame.particles) == 10)
    time.sleep(1.0)
    assert len(d.frame.particles) == 10


@pytest.mark.parametrize("changes", ["0~add~nan,1", "3~remove~-5", "5~method.alpha~2;3~method.alpha~1"])
def test_nonsense_changes_in_a_link_are_refused(changes):
    setup, problems = Setup.from_query({"changes": changes})
    assert problems and not setup.changes


def test_every_knob_has_a_widget_and_every_target_a_scene():
    from app.controls import place, widget
    from app.scene import scene

    for name, knob in all_knobs().items():
        heard = []
        made = widget(knob, lambda n, v: heard.append((n, v)))
        other = list(knob.choices)[-1] if knob.choices else knob.check(min(max(knob.low, 3), knob.high))
        place(made, knob, other)
        assert made.value == other and heard[-1] == (name, other)
    for target in TARGETS:
        still = scene(Setup(target=target).spec("svgd", 8), ("svgd",))
        assert still["titles"] == [METHODS["svgd"].label]
        assert still["curve"] or (len(still["contours"]) >= 8 and still["image"])


def test_rows_of_a_one_dimensional_frame_lie_on_the_axis():
    frame = run_of(target="gamma").look()[0]
    table = rows(frame)
    assert table.shape == (20, 8) and (table[:, 1::2] == 0).all()
    np.testing.assert_array_equal(table[:, 0], frame.particles[:, 0])


def test_a_failure_at_start_gives_a_message_instead_of_a_blank_page(monkeypatch):
    import app.shell

    def broken():
        raise RuntimeError("no such thing")

    served = []
    monkeypatch.setattr(app.shell, "build", broken)
    monkeypatch.setattr(app.shell.pmui.Alert, "servable", lambda self, **k: served.append(self))
    app.shell.serve()
    assert "no such thing" in served[0].objects[0].object
