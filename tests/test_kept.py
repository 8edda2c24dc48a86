"""The pictures that come with the app: what pages and lessons open with before any program."""

import json
import re
import warnings
from unittest.mock import Mock

import numpy as np
import pytest

from stein_core import compile
from stein_core.sweep.keys import canonical
from steinlab import keep
from steinlab.lesson.reading import lessons
from steinlab.lesson.stand_in import everything, figure_of, key_of
from steinlab.pages.remedy.page import Remedy
from steinlab.pages.remedy.view import seen_before as numbers_before
from steinlab.pages.samplers.page import Samplers
from steinlab.pages.wave.setup import STEPS, WaveSetup
from steinlab.pages.wave.trained import SHIPPED, extra, seen_before
from steinlab.stage import kept
from steinlab.stage.programs import capacity_of
from steinlab.stage.session import Session

WANTED = list({one.key: one for one in keep.wanted()}.values())
PAGES = [one for one in WANTED if one.steps]


@pytest.mark.parametrize("one", WANTED, ids=lambda one: one.key)
def test_every_picture_is_there_and_is_of_the_present_recipe(one):
    picture = kept.kept(one.key)
    assert picture is not None, "run python -m steinlab.keep"
    recipes = [canonical(one.setup.recipe(method, capacity_of(one.setup))) for method in one.setup.methods]
    assert kept.recipes()[one.key] == (one.steps, json.loads(json.dumps(recipes)))
    panels = int(picture.frame[1])
    assert panels == len(picture.scene["cards"]) and picture.step == one.steps
    assert picture.frame[4] == one.steps  # the step of the first panel, see `steinlab.stage.wire.pack`
    assert picture.begun(7)[2] == 7 and picture.frame[2] == 1


def test_no_picture_is_kept_that_nobody_opens():
    assert kept.recipes().keys() == {one.key for one in WANTED}


@pytest.mark.long
@pytest.mark.parametrize("one", PAGES[:2], ids=lambda one: one.key)
def test_a_run_gives_the_picture_again(one):
    picture = kept.kept(one.key)
    about, arrays = keep.make(one)
    assert about["scene"]["cards"] == picture.scene["cards"]
    head = 8  # of the frame; then come the numbers and the particles
    np.testing.assert_allclose(arrays["frame"][head:], picture.frame[head:], atol=0.05, equal_nan=True)


def test_the_samplers_page_opens_on_a_small_loss_and_wrong_masses():
    picture = kept.kept(kept.key_of("samplers", Samplers.stops()[0]))
    last = picture.more[-1][0]
    losses = [moments[0]["loss"] for moments in picture.more[-20:]]
    assert abs(np.mean(losses)) < 0.01 and last["step"] == picture.step
    assert abs(last["truth"][1] - 0.9) < 0.02 and last["mass"][1] < 0.05  # all draws are in the other mode


def test_the_remedy_page_opens_on_particles_at_rest():
    moments = [map(numbers_before, each) for each in kept.kept(kept.key_of("remedy", Remedy.stops()[0])).more]
    svgd, line = zip(*moments)
    assert svgd[-1].variance == pytest.approx(0.06307, abs=1e-4)  # the law of 20 points in 50 dimensions
    assert np.mean([one.variance for one in line[-100:]]) == pytest.approx(0.763, abs=0.02)  # of one new line a step
    assert svgd[-1].step == keep.PAGES[Remedy] and svgd[-1].seconds == 0  # what a step takes is of this machine
    assert svgd[-1].gradients == 20 * svgd[-1].step


def test_a_state_of_other_shapes_is_not_taken():
    one = PAGES[0]
    picture, method = kept.kept(one.key), one.setup.methods[0]
    here = compile(one.setup.spec(method, capacity_of(one.setup)), look=False, measure=False)
    other = compile(one.setup.spec(method, 2 * capacity_of(one.setup)), look=False, measure=False)
    assert int(picture.state_of(here).step) == one.steps and picture.state_of(other) is None


def test_every_news_of_a_step_says_the_speed_too(monkeypatch):
    """Each may come alone: two are one message only if the page is slow."""
    monkeypatch.setattr(Session, "_compile", lambda session, capacity: None)
    one, news = PAGES[0], []
    session = Session(one.setup, Mock(), news.append, one.view)
    session._start(one.setup, kept=kept.kept(one.key))
    session.close()
    steps = [each for each in news if "step" in each]
    assert [each["step"] for each in steps][-1] == one.steps and all("steps_per_second" in each for each in steps)


def test_the_wave_shows_its_shipped_bands_without_a_program():
    found = seen_before(WaveSetup(), STEPS)
    assert list(found) == ["svgd", "smi", "vi"]
    assert found["svgd"].readout.between < 0.5 * found["smi"].readout.between  # what the page says
    assert not seen_before(WaveSetup(), STEPS - 1) and not seen_before(WaveSetup(probability=0.5), STEPS)
    assert not seen_before(WaveSetup(seed=1), STEPS)


@pytest.mark.long
def test_the_bands_of_the_wave_are_those_of_its_shipped_states():
    for method, shown in seen_before(WaveSetup(), STEPS).items():
        stepper = compile(SHIPPED.plain.spec(method), measure=False)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            again = extra(stepper, SHIPPED.state(stepper, method))
        np.testing.assert_allclose(again["bands"], [*shown.wide, *shown.half], atol=1e-3)
        np.testing.assert_allclose(again["curves"], shown.curves, atol=1e-3)


def test_every_picture_of_a_lesson_is_of_its_present_code():
    keys = {key_of(lesson, index): lesson.key for lesson in lessons().values() for index in range(len(lesson.cells))}
    kept_keys = everything().keys()
    assert kept_keys <= keys.keys(), "run python -m steinlab.keep"
    assert {keys[key] for key in kept_keys} == set(lessons())


def test_a_kept_figure_can_be_drawn_twice_in_one_page():
    texts = [part["figure"] for part in everything().values() if "figure" in part]
    assert len(texts) > 15
    for text in texts:
        first, second = (figure_of(text, dark=False, window=900) for _ in range(2))
        names = [{model.id for model in figure.references()} for figure in (first, second)]
        assert not names[0] & names[1] and len(names[0]) > 10
    low = figure_of(texts[0], dark=True, window=600)
    assert low.height == 220


@pytest.mark.rare
@pytest.mark.parametrize("lesson", lessons().values(), ids=lambda lesson: lesson.key)
def test_a_lesson_gives_its_pictures_again(lesson):
    found = keep.parts_of(lesson)
    shipped = {key: part for key, part in everything().items() if key.startswith(lesson.key)}
    assert found.keys() == shipped.keys()
    for key, part in found.items():
        assert part.keys() == shipped[key].keys()
        if "html" in part:
            assert [len(re.findall("<tr>", text)) for text in part["html"]] == [
                len(re.findall("<tr>", text)) for text in shipped[key]["html"]
            ]
