"""The notebooks, the outputs that they import, and the README's code."""

import ast
import json
import re
import shlex
import sys
import threading
import time
import warnings
from pathlib import Path
from unittest.mock import Mock

import holoviews as hv
import numpy as np
import pytest
from bokeh.document import Document
from bokeh.io.doc import patch_curdoc
from bokeh.models import DataRange1d, Line, LinearColorMapper, Plot
from bokeh.plotting import figure
from bokeh.themes import Theme
from checks import until

from stein_core import (
    BANDWIDTHS,
    DIAGNOSTICS,
    FORCE_SCALES,
    GUIDES,
    KERNELS,
    METHODS,
    OPTIMIZERS,
    TARGETS,
    Spec,
    Stepper,
)
from stein_core.base.pieces import in_pieces, rest_of_this_thread
from stein_core.cli.main import main
from stein_core.theory.fixed_points import two_guides
from steinlab.lesson import dials, live_stage
from steinlab.lesson.around import bars, foot, listing
from steinlab.lesson.bokeh_update import remember, take_over
from steinlab.lesson.chart import IDLE, SHADES, Chart, control
from steinlab.lesson.host import NotebookHost, use_host
from steinlab.lesson.ideas import idea_at, ideas_of, is_setup, shown_source
from steinlab.lesson.live_stage import LiveStage
from steinlab.lesson.output import Output
from steinlab.lesson.reading import Cell, Lesson, Reading, lessons, read_lesson, run, stands_alone, texts
from steinlab.notebook import chart, colour, hidden, shades, stage, steps, table
from steinlab.pages.lessons.page import LINK, At
from steinlab.pages.notation import SYMBOLS, everything, symbols
from steinlab.pages.notation.corrections import CORRECTIONS
from steinlab.pages.start import front
from steinlab.shell import PAGES, fields, page_of
from steinlab.stage.live_page import PRESETS
from steinlab.stage.setup import Setup
from steinlab.ui import link as links
from steinlab.ui.colours import look_of
from steinlab.ui.text import Text, markdown_html
from steinlab.ui.theme import TOKENS

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
REGISTRIES = (TARGETS, METHODS, GUIDES, KERNELS, BANDWIDTHS, OPTIMIZERS, FORCE_SCALES, DIAGNOSTICS)
IDS = [path.stem for path in NOTEBOOKS]
COSTLY = ("06", "07", "09", "10", "11", "12", "13", "14", "15")  # 20 to 60 seconds of processor each


def cells_of(path, kind):
    return [cell for cell in json.loads(path.read_text())["cells"] if cell["cell_type"] == kind]


# ---- the notebooks


@pytest.mark.parametrize("path", NOTEBOOKS, ids=IDS)
def test_a_notebook_is_as_committed_and_can_be_served(path):
    notebook = json.loads(path.read_text())
    facts = notebook["metadata"]["steinlab"]
    assert 1 <= facts["minutes"] < 10 and facts["title"] and facts["question"].endswith("?")
    assert notebook["nbformat"] == 4 and notebook["metadata"]["kernelspec"]["name"] == "python3"
    first = "".join(notebook["cells"][0]["source"])
    assert first.startswith(f"# {facts['title']}\n") and f"**{facts['question']}**" in first
    shown = 0
    for cell in cells_of(path, "code"):
        source = "".join(cell["source"])
        assert cell["outputs"] == [] and cell["execution_count"] is None, "clear the outputs before a commit"
        assert not re.search(r"^\s*[%!]", source, re.MULTILINE), "a magic breaks a served notebook"
        assert "://" not in source, "nothing is loaded from elsewhere"
        ast.parse(source)
        if "hidden(" in source:
            assert cell["metadata"].get("jupyter", {}).get("source_hidden"), "the code would give the solution away"
        shown += source.rstrip().endswith(".servable()")
    assert "start()" in "".join(cells_of(path, "code")[0]["source"]) and shown >= 2
    code = "".join("".join(cell["source"]) for cell in cells_of(path, "code"))
    assert '"black"' not in code and '"white"' not in code, (
        "what is drawn has to be seen in the dark theme and in the light one"
    )
    assert not re.search(r"#[0-9a-fA-F]{6}", code), "a method's colour is `colour(name)`: it changes with the theme"
    assert "play=True" not in code, "a stage waits for Play: nothing has moved before anybody looks"
    for cell in cells_of(path, "markdown"):
        source = "".join(cell["source"])
        try:  # Panel pastes it like this into the script that it serves
            with warnings.catch_warnings(action="ignore"):
                ast.parse(f'"""{source}"""')
        except SyntaxError:
            pytest.fail(rf"no \u, \x, \N or triple quotes in text: `panel serve` would not start. In: {source[:200]}")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=IDS)
