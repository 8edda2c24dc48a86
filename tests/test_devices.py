"""Particles that several devices share: the same digits to rounding, and a share of the memory."""

import json
import os
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor

import jax
import numpy as np
import pytest

from stein_core import Recipe, Spec, collect
from stein_core.base.devices import pin
from stein_core.contract.registry import METHODS
from stein_core.runs.runner import Stepper
from stein_core.sweep.work import run_all

LINEAR = [entry.name for entry in METHODS.entries() if entry.facts.linear]
PAIRS = [entry.name for entry in METHODS.entries() if not entry.facts.linear]

STEPS = """
import sys, jax, jax.numpy as jnp, numpy as np
from stein_core import Spec
from stein_core.contract.recipe import knobs_of
from stein_core.forces import interaction, sums
from stein_core.runs.assembly import assemble, mesh_for
jax.config.update("jax_enable_x64", True)
interaction.DENSE, sums.ROWS, sums.COLUMNS, interaction.LOGS = {dense}, 8, 12, 128
for name in {methods}:
    spec = Spec("gaussian", 3, name, draws=2, capacity=64)
    knobs = {{k: jnp.asarray(v) for k, v in knobs_of(spec, {{"method.particles": 61}}).traced.items()}}

    def two_steps(mesh):
        _, method = assemble(spec, knobs, mesh=mesh)
        state = method.init(jax.random.PRNGKey(0), 64)
        step = lambda at, _: method.step(jax.random.fold_in(at.key, at.step), at)
        state, forces = jax.lax.scan(step, state, length=2)
        return state.particles, *forces

    one, eight = (jax.jit(lambda mesh=mesh_for(spec, devices): two_steps(mesh))() for devices in (1, 8))
    for a, b in zip(one, eight):
        np.testing.assert_allclose(b, a, rtol=1e-9, atol=1e-11, err_msg=name)
    print(name)
"""

RUNS = """
import json, jax, numpy as np
from stein_core import Spec
from stein_core.contract.recipe import knobs_of
from stein_core.contract.spec import data_of
from stein_core.runs.runner import Stepper
seen = {}
for name in ("svgd", "smi", "langevin"):
    spec, knobs, at = Spec("gaussian", 20, name, draws=2, capacity=8192), {"method.particles": 8192}, []
    for devices in (1, 8):
        stepper = Stepper(spec, devices)
        traced = knobs_of(spec, knobs).traced
        state = stepper.reset(0, knobs)
        program = stepper._advance.lower(state, traced, data_of(spec), np.int32(1)).compile()
        after, _ = program(state, traced, data_of(spec), np.int32(1))
        shapes = {str(shard.data.shape) for leaf in jax.tree.leaves((after.particles, after.memory))
                  if leaf.ndim for shard in leaf.addressable_shards}
        memory = program.memory_analysis()
        at.append({"shapes": sorted(shapes), "held": memory.argument_size_in_bytes, "temp": memory.temp_size_in_bytes,
                   "particles": np.asarray(after.particles)[::100].tolist()})
    seen[name] = at
print(json.dumps(seen))
"""

JOBS = """
import threading, jax, jax.numpy as jnp
from stein_core.base.devices import Pool, pin
from stein_core.sweep.work import run_all
for devices in (8, 3, 1, None):
    there, at_once = [], threading.Barrier(devices or 1)

    def here(job, stopped):
        x = jnp.arange(3) + job
        at_once.wait(60)  # so many jobs run at the same time
        return str(x.devices()), int(x.sum())

    run_all(range(24), here, None, lambda job, found: there.append((job, *found)), devices=devices)
    assert sorted((job, total) for job, _, total in there) == [(job, 3 * job + 3) for job in range(24)]
    print(len({device for _, device, _ in there}), end=" ")
print(Pool(3).threads(4), Pool(8).threads(4), end=" ")
pin(11)
print(jnp.ones(2).devices() == {jax.devices()[3]})
"""

