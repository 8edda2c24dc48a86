"""The session without a browser."""

import re
import threading
import time
from collections import OrderedDict
from concurrent.futures import Future
from dataclasses import replace
from unittest.mock import Mock

import numpy as np
import panel_material_ui as pmui
import pytest
from bokeh.document import Document
from bokeh.models import CategoricalColorMapper, ColumnDataSource
from bokeh.plotting import figure
from checks import PATIENCE, until
from desks import desk  # noqa: F401  (a fixture)
from panel.io.state import set_curdoc

from stein_core import METHODS, TARGETS, Recipe, Spec, collect, compile
from stein_core.contract.spec import target_of
from stein_core.forces.interaction import climb
from stein_core.runs import cache as steppers
from steinlab.pages.collapse.chart import Chart
from steinlab.pages.collapse.grid import Grid
from steinlab.pages.collapse.laws import law_at
from steinlab.pages.collapse.page import Collapse
from steinlab.pages.collapse.series import Series, all_series
from steinlab.pages.location import Location
from steinlab.pages.particles import Particles
from steinlab.pages.wave.setup import WaveSetup, shown
from steinlab.pages.wave.stage import WaveStage
from steinlab.pages.wave.widths import Widths
from steinlab.server.patches import stay_local
from steinlab.stage import programs, session
from steinlab.stage.run import Run
from steinlab.stage.scene import SideBySide
from steinlab.stage.setup import CAPACITY, Setup, all_knobs
from steinlab.ui.colours import SPARE, Look, darken, looks_of, mapper
from steinlab.ui.theme import TOKENS


def test_the_picture_moves_before_its_metrics_are_compiled_and_then_they_come(desk, monkeypatch):
    release = threading.Event()

    def slow(spec, measure=True):
        if measure:
            release.wait(60)
        return compile(spec, measure=measure)

    monkeypatch.setattr(programs, "compile", slow)
    one = desk()
    one.at(20)
    assert not one.session.metrics
    release.set()
    one.until(lambda: one.session.metrics)
    assert np.isfinite(one.session.metrics[0]["sample_variance"])


def test_the_first_pictures_of_all_who_wait_come_before_the_metrics_of_one(desk, monkeypatch):
    one, asked, release = session.Threads(1, "compile-test"), [], threading.Event()
    monkeypatch.setattr(session, "COMPILERS", one)
    monkeypatch.setattr(
        programs, "compile", lambda spec, measure=True: asked.append(measure) or compile(spec, measure=measure)
    )
    one.submit(release.wait)
    desks = [desk(), desk()]
    for each in desks:
        each.until(lambda: "compiling" in each.news.get("status", ""))
    until(lambda: one._work.unfinished_tasks == 3)  # the status comes before the work is handed over
    release.set()
    for each in desks:
        each.until(lambda: each.session._measurable)
    assert [bool(measure) for measure in asked[:4]] == [False, False, True, True]


@pytest.mark.long
def test_while_a_run_compiles_its_contours_and_its_start_are_shown(desk, monkeypatch):
    monkeypatch.setattr(steppers, "_steppers", OrderedDict())  # no other test has compiled what is chosen here
    d = desk(target="ring", methods=("svgd", "smi"))
    d.until(lambda: d.session.frames and d.frame.step > 1)
    release, compiled = threading.Event(), programs.compile
    monkeypatch.setattr(
        programs, "compile", lambda *arguments, **options: release.wait(PATIENCE) and compiled(*arguments, **options)
    )
    before = d.news["starting"]
    d.session.choose(target="banana", knobs={"method.particles": 7, "init.spread": 0.5})
    d.until(lambda: d.screen.frames[-1][2] > before)  # the newest run
    (_, panels, run, count, step), scene = d.screen.frames[-1][:5], d.news["scene"]
    assert (panels, run, count, step) == (2, d.news["starting"], 7, 0)
    assert scene == d.session._view.scene([Spec("banana", method=name, capacity=32) for name in ("svgd", "smi")])
    assert d.session.frames == [] and d.news["status"].startswith("compiling SVGD")
    start = d.screen.frames[-1]
    release.set()
    d.until(lambda: d.session.frames)
    metrics = int(start[7])
    rows = start[9 + metrics :][: 7 * 9].reshape(7, 9)
    first = collect(Recipe(Spec("banana", method="svgd", capacity=32), d.session.shown()[0].knobs), 0)[0]
    np.testing.assert_allclose(rows[:, :2], first.locations, rtol=1e-6)


