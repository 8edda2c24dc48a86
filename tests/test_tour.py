"""The tour of a page: its stops, their captions and what is said of them."""

from types import SimpleNamespace

import panel as pn

from stein_core import METHODS
from steinlab.stage.lecture import Lecture
from steinlab.stage.setup import Setup
from steinlab.stage.tour import Tour
from steinlab.stage.transport import Transport
from steinlab.ui.legend import coloured

STOPS = [{"name": name, "caption": f"Where is {name}?", "text": f"It is {name}."} for name in ("one", "two", "three")]


def test_the_tour_goes_from_stop_to_stop_and_round_its_ends():
    opened = []
    tour = Tour(STOPS, lambda stop: opened.append(stop["name"]) or ["Not here."])
    assert tour.at == -1 and tour.text.object == "" and tour.names == ["1. one", "2. two", "3. three"]
    for by, name, number in ((1, "one", 1), (1, "two", 2), (-1, "one", 1), (-1, "three", 3), (1, "one", 1)):
        tour.move(by)
        assert opened[-1] == name and tour.at == number - 1
    assert "Where is one?" in tour.text.object and "It is one. Not here." in tour.about.object
    tour.lecture(True)
    assert "1 / 3" in tour.text.object
    tour.leave()
    assert tour.text.object == tour.about.object == "" and tour.at == -1 and len(opened) == 5
    tour.open(1)
    assert opened[-1] == "two" and len(opened) == 6
    tour.at_stop(2)
    assert tour.at == 2 and len(opened) == 6  # it runs already


def test_names_of_methods_have_their_colours_and_markup_is_text():
    text = coloured("SMI beats <SVGD>, not ASMI.")
    for name in ("svgd", "smi"):
        light, dark = METHODS[name].facts.colour
        assert f"light-dark({light}, {dark})" in text
    assert text.count("<b ") == 2 and "&lt;" in text and text.endswith(", not ASMI.")


def test_the_sliders_of_a_lecture_are_those_of_the_stop_that_opens():
    made = Transport(lambda: None, lambda name, value: None, lambda event: None, lambda dim: None)
    few = Setup(knobs={"method.alpha": 0.05, "method.particles": 12})
    plain = Setup()  # its knobs have their defaults, which a setup does not mention
    for setup, alpha, particles in ((few, 0.05, 12), (plain, 1.0, 20)):
        made.show({"setup": setup, "knobs": setup.knobs})
        assert (made.knobs["method.alpha"].value, made.knobs["method.particles"].value) == (alpha, particles)
    made.show({"knobs": {"method.alpha": 3.0}})
    assert (made.knobs["method.alpha"].value, made.knobs["method.particles"].value) == (3.0, 20)


def test_a_turned_knob_takes_the_caption_away_and_keeps_the_place():
    tour = Tour(STOPS, lambda stop: [])
    tour.changed()
    assert tour.text.object == ""
    tour.move(1)
    tour.changed()
    assert "Where is one?" not in tour.text.object and "one, changed" in tour.text.object and tour.about.object == ""
    tour.move(1)
    assert "Where is two?" in tour.text.object


def test_a_changed_stop_stays_changed_in_a_lecture_and_a_page_finds_its_stop():
    tour = Tour(STOPS, lambda stop: [])
    tour.find(1)
    assert "Where is two?" in tour.text.object and tour.at == 1
    tour.find(-1)
    tour.lecture(True)
    assert "two, changed" in tour.text.object and "Where is two?" not in tour.text.object and tour.at == 1
    tour.find(1)
    assert "Where is two?" in tour.text.object


def test_a_lecture_is_in_the_link_and_gives_every_component_its_place_back():
    on, rest, problems = Lecture.of_query({"lecture": "on", "width": "100"})
    assert (on, rest, problems) == (True, {"width": "100"}, [])
    on, _, problems = Lecture.of_query({"lecture": "loud"})
    assert not on and len(problems) == 1 and "loud" in problems[0]
    seen, ended = [], []
    presentation = SimpleNamespace(end=lambda: ended.append(True))
    shell = SimpleNamespace(lecture=seen.append, short=False, presentation=presentation)
    talk, usual, alone = Lecture(shell, lambda by: None, seen.append), pn.pane.HTML(""), pn.pane.HTML("", visible=False)
    talk.around.append(usual)
    talk.only.append(alone)
    assert talk.to_query("a=1") == "a=1" and not talk.leave.visible
    talk.toggle()
    assert talk.to_query("a=1") == "a=1&lecture=on" and talk.to_query("") == "lecture=on"
    assert alone.visible and talk.leave.visible and not usual.visible and seen == [True, True] and not ended
    talk.toggle()
    assert usual.visible and not alone.visible and seen[2:] == [False, False] and ended


def test_in_a_lecture_a_stop_asks_before_it_answers():
    held, opened = [], []
    stops = [{**STOPS[0], "ask": "Where may one be?"}, STOPS[1]]
    tour = Tour(stops, lambda stop: opened.append(stop["name"]) or [], held.append)
    tour.move(1)
    assert "Where is one?" in tour.text.object and not held  # outside a lecture it answers at once
    tour.lecture(True)
    tour.open(0)
    assert (
        tour.asked and held == [True] and "Where may one be?" in tour.text.object and "is one" not in tour.text.object
    )
    assert tour.about.object == ""
    tour.move(1)
    assert not tour.asked and held == [True, False] and "Where is one?" in tour.text.object and tour.at == 0
    tour.move(1)
    assert tour.at == 1 and not tour.asked and held == [True, False] and opened == ["one", "one", "two"]
    tour.move(-1)
    tour.changed()  # a knob was turned: the question is over
    assert not tour.asked and held[-1] is False
    tour.open(0)
    tour.lecture(False)
    assert not tour.asked and held[-1] is False and "Where is one?" in tour.text.object


def test_a_lecture_shows_no_slider_that_its_methods_do_not_have():
    made = Transport(lambda: None, lambda name, value: None, lambda event: None, lambda dim: None)
    made.lecture(True)
    for methods, alpha in ((("ksivi",), False), (("ksivi", "svgd"), True), (("svgd",), True)):
        made.show({"setup": Setup(methods=methods)})
        assert made.knobs["method.alpha"].visible == alpha and made.knobs["method.particles"].visible
        assert not made.knobs["target.weight"].visible
    made.show({"setup": Setup("unbalanced", ("ksivi",), knobs={"target.weight": 0.9})})
    assert made.knobs["target.weight"].visible and made.knobs["target.weight"].value == 0.9
    made.show({"setup": Setup(methods=("svgd",))})
    made.lecture(False)
    assert [name for name, knob in made.knobs.items() if knob.visible] == ["method.alpha"]  # on a phone