def test_each_idea_is_a_question_with_one_figure(path):
    lesson = read_lesson(path)
    ideas = ideas_of(lesson)
    assert ideas[0].question == lesson.question and 4 <= len(ideas) <= 9
    assert [idea.start for idea in ideas] == [0, *[idea.stop for idea in ideas[:-1]]]
    assert ideas[-1].stop == len(lesson.cells)
    for idea in ideas:
        cells = lesson.cells[idea.start : idea.stop]
        assert idea.question.endswith("?") and not cells[0].code
        figures = [c for c in cells if c.code and c.source.endswith(".servable()") and "hidden(" not in c.source]
        assert len(figures) <= 1, idea.question
        words = [len(cell.source.split()) for cell in cells if not cell.code]
        assert words[0] < 130 or not figures, "the text before a figure leaves room for it"
        names = [name for cell in cells if not cell.code for name in re.findall(r"\]\(scrub:([^)]+)\)", cell.source)]
        for name in names:  # a number in the text moves a control of the same idea's figure
            assert f'"{name}"' in figures[0].source or f"{name}=" in figures[0].source, name
    captions = sum(cell.source.startswith("> ") for cell in lesson.cells)
    assert captions >= 2
    if path.name[:2] in ("02", "03", "07"):
        assert "](scrub:" in str(lesson.cells) and "](lights:repulse)" in str(lesson.cells)


def test_lessons_one_to_four_say_why_the_variance_collapses():
    said = "".join(cell.source for key in ("02", "04") for cell in lessons()[key].cells if not cell.code)
    for sentence in (
        "So push divided by pull falls by $s^2$",
        "all true draws are about equally far apart",
        "so every neighbour counts the same, $1/n$",
        "it falls like $1/\\sqrt{d}$. The pull grows like $\\sqrt{d}$",
        "\\text{variance} = s^2 \\approx \\frac{\\ln n}{d}",
    ):
        assert sentence in said, sentence


@pytest.mark.rare
def test_the_largest_alpha_at_which_two_guides_stay_is_the_one_that_is_said():
    lesson = "".join(cell.source for cell in lessons()["08"].cells if not cell.code)
    corrections, presets = "".join(c.holds for c in CORRECTIONS), "".join(p["text"] for p in PRESETS["location"])
    for text, words in (
        (lesson, "In two dimensions runs stay at this point up to alpha = 1.14."),
        (lesson, "In one dimension there is no axis across, and the point holds up to alpha = 2.14."),
        (corrections, "up to $\\alpha = 1.14$ (`median_log`) or $4.27$ (`numpyro`)"),
        (presets, "Above alpha = 1.14 one guide narrows on an axis"),
    ):
        assert words in text
    for dim, rule, alpha in ((2, "median_log", 1.14), (1, "median_log", 2.14), (2, "numpyro", 4.27)):
        knobs = {"method.particles": 2, "bandwidth.rule": rule}
        sides = [{**knobs, "method.alpha": alpha + side} for side in (-0.01, 0.01)]
        assert [two_guides(Spec("gaussian", dim, "smi"), side).stable for side in sides] == [True, False]


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, marks=pytest.mark.rare if path.stem[:2] in COSTLY else pytest.mark.long, id=path.stem)
        for path in NOTEBOOKS
    ],
)
def test_a_notebook_runs_from_its_top_to_its_end(path, monkeypatch, optimized):
    monkeypatch.setenv("STEINLAB_FAST", "1")
    namespace, shown, names = {"__name__": "__main__"}, 0, [list(registry) for registry in REGISTRIES]
    for cell in read_lesson(path).cells:
        if cell.code:
            with use_host(NotebookHost(lambda call: call(), lesson=True)):
                result = run(cell.source, namespace)
            assert not result.problem, f"{cell.source}\n{result.problem}"
            if cell.source.rstrip().endswith(".servable()"):
                assert result.shown is not None, cell.source
                assert not result.shown.settle(300), cell.source
                shown += 1
    assert len(texts(read_lesson(path))) == shown + 1
    for asked in (one for cell in read_lesson(path).cells for one in cell.predictions if one.check):
        came = eval(asked.check, namespace)
        assert came if asked.choices else asked.right[0] <= came <= asked.right[1], (asked.ask, came)
    assert [list(registry) for registry in REGISTRIES] == names  # they are the whole server's


