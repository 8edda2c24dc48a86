"""With `jax_enable_x64` all of `stein_core` computes in float64, and its answers are those of float32 to rounding."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from checks import few

SCRIPT = """
import json, os, sys
import jax
import jax.numpy as jnp
import numpy as np
from stein_core.contract.known import Start
from stein_core import Recipe, Spec, collect, from_rows, keep_compiled
from stein_core.runs.outputs import function_values
from stein_core.sweep.batches import run_batch
from stein_core.sweep.stop import Stop

if os.environ.get("STEINLAB_CACHE"):
    keep_compiled()
found = {}
for name, spec, knobs in json.loads(sys.argv[1]):
    recipe = Recipe(Spec(**spec), {"method.particles": 7, "method.step_size": 0.02, **knobs}, seed=3)
    frame = collect(recipe, 12, measure=True if name in ("a start", "40") else False)[-1]
    found[name] = {"particles": frame.particles.tolist(), "force": frame.attract.tolist()}
    found[name]["type"] = str(frame.particles.dtype)
    found[name]["metrics"] = {k: v for k, v in frame.metrics.items() if np.isfinite(v)}
recipe = Recipe(Spec("gaussian", 3, "svgd", capacity=8), {"method.particles": 7}, seed=3)
found["batch"] = {"metrics": run_batch([recipe], Stop(most=400))[0]["metrics"]}
spec = Spec("wave", None, "svgd", capacity=8)
values = function_values(spec, np.full((8, spec.dim), 0.1), {"method.particles": 7}, np.linspace(-1, 1, 5))
rows = from_rows(
    lambda theta: -0.5 * jnp.sum(theta**2),
    lambda theta, rows: -0.5 * (rows[:, 1] - theta[0] - theta[1] * rows[:, 0]) ** 2,
    np.float32(np.random.default_rng(0).normal(size=(500, 2))),
    batch=40, start=Start(np.zeros(2), np.ones(2)), extent=(-3, 3, -3, 3), coordinates=("a", "b"),
    constrain=lambda theta: {"line": theta},
)
frame = collect(Recipe(Spec(rows, method="svgd", capacity=8), {"method.particles": 7}, seed=3), 12)[-1]
found["mini-batches"] = {"particles": frame.particles.tolist(), "force": frame.attract.tolist()}
found["functions"] = {"particles": values.tolist()}
print(json.dumps(found))
"""
SMALL = {"capacity": 8, "draws": 2}
# Methods whose exact draws come from JAX's own generator: it takes other bits for float64.
OTHER_DRAWS = ("mmd",)
SOME = ("svgd point", "smi normal", "langevin point", "wgd point", "vi normal", "gap fsvgd")


def runs():
    from stein_core.contract.registry import KERNELS, METHODS

    found = [("a start", {"target": "correlated", "method": "smi", **SMALL}, {"bandwidth.rule": "numpyro"})]
    for method in METHODS.entries():
        for guide in method.facts.guides[:1] if method.name != "smi" else ("normal", "full", "low_rank"):
            own = {"method": method.name, "guide": guide, "options": few(method.name)}
            spec = {"target": "correlated", "dim": 4, **own, **SMALL}
            found.append((f"{method.name} {guide}", spec, {}))
    for kernel in KERNELS:
        found.append((kernel, {"target": "ring", "method": "svgd", **SMALL}, {"kernel.name": kernel}))
    found.append(("adagrad", {"target": "earth", "method": "svgd", "optimizer": "adagrad", **SMALL}, {}))
    for target in ("oring", "wave"):
        found.append((target, {"target": target, "method": "svgd", **SMALL}, {"bandwidth.rule": "root_dim"}))
    for estimator in ("sge", "ssge"):
        found.append((estimator, {"target": "correlated", "method": "wgd", **SMALL}, {"method.estimator": estimator}))
    gap = {"target": "gap_regression", "options": {"target.width": 10}, **SMALL}
    found += [(f"gap {method}", {**gap, "method": method}, {}) for method in ("svgd", "fsvgd")]
    found.append(("40", {"target": "gaussian", "dim": 40, "method": "smi", **SMALL}, {"bandwidth.rule": "median"}))
    return found


def computed(x64, wanted):
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(wanted)],
        env={**os.environ, "JAX_ENABLE_X64": x64},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(SOME[:2], marks=pytest.mark.long, id="points and guides"),
        pytest.param(SOME, marks=pytest.mark.rare, id="one of each kind"),
        pytest.param(None, marks=pytest.mark.rare, id="all"),
    ],
)
def test_float64_gives_the_answers_of_float32_to_rounding(names):
    wanted = [run for run in runs() if names is None or run[0] in names]
    assert names is None or len(wanted) == len(names)
    double, single = computed("1", wanted), computed("0", wanted)
    for name, _, _ in wanted:
        assert double[name]["type"] == "float64" and single[name]["type"] == "float32", name
    for name in single:
        if name.startswith(OTHER_DRAWS):
            continue
        for what in ("particles", "force"):
            if what in single[name]:
                one, other = np.array(single[name][what]), np.array(double[name][what])
                np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4 * np.abs(other).max(), err_msg=name)
        for metric, value in single[name].get("metrics", {}).items():
            if metric not in ("mmd", "ksd") and value is not None:
                assert value == pytest.approx(double[name]["metrics"][metric], rel=5e-3, abs=1e-4), (name, metric)
