"""Sums over near particles on a stage: the same run as without a page, its link, what is refused, and a million."""

import math
import threading
from dataclasses import replace
from unittest.mock import Mock

import jax
import numpy as np
import pytest
from bokeh.document import Document
from desks import desk  # noqa: F401  (a fixture)
from panel.io.state import set_curdoc

from stein_core import Stepper, collect
from stein_core.runs.nearness import share_at_start
from steinlab.contents import PAGES
from steinlab.pages import particles, start
from steinlab.pages.particles import Particles
from steinlab.stage import costs, million, programs
from steinlab.stage.near_sums import NearSums, bound
from steinlab.stage.programs import Programs
from steinlab.stage.recorder import run_of
from steinlab.stage.scene import SideBySide
from steinlab.stage.setup import CAPACITY, MOST, SIZES, CrowdSetup, Setup

KNOBS = {"method.particles": 5000, "bandwidth.factor": 0.1}
MANY = CrowdSetup("gaussian", ("svgd",), near=1e-3, knobs=KNOBS)


@pytest.mark.long
def test_a_session_with_near_sums_is_the_run_without_a_page(desk, monkeypatch):  # noqa: F811
    asked, shares, (compiled, sharing) = [], [], (programs.compile, costs.share_at_start)

    def noted(spec, **how):
        asked.append((spec.capacity, how.get("near"), threading.current_thread().name))
        return compiled(spec, **how)

    monkeypatch.setattr(programs, "compile", noted)
    monkeypatch.setattr(
        costs, "share_at_start", lambda stepper: shares.append(threading.current_thread().name) or sharing(stepper)
    )
    costs._sharing.cache_clear()
    monkeypatch.setattr(costs, "PATIENCE", 1e9)
    d = desk(MOST, SideBySide(["force"]), near=1e-3, knobs=KNOBS, steps=2)
    d.at(2)
    setup, capacity = d.session.shown()
    near = collect(setup.recipe("svgd", capacity), 2, measure=False, near=1e-3)[-1]
    np.testing.assert_array_equal(d.frame.particles, near.particles)
    exact = collect(setup.recipe("svgd", capacity), 2, measure=False)[-1]
    apart = np.abs(near.particles - exact.particles)
    assert 0 < np.quantile(apart, 0.99) < 0.01  # Adam's first steps have the sign only, where a force is nearly 0
    d.until(lambda: d.session._measurable)
    # A slider compiles nothing; another kernel, or one too wide, is refused and changes nothing.
    before, looks = len(asked), d.session._run.steppers[0]._look
    size = looks._cache_size()
    d.session.turn("bandwidth.factor", 0.2)
    d.session.step()
    d.at(3)
    assert len(asked) == before and looks._cache_size() == size
    d.session.turn("kernel.name", "imq")
    d.until(lambda: "kernel.name = 'imq' does not vanish far away" in d.news["alarm"])
    monkeypatch.setattr(costs, "PATIENCE", 1e-9)
    d.session.turn("bandwidth.factor", 3.0)
    d.until(lambda: "a smaller bandwidth or fewer" in d.news["alarm"])
    assert d.session._run.knobs["bandwidth.factor"] == 0.2 and "kernel.name" not in d.session._run.knobs
    # Fewer particles, and the choice itself, are programs of their own, compiled on other threads.
    d.session.turn("method.particles", 30)
    d.until(lambda: d.session._run.capacity == CAPACITY and d.session._run.steppers[0].near is None)
    d.session.choose(near=None)
    d.until(lambda: d.news["setup"].near is None)
    assert {near for _, near, _ in asked} == {1e-3, None}
    assert all((near is not None) == (capacity > 4096) for capacity, near, _ in asked)
    assert shares and all(name.startswith("compile") for name in [*shares, *(name for *_, name in asked)])


