"""How the house is laid out: what may import what."""

import re
import subprocess
import sys
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest

from stein_core import GUIDES, KERNELS, METHODS
from stein_core.base import moved
from steinlab.pages.wave.stage import WaveStage
from steinlab.stage.stage import Stage

HEAVY = ("panel", "param", "bokeh", "holoviews", "scipy.stats", "pandas", "matplotlib")


def test_the_core_imports_no_page_and_nothing_heavy():
    script = f"import sys, stein_core; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


ROOMS = [
    "server",
    "ui",
    "stage",
    "watching",
    "lesson",
    "classroom",
    "pages",
    "site",
]  # from the ground up; then the files of app itself
ROOT = Path(__file__).parents[1]


def imported(file):
    """The modules of steinlab that a file imports, as dotted names."""
    names = re.findall(r"^\s*(?:from (steinlab[.\w]*) import|import (steinlab[.\w]*))", file.read_text(), re.MULTILINE)
    return [(one or other).split(".") for one, other in names]


def test_the_rooms_of_the_app_import_downwards_and_no_page_imports_another():
    for file in (ROOT / "app").rglob("*.py"):
        own = file.relative_to(ROOT / "app").parts
        floor = ROOMS.index(own[0]) if own[0] in ROOMS else len(ROOMS)
        for _, *path in filter(lambda names: len(names) > 1, imported(file)):
            assert (ROOMS.index(path[0]) if path[0] in ROOMS else len(ROOMS)) <= floor, (
                f"{file} imports steinlab.{'.'.join(path)}"
            )
            if own[0] == path[0] == "pages":
                shared = (ROOT / "app/pages" / path[1]).is_dir() and path[1] == own[1]
                assert shared, f"{file} imports another page: {path[1]}"


FOLDERS = "base contract forces theory runs web methods targets sweep posterior papers cli".split()


def test_the_folders_of_the_core_import_downwards_and_no_files_import_each_other_in_a_circle():
    core, arrows = ROOT / "stein_core", {}
    for file in [file for folder in FOLDERS for file in (core / folder).rglob("*.py")]:
        own = file.relative_to(ROOT).with_suffix("").parts
        found = re.findall(
            r"^\s*(?:from (stein_core[.\w]*) import ([^#\n]*)|import (stein_core[.\w]*))", file.read_text(), re.M
        )
        for module, names, whole in found:
            for name in [""] + re.findall(r"\w+", names):
                path = [*(module or whole).split("."), *[name] * bool(name)]
                if len(path) > 1 and path[1] in FOLDERS:
                    assert FOLDERS.index(path[1]) <= FOLDERS.index(own[1]), f"{file} imports {'.'.join(path)}"
                if (ROOT / Path(*path)).with_suffix(".py").exists():
                    arrows.setdefault(own, set()).add(tuple(path))
    assert len(arrows) > 100
    TopologicalSorter(arrows).prepare()  # raises CycleError, which names the circle


def test_what_everybody_knows_is_registered_first_and_guides_before_the_methods_that_name_them():
    first = [[entry.name for entry in registry.entries()][0] for registry in (GUIDES, KERNELS, METHODS)]
    assert first == ["point", "rbf", "svgd"]
    lines = (ROOT / "stein_core/__init__.py").read_text()
    assert lines.index("import guides") < lines.index("import methods") < lines.index("import fit\n")


def test_modules_are_found_by_their_old_names():
    for old, new in moved.MOVED.items():
        assert import_module(f"stein_core.{old}") is import_module(f"stein_core.{new}"), old
    script = "from stein_core.experiments.bands import band, function_values; from stein_core.experiments import wave;"
    script += "import stein_core.diagnosis.reference as of; print(wave.__name__, of.__name__)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["stein_core.targets.wave", "stein_core.posterior.reference"]


def test_every_import_of_the_core_finds_its_name():
    """In scripts that tests and pages keep as texts, in notebooks and in documents too."""
    found = 0
    places = [ROOT / name for name in ("app", "stein_core", "notebooks", "tests")]
    files = [file for place in places for file in place.rglob("*.*") if file.suffix in (".py", ".ipynb", ".md")]
    for file in [*files, ROOT / "README.md", ROOT / "CONTRIBUTING.md"]:
        text = file.read_text().replace("\\n", "\n")
        for name, names in re.findall(r"from (stein_core[.\w]*) import (\w[\w, ]*)", text):
            for one in [part.split()[0] for part in names.split(",") if part.strip()]:
                found += 1
                if not hasattr(import_module(name), one):
                    import_module(f"{name}.{one}")  # else it is a module
    assert found > 1000


def test_a_script_declares_each_name_once():
    """The files of a component become one module, in which a second declaration is an error."""
    for component in (Stage, WaveStage):
        names = re.findall(r"^(?:const|let|class|function|async function) (\w+)", component._esm, re.MULTILINE)
        for line in re.findall(r"^(?:const|let) (.*);", component._esm, re.MULTILINE):
            names += re.findall(r", ([A-Z]\w*) =", line)
        assert len(names) > 20 and len(set(names)) == len(names), [n for n in names if names.count(n) > 1]


TOP = {".ci", ".gitignore", "CONTRIBUTING.md", "LICENSE", "README.md", "app", "assets", "notebooks", "pyproject.toml"}
TOP |= {"stein_core", "tests"}


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a git checkout")
def test_the_repository_holds_what_it_needs_and_no_large_file():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = [ROOT / name for name in listed.split("\0") if name and (ROOT / name).exists()]
    assert len(files) > 300 and {file.relative_to(ROOT).parts[0] for file in files} == TOP
    large = {str(file): file.stat().st_size for file in files if file.stat().st_size > 700_000}
    assert not large