def test_a_knob_of_the_target_draws_its_density_again(desk):
    d = desk(target="unbalanced", methods=("svgd",))
    d.until(lambda: d.session.frames and "scene" in d.news)
    spec, before = d.session.shown()[0].spec("svgd", 32), d.news["scene"]
    first, last = (d.session._view.scene([spec], {"target.weight": weight}) for weight in (0.3, 0.2))
    assert before != first != last != before
    for weight in (0.3, 0.2):
        d.session.turn("target.weight", weight)
    d.until(lambda: d.news["scene"] == last)
    begun = d.news["starting"]
    d.session.reset()  # the knob stays
    d.until(lambda: d.news["starting"] > begun and d.session.frames and d.news["scene"] == last)


def test_nothing_is_compiled_for_a_page_that_is_closed(desk, monkeypatch):
    one, asked, release = session.Threads(1, "compile-test"), [], threading.Event()
    monkeypatch.setattr(session, "COMPILERS", one)
    monkeypatch.setattr(
        programs, "compile", lambda spec, measure=True: asked.append(spec) or compile(spec, measure=measure)
    )
    one.submit(release.wait)
    closed = desk()
    closed.until(lambda: "compiling" in closed.news.get("status", ""))
    closed.session.close()
    release.set()
    closed.until(lambda: not one.busy)
    assert not asked


def test_a_run_that_cannot_start_says_why_and_nothing_else(desk, monkeypatch, caplog):
    monkeypatch.setattr(session, "Run", lambda *arguments: METHODS["none"])
    one = desk()
    one.until(lambda: one.news.get("alarm"))
    time.sleep(1)
    assert one.news["alarm"].startswith("unknown method 'none'") and "Traceback" not in caplog.text


def test_plays_from_the_start_and_pauses(desk):
    d = desk()
    d.at(300)
    d.session.toggle()
    d.until(lambda: d.news["playing"] is False)
    time.sleep(0.2)
    at = d.frame.step
    time.sleep(0.2)
    assert d.frame.step == at
    d.until(lambda: d.news["step"] == at)  # the reading has heard of the last steps


def test_a_link_with_steps_stops_there_and_equals_the_recipe(desk):
    d = desk(steps=17, knobs={"method.alpha": 3.0}, seed=5)
    d.at(17)
    d.until(lambda: d.news.get("status") == "")
    time.sleep(0.2)
    assert d.frame.step == 17
    setup, capacity = d.session.shown()
    again = collect(setup.recipe("svgd", capacity), steps=17)[-1]
    np.testing.assert_array_equal(again.particles, d.frame.particles)


def test_the_steps_of_a_frame_at_most_double(monkeypatch, desk):
    """The first may have cost nothing: a wide program has taken it when it looked."""
    taken, advance = [], Run.advance
    monkeypatch.setattr(Run, "advance", lambda self, steps: taken.append(steps) or advance(self, steps))
    desk(steps=300).at(300)
    assert sum(taken) == 300 and all(after <= 2 * before for before, after in zip(taken, taken[1:]))


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


@pytest.mark.long
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


def test_a_refused_choice_is_said_and_what_runs_is_told_again(desk):
    d = desk(target="ring")
    d.at(2)
    del d.news["setup"]
    d.session.choose(dim=7)
    d.until(lambda: "dim = 7" in d.news["alarm"])
    d.until(lambda: "setup" in d.news)
    assert d.news["setup"].dim is None and d.frame.locations.shape == (20, 2)


def test_a_method_of_one_particle_goes_back(desk):
    d = desk(methods=("map",))
    d.at(5)
    d.session.play(False)
    d.until(lambda: not d.news["playing"])
    step = d.frame.step
    d.session.back()
    d.until(lambda: d.frame.step < step)


def test_asleep_it_neither_steps_nor_looks_and_awake_it_goes_on(desk):
    d = desk()
    d.at(3)
    d.session.sleep()

    def still():  # the worker may be within a frame when it hears of it
        before = d.frame.step, len(d.screen.frames)
        time.sleep(0.3)
        return before == (d.frame.step, len(d.screen.frames))

    d.until(still)
    at = d.frame.step
    d.session.wake()
    d.at(at + 3)
    assert d.news["playing"] is True


@pytest.mark.long
def test_a_guide_for_the_methods_that_allow_it(desk):
    d = desk(methods=("svgd", "smi"), guide="point")
    d.at(2)
    assert (d.session.frames[1].scales == 0).all()
    setup, _ = d.session.shown()
    assert "guide='point'" in setup.recipe("smi", 32).to_python(1)
    assert Setup.from_query(dict([part.split("=") for part in setup.to_query().split("&")]))[0] == setup


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
    assert d.news["setup"].target == "ring" and d.news["scene"]["backgrounds"]


