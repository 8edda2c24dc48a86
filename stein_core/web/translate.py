"""Translate a JAX program into JavaScript over typed arrays: every array of it has a fixed size.

An equation is an expression of the indices, which is written where it is read if that is once, or a loop of its own.
Rounding is that of float32: `F` is Math.fround, which engines turn into one float32 instruction. Sums are in float64.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.extend.core import Literal

from stein_core.web.expressions import ARRAYS, Index, Value, flat, held, number, scalar

INLINED = ("jit", "pjit", "closed_call", "custom_jvp_call", "custom_vjp_call", "core_call", "remat", "checkpoint")
FOLDED = 64  # entries: a constant of at most so many is computed while translating
HELPERS = "\n".join(Path(__file__).with_name(name).read_text(encoding="utf-8") for name in ("helpers.js", "linear.js"))

Operation = Callable[["Program", list[str], dict[str, Any], list[Value], list[Any], str], Any]
OPERATIONS: dict[str, Operation] = {}  # by the name of the primitive


def operation(*names: str):
    """Register a function for primitives.

    It is called as function(program, lines, params, inputs, out, name) with the Values of the inputs, the avals of the
    outputs and the name of the primitive, adds to lines, and returns the Values of the outputs, or the only one.
    """

    def register(function):
        OPERATIONS.update(dict.fromkeys(names, function))
        return function

    return register


class Program:
    """Hold the typed arrays and loops of one JavaScript function while it is written."""

    def __init__(self):
        self.count, self.declared, self.loops = 0, [], []

    def name(self, letter: str) -> str:
        """Return a new name. Those of numbers begin with "_s": loops get them as arguments."""
        self.count += 1
        return f"{letter}{self.count}"

    def array(self, shape: Sequence[int], dtype: str) -> str:
        """Declare a typed array. Returns its name."""
        name = self.name("b")
        self.declared.append(f"const {name} = new {ARRAYS[dtype]}({math.prod(shape)});")
        return name

    def constant(self, x: Any) -> Value:
        """Return a constant."""
        x = np.asarray(x)
        dtype, known = str(x.dtype), x if x.size <= FOLDED else None
        if x.shape == () or (x.size and (x == x.flat[0]).all()):
            text = number(x.flat[0])
            return Value(x.shape, dtype, lambda i: text, known=known)
        name = self.name("b")
        self.declared.append(f"const {name} = new {ARRAYS[dtype]}([{','.join(number(v) for v in x.ravel())}]);")
        return Value(x.shape, dtype, lambda i: f"{name}[{flat(i, x.shape)}]", True, name, known)

    # ---- loops

    def loop(self, lines: list[str], sizes: Sequence[int], body: Callable[[Index], str]) -> None:
        """Write a function with loops around `body`, which takes the indices, and a call of it."""
        index = [0 if n == 1 else f"i{k}" for k, n in enumerate(sizes)]
        text = "".join(f"for(let {i}=0;{i}<{n};{i}++)" for i, n in zip(index, sizes) if n > 1) + f"{{{body(index)}}}"
        free, name = sorted(set(re.findall(r"\b_s\d+\b", text))), self.name("k")
        self.loops.append(f"function {name}({','.join(free)}){{{text}}}")
        lines.append(f"{name}({','.join(free)});")

    def fill(self, lines: list[str], name: str, value: Value) -> None:
        """Write a value into a typed array."""
        self.loop(lines, value.shape, lambda i: f"{name}[{flat(i, value.shape)}]={value.at(i)};")

    def kept(self, lines: list[str], value: Value) -> Value:
        """Return a value after it was written into an array, if it is not cheap to read often."""
        if not value.cheap and value.shape != ():
            name = self.array(value.shape, value.dtype)
            self.fill(lines, name, value)
            value.at, value.cheap, value.buffer = (lambda i: f"{name}[{flat(i, value.shape)}]"), True, name
        return value

    def in_buffer(self, lines: list[str], value: Value) -> Value:
        """Return a value that a typed array holds."""
        if value.buffer is None:
            value.cheap = False
            if value.shape == ():
                name = self.array((), value.dtype)
                lines.append(f"{name}[0]={value.at([])};")
                return held(name, (), value.dtype)
            self.kept(lines, value)
        return value

    def variable(self, lines: list[str], dtype: str, text: str = "", word: str = "const") -> Value:
        """Return a number of its own."""
        name = self.name("_s")
        lines.append(f"{word} {name}={text};" if text else f"let {name};")
        return scalar(name, dtype)

    # ---- equations

    def inline(self, jaxpr, consts, args) -> tuple[list, list]:
        """Return (equations without calls, outputs). What is read is a Value, or the key of an equation's output."""
        env = dict(zip(jaxpr.constvars, consts)) | dict(zip(jaxpr.invars, args))
        equations = []

        def read(v):
            return self.constant(v.val) if isinstance(v, Literal) else env[v]

        for e in jaxpr.eqns:
            ins, name = [read(v) for v in e.invars], e.primitive.name
            if name in (*INLINED, "custom_linear_solve", "call_hi_primitive"):
                inner = e.params.get("jaxpr") or e.params.get("call_jaxpr")
                if name == "call_hi_primitive":  # since JAX 0.12; made of the others
                    inner = jax.make_jaxpr(expanded(e.params["_prim"]))(*[v.aval for v in e.invars])
                if name == "custom_linear_solve":  # its own function for the solution, with what that needs
                    inner, sizes = e.params["jaxprs"].solve, e.params["const_lengths"]
                    begin = sizes.matvec + sizes.vecmat
                    ins = [*ins[begin : begin + sizes.solve], *ins[sum(sizes) :]]
                consts, inner = (inner.consts, inner.jaxpr) if hasattr(inner, "jaxpr") else ((), inner)
                more, outs = self.inline(inner, [self.constant(c) for c in consts], ins)
                equations += more
                env |= dict(zip(e.outvars, outs))
            else:
                fresh = [object() for _ in e.outvars]
                env |= dict(zip(e.outvars, fresh))
                equations.append((e, ins, fresh))
        return equations, [read(v) for v in jaxpr.outvars]

    def body(self, lines: list[str], closed, args: Sequence[Value]) -> list[Value]:
        """Write the equations of a closed jaxpr. Returns the Values of its outputs."""
        equations, outs = self.inline(closed.jaxpr, [self.constant(c) for c in closed.consts], args)
        env: dict[int, Value] = {}
        uses = Counter(id(x) for _, ins, _ in equations for x in ins)
        uses.update(id(x) for x in outs)
        needed = {id(x) for x in outs}
        for e, ins, fresh in reversed(equations):  # what nobody reads is left out
            if any(id(f) in needed for f in fresh):
                needed |= {id(x) for x in ins}

        def read(x) -> Value:
            return x if isinstance(x, Value) else env[id(x)]

        for e, ins, fresh in equations:
            if not any(id(f) in needed for f in fresh):
                continue
            for f, value in zip(fresh, self.equation(lines, e, [read(x) for x in ins])):
                if value.known is None and value.shape == () and not value.cheap:
                    value = self.variable(lines, value.dtype, value.at([]))
                elif uses[id(f)] > 1:
                    self.kept(lines, value)
                env[id(f)] = value
        return [read(x) for x in outs]

    def equation(self, lines: list[str], e, inputs: list[Value]) -> list[Value]:
        """Write one equation."""
        name, out = e.primitive.name, [v.aval for v in e.outvars]
        simple = all(v.known is not None for v in inputs) and all(o.size <= FOLDED for o in out)
        if simple and name not in CONTROL and not any(str(o.dtype).startswith("key") for o in out):
            found = e.primitive.bind(*[jax.numpy.asarray(v.known) for v in inputs], **e.params)
            return [self.constant(x) for x in (found if e.primitive.multiple_results else [found])]
        if name not in OPERATIONS:
            raise ValueError(f"no JavaScript for JAX's {name!r}; allowed: {', '.join(sorted(OPERATIONS))}.")
        for kind in {str(o.dtype) for o in out} - {*ARRAYS, *[KEYS] * (name in OF_KEYS)}:
            raise ValueError(f"no JavaScript for JAX's {name!r} of {kind}; allowed: {', '.join(ARRAYS)}.")
        found = OPERATIONS[name](self, lines, e.params, inputs, out, name)
        return found if isinstance(found, list) else [found]


