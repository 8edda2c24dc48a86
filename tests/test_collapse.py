"""The page "Variance collapse" without a browser: grids, points, laws, jobs and the reference file."""

import json
from pathlib import Path
from urllib.parse import parse_qsl

import numpy as np
import pytest

from stein_core import BANDWIDTHS, DIAGNOSTICS, Recipe, theory
from stein_core.papers.recording import record
from stein_core.sweep.grids import run_sweep
from stein_core.sweep.keys import canonical, key_of
from stein_core.sweep.store import Store
from steinlab.pages.collapse.chart import Chart
from steinlab.pages.collapse.grid import PRESETS, QUANTITIES, RESVGD, SHIPPED, STOP, Grid, read_link, shipped, value_of
from steinlab.pages.collapse.laws import curves_of, draws_error, law_at, laws_of, quantity_of, variance_law
from steinlab.pages.collapse.replay import goals_of, link_of
from steinlab.pages.collapse.series import all_series, names_of, points_of, series_of
from steinlab.pages.notation import CONVENTIONS
from steinlab.stage.setup import Setup

SMALL = Grid(methods=("svgd",), dims=(5,), particles=(4,), seeds=1)


def row(**changes):
    plain = {
        "method": "svgd", "dim": 40, "particles": 20, "alpha": 1.0, "kernel": "rbf", "rule": "median_log", "seed": 0,
        "target": "gaussian", "stopped": "converged", "steps": 1000, "sample_variance": 0.08, "recipe": {"knobs": {}},
    }  # fmt: skip
    return {**plain, **changes}


@pytest.mark.parametrize(
    "grid",
    [
        Grid(),
        Grid(
            ("svgd", "mmd", "damped"),
            kernels=("rbf", "imq"),
            knobs=(
                ("method.damping", "free"),
                ("method.lambda_", 0.25),
                ("method.redraw", "fixed"),
            ),
        ),
        Grid(("smi",), (1, 40), (4, 20), (0.05, 1.0), ("imq",), ("median",), ("paper", "numpyro"), 2, "cubic"),
    ],
)
def test_a_link_repeats_a_grid(grid):
    query = dict(parse_qsl(grid.to_query()))
    assert Grid.from_query(query) == (grid, [])
    assert set(Grid.from_query(query)[0].recipes()) == set(grid.recipes())


def test_a_plain_grid_needs_no_link():
    assert Grid().to_query() == ""


@pytest.mark.parametrize(
    "query, said",
    [
        ({"dims": "1,two"}, "whole numbers"),
        ({"methods": "svdg"}, "did you mean 'svgd'"),
        ({"particles": "999"}, "1 to 256"),
        ({"seeds": "0"}, "1 to 20"),
        ({"dims": ""}, "at least one"),
        ({"dims": "0"}, "dim = 0"),
        ({"target": "banana", "dims": "3"}, "nearest for target 'banana': 2 or 4"),
        ({"methods": "mmd", "target": "student", "dims": "2"}, None),
        ({"dims": ",".join(map(str, range(1, 900)))}, "Take fewer"),
        ({"colour": "red"}, "unknown field"),
        ({"x": "time"}, "unknown x"),
        ({"methods": "svgd", "method.damping": "free"}, "unknown setting of these methods"),
        ({"methods": "damped", "method.lambda_": "7"}, "0 to 1"),
    ],
)
def test_what_is_wrong_in_a_link_is_said_and_left_out(query, said):
    grid, axis, quantity, problems = read_link({**query, "seeds": query.get("seeds", "2")})
    assert (said is None) == (not problems)
    assert said is None or said in problems[0]
    assert axis == "dim" and quantity == "sample_variance"


def test_lists_may_have_spaces_but_numbers_must_be_numbers():
    assert value_of("dims", " 1, 2 ,4,") == (1, 2, 4)
    assert value_of("alphas", "0.1,1e1") == (0.1, 10.0)
    with pytest.raises(ValueError, match="numbers with commas"):
        value_of("alphas", "0.1;1")


