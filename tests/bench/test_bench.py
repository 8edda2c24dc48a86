"""The benchmark counts what it says; it is never timed here."""

import json

import cases
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import remedies
import steps

from stein_core.contract.recipe import knobs_of
from stein_core.runs.assembly import assemble

RATE = {"flops": 1e11, "normals": 1e8, "bytes": 1e10}


def matmul_flops(jaxpr) -> float:
    """Of all dot_general in a jaxpr; of the branches of a switch the dearest."""
    total = 0.0
    for equation in jaxpr.eqns:
        if equation.primitive.name == "dot_general":
            contracted = equation.params["dimension_numbers"][0][0]
            left = equation.invars[0].aval.shape
            total += 2 * np.prod(equation.outvars[0].aval.shape) * np.prod([left[i] for i in contracted])
        inner = [matmul_flops(getattr(p, "jaxpr", p)) for p in jax.tree.leaves(
            list(equation.params.values()), is_leaf=lambda p: hasattr(p, "eqns") or hasattr(p, "jaxpr")
        ) if hasattr(p, "eqns") or hasattr(p, "jaxpr")]  # fmt: skip
        total += max(inner, default=0.0) if equation.primitive.name == "cond" else sum(inner)
    return total


@pytest.mark.parametrize(
    "case", [cases.svgd_case(40, 60), cases.smi_case(4, 30, 6), cases.wave_case(20, 4, 6)], ids=lambda c: c.name
)
def test_the_floor_counts_the_matmuls_of_a_step(case):
    knobs = {k: jnp.asarray(v) for k, v in knobs_of(case.spec, {"method.particles": case.particles}).traced.items()}
    _, method = assemble(case.spec, knobs)
    state = method.init(jax.random.PRNGKey(0), case.spec.capacity)
    counted = matmul_flops(jax.make_jaxpr(method.step)(jax.random.PRNGKey(0), state).jaxpr)
    assert case.matmul == pytest.approx(counted, rel=0.15)  # the wave: 40 points, padded to 48 rows


def test_a_floor_is_arithmetic_or_memory():
    case = cases.svgd_case(100, 50)
    assert steps.floor(case, RATE) == pytest.approx(4 * case.touched / 1e10)
    assert steps.floor(case, {**RATE, "bytes": 1e15}) == pytest.approx(case.matmul / 1e11)
    case, fast = cases.smi_case(20, 50), {**RATE, "bytes": 1e15}
    assert steps.floor(case, fast) == pytest.approx(case.matmul / 1e11)
    assert steps.floor(case, fast, drawn=True) == pytest.approx(case.matmul / 1e11 + 20 * 10 * 50 / 1e8)


def test_every_particle_and_draw_is_evaluated_once():
    assert steps.evaluations(cases.svgd_case(6, 3)) == 6
    assert steps.evaluations(cases.smi_case(4, 3)) == 40


def test_peers_multiply_as_exactly_as_ours():
    """On a GPU JAX's own precision is faster, and errs by a thousand times as much."""
    program = {}

    def step(key, x):
        program["exact"] = jax.make_jaxpr(jnp.matmul)(x, x)
        return x

    steps._looped(step, jnp.eye(2))
    assert "HIGHEST" in str(program["exact"])


def test_the_table(monkeypatch, tmp_path, capsys):
    """Ours and a peer that takes three times as long, in turns."""
    turns = []

    def runner(name, cost):
        def run(steps):
            turns.append(name)

        run.cost = cost
        return run

    monkeypatch.setattr(steps, "ours", lambda case: runner("ours", 1e-3))
    monkeypatch.setattr(steps, "PEERS", {name: lambda case, name=name: runner(name, 3e-3) for name in steps.PEERS})
    monkeypatch.setattr(steps, "seconds", lambda run, least: run(1) or run.cost)
    monkeypatch.setattr(steps, "rates", lambda: RATE)
    monkeypatch.setattr(steps, "cases", lambda quick: [cases.svgd_case(4, 2)])
    steps.main(["--pairs", "3", "--json", str(tmp_path / "table.json")])
    assert turns == ["ours", "blackjax"] * 3
    (row,) = json.loads((tmp_path / "table.json").read_text())["rows"]
    assert row["ms"] == pytest.approx(1.0) and row["peers"]["blackjax"]["ratio"] == pytest.approx(3.0)
    assert "SVGD n=4 d=2" in capsys.readouterr().out


def test_seconds_per_step_of_a_long_enough_run(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(steps.time, "perf_counter", lambda: clock[0])

    def run(steps):
        clock[0] += 0.01 + 0.001 * steps  # a start and a millisecond a step

    assert steps.seconds(run, 2.0) == pytest.approx(0.001, rel=0.02)


def test_a_remedy_is_compared_with_svgd_on_the_same_problem():
    one, plain = (remedies.case_of(method, 7, 3) for method in ("noisy", "svgd"))
    assert one.spec.carried_to(method="svgd") == plain.spec and one.particles == plain.particles == 7
    assert min(remedies.compare("noisy", 7, 3, 1, least=0.0)) > 0
