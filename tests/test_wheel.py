"""The wheel, in an empty environment outside the clone, as somebody installs it who has no clone."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import time
import tomllib
import urllib.request
import venv
import zipfile
from pathlib import Path

import pytest
from checks import PATIENCE

sys.path.append(str(Path(__file__).with_name("browser")))
from chromium import free_port  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
KINDS = (".py", ".js", ".css", ".json", ".gz", ".npz", ".svg", ".html", ".conf", ".ipynb")
PLACES = {"app": "steinlab", "assets": "steinlab/assets", "notebooks": "steinlab/notebooks", "stein_core": "stein_core"}


def installed() -> set[str]:
    """The files of the checkout that the wheel must have, by their names in it."""
    found = set()
    for folder, name in PLACES.items():
        files = [file for file in (ROOT / folder).rglob("*.*") if file.suffix in KINDS]
        found |= {f"{name}/{file.relative_to(ROOT / folder).as_posix()}" for file in files}
    return found


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a git checkout")
@pytest.mark.long
def test_the_sdist_is_complete(tmp_path):
    script = f"import setuptools.build_meta as of; print(of.build_sdist({str(tmp_path)!r}))"
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True, capture_output=True)
    (made,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(made) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    tracked = {name for name in listed.split("\0") if name}
    assert len(tracked) > 300 and not tracked - names


DOCKERFILE = (ROOT / "app/Dockerfile").read_text()


def test_the_recipe_of_conda_asks_for_what_pip_does():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = project["dependencies"] + ["python" + project["requires-python"]]
    recipe = (ROOT / "app/recipe.yaml").read_text()
    asked = recipe.partition("  run:")[2].partition("\n\n")[0].split("- ")[1:]
    assert sorted(one.replace(" ", "").strip() for one in asked) == sorted(wanted)
    assert f'version: "{project["version"]}"' in recipe
    assert project["scripts"]["steinlab"] in recipe and project["description"] in recipe


@pytest.mark.parametrize(
    "alone",
    [
        pytest.param(False, marks=pytest.mark.long, id="beside_the_packages_that_are_here"),
        pytest.param(True, marks=pytest.mark.rare, id="with_all_it_asks_for"),
    ],
)
def test_the_wheel_installs_serves_and_computes(alone, tmp_path):
    """From what the Dockerfile copies, and by its commands: where there is no builder, this is its test."""
    clone = tmp_path / "clone"
    for names in re.findall(r"^COPY (.*) \S+$", DOCKERFILE, re.M):
        for name in names.split():
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, clone / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
            else:
                clone.mkdir(exist_ok=True)
                shutil.copy(ROOT / name, clone / name)
    subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", tmp_path, clone], check=True)
    (wheel,) = tmp_path.glob("steinlab-*.whl")
    with zipfile.ZipFile(wheel) as file:
        names = {name for name in file.namelist() if ".dist-info/" not in name}
    assert {name.partition("/")[0] for name in names} == {"stein_core", "steinlab"}  # beside what others install
    assert len(installed()) > 300 and not installed() - names
    venv.create(tmp_path / "env", with_pip=alone)
    binaries = tmp_path / "env" / "bin"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(*command):
        return subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True).stdout

    if alone:
        run(binaries / "pip", "install", "-q", wheel)
    else:  # a path in a .pth file: the checkout, which is installed by a .pth file of its own, is not found this way
        (folder,) = (tmp_path / "env" / "lib").glob("python*/site-packages")
        (folder / "others.pth").write_text(sysconfig.get_path("purelib"))
        run(sys.executable, "-m", "pip", "--python", binaries / "python", "install", "-q", "--no-deps", wheel)
    assert "two_gaussians" in run(binaries / "steinlab", "list")
    assert str(tmp_path) in run(binaries / "python", "-c", "import steinlab; print(steinlab.__file__)")
    said = tmp_path / "log"
    with said.open("w") as log:
        command = re.findall(r"^CMD (.*)", DOCKERFILE, re.M)[-1].replace("5006", str(port := free_port()))
        environment |= {"PATH": f"{binaries}:{os.environ['PATH']}", "STEINLAB_ORIGIN": f"localhost:{port}"}
        server = subprocess.Popen(["sh", "-c", command], cwd=tmp_path, env=environment, stdout=log, stderr=log)
    try:
        until = time.monotonic() + PATIENCE
        while not (address := re.search(r"http://\S+:\d+/steinlab", said.read_text())):
            assert time.monotonic() < until and server.poll() is None, said.read_text()
            time.sleep(0.5)
        for link in (f"{address[0]}?page=lessons", f"http://localhost:{port}/?page=lessons"):  # with and without a name
            assert "Steinlab" in urllib.request.urlopen(link, timeout=60).read().decode()
        healthy = re.search(r"^HEALTHCHECK .*\n\s*CMD (.*)", DOCKERFILE, re.M)[1].replace("5006", str(port))
        run("sh", "-c", healthy)
    finally:
        server.terminate()
        server.wait(30)
    assert "Traceback" not in said.read_text() and "Error" not in said.read_text(), said.read_text()
