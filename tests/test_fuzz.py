"""Every way in, with nonsense: what comes back is a value or a ValueError of one readable sentence, never anything
else.

STEINLAB_FUZZ=10000 python -m pytest tests/test_fuzz.py tries that many cases a way in.
"""

import argparse
import contextlib
import io
import json
import os
import sys
from urllib.parse import parse_qsl

import numpy as np
import pytest
from guard import guarded
from hypothesis import HealthCheck, given, settings, strategies as st

from stein_core import GUIDES, KERNELS, METHODS, OPTIMIZERS, TARGETS, Fit, Frame, Recipe, Spec, diagnose, target_of
from stein_core.cli import (
    bench_calibrate,
    bench_device,
    bench_posteriors,
    bench_rest,
    calibrate,
    commands,
    main as cli,
    posterior,
    recordings,
    tables,
)
from stein_core.papers.recording import Recording, Shot
from stein_core.papers.wave_nuts import load_reference
from stein_core.posterior.calibration import Calibration
from stein_core.sweep.store import Store
from stein_core.targets.data import downloads
from steinlab.pages.collapse.grid import AXES, QUANTITIES, read_link
from steinlab.pages.wave.setup import WaveSetup, read_points
from steinlab.stage.setup import Setup, all_knobs
from steinlab.ui.upload import LONGEST

CASES = settings(
    max_examples=int(os.environ.get("STEINLAB_FUZZ", 40)),
    deadline=None,
    derandomize="STEINLAB_FUZZ" not in os.environ,
    suppress_health_check=list(HealthCheck),
)

NAMES = sorted({*TARGETS, *METHODS, *GUIDES, *KERNELS, *OPTIMIZERS, *all_knobs(), "add", "remove", "move"})
NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70), st.floats(), st.sampled_from([0, 1, -1, 2, 41, 1e308, 1e-320, 2**31, 2**32, 10**40])
)
PIECES = st.text(min_size=1, max_size=3) | st.sampled_from("1x,;~")
LONG = st.builds(lambda piece, size: (piece * size)[:size], PIECES, st.integers(4_000, 20_000))
WORDS = st.one_of(
    st.sampled_from(NAMES),
    st.text(max_size=12),
    NUMBERS.map(str),
    st.sampled_from(["__class__", "../../etc/passwd", "/etc/passwd"]),
    LONG,
)
LISTS = st.lists(WORDS, max_size=4).map(",".join)
CHANGES = st.lists(st.tuples(WORDS, WORDS, WORDS).map("~".join), max_size=3).map(";".join)
FIELDS = st.sampled_from([
    "target", "methods", "dim", "guide", "optimizer", "draws", "seed", "steps", "changes", "dims", "particles",
    "alphas", "kernels",
    "rules", "seeds", "width", "band", "of", "data", "knobs", "show", "x", "y", "rows", "below", *all_knobs(),
])  # fmt: skip
QUERIES = st.dictionaries(st.one_of(FIELDS, st.text(max_size=8)), st.one_of(WORDS, LISTS, CHANGES), max_size=6)
SPEC_FIELDS = ["target", "dim", "method", "guide", "optimizer", "draws", "capacity", "seed", "knobs", "changes", "x"]
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, WORDS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(WORDS, inner, max_size=3)),
    max_leaves=8,
)


