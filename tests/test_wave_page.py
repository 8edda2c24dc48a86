"""The page "1-D wave" without a browser: data from text, links, read-outs, NUTS references, and what is computed in
line."""

from urllib.parse import parse_qsl

import numpy as np
import pytest

from stein_core import compile
from stein_core.base.bands import Band
from stein_core.papers.recovery import PUBLISHED, recovery, recovery_points
from stein_core.papers.wave_nuts import Reference
from stein_core.sweep.keys import key_of
from stein_core.targets.wave import GRID, dim_of
from steinlab.pages.wave import nuts as wave_nuts, nuts_panel as wave_nuts_panel
from steinlab.pages.wave.measures import AT, GAP, Evaluation, evaluate, measure
from steinlab.pages.wave.nuts import NutsJob
from steinlab.pages.wave.parts import nuts_sentence, table
from steinlab.pages.wave.recovery import STOP, Recovery, apart, table_of
from steinlab.pages.wave.setup import PAPER, WaveSetup, all_knobs, read_points, shown, used_by
from steinlab.pages.wave.stage import parts
from steinlab.pages.wave.widths import narrowing, shipped_rows, spreads
from steinlab.server import background
from steinlab.server.jobs import SweepJob
from steinlab.stage import nuts_job
from steinlab.stage.hand_over import runs_of_training
from steinlab.stage.parts import joined
from steinlab.stage.training import Snapshot

TINY = WaveSetup(width=1, methods=("svgd", "map"))


@pytest.mark.parametrize(
    "text", ["1,2\n3,4", "x,y\n1,2\n3,4\n", "1;2\n3;4", "1\t2\n\n3\t4", "1 2\n3 4", " 1, 2 \n3 ,4", "a;b\n1;2\n3;4"]
)
def test_points_are_read_however_they_are_separated(text):
    assert read_points(text) == ((1.0, 2.0), (3.0, 4.0))


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "0 points"), ("x,y\n", "0 points"), ("1,2\n1,cat", "row 2: 'cat'"), ("1,nan", "finite"),
        ("inf,1", "finite"),
        ("1,2,3", "row 1: 3 columns"), ("1", "row 1: 1 column;"), ("1,2\n" * 513, "more than 512"),
        ("1,2\n" * 1_000_000, "too much text"), ("x,y\nx,y\n1,2", "row 2"), ("1,1e9", "point 1"),
        ("x,1\n", "row 1: 'x'"),
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
        ("methods", "", "unknown method"), ("band", "1", "out of range"), ("of", "z", "band of"),
        ("data", "1,2;nan,1", "row 2"),
        ("target.noise", "0", "target.noise"), ("method.particles", "51", "1 to 50"), ("steps", "-1", "steps"),
        ("x", "1", "unknown field"),
    ],
)  # fmt: skip
def test_a_wrong_field_of_a_link_is_named_and_the_rest_kept(field, text, message):
    setup, problems = WaveSetup.from_query({"seed": "4", field: text})
    assert setup == WaveSetup(seed=4)
    assert len(problems) == 1 and message in problems[0]


def test_two_rows_are_the_papers_networks_and_their_link_holds_both_steps():
    setup = WaveSetup(width=7, draws=30, steps=250, two=True, below=40)
    first, second = setup.networks()
    assert (first.width, first.draws, first.steps) == (5, 30, 250) and (second.width, second.draws, second.steps) == (
        100,
        10,
        40,
    )
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
    assert all(used_by(method) <= set(all_knobs()) for method in shown())


def test_a_script_that_an_earlier_version_exported_finds_its_modules():
    from stein_core import bands, wave
    from stein_core.bands import band, function_values  # noqa: F401
    from stein_core.sweep.grids import run_sweep, variance_collapse  # noqa: F401
    from stein_core.sweep.store import Store  # noqa: F401
    from stein_core.wave import measures

    assert bands.Band is Band and measures is wave.measures


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
    from stein_core.targets.data.datasets import wave_function

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
    assert (
        "SVGD 0.50 ± 0.00 (narrows)" in text and "(widens)" in text and "10 seeds" in text and "our runs agree" in text
    )
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
        return {
            "key": f"{method}{particles}{seed}",
            "method": method,
            "particles": particles,
            "dim": dim_of(5),
            "seed": seed,
            **lppds,
        }

    rows = [row("smi", 5, 0.0), row("svgd", 1, -50.0), row("svgd", 2, -30.0), row("svgd", 4, 5.0)]
    cells = table_of(rows, False)
    assert cells.count(">4</td>") == 3 and "&gt; 256" in cells and ">1</td>" in cells
    assert table_of(rows, True).count(">2</td>") == 2  # 60 and 120 points times log 2 make up for 30
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
    monkeypatch.setattr(background.STOPPING, "is_set", lambda: True)
    job.run()
    assert job.state == "cancelled" and job.done == 0


