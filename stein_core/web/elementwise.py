"""Primitives that compute an entry from the entries at its place."""

from __future__ import annotations

import math
from collections.abc import Callable

from stein_core.web.expressions import Value, repeated, rounded
from stein_core.web.translate import operation

# Results of the first two are rounded; those of EXACT are right as they are.
FUNCTIONS = {
    "sqrt": "Math.sqrt({0})", "rsqrt": "1/Math.sqrt({0})", "exp": "Math.exp({0})", "log": "Math.log({0})",
    "log1p": "Math.log1p({0})", "expm1": "Math.expm1({0})", "sin": "Math.sin({0})", "cos": "Math.cos({0})",
    "tan": "Math.tan({0})", "tanh": "Math.tanh({0})", "sinh": "Math.sinh({0})", "cosh": "Math.cosh({0})",
    "asin": "Math.asin({0})", "acos": "Math.acos({0})", "atan": "Math.atan({0})", "atan2": "Math.atan2({0},{1})",
    "cbrt": "Math.cbrt({0})", "exp2": "Math.pow(2,{0})", "pow": "Math.pow({0},{1})", "erf": "erf({0})",
    "erfc": "erfc({0})", "lgamma": "lgamma({0})", "digamma": "digamma({0})", "logistic": "1/(1+Math.exp(-{0}))",
    "one_minus_square": "1-{0}*{0}",
}  # fmt: skip
ARITHMETIC = {
    "add": "{0}+{1}", "add_any": "{0}+{1}", "sub": "{0}-{1}", "mul": "{0}*{1}", "div": "{0}/{1}", "rem": "{0}%{1}",
}  # fmt: skip
EXACT = {
    "sign": "Math.sign({0})", "abs": "Math.abs({0})", "floor": "Math.floor({0})", "ceil": "Math.ceil({0})",
    "erf_inv": "erfInv({0})", "max": "Math.max({0},{1})", "min": "Math.min({0},{1})",
    "is_finite": "Number.isFinite({0})", "clamp": "Math.min(Math.max({1},{0}),{2})", "round": "roundEven({0})",
    "lt": "({0}<{1})", "le": "({0}<={1})", "gt": "({0}>{1})", "ge": "({0}>={1})", "eq": "({0}=={1})",
    "ne": "({0}!={1})", "lt_to": "({0}<{1})", "le_to": "({0}<={1})",
}  # fmt: skip
BITS = {
    "and": "&", "or": "|", "xor": "^", "shift_left": "<<", "shift_right_logical": ">>>", "shift_right_arithmetic": ">>",
}  # fmt: skip
CONVERTED = {"float32": "F({0})", "int32": "({0}|0)", "uint32": "({0}>>>0)", "bool": "({0}!=0)"}
AS_BITS = {"int32": "ibits({0})", "uint32": "(ibits({0})>>>0)", "float32": "fbits({0})"}


def entry_by_entry(program, lines, inputs, out, form: Callable[..., str]) -> Value:
    """Return the Value whose entries are form(entries of the inputs). What is repeated is computed once."""
    shape = out[0].shape
    parts = [program.kept(lines, v) if math.prod(v.shape) < math.prod(shape) else v for v in inputs]
    return Value(
        shape, str(out[0].dtype), lambda i: form(*[v.at(repeated(v, i) if v.shape else []) for v in parts]), False
    )


@operation(*FUNCTIONS, *ARITHMETIC, *EXACT)
def function(program, lines, params, inputs, out, name):
    dtype = str(out[0].dtype)
    if name in EXACT:
        return entry_by_entry(program, lines, inputs, out, EXACT[name].format)
    text = "Math.imul({0},{1})" if name == "mul" and dtype != "float32" else (FUNCTIONS | ARITHMETIC)[name]
    return entry_by_entry(program, lines, inputs, out, lambda *x: rounded(text.format(*x), dtype))


@operation("polynomial")
def polynomial(program, lines, params, inputs, out, name):
    """Horner's rule; the last coefficient is that of the highest power. JAX 0.12 has a primitive for it."""
    dtype = str(out[0].dtype)

    def form(x, *coefficients):
        text = coefficients[-1]
        for one in reversed(coefficients[:-1]):
            text = rounded(f"{rounded(f'{text}*{x}', dtype)}+{one}", dtype)
        return text

    return entry_by_entry(program, lines, [program.kept(lines, inputs[0]), *inputs[1:]], out, form)


@operation("neg")
def neg(program, lines, params, inputs, out, name):
    dtype = str(out[0].dtype)
    return entry_by_entry(
        program, lines, inputs, out, lambda x: f"(-{x})" if dtype == "float32" else rounded(f"-{x}", dtype)
    )


@operation(*BITS)
def bits(program, lines, params, inputs, out, name):
    dtype, sign = str(out[0].dtype), BITS[name]
    if dtype == "bool":
        return entry_by_entry(program, lines, inputs, out, lambda x, y: f"({x}{'!=' if sign == '^' else sign * 2}{y})")
    return entry_by_entry(program, lines, inputs, out, lambda x, y: rounded(f"{x}{sign}{y}", dtype))


@operation("not")
def invert(program, lines, params, inputs, out, name):
    dtype = str(out[0].dtype)
    return entry_by_entry(
        program, lines, inputs, out, lambda x: f"(!{x})" if dtype == "bool" else rounded(f"~{x}", dtype)
    )


@operation("square", "integer_pow")
def power(program, lines, params, inputs, out, name):
    y, dtype = params.get("y", 2), str(out[0].dtype)
    if dtype != "float32":
        return entry_by_entry(program, lines, inputs, out, lambda x: rounded(f"Math.pow({x},{y})", dtype))
    return entry_by_entry(program, lines, inputs, out, lambda x: f"sq({x})" if y == 2 else f"ipow({x},{y})")


@operation("select_n")
def select(program, lines, params, inputs, out, name):
    if inputs[0].dtype == "bool":
        return entry_by_entry(program, lines, inputs, out, lambda which, no, yes: f"({which}?{yes}:{no})")

    def form(which, *cases):
        text = cases[-1]
        for k in reversed(range(len(cases) - 1)):
            text = f"({which}=={k}?{cases[k]}:{text})"
        return text

    return entry_by_entry(program, lines, inputs, out, form)


@operation("convert_element_type")
def convert(program, lines, params, inputs, out, name):
    kind, dtype = inputs[0].dtype, str(out[0].dtype)
    if kind == dtype:
        return inputs[0]
    form = (lambda x: CONVERTED[dtype].format(f"({x}?1:0)")) if kind == "bool" else CONVERTED[dtype].format
    return entry_by_entry(program, lines, inputs, out, form)


@operation("bitcast_convert_type")
def bitcast(program, lines, params, inputs, out, name):
    kind, dtype = inputs[0].dtype, str(out[0].dtype)
    form = (CONVERTED if "float32" not in (kind, dtype) else AS_BITS)[dtype].format
    return entry_by_entry(program, lines, inputs, out, form)


@operation("stop_gradient", "copy", "copy_p", "random_wrap", "random_unwrap", "reduce_precision", "pvary")
def same(program, lines, params, inputs, out, name):
    return inputs[:1]


@operation("optimization_barrier")
def barrier(program, lines, params, inputs, out, name):
    return [program.kept(lines, v) for v in inputs]
