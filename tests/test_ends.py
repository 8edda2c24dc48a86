"""How a command ends as a process: nobody reads its output any more, or Ctrl-C."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COMMAND = [sys.executable, "-m", "stein_core"]
STUCK = """
import time
import jax.numpy as jnp
from stein_core import TARGETS, from_density

@TARGETS.register("stuck", label="Stuck", reference="here", dims=(1, 3), default_dim=1)
def stuck(dim):
    "A normal, which takes a minute to make in three dimensions, as a large program does."
    time.sleep(60 * (dim == 3))
    return from_density(lambda theta: -0.5 * jnp.sum(theta**2), jnp.zeros(dim))
"""


def begun(*arguments, **options):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    heed = lambda: signal.signal(signal.SIGINT, signal.default_int_handler)  # noqa: E731  (a shell may have it ignored)
    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        preexec_fn=heed,
        **options,
    )


def test_a_list_of_which_only_the_head_is_read_ends_quietly():
    with begun("list") as process:
        process.stdout.read(1)
        process.stdout.close()
        assert process.stderr.read() == b"" and process.wait(60) == 141


def rows_in(store):
    try:
        with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as file:
            return file.execute("SELECT count(*) FROM rows").fetchone()[0]
    except sqlite3.OperationalError:  # not there yet
        return 0


def test_ctrl_c_ends_a_sweep_in_two_seconds_and_keeps_its_rows(tmp_path):
    """Also if one of its threads does something that nothing interrupts, as a compilation."""
    (tmp_path / "stuck.py").write_text(STUCK)
    store = tmp_path / "s.sqlite"
    grid = ["sweep", "variance-collapse", "--target", "stuck", "--methods", "langevin", "--dims", "1,3"]
    grid += ["--particles", "4", "--stages", "1", "--most", "700", "--noisy", "350", "--workers", "2"]
    with begun("--import", tmp_path / "stuck.py", *grid, "--store", store) as process:
        until = time.monotonic() + 120
        while not rows_in(store) and process.poll() is None and time.monotonic() < until:
            time.sleep(0.05)
        assert rows_in(store) == 1
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        code = process.wait(100)
        took, said = time.monotonic() - began, process.stderr.read().decode()
    assert code == 130 and took < 2 and "Traceback" not in said
    assert "interrupted; the finished rows of a sweep or a table are kept." in said and rows_in(store) == 1