def test_error_bars():
    values = [1.0, 2.0, 6.0]
    (three,) = points_of([row(seed=i, sample_variance=v) for i, v in enumerate(values)], "sample_variance", "dim")
    assert three.mean == 3 and three.high - three.mean == pytest.approx(np.std(values, ddof=1))
    (two,) = points_of([row(seed=i, sample_variance=v) for i, v in enumerate(values[:2])], "sample_variance", "dim")
    assert (two.low, two.mean, two.high) == (1, 1.5, 2)
    (one,) = points_of([row()], "sample_variance", "dim")
    assert one.low == one.mean == one.high and one.spread == ""


def test_a_diverged_seed_is_said_and_not_averaged():
    rows = [row(), row(seed=1, stopped="diverged", sample_variance=1e9), row(seed=2, stopped="steps")]
    (point,) = points_of(rows, "sample_variance", "dim")
    assert point.stopped == "diverged" and point.mean == pytest.approx(0.08)
    assert points_of([row(sample_variance=None)], "sample_variance", "dim") == []


def test_series_follow_the_axis():
    rows = [row(dim=d, particles=n) for d in (40, 80) for n in (10, 20)] + [row(method="vi", particles=1, alpha=None)]
    assert len({series_of(r, "dim") for r in rows}) == 3
    assert {(p.series.d, p.series.n) for p in points_of(rows, "sample_variance", "particles")} == {
        (40, None),
        (80, None),
    }
    assert not any(p.series.method == "vi" for p in points_of(rows, "sample_variance", "gamma"))


def test_a_lecture_names_the_axis_in_words_that_fit():
    made = Chart(True, lambda point: None)
    grid = Grid()
    made.take(grid, (), "sample_variance", "dim")
    assert made.figure.yaxis.axis_label == "variance (points 1/(n-1), guides 1/n)"
    made.enlarge(True, 400)
    assert made.figure.yaxis.axis_label == "variance"
    made.enlarge(False, 400)
    assert "(" in made.figure.yaxis.axis_label


def test_labels_say_what_differs():
    names = names_of(all_series(Grid(methods=("svgd", "vi"), alphas=(0.1, 1.0)), "dim")).values()
    assert sorted(names) == ["SVGD, alpha 0.1", "SVGD, alpha 1", "VI"]


def test_laws_hold_only_where_there_is_a_simplex():
    curves = [c for c in curves_of(Grid(), "sample_variance", "dim") if c.kind == "law"]
    assert {c.series.method for c in curves} == {"svgd", "annealed"}
    assert all(min(c.xs) == 19 for c in curves)
    assert not [c for c in curves_of(Grid(target="cubic"), "sample_variance", "dim") if c.kind != "exact"]


def test_svgd_is_linear_in_alpha():
    one, ten = (variance_law("svgd", 40, 20, "rbf", "median_log", alpha) for alpha in (1.0, 10.0))
    assert ten == pytest.approx(10 * one)


def test_limits_are_drawn_where_they_are_not_the_law():
    mmd = curves_of(Grid(("mmd",), (50, 100), rules=("median",)), "marginal_variance", "dim")
    assert [c.ys[0] for c in mmd if c.kind == "limit"] == pytest.approx([theory.proposition_7(50, 20)])
    fixed = curves_of(Grid(("svgd",), (50, 100), kernels=("imq",), rules=("fixed",)), "sample_variance", "dim")
    assert {c.kind for c in fixed} == {"exact", "law", "limit"}


def test_other_settings_are_run_and_have_their_own_laws():
    damped = Grid(("damped",), (40,), rules=("median",), knobs=(("method.damping", "free"), ("method.lambda_", 0.8)))
    assert all(recipe.knobs["method.lambda_"] == 0.8 for recipe in damped.recipes().values())
    assert list(laws_of(damped, "sample_variance", "dim").values()) == [
        theory.simplex_variance(40, 20, "rbf", "median", 1.0, damping=0.8)
    ]
    noisy = Grid(("mmd",), (40,), rules=("median",), knobs=(("method.driving", "kernel_derivative"),))
    assert np.isnan(list(laws_of(noisy, "sample_variance", "dim").values())).all()
    assert not noisy.recipes().keys() & Grid(("mmd",), (40,), rules=("median",)).recipes().keys()
    assert Grid(("mmd",), rules=("median",), knobs=(("method.driving", "closed_form"),)) == Grid(
        ("mmd",), rules=("median",)
    )
    with pytest.raises(ValueError, match="closed_form"):
        Grid(("mmd",), kernels=("imq",), knobs=(("method.driving", "closed_form"),))


