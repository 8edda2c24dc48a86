"""Many particles on a stage: their density in a frame of few bytes, what they cost, and programs that come and go."""

import numpy as np
import pytest
from desks import desk  # noqa: F401  (a fixture)

from stein_core import Spec
from steinlab.pages.particles import Particles
from steinlab.stage import costs
from steinlab.stage.choices import Many
from steinlab.stage.crowd import COLUMNS, DRAWN, LINES, MANY, density
from steinlab.stage.programs import Programs
from steinlab.stage.recorder import encoded, parts_of
from steinlab.stage.run import count_of
from steinlab.stage.scene import SideBySide
from steinlab.stage.setup import CAPACITY, MOST, SIZES, CrowdSetup, Setup, room_for
from steinlab.stage.wire import Panel, pack


def cells(block):
    """The counts of a density, to rounding, line by line."""
    length, _, peak, columns, lines = (int(v) for v in block[:5])
    words = block[9:length].astype(int)
    levels = np.stack([words % 256, words // 256 % 256, words // 65536], axis=1).ravel()[: columns * lines]
    return peak * (levels.reshape(lines, columns) / 255) ** 2


def test_a_density_counts_the_particles_of_each_cell():
    x = np.float32(np.random.default_rng(0).normal([3, -1], [2, 0.5], (20_000, 2)))
    block = density(x)
    length, m, peak, columns, lines, x0, y0, dx, dy = block[:9]
    assert (length, m) == (len(block), 20_000) and columns <= COLUMNS and lines <= LINES
    edges = x0 + dx * np.arange(columns + 1), y0 + dy * np.arange(lines + 1)
    exact = np.histogram2d(x[:, 0], x[:, 1], edges)[0].T
    assert exact.sum() > 19_990 and exact.max() == peak
    # A level is rounded up by less than 1 of 255: its square by less than 2 in 255 of the largest.
    assert (cells(block) >= exact * (1 - 1e-6)).all() and (cells(block) - exact <= 2 / 255 * peak).all()
    np.testing.assert_array_equal(cells(block) > 0, exact > 0)


def test_the_grid_stands_still_while_particles_move_a_little():
    x = np.random.default_rng(0).normal(size=(5000, 2))
    before, after = density(x), density(x * 1.01 + 0.01)
    np.testing.assert_array_equal(before[7:9], after[7:9])
    steps = (after[5:7] - before[5:7]) / before[7:9]
    np.testing.assert_allclose(steps, np.round(steps), atol=1e-4)


def test_one_far_away_and_what_is_not_finite_leave_the_grid_as_it_was():
    x = np.random.default_rng(0).normal(size=(5000, 2))
    width = density(x)[7]
    x[7], x[8] = 1e6, np.nan
    block = density(x)
    assert block[1] == 5000 and block[7] <= 2 * width and cells(block).sum() > 4990
    assert cells(density(np.full((3000, 2), 2.5))).tolist() == [[3000]]
    line = density(np.column_stack([x[100:, 0], np.zeros(4900)]))
    assert line[4] == 1 and line[3] > 50


@pytest.mark.parametrize("count", [MANY + 1, 300_000])
def test_a_frame_of_many_has_few_bytes_and_the_first_ones(count):
    rows = np.random.default_rng(0).normal(size=(count, 9))
    few = Panel(3, [1.0, 2.0], rows[:5], True, fixed=np.ones((2, 2)))
    frame = pack([few, Panel(3, [0.5], rows, True, noisy=True), few])
    assert frame.nbytes < 50_000
    parts = list(parts_of(frame))
    assert [len(drawn) for _, drawn in parts] == [5, DRAWN, 5]
    np.testing.assert_array_equal(parts[1][1], np.float32(rows[:DRAWN]))
    np.testing.assert_array_equal(parts[2][1], np.float32(rows[:5]))
    head = parts[1][0]
    assert head[2] == 1 + 2 + 4 and head[7 + 1] == count and head[7] == len(head) - 7
    assert len(encoded([frame, frame])["scales"]) == 3


def test_up_to_two_thousand_all_are_drawn():
    rows = np.zeros((MANY, 9))
    (head, drawn), *_ = parts_of(pack([Panel(0, [], rows, False)]))
    assert len(drawn) == MANY and head[2] == 0


def test_what_many_cost_follows_from_one_measurement(monkeypatch):
    monkeypatch.setattr(costs, "_taken", costs._taken.__class__())
    monkeypatch.setattr(costs, "blocks", lambda: 0.5)
    setup = CrowdSetup("gaussian", ("svgd",))
    assert costs.offers(setup) == []  # nothing is known
    costs.note(setup.spec("svgd", CAPACITY), 1e-3)
    by_size = {cost.particles: cost for cost in costs.offers(setup)}
    assert by_size[1000].seconds == pytest.approx(1e-3 * (1000 / 256) ** 2)
    assert by_size[10_000].seconds == pytest.approx(0.5e-3 * (10_000 / 256) ** 2)
    assert max(by_size) == 10_000  # 20,000 would take three seconds
    assert str(by_size[10_000]).startswith("10,000 particles: a step takes about 0.76 s here, ")
    costs.note(setup.spec("svgd", 5000), 0.01)  # what was seen of a larger one counts
    costs.note(setup.spec("svgd", CAPACITY), 1.0)
    assert costs.seconds_of(setup.spec("svgd", 10_000)) == pytest.approx(0.04)
    costs.note(Spec("gaussian", 2, "langevin"), 1e-3)  # which moves alone
    assert costs.seconds_of(Spec("gaussian", 2, "langevin", capacity=20_000)) == pytest.approx(20 / 256)
    costs.note(Spec("gaussian", 2, "newton"), 1e-5)
    assert (
        max(cost.particles for cost in costs.offers(CrowdSetup("gaussian", ("newton",)))) == 2000
    )  # it forms all pairs
    monkeypatch.setenv("STEINLAB_MEMORY_GB", "0.01")
    assert [cost.particles for cost in costs.offers(setup)] == [500]


def test_a_run_whose_step_takes_long_is_refused_with_its_time(monkeypatch):
    monkeypatch.setattr(costs, "_taken", costs._taken.__class__())
    monkeypatch.setattr(costs, "blocks", lambda: 1.0)
    spec = Spec("gaussian", 2, "svgd", capacity=1_000_000)
    costs.note(spec.carried_to(capacity=CAPACITY), 1e-3)
    with pytest.raises(ValueError, match=r"particles = 1000000: a step would take about 15,000 s.*10 s, about 30,000"):
        costs.check_patience([spec])
    costs.check_patience([spec.carried_to(capacity=5000)])


def test_sizes_and_the_pages_that_offer_them():
    wanted = {1: 256, CAPACITY: 256, CAPACITY + 1: 500, 501: 1000, 20_000: 20_000, MOST + 1: MOST}
    assert {n: room_for(n) for n in wanted} == wanted
    many = CrowdSetup("gaussian", ("smi", "svgd"), knobs={"method.particles": 700})
    assert many.recipe("svgd", room_for(many.particles)).spec.capacity == 1000
    link = {"target": "gaussian", "methods": "svgd", "method.particles": "700"}
    assert Setup.from_query(link, Particles.plain)[0].particles == 700
    assert "allowed: 1 to 256" in Setup.from_query(link)[1][0]  # of another page
    assert SIZES[0] > CAPACITY and all(size % 2 == 0 for size in SIZES)


def test_the_slider_of_many_says_what_they_cost():
    turned = []
    made = Many(lambda name, value: turned.append((name, value)))
    assert not made.slider.visible
    made.offer([costs.Cost(500, 0.021, 8_100_000), costs.Cost(1000, 0.085, 32_000_000)])
    assert made.slider.visible and list(made.slider.options) == ["off", "500", "1,000"]
    made.slider.value = 1000
    made.show(1000)
    assert turned == [("method.particles", 1000)]
    assert made.text.object == "1,000 particles: a step takes about 0.085 s here, 32 MB" and made.text.visible
    made.show(30)
    assert made.slider.value == CAPACITY and not made.text.visible
    made.show(7000)  # of a link
    assert list(made.slider.options) == ["off", "500", "1,000", "7,000"] and made.slider.value == 7000


@pytest.mark.long
def test_a_run_grows_beyond_its_programs_and_comes_back(desk, monkeypatch):  # noqa: F811
    monkeypatch.setattr(costs, "blocks", lambda: 1.0)
    d = desk(MOST, SideBySide(["force"]), steps=3)
    d.at(3)
    d.until(lambda: "many" in d.news)
    assert d.news["many"][0].particles == 500
    small = d.frame.particles
    for count in (300, 450):  # a slider moves on
        d.session.turn("method.particles", count)
    d.until(lambda: len(d.frame.particles) == 450)
    assert d.session._run.capacity == 500 and d.frame.step == 3
    np.testing.assert_allclose(d.frame.particles[:20], small, rtol=1e-5)
    d.session.step()
    d.at(4)
    d.session.turn("method.particles", 30)
    d.until(lambda: d.session._run.capacity == CAPACITY and len(d.frame.particles) == 30)
    d.session.step()
    d.at(5)
    setup, capacity = d.session.shown()
    assert capacity == 500 and setup.recipe("svgd", capacity).knobs == {}  # its changes have them
    position = next(i for i, entry in enumerate(d.session._run.history) if count_of(entry.knobs) == 450)
    d.session.rewind(position)
    d.until(lambda: len(d.frame.particles) == 450)
    assert d.session._run.capacity == 500 and not d.news["alarm"]
    d.session.turn("method.particles", MOST + 1)
    d.until(lambda: f"1 to {MOST}" in d.news["alarm"])


def test_beyond_four_thousand_the_dearest_diagnostic_is_not_measured():
    setup = CrowdSetup("gaussian", ("svgd",))
    for capacity, names in ((4096, ("force", "ksd")), (5000, ("force",))):
        assert Programs(setup, capacity, ("force", "ksd")).affordable == names
