"""Programs that XLA compiles quickly: most of the time of most tests is compiling.

They are the same programs, in machine code that nobody has optimized: a fifth of the time to compile, and up to a few
times the time of a step. `STEINLAB_OPTIMIZED=1`, as in `.ci/newer` and `.ci/all`, has all of them as users have them.
"""

import os
import shutil
import subprocess
import sys
from contextlib import contextmanager

FLAGS = ("xla_backend_optimization_level=0", "xla_cpu_use_fusion_emitters=false")
USUAL = {"xla_backend_optimization_level": 3, "xla_cpu_use_fusion_emitters": True}
TRY = "import jax; jax.devices()"
ASKED = bool(os.environ.get("STEINLAB_OPTIMIZED"))


def known(*flags: str) -> bool:
    """Whether this XLA takes these flags. It ends a process that has others, and has names of old ones in its file."""
    given = {**os.environ, "XLA_FLAGS": " ".join(f"--{flag}" for flag in flags), "JAX_PLATFORMS": "cpu"}
    return subprocess.run([sys.executable, "-c", TRY], env=given, capture_output=True).returncode == 0


def compile_quickly() -> None:
    """Let this process, which has compiled nothing yet, and those that it starts compile quickly. On a CPU only."""
    given = os.environ.get("XLA_FLAGS", "")
    if not ASKED and "xla_backend_optimization_level" not in given and not shutil.which("nvidia-smi"):
        flags = FLAGS if known(*FLAGS) else [flag for flag in FLAGS if known(flag)]
        os.environ["XLA_FLAGS"] = " ".join(filter(None, [given, *(f"--{flag}" for flag in flags)]))


@contextmanager
def optimized():
    """What is compiled meanwhile in this process is compiled as for users."""
    from jax._src import compiler

    usual = compiler.get_compile_options
    usually = [(name, value) for name, value in USUAL.items() if f"--{name}=" in os.environ.get("XLA_FLAGS", "")]

    def options(*given, **named):
        made = usual(*given, **named)
        made.env_option_overrides = [*made.env_option_overrides, *usually]
        return made

    compiler.get_compile_options = options
    try:
        yield
    finally:
        compiler.get_compile_options = usual
