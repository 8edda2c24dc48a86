"""The link codec: what every page's table writes, it reads again, and a wrong field costs nothing but itself."""

from dataclasses import dataclass
from urllib.parse import parse_qsl

import pytest
from hypothesis import HealthCheck, assume, given, settings, strategies as st

from stein_core import BANDWIDTHS, KERNELS, METHODS
from steinlab.pages import location, particles
from steinlab.pages.collapse import grid
from steinlab.pages.functions import setup as functions
from steinlab.pages.lessons import page as lessons
from steinlab.pages.wave import setup as wave
from steinlab.stage import setup as stage
from steinlab.stage.live_page import Look
from steinlab.ui import link

FLOATS = st.floats(0.01, 10)


def some(names, most=3):
    return st.lists(st.sampled_from(list(names)), min_size=1, max_size=most, unique=True).map(tuple)


def knobs(known, plain=lambda knob: knob.default):
    """A value for some knobs, none of them the default."""

    def values(knob):
        if knob.choices:
            found = st.sampled_from(list(knob.choices))
        elif knob.scale == "integer":
            found = st.integers(int(knob.low), int(min(knob.high, 50)))
        else:
            found = st.floats(max(knob.low, -1e6), min(knob.high, 1e6))
        return found.filter(lambda value: value != plain(knob))

    return st.fixed_dictionaries({}, optional={knob.name: values(knob) for knob in known})


CHANGES = st.lists(
    st.tuples(st.just("method.alpha"), FLOATS)
    | st.tuples(st.just("add"), st.tuples(st.floats(-9, 9), st.floats(-9, 9)))
    | st.tuples(st.just("remove"), st.integers(0, 7))
    | st.tuples(st.just("move"), st.tuples(st.integers(0, 7), st.floats(-9, 9), st.floats(-9, 9))),
    max_size=3,
).map(lambda found: tuple((step, *one) for step, one in enumerate(found)))
SETUPS = {
    "target": st.sampled_from(["gaussian", "ring", "banana"]),
    "methods": some(METHODS),
    "optimizer": st.sampled_from(["adam", "sgd"]),
    "draws": st.integers(1, 1000),
    "seed": st.integers(0, 2**32 - 1),
    "steps": st.integers(0, stage.MOST_STEPS),
    "knobs": knobs(stage.all_knobs().values()),
    "changes": CHANGES,
}
WAVES = {
    "methods": some(("svgd", "smi", "vi", "map")),
    "two": st.booleans(),
    "width": st.integers(1, 100),
    "draws": st.integers(1, 1000),
    "seed": st.integers(0, 2**32 - 1),
    "steps": st.integers(0, wave.MOST_STEPS),
    "below": st.integers(0, wave.MOST_STEPS),
    "probability": st.floats(0.05, 0.99),
    "noisy": st.booleans(),
    "knobs": knobs(wave.all_knobs().values(), lambda knob: wave.default_of(knob.name)),
    "data": st.lists(st.tuples(st.floats(-9, 9), st.floats(-9, 9)), min_size=1, max_size=5).map(tuple),
}
FUNCTIONS = {
    "ring": st.booleans(),
    "methods": some(("ensemble", "svgd", "fsvgd"), 2),
    "width": st.integers(1, 128),
    "seed": st.integers(0, 2**32 - 1),
    "steps": st.integers(0, functions.MOST_STEPS),
    "knobs": knobs(
        [knob for name, knob in functions.all_knobs().items() if name != "method.link"],
        lambda knob: functions.default_of(knob.name),
    ),
    "data": st.lists(st.tuples(st.floats(-9, 9), st.floats(-9, 9)), min_size=1, max_size=5).map(tuple),
    "handles": st.lists(st.tuples(st.floats(-9, 9), st.floats(-9, 9)), max_size=5).map(tuple),
}
GRIDS = {
    "methods": some(METHODS),
    "dims": st.lists(st.integers(1, 100), min_size=1, max_size=3).map(tuple),
    "particles": st.lists(st.integers(2, 50), min_size=1, max_size=2).map(tuple),
    "alphas": st.lists(FLOATS, min_size=1, max_size=2).map(tuple),
    "kernels": some(KERNELS, 2),
    "rules": some(BANDWIDTHS, 2),
    "seeds": st.integers(1, 3),
    "knobs": knobs(grid.other_knobs(tuple(METHODS), "gaussian", ("rbf",)).values()),
}
PAGES = {
    "setup": (stage.link_fields, stage.Setup, SETUPS, stage.Setup()),
    "location's setup": (stage.link_fields, stage.Setup, SETUPS, location.Location.plain),
    "wave": (wave.link_fields, wave.WaveSetup, WAVES, wave.WaveSetup()),
    "functions": (functions.link_fields, functions.FunctionSetup, FUNCTIONS, functions.FunctionSetup()),
    "grid": (grid.link_fields, grid.Grid, GRIDS, grid.Grid()),
    "collapse": (
        lambda: grid.VIEW,
        grid.View,
        {"axis": st.sampled_from(list(grid.AXES)), "quantity": st.sampled_from(list(grid.QUANTITIES))},
        grid.View(),
    ),
    "lessons": (
        lambda: lessons.LINK,
        lessons.At,
        {
            "lesson": st.sampled_from(list(lessons.lessons())),
            "idea": st.integers(0, 99),
            "cell": st.integers(0, 99),
        },
        lessons.At("01"),
    ),
    "looks": (
        particles.Particles.look_fields,
        Look,
        {"show": st.sets(st.sampled_from(list(particles.Particles.marks))).map(
            lambda chosen: tuple(name for name in particles.Particles.marks if name in chosen)
        )},
        Look(tuple(particles.Particles.drawn)),
    ),
}  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("page", PAGES)
def test_what_a_table_writes_it_reads_again(page):
    fields, make, parts, plain = PAGES[page]

    @settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(st.fixed_dictionaries({}, optional=parts))
    def try_it(chosen):
        try:
            value = make(**{**{name: getattr(plain, name) for name in parts}, **chosen})
        except ValueError:
            assume(False)
        query = dict(parse_qsl(link.write(fields(), value, plain)))
        again, problems = link.read(fields(), query, plain)
        assert not problems
        assert [field.of(again) for field in fields()] == [field.of(value) for field in fields()]

    try_it()


