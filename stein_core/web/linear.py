"""Primitives of linear algebra: `linear.js` has a function for each."""

from __future__ import annotations

import math

from stein_core.web.expressions import held
from stein_core.web.indexing import batched
from stein_core.web.translate import operation


def shapes(out):
    """Return (shape, dtype) of each output."""
    return [(o.shape, str(o.dtype)) for o in out]


@operation("cholesky")
def cholesky(program, lines, params, inputs, out, name):
    n = out[0].shape[-1]
    return batched(program, lines, inputs[0], shapes(out), lambda x, i, to, o: f"cholesky({x},{i},{to[0]},{o[0]},{n});")


@operation("lu")
def lu(program, lines, params, inputs, out, name):
    rows, columns = out[0].shape[-2:]
    if rows != columns:
        raise ValueError(f"no JavaScript for JAX's 'lu' of {rows} by {columns}; allowed: square matrices.")

    def call(x, i, to, o):
        return f"lu({x},{i},{to[0]},{o[0]},{to[1]},{o[1]},{to[2]},{o[2]},{rows});"

    return batched(program, lines, inputs[0], shapes(out), call)


@operation("eigh")
def eigh(program, lines, params, inputs, out, name):
    n = out[0].shape[-2]
    first = len(out[0].shape) > len(out[1].shape)  # whether the vectors come first

    def call(x, i, to, o):
        (v, w), (at_v, at_w) = (to, o) if first else (to[::-1], o[::-1])
        return f"eigh({x},{i},{v},{at_v},{w},{at_w},{n});"

    return batched(program, lines, inputs[0], shapes(out), call)


@operation("qr")
def qr(program, lines, params, inputs, out, name):
    rows, columns = inputs[0].shape[-2:]
    if params["full_matrices"] or params.get("pivoting") or rows < columns:
        raise ValueError("no JavaScript for JAX's 'qr' with full matrices, pivots, or more columns than rows.")

    def call(x, i, to, o):
        return f"qr({x},{i},{to[0]},{o[0]},{to[1]},{o[1]},{rows},{columns});"

    return batched(program, lines, inputs[0], shapes(out), call)


@operation("triangular_solve")
def triangular_solve(program, lines, params, inputs, out, name):
    a, b = (program.in_buffer(lines, v) for v in inputs)
    shape, dtype, n = out[0].shape, str(out[0].dtype), a.shape[-1]
    target, others = program.array(shape, dtype), math.prod(shape[-2:]) // n
    program.fill(lines, target, b)
    flags = ",".join(
        "true" if params[flag] else "false" for flag in ("left_side", "lower", "transpose_a", "unit_diagonal")
    )

    def body(i):
        at_a, at_b = ("0", "0") if i[0] == 0 else (f"{n * n}*{i[0]}", f"{n * others}*{i[0]}")
        return f"solveTriangle({a.buffer},{at_a},{target},{at_b},{n},{others},{flags});"

    program.loop(lines, [math.prod(shape[:-2])], body)
    return held(target, shape, dtype)
