"""Names, recipes and the command line: what a user types, and what is said when it is wrong."""

import inspect
import json
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from checks import ARRAYS, assert_same_frame

import stein_core
import stein_core.cli.main as cli
from stein_core import (  # fmt: skip
    BANDWIDTHS,
    DIAGNOSTICS,
    FORCE_SCALES,
    GUIDES,
    KERNELS,
    METHODS,
    OPTIMIZERS,
    TARGETS,
    Recipe,
    Spec,
    UnknownName,
    collect,
    stream,
)
from stein_core.sweep.store import MAGIC, Store
from stein_core.targets.wave import dim_of

REGISTRIES = [TARGETS, METHODS, GUIDES, KERNELS, BANDWIDTHS, OPTIMIZERS, FORCE_SCALES, DIAGNOSTICS]
RUN = ["run", "--target", "correlated", "--method", "ensemble", "--particles", "5", "--steps", "10"]


def spec_of(method, optimizer="adam"):
    return Spec("correlated", method=method, draws=10, capacity=8, optimizer=optimizer)


# ---------------------------------------------------------------- registries


def test_every_entry_says_what_it_is_and_where_from():
    for registry in REGISTRIES:
        assert len(registry) > 0
        for entry in registry.entries():
            for text in (entry.label, entry.reference, entry.summary):
                assert isinstance(text, str) and text.strip(), (registry.kind, entry.name)
            for knob in entry.knobs:
                assert knob.label and knob.help and knob.check(knob.default) == knob.default
    for method in METHODS.entries():
        assert all(guide in GUIDES for guide in method.facts.guides)


def test_every_module_of_methods_is_imported_and_registers():
    names = {info.name for info in pkgutil.iter_modules(stein_core.methods.__path__) if not info.ispkg}
    files = {inspect.getmodule(e.make).__name__.rpartition(".")[2] for e in METHODS.entries()}
    assert names == files


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda r: r.kind)
def test_a_wrong_name_names_the_nearest(registry):
    names = [entry.name for entry in registry.listed()]
    for name in names:
        with pytest.raises(UnknownName, match=f"unknown {registry.kind} '{name}x'; did you mean '{name}'"):
            registry[name + "x"]
    with pytest.raises(UnknownName, match="Allowed: " + ", ".join(names)) as error:
        registry["?"]
    assert "did you mean" not in str(error.value)


# ---------------------------------------------------------------- recipes


@pytest.mark.parametrize("same", [[3, 3.0, "3", np.int64(3), np.float32(3)], [0.5, "0.5", np.float32(0.5), "5e-1"]])
def test_a_knob_value_may_come_in_any_type(same):
    spec = spec_of("svgd")
    name = "method.particles" if same[0] == 3 else "method.alpha"
    checked = [Recipe(spec, {name: value}).knobs[name] for value in same]
    assert checked == [same[0]] * len(same) and {type(v) for v in checked} == {type(same[0])}


def test_specs_and_recipes_refuse_what_does_not_fit():
    bad = [
        (lambda: Spec(method="svgd", guide="normal"), "unknown guide for method 'svgd': 'normal'. Allowed: point"),
        (lambda: Spec(capacity=13), "capacity = 13 is odd"),
        (lambda: Spec(draws=0), "draws = 0 is out of range"),
        (lambda: Recipe(spec_of("svgd"), {"method.alpa": 1}), "did you mean 'method.alpha'"),
        (
            lambda: Recipe(spec_of("svgd"), {"method.alpha": -1}),
            "method.alpha = -1 is out of range; allowed: 0 to 1000",
        ),
        (lambda: Recipe(spec_of("svgd"), {"method.alpha": float("nan")}), "out of range"),
        (lambda: Recipe(spec_of("svgd"), {"method.particles": 2.5}), "not a whole number"),
        (lambda: Recipe(spec_of("svgd"), {"method.particles": 9}), "more than the capacity"),
        (lambda: Recipe(spec_of("svgd"), {"kernel.name": "rbff"}), "did you mean 'rbf'"),
        (lambda: Recipe(spec_of("svgd"), {"init.shift": "far"}), "'far' is not a number"),
        (lambda: Recipe(spec_of("svgd"), seed=-1), "seed = -1 is out of range"),
        (lambda: Recipe(spec_of("svgd"), changes=((5, "add", (0, 0)), (3, "remove", 0))), "step 3 comes after step 5"),
        (lambda: Recipe(spec_of("svgd"), changes=((5, "method.alpha", -1),)), "out of range"),
        (lambda: Recipe(spec_of("svgd"), changes=((5, "move", (1, 0.5)),)), "allowed: (index, x, y), finite numbers"),
        (lambda: Recipe(spec_of("svgd"), changes=((5, "move", (0, 0, float("nan"))),)), "(0, 0, nan) is no move"),
        (lambda: Recipe(spec_of("svgd"), changes=((5, "move", (-1, 0, 0)),)), "move = -1"),
        (lambda: Recipe(spec_of("svgd"), changes=((5, "move", (0.5, 0, 0)),)), "move = 0.5"),
        (lambda: Recipe.from_dict({"metod": "svgd"}), "did you mean 'method'"),
    ]
    for make, message in bad:
        with pytest.raises(ValueError) as error:
            make()
        assert message in str(error.value)


