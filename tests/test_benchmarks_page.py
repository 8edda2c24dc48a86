"""Page "Benchmarks": what it shows, what its links mean, and a cell computed again."""

import html
from types import SimpleNamespace
from urllib.parse import parse_qsl

import numpy as np
import param
import pytest
from bokeh.document import Document
from checks import until
from panel.io.state import set_curdoc

from stein_core.papers.tables import TABLES, compare
from stein_core.papers.tables.posteriordb import FITS
from stein_core.papers.tables.smi_uci import VARIANTS
from stein_core.targets.data.downloads import data_file
from stein_core.targets.posteriordb import folder
from steinlab.pages.benchmarks import shipped as module
from steinlab.pages.benchmarks.drawing import page
from steinlab.pages.benchmarks.live import live_of
from steinlab.pages.benchmarks.page import Benchmarks
from steinlab.pages.benchmarks.shipped import missing, offered, shipped
from steinlab.pages.benchmarks.summary import by_steps, sentence, strip
from steinlab.stage.choices import Choices
from steinlab.stage.setup import Setup


class Frame(param.Parameterized):
    dark_theme = param.Boolean(default=False)


def opened(query):
    with set_curdoc(Document()):
        return Benchmarks(SimpleNamespace(frame=Frame(), go=lambda link: None), query)


@pytest.mark.long
def test_shipped_rows_are_cells_that_the_command_has_and_every_table_is_shown():
    for entry in TABLES.listed():
        rows = shipped(entry.name).rows
        known = {cell.key: cell for cell, _ in offered(entry.name)}
        assert set(known) >= {row["key"] for row in rows}, entry.name
        assert all(row["numbers"].keys() and known[row["key"]].seed == row["seed"] for row in rows)
        page = opened({"table": entry.name})
        assert entry.facts.differs[0][:30] in page.text.html and f"tables {entry.name}" in page.text.html
        assert rows and not missing(entry.name) and "Not computed yet" not in page.text.html, entry.name


def test_cells_that_are_not_shipped_are_counted(monkeypatch):
    whole = shipped("damped")
    few = whole._replace(rows=[row for row in whole.rows if (row["row"], row["seed"]) != ("n = 10", 0)])
    monkeypatch.setattr(module, "shipped", lambda name: few)
    absent, every = missing("damped")["n = 10"]
    assert list(missing("damped")) == ["n = 10"] and len(whole.rows) - len(few.rows) == absent < every
    said = opened({"table": "damped"}).text.html
    assert f"Not computed yet: {absent} cells of the reduced protocol, of n = 10 ({absent} of {every})." in said


def test_the_numbers_are_those_that_were_measured():
    """RMSE after 2,000 steps of an independent program: Boston 2.976, Concrete 5.712, Kin8nm 0.122, Wine 0.628."""
    found = {(one.row, one.label): one for one in compare("svgd_uci", shipped("svgd_uci").rows)}
    measured = {
        "Boston": (2.976, 0.193), "Concrete": (5.712, 0.101), "Energy": (1.488, 0.035), "Kin8nm": (0.122, 0.001),
        "Combined": (4.188, 0.033), "Protein": (4.857, 0.012), "Wine": (0.628, 0.008), "Yacht": (1.069, 0.076),
    }  # fmt: skip
    for name, (value, error) in measured.items():
        one = found[name, "RMSE, 2,000 steps"]
        assert abs(one.ours - value) < 2 * (error**2 + one.error**2) ** 0.5 + 5e-4, name
    page = opened({})
    assert "not available" in page.text.html and "SMI paper" not in page.error.object
    assert "2.957 ± 0.099" in page.text.html and "2.973 ± 0.19" in page.text.html
    damped = {one.label: one for one in compare("damped", shipped("damped").rows) if one.row == "n = 10"}
    assert abs(damped["damped: Stein trace"].ours - 1) < 0.01 and damped["damped: variance"].ours > 0.65


def test_the_shipped_variants_say_what_explains_the_published_numbers_on_energy():
    """SMI's needs the fault and the second layer, SVGD's either change: so the page says."""
    found = {one.label: one for one in compare("smi_uci", shipped("smi_uci").rows) if one.row == "Energy"}
    nll = {name: found[f"{name}, standard: NLL as coded"] for name in ("SMI", "SVGD", *VARIANTS)}
    far = ("SMI", "SMI (twice)", "SMI with two layers", "SVGD")
    for name, one in nll.items():
        assert one.published == 0.8 and (one.ours > 1.8 if name in far else one.ours < 1.0), name
    assert nll["SMI (twice)"].runs == 3 and "SMI (twice) with two layers 0." in opened({"table": "smi_uci"}).text.html


def test_a_link_chooses_a_cell_and_a_wrong_one_is_said():
    page = opened({"table": "damped", "row": "n = 25", "column": "damped"})
    assert page.link() == "table=damped&row=n+%3D+25&column=damped" and not page.error.visible
    assert [str(cell.seed) for cell, _ in page.cells()] == page.selects["seed"].options
    assert "n = 10" not in page.text.html
    page.selects["table"].value = "svgd_uci"
    assert page.link() == "table=svgd_uci" and page.selects["row"].value == "all"
    page.open({"table": "svgd_uci", "row": "Bostn"})
    assert page.error.visible and "did you mean &#x27;Boston&#x27;" in page.error.object
    page.open({"table": "svgd_uci", "row": "Yacht"})
    assert not page.error.visible and page.job().cell.row == "Yacht"


