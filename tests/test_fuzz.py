"""Every way in, with nonsense: what comes back is a value or a ValueError of one readable sentence, never anything else.

STEINLAB_FUZZ=10000 python -m pytest tests/test_fuzz.py tries that many cases a way in.
"""

import contextlib
import io
import json
import os
from urllib.parse import parse_qsl

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.collapse import Grid
from app.setup import Setup, all_knobs
from app.wave_setup import WaveSetup, read_points
from stein_core import GUIDES, KERNELS, METHODS, OPTIMIZERS, TARGETS, Recipe
from stein_core import __main__ as cli
from stein_core.nuts import load_reference

CASES = settings(
    max_examples=int(os.environ.get("STEINLAB_FUZZ", 80)), deadline=None, derandomize="STEINLAB_FUZZ" not in os.environ,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip

NAMES = sorted({*TARGETS, *METHODS, *GUIDES, *KERNELS, *OPTIMIZERS, *all_knobs(), "add", "remove"})
NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70), st.floats(), st.sampled_from([0, 1, -1, 2, 41, 1e308, 1e-320, 2**31, 2**32, 10**40])
)
WORDS = st.one_of(st.sampled_from(NAMES), st.text(max_size=12), NUMBERS.map(str), st.just("__class__"), st.just("../../etc/passwd"))
LISTS = st.lists(WORDS, max_size=4).map(",".join)
CHANGES = st.lists(st.tuples(WORDS, WORDS, WORDS).map("~".join), max_size=3).map(";".join)
FIELDS = st.sampled_from([
    "target", "methods", "dim", "guide", "optimizer", "draws", "seed", "steps", "changes", "dims", "particles", "alphas", "kernels",
    "rules", "seeds", "width", "band", "of", "data", "knobs", *all_knobs(),
])  # fmt: skip
QUERIES = st.dictionaries(st.one_of(FIELDS, st.text(max_size=8)), st.one_of(WORDS, LISTS, CHANGES), max_size=6)
SPEC_FIELDS = ["target", "dim", "method", "guide", "optimizer", "draws", "capacity", "seed", "knobs", "changes", "x"]
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, WORDS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(WORDS, inner, max_size=3)), max_leaves=8,
)  # fmt: skip


def readable(problem) -> bool:
    """One sentence for people: no traceback, no line break, not longer than a page can show."""
    return "Traceback" not in str(problem) and 0 < len(str(problem)) < 2000


@pytest.mark.parametrize("page", [Setup, WaveSetup, Grid], ids=lambda page: page.__name__)
def test_links(page):
    @CASES
    @given(QUERIES)
    def try_it(query):
        found, problems = page.from_query(query)
        assert all(map(readable, problems))
        link = found.to_query()
        again, none = page.from_query(dict(parse_qsl(link)))
        assert not none and again.to_query() == link

    try_it()


@CASES
@given(st.dictionaries(st.sampled_from(SPEC_FIELDS), JSON, max_size=6))
def test_a_recipe_from_json(plain):
    try:
        recipe = Recipe.from_dict(plain)
    except ValueError as error:
        assert readable(error)
    else:
        assert Recipe.from_dict(json.loads(json.dumps(recipe.to_dict()))) == recipe


@CASES
@given(st.one_of(st.text(max_size=200), st.lists(st.lists(WORDS, max_size=3).map(", ".join), max_size=5).map("\n".join)))
def test_pasted_data(text):
    try:
        points = read_points(text)
    except ValueError as error:
        assert readable(error)
    else:
        assert all(np.isfinite(point).all() and len(point) == 2 for point in points)


@CASES
@given(st.sampled_from(["run", "sweep variance-collapse", "sweep widths", "nuts", "bench", "sweep show"]), st.lists(st.tuples(
    st.sampled_from(["--target", "--dim", "--method", "--seeds", "--set", "--store", "--most", "--dims", "--width", "--out", "--pairs"]),
    WORDS), min_size=1, max_size=3))  # fmt: skip
def test_the_command_line(command, options):
    """Refused with 2 and one line; to make sure that nothing starts to compute, the last option is always wrong."""
    arguments = [*command.split(), *(f"{name}={value}" for name, value in options), "--no-such-option"]
    error = io.StringIO()
    with contextlib.redirect_stderr(error), contextlib.redirect_stdout(io.StringIO()):
        try:
            code = cli.main(arguments)
        except SystemExit as stop:
            code = stop.code
    assert code == 2 and "Traceback" not in error.getvalue()


@CASES
@given(st.binary(max_size=300))
def test_a_reference_file_of_any_bytes(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "fuzz.npz"
    path.write_bytes(content)
    with pytest.raises((ValueError, OSError, KeyError, EOFError)):
        load_reference(path)


def test_a_pickle_in_a_reference_file_is_not_run(tmp_path):
    class Trap:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "owned"),))

    np.savez(tmp_path / "trap.npz", x=np.array([Trap()], dtype=object), values=np.zeros(1), about="{}")
    with pytest.raises(ValueError, match="allow_pickle"):
        load_reference(tmp_path / "trap.npz")
    assert not (tmp_path / "owned").exists()