@pytest.mark.long
def test_a_notebook_runs_in_a_kernel(monkeypatch):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    monkeypatch.setenv("STEINLAB_FAST", "1")
    notebook = nbformat.read(NOTEBOOKS[0], 4)
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(ROOT)}}).execute()
    text = json.dumps(notebook)
    assert "Open in Particles" in text and "<details>" in text
    assert "dist/css/loading.css" not in text and "bundled/theme" not in text  # Panel takes these from a CDN


def test_lessons_come_in_order():
    assert [int(key) for key in lessons()] == list(range(1, len(lessons()) + 1))


# ---- a visitor's way through one


def reading(*sources):
    told, done = [], threading.Event()

    def hear(index, result):
        told.append((index, result))
        done.set()

    lesson = Lesson("99", "T", 1, "Q?", tuple(Cell(True, source) for source in sources))
    return Reading(lesson, NotebookHost(lambda call: call(), lesson=True), hear), told


def test_cells_run_in_order_each_once_and_what_they_print_is_shown():
    one, told = reading("n = 1", "n += 1\nprint('n', n)", "n")
    one.run_to(1)
    one.run_to(4)  # the page asks for one more than it shows, at the end too
    until(lambda: len(told) == 3 and not one._running)
    assert [index for index, _ in told] == [0, 1, 2]
    assert told[1][1].text == "n 2" and told[2][1].text == "2"


def test_a_stage_on_screen_waits_for_no_cell_before_it():
    plain = 'stage("target=gaussian&methods=svgd", sliders=()).servable()'
    assert stands_alone(plain) and not stands_alone('stage(f"target={t}")') and not stands_alone("draw(1)")
    one, told = reading("import time; time.sleep(0.3)", "n = 1", plain, "n")
    one.run_to(4, range(2, 3))
    until(lambda: len(told) == 4)
    assert [index for index, _ in told] == [2, 0, 1, 3] and told[3][1].text == "1"
    assert isinstance(told[0][1].shown, LiveStage)
    one.close()


def test_an_error_is_a_sentence_and_what_follows_waits():
    one, told = reading("n = 1", "n / 0", "n")
    one.run_to(3)
    until(lambda: len(told) == 2)
    time.sleep(0.05)
    assert told[1][1].problem == "ZeroDivisionError: division by zero" and len(told) == 2
    one.run_to(3)  # it is tried again
    until(lambda: len(told) == 3)
    assert told[2][0] == 1


def test_two_visitors_do_not_share_names():
    (one, told), (other, heard) = reading("n = 1", "n"), reading("n")
    one.run_to(2)
    other.run_to(1)
    until(lambda: len(told) == 2 and len(heard) == 1)
    assert "NameError" in heard[0][1].problem


def test_a_closed_reading_runs_nothing_more():
    one, told = reading("import time; time.sleep(0.2)", "1")
    one.run_to(2)
    one.close()
    time.sleep(0.4)
    assert len(told) <= 1


# ---- ideas


