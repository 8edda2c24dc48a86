"""The page "1-D wave" without a browser: data from text, links, read-outs, NUTS references and the session."""

import time
from dataclasses import replace
from urllib.parse import parse_qsl

import numpy as np
import panel as pn
import pytest
from bokeh.document import Document
from checks import until
from panel.io.state import set_curdoc

from app import jobs, wave_nuts, wave_nuts_panel, wave_session
from app.jobs import SweepJob
from app.shell import Shell
from app.stream import Streamer
from app.wave_figures import narrowing, shipped_rows, spreads
from app.wave_measures import AT, GAP, Seen, measure, seen
from app.wave_nuts import NutsJob
from app.wave_parts import nuts_sentence, table
from app.wave_recovery import STOP, Recovery, apart, table_of
from app.wave_session import Picture, WaveSession, moved
from app.wave_setup import PAPER, SHOWN, WaveSetup, all_knobs, read_points, used_by
from app.wave_stage import pack
from stein_core import compile
from stein_core.bands import Band
from stein_core.nuts import Reference
from stein_core.recovery import PUBLISHED, recovery, recovery_points
from stein_core.sweeps import key_of
from stein_core.wave import GRID, dim_of

TINY = WaveSetup(width=1, methods=("svgd", "map"))


@pytest.mark.parametrize("text", ["1,2\n3,4", "x,y\n1,2\n3,4\n", "1;2\n3;4", "1\t2\n\n3\t4", "1 2\n3 4", " 1, 2 \n3 ,4", "a;b\n1;2\n3;4"])
def test_points_are_read_however_they_are_separated(text):
    assert read_points(text) == ((1.0, 2.0), (3.0, 4.0))


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "0 points"), ("x,y\n", "0 points"), ("1,2\n1,cat", "row 2: 'cat'"), ("1,nan", "finite"), ("inf,1", "finite"),
        ("1,2,3", "row 1: 3 columns"), ("1", "row 1: 1 column;"), ("1,2\n" * 513, "more than 512"),
        ("1,2\n" * 1_000_000, "too much text"), ("x,y\nx,y\n1,2", "row 2"), ("1,1e9", "point 1"), ("x,1\n", "row 1: 'x'"),
    ],
)  # fmt: skip
def test_bad_text_is_refused_with_the_row(text, message):
    with pytest.raises(ValueError, match=message):
        read_points(text)


def test_points_at_the_same_x_and_512_of_them_are_fine():
    assert len(read_points("0.5,1\n" * 512)) == 512


def test_a_link_repeats_every_setting():
    knobs = {"target.noise": 0.2, "method.alpha": 3.0, "method.particles": 9, "kernel.name": "imq"}
    setup = WaveSetup(12, ("map", "smi"), 7, 3, 250, 0.55, True, knobs, ((0.25, -1.5), (1 / 3, 2.0)))
    again, problems = WaveSetup.from_query(dict(parse_qsl(setup.to_query())))
    assert again == setup and problems == [] and again.methods == ("smi", "map")
    assert WaveSetup().to_query() == ""
    assert WaveSetup.from_query({}) == (WaveSetup(), [])


@pytest.mark.parametrize(
    "field, text, message",
    [
        ("width", "0", "width = 0"), ("width", "a", "width = 'a'"), ("methods", "svgd,nuts", "unknown method 'nuts'"),
        ("methods", "", "unknown method"), ("band", "1", "out of range"), ("of", "z", "band of"), ("data", "1,2;nan,1", "row 2"),
        ("target.noise", "0", "target.noise"), ("method.particles", "51", "1 to 50"), ("steps", "-1", "steps"), ("x", "1", "unknown field"),
    ],
)  # fmt: skip
def test_a_wrong_field_of_a_link_is_named_and_the_rest_kept(field, text, message):
    setup, problems = WaveSetup.from_query({"seed": "4", field: text})
    assert setup == WaveSetup(seed=4)
    assert len(problems) == 1 and message in problems[0]


