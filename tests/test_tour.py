"""The tour of a page: its stops, their captions and what is said of them."""

from app.stage.tour import PROMPT, Tour, coloured
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
    assert text.count("<span") == 2 and "&lt;" in text and text.endswith(", not ASMI.")