def test_a_picture_travels_with_its_row_and_method():
    wide = Band(*np.ones((3, 4)))
    frame = joined(parts(1, 25, {"map": Evaluation(20, wide, wide, np.zeros((2, 4)), None, 0.0, True)}))
    assert (
        list(frame[:4]) == [0, 1, 25, 1]
        and list(frame[4:8]) == [shown().index("map"), 20, 1, 2]
        and len(frame) == 8 + 20 + 8
    )


@pytest.fixture
def nuts(monkeypatch):
    """The panel, what it has posted, and the work that it has put on a thread."""
    work, posted = [], []
    monkeypatch.setattr(wave_nuts_panel, "in_background", lambda *what: work.append(what))
    monkeypatch.setattr(nuts_job, "_made", {})
    return wave_nuts_panel.NutsPanel(lambda known: None, posted.append, posted.append), work


def test_nuts_of_another_visitor_is_taken_and_not_computed_again(nuts, monkeypatch):
    panel, work = nuts
    panel.show([TINY])
    panel.refresh()
    job = panel._make()
    assert panel.job.button.visible and job.setup == TINY
    work.clear()
    nuts_job._made["wave", TINY.posterior()] = "another visitor's"
    monkeypatch.setattr(wave_nuts, "compared", None)
    panel.refresh()
    assert not panel.job.button.visible and panel._make() is None
    assert [wanted() for *_, wanted in work] == [True, True]  # it is measured, as are the gaps
    job.run()
    assert job.state == "done" and job.process is None


def test_measurements_that_nobody_waits_for_any_more_are_left_out(nuts):
    panel, work = nuts
    for probability in (0.5, 0.6, 0.7):
        panel.show([WaveSetup(width=5, probability=probability)])
    assert [wanted() for *_, wanted in work] == [False] * 4 + [True] * 2
    panel.gaps = {41: 1.0}
    assert [wanted() for *_, wanted in work] == [False] * 4 + [True, False]
    panel.close()
    assert not any(wanted() for *_, wanted in work)


def test_the_recovery_table_is_filled_before_a_browser_has_it():
    panel, seen = Recovery(print, print), []
    panel.column.param.watch(lambda event: seen.append((panel.origin.object, panel.table.object)), "objects")
    panel.panel.active = [0]
    ((origin, table),) = seen
    assert origin.startswith("Ours: 100 runs") and "<table" in table


def test_the_last_rows_of_a_job_are_in_the_table():
    panel = Recovery(print, print)
    panel.panel.active = [0]
    job = SweepJob([])
    job.state, job.rows = "done", [shipped_rows("recovery")[0] | {"key": "mine"}]
    panel._ended(job)
    assert "1 of them computed on this machine" in panel.origin.object


def test_the_table_has_a_row_for_every_method():
    setup = WaveSetup(width=1, methods=("map",))
    stepper, knobs = compile(setup.spec("map")), setup.knobs_of("map")
    found = evaluate(setup.spec("map"), stepper.reset(0, knobs).particles, setup, "map", 0, 0.0, False)
    text = table([Snapshot(0, setup, {"map": found})], [None])
    assert text.count("<tr>") == 2 and "MAP" in text and "–" in text


def test_what_trains_is_handed_over_with_its_knobs_and_without_spare_rows():
    setup = WaveSetup(methods=("svgd", "vi"), knobs={"method.particles": 3, "target.noise": 0.2})
    spare = np.arange(6 * 41.0).reshape(6, 41)
    runs = runs_of_training(Snapshot(7, setup, {}, {"svgd": spare, "vi": np.ones((1, 82))}))
    assert [(label, len(particles), step) for label, _, particles, step in runs] == [("SVGD", 3, 7), ("VI", 1, 7)]
    assert all(recipe.knobs["target.noise"] == 0.2 and recipe.spec.target == "wave" for _, recipe, *_ in runs)
    assert runs_of_training(None) == []