def test_two_rows_are_the_papers_networks_and_their_link_holds_both_steps():
    setup = WaveSetup(width=7, draws=30, steps=250, two=True, below=40)
    first, second = setup.networks()
    assert (first.width, first.draws, first.steps) == (5, 30, 250) and (second.width, second.draws, second.steps) == (100, 10, 40)
    assert not first.two and first.data == second.data
    again, problems = WaveSetup.from_query(dict(parse_qsl(setup.to_query())))
    assert again == setup and problems == []
    assert [network.steps for network in WaveSetup(two=True).networks()] == [0, 0]
    assert WaveSetup(two=True, steps=9).networks()[1].steps == 1  # stopped before the second row began
    assert WaveSetup.from_query({"rows": "3"})[1][0].startswith("unknown rows")
    assert setup.to_python((250, 40)).count("compile(spec)") == 6


def test_many_points_are_left_out_of_a_link():
    points = tuple((i / 300, 0.0) for i in range(300))
    assert "data" not in WaveSetup(data=points).to_query()


def test_only_the_knobs_that_matter_are_shown():
    assert "method.particles" not in used_by("map") and "kernel.name" not in used_by("ensemble")
    assert {"guide.width", "method.alpha", "method.force_scale"} <= used_by("smi")
    assert all(used_by(method) <= set(all_knobs()) for method in SHOWN)


def test_the_script_of_a_setup_runs_and_trains_what_is_on_screen(capsys):
    setup = WaveSetup(width=1, methods=("map",), data=((0.0, 0.5), (1.0, 1.0)), noisy=True)
    scope = {}
    exec(setup.to_python((20,)), scope)
    assert "width_between" in capsys.readouterr().out
    stepper, knobs = compile(setup.spec("map")), setup.knobs_of("map")
    state = stepper.advance(stepper.reset(0, knobs), knobs, 20)
    np.testing.assert_array_equal(scope["state"].particles, state.particles)


def test_readouts_of_a_known_spread():
    """f(x) ~ N(0, 1) independent of x: a 90 % band is 3.29 wide and LPPD is that of the normal with variances added."""
    values = np.random.default_rng(0).normal(size=(4000, 1)) * np.ones(len(AT))
    wide, half, readout = measure(values, WaveSetup())
    assert np.allclose(wide.high - wide.low, 3.29, atol=0.15) and np.allclose(half.high - half.low, 1.35, atol=0.15)
    assert np.allclose([readout.inside, readout.between, readout.gap], wide.width(GRID, GAP))
    noisy, _, same = measure(values, WaveSetup(noisy=True, knobs={"target.noise": 1.0}))
    assert np.allclose(noisy.high - noisy.low, 3.29 * 2**0.5, atol=0.3)
    assert np.isclose(same.between, readout.between)  # the widths of the table are those of f


def test_a_single_curve_has_a_band_of_y_and_covers():
    from stein_core.datasets import wave_function

    wide, _, readout = measure(wave_function(AT)[None], WaveSetup(noisy=True))
    assert 0.25 < np.mean(wide.high - wide.low) < 0.4 and 0.8 < readout.coverage <= 1.0 and readout.between == 0.0


def test_the_shipped_nuts_band_belongs_to_the_papers_posterior_only():
    assert wave_nuts.reference_of(WaveSetup()) is wave_nuts.shipped(5)
    for other in (WaveSetup(width=6), WaveSetup(knobs={"target.noise": 0.2}), WaveSetup(data=PAPER[1:])):
        assert wave_nuts.reference_of(other) is None
    assert "data differ from" in nuts_sentence(None, WaveSetup(data=PAPER[1:]))
    assert "noise differs from" in nuts_sentence(None, WaveSetup(knobs={"target.noise": 0.2}))
    assert "width 6" in nuts_sentence(None, WaveSetup(width=6))


def test_chains_that_disagree_are_said_to():
    values = np.random.default_rng(0).normal(size=(4, 50, len(GRID)))
    agree = Reference(GRID, values, {"chains": 4, "samples": 50, "made": "today", "r_hat": [1.0] * len(GRID)})
    assert "the chains agree" in nuts_sentence(wave_nuts.compared(agree, WaveSetup()), WaveSetup())
    apart = agree._replace(about={**agree.about, "r_hat": [1.0] * 200 + [1.8]})
    assert "1 of 201" in nuts_sentence(wave_nuts.compared(apart, WaveSetup()), WaveSetup())