def test_reference_lines_are_one_for_each_particle_count_or_dimension():
    grid = Grid(("svgd",), (10, 40), (5, 20))
    for axis, names in (("dim", ["n = 5", "n = 20"]), ("particles", ["d = 10", "d = 40"])):
        assert [c.label for c in curves_of(grid, "covariance_error", axis) if c.kind == "draws"] == names
        assert [c.label for c in curves_of(grid, "mean_location", axis) if c.kind == "band"] == names
        assert [c.label for c in curves_of(grid, "sample_variance", axis) if c.kind == "exact"] == [""]


def test_a_rule_without_a_law_breaks_nothing():
    if "no_law" not in BANDWIDTHS:
        BANDWIDTHS.register("no_law", label="none", reference="here")(BANDWIDTHS["median"].make)
    try:
        grid = Grid(("svgd", "damped"), (40,), rules=("no_law",))
        assert {c.kind for c in curves_of(grid, "sample_variance", "dim")} == {"exact"}
        found = row(rule="no_law", recipe=next(iter(grid.recipes().values())).to_dict())
        assert goals_of(points_of([found], "sample_variance", "dim")[0]) == (None, None)
    finally:
        del BANDWIDTHS._entries["no_law"]


def test_each_variance_says_which_it_is():
    (_, points, short, _), (_, every, tab, _) = (QUANTITIES[f"{name}_variance"] for name in ("sample", "marginal"))
    for said in (points, short):
        assert "points 1/(n-1), guides 1/n" in said
    assert "1/(n-1)" in DIAGNOSTICS["sample_variance"].summary
    assert "all with 1/n" in every and "all 1/n" in tab and "1/n form" in DIAGNOSTICS["marginal_variance"].summary
    assert "$1/(n-1)$ for points and $1/n$ for guides" in CONVENTIONS.replace("\n", " ")


def test_quantities_of_a_regular_simplex():
    n, d, variance = 5, 9, 0.3
    corners = np.eye(n, d) - 1 / n * (np.arange(d) < n)
    x = corners * np.sqrt(variance * d * (n - 1) / np.sum(corners**2))
    c = x.T @ x / n
    assert x.var(axis=0, ddof=1).mean() == pytest.approx(variance)
    assert quantity_of("marginal_variance", "svgd", variance, d, n) == pytest.approx(np.trace(c) / d)
    assert quantity_of("covariance_error", "svgd", variance, d, n) == pytest.approx(np.linalg.norm(c - np.eye(d)))
    assert quantity_of("overlap", "svgd", variance, d, n) == pytest.approx(abs(x[0] @ x[1]) / np.sqrt(d))
    assert np.isnan(quantity_of("overlap", "langevin", variance, d, n))


def test_the_error_of_exact_draws():
    x = np.random.default_rng(0).normal(size=(4000, 6, 4))
    x -= x.mean(axis=1, keepdims=True)
    c = np.einsum("rni,rnj->rij", x, x) / 6
    assert np.mean(np.sum((c - np.eye(4)) ** 2, axis=(1, 2))) == pytest.approx(draws_error(4, 6) ** 2, rel=0.03)


