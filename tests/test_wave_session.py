"""The worker of page "1-D wave" without a browser: what it trains, compiles, shows and says."""

import asyncio
import time
from dataclasses import replace

import numpy as np
import panel as pn
import pytest
from bokeh.document import Document
from checks import PATIENCE, finished, session_of, until
from panel.io.state import set_curdoc

from stein_core import compile
from stein_core.targets.wave import dim_of
from steinlab.pages.functions.session import FunctionRun
from steinlab.pages.functions.setup import FunctionSetup
from steinlab.pages.functions.trained import SHIPPED as FUNCTIONS
from steinlab.pages.wave import session as wave_session
from steinlab.pages.wave.measures import evaluate
from steinlab.pages.wave.session import WaveRun, WaveSession
from steinlab.pages.wave.setup import PAPER, STEPS, WaveSetup, shown
from steinlab.pages.wave.trained import SHIPPED
from steinlab.pages.wave.widths import shipped_rows
from steinlab.server.memory import dismantle
from steinlab.server.streaming import Streamer
from steinlab.shell import Shell
from steinlab.stage.run import resize

TRAINED = WaveSetup(methods=("svgd", "map"))  # the default run's, without what compiles long
TINY = WaveSetup(width=1, methods=("svgd", "map"))


@pytest.mark.long
def test_a_state_moved_to_another_capacity_keeps_its_particles():
    small, large = (WaveSetup(width=1, knobs={"method.particles": n}) for n in (5, 8))
    one, two = compile(small.spec("svgd")), compile(large.spec("svgd"))
    state = one.advance(one.reset(0, small.knobs_of("svgd")), small.knobs_of("svgd"), 7)
    carried = resize(state, two.reset(0, large.knobs_of("svgd")))
    np.testing.assert_array_equal(np.asarray(carried.particles)[:5], np.asarray(state.particles)[:5])
    back = resize(carried, one.reset(0, small.knobs_of("svgd")))
    np.testing.assert_array_equal(back.particles, state.particles)
    assert int(two.advance(carried, large.knobs_of("svgd"), 3).step) == 10


class Screen:
    """A browser that acknowledges at once, or not at all."""

    def __init__(self, setup, alive=True):
        self.news = {}
        self.streamer = Streamer(self.drawn, lambda work: work())
        self.alive = alive
        self.session = WaveSession(setup, self.streamer, self.news.update)

    def drawn(self, frame):
        if self.alive:
            self.streamer.ack(frame[0])

    def until(self, condition, seconds=PATIENCE):
        end = time.monotonic() + seconds
        while not condition(self.session.snapshot):
            assert time.monotonic() < end, self.news
            time.sleep(0.02)


@pytest.fixture
def screen():
    made = Screen(TINY)
    made.session.wake()
    yield made
    made.session.close()


def test_a_session_trains_warm_starts_and_answers(screen):
    session = screen.session
    screen.until(lambda p: p and p.step > 20 and set(p.methods) == {"svgd", "map"})
    session.toggle()
    screen.until(lambda p: screen.news.get("playing") is False)
    step = session.paused_at
    touched = WaveSetup(width=1, methods=("svgd", "map"), data=PAPER + ((0.4, 6.0),))
    session.apply(touched)
    screen.until(lambda p: p.setup == touched)
    assert session.snapshot.step == step and session.paused_at == step
    session.step()
    screen.until(lambda p: p.step == step + 1)
    five = session.snapshot.methods["svgd"].curves
    session.apply(replace(touched, knobs={"method.particles": 8}))  # another program
    screen.until(lambda p: len(p.methods.get("svgd", p.methods["map"]).curves) == 8)
    np.testing.assert_allclose(session.snapshot.methods["svgd"].curves[:5], five, atol=1e-6)
    session.reset()
    screen.until(lambda p: p.step == 0)


def test_the_default_run_opens_trained_and_goes_on_from_there():
    made = Screen(TRAINED)
    session = made.session
    session.wake()
    made.until(lambda p: p and set(p.methods) == set(TRAINED.methods))
    first = session.snapshot
    assert session.paused_at == first.step == STEPS and {seen.step for seen in first.methods.values()} == {STEPS}
    assert first.methods["svgd"].readout.lppd[0] > 2  # at step 0 it is below -1,000
    noisy = replace(TRAINED, knobs={"target.noise": 0.2})
    session.apply(noisy)  # a slider of the data: the band answers, as after a run
    made.until(lambda p: p.setup == noisy and p.step > STEPS)
    assert made.news["playing"]
    session.apply(TRAINED)
    session.reset()  # from scratch, with the shipped settings too
    session.play(False)
    made.until(lambda p: p.setup == TRAINED and p.step < STEPS)
    session.apply(replace(TRAINED, seed=1))
    made.until(lambda p: p.setup.seed == 1 and p.step < STEPS)
    session.apply(TRAINED)  # the shipped choice again
    made.until(lambda p: p.setup == TRAINED and p.step == STEPS)
    np.testing.assert_array_equal(session.snapshot.methods["svgd"].curves, first.methods["svgd"].curves)
    session.apply(replace(TRAINED, seed=1))  # another run than the one that has ended: it is trained
    made.until(lambda p: p.setup.seed == 1 and 0 < p.step < STEPS)
    session.close()