def widths_of(method, small, large):
    dims = dim_of(5), dim_of(100)
    return [
        {"method": method, "dim": dim, "seed": seed, "width_between": width * (1 + 0.01 * seed)}
        for dim, width in zip(dims, (small, large)) for seed in range(10)
    ]  # fmt: skip


def test_what_narrows_is_judged_by_the_rows():
    paper = widths_of("svgd", 2, 1) + widths_of("annealed", 2, 1) + widths_of("smi", 2, 2.5)
    text = narrowing(paper)
    assert "SVGD 0.50 ± 0.00 (narrows)" in text and "(widens)" in text and "10 seeds" in text and "so it is here" in text
    text = narrowing(widths_of("svgd", 2, 1) + widths_of("smi", 2, 1))
    assert "here SMI's narrows.**" in text
    assert narrowing([]) == "" == narrowing(widths_of("svgd", 2, 1)[:10])


def test_spreads_are_means_and_deviations_over_seeds():
    (mean, sd) = spreads(widths_of("svgd", 2, 1))["svgd"][dim_of(5)]
    values = 2 * (1 + 0.01 * np.arange(10))
    assert mean == pytest.approx(values.mean()) and sd == pytest.approx(values.std(ddof=1))


def test_recovery_points_stand_beside_the_published_ones():
    def row(method, particles, lppd, seed=0):
        lppds = {f"lppd_{region}": lppd for region in ("in", "between", "entire")}
        return {"key": f"{method}{particles}{seed}", "method": method, "particles": particles, "dim": dim_of(5), "seed": seed, **lppds}

    rows = [row("smi", 5, 0.0), row("svgd", 1, -50.0), row("svgd", 2, -30.0), row("svgd", 4, 5.0)]
    cells = table_of(rows, False)
    assert cells.count("<td>4</td>") == 3 and "&gt; 256" in cells and "<td>1</td>" in cells
    assert table_of(rows, True).count("<td>2</td>") == 2  # 60 and 120 points times log 2 make up for 30
    assert "&gt; 2" in table_of(rows[:3], False)


def test_the_shipped_recovery_runs_are_those_of_the_command_and_disagree_with_the_published_table():
    rows = shipped_rows("recovery")
    assert {row["key"] for row in rows} == {key_of(recipe, STOP) for recipe in recovery()} and len(rows) == 100
    ours, inflated = recovery_points(rows)[5], recovery_points(rows, inflated=True)[5]
    assert ours["In"] is None and ours["Between"] > PUBLISHED[5]["Between"] and ours["Entire"] > PUBLISHED[5]["Entire"]
    assert all(inflated[region] < (ours[region] or 512) for region in ours)
    assert apart(rows).startswith("In, h = 5: the best run of SVGD") and not apart(rows[:0])
    sure = [row | {"lppd_in": 100.0} if row["method"] == "svgd" and row["seed"] == 3 else row for row in rows]
    assert not apart(sure)


def test_a_job_stops_with_the_server(monkeypatch):
    job = NutsJob(TINY)
    monkeypatch.setattr(jobs.STOPPING, "is_set", lambda: True)
    job.run()
    assert job.state == "cancelled" and job.done == 0


def test_a_picture_travels_with_its_row_and_method():
    wide = Band(*np.ones((3, 4)))
    frame = pack(1, 25, {"map": Seen(20, wide, wide, np.zeros((2, 4)), None, 0.0, True)})
    assert list(frame[:4]) == [0, 1, 25, 1] and list(frame[4:8]) == [SHOWN.index("map"), 20, 1, 2] and len(frame) == 8 + 20 + 8


def test_a_state_moved_to_another_capacity_keeps_its_particles():
    small, large = (WaveSetup(width=1, knobs={"method.particles": n}) for n in (5, 8))
    one, two = compile(small.spec("svgd")), compile(large.spec("svgd"))
    state = one.advance(one.reset(0, small.knobs_of("svgd")), small.knobs_of("svgd"), 7)
    carried = moved(state, two.reset(0, large.knobs_of("svgd")))
    np.testing.assert_array_equal(np.asarray(carried.particles)[:5], np.asarray(state.particles)[:5])
    back = moved(carried, one.reset(0, small.knobs_of("svgd")))
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

    def until(self, condition, seconds=60):
        end = time.monotonic() + seconds
        while not condition(self.session.picture):
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
    assert session.picture.step == step and session.paused_at == step
    session.step()
    screen.until(lambda p: p.step == step + 1)
    five = session.picture.methods["svgd"].curves
    session.apply(replace(touched, knobs={"method.particles": 8}))  # another program
    screen.until(lambda p: len(p.methods.get("svgd", p.methods["map"]).curves) == 8)
    np.testing.assert_allclose(session.picture.methods["svgd"].curves[:5], five, atol=1e-6)
    session.reset()
    screen.until(lambda p: p.step == 0)