def lesson_of(*cells, question="Q?"):
    return Lesson(
        "99", "T", 1, question, tuple(Cell(not c.startswith(("#", "text", ">")), c) for c in cells), NOTEBOOKS[0]
    )


OPENING = "# T\n\n**Q?**\n\ntext"


def test_a_heading_begins_an_idea_and_the_setup_is_not_shown():
    one = lesson_of(OPENING, "import x\n\nstart()", "a = 1\nb = 2", "> caption", "## Why?\n\ntext", "c", "text", "d\ne")
    first, second = ideas_of(one)
    assert (first.question, first.start, first.stop) == ("Q?", 0, 4)
    assert (second.question, second.start, second.stop) == ("Why?", 4, 8)
    assert first.code == "a = 1\nb = 2" and first.lines == 2 and second.code == "c\n\nd\ne"
    assert [is_setup(cell) for cell in one.cells].index(True) == 1 and shown_source(one, 0) == "# Q?\n\ntext"
    assert [idea_at(one, count) for count in (0, 1, 4, 5, 8, 99)] == [0, 0, 0, 1, 1, 1]


def test_code_that_gives_a_solution_away_stays_hidden_and_code_that_is_the_lesson_is_text():
    cells = (Cell(False, "# T"), Cell(True, "a"), Cell(True, "b", folded=True), Cell(True, "c", open=True))
    assert ideas_of(Lesson("99", "T", 1, "Q?", cells))[0].code == "a"
    assert any(cell.open for cell in lessons()["05"].cells)


def test_links_of_a_lesson_old_and_new():
    read = lambda **query: links.read(LINK, query, At("01"))  # noqa: E731
    assert read(lesson="2", idea="3") == (At("02", 3), {}) and read(lesson="02", cell="5") == (At("02", None, 5), {})
    assert links.write(LINK, At("02", 3), At("02", 3)) == "lesson=02&idea=3"
    assert "no lesson" in read(lesson="99")[1]["lesson"]


def test_what_is_around_an_idea():
    one = lesson_of(OPENING, "a\nb", "## <Why>?", "c", "## How?")
    code = foot(one, ideas_of(one)[0])
    assert "Show code <small>2 lines" in code and "<details open" not in code and 'data-remember="code"' in code
    assert f"jupyter lab notebooks/{NOTEBOOKS[0].name}" in code and f'download="{NOTEBOOKS[0].name}"' in code
    assert "Show code" not in foot(one, ideas_of(one)[2])
    row = bars("99", ideas_of(one), shown=1, far=2)
    assert row.count("<a ") == 3 and row.count("aria-current") == 1 and row.count('class="seen"') == 1
    assert "idea=2" in row and "&lt;Why&gt;?" in row
    done = listing("02", {"01": len(ideas_of(lessons()["01"]))})
    assert done.count("✓") == 1 and done.count("aria-current") == 1


# ---- numbers and words of a text


def test_a_number_and_a_word_of_a_text_are_live_on_the_page_and_plain_elsewhere():
    source = (
        "[20](scrub:method.particles) feel the [push *of all*](lights:repulse), see [here](?page=wave) [x](lights:b)"
    )
    live, plain = markdown_html(source, live=True), markdown_html(source)
    assert '<span data-dial="method.particles">20</span>' in live
    assert 'class="lights repulse" data-lights="repulse" role="button" tabindex="0">push <em>of all</em></span>' in live
    assert "data-" not in plain and 'class="repulse">push' in plain and "<span>20</span>" in plain
    for made in (live, plain):
        assert '<a href="?page=wave">here</a>' in made and '<a href="lights:b">x</a>' in made


def test_a_text_tells_what_was_dragged_and_lit():
    told = []
    made = Text(on_dial=lambda *move: told.append(move), on_light=told.append)
    for message in ({"dial": "n", "steps": 2}, {"dial": "n", "value": 30.0}, {"light": "attract"}, {"light": "other"}):
        made._handle_msg(message)
    assert told == [("n", 2, None), ("n", 0, 30.0), "attract"]