@pytest.mark.parametrize("steps, first", [(0, STEPS), (STEPS, STEPS), (STEPS + 30, STEPS), (40, 0)])
def test_a_link_with_steps_means_what_it_meant(steps, first):
    made = Screen(replace(TRAINED, methods=("map",), steps=steps))
    made.session.wake()
    made.until(lambda p: p and p.step == (steps or STEPS) and made.news.get("playing") is False)
    assert SHIPPED.first_step(made.session._setup) == first
    made.session.close()


def test_settings_that_do_not_ship_train_from_scratch():
    for change in ({"draws": 99}, {"seed": 1}, {"width": 6}, {"knobs": {"method.alpha": 2.0}}, {"data": PAPER[1:]}):
        assert SHIPPED.first_step(replace(TRAINED, **change)) == 0, change


@pytest.mark.rare
def test_the_shipped_states_are_those_of_the_default_run():
    """Against a run of now, and against the ten seeds of the shipped sweep, which another program has computed."""
    assert SHIPPED.recipes() == {method: SHIPPED.recipe_of(method) for method in shown()}
    setup = WaveSetup(methods=shown())
    gaps = {}
    for method in shown():
        stepper = compile(setup.spec(method), look=False)
        state = SHIPPED.state(stepper, method)
        assert int(state.step) == STEPS
        gaps[method] = evaluate(setup.spec(method), state.particles, setup, method, STEPS, 0.0, False)
    for method in ("svgd", "annealed", "smi"):
        widths = [row["width_between"] for row in shipped_rows("widths") if (row["method"], row["dim"]) == (method, 41)]
        assert len(widths) == 10 and abs(gaps[method].readout.gap - np.mean(widths)) < 3 * np.std(widths, ddof=1), (
            method
        )
    stepper, knobs = compile(setup.spec("map"), look=False), setup.knobs_of("map")
    state = stepper.advance(stepper.reset(0, knobs), knobs, STEPS)
    now = evaluate(setup.spec("map"), state.particles, setup, "map", STEPS, 0.0, False)
    np.testing.assert_allclose(gaps["map"].curves, now.curves, atol=0.02)


def test_training_pauses_at_the_links_step_and_a_later_method_runs_up_to_it():
    made = Screen(WaveSetup(width=1, methods=("map",), steps=40))
    made.session.wake()
    made.until(lambda p: p and p.step == 40 and made.news.get("playing") is False)
    made.session.apply(TINY)
    made.until(lambda p: "svgd" in p.methods and p.methods["svgd"].step == 40)
    assert made.session.snapshot.methods["map"].step == 40
    made.session.close()


def test_what_is_refused_is_said_without_a_traceback_and_the_session_goes_on(screen, caplog, monkeypatch):
    screen.until(lambda p: p and p.step > 5)
    monkeypatch.setenv("STEINLAB_MEMORY_GB", "0.0001")
    screen.session.apply(replace(TINY, width=30))
    until(lambda: screen.news.get("alarm", "").startswith("capacity = "))
    assert "Traceback" not in caplog.text
    monkeypatch.undo()
    screen.session.apply(TINY)
    screen.session.play(True)
    screen.until(lambda p: p and p.setup == TINY and p.step > 5)


def test_a_picture_that_fails_is_told_once_and_tried_again_when_something_changes(screen, caplog, monkeypatch):
    screen.until(lambda p: p and p.step > 5 and set(p.methods) == {"svgd", "map"})  # all is compiled

    def fail(*arguments):
        raise RuntimeError("no such thing")

    monkeypatch.setattr(wave_session, "evaluate", fail)
    until(lambda: screen.news.get("alarm") == "RuntimeError: no such thing")
    time.sleep(0.5)
    assert caplog.text.count("Traceback") == 1 and screen.news["playing"] is False
    monkeypatch.undo()
    step = screen.session.snapshot.step
    screen.session.play(True)
    screen.until(lambda p: p.step > step)


def test_a_page_begins_to_train_once_it_is_built_and_before_a_browser_has_loaded_it(monkeypatch):
    woken = []
    monkeypatch.setattr(WaveSession, "wake", lambda session: woken.append(session))
    monkeypatch.setattr(type(pn.state), "onload", lambda state, call: None)  # no browser comes

    async def built():
        document = Document()
        with session_of(document), set_curdoc(document):
            shell = Shell({"page": "wave", "width": "5"})
            shell.begin()
            page = shell.pages["wave"]
            assert not woken
            await asyncio.sleep(0.1)
            assert woken == page.trainings.sessions

    finished(built())