def test_training_pauses_at_the_links_step_and_a_later_method_runs_up_to_it():
    made = Screen(WaveSetup(width=1, methods=("map",), steps=40))
    made.session.wake()
    made.until(lambda p: p and p.step == 40 and made.news.get("playing") is False)
    made.session.apply(TINY)
    made.until(lambda p: "svgd" in p.methods and p.methods["svgd"].step == 40)
    assert made.session.picture.methods["map"].step == 40
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
    screen.until(lambda p: p.setup == TINY and p.step > 5)


def test_a_picture_that_fails_is_told_once_and_tried_again_when_something_changes(screen, caplog, monkeypatch):
    screen.until(lambda p: p and p.step > 5 and set(p.methods) == {"svgd", "map"})  # all is compiled

    def fail(*arguments):
        raise RuntimeError("no such thing")

    monkeypatch.setattr(wave_session, "seen", fail)
    until(lambda: screen.news.get("alarm") == "RuntimeError: no such thing")
    time.sleep(0.5)
    assert caplog.text.count("Traceback") == 1 and screen.news["playing"] is False
    monkeypatch.undo()
    step = screen.session.picture.step
    screen.session.play(True)
    screen.until(lambda p: p.step > step)


def test_a_page_begins_to_train_once_it_is_built_and_before_a_browser_has_loaded_it(monkeypatch):
    woken = []
    monkeypatch.setattr(WaveSession, "wake", lambda session: woken.append(session))
    monkeypatch.setattr(type(pn.state), "onload", lambda state, call: None)  # no browser comes
    document = Document()
    with set_curdoc(document):
        page = Shell({"page": "wave", "width": "5"}).pages["wave"]
        assert not woken
        for next_tick in document.session_callbacks:
            next_tick.callback()
    assert woken == page.sessions


@pytest.fixture
def nuts(monkeypatch):
    """The panel, what it has posted, and the work that it has put on a thread."""
    work, posted = [], []
    monkeypatch.setattr(wave_nuts_panel, "in_background", lambda *what: work.append(what))
    monkeypatch.setattr(wave_nuts, "_made", {})
    return wave_nuts_panel.NutsPanel(lambda known: None, posted.append, posted.append), work


def test_nuts_of_another_visitor_is_taken_and_not_computed_again(nuts, monkeypatch):
    panel, work = nuts
    panel.show([TINY])
    panel.refresh()
    job = panel._make()
    assert panel.job.button.visible and job.setup == TINY
    work.clear()
    wave_nuts._made[TINY.posterior()] = "another visitor's"
    monkeypatch.setattr(wave_nuts, "compared", None)
    panel.refresh()
    assert not panel.job.button.visible and panel._make() is None
    assert [wanted() for *_, wanted in work] == [True, True]  # it is measured, as are the gaps
    monkeypatch.setattr(wave_nuts, "run_nuts", None)
    job.run()
    assert job.state == "done"


def test_measurements_that_nobody_waits_for_any_more_are_left_out(nuts):
    panel, work = nuts
    for probability in (0.5, 0.6, 0.7):
        panel.show([WaveSetup(width=5, probability=probability)])
    assert [wanted() for *_, wanted in work] == [False] * 4 + [True] * 2
    panel.gaps = {41: 1.0}
    assert [wanted() for *_, wanted in work] == [False] * 4 + [True, False]
    panel.close()
    assert not any(wanted() for *_, wanted in work)