@pytest.mark.parametrize("jupyter", [True, False])
def test_a_number_reads_and_moves_its_control(jupyter):
    whole, even = control("n_all", (2, 40, 20), jupyter), control("slope", (0.2, 1.2, 0.5), jupyter)
    log, choice = control("alpha", (0.01, 10.0, 1.0, "log"), jupyter), control("rule", ["a", "b", "c"], jupyter)
    assert dials.read(whole) == {"label": "n all", "value": 20, "low": 2, "high": 40, "text": "20"}
    assert dials.read(choice)["value"] == 0 and dials.read(choice)["text"] == "a"
    for made, steps_, value, expected in (
        (whole, 3, None, 23), (whole, 99, None, 40), (whole, 0, 7.2, 7), (whole, 0, -1e9, 2), (even, 1, None, 0.51),
        (log, 0, 9999.0, 10.0), (log, -1, None, 7.94), (choice, 2, None, "c"), (choice, 0, 1.0, "b"),
    ):  # fmt: skip
        dials.move(made, steps_, value)
        assert made.value == (pytest.approx(expected) if isinstance(expected, float) else expected)
    assert type(whole.value) is int


def test_a_word_lights_the_arrows_of_a_stage_and_a_number_moves_its_knob():
    made = stage("target=gaussian&methods=svgd", sliders=("method.particles", "method.alpha"))
    made.light("repulse")
    assert made.stage.lit == "repulse"
    made.light("")
    assert made.stage.lit == ""
    dials.move(made.dials["method.particles"], 0, 33.0)
    assert made.knobs["method.particles"].value == 33
    Output().light("attract")  # what has no arrows has nothing to light


# ---- outputs


def test_a_stage_takes_a_setup_or_a_links_text_and_says_what_is_wrong():
    made = stage("target=banana&methods=svgd&method.particles=50", sliders=("method.alpha", "kernel.name"))
    assert made.setup == Setup("banana", ("svgd",), knobs={"method.particles": 50})
    assert made.link == "app?target=banana&methods=svgd&method.particles=50"
    assert list(made.knobs) == ["method.alpha", "kernel.name"]
    for arguments, message in (
        (("target=bannana",), "did you mean 'banana'"),
        (("target=banana", ("method.alfa",)), "did you mean 'method.alpha'"),
        (("target=banana", (), ("attrakt",)), "did you mean 'attract'"),
    ):
        with pytest.raises(ValueError, match=message):
            stage(*arguments)


def test_a_stage_of_samplers_has_their_words_and_opens_their_page():
    made = stage("target=unbalanced&methods=ksivi", marks=("attract", "draws"))
    assert made.link.startswith("app?page=samplers&target=unbalanced") and "Open in Samplers" in made.onward.object
    assert made.stage.marks["attract"] == "target's score" and made.stage.marks["repulse"] == "score of the noise"
    both = stage("target=unbalanced&methods=ksivi,svgd")
    assert "Open in Particles" in both.onward.object and both.stage.marks["attract"] == "attraction"


def curve(height=1.0, broken=False):
    if broken:
        raise ValueError("too steep")
    made = figure(title=f"height {height}")
    made.line([0, 1], [0, height])
    return made


def test_a_chart_keeps_its_figure_changes_it_in_place_and_says_what_failed():
    made = chart(curve, height=(0.0, 2.0, 1.0), broken=[False, True])
    assert made.settle() == ""
    first = made.figure[0].object
    made.controls["height"].value = 2.0
    assert made.settle() == "" and made.figure[0].object is first
    assert first.renderers[0].data_source.data["y"][1] == 2.0 and first.title.text == "height 2.0"
    until(lambda: made.line.object == IDLE)
    made.controls["broken"].value = True
    assert made.settle() == "ValueError: too steep" and made.said.visible
    assert made.figure[0].object is first