SWEEP = """
import sys, jax, numpy as np
from stein_core.sweep import grids
from stein_core.sweep.stop import Stop
from stein_core.sweep.store import Store
grids.RUNS_AT_ONCE["cpu"], used, run_batch = 1, set(), grids.run_batch

def noted(*arguments):
    used.add(str(jax.numpy.ones(1).devices()))
    return run_batch(*arguments)

grids.run_batch = noted
recipes = grids.variance_collapse(methods=("langevin",), dims=(2,), particles=(6,), seeds=4)
stop = Stop(stages=1, least=350, noisy=350, most=700)
rows = [grids.run_sweep(recipes, Store(f"{sys.argv[1]}/{devices}"), stop, devices=devices) for devices in (1, 4)]
keys = ("key", "steps", "sample_variance", "force")
assert [[row[k] for k in keys] for row in rows[0]] == [[row[k] for k in keys] for row in rows[1]]
print(len(rows[1]), len(used))
"""


def run(script, *arguments, level=3):
    """Return what a script prints with eight devices, compiled at this level of optimization."""
    flags = f"--xla_force_host_platform_device_count=8 --xla_backend_optimization_level={level}"
    flags = {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], env=os.environ | flags, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.parametrize(
    "dense, methods",
    [
        pytest.param(4096, LINEAR, marks=pytest.mark.long, id="all"),
        pytest.param(8, ["svgd", "smi", "damped"], marks=pytest.mark.long, id="in_blocks"),
    ],
)
def test_eight_devices_take_the_steps_of_one(dense, methods):
    """Whether they share the work does not depend on how well XLA optimizes it."""
    assert run(STEPS.format(dense=dense, methods=methods), level=0).split() == methods


@pytest.mark.long
def test_each_of_eight_devices_holds_its_rows_and_an_eighth_of_the_memory():
    for name, (one, eight) in json.loads(run(RUNS)).items():
        p = {"svgd": 20, "smi": 40, "langevin": 20}[name]
        assert one["shapes"] == [f"(8192, {p})"] and eight["shapes"] == [f"(1024, {p})"]
        assert eight["held"] < 0.15 * one["held"], name
        assert eight["temp"] < one["temp"], name
        np.testing.assert_allclose(eight["particles"], one["particles"], rtol=1e-3, atol=1e-4, err_msg=name)


@pytest.mark.parametrize("method", PAIRS)
def test_a_method_that_forms_all_pairs_refuses_several_devices_by_name(method):
    target = "wave" if METHODS[method].facts.functions else "gaussian"
    with pytest.raises(ValueError, match=f"devices = 2 for method '{method}'.*allowed: 1\\."):
        Stepper(Spec(target, method=method), devices=2)


def test_more_devices_than_there_are_are_refused():
    there = jax.device_count()
    for devices in (0, there + 1):
        with pytest.raises(ValueError, match=f"devices = {devices} is out of range; allowed: 1 to {there}"):
            Stepper(Spec("gaussian", 2, "svgd", capacity=8), devices)


@pytest.mark.long
def test_a_run_on_one_device_is_the_plain_run():
    recipe = Recipe(Spec("gaussian", 2, "svgd", capacity=8), {"method.particles": 8})
    plain, one = (collect(recipe, 3, measure=False, devices=devices)[-1].particles for devices in (None, 1))
    np.testing.assert_array_equal(plain, one)


@pytest.mark.long
def test_jobs_take_devices_in_turn_and_a_worker_keeps_one():
    assert run(JOBS).split() == ["8", "3", "1", "1", "6", "8", "True"]


@pytest.mark.long
def test_a_sweep_on_four_devices_has_the_rows_of_one(tmp_path):
    rows, used = run(SWEEP, str(tmp_path)).split()
    assert rows == "4" and int(used) >= 2  # one may have done two, while others compiled


def test_a_process_sees_one_gpu_of_several(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,5,7")
    pin(4)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "5"
    pin(4)  # again, of the one that is left
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "5"


def test_devices_of_this_process_are_not_those_of_workers_elsewhere():
    with ProcessPoolExecutor(1) as elsewhere, pytest.raises(ValueError, match="devices = 1 with workers elsewhere"):
        run_all([1], print, print, print, elsewhere, devices=1)
    there = jax.device_count()
    with pytest.raises(ValueError, match=f"devices = {there + 1} is out of range; allowed: 1 to {there}"):
        run_all([1], print, print, print, devices=there + 1)
