"""A lecture over several pages: its link, its stops, and what prepares them."""

import time
from contextlib import contextmanager
from dataclasses import replace
from urllib.parse import parse_qsl

import pytest
from checks import until

from stein_core.runs.cache import start
from steinlab.contents import PAGES
from steinlab.lesson.playlist import LONGEST, MOST, Playlist, offered, place_of, read_playlist
from steinlab.pages.lecture import preparing
from steinlab.pages.lecture.page import shipped
from steinlab.pages.lecture.preparing import Preparing


def read(query: str):
    return read_playlist(dict(parse_qsl(query)), PAGES)


def test_a_lecture_and_its_notes_survive_their_link():
    made = Playlist(
        ("particles.1", "lessons.4.3", "particles?target=ring&methods=svgd,smi&method.alpha=0.3", "wave.2"),
        ("Say ~ this: 50 % & more?", "", 'über α = 1; then "wait"', ""),
        at=3,
    )
    again, rest, problems = read(made.to_query(notes=True))
    assert again == made and not problems and not rest
    again, _, problems = read(made.to_query())
    assert again == replace(made, notes=()) and not problems
    assert "notes" not in made.to_query()  # the audience sees this address


def test_every_stop_that_is_offered_opens_on_its_page_and_has_a_caption():
    found = offered(PAGES)
    assert len(found) == len(set(found.values())) > 100
    for title, name in found.items():
        place = place_of(name, PAGES)
        assert place.title == title and place.page in PAGES and place.caption
        assert len(place.ask) <= 60 and (not place.ask or place.ask.endswith("?"))
        if place.page not in ("lessons", "collapse"):
            build = PAGES[place.page].build
            setup = getattr(build, "setups", None)
            problems = (setup.from_query(place.query) if setup else _live(build, place.query))[1]
            assert not problems, name


def _live(build, query):
    from steinlab.stage.setup import Setup

    return Setup.from_query(query, build.plain)


@pytest.mark.parametrize(
    "name, said",
    [
        ("particle.1", "did you mean 'particles'"),
        ("particles.99", "allowed: 1 to 12"),
        ("lessons.99.1", "lesson '99'"),
        ("lessons.1.40", "idea of lesson 1 = 40 is out of range; allowed: 1 to 4"),
        ("particles", "is not of the form particles.1"),
        ("notation.1", "page with a tour"),
        ("nowhere?a=1", "page 'nowhere'"),
    ],
)
def test_a_wrong_stop_is_left_out_and_named(name, said):
    made, _, problems = read(Playlist(("wave.1", name), ("first", "second")).to_query(notes=True))
    assert made.play == ("wave.1",) and made.notes == ("first",) and len(problems) == 1 and said in problems[0]


def test_stops_move_with_their_notes():
    made = Playlist(("wave.1", "wave.2", "wave.3"), ("a", "b", "c"))
    assert made.lifted(2) == Playlist(("wave.1", "wave.3", "wave.2"), ("a", "c", "b"))
    assert made.lifted(0) == made
    assert made.without(1) == Playlist(("wave.1", "wave.3"), ("a", "c"))
    assert made.with_stop("wave.4").notes == ("a", "b", "c", "")
    assert made.noted(1, "x").notes == ("a", "x", "c")
    assert [made.moved(by).at for by in (-1, 1, 9)] == [1, 2, 3]
    with pytest.raises(ValueError, match="at most 40"):
        Playlist(("wave.1",) * (MOST + 1))
    with pytest.raises(ValueError, match=f"{LONGEST + 1} characters"):
        Playlist(("wave.1",), ("x" * (LONGEST + 1),))


def test_the_shipped_lecture_has_ten_stops_over_four_pages_and_takes_45_minutes():
    made = shipped()
    places = [place_of(name, PAGES) for name in made.play]
    assert len(places) == 10 and {place.page for place in places} == {"particles", "lessons", "collapse", "wave"}
    assert len({place.query["lesson"] for place in places if place.page == "lessons"}) >= 2
    assert sum(int(note.split(" min.")[0]) for note in made.notes) == 45


def wait(job):
    until(lambda: job.state != "running", pause=0.05)


def test_preparing_compiles_every_stop_and_says_what_failed(monkeypatch):
    link = "particles?target=gaussian&methods=svgd&method.particles=3"
    specs = place_of(link, PAGES)
    told = []
    real = preparing.prepare

    def prepare(place, build):
        if place.page == "wave":
            raise RuntimeError("no such program")
        return real(place, build)

    monkeypatch.setattr(preparing, "prepare", prepare)
    job = Preparing([link, "wave.1", "lessons.1.3"], PAGES, lambda: told.append(None))
    wait(job)
    assert job.state == "done" and job.done == 3 and len(told) >= 3
    assert len(job.failed) == 1 and "1-D wave 1" in job.failed[0] and "no such program" in job.failed[0]
    setup = PAGES["particles"].build
    from steinlab.stage.programs import capacity_of
    from steinlab.stage.setup import Setup

    made = Setup.from_query(specs.query, setup.plain)[0]
    spec = made.spec("svgd", capacity_of(made))
    assert start(spec, 0, {}) is None  # it is compiled


def test_preparing_lets_figures_have_their_turn(monkeypatch):
    inside, seen = [], []

    @contextmanager
    def at_work(unwanted):
        inside.append(True)
        yield
        inside.pop()

    monkeypatch.setattr(preparing, "background_work", at_work)
    monkeypatch.setattr(preparing, "prepare", lambda place, build: seen.append(bool(inside)) or settle)
    settle = lambda: seen.append(bool(inside))  # noqa: E731
    job = Preparing(["wave.1"], PAGES, lambda: None)
    wait(job)
    assert seen == [True, False] and job.done == 1 and not job.failed


def test_preparing_ends_when_it_is_cancelled(monkeypatch):
    begun = []

    def prepare(place, build):
        begun.append(place.title)
        while job.state == "running":
            time.sleep(0.01)

    monkeypatch.setattr(preparing, "prepare", prepare)
    job = Preparing(["wave.1", "wave.2"], PAGES, lambda: None)
    while not begun:
        time.sleep(0.01)
    job.cancel()
    until(lambda: not preparing.PREPARERS.busy, seconds=20)
    assert job.state == "cancelled" and len(begun) == 1
