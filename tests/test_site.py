"""`steinlab site`: what it writes and what it refuses. A browser opens it in test_site_in_browser.py."""

import json

import pytest
from test_cli import run  # noqa: F401  (a fixture)

from stein_core import METHODS
from stein_core.theory import simplex_variance
from steinlab.lesson.predictions import read_prediction
from steinlab.site import chapters, essay
from steinlab.site.build import CAPACITIES, KNOBS, MANY, METHODS_HERE, MORE, TARGETS_HERE, check, index, needed
from steinlab.site.figures import PART, Place


def test_a_folder_has_a_page_and_a_file_for_each_scene_and_program(run, tmp_path):  # noqa: F811
    code, out, err = run("site", tmp_path / "lab", "--targets", "gaussian", "--methods", "langevin")
    assert code == 0 and f"open {tmp_path / 'lab' / 'index.html'}" in out
    found = {str(file.relative_to(tmp_path / "lab")) for file in (tmp_path / "lab").rglob("*.*")}
    programs = {f"programs/gaussian-langevin-{room}.js" for room in CAPACITIES}
    assert found == {
        "index.html",
        "steinlab.css",
        "steinlab.js",
        "lab.js",
        "replay.js",
        "scenes/gaussian.js",
        *programs,
    }
    scene = (tmp_path / "lab/scenes/gaussian.js").read_text()
    given = json.loads(scene.partition(", ")[2].rstrip(");\n"))
    assert [card["title"] for card in given["cards"].values()] == ["Langevin"] and given["background"]["contours"]


@pytest.mark.parametrize("arguments, message", [
    (["--targets", "banan"], "did you mean 'banana'"),
    (["--targets", "wave"], "target 'wave' cannot be on a site; allowed: targets of two dimensions without data."),
    (["--targets", "gamma"], "target 'gamma' cannot be on a site; allowed: targets of two dimensions without data."),
    (["--targets", "mnist"], "target 'mnist' cannot be on a site; allowed: targets of two dimensions without data."),
    (["--methods", "svdg"], "did you mean 'svgd'"),
    (["--methods", "ksivi"], "method 'ksivi' cannot be on a site; allowed: methods of page Particles."),
])  # fmt: skip
def test_what_a_site_cannot_offer_is_refused_at_once(run, tmp_path, arguments, message):  # noqa: F811
    code, out, err = run("site", tmp_path / "lab", *arguments)
    assert code == 2 and message in err and not (tmp_path / "lab").exists()


def test_no_file_is_overwritten_but_a_page(run, tmp_path):  # noqa: F811
    (tmp_path / "thesis.tex").write_text("mine")
    code, _, err = run("site", tmp_path / "thesis.tex")
    assert code == 2 and "is a file; allowed: a folder, or a file that ends in .html." in err
    assert (tmp_path / "thesis.tex").read_text() == "mine"
    code, _, err = run("site", tmp_path / "no/such/one.html")
    assert code == 2 and "there is no such folder" in err


def test_what_is_offered_by_default_can_be_on_a_site_and_knobs_have_the_apps_names():
    check(TARGETS_HERE, METHODS_HERE)
    offered = index((*map(Place, TARGETS_HERE), *MANY), METHODS_HERE, essay.FIGURES.values())
    assert offered["knobs"]["method.alpha"]["low"] == 0 and offered["knobs"]["method.particles"]["high"] == 200
    names = [each["name"] for each in offered["knobs"]["kernel.name"]["choices"]]
    assert names[0] == "rbf" and offered["knobs"]["kernel.name"]["value"] == 0
    assert {each["name"]: each["label"] for each in offered["methods"]}["smi"] == METHODS["smi"].label
    assert [one["name"] for one in offered["methods"] if one["offered"]] == list(METHODS_HERE)
    assert {one["name"]: one["dim"] for one in offered["targets"]}["gaussian-50"] == 50


