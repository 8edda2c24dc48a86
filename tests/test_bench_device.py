"""`bench device`: its rows, and its bound on the time."""

import importlib.util
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from stein_core import Spec
from stein_core.cli import bench_device
from stein_core.cli.bench_device import Case
from stein_core.cli.main import main
from stein_core.runs.runner import Stepper

PEER = ["BlackJAX"] * bool(importlib.util.find_spec("blackjax"))


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(bench_device, "SIZES", (64,))
    monkeypatch.setattr(bench_device, "DIMS", (2,))
    monkeypatch.setattr(bench_device, "SIDE", 256)


def test_each_row_says_how_fast_steps_are(small, tmp_path, capsys):
    assert main(["bench", "device", "--json", str(tmp_path / "rows.json")]) == 0
    found = json.loads((tmp_path / "rows.json").read_text())
    seen = {(row["method"], row["d"], row["n"], row["how"]) for row in found["rows"]}
    assert seen == {(m, 2, 64, "float32") for m in ("svgd", "smi")} | {("svgd", 2, 64, how) for how in PEER}
    for row in found["rows"]:
        flops = bench_device.flops_of(Case(row["method"], 2, 64))
        assert row["share"] == pytest.approx(flops * row["steps_per_second"] / found["matmul_flops"])
        assert row["steps_per_second"] > 1
    out = capsys.readouterr().out
    assert out.count("%") == len(seen) and "multiplies bfloat16 as float32" in out


def test_all_devices_and_bfloat16_have_rows_of_their_own(small, monkeypatch):
    monkeypatch.setattr(jax, "device_count", lambda: 4)
    ours = [case for case in bench_device.cases(narrow=True) if case.how != "BlackJAX"]
    assert {case.how for case in ours} == {"float32", "bfloat16", "4 devices"} and len(ours) == 6
    assert bench_device.measured(Case("svgd", 2, 66, "4 devices"), 1e12, 100.0)["left_out"].endswith(
        "66 particles equally"
    )


class Rounded(Stepper):
    """Steps whose forces are those of particles rounded to bfloat16: what such products do on a GPU."""

    def look(self, state, knobs, measure=True):
        there = state.particles.astype(jnp.bfloat16).astype(jnp.float32)
        return super().look(state._replace(particles=there), knobs, measure)


def test_the_error_of_bfloat16_is_measured_and_leaves_out_what_is_too_far_off(small, monkeypatch):
    spec, knobs = Spec("gaussian", 2, "svgd", draws=1, capacity=64), {"method.particles": 64}
    exact = Stepper(spec)
    state = exact.reset(0, knobs)
    one, other = (each.look(state, knobs, False) for each in (exact, Rounded(spec)))
    total, rounded = one.attract + one.repulse, other.attract + other.repulse
    wanted = np.abs(total - rounded).max() / np.abs(total).max()
    assert bench_device.error_of(spec, exact) == 0 and 1e-4 < wanted < 1e-2
    assert bench_device.error_of(spec, Rounded(spec)) == pytest.approx(wanted)
    monkeypatch.setattr(bench_device, "Stepper", lambda spec, devices: (Rounded if devices != 1 else Stepper)(spec))
    row = bench_device.measured(Case("svgd", 2, 64, "bfloat16"), 1e12, 100.0)
    assert row["error"] == 0 and row["steps_per_second"] > 1
    monkeypatch.setattr(bench_device, "error_of", lambda spec, stepper: 0.03)
    row = bench_device.measured(Case("svgd", 2, 64, "bfloat16"), 1e12, 100.0)
    assert row == {"left_out": "left out: forces are 3 % off", "error": 0.03}


def test_a_device_that_rounds_to_bfloat16_is_recognised(monkeypatch):
    assert not bench_device.has_narrow()
    rounded = jnp.float32(jnp.bfloat16(1 / 3))
    monkeypatch.setattr(jnp, "full", lambda shape, value, kind: jnp.broadcast_to(rounded, shape))
    assert bench_device.has_narrow()


def test_steps_multiply_as_they_are_told(monkeypatch):
    told, usual = [], jax.default_matmul_precision
    monkeypatch.setattr(jax, "default_matmul_precision", lambda name: told.append(name) or usual(name))
    stepper = Stepper(Spec("gaussian", 2, "svgd", capacity=8))
    stepper.products = bench_device.NARROW
    state = stepper.reset(0, {})
    told.clear()
    stepper.look(stepper.advance(state, {}, 1), {}, False)
    assert told == [bench_device.NARROW] * 2


def test_what_would_exceed_the_bound_is_left_out_with_the_reason(small, capsys):
    assert main(["bench", "device", "--seconds", "5"]) == 0
    assert capsys.readouterr().out.count("left out: it takes about 10 s") == 2 + len(PEER)
    assert main(["bench", "device", "--seconds", "0"]) == 2
    assert "--seconds = 0.0 is out of range" in capsys.readouterr().err


def test_what_does_not_fit_into_memory_is_left_out_with_the_reason(small, monkeypatch, capsys):
    monkeypatch.setenv("STEINLAB_MEMORY_GB", "0.000001")
    assert main(["bench", "device"]) == 0
    assert capsys.readouterr().out.count("GB of memory") == 2 + len(PEER)
