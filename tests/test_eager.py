"""A step without compilation is the compiled step. Alone in a module: it leaves thousands of small programs, which slow
down every later compilation of its process."""

import jax
import numpy as np
import pytest
from checks import few, lazy

from stein_core import METHODS, Spec
from stein_core.assembly import assemble

VARIANTS = [(method, guide) for method in METHODS for guide in METHODS[method].facts.guides]


@pytest.mark.long
@pytest.mark.parametrize("method, guide", VARIANTS)
def test_eager_step_equals_jitted_step(method, guide):
    stepper = lazy(Spec("correlated", method=method, guide=guide, draws=2, capacity=8, options=few(method)))
    knobs = {"method.particles": 3}
    state = stepper.reset(1, knobs)
    jitted = stepper.advance(state, knobs, 1)
    with jax.disable_jit():
        _, plain = assemble(stepper.spec, stepper.target, stepper.knobs_of(knobs).traced)
        eager, forces = plain.step(jax.random.fold_in(state.key, state.step), state)
    np.testing.assert_allclose(eager.particles, jitted.particles, rtol=1e-5, atol=1e-5)
    frame = stepper.look(state, knobs)
    np.testing.assert_allclose(forces.attract[: len(frame.attract)], frame.attract, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(forces.repulse[: len(frame.repulse)], frame.repulse, rtol=1e-4, atol=1e-5)