def test_a_figure_of_holoviews_is_painted_without_webgl():
    made = chart(lambda: hv.Curve([1, 2, 3]) + hv.Curve([3, 2, 1]))
    assert made.settle() == ""
    plots = list(made.figure[0].object.select({"type": Plot}))
    assert len(plots) == 2 and {plot.output_backend for plot in plots} == {"canvas"}


def test_no_two_of_many_curves_look_alike():
    made = chart(
        lambda height: hv.Overlay([hv.Curve([i, height], label=f"{i}") for i in range(7)]), height=(0.0, 2.0, 1.0)
    )
    assert made.settle() == ""
    lines = [line for line in made.figure[0].object.select({"type": Line}) if line.line_alpha == 1.0]
    assert len({(line.line_color, str(line.line_dash)) for line in lines}) == 7


def test_a_figure_has_the_colours_of_the_theme_before_and_after_a_drawing():
    light, dark = look_of("smi").colour, look_of("smi").dark
    assert colour("smi") == light and colour("attract") == TOKENS["light"]["attract"]
    with pytest.raises(ValueError, match="smj"):
        colour("smj")

    def draw(height):
        image = hv.Image(np.eye(3)).opts(cmap=shades())
        return image * hv.Curve([0, height]).opts(color=colour("smi"))

    def seen():
        root = made.figure[0].object
        palettes = [list(scale.palette) for scale in root.select({"type": LinearColorMapper})]
        return {line.line_color for line in root.select({"type": Line})}, palettes

    made = chart(draw, height=(0.0, 2.0, 1.0))
    assert made.settle() == "" and seen() == ({light}, [SHADES["light"]])
    made.darken(True)
    assert seen() == ({dark}, [SHADES["dark"]])
    made.controls["height"].value = 2.0
    assert made.settle() == "" and seen() == ({dark}, [SHADES["dark"]])
    made.darken(False)
    assert seen() == ({light}, [SHADES["light"]])


def test_a_chart_has_no_tools_readable_text_and_if_asked_one_unit():
    made = chart(lambda: hv.Image(np.eye(3)) * hv.Ellipse(0, 0, 1), equal=True)
    assert made.settle() == ""
    plot = made.figure[0].object
    assert plot.toolbar_location is None and plot.axis[0].major_label_text_font_size == "13px" and plot.match_aspect
    assert isinstance(plot.x_range, DataRange1d) and isinstance(plot.y_range, DataRange1d)


def test_a_chart_leaves_the_pages_of_others_alone():
    """While it is drawn on its thread, the event loop is at work on some page."""
    page = Document()
    theme = page.theme
    with patch_curdoc(page):
        assert not chart(lambda: hv.Curve([1, 2, 3])).settle()
    assert page.theme is theme


def test_a_chart_draws_off_the_calling_thread_and_the_newest_values_win():
    seen = []

    def slow(n):
        seen.append((n, threading.current_thread().name))
        time.sleep(0.2)
        return curve(n)

    made = Chart(slow, "", {"n": (0, 50, 0)})
    until(lambda: seen)
    for n in range(1, 30):
        made.controls["n"].value = n
    assert made.settle() == ""
    assert [n for n, _ in seen] == [0, 29] and all(name.startswith("chart") for _, name in seen)


@pytest.mark.parametrize("jupyter", [True, False])
def test_a_logarithmic_control_has_its_default_and_even_steps(jupyter):
    slider = control("alpha", (0.001, 30.0, 1.0, "log"), jupyter)
    stops = np.array(slider.options)
    assert slider.value == 1.0 and (stops[0], stops[-1]) == (0.001, 30.0)
    ratios = stops[1:] / stops[:-1]
    assert ratios.max() < 1.3 and len(stops) < 60


