"""How the house is laid out: what may import what."""

import subprocess
import sys

HEAVY = ("panel", "param", "bokeh", "holoviews", "scipy.stats", "pandas", "matplotlib")


def test_the_core_imports_no_page_and_nothing_heavy():
    script = f"import sys, stein_core; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