@dataclass(frozen=True)
class Pair:
    """low < high and size > 0, or ValueError."""

    low: int = 0
    high: int = 1
    size: int = 1

    def __post_init__(self):
        if self.low >= self.high:
            raise ValueError(f"low = {self.low} is not below high = {self.high}.")
        if self.size < 1:
            raise ValueError(f"size = {self.size} is out of range.")


PAIR = (link.whole_number("low"), link.whole_number("high"), link.whole_number("size"))


@pytest.mark.parametrize(
    "query, value, wrong",
    [
        ({"low": "5", "high": "9"}, Pair(5, 9), []),  # low = 5 alone would be refused
        ({"low": "5", "high": "9", "x": "1"}, Pair(5, 9), ["x"]),
        ({"low": "5", "high": "9", "size": "0"}, Pair(5, 9), ["size"]),
        ({"low": "9", "high": "5"}, Pair(0, 5), ["low"]),
        ({"low": "five", "high": "9"}, Pair(0, 9), ["low"]),
    ],
)
def test_a_wrong_field_is_named_and_nothing_else_is_lost(query, value, wrong):
    found, problems = link.read(PAIR, query, Pair())
    assert found == value and list(problems) == wrong


def test_links_of_names_that_became_options_still_open():
    """`wave_bias` and `normal_twice` were entries of their own."""
    bug, _ = stage.Setup.from_query({"target": "gaussian", "methods": "smi,svgd", "guide": "normal_twice"})
    now, _ = stage.Setup.from_query({"target": "gaussian", "methods": "smi,svgd", "guide.density": "twice"})
    assert bug == now and bug.spec("smi", 8).options["guide.density"] == "twice"
    wave, problems = stage.Setup.from_query({"target": "wave_bias", "methods": "svgd", "dim": "61"})
    spec = wave.spec("svgd", 8)
    assert not problems and (spec.target, spec.dim) == ("wave", 61)
    assert spec.options == {"target.width": 6, "target.second_bias": "yes"}
    again, _ = stage.Setup.from_query(dict(parse_qsl(wave.to_query())))
    assert again == wave
    for field, value, said in (
        ("dim", "50", "nearest: 41"),
        ("target.width", "500", "allowed: 1 to 100"),
        ("target.widht", "5", "did you mean 'target.width'"),
    ):
        _, problems = stage.Setup.from_query({"target": "wave", "methods": "svgd", field: value})
        assert len(problems) == 1 and said in problems[0]


@pytest.mark.long
def test_of_a_name_that_several_targets_have_a_link_means_the_own_one():
    for setup in (
        *(
            stage.Setup("uci", ("svgd",), options={"target.dataset": "power", "target.width": width})
            for width in (5, 150)
        ),
        *(stage.Setup("covertype", ("svgd",), knobs={"target.batch": batch}) for batch in (128, 250)),
        stage.Setup("covertype", ("svgd",), changes=((3, "target.batch", 250),)),
    ):
        assert stage.Setup.from_query(dict(parse_qsl(setup.to_query()))) == (setup, [])
    assert stage.all_knobs("mnist")["target.batch"].default == 128
    with pytest.raises(ValueError, match="allowed: 1 to 128"):
        stage.Setup("uci", ("svgd",), knobs={"target.batch": 250})
