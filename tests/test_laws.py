"""Every law of a method, at two values and more of every knob that the method has, against a run to its rest."""

from functools import lru_cache

import numpy as np
import pytest

from stein_core import METHODS, Spec
from stein_core.contract.facts import MethodFacts
from stein_core.runs.runner import Stepper

D, N = 8, 6
NONE = MethodFacts(guides=("point",)).law
WITH_LAW = [e.name for e in METHODS.entries() if e.facts.law is not NONE and not e.facts.leading and e.name != "blocks"]
STARTS = ("init.spread", "init.shift")
# Two places: a law that forgets a knob may be right at the defaults and at one of the other knob's values.
BASES = ({}, {"bandwidth.factor": 1.3, "method.alpha": 0.8, "method.damping": "free", "method.lambda_": 0.9})
# With these a force is noisy, or pushes a method to no rest: the law must be NaN.
NO_LAW = {("kernel.name", "linear"), ("method.driving", "kernel_derivative"), ("method.driving", "log_derivative")}
NO_LAW |= {("method.repulsion_kernel", "linear")}
NO_LAW |= {("method.added_noise", name) for name in ("cholesky", "elementwise", "through")}


@lru_cache
def stepper_of(method):
    optimizer = None if METHODS[method].facts.optimizers else "sgd"
    return Stepper(Spec("gaussian", D, method, optimizer=optimizer, capacity=8))


def knobs_of(method, base):
    """All knobs of a method that can move its rest, with a step size that converges fast."""
    spec = stepper_of(method).spec
    own = {name: knob.default for name, knob in spec.knobs().items() if name not in STARTS}
    own |= {"method.particles": N, "method.step_size": 0.5, "method.horizon": 40} if method != "langevin" else {}
    own |= METHODS[method].facts.exact_force("gaussian", "rbf")
    return {name: value for name, value in (own | base).items() if name in own and name in spec.knobs()}


def cases(method):
    """(base, knob, value): the defaults, then each knob at other values, one at a time."""
    for number, base in enumerate(BASES):
        given = knobs_of(method, base)
        if number and given == knobs_of(method, {}):
            return
        yield given, "", None
        for name in given:
            knob = stepper_of(method).spec.knobs()[name]
            if knob.choices is not None:
                values = [choice for choice in knob.choices if choice != given[name]]
            elif knob.scale == "integer":
                values = [max(given[name] - 2, 1), given[name] + 2]
            else:
                values = [0.7 * given[name], min(1.25 * given[name], knob.high)]
            for value in values:
                yield given | {name: value}, name, value


def refused(method, knobs):
    try:
        return not stepper_of(method).knobs_of(knobs)
    except ValueError:
        return True


def rest(method, knobs):
    """The sample variance, 1/(n-1), after smaller and smaller steps, and the one before, which tells whether it
    rests."""
    stepper = stepper_of(method)
    state = stepper.reset(0, knobs)
    found = []
    for share, steps in ((1.0, 1500), (0.3, 1500), (0.3, 500)):
        state = stepper.advance(state, knobs | {"method.step_size": share * knobs["method.step_size"]}, steps)
        rows = np.asarray(state.particles, float)[: int(knobs["method.particles"])]
        found.append(rows.var(axis=0, ddof=1).mean())
    return found[-1], found[-2]


SLOW = {"wgd": "rare", "two_kernels": "rare", "newton": "rare"}  # a minute or more of two cores


@pytest.mark.parametrize("method", [
    pytest.param(name, marks=getattr(pytest.mark, SLOW[name]) if name in SLOW else ()) for name in WITH_LAW
    if name != "langevin"
])  # fmt: skip
def test_a_law_takes_every_knob_that_moves_the_rest(method):
    law = METHODS[method].facts.law
    held = 0
    for knobs, name, value in cases(method):
        expected, note = law(D, int(knobs["method.particles"]), knobs), f"{method}: {name} = {value}, {knobs}"
        if (name, value) in NO_LAW or refused(method, knobs):
            assert np.isnan(expected), note
            continue
        with np.errstate(all="ignore"):
            found, before = rest(method, knobs)
        if np.isnan(expected):  # nothing holds the particles: they fly away, or all fall onto one place
            assert not np.isfinite(found) or found > 10 * max(before, 1.0) or found <= min(0.01, 0.95 * before), note
            continue
        assert found == pytest.approx(before, rel=1e-4), f"not at rest: {note}"
        assert expected == pytest.approx(found, rel=2e-3), note
        held += 1
    assert held >= 20


def test_the_law_of_langevin_takes_its_step_size():
    """8 chains in 8 dimensions, looked at 300 times: their mean square has a standard error of about 1 %."""
    stepper, law = stepper_of("langevin"), METHODS["langevin"].facts.law
    for epsilon in (0.2, 0.9):
        knobs = knobs_of("langevin", {"method.step_size": epsilon, "method.particles": 8})
        state = stepper.reset(0, knobs)
        found = []
        for _ in range(300):
            state = stepper.advance(state, knobs, int(10 / epsilon))
            found.append(np.mean(np.asarray(state.particles, float) ** 2))
        assert np.mean(found) == pytest.approx(law(D, 8, knobs), rel=0.03)
    assert (
        abs(law(D, 8, knobs_of("langevin", {"method.step_size": 0.9})) / law(D, 8, {"method.step_size": 0.2}) - 1) > 0.5
    )


def test_laws_that_were_computed_by_other_formulas():
    """n = 20, d = 50: roots of force balances written out by hand, and runs, each to four digits."""

    def law(method, **changed):
        given = {name: knob.default for name, knob in Spec("gaussian", 50, method).knobs().items()}
        return METHODS[method].facts.law(50, 20, given | {name.replace("__", "."): v for name, v in changed.items()})

    assert law("svgd", bandwidth__factor=2.0) == pytest.approx(0.2687, abs=6e-5)
    assert law("annealed", bandwidth__factor=2.0) == pytest.approx(0.2687, abs=6e-5)
    assert law("wsvgd", bandwidth__factor=2.0) == pytest.approx(0.2687, abs=6e-5)
    free = {"method__damping": "free", "method__lambda_": 0.9}
    assert law("damped", bandwidth__factor=2.0, **free) == pytest.approx(0.3317, abs=6e-5)
    assert law("damped", bandwidth__rule="median", bandwidth__factor=2.0) == pytest.approx(1.0, rel=1e-9)
    # lambda = f(1) - f'(1) / gamma = 0.515, which eq. 5 has for factor 1, is below f(1/4) = 0.779: nothing pulls.
    free["method__lambda_"] = 0.515
    assert np.isnan(law("damped", bandwidth__rule="median", bandwidth__factor=2.0, **free))
    closed = {"method__driving": "closed_form", "bandwidth__rule": "median"}
    assert law("mmd", **closed) == pytest.approx(0.9626, abs=6e-5)
    assert law("mmd", **closed, bandwidth__factor=2.0) == pytest.approx(0.9835, abs=6e-5)
    stein = {"bandwidth__rule": "fixed", "method__estimator": "stein"}
    assert law("wgd", **stein) == pytest.approx(law("svgd", bandwidth__rule="fixed"), rel=1e-9)
