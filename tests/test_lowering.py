"""Programs lower for CUDA and TPU, which takes none of these devices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from checks import few

from stein_core import METHODS, Recipe, Spec, from_rows
from stein_core.contract.known import Start
from stein_core.contract.spec import data_of
from stein_core.runs.runner import Stepper
from stein_core.sweep.batches import _compiled, arguments_of, entries_of, program_of
from stein_core.sweep.stop import Stop

PLATFORMS = ("cuda", "tpu")
EVERY = [(method, guide) for method in METHODS for guide in METHODS[method].facts.guides]
FIRST = [("svgd", "point")]
SOME = [pytest.param(*each, marks=() if each in FIRST else pytest.mark.rare) for each in EVERY]


@pytest.mark.parametrize("method, guide", SOME)
def test_a_run_and_its_diagnostics_lower(method, guide):
    lower_all(Spec("correlated", method=method, guide=guide, draws=2, capacity=8, options=few(method)))


@pytest.mark.rare
@pytest.mark.parametrize(
    "target, method, options",
    [
        ("ring", "svgd", {}),
        ("earth", "svgd", {}),
        ("wave", "svgd", {}),
        ("oring", "smi", {"target.coordinates": "whitened"}),
        ("gap_regression", "fsvgd", {"target.width": 10}),
        ("ring_classes", "wgd", {"target.width": 10}),
    ],
)
def test_targets_lower(target, method, options):
    lower_all(Spec(target, method=method, capacity=8, options=options))


def test_a_target_of_rows_lowers():
    rows = np.ones((300, 2), np.float32)
    target = from_rows(
        lambda theta: -0.5 * jnp.sum(theta**2),
        lambda theta, rows: -0.5 * (rows[:, 1] - theta[0] * rows[:, 0]) ** 2,
        rows,
        start=Start(np.zeros(2), np.ones(2)),
        extent=(-1, 1, -1, 1),
        coordinates=("a", "b"),
        constrain=lambda theta: {"a": theta},
    )
    lower_all(Spec(target, method="svgd", capacity=8))


@pytest.mark.rare
@pytest.mark.parametrize("method", ["svgd", "smi"])
def test_a_batch_lowers_as_one_program(method):
    spec, stop = Spec("gaussian", 3, method, draws=2, capacity=8), Stop()
    recipes = [Recipe(spec, {"method.particles": 6}, seed) for seed in range(4)]
    start, advance, _ = _compiled(program_of(recipes[0], stop), entries_of(spec), len(recipes))
    seeds, knobs, d, limits, data = arguments_of(recipes, stop)
    runs = jax.eval_shape(start, seeds, knobs, d, data)
    text = advance.trace(runs, knobs, d, *limits, data, np.int32(1)).lower(lowering_platforms=PLATFORMS).as_text()
    assert "stablehlo.while" in text and "tensor<4x" in text  # four runs side by side


def lower_all(spec):
    """Lower what a Stepper compiles. Nothing is compiled or computed for it: shapes are enough."""
    stepper = Stepper(spec)
    knobs, data, seed, steps = stepper.knobs_of({}).traced, data_of(spec), np.uint32(0), np.int32(3)
    state = jax.eval_shape(stepper._reset, seed, knobs, data)
    for program, arguments in (
        (stepper._reset, (seed, knobs, data)),
        (stepper._advance, (state, knobs, data, steps)),
        (stepper._look, (state, knobs, data)),
    ):
        text = program.trace(*arguments).lower(lowering_platforms=PLATFORMS).as_text()
        assert "callback" not in text  # nothing goes back to Python
        if program is stepper._advance:
            assert "stablehlo.while" in text  # a whole trajectory is one program
    if spec.method not in ("svgd", "smi"):  # diagnostics are the same for all methods
        return
    forces = jax.eval_shape(stepper._look, state, knobs, data)[0]["forces"]
    measuring = stepper._measuring(True)
    own = {name: value for name, value in knobs.items() if name in measuring._names}
    measuring._program.trace(state._replace(memory=()), own, data, forces).lower(lowering_platforms=PLATFORMS)