def test_a_click_on_a_number_opens_the_page_that_runs_exactly_this():
    for name, column in (("svgd_uci", "2,000 steps"), ("smi_uci", "SMI, standard"), ("smi_uci", "ASVGD, standard")):
        cells = [cell for cell, _ in offered(name) if (cell.row, cell.column) == ("Yacht", column)]
        recipe, live = TABLES[name].facts.recipe(cells[1]), live_of(cells[1])
        query = dict(parse_qsl(live.link[1:]))
        assert query.pop("page") == "particles" and not live.why
        setup, problems = Setup.from_query(query)
        again = setup.recipe(recipe.spec.method, recipe.spec.capacity)
        assert not problems and (again.spec, again.seed) == (recipe.spec, 1)
        assert all(again.knobs.get(k, knob.default) == recipe.knobs.get(k, knob.default) for k, knob in all_of(recipe))
        page = opened({"table": name, "row": "Yacht", "column": column, "seed": "1"})
        assert html.escape(live.link) in page.live.html and "&#9654;" in page.text.html


def test_the_list_of_targets_has_the_one_that_a_link_names():
    choices = Choices(lambda **change: None, print, print)
    for name in ("uci", "oring"):
        choices.show(Setup(target=name, methods=("svgd",)))
        assert choices.target.value == name
    assert "uci" not in choices.target.options.values()


def test_a_slider_has_the_range_of_the_target_that_is_shown():
    choices = Choices(lambda **change: None, lambda name, value: None, print)
    for target, options, most, batch in (
        ("covertype", {}, 256, 100),
        ("uci", {"target.dataset": "power", "target.width": 150}, 128, 100),
    ):
        choices.show(Setup(target, ("svgd",), options=options))
        slider, width = choices.knobs["target.batch"], choices.options["target.width"]
        assert (slider.end, slider.value) == (most, batch) and width.visible == bool(options)
    assert (width.value, width.end) == (150, 200)


def all_of(recipe):
    return recipe.spec.knobs().items()


def test_a_number_without_a_page_says_so_and_chooses_its_cell():
    cases = {"ensembles": "Dimension = 99710", "damped": "a run of NUTS", "posteriordb": "Your posterior"}
    for name, why in cases.items():
        cell = next(cell for cell in TABLES[name].make(False) if cell.column not in FITS)
        live = live_of(cell)
        query = dict(parse_qsl(live.link[1:]))
        assert why in live.why and "computed again here" in live.why and query.pop("page") == "benchmarks"
        page = opened(query)
        assert page.job().cell.key == cell.key and why in page.live.html


@pytest.mark.skipif(not folder().is_dir(), reason="STEIN_DATA has no posteriordb")
def test_a_posterior_is_fitted_on_its_own_page():
    cell = next(cell for cell in TABLES["posteriordb"].make(False) if cell.column == "SVGD")
    assert live_of(cell) == (f"?page=posterior&posterior=posteriordb/{cell.row}&way=svgd", "")


@pytest.mark.long
@pytest.mark.skipif(data_file("uci/boston.npz") is None, reason="STEIN_DATA names no folder of data")
def test_a_cell_that_is_computed_here_stands_beside_the_shipped_one():
    page = opened({"table": "svgd_uci", "row": "Yacht", "seed": "3"})
    page.bar._start(None)
    until(lambda: page.refresh() or page.bar.job, lambda job: job is None, pause=0.05)
    assert page.here.visible and "Yacht, 2,000 steps, seed 3: computed here" in page.here.html
    old = next(row for row in shipped("svgd_uci").rows if (row["row"], row["seed"]) == ("Yacht", 3))
    assert f"{old['numbers']['rmse']:.5g}"[:4] in page.here.html and not page.error.visible


def test_the_first_sight_counts_the_rows_that_agree_and_draws_each_once():
    found = [one for one in compare("svgd_uci", shipped("svgd_uci").rows) if one.runs]
    (steps, first), (fewer, rest) = by_steps(found)
    assert (steps, fewer) == (10_000, 2_000) and len(first) == len(rest) == 27
    near = sum(abs(one.ours - one.published) <= 2 * np.hypot(one.error, one.published_error) for one in first)
    assert sentence(first).startswith(f"{near} of 27 rows agree") and "Energy, " in sentence(first)
    drawn = strip(first)
    assert drawn.count("<circle") == 27 and drawn.count('class="far"') == 27 - near
    assert sentence([]) == strip([]) == ""
    assert sentence([first[0]]) == "1 of 1 rows agree with the paper within two standard errors."
    shown = page(TABLES["svgd_uci"], "", False)
    assert shown.index("10,000 steps") < shown.index("The same after 2,000 steps") < shown.rindex("RMSE, 2,000 steps")


def test_groups_hold_the_knobs_of_the_setup_in_their_order_and_nothing_hidden():
    choices = Choices(lambda **change: None, lambda name, value: None, print)
    columns = [getattr(one, "body", one) for one in choices.groups]
    held = []
    for target, method in (("two_gaussians", "svgd"), ("banana", "smi"), ("two_gaussians", "svgd")):
        setup = Setup(target, (method,))
        choices.show(setup)
        choices.tidy(choices.groups)
        held.append([one for column in columns for one in column.objects])
        made = [name for name, one in choices.knobs.items() if one in held[-1]]
        assert set(made) == set(setup.spec(method, 8).knobs())
    apart = [choices.note, choices.many.slider, choices.many.text, choices.near.select, choices.near.text]
    assert held[0] == held[2] != held[1] and choices.draws.visible is False
    assert all(one.visible for one in held[2] if one not in apart) and all(one in held[2] for one in apart)