@pytest.mark.parametrize("draw", [curve, lambda height=1.0: hv.Curve([0, height])], ids=["Bokeh", "HoloViews"])
def test_a_chart_keeps_what_the_page_has_made_of_its_design(draw):
    made = chart(draw, height=(0.0, 3.0, 1.0))
    assert made.settle() == ""
    page, plot = Document(), made.figure[0].object
    page.theme = Theme(
        json={"attrs": {"Plot": {"background_fill_color": "#111111"}, "Axis": {"axis_line_color": "#eeeeee"}}}
    )
    page.add_root(plot)
    plot.xaxis[0].axis_label_text_color = "#123456"  # as the browser does when the theme is switched
    assert plot.background_fill_color == "#111111"
    for height in (2.0, 3.0):
        made.controls["height"].value = height
        assert made.settle() == "" and made.figure[0].object is plot
        assert plot.renderers[0].data_source.data["y"][1] == height
        assert (plot.background_fill_color, plot.yaxis[0].axis_line_color) == ("#111111", "#eeeeee")
        assert plot.xaxis[0].axis_label_text_color == "#123456"


def test_what_a_drawing_sets_no_more_has_its_default_again():
    def draw(warn):
        made = curve()
        if warn:
            made.yaxis.axis_label_text_color = "#ff0000"
        return made

    made = chart(draw, warn=[True, False])
    assert made.settle() == ""
    plot = made.figure[0].object
    made.controls["warn"].value = False
    assert made.settle() == "" and made.figure[0].object is plot
    assert plot.yaxis[0].axis_label_text_color == "#444444"


def test_figures_of_another_build_are_not_taken_over():
    first, second = curve(), curve()
    second.scatter([0], [0])
    remember(first)
    remember(second)
    assert not take_over(first, second)
    assert len(first.renderers) == 1


def test_tables_and_hidden_blocks_are_not_markup_of_the_author():
    cell = table([{"<b>": "<i>", "x": 1.23456}], "<u>")[0].html
    assert "&lt;b&gt;" in cell and "&lt;i&gt;" in cell and "1.235" in cell and "&lt;u&gt;" in cell
    made = hidden("How?", "With $x^2$ and `code`.")
    assert made[0].html.startswith("<details>") and r"\(x^2\)" in made[0].html
    assert "<script>" not in markdown_html("<script>alert(1)</script>")


def test_fast_shortens(monkeypatch):
    monkeypatch.delenv("STEINLAB_FAST", raising=False)
    assert steps(1000) == 1000
    monkeypatch.setenv("STEINLAB_FAST", "1")
    assert steps(1000) == 100 and steps(3) == 2


# ---- the front page, the notation, the README


def test_a_link_finds_its_page():
    assert page_of({}) == page_of({"theme": "dark"}) == "index"
    assert page_of({"target": "ring"}) == page_of({"page": "nowhere", "target": "ring"}) == "particles"
    assert page_of({"page": "lessons", "lesson": "02"}) == "lessons" and page_of({"page": "nowhere"}) == "index"
    assert fields({"page": "lessons", "theme": "dark", "lesson": "02"}) == {"lesson": "02"}


def links_of(text):
    return re.findall(r'href="\?([^"]*)"', text)


def test_every_link_of_the_front_page_and_of_the_notation_leads_somewhere():
    listed = [key for key, entry in PAGES.items() if entry.sentence]
    assert {*listed, "index", "lessons"} == set(PAGES)
    found = links_of(front(PAGES)) + links_of(everything())
    assert set(listed) <= {link.removeprefix("page=") for link in found}
    assert len(found) > len(lessons()) + len(listed) + len(CORRECTIONS) / 2
    for link in found:
        query = dict(part.split("=", 1) for part in link.replace("&amp;", "&").split("&"))
        assert query.get("page", "particles") in PAGES, link
        assert "lesson" not in query or query["lesson"] in lessons()
        if query.get("page", "location") == "location":
            assert not Setup.from_query(fields(query))[1], link


NUMBERS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen"
)


def test_the_readme_lists_the_pages_and_counts_the_lessons():
    text = (ROOT / "README.md").read_text()
    table = text[text.index("## The pages") : text.index("## In Python")]
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \|$", table, re.MULTILINE)[1:]
    assert rows == [label for key, (label, *_) in PAGES.items() if key != "index"]
    assert f"{NUMBERS.split()[len(lessons())].capitalize()} short lessons" in text
    assert len(re.findall(r"^\d+\. \[", (ROOT / "notebooks" / "README.md").read_text(), re.MULTILINE)) == len(lessons())


