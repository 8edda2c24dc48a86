"""Lessons on the site: what is written of them, and figures that were drawn before. A browser opens them in
test_essay_in_browser.py."""

import json
import random

import holoviews as hv
import numpy as np
import pytest
from bokeh.document import Document
from bokeh.models import ColumnDataSource, Plot

from steinlab.lesson.chart import Chart
from steinlab.lesson.host import NotebookHost, use_host
from steinlab.lesson.reading import FIELD, Cell, Lesson, lessons
from steinlab.notebook import stage
from steinlab.site.drawings import controls_of, drawings, spread
from steinlab.site.lessons import CHOSEN, listing, page_of, staged


def chart(draw, **controls) -> Chart:
    with use_host(NotebookHost(lambda call: None, lesson=True)):
        made = Chart(draw, "A figure", controls)
    assert made.settle() == ""
    return made


def draw(slope, kind):
    line = hv.Curve([(0, 0), (1, slope)], "x", "y")
    title = "steep" if slope > 1 else ""
    return line.opts(title=title, ylim=(0, 4 if kind == "wide" else 2))


@pytest.fixture(scope="module")
def drawn():
    made = chart(draw, slope=(0.0, 2.0, 0.5), kind=["usual", "wide"])
    controls = controls_of(made)
    return controls, [json.loads(json.dumps(each)) for each in drawings(made, controls)]


def test_the_changes_of_any_place_give_its_figure_from_any_other(drawn):
    controls, (themes, *changes) = drawn
    assert len(changes) == len(controls[0].values) * 2
    document = Document.from_json(themes["light"])
    order = [*range(len(changes))] * 2
    random.Random(0).shuffle(order)
    for place in order:
        document.apply_json_patch({"events": changes[place]})
        slope, kind = controls[0].values[place // 2], controls[1].values[place % 2]
        figure = document.roots[0]
        source = figure.select_one({"type": ColumnDataSource})
        np.testing.assert_allclose(source.data["y"], [0, slope], atol=1e-6)
        assert figure.y_range.end == (4 if kind == "wide" else 2)
        assert figure.title.text == ("steep" if slope > 1 else "")


def test_both_themes_are_drawn_without_the_classes_of_other_libraries(drawn):
    themes = drawn[1][0]
    assert all(one["defs"] == [] for one in themes.values())
    colours = {name: Document.from_json(one).roots[0].xaxis[0].axis_label_text_color for name, one in themes.items()}
    assert len({*colours.values()}) == 2
    lines = {
        name: Document.from_json(one).select_one({"type": Plot}).renderers[0].glyph for name, one in themes.items()
    }
    assert lines["light"].line_color != lines["dark"].line_color


def test_controls_are_drawn_at_their_ends_and_at_the_value_that_they_have_first(drawn):
    slope, kind = drawn[0]
    assert (slope.values[0], slope.values[slope.start], slope.values[-1]) == (0.0, 0.5, 2.0)
    assert kind.values == ("usual", "wide") and not kind.slider
    (between,) = controls_of(chart(lambda k: hv.Curve([0, k]), k=(0.3, 2.0, 0.5)))  # its steps are 0.017 long
    assert between.values[between.start] == 0.5 and between.facts()["texts"][between.start] == "0.5"
    assert spread(5, 2, 7) == [0, 1, 2, 3, 4]
    for start in (0, 1, 17, 99, 100):
        found = spread(101, start, 7)
        assert {0, start, 100} <= {*found} and found == sorted({*found}) and len(found) in (6, 7)


def test_a_figure_whose_parts_change_is_refused():
    made = chart(lambda n: hv.Overlay([hv.Curve([0, k]) for k in range(n)]), n=(1, 3, 2))
    with pytest.raises(ValueError, match="has other parts at .*; allowed on a site: the same parts everywhere"):
        list(drawings(made, controls_of(made)))


def lesson(*cells) -> Lesson:
    return Lesson("99", "A lesson", 1, "Why?", tuple(cells))


SETUP = "from steinlab.notebook import chart, hidden, stage, start, table\n\nstart()"


def test_a_lesson_is_told_with_its_stages_tables_and_solutions():
    own = 'stage("target=ring&methods=svgd&kernel.name=imq&steps=7", sliders=("method.alpha",)).servable()'
    page = page_of(
        lesson(
            Cell(False, "# A lesson\n\n**Why?**\n\nSee [the page](?page=notation) and [30](scrub:method.alpha)."),
            Cell(True, SETUP),
            Cell(True, own),
            Cell(True, 'table([{"n": 3}]).servable()'),
            Cell(False, "## And then?\n\nBecause $x^2$."),
            Cell(True, 'hidden("Solution", "It is so.").servable()', folded=True),
        )
    )
    figure = page.figures["99-2"]
    assert (figure.place.key, figure.methods, figure.steps, figure.sliders) == ("ring", ("svgd",), 7, ("method.alpha",))
    kernels = [one.name for one in figure.place.spec("svgd", 2).knobs()["kernel.name"].choices.entries()]
    assert figure.values == {"kernel.name": kernels.index("imq")} and kernels[0] != "imq"  # as programs have it
    assert page.body.count("<section>") == 2 and "<h1>Why?</h1>" in page.body and "?page=" not in page.body
    assert 'data-dial="method.alpha"' in page.body and "<td" in page.body and "It is so." in page.body


def test_what_goes_wrong_in_a_lesson_ends_the_site():
    with pytest.raises(RuntimeError, match="lesson 99, cell 1: ZeroDivisionError"):
        page_of(lesson(Cell(False, "# A"), Cell(True, "1 / 0")))
    with use_host(NotebookHost(lambda call: None, lesson=True)):
        made = stage("target=banana&methods=smi&guide=full")
    with pytest.raises(ValueError, match="guide=full.*allowed on a site: target, dim, methods, knobs, seed, steps"):
        staged(made)


def test_the_list_names_all_lessons_and_links_those_that_are_there():
    said = listing(CHOSEN, "02")
    assert said.count("<li") == len(lessons()) and said.count("<a ") == len(CHOSEN) - 1
    assert said.count("in the app") == len(lessons()) - len(CHOSEN)
    for key in CHOSEN:
        assert any(FIELD in cell.source for cell in lessons()[key].cells), key  # each asks before it shows