def test_the_reference_file_covers_every_preset_and_agrees_with_the_laws():
    assert SHIPPED.stat().st_size < 400_000
    rows = shipped()["rows"]
    assert len(rows) == len(json.loads(SHIPPED.read_text())["rows"])
    used = set()
    for preset in PRESETS:
        grid, axis, quantity, problems = read_link(dict(parse_qsl(preset["link"])))
        assert not problems and set(grid.recipes()) <= set(rows), preset["name"]
        used |= set(grid.recipes())
    assert used == set(rows)
    checked = 0
    for point in points_of(rows.values(), "sample_variance", "dim"):
        assert point.stopped == "converged"
        law = law_at(point.series, "sample_variance", point.d, point.n)
        if point.series.method != "langevin" and np.isfinite(law):
            assert point.mean == pytest.approx(law, rel=1e-4)
            checked += 1
    assert checked > 40


def test_what_the_page_says_about_the_published_runs():
    assert all(abs(mean) < 2 * theory.mean_band(d, 20) for d, mean in RESVGD.items())
    rows = [r for r in shipped()["rows"].values() if r["method"] == "smi"]
    at = {(p.series.alpha, p.series.force_scale, p.d): p.mean for p in points_of(rows, "sample_variance", "dim")}
    for d in (1, 2, 4, 10, 40):
        assert at[0.05, "paper", d] == pytest.approx(at[1.0, "numpyro", d], abs=0.02)
    assert at[1.0, "paper", 1] > 1.8
    assert at[10.0, "numpyro", 1] > 1.3 > 1.1 > at[10.0, "numpyro", 40]
    assert at[0.05, "numpyro", 1] == pytest.approx(1.0, abs=0.01)  # a mixture's, with 1/n; 1/(n-1) gives 1.034


@pytest.mark.long
def test_a_recording_repeats_the_row_it_came_from(tmp_path):
    (found,) = run_sweep(list(SMALL.recipes().values()), Store(tmp_path / "rows.sqlite"))
    recipe = Recipe.from_dict(found["recipe"])
    assert recipe.changes
    heard = []
    recording = record(recipe, found["steps"], heard.append)
    last = recording.shots[-1]
    assert last.step == found["steps"] == heard[-1] and 20 < len(recording.shots) <= 62
    norm, cosine = goals_of(points_of([found], "sample_variance", "dim")[0])
    assert last.norms == pytest.approx(norm, rel=1e-4) and last.cosines == pytest.approx(cosine, abs=1e-4)
    setup, problems = Setup.from_query(dict(parse_qsl(link_of(recipe))))
    assert not problems and canonical(setup.recipe("svgd", recipe.spec.capacity)) == canonical(recipe)


def test_a_goal_is_drawn_only_where_a_law_says_so():
    (recipe, *_) = Grid(("svgd",), (40,), target="cubic").recipes().values()
    found = row(target="cubic", recipe=recipe.to_dict())
    assert goals_of(points_of([found], "sample_variance", "dim")[0]) == (None, None)


def test_the_script_of_a_grid_makes_the_same_runs(tmp_path):
    grid = Grid(("svgd", "smi", "mmd"), (2, 40), kernels=("rbf", "imq"), force_scales=("paper", "numpyro"))
    script = grid.to_python()
    head = script[: script.index("for row in")]
    names = {}
    exec(head, names)
    assert {key_of(recipe, STOP) for recipe in names["recipes"]} == set(grid.recipes())
    assert Path(SHIPPED).name in (Path(SHIPPED).parent / "README.md").read_text()


def test_the_law_of_the_stein_trace_is_drawn_on_every_target():
    """It is the variance's law; on a Student-t the variance itself has none."""
    grid = Grid(target="student", methods=("svgd", "mmd", "smi"), dims=(20, 40), particles=(10,))
    curves = curves_of(grid, "stein_trace", "dim")
    laws = [curve for curve in curves if curve.kind == "law"]
    assert {curve.series.method for curve in laws} == {"svgd"}
    assert dict(zip(laws[0].xs, laws[0].ys))[20.0] == pytest.approx(10 * np.log(10) / (9 * 20), rel=1e-9)
    assert [set(curve.ys) for curve in curves if curve.kind == "exact"] == [{1.0}]
    assert not [curve for curve in curves_of(grid, "sample_variance", "dim") if curve.kind == "law"]
