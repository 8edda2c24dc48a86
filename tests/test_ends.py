"""How a command ends as a process: nobody reads its output any more, or Ctrl-C."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from checks import rows_in, until

ROOT = Path(__file__).resolve().parents[1]
HEED = """
import runpy, signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
runpy.run_module("stein_core", run_name="__main__", alter_sys=True)
"""
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


def begun(*arguments, stdout=subprocess.PIPE):
    return subprocess.Popen(
        [sys.executable, "-c", HEED, *map(str, arguments)],
        stdout=stdout,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def test_a_list_that_nobody_reads_any_more_ends_quietly():
    reads, writes = os.pipe()
    os.close(reads)
    with begun("list", stdout=writes) as process:
        os.close(writes)
        assert process.stderr.read() == b"" and process.wait(60) == 141


def test_ctrl_c_ends_a_sweep_in_two_seconds_and_keeps_its_rows(tmp_path):
    """Also if one of its threads does something that nothing interrupts, as a compilation."""
    (tmp_path / "stuck.py").write_text(STUCK)
    store = tmp_path / "s.sqlite"
    grid = ["sweep", "variance-collapse", "--target", "stuck", "--methods", "langevin", "--dims", "1,3"]
    grid += ["--particles", "4", "--stages", "1", "--most", "700", "--noisy", "350", "--workers", "2"]
    with begun("--import", tmp_path / "stuck.py", *grid, "--store", store) as process:
        until(lambda: rows_in(store) or process.poll() is not None, pause=0.05)
        assert rows_in(store) == 1
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        code = process.wait(100)
        took, said = time.monotonic() - began, process.stderr.read().decode()
    assert code == 130 and took < 20 and "Traceback" not in said
    assert "interrupted; the finished rows of a sweep or a table are kept." in said and rows_in(store) == 1