def test_the_last_rows_of_a_job_are_in_the_table():
    panel = Recovery(print, print)
    panel.panel.active = [0]
    job = SweepJob([])
    job.state, job.rows = "done", [shipped_rows("recovery")[0] | {"key": "mine"}]
    panel._ended(job)
    assert "1 of them computed on this machine" in panel.origin.object


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
    session._ask()
    work, *first = submitted.pop()
    session._apply(replace(TINY, width=2))
    work(*first)  # nobody wants it now
    assert len(submitted) == 1 and submitted.pop()[2].width == 2  # and what is wanted does not wait for it
    session._apply(TINY)
    assert submitted.pop()[1:] == tuple(first)
    answer(session)
    assert [what[1:] for what in submitted] == [tuple(first)]  # the answer was none; one after the other


def test_programs_that_are_wanted_no_more_are_let_go(submitted):
    session = Screen(WaveSetup(width=1, methods=("map",))).session
    for width in (1, 2):
        session._apply(WaveSetup(width=width, methods=("map",)))
        work, *what = submitted.pop()
        work(*what)
        answer(session)
        assert [key[0].dim for key in session._programs] == [dim_of(width)] and not submitted


def test_what_fails_to_compile_is_no_alarm_where_it_is_wanted_no_more(submitted, monkeypatch):
    made = Screen(TINY)
    made.session._ask()
    work, *first = submitted.pop()
    monkeypatch.setattr(wave_session, "compile", lambda spec, look: made.session._apply(replace(TINY, width=2)) or 1 / 0)
    work(*first)
    answer(made.session)
    assert not made.news["alarm"] and made.news.get("playing") is not False and len(submitted) == 1


def test_a_hidden_page_compiles_nothing_more_and_goes_on_when_it_is_shown(submitted):
    session = Screen(TINY).session
    session._ask()
    work, *first = submitted.pop()
    session._sleep(True)
    work(*first)
    answer(session)
    assert list(session._programs) and not submitted
    session._sleep(False)
    assert submitted[0][1] == "svgd"


def refuse(spec, look):
    raise ValueError("too much") if spec.method == "map" else RuntimeError("no such thing")


def test_a_program_that_is_refused_is_not_asked_for_again_until_the_page_asks_and_the_others_are(submitted, monkeypatch):
    monkeypatch.setattr(wave_session, "compile", refuse)
    made = Screen(TINY)
    made.session._ask()
    for again in (lambda: made.session._apply(TINY), lambda: made.session._play(True), made.session._reset, lambda: None):
        for method in ("map", "svgd"):
            assert made.news["status"].startswith(f"compiling {method.upper()}")
            work, *what = submitted.pop()
            assert what[0] == method and not submitted
            made.news["playing"] = True
            work(*what)
            answer(made.session)
            assert made.news["playing"] is (method == "map")
        assert not submitted and made.news["status"] == "" and made.news["alarm"] == "RuntimeError: no such thing"
        again()


def test_beside_a_refused_program_the_others_train_as_fast_as_ever(monkeypatch):
    wanted = wave_session.compile
    monkeypatch.setattr(wave_session, "compile", lambda spec, look: wanted(spec, look) if spec.method == "map" else refuse(spec, look))
    made = Screen(TINY)
    made.session.wake()
    steps = [0]
    made.until(lambda p: p and (steps.append(p.step) or p.step > 200))
    made.session.close()
    assert max(np.diff(steps)) > 4 and made.news["alarm"] == "RuntimeError: no such thing" and made.news.get("playing") is not False


def test_nobody_looking_means_nothing_is_trained():
    made = Screen(TINY, alive=False)
    made.session.wake()
    made.until(lambda p: p is not None)
    until, before, fits = time.monotonic() + 60, None, {}
    while before != fits or set(fits) != {"svgd", "map"}:  # it comes to rest, however slow the machine is
        assert time.monotonic() < until
        before = fits
        time.sleep(1)
        fits = {name: fit.step for name, fit in made.session._fits.items()}
    assert max(fits.values()) < 20
    made.session.close()


def test_the_table_has_a_row_for_every_method():
    setup = WaveSetup(width=1, methods=("map",))
    stepper, knobs = compile(setup.spec("map")), setup.knobs_of("map")
    found = seen(setup.spec("map"), stepper.reset(0, knobs).particles, setup, "map", 0, 0.0, False)
    text = table([Picture(0, setup, {"map": found})], [None])
    assert text.count("<tr>") == 2 and "MAP" in text and "–" in text