def test_a_link_that_widens_near_sums_on_its_way_is_refused_before_it_is_compiled(monkeypatch):
    way = Programs(MANY, 16384)
    changes = ((1, "method.alpha", 0.5), (2, "bandwidth.factor", 3.0), (3, "bandwidth.factor", 0.1))
    asked = []
    monkeypatch.setattr(programs, "compile", lambda *arguments, **how: pytest.fail("is compiled"))
    monkeypatch.setattr(costs, "learn", lambda spec: None)
    monkeypatch.setattr(costs, "_taken", {replace(s, capacity=CAPACITY): (CAPACITY, 0.1) for s in way.specs})
    monkeypatch.setattr(costs, "near_pair", lambda: 1e-7)
    monkeypatch.setattr(costs, "share_of", lambda spec, near, knobs: asked.append(knobs) or knobs["bandwidth.factor"])
    assert costs.cost_of(way.specs, way.near, MANY.knobs).seconds < costs.PATIENCE  # its start is allowed
    asked.clear()
    way = Programs(replace(MANY, changes=changes), 16384)
    with pytest.raises(ValueError, match="a smaller bandwidth or fewer"):
        way.compile(lambda: True)
    assert [knobs["bandwidth.factor"] for knobs in asked] == [0.1, 3.0]


def test_a_link_keeps_near_sums():
    query = MANY.to_query(Particles.plain)
    assert "near=0.001" in query and "near" not in CrowdSetup("gaussian").to_query()
    fields = dict(part.split("=") for part in query.split("&"))
    assert Setup.from_query(fields, Particles.plain) == (MANY, [])
    assert MANY.near_of(5000) == 1e-3 and MANY.near_of(4096) is None


@pytest.mark.parametrize("fields, text", [
    ({"near": "x"}, "near = 'x'; allowed: 1e-07 to 0.1."),
    ({"near": "0.5"}, "near = 0.5 is out of range; allowed: 1e-07 to 0.1"),
    ({"near": "nan"}, "near = nan is out of range"),
    ({"near": "0.001", "methods": "svgd,smi"}, "near = 0.001 with method 'smi', guide 'normal'; allowed: svgd"),
    ({"near": "0.001", "methods": "langevin"}, "method 'langevin'"),
    ({"near": "0.001", "dim": "11"}, "11 coordinates of a particle; allowed: 1 to 10"),
    ({"near": "0.001", "kernel.name": "imq"}, "kernel.name = 'imq' does not vanish far away"),
    ({"near": "0.001", "changes": "3~kernel.name~imq"}, "kernel.name = 'imq' does not vanish far away"),
])  # fmt: skip
def test_what_near_sums_cannot_do_is_refused_by_name(fields, text):
    setup, problems = Setup.from_query({"target": "gaussian", "methods": "svgd"} | fields, Particles.plain)
    assert len(problems) == 1 and text in problems[0]
    assert setup.target == "gaussian" and (setup.near is None or "near" not in problems[0][:4])


def test_a_page_without_many_particles_has_no_near_sums():
    _, problems = Setup.from_query({"target": "gaussian", "methods": "svgd", "near": "0.001"})
    assert problems == [f"near = 0.001 with capacity = {CAPACITY}, where sums are quick; allowed: beyond 4096."]


def test_the_choice_shows_where_it_can_be_made_and_says_the_bound():
    chosen = []
    made = NearSums(lambda **fields: chosen.append(fields))
    assert not made.select.visible
    for setup, shown in [
        (CrowdSetup("gaussian", ("svgd",), knobs=KNOBS), True),
        (CrowdSetup("gaussian", ("svgd",)), False),  # few
        (CrowdSetup("gaussian", ("svgd", "smi"), knobs=KNOBS), False),
        (CrowdSetup("gaussian", ("svgd",), dim=11, knobs=KNOBS), False),
        (CrowdSetup("gaussian", ("svgd",), knobs={**KNOBS, "kernel.name": "imq"}), False),
        (MANY, True),
    ]:
        made.show(setup)
        assert (made.select.visible, made.text.visible) == (shown, setup.near is not None), setup
    assert made.select.value == 1e-3 and not chosen[1:]
    made.turn({"method.particles": 30})
    assert made.select.visible  # it can be switched off
    chosen.clear()
    made.select.value = 0.0
    assert chosen == [{"near": None}]
    made.show(CrowdSetup("gaussian", ("svgd",), near=0.02, knobs=KNOBS))  # of a link
    assert made.select.value == 0.02 and "at most 0.02 of the mean slope" in made.text.object
    made.show(CrowdSetup("gaussian", ("svgd",), knobs=KNOBS))
    made.turn({"kernel.name": "imq"})
    assert not made.select.visible
    assert f"the repulsion by at most {1e-3 * math.sqrt(2 * math.log(1e3)):.2g} divided" in bound(1e-3)


