"""The tour of a page: its stops, their captions and what is said of them."""

from app.stage.setup import Setup
from app.stage.tour import PROMPT, Tour
from app.stage.transport import Transport
from app.ui.legend import coloured
from stein_core import METHODS

STOPS = [{"name": name, "caption": f"Where is {name}?", "text": f"It is {name}."} for name in ("one", "two", "three")]


def test_the_tour_goes_from_stop_to_stop_and_round_its_ends():
    opened = []
    tour = Tour(STOPS, lambda stop: opened.append(stop["name"]) or ["Not here."])
    assert tour.select.value == PROMPT and tour.text.object == ""
    for by, name, number in ((1, "one", 1), (1, "two", 2), (-1, "one", 1), (-1, "three", 3), (1, "one", 1)):
        tour.move(by)
        assert opened[-1] == name and tour.select.value == f"{number}. {name}"
    assert "Where is one?" in tour.text.object and "It is one. Not here." in tour.about.object
    tour.lecture(True)
    assert "1 / 3" in tour.text.object
    tour.leave()
    assert tour.text.object == tour.about.object == "" and tour.select.value == PROMPT and len(opened) == 5
    tour.select.value = "2. two"
    assert opened[-1] == "two" and len(opened) == 6
    tour.at_stop(2)
    assert tour.select.value == "3. three" and len(opened) == 6  # it runs already


def test_names_of_methods_have_their_colours_and_markup_is_text():
    text = coloured("SMI beats <SVGD>, not ASMI.")
    for name in ("svgd", "smi"):
        light, dark = METHODS[name].facts.colour
        assert f"light-dark({light}, {dark})" in text
    assert text.count("<b ") == 2 and "&lt;" in text and text.endswith(", not ASMI.")


def test_the_sliders_of_a_lecture_are_those_of_the_stop_that_opens():
    made = Transport(lambda: None, lambda name, value: None, lambda event: None)
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