def expanded(primitive: Any) -> Callable:
    """Return what a primitive that is made of others computes, as a function of arrays that returns a list of them."""
    return lambda *flat: jax.tree.leaves(primitive.expand(*jax.tree.unflatten(primitive.in_tree, flat)))


CONTROL = ("cond", "while", "scan", "platform_index")
KEYS = "key<fry>"  # the type of Threefry's keys, which are (2,) here
OF_KEYS = ("random_wrap", "random_seed", "random_fold_in", "random_split", "cond", "while", "scan")


def function_of(call: Callable, example: Sequence[Any], name: str = "f") -> str:
    """Translate a function of numbers and arrays.

    Args:
        call: it takes arrays like `example`, and returns a list of arrays. JAX must be able to trace it.
        example: arrays of the shapes and types, NumPy's or jax.ShapeDtypeStruct.
        name: of the JavaScript function.

    Returns:
        `const NAME = ...;`, a function that takes numbers and typed arrays and returns a list of them. It needs
        `HELPERS`. The next call overwrites the arrays that it returns, even if they are among its arguments.

    Raises:
        ValueError: a primitive of JAX that has no translation, by its name.
    """
    closed = jax.make_jaxpr(call)(*example)
    program, lines, args, parameters = Program(), [], [], []
    for k, v in enumerate(closed.jaxpr.invars):
        shape, dtype = v.aval.shape, str(v.aval.dtype)
        if shape == ():
            parameters.append(program.name("_s"))
            args.append(scalar(parameters[-1], dtype))
        else:
            parameters.append(f"p{k}")
            own = program.array(shape, dtype)
            lines.append(f"{own}.set(p{k});")
            args.append(held(own, shape, dtype))
    results = []
    for value in program.body(lines, closed, args):
        if value.shape == ():
            results.append(value.at([]))
        else:
            results.append(program.array(value.shape, value.dtype))
            program.fill(lines, results[-1], value)
    inner = [*program.declared, *program.loops, f"return ({','.join(parameters)}) => {{", *lines]
    return "\n".join([f"const {name} = (() => {{", *inner, f"return [{','.join(results)}];", "};", "})();"])
