"""`steinlab site`: what it writes and what it refuses. A browser opens it in test_site_in_browser.py."""

import json

import pytest
from test_cli import run  # noqa: F401  (a fixture)

from stein_core import METHODS
from steinlab.site.build import METHODS_HERE, TARGETS_HERE, check, index


def test_a_folder_has_a_page_and_a_file_for_each_scene_and_program(run, tmp_path):  # noqa: F811
    code, out, err = run("site", tmp_path / "lab", "--targets", "gaussian", "--methods", "langevin")
    assert code == 0 and f"open {tmp_path / 'lab' / 'index.html'}" in out
    found = {str(file.relative_to(tmp_path / "lab")) for file in (tmp_path / "lab").rglob("*.*")}
    programs = {f"programs/gaussian-langevin-{room}.js" for room in (32, 128)}
    assert found == {"index.html", "steinlab.css", "steinlab.js", "scenes/gaussian.js", *programs}
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
    offered = index(TARGETS_HERE, METHODS_HERE)
    assert offered["knobs"]["method.alpha"]["low"] == 0 and offered["knobs"]["method.particles"]["high"] == 128
    names = [each["name"] for each in offered["knobs"]["kernel.name"]["choices"]]
    assert names[0] == "rbf" and offered["knobs"]["kernel.name"]["value"] == 0
    assert {each["name"]: each["label"] for each in offered["methods"]}["smi"] == METHODS["smi"].label