FULL = Recipe(
    spec_of("svgd"),
    {"method.particles": 5, "method.alpha": 0.3, "kernel.name": "imq", "bandwidth.factor": 1 / 3},
    seed=7,
    changes=(
        (2, "add", (0.5, -1.25)),
        (3, "move", (4, -0.25, 1.5)),
        (4, "kernel.name", "laplace"),
        (6, "remove", 1),
        (8, "method.step_size", 0.01),
    ),
)


def test_recipe_survives_json():
    text = json.dumps(FULL.to_dict())
    assert Recipe.from_dict(json.loads(text)) == FULL
    assert Recipe.from_dict({}) == Recipe()
    small = Recipe(Spec("gap_regression", method="map", options={"target.width": 2}))  # which its dimension follows
    assert Recipe.from_dict(json.loads(json.dumps(small.to_dict()))) == small and small.spec.dim == 13
    assert Recipe.from_dict({**FULL.to_dict(), "seed": 8}) != FULL


def test_recipe_with_numpy_values_in_its_changes_survives_too():
    changes = ((np.int64(2), "add", np.array([0.5, -1.0])), (4, "method.alpha", np.float32(2.0)))
    recipe = Recipe(spec_of("svgd"), {"method.alpha": np.float32(0.5)}, changes=changes)
    assert Recipe.from_dict(json.loads(json.dumps(recipe.to_dict()))) == recipe
    compile(recipe.to_python(3), "script", "exec")
    assert "np." not in recipe.to_python(3) and "array" not in recipe.to_python(3)


@pytest.mark.long
def test_recipe_as_a_script_gives_the_same_last_frame(capsys):
    names = {}
    exec(FULL.to_python(10), names)
    last = collect(FULL, 10)[-1]
    assert len(last.particles) == 5 and last.step == 10
    assert_same_frame(names["frame"], last)
    assert capsys.readouterr().out == f"10 {last.metrics}\n"


# ---------------------------------------------------------------- the command line


