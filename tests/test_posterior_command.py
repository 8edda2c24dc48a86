"""`fit` and `diagnose` on the command line: the files they read, and what they refuse before anything is computed."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from test_cli import run  # noqa: F401  (a fixture)

from stein_core import fit
from stein_core.cli import posterior
from stein_core.cli.files import arrays_of
from stein_core.posterior import fit as fitting

ROOT = Path(__file__).resolve().parents[1]
STAN = """# stan_version_major = 2
# model = growth
lp__,accept_stat__,K,t0
# Adaptation terminated
# Step size = 0.8
-1.5,0.9,12.5,3
-2.5,0.8,13.5,-4e-1
#
#  Elapsed Time: 0.02 seconds (Warm-up)
"""

# ---------------------------------------------------------------- files of draws


def test_comments_of_stan_and_its_own_columns_are_skipped(tmp_path):
    path = tmp_path / "stan.csv"
    path.write_text(STAN)
    found = arrays_of(str(path), "draws")
    assert list(found) == ["K", "t0"]
    np.testing.assert_array_equal(found["K"], [12.5, 13.5])
    np.testing.assert_array_equal(found["t0"], [3, -0.4])
    path.write_text(STAN.replace("13.5", "x"))
    with pytest.raises(ValueError, match="row 7, column 'K' is 'x'; allowed: numbers"):  # the line of the file
        arrays_of(str(path), "draws")
    path.write_text("# nothing\n")
    with pytest.raises(ValueError, match="has no header"):
        arrays_of(str(path), "draws")


def zipped(path, **members):
    with zipfile.ZipFile(path, "w") as file:
        for name, content in members.items():
            file.writestr(name.replace("_npy", ".npy"), content)


def test_a_file_that_is_no_npz_is_refused_in_plain_words(run, tmp_path):  # noqa: F811
    np.savez(tmp_path / "objects.npz", draws=np.array([{}, None], dtype=object))
    np.savez(tmp_path / "right.npz", draws=np.zeros((50, 2)))
    np.savez(tmp_path / "empty.npz", draws=np.zeros((0, 2)))
    (tmp_path / "garbage.npz").write_bytes(b"\x93garbage" * 40)
    (tmp_path / "pickle.npz").write_bytes(b"\x80\x04\x95\x10\x00")
    (tmp_path / "half.npz").write_bytes((tmp_path / "right.npz").read_bytes()[:400])
    zipped(tmp_path / "text.npz", notes_npy="no array")
    zipped(tmp_path / "nothing.npz")
    whole = (tmp_path / "right.npz").read_bytes()
    (tmp_path / "harmed.npz").write_bytes(whole[:300] + b"\xff" * 20 + whole[320:])
    for name, why in (
        ("objects", "has Python objects as 'draws.npy'; allowed: arrays of numbers or text."),
        ("garbage", "is no .npz file; allowed: arrays that numpy.savez has written."),
        ("pickle", "is no .npz file"),
        ("half", "is no .npz file"),
        ("text", "has what is no array as 'notes.npy'"),
        ("harmed", "has what is no array as 'draws.npy'"),
        ("nothing", "has no array."),
        ("empty", "'draws' has no numbers."),
    ):
        code, out, err = run("diagnose", tmp_path / f"{name}.npz")
        assert code == 2 and not out and why in err and len(err.splitlines()) == 1, (name, err)
        assert "unsafe" not in err and "pickle" not in err.replace("pickle.npz", ""), name


# ---------------------------------------------------------------- what is refused before the search for a start

MODEL = "def _part(): ...\ndef growth(x): ...\ndef model(x): ...\n"


@pytest.mark.parametrize("wrong, message", [
    (["--method", "smii"], "did you mean 'smi'"),
    (["--guide", "ful"], "unknown guide for method 'smi': 'ful'; did you mean 'full'"),
    (["--method", "svgd", "--guide", "normal"], "unknown guide for method 'svgd'"),
    (["--coordinates", "white"], "unknown coordinates 'white'; did you mean 'whitened'"),
    (["--particles", "0"], "method.particles = 0 is out of range"),
    (["--set", "method.alpa=1"], "did you mean 'method.alpha'"),
    (["--set", "method.alpha=-1"], "method.alpha = -1 is out of range"),
    (["--set", "kernel.name=rfb"], "did you mean 'rbf'"),
    (["--set", "alpha"], "has no '='"),
    (["--seed", "-1"], "seed = -1 is out of range"),
    (["--steps", "3"], "--steps = 3 is too small"),
    (["--draws", "no/such/folder/r.npz"], "--draws 'no/such/folder/r.npz': there is no such folder"),
    (["--draws", "r.csv"], "--draws 'r.csv': unknown format; allowed: .npz."),
    (["--draws", "FOLDER/a.npz"], "a.npz' is a folder"),
    (["--out", "FOLDER/locked/r.html"], "may not be written"),
    (["--out", "no/such/folder/r.html"], "there is no such folder"),
    (["--out", "r.pdf"], "--out 'r.pdf': unknown format; allowed: .html, .json."),
], ids=lambda value: " ".join(value) if isinstance(value, list) else "")  # fmt: skip
def test_a_wrong_option_is_refused_before_the_model_is_looked_at(run, tmp_path, monkeypatch, wrong, message):  # noqa: F811
    (tmp_path / "a.npz").mkdir()
    (tmp_path / "locked").mkdir()
    may = os.access  # whoever runs the tests may be allowed to write everywhere
    monkeypatch.setattr(os, "access", lambda path, mode: "locked" not in str(path) and may(path, mode))
    monkeypatch.setattr(posterior, "_target", lambda *_: pytest.fail("the model was looked at"))
    wrong = [word.replace("FOLDER", str(tmp_path)) for word in wrong]
    code, out, err = run("fit", "my_model.py:model", *wrong)
    assert code == 2 and not out and message in err and len(err.splitlines()) == 1


def test_diagnose_refuses_a_report_that_it_cannot_write_before_it_reads_draws(run):  # noqa: F811
    code, _, err = run("diagnose", "none.npz", "--out", "r.pdf")
    assert code == 2 and "--out 'r.pdf': unknown format; allowed: .html, .json." in err


def test_fit_in_python_refuses_before_it_looks_at_the_model(monkeypatch):
    monkeypatch.setattr(fitting, "best_target", lambda *_, **__: pytest.fail("the model was looked at"))
    for wrong, message in (
        ({"method": "smii"}, "did you mean 'smi'"),
        ({"guide": "ful"}, "did you mean 'full'"),
        ({"coordinates": "white"}, "did you mean 'whitened'"),
        ({"knobs": {"method.alpa": 1}}, "did you mean 'method.alpha'"),
        ({"particles": 0}, "method.particles = 0 is out of range"),
        ({"seed": -1}, "seed = -1 is out of range"),
    ):
        with pytest.raises(ValueError, match=message):
            fit(lambda: None, **wrong)


def test_a_file_without_the_name_of_its_model_has_a_nearest_match(run, tmp_path):  # noqa: F811
    path = tmp_path / "my_model.py"
    for text, why in (
        (MODEL, f"names no function of the file; did you mean '{path}:model'? Allowed: {path}:growth, {path}:model."),
        (MODEL.replace("model", "mine"), f"did you mean '{path}:growth'?"),
        ("x = 1\n", "has no function; allowed: FILE.py:NAME of a NumPyro model."),
        ("x = (\n", "SyntaxError: '(' was never closed"),
    ):
        path.write_text(text)
        code, out, err = run("fit", path)
        assert code == 2 and not out and f"model '{path}'" in err and why in err
    code, _, err = run("fit", tmp_path / "none.py")
    assert code == 2 and "No such file" in err


# ---------------------------------------------------------------- compiled programs

FIT = """
import jax, numpy as np
hits = []
jax.monitoring.register_event_listener(lambda event, **_: hits.append(event))
from stein_core import fit
fit("gaussian", method="svgd", particles=4, steps=4, progress=False)
print(hits.count("/jax/compilation_cache/cache_misses"))
"""


@pytest.mark.long
def test_fit_in_python_keeps_compiled_programs_unless_jax_shall_not(tmp_path):
    def compiled(**more):
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "STEINLAB_CACHE": str(tmp_path / "cache"), **more}
        environment.pop("JAX_COMPILATION_CACHE_DIR", None)
        out = subprocess.run([sys.executable, "-c", FIT], env=environment, capture_output=True, text=True, check=True)
        return int(out.stdout), list((tmp_path / "cache").glob("jax/*"))

    assert compiled(JAX_ENABLE_COMPILATION_CACHE="false") == (0, [])
    first, kept = compiled()
    assert first >= len(kept) > 5  # two threads may compile the same operation
    again, after = compiled()
    assert again == 0 and len(after) == len(kept)


def test_a_cache_folder_that_cannot_be_made_is_said(monkeypatch):
    def refused():
        raise PermissionError(13, "Permission denied", "/home/me/.cache")

    monkeypatch.setattr(fitting, "keep_compiled", refused)
    config = SimpleNamespace(jax_enable_compilation_cache=True, jax_compilation_cache_dir=None)
    monkeypatch.setattr(fitting, "jax", SimpleNamespace(config=config))
    with pytest.warns(UserWarning, match="compiled programs are not kept: .*Permission denied"):
        fitting.keep_programs()