def test_what_stood_still_goes_at_once_when_another_target_or_method_is_chosen(desk, monkeypatch):
    d = desk(methods=("svgd",))
    d.until(lambda: d.news.get("step", 0) > 0)
    run = d.news["starting"]
    d.session.reset()
    d.until(lambda: d.news["starting"] > run and d.session.frames)
    assert d.news["scene"]["cards"]  # the same picture
    drawn = Future()
    monkeypatch.setattr(session.SCENES, "submit", lambda *work: drawn)  # its contours do not come
    for choice in ({"target": "banana"}, {"methods": ("svgd", "smi")}):
        monkeypatch.setitem(d.news, "scene", {"cards": ["old"]})
        d.session.choose(**choice)
        d.until(lambda: d.news["scene"] == {})
        d.until(lambda: re.fullmatch(r"compiling .*, about [0-9]+ s, once", d.news["status"]))
    drawn.set_result(None)


@pytest.mark.long
def test_while_another_choice_compiles_no_step_of_the_last_run_is_told(desk, monkeypatch):
    d = desk()
    d.until(lambda: d.news.get("step", 0) > 0)
    monkeypatch.setattr(session.COMPILERS, "submit", lambda *work: None)
    d.session.choose(target="banana")
    d.until(lambda: d.news["setup"].target == "banana" and "compiling" in d.news["status"])
    assert d.news["step"] == 0


def test_a_link_that_grows_on_the_way_starts_on_a_program_that_is_large_enough(desk):
    d = desk(steps=8, changes=((2, "method.particles", 100), (5, "add", (1.0, 1.0))))
    d.until(lambda: d.session.frames and len(d.frame.particles) == 101)
    assert not d.news["alarm"]


@pytest.mark.long
def test_a_slider_back_below_the_first_program_while_it_grows(desk):
    d = desk(target="student", steps=3)
    d.at(3)
    d.session.turn("method.particles", 50)
    d.session.turn("method.particles", 10)
    d.until(lambda: len(d.frame.particles) == 10)
    time.sleep(1.0)
    assert len(d.frame.particles) == 10


@pytest.mark.long
def test_every_knob_has_a_widget_and_every_target_a_scene():
    from steinlab.stage.scene import SideBySide
    from steinlab.ui.knob_widgets import set_value, widget

    for name, knob in all_knobs().items():
        heard = []
        made = widget(knob, lambda n, v: heard.append((n, v)))
        offered = list(knob.choices) if knob.choices else [min(max(knob.low, 3), knob.high), knob.low]
        other = next(v for v in map(knob.check, reversed(offered)) if v != knob.default)
        set_value(made, knob, other)
        assert made.value == other and heard[-1] == (name, other)
    for target in (entry.name for entry in TARGETS.entries() if entry.facts.listed and entry.facts.data is None):
        still = SideBySide().scene([Setup(target=target).spec("svgd", 8)])
        assert [card["title"] for card in still["cards"]] == [METHODS["svgd"].label]
        (background,) = still["backgrounds"]
        assert background["curve"] or (len(background["contours"]) >= 6 and background["image"])


def test_a_scene_passes_on_what_is_to_know_about_a_models_start():
    quiet = Spec("gaussian", method="svgd")
    plain = target_of(quiet)
    warned = Spec(replace(plain, start=replace(plain.start, note="Look here.")), method="svgd")
    assert [SideBySide(()).scene([spec])["note"] for spec in (quiet, warned)] == ["", "Look here."]


def test_every_method_has_its_own_look_on_every_page():
    assert len(set(looks_of(list(METHODS)))) == len(METHODS) == len({METHODS[name].facts.colour for name in METHODS})
    own = {name: Look(*METHODS[name].facts.colour, METHODS[name].facts.marker) for name in METHODS}
    for names in (["smi"], ["vi", "map"], ["annealed", "smi", "vi"], list(METHODS)):
        assert looks_of(names) == [own[name] for name in names]
    first, second, third = looks_of(["svgd", "svgd", "smi"])
    assert first == own["svgd"] and third == own["smi"]
    assert second.colour not in {look.colour for look in own.values()}
    assert len(set(looks_of(["map"] * 9))) == 9 and len(looks_of(["map"] * 200)) == 200
    cards = SideBySide(()).scene([Spec("gaussian", method=method) for method in ("smi", "svgd")])["cards"]
    assert [tuple(card["accent"]) for card in cards] == [METHODS[name].facts.colour for name in ("smi", "svgd")]
    series = {name: Series(name, None, 20, None, None, None, None) for name in ("vi", "smi", "svgd")}
    chart, widths, wave = Chart(True, print), Widths(), WaveStage(print)
    chart.take(Grid(), tuple(series.values()), "marginal_variance", "dim")
    widths.show({name: {41: (1.0, 0.1)} for name in series}, {}, {})
    drawn = dict(zip(widths.dots.data["label"], zip(widths.dots.data["colour"], widths.dots.data["marker"])))
    wave.show([WaveSetup(methods=tuple(series))])
    panels = {panel["name"]: panel for panel in wave.scene["rows"][0]["panels"]}
    for name in series:
        assert chart.looks[series[name]] == own[name] and tuple(panels[name]["colours"]) == own[name][:2]
        assert drawn[METHODS[name].label] == (own[name].colour, own[name].marker)


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]
    return np.dot(linear, (0.2126, 0.7152, 0.0722))