def test_the_essay_asks_before_each_figure_and_its_programs_are_built():
    parts = PART.findall(essay.TEXT.read_text(encoding="utf-8"))
    asked = [name for kind, name in parts if kind == "predict"]
    shown = [name for kind, name in parts if kind in ("figure", "chart")]
    assert asked == shown == list(essay.PREDICTIONS) and set(essay.FIGURES) == {*shown} - {"law"}
    wanted = needed([Place("banana")], ["svgd"], essay.FIGURES.values())
    for name, one in essay.FIGURES.items():
        assert all(CAPACITIES[0] in wanted[one.place][method] for method in one.methods), name
        known = {knob for method in one.methods for knob in one.place.spec(method, 1).knobs()}
        assert {*one.values, *one.sliders} <= known, name
        assert one.values["method.particles"] <= CAPACITIES[0], name
    readable = {"target", "dim", "methods", "seed", *KNOBS, *MORE}
    page = essay.body("lab.html", TARGETS_HERE, readable, "")
    assert page.count("data-figure=") == 10 and page.count("data-chart=") == 1 and not PART.search(page)
    assert 'href="lab.html?target=gaussian&amp;dim=50&amp;methods=svgd,smi"' in page


def test_the_essays_answers_are_those_of_the_laws():
    """Those of runs are checked where the runs are: test_essay_in_browser.py."""
    answers = {name: read_prediction(facts).answer for name, facts in essay.PREDICTIONS.items()}
    assert answers["fifty"] == pytest.approx(simplex_variance(50, 20), abs=5e-5)
    assert answers["law"] == pytest.approx(simplex_variance(50, 50), abs=5e-4)
    assert answers["two"] == pytest.approx((simplex_variance(1, 2) / 2) ** 0.5, abs=5e-5)
    assert essay.PREDICTIONS["road"]["choices"][answers["road"]] == "at the same variance, sooner"
    rests = {name: rest(name) for name in ("svgd", "accelerated", "two_kernels", "random_subspace")}
    assert rests["accelerated"] == rests["svgd"] < 0.1
    assert rests["two_kernels"] == pytest.approx(0.15, abs=0.005)
    assert rests["random_subspace"] == pytest.approx(0.76, abs=0.005)


def rest(name: str) -> float:
    spec = Place("gaussian", 50, "sgd").spec(name, 32)
    known = {key: knob.default for key, knob in spec.knobs().items()} | {"method.step_size": 0.01}
    return METHODS[name].facts.law(50, 20, known)


def test_the_chart_has_the_law_and_the_recorded_runs_lie_on_it():
    sets = essay.law()["sets"]
    twenty = next(one for one in sets if one["name"] == "20")
    assert twenty["lines"][0]["at"][0][0] == 19  # the simplex needs as many dimensions
    runs = {d: v for d, v in (point["at"] for point in twenty["points"]) if d >= 19}
    assert len(runs) >= 5 and all(v == pytest.approx(simplex_variance(d, 20), rel=0.01) for d, v in runs.items())


def test_the_chapters_show_every_remedy_and_points_lie_on_their_laws():
    for figure in chapters.FIGURES.values():
        known = {knob for method in figure.shown for knob in figure.place.spec(method, 1).knobs()}
        assert {*figure.values, *figure.sliders} <= known and figure.methods[1] in figure.pick
    sets = {one["name"]: one for one in chapters.remedy_chart()["sets"]}
    missing = {METHODS[name].label for name in chapters.REMEDIES} - {*sets}
    assert missing == {METHODS["projected"].label}  # a normal has no rows
    checked = 0
    for one in (*sets.values(), *chapters.collapse_chart()["sets"]):
        assert len({tuple(line["colour"]) for line in one["lines"]}) == len(one["lines"])
        for line in one["lines"]:
            law, facts = dict(line["at"]), METHODS[line["method"]].facts
            for point in one["points"]:
                dim, found = point["at"]
                rests = not facts.leading and line["method"] != "langevin"
                if point["colour"] == line["colour"] and dim in law and rests:
                    assert found == pytest.approx(law[dim], rel=0.01), (one["name"], point)
                    checked += 1
    assert checked > 25
    page = chapters.body("remedy")
    assert page.count("only the road") == 4 and page.count("data-figure=") == 2 and not PART.search(page)