def readable(problem) -> bool:
    """One sentence for people: no traceback, no line break, not longer than a page can show."""
    text = str(problem)
    return "Traceback" not in text and "\n" not in text and 0 < len(text) < 3000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where files may be opened; what is made when something is used first is made now."""
    for page in (Setup, WaveSetup):
        page.from_query({"target": "oring"})
    read_link({})
    commands.versions()
    with contextlib.suppress(ImportError):
        import blackjax.vi.svgd  # noqa: F401
    return tmp_path_factory.mktemp("fuzz")


@pytest.mark.parametrize("page", [Setup, WaveSetup], ids=lambda page: page.__name__)
def test_links(page, folder):
    @CASES
    @given(QUERIES)
    def try_it(query):
        with guarded(folder):
            found, problems = page.from_query(query)
        assert all(map(readable, problems))
        link = found.to_query()
        again, none = page.from_query(dict(parse_qsl(link)))
        assert not none and again.to_query() == link

    try_it()


@CASES
@given(QUERIES)
def test_links_to_a_grid(folder, query):
    with guarded(folder):
        grid, axis, quantity, problems = read_link(query)
    assert all(map(readable, problems)) and axis in AXES and quantity in QUANTITIES
    link = grid.to_query()
    again, *_, none = read_link(dict(parse_qsl(link)))
    assert not none and again.to_query() == link


@CASES
@given(st.dictionaries(st.sampled_from(SPEC_FIELDS), JSON, max_size=6))
def test_a_recipe_from_json(folder, plain):
    with guarded(folder):
        try:
            recipe = Recipe.from_dict(plain)
        except ValueError as error:
            assert readable(error)
            return
    assert Recipe.from_dict(json.loads(json.dumps(recipe.to_dict()))) == recipe


def npz(**arrays) -> bytes:
    """The bytes of a file of arrays."""
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


class Trap:
    """Whoever unpickles it opens a file."""

    def __reduce__(self):
        return (open, ("/etc/passwd",))


GOOD = npz(x=np.arange(3.0), values=np.zeros((2, 5, 3), np.float16), about='{"r_hat": [1, 1, 1]}')
PICKLED = npz(x=np.array([Trap()], dtype=object), values=np.zeros((2, 5, 1)), about="{}")
WRONG = [
    PICKLED,
    npz(),
    npz(x=np.zeros(3)),
    npz(x=np.zeros(3), values=np.zeros((2, 5, 4)), about="{}"),
    npz(x=np.zeros(3), values=np.full((2, 5, 3), np.nan), about="{}"),
    npz(x=np.zeros(3), values=np.zeros((2, 5, 3)), about="[1"),
    npz(x=np.zeros(3), values=np.array(["a", "b"]), about="{}"),
    npz(x=np.zeros(3), values=np.zeros(()), about="7"),
]
CUT = st.builds(lambda whole, at: whole[: at % len(whole)], st.sampled_from([GOOD, *WRONG]), st.integers(0, 10**4))
FLIPPED = st.builds(
    lambda at, by: GOOD[: at % len(GOOD)] + by + GOOD[at % len(GOOD) + len(by) :],
    st.integers(0, 10**4),
    st.binary(max_size=4),
)
FILES = st.one_of(
    st.binary(max_size=300), st.binary(max_size=300).map(b"PK\x03\x04".__add__), CUT, FLIPPED, st.sampled_from(WRONG)
)
PASTED = st.one_of(
    st.text(max_size=200),
    LONG,
    st.lists(st.lists(WORDS, max_size=3).map(", ".join), max_size=5).map("\n".join),
    st.sampled_from(["1," + "2" * 200_000, '"' + "1,2\n" * 50_000, "1,2\n" * LONGEST, "1,nan", "\0,\0"]),
)


@CASES
@given(PASTED | FILES)
def test_pasted_and_uploaded_data(folder, text):
    with guarded(folder):
        try:
            points = read_points(text)
        except ValueError as error:
            assert readable(error)
        else:
            assert all(np.isfinite(point).all() and len(point) == 2 for point in points)


def test_what_is_uploaded_is_read_up_to_the_limit_that_the_server_says():
    row = b"0.5,1\n"
    assert len(read_points(row + b" " * (LONGEST - len(row)))) == 1
    with pytest.raises(ValueError, match="STEINLAB_UPLOAD_MB"):
        read_points(row + b" " * (LONGEST - len(row) + 1))


@CASES
@given(FILES)
def test_a_reference_file_of_any_bytes(folder, content):
    path = folder / "fuzz.npz"
    path.write_bytes(content)
    with guarded(folder):
        try:
            found = load_reference(path)
        except ValueError as error:
            assert readable(error)
        else:
            assert found.values.ndim == 3 and found.values.shape[-1] == len(found.x) and np.isfinite(found.values).all()


# ---- the command line: all of it but the computing

FRAME = Frame(0, *(np.zeros((2, 2), np.float32) for _ in range(5)), {name: 0.0 for name in cli.DIAGNOSTICS}, True)
SHOT = Shot(0, np.zeros(5), np.zeros(5), np.zeros((1, 2)), 0.0, 0.0, 0.0)
PATHS = [
    "", "-", "kept.sqlite", "rows.json", "recipe.json", "a folder", "a folder/new.sqlite", "no/such/folder/x",
    "x" * 5000, "no sqlite", "ü ; $(id)", "locked",
]  # fmt: skip


def options_of(parser, command=()):
    """(command, its options) of every command of a parser."""
    inner = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    for name, its in ((name, its) for action in inner for name, its in action.choices.items()):
        yield from options_of(its, (*command, name))
    if not any(action.required for action in inner):
        yield command, [action for action in parser._actions if action.dest != "help" and action not in inner]


COMMANDS = dict(options_of(cli.parser()))
SMALL = st.sampled_from(
    ["0", "1", "2", "3", "-1", "1,2", "svgd,smi", "gaussian", "oring", "wave", "damped", "method.alpha=2", "means"]
)
VALUES = st.one_of(SMALL, WORDS, LISTS, st.builds("{}={}".format, WORDS, WORDS))


@st.composite
def lines(draw):
    """A command with some of its own options, and files that are sometimes none."""
    command = draw(st.sampled_from(sorted(COMMANDS)))
    words = list(command)
    for option in draw(st.lists(st.sampled_from(COMMANDS[command]), max_size=4)) if COMMANDS[command] else ():
        name = (option.option_strings or [""])[0]
        if not name:  # of an argument without a name
            words += [draw(st.sampled_from(PATHS) | SMALL)]
        elif option.nargs == 0:
            words += [name]
        elif option.metavar and option.metavar.startswith("FILE"):
            words += [name, draw(st.sampled_from(PATHS))]
        else:
            words += [f"{name}={draw(VALUES)}"]
    return words


def offline(url, *what, **how):
    raise ValueError(f"{url} cannot be reached.")


@pytest.fixture
def shell(folder, monkeypatch):
    """A folder with a few files; nothing is compiled or run."""
    (folder / "a folder").mkdir(exist_ok=True)
    (folder / "no sqlite").write_text("no database")
    (folder / "rows.json").write_text("[]")
    (folder / "recipe.json").write_text(json.dumps(Recipe().to_dict()))
    Store(folder / "kept.sqlite").close()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("STEINLAB_CACHE", str(folder))
    monkeypatch.setattr(downloads, "images", offline)  # data are neither read nor downloaded
    for module in (cli, commands, recordings, posterior, bench_posteriors, tables):
        monkeypatch.setattr(module, "keep_compiled", lambda: None)
    theta = np.random.default_rng(0).normal(size=(20, 2))
    target, report = target_of(Spec("gaussian")), diagnose(theta, scores=-theta)
    fitted = Fit(target, theta, None, Recipe(), FRAME)
    monkeypatch.setattr(posterior, "fit", lambda *what, **how: fitted)
    monkeypatch.setattr(posterior, "diagnose", lambda *what, **how: report)
    monkeypatch.setattr(posterior, "nuts", lambda *what: theta[None])
    monkeypatch.setattr(bench_posteriors, "rows_of", lambda *what: [])
    monkeypatch.setattr(bench_calibrate, "false_alarms", lambda *what: 0)
    monkeypatch.setattr(bench_rest, "tried", lambda *what: [])
    monkeypatch.setattr(bench_device, "matmul_rate", lambda: 1e9)
    monkeypatch.setattr(bench_device, "measured", lambda *what: {"left_out": "not here"})
    calibrated = Calibration("smi", ("mean",), np.arange(20)[:, None], 20, 0, 0.0)
    monkeypatch.setattr(calibrate, "calibrate", lambda *what, **how: calibrated)
    monkeypatch.setattr(calibrate, "executor_of", lambda options: contextlib.nullcontext())
    monkeypatch.setattr(tables, "run_cells", lambda cells, store, *how: store.rows(["key"]))
    monkeypatch.setattr(tables, "executor_of", lambda options: contextlib.nullcontext())
    monkeypatch.setattr(cli.os, "execv", lambda *command: sys.exit(0))  # `serve` would replace this process
    monkeypatch.setattr("stein_core.cli.serve.Servers.run", lambda servers: 0)  # nor would several servers end
    monkeypatch.setattr(cli, "compile", lambda spec, **how: None)
    monkeypatch.setattr(cli, "stream", lambda recipe, steps, every, **how: [FRAME])
    monkeypatch.setattr(commands, "run_sweep", lambda recipes, store, *how: store.rows(["key"] * min(len(recipes), 3)))
    monkeypatch.setattr(commands, "executor_of", lambda options: contextlib.nullcontext())
    monkeypatch.setattr(
        recordings, "run_nuts", lambda *what, **how: np.random.default_rng(0).normal(size=(2, 20, len(what[3])))
    )
    monkeypatch.setattr(recordings, "record", lambda recipe, steps, report: Recording(recipe, [SHOT], None))
    monkeypatch.setattr("steinlab.site.build.build", lambda *what, **how: 0)
    monkeypatch.setattr("steinlab.site.record.record", lambda *what, **how: (0, ""))
    monkeypatch.setattr(cli, "end_with", lambda parent: None)  # it would end this process
    monkeypatch.setattr(sys, "stdin", io.StringIO("[{}]"))
    monkeypatch.setattr(cli, "single_thread_lapack", lambda: None)  # it reads /proc/self/maps
    return folder


@CASES
@given(lines())
def test_the_command_line(shell, words):
    error = io.StringIO()
    with contextlib.redirect_stderr(error), contextlib.redirect_stdout(io.StringIO()), guarded(shell):
        try:
            code = cli.main(words)
        except SystemExit as stop:  # argparse's
            code = stop.code
    said = [line for line in error.getvalue().splitlines() if line.startswith("error: ")]
    assert code in (0, 2, 4) and "Traceback" not in error.getvalue() and all(map(readable, said))
    assert code in (0, 4) or said or "error: " in error.getvalue()