@pytest.fixture
def submitted(monkeypatch):
    """What waits for a compiler thread, with the session that has asked for it."""
    work = []
    monkeypatch.setattr(wave_session.COMPILERS, "submit", lambda *what: work.append(what))
    return work


def answer(session):
    """The worker's turn with the one command that came."""
    command, arguments = session._commands.get_nowait()
    command(*arguments)


def test_a_width_that_is_chosen_again_while_its_turn_is_skipped_is_compiled_all_the_same(submitted):
    session = Screen(TINY).session
    session._request()
    work, *first = submitted.pop()
    session._apply(replace(TINY, width=2))
    work(*first)  # nobody wants it now
    assert len(submitted) == 1 and submitted.pop()[1][0].dim == dim_of(2)  # and what is wanted does not wait for it
    session._apply(TINY)
    work, *again = submitted.pop()
    assert again[0] == first[0] and not submitted and session._commands.empty()
    work(*again)
    answer(session)
    assert list(session._programs) == [first[0]]
    ((_, following, _),) = submitted  # one after the other
    assert following[0].method == "svgd"


def test_programs_that_are_wanted_no_more_are_let_go(submitted):
    session = Screen(WaveSetup(width=1, methods=("map",))).session
    for width in (1, 2):
        session._apply(WaveSetup(width=width, methods=("map",)))
        assert session.snapshot is None  # one of another width says nothing of this network
        work, *what = submitted.pop()
        work(*what)
        answer(session)
        assert [key[0].dim for key in session._programs] == [dim_of(width)] and not submitted
        session._look()
        session._reset()
        assert session.snapshot  # what there is stays in place until the next one


def test_what_fails_to_compile_is_no_alarm_where_it_is_wanted_no_more(submitted, monkeypatch):
    made = Screen(TINY)
    made.session._request()
    work, *first = submitted.pop()
    monkeypatch.setattr(
        wave_session, "compile", lambda spec, look: made.session._apply(replace(TINY, width=2)) or 1 / 0
    )
    work(*first)
    answer(made.session)
    assert not made.news["alarm"] and made.news.get("playing") is not False and len(submitted) == 1


def test_a_hidden_page_compiles_nothing_more_and_goes_on_when_it_is_shown(submitted):
    session = Screen(TINY).session
    session._request()
    work, *first = submitted.pop()
    session._sleep(True)
    work(*first)
    answer(session)
    assert list(session._programs) and not submitted
    session._sleep(False)
    assert submitted[0][1][0].method == "svgd"


def refuse(spec, look):
    raise ValueError("too much") if spec.method == "map" else RuntimeError("no such thing")


def test_a_program_that_is_refused_is_not_asked_for_again_until_the_page_asks_and_the_others_are(
    submitted, monkeypatch
):
    monkeypatch.setattr(wave_session, "compile", refuse)
    made = Screen(TINY)
    made.session._request()
    for again in (
        lambda: made.session._apply(TINY),
        lambda: made.session._play(True),
        made.session._reset,
        lambda: None,
    ):
        for method in ("map", "svgd"):
            assert made.news["status"].startswith(f"compiling {method.upper()}")
            work, *what = submitted.pop()
            assert what[0][0].method == method and not submitted
            made.news["playing"] = True
            work(*what)
            answer(made.session)
            assert made.news["playing"] is (method == "map")
        assert not submitted and made.news["status"] == "" and made.news["alarm"] == "RuntimeError: no such thing"
        again()


def test_beside_a_refused_program_the_others_train_as_fast_as_ever(monkeypatch):
    wanted = wave_session.compile
    monkeypatch.setattr(
        wave_session, "compile", lambda spec, look: wanted(spec, look) if spec.method == "map" else refuse(spec, look)
    )
    made = Screen(TINY)
    made.session.wake()
    steps = [0]
    made.until(lambda p: p and (steps.append(p.step) or p.step > 200))
    made.session.close()
    assert (
        max(np.diff(steps)) > 4
        and made.news["alarm"] == "RuntimeError: no such thing"
        and made.news.get("playing") is not False
    )


def test_nobody_looking_means_nothing_is_trained():
    made = Screen(TINY, alive=False)
    made.session.wake()
    made.until(lambda p: p is not None)
    until, before, steps = time.monotonic() + PATIENCE, None, {}
    while before != steps or set(steps) != {"svgd", "map"}:  # it comes to rest, however slow the machine is
        assert time.monotonic() < until
        before = steps
        time.sleep(1)
        steps = {name: own.step for name, own in made.session._run.methods.items()}
    assert max(steps.values()) < 20
    made.session.close()


@pytest.mark.parametrize(
    "run, setup, shipped", [(WaveRun, WaveSetup(), SHIPPED), (FunctionRun, FunctionSetup(), FUNCTIONS)]
)
def test_a_page_that_ends_leaves_the_shipped_run_to_the_others(run, setup, shipped):
    dismantle((run(setup, shipped.steps),))
    assert all(shipped.file(method).is_file() for method in shipped.plain.methods)