@pytest.fixture
def run(capsys, monkeypatch):
    """(arguments) -> exit code, stdout, stderr; the user's cache folder is left alone."""
    monkeypatch.setattr(cli, "keep_compiled", lambda: None)

    def run(*arguments):
        code = cli.main([str(a) for a in arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def test_run_prints_json_and_saves_the_frames_of_stream(run, tmp_path):
    path = tmp_path / "frames.npz"
    knobs = ["--set", "method.step_size=0.1", "--set", "init.shift=-1", "--seed", "4"]
    code, out, err = run(*RUN, *knobs, "--every", "4", "--out", path, "--json")
    result = json.loads(out)
    assert code == 0 and "error" not in err
    assert set(result) == {"recipe", "steps", "device", "steps_per_second", "metrics"}
    assert result["steps"] == 10 and result["steps_per_second"] > 0 and list(result["metrics"]) == list(DIAGNOSTICS)
    assert result["metrics"]["mixture_elbo"] is None  # undefined, and still JSON

    recipe = Recipe.from_dict(result["recipe"])
    assert recipe.knobs["init.shift"] == -1.0 and recipe.seed == 4 and recipe.spec == spec_of("ensemble")
    frames = list(stream(recipe, 10, 4))
    with np.load(path, allow_pickle=False) as saved:
        assert Recipe.from_dict(json.loads(str(saved["recipe"]))) == recipe
        assert saved["step"].tolist() == [f.step for f in frames] == [0, 4, 8, 10]
        assert saved["finite"].all() and set(saved) == {"recipe", "step", "finite", *ARRAYS, *DIAGNOSTICS}
        for name in ARRAYS:
            np.testing.assert_array_equal(saved[name], np.stack([getattr(f, name) for f in frames]))
        for name in DIAGNOSTICS:
            np.testing.assert_array_equal(saved[name], [f.metrics[name] for f in frames])
    assert result["metrics"]["force"] == frames[-1].metrics["force"]


def test_run_prints_a_table_without_json(run):
    code, out, _ = run(*RUN)
    assert code == 0 and out.startswith("ensemble on correlated, step 10, ")
    lines = dict(line.split() for line in out.splitlines()[1:])
    assert list(lines) == list(DIAGNOSTICS) and lines["mixture_elbo"] == "undefined" and float(lines["force"]) > 0


@pytest.mark.parametrize("wrong, message", [
    (["--target", "bananna"], "unknown target 'bananna'; did you mean 'banana'"),
    (["--method", "svdg"], "did you mean 'svgd'"),
    (["--guide", "normal"], "unknown guide for method 'ensemble': 'normal'. Allowed: point."),
    (["--kernel", "rfb"], "did you mean 'rbf'"),
    (["--bandwidth", "medain"], "did you mean 'median'"),
    (["--optimizer", "adma"], "did you mean 'adam'"),
    (["--dim", "3"], "dim = 3 is no multiple of 2; nearest"),
    (["--particles", "0"], "particles = 0 is out of range"),
    (["--particles", "2000000"], "2000000"),
    (["--set", "method.step_size"], "has no '='"),
    (["--set", "method.stepsize=1"], "did you mean 'method.step_size'"),
    (["--set", "method.step_size=big"], "'big' is not a number"),
    (["--steps", "-1"], "--steps = -1 is negative"),
    (["--every", "0", "--out", "x.npz"], "--every = 0 is too small"),
    (["--every", "5"], "go together"),
    (["--out", "x.npz"], "go together"),
    (["--every", "5", "--out", "no/such/folder/x.npz"], "no/such/folder"),
], ids=lambda value: value[1] if isinstance(value, list) else "")  # fmt: skip
def test_wrong_input_exits_with_2_and_one_line(run, wrong, message):
    code, out, err = run(*RUN, *wrong)
    errors = [line for line in err.splitlines() if line.startswith("error: ")]
    assert code == 2 and not out and len(errors) == 1 and message in errors[0]


def test_diverged_run_exits_with_3_and_says_where(run):
    code, out, err = run(*RUN, "--optimizer", "sgd", "--set", "method.step_size=1000", "--json")
    result = json.loads(out, parse_constant=lambda constant: pytest.fail(f"{constant} is not JSON"))
    assert code == 3 and result["steps"] < 10
    assert f"error: diverged at step {result['steps'] + 1}; try a smaller method.step_size." in err


# ---------------------------------------------------------------- a file of one's own

CONTRIBUTING = (Path(__file__).resolve().parents[1] / "CONTRIBUTING.md").read_text()
MINE = next(block for block in re.findall(r"```python\n(.*?)```", CONTRIBUTING, re.DOTALL) if '"mine"' in block)


@pytest.fixture
def own(monkeypatch, tmp_path):
    """own(text): the path of a file with this text, whose registered target goes after the test."""
    monkeypatch.setattr(TARGETS, "_entries", dict(TARGETS._entries))
    monkeypatch.setattr(sys, "path", list(sys.path))

    def write(text):
        path = tmp_path / "my_model.py"
        path.write_text(text)
        return path

    return write


@pytest.mark.long
def test_what_an_imported_file_registers_can_be_run_and_listed(run, own):
    code, _, err = run("run", "--target", "mine")
    assert code == 2 and "unknown target 'mine'" in err
    path = own(MINE)
    code, out, _ = run("--import", path, "run", "--target", "mine", "--method", "svgd", "--steps", "500", "--json")
    metrics = json.loads(out)["metrics"]
    # log scale, with its Jacobian: 3 u - 2 e^u + log N(1.3 | 0, e^u), whose variance a grid gives.
    u = np.linspace(-6, 4, 20_001)
    weight = np.exp(3 * u - 2 * np.exp(u) - u - 1.3**2 / (2 * np.exp(2 * u)))
    weight /= weight.sum()
    exact = weight @ u**2 - (weight @ u) ** 2
    assert code == 0 and metrics["sample_variance"] == pytest.approx(exact, rel=0.15)
    code, out, _ = run("list", "--import", path)  # after the command, too
    assert code == 0 and "A scale, from one observation." in out


@pytest.mark.parametrize("text, message", [
    ("x = 1\ny = z\n", "my_model.py', line 2: NameError: name 'z' is not defined"),
    ("x = (\n", "my_model.py': SyntaxError: '(' was never closed (my_model.py, line 1)"),
    ("raise KeyError('a' * 300)", "line 1: KeyError: 'aaa"),
])  # fmt: skip
def test_an_imported_file_that_fails_says_where(run, own, text, message):
    code, out, err = run("--import", own(text), "list")
    assert code == 2 and not out and err.startswith("error: --import ") and message in err and len(err) < 450


def test_an_imported_file_that_is_not_there_is_named(run, tmp_path):
    for path, why in (
        (tmp_path / "no.py", "there is no such file"),
        (tmp_path, "there is no such file"),
        ("README.md", "is no Python file"),
    ):
        code, out, err = run("--import", path, "list")
        assert code == 2 and not out and f"error: --import '{path}': {why}; allowed: a file that ends in .py." in err
    with pytest.raises(SystemExit) as left:  # an abbreviation is not quietly left out
        run("--imp", "x.py", "list")
    assert left.value.code == 2


@pytest.mark.long
def test_a_sweep_of_an_own_target_is_computed_anew_when_its_file_has_changed(run, own, tmp_path):
    """Two normals, by one name in one file: precision 1 + 1 / s^2 gives the variance 1/2, then 4/5."""
    text = """
import numpyro, numpyro.distributions as dist
from stein_core import TARGETS, from_numpyro

def model():
    x = numpyro.sample("x", dist.Normal(0.0, 1.0))
    numpyro.sample("y", dist.Normal(x, 1.0), obs=0.0)

@TARGETS.register("mine", label="Mine", reference="me", dims=(1, 1), default_dim=1)
def mine(dim):
    "A normal mean."
    return from_numpyro(model)
"""
    grid = [
        "sweep",
        "variance-collapse",
        "--methods",
        "vi",
        "--dims",
        "1",
        "--target",
        "mine",
        "--store",
        tmp_path / "s.sqlite",
    ]
    for sd, variance in ((1.0, 0.5), (2.0, 0.8), (1.0, 0.5)):
        code, out, err = run("--import", own(text.replace("Normal(x, 1.0)", f"Normal(x, {sd})")), *grid)
        header, row = [line.split() for line in out.splitlines()]
        assert code == 0 and float(row[header.index("sample_variance")]) == pytest.approx(variance, rel=0.05), err
    assert len(Store(tmp_path / "s.sqlite").rows()) == 2  # the first text's row was still there
    pytest.importorskip("distributed", reason="the extra `cluster` is not installed")
    grid[-1] = tmp_path / "cluster.sqlite"
    code, out, err = run("--import", own(text.replace("Normal(x, 1.0)", "Normal(x, 3.0)")), *grid, "--cluster", "local")
    header, row = [line.split() for line in out.splitlines()]
    assert code == 0 and float(row[header.index("sample_variance")]) == pytest.approx(0.9, rel=0.05), err


# ---------------------------------------------------------------- sweeps

GRID = [
    "sweep",
    "variance-collapse",
    "--methods",
    "langevin",
    "--dims",
    "1,3",
    "--particles",
    "6",
    "--seeds",
    "2",
    "--stages",
    "1",
]
GRID += ["--most", "700", "--workers", "2"]


@pytest.mark.long
def test_sweep_runs_a_grid_once_and_show_gives_it_back(run, tmp_path):
    store, exported = tmp_path / "s.sqlite", tmp_path / "rows.json"
    code, out, err = run(*GRID, "--set", "init.spread=2", "--store", store)
    header, *lines = [line.split() for line in out.splitlines()]
    assert code == 0 and "error" not in err and header[:3] == ["target", "method", "dim"] and len(lines) == 4
    assert [line[2] for line in lines] == ["1", "1", "3", "3"] and {line[1] for line in lines} == {"langevin"}
    kept = Store(store).rows()
    again = run(*GRID, "--set", "init.spread=2.0", "--store", store)
    assert again[:2] == (0, out) and Store(store).rows() == kept  # not one was computed again
    code, shown, said = run("sweep", "show", "--store", store)
    assert code == 0 and sorted(shown.splitlines()) == sorted(out.splitlines())
    assert "sample_variance: variance\n" in said
    for command in (("sweep", "show"), (*GRID, "--set", "init.spread=2")):
        code, out, said = run(*command, "--store", store, "--json")
        found = json.loads(out, parse_constant=lambda constant: pytest.fail(f"{constant} is not JSON"))["rows"]
        assert code == 0 and not said and sorted(found, key=str) == sorted(kept, key=str)

    code, out, _ = run("sweep", "show", "--store", store, "--export", exported)
    assert code == 0 and not out
    plain = json.loads(exported.read_text(), parse_constant=lambda constant: pytest.fail(f"{constant} is not JSON"))
    assert {"made", "by", "device", "jax", "numpy"} <= set(plain)
    assert [row["key"] for row in plain["rows"]] == [row["key"] for row in kept]
    assert [row["sample_variance"] for row in plain["rows"]] == pytest.approx(
        [row["sample_variance"] for row in kept], rel=1e-5
    )
    for row in plain["rows"]:
        recipe = Recipe.from_dict(row["recipe"])
        assert recipe.knobs["init.spread"] == 2.0 and recipe.spec.dim == row["dim"] and recipe.seed == row["seed"]
        assert set(DIAGNOSTICS) <= set(row) and row["mixture_elbo"] is None and row["force"] > 0


@pytest.mark.parametrize("wrong, message", [
    (["--methods", "langevn"], "did you mean 'langevin'"),
    (["--dims", "1,two"], "--dims = '1,two'; allowed: int values with commas between."),
    (["--dims", "0"], "dim = 0 is out of range"),
    (["--particles", "0"], "particles = 0 is out of range"),
    (["--target", "bananna"], "did you mean 'banana'"),
    (["--kernels", "rfb"], "did you mean 'rbf'"),
    (["--rules", "medain"], "did you mean 'median'"),
    (["--alphas", "-1", "--methods", "svgd"], "method.alpha = -1"),
    (["--seeds", "0"], "seeds = 0 is too small"),
    (["--set", "method.particles=5"], "is an axis of the grid; allowed: particles."),
    (["--stop", "mean"], "did you mean 'means'"),
    (["--least", "3"], "least = 3 is too small"),
    (["--workers", "0"], "--workers = 0 is too small"),
    (["--set", "init.spread"], "has no '='"),
    (["--set", "init.sprad=1"], "did you mean 'init.spread'"),
    (["--store", "no/such/folder/s.sqlite"], "there is no such folder"),
], ids=lambda value: " ".join(value[:2]) if isinstance(value, list) else "")  # fmt: skip
def test_a_wrong_sweep_exits_with_2_and_one_line(run, tmp_path, wrong, message):
    code, out, err = run(*GRID, "--store", tmp_path / "s.sqlite", *wrong)
    errors = [line for line in err.splitlines() if line.startswith("error: ")]
    assert code == 2 and not out and len(errors) == 1 and message in errors[0]


@pytest.mark.long
def test_a_sweep_says_what_diverged_what_was_damaged_and_what_is_missing(run, tmp_path, monkeypatch):
    store = tmp_path / "s.sqlite"
    store.write_bytes(MAGIC + b"no database" * 500)
    code, out, err = run(*GRID, "--dims", "1", "--seeds", "1", "--set", "method.step_size=1000", "--store", store)
    assert code == 3 and "diverged" in out and "was damaged; it is now" in err
    code, _, err = run("sweep", "show", "--store", tmp_path / "none.sqlite")
    assert code == 2 and "there is no such file" in err and not (tmp_path / "none.sqlite").exists()
    monkeypatch.setitem(sys.modules, "dask.distributed", None)
    code, _, err = run(*GRID, "--store", store, "--cluster", "local")
    assert code == 2 and "pip install 'steinlab[cluster]'" in err


@pytest.mark.parametrize("command", [["sweep", "show"], ["tables", "damped", "--show"], GRID])
def test_a_file_of_the_user_is_never_taken_for_a_store(run, tmp_path, command):
    own = tmp_path / "results.csv"
    own.write_text("x,y\n1,2\n")
    code, out, err = run(*command, "--store", own)
    assert code == 2 and not out and "results.csv' is no SQLite file, and is left as it is" in err
    assert own.read_text() == "x,y\n1,2\n" and list(tmp_path.iterdir()) == [own]


def test_list_shows_every_entry_and_info_every_version(run):
    code, out, _ = run("list")
    assert code == 0
    for registry in REGISTRIES[:6] + REGISTRIES[7:]:
        for entry in registry.entries():
            assert f"  {entry.name:<18} {entry.summary}  [{entry.reference}]" in out
    for name in Spec().knobs():
        assert f"  {name:<18} " in out
    code, out, _ = run("info")
    assert code == 0 and {line.split()[0] for line in out.splitlines()} >= {"device", "python", "jax", "numpyro"}


def test_list_says_of_a_long_default_how_many_entries_it_has(run):
    _, out, _ = run("list")
    defaults = [line.partition("; default ")[2] for line in out.splitlines() if "; default " in line]
    assert max(map(len, defaults)) < 120
    assert sum("90 entries, the first (1.87454, 1.879139)" in text for text in defaults) == 1
    assert any(text.startswith("rbf; ") for text in defaults)  # a short one is as it was


def test_memory_that_the_device_has_not_is_one_line(run, monkeypatch):
    """As where another program has taken it."""
    monkeypatch.setattr(cli, "compile", lambda spec, **how: jnp.zeros((2**25, 2**25)).block_until_ready())
    code, out, err = run(*RUN)
    assert code == 2 and not out and len(err.splitlines()) == 1
    assert err.startswith("error: RESOURCE_EXHAUSTED: Out of memory") and err.endswith(
        "Take fewer particles, draws or dimensions.\n"
    )


def test_as_a_process():
    """The real entry point: exit code, no traceback, nothing but JSON on stdout."""
    command = [sys.executable, "-m", "stein_core"]
    wrong = subprocess.run([*command, *RUN, "--method", "smii"], capture_output=True, text=True, timeout=120)
    assert wrong.returncode == 2 and "did you mean 'smi'" in wrong.stderr and "Traceback" not in wrong.stderr
    right = subprocess.run([*command, *RUN, "--json"], capture_output=True, text=True, timeout=120)
    assert right.returncode == 0 and json.loads(right.stdout)["steps"] == 10


@pytest.mark.long
def test_an_option_is_set_like_a_knob_and_a_wrong_one_has_the_nearest(run):
    few = ["run", "--target", "wave", "--method", "ensemble", "--steps", "2", "--json", "--set"]
    code, out, _ = run(*few, "target.width=8")
    assert code == 0 and json.loads(out)["recipe"]["dim"] == dim_of(8)
    code, _, err = run(*few, "target.widht=8")
    assert code == 2 and "did you mean 'target.width'" in err


@pytest.mark.parametrize("arguments", [["run", "--steps", "x" * 20_000], ["y" * 20_000], ["run", "--" + "z" * 20_000]])
def test_a_long_wrong_argument_is_repeated_in_part(arguments, capsys):
    with pytest.raises(SystemExit):
        cli.main(arguments)
    said = capsys.readouterr().err.splitlines()[-1]
    assert "error: " in said and len(said) < 300