def test_a_script_and_a_recording_have_near_sums_too(monkeypatch):
    script = MANY.recipe("svgd", 5000).to_python(3, near=1e-3)
    compile(script, "script", "exec")
    assert "steps=3, measure=without_pairs(), near=0.001)" in script
    assert "near" not in MANY.recipe("svgd", 5000).to_python(3)
    assert run_of(MANY, SideBySide(["force"])).steppers[0].near == 1e-3


def test_what_a_step_of_near_sums_takes_follows_from_its_pairs(monkeypatch):
    monkeypatch.setattr(costs, "_taken", costs._taken.__class__())
    monkeypatch.setattr(costs, "near_pair", lambda: 2e-8)
    spec = MANY.spec("svgd", 5000)
    costs.note(spec.carried_to(capacity=CAPACITY), 1e-3)
    share = share_at_start(Stepper(spec, near=1e-3))(0, KNOBS)
    assert 0.02 < share < 0.5
    assert costs.cost_of([spec], 1e-3, KNOBS).seconds == pytest.approx(2e-8 * share * 5000**2)
    monkeypatch.setattr(costs, "near_pair", lambda: 1e-12)  # the target is dear
    assert costs.cost_of([spec], 1e-3, KNOBS).seconds == pytest.approx(1e-3 * 5000 / CAPACITY)
    with pytest.raises(ValueError, match="allowed: 10 s, a smaller bandwidth or fewer"):
        monkeypatch.setattr(costs, "near_pair", lambda: 1e-3)
        costs.check_patience([spec], 1e-3, KNOBS)


def test_a_million_is_offered_on_a_gpu_and_where_the_server_says_so(monkeypatch):
    assert million.million({}) is None
    made = million.million({"STEINLAB_CROWD": str(MOST)})
    assert made.particles == min(10**6, SIZES[-1]) and made.near and made.spec("svgd", MOST).dim == 2
    assert Setup.from_query(dict(p.split("=") for p in made.to_query().split("&")), Particles.plain) == (made, [])
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert million.million({}) == made
    monkeypatch.setattr(million, "SIZES", (500, 1000))
    assert million.million({"STEINLAB_CROWD": "1000"}) is None
    monkeypatch.setattr(million, "SIZES", (1000, 200_000))
    assert million.title(million.million({})) == "200,000 particles"


def test_start_has_the_million_where_it_is_offered(monkeypatch):
    monkeypatch.setattr(start, "million", lambda: None)
    assert "A million particles" not in start.front(PAGES)
    monkeypatch.setattr(start, "million", lambda: million.million({"STEINLAB_CROWD": str(MOST)}))
    assert "A million particles" in start.front(PAGES)


@pytest.mark.parametrize("offered", [True, False])
def test_page_particles_has_a_button_for_the_million_where_it_is_offered(offered, monkeypatch):
    made = million.million({"STEINLAB_CROWD": str(MOST)}) if offered else None
    monkeypatch.setattr(particles, "million", lambda: made)
    shell = Mock()
    shell.frame.dark_theme = False
    with set_curdoc(Document()):
        page = Particles(shell, {"target": "gaussian"})
        buttons = [one for one in page.exports.objects if one.label == "A million particles"]
        page.session.close()
    assert len(buttons) == offered
    if offered:
        buttons[0].clicks += 1
        (link,) = shell.go.call_args.args
        fields = dict(part.split("=") for part in link.removeprefix("?page=particles&").split("&"))
        assert Setup.from_query(fields, Particles.plain) == (made, [])
