"""Shared by all tests: the compile counter and small helpers. Steppers are shared through stein_core.compile."""

import os
from contextlib import contextmanager

import jax
import numpy as np
import pytest

import stein_core

if os.environ.get("STEINLAB_CACHE"):
    stein_core.keep_compiled()

TRACE = "/jax/core/compile/jaxpr_trace_duration"
COMPILE = "/jax/core/compile/backend_compile_duration"
ARRAYS = ("particles", "locations", "scales", "attract", "repulse")


@pytest.fixture
def counted():
    """A context manager that counts JAX's traces and compiles: `with counted() as n: ...; n[TRACE]`."""

    @contextmanager
    def counting():
        counts = {TRACE: 0, COMPILE: 0}

        def listen(event, duration, **facts):
            if event in counts:
                counts[event] += 1

        jax.monitoring.register_event_duration_secs_listener(listen)
        try:
            yield counts
        finally:
            jax.monitoring.unregister_event_duration_listener(listen)

    return counting


def assert_same_frame(a, b, rtol=0.0, atol=0.0):
    """Equal step and arrays; metrics too, where NaN equals NaN (undefined in both)."""
    assert a.step == b.step and a.finite == b.finite
    for name in ARRAYS:
        np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=rtol, atol=atol, err_msg=name)
    assert list(a.metrics) == list(b.metrics)
    for name, value in a.metrics.items():
        np.testing.assert_allclose(value, b.metrics[name], rtol=rtol, atol=atol, err_msg=name)


def assert_no_nan(frame, note=""):
    with_nan = [name for name in ARRAYS if np.isnan(getattr(frame, name)).any()]
    assert not with_nan, note


def force_of(frame):
    return frame.attract + frame.repulse
