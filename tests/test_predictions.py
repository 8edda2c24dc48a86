"""Predictions of the lessons: how they are read and shown. Whether answers are right: test_lessons.py."""

import json
from html import unescape

import pytest

from steinlab.lesson.predictions import FIELD, field_html, read_prediction, scores_html
from steinlab.lesson.reading import keys_of, lessons, text_html, texts

CHOICE = {"ask": "Which?", "because": "So.", "choices": ["a", "b"], "answer": 1}
NUMBER = {"ask": "How much?", "because": "So.", "low": 0, "high": 2, "right": [0.9, 1.1], "answer": 1}


def facts(html: str) -> dict:
    return json.loads(unescape(html.partition('data-predict="')[2].partition('"')[0]))


def test_every_lesson_asks_twice_at_least_and_each_field_has_its_question():
    for key, lesson in lessons().items():
        assert len(keys_of(lesson)) >= 2, key
        for index, cell in enumerate(lesson.cells):
            assert cell.source.count(FIELD) == len(cell.predictions), (key, index)
            assert all(one.check or one.choices for one in cell.predictions), (key, index)  # a number is computed
        assert len(set(keys_of(lesson))) == len(keys_of(lesson))


def test_a_lesson_that_was_served_by_itself_asks_too():
    lesson = lessons()["04"]
    first = texts(lesson)[0]
    assert facts(first)["answer"] == 4 and 'data-key="04.1"' in first and FIELD not in first


def test_the_text_around_a_field_is_kept():
    lesson = lessons()["15"]
    index = next(i for i, cell in enumerate(lesson.cells) if cell.predictions)
    made = text_html(lesson, index, f"before\n\n{FIELD}\n\nafter", runs=True)
    assert made.startswith("<p>before</p>") and made.endswith("<p>after</p>\n") and "data-runs" in made


def test_only_a_prediction_that_can_be_right_is_read():
    assert read_prediction(CHOICE).choices == ("a", "b") and read_prediction(NUMBER).right == (0.9, 1.1)
    with pytest.raises(ValueError, match="answer = 2; allowed: 0 to 1"):
        read_prediction(CHOICE | {"answer": 2})
    with pytest.raises(ValueError, match="must lie in right"):
        read_prediction(NUMBER | {"answer": 1.5})
    with pytest.raises(TypeError, match="tolerance"):
        read_prediction(NUMBER | {"tolerance": 1})


def test_what_a_question_says_is_text_and_never_markup():
    made = field_html("k", read_prediction(CHOICE | {"ask": '"><script>1</script>'}), False)
    assert "<script>" not in made and facts(made)["ask"] == '"><script>1</script>' and "check" not in facts(made)
    assert json.loads(facts_of_scores(scores_html(["01.1"], 'a "card"'))) == ["01.1"]


def facts_of_scores(html: str) -> str:
    return unescape(html.partition('data-scores="')[2].partition('"')[0])