def contrast(one, other):
    """The ratio of WCAG 2.2, which asks 4.5 of text and 3 of what is drawn."""
    high, low = sorted((luminance(one), luminance(other)))[::-1]
    return (high + 0.05) / (low + 0.05)


def test_colours_can_be_read_on_both_themes():
    assert contrast("#000000", "#ffffff") == pytest.approx(21) and contrast("#767676", "#ffffff") > 4.5
    for i, (theme, tokens) in enumerate(TOKENS.items()):
        for ground in ("paper", "surface"):
            for name in ("ink", "muted", "attract", "repulse"):
                assert contrast(tokens[name], tokens[ground]) >= 4.5, (theme, name)
            for method in METHODS:
                assert contrast(METHODS[method].facts.colour[i], tokens[ground]) >= 4.5, (theme, method)
        assert contrast(tokens["edge"], tokens["paper"]) >= 3
        for look in SPARE:
            assert contrast(look[i], tokens["paper"]) >= 3


def test_a_figure_takes_the_colours_of_its_theme():
    made, (svgd,), light, dark = figure(), looks_of(["svgd"]), TOKENS["light"], TOKENS["dark"]
    plain = made.line([1, 2], [1, 2], line_color=light["repulse"])
    source = ColumnDataSource({"x": [1], "y": [1], "c": [svgd.colour]})
    made.scatter("x", "y", source=source, fill_color={"field": "c", "transform": mapper()})
    there = made.select_one({"type": CategoricalColorMapper})
    for on, colours, own in ((True, dark, svgd.dark), (False, light, svgd.colour)):
        darken(made, on)
        assert plain.glyph.line_color == colours["repulse"]
        assert there.palette[there.factors.index(svgd.colour)] == own


def test_a_new_method_is_on_the_pages_with_no_other_edit():

    def mine(problem):
        "Every point climbs alone."
        return climb(problem, joint=True)

    METHODS.register(
        "mine",
        label="Mine",
        reference="a test",
        guides=("point",),
        kernel=False,
        law=lambda d, n, knobs: d / n,
        colour=("#123456", "#abcdef"),
        marker="star",
    )(mine)
    METHODS.register("plain", label="Plain", reference="a test", guides=("point",), kernel=False)(METHODS["map"].make)
    try:
        grid = Grid(("svgd", "mine", "plain"), (40,))
        series = [one for one in all_series(grid, "dim") if one.method == "mine"]
        assert [law_at(one, "sample_variance", 40, 20) for one in series] == [2.0]
        svgd, mine, plain = looks_of(["svgd", "mine", "plain"])
        assert mine == ("#123456", "#abcdef", "star") and plain.colour not in (svgd.colour, mine.colour)
        assert shown()[-1] == "mine" and WaveSetup(methods=("mine",)).methods == ("mine",)
    finally:
        del METHODS._entries["mine"], METHODS._entries["plain"]


def test_a_target_that_is_not_listed_is_in_no_menu():
    facts = {"label": "Mine", "reference": "a notebook", "dims": (2, 4), "default_dim": 2}
    TARGETS.register("mine", listed=False, **facts)(TARGETS["gaussian"].make)
    try:
        shell = Mock(short=False, **{"frame.dark_theme": False})
        with set_curdoc(Document()):
            live, collapse = [page(shell, {}) for page in (Particles, Location)], Collapse(shell, {})
        menus = [page.choices.target.options for page in live] + [collapse.settings.inputs["target"].options]
        assert "mine" in TARGETS and all("gaussian" in menu.values() for menu in menus)
        assert not any("mine" in menu.values() for menu in menus)
    finally:
        del TARGETS._entries["mine"]


def test_a_page_built_without_a_request_asks_no_cdn():
    """So it is after a session has expired: the browser's websocket alone builds it anew."""
    found = {}
    for local in (False, True):
        document = Document()
        with set_curdoc(document):
            if local:
                stay_local(document)
            pmui.Page(main=[pmui.Button(label="a"), pmui.Select(options=["b"])]).server_doc(document)
        found[local] = str(document.to_json())
    cdn = "cdn.holoviz.org/panel/"  # (panel-material-ui looks at the session, which there is none of here)
    assert cdn in found[False]  # else Panel needs no help any more
    assert cdn not in found[True]