def test_the_notation_is_that_of_the_code():
    assert [row[0] for row in symbols()] == list(SYMBOLS)
    page = everything()
    for name in ("method.alpha", "svgd", "imq", "median_log", "banana", "mixture_elbo"):
        assert f"<code>{name}</code>" in page
    of_draws = [e for e in DIAGNOSTICS.entries() if e.facts.reads == "draws"]
    assert page.count(">draws and scores") == len(of_draws) > 1
    assert page.count("on all data") == sum(e.facts.full_data for e in DIAGNOSTICS.entries()) > 0
    for _, (_, _, where) in SYMBOLS.items():
        for file in where.split(", "):
            assert (ROOT / "stein_core" / file).exists(), file


TEXT = "\n".join((ROOT / name).read_text() for name in ("README.md", "stein_core/README.md", "CONTRIBUTING.md"))


@pytest.mark.long
def test_the_readmes_code_runs(monkeypatch, capsys, optimized):
    monkeypatch.setattr(TARGETS, "_entries", dict(TARGETS._entries))  # one block registers a target
    blocks = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    assert len(blocks[0].strip().splitlines()) <= 10
    printed = []
    for block in blocks:
        if "import" in block:  # the others are pieces of the code
            exec(compile(block, "README.md", "exec"), {"__name__": "__main__"})
            printed.append(capsys.readouterr().out.split())
    assert float(printed[0][-1]) == pytest.approx(np.log(20) / 50, rel=5e-3) and len(printed) == 4
    method = next(block for block in blocks if "METHODS.register" in block)
    assert method in (ROOT / "stein_core" / "methods" / "ensemble.py").read_text()


@pytest.mark.long
def test_the_readmes_commands_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(TARGETS, "_entries", dict(TARGETS._entries))
    monkeypatch.setattr(sys, "path", list(sys.path))
    own = next(block for block in re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL) if "from_numpyro(" in block)
    (tmp_path / "my_model.py").write_text(own)
    lines = re.findall(r"^\.venv/bin/python -m stein_core (.*)", TEXT, re.MULTILINE)
    assert len(lines) == 13  # sweeps, NUTS, recordings and long runs are in the command line's own tests
    for line in lines:
        command = shlex.split(line, comments=True)
        if command[0] in ("list", "info", "--import") or "ring" in command:
            assert main(command) == 0, line
    assert (tmp_path / "frames.npz").exists()


def test_the_readme_fits_on_a_screen_or_two_and_what_it_links_to_is_there():
    assert len((ROOT / "README.md").read_bytes()) <= 6000
    for page in ROOT.glob("**/*.md"):
        if not any(part.startswith(".") for part in page.relative_to(ROOT).parts):
            for link in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
                assert (page.parent / link).exists(), (page, link)


def test_a_lesson_that_was_left_compiles_nothing_more(monkeypatch):
    """The first program cannot be stopped; the second one, and those of cells and charts, never begin."""
    begun = []

    def compile_one(spec, measure):
        begun.append(spec.method)
        made.close()
        with in_pieces(rest_of_this_thread()):
            Stepper(spec).prepare()

    monkeypatch.setattr(live_stage, "compile", compile_one)
    compiled = []  # on these threads: another test's page may still compile
    monkeypatch.setattr(Stepper, "reset", lambda *_: compiled.append(threading.current_thread()))
    made = stage(Setup("gaussian", ("svgd", "smi")))
    made.prepare()
    assert begun == ["svgd"] and threading.current_thread() not in compiled


def test_a_stage_whose_picture_is_cleared_can_be_paused():
    made = stage(Setup("gaussian", ("svgd", "smi")))
    made.session = Mock(begun=True)
    made.stage.scene = {}  # as while another target's program compiles
    made.pause()
    made.resume()
    assert made.session.sleep.called and made.session.wake.called
    made.session.begun = False
    made.session.reset_mock()
    made.pause()
    assert not made.session.sleep.called
