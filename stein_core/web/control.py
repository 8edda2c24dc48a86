"""Primitives that choose or repeat: cond, while and scan."""

from __future__ import annotations

import numpy as np

from stein_core.web.expressions import Value, held
from stein_core.web.translate import operation


@operation("platform_index")
def platform_index(program, lines, params, inputs, out, name):
    """Take the branch of a CPU, or the default one."""
    known = [k for k, platforms in enumerate(params["platforms"]) if platforms is None or "cpu" in platforms]
    return program.constant(np.int32(known[0]))


@operation("cond")
def cond(program, lines, params, inputs, out, name):
    index, *args = inputs
    if index.known is not None:
        return program.body(lines, params["branches"][int(index.known)], args)
    args, results = [program.kept(lines, v) for v in args], []
    for o in out:
        own = program.variable(lines, str(o.dtype)) if o.shape == () else None
        results.append(own or held(program.array(o.shape, str(o.dtype)), o.shape, str(o.dtype)))
    lines.append(f"switch(+{index.at([])}){{")
    for k, branch in enumerate(params["branches"]):
        inner: list[str] = []
        for result, v in zip(results, program.body(inner, branch, args)):
            put(program, inner, result, v)
        lines += [f"case {k}:{{", *inner, "break;}"]
    lines.append("}")
    return results


@operation("while")
def while_(program, lines, params, inputs, out, name):
    inputs = [program.kept(lines, v) for v in inputs]
    nc, nb = params["cond_nconsts"], params["body_nconsts"]
    of_cond, of_body = inputs[:nc], inputs[nc : nc + nb]
    carry = begun(program, lines, inputs[nc + nb :])
    inner: list[str] = []
    (go,) = program.body(inner, params["cond_jaxpr"], [*of_cond, *carry])
    inner.append(f"if(!{go.at([])})break;")
    put_all(program, inner, carry, program.body(inner, params["body_jaxpr"], [*of_body, *carry]))
    lines += ["while(true){", *inner, "}"]
    return carry


@operation("scan")
def scan(program, lines, params, inputs, out, name):
    inputs = [program.kept(lines, v) for v in inputs]
    consts, carried = counts_of(params)
    after = consts + carried
    carry, results = begun(program, lines, inputs[consts:after]), []
    for o in out[carried:]:
        results.append(held(program.array(o.shape, str(o.dtype)), o.shape, str(o.dtype)))
    count, length = program.name("_s"), params["length"]
    place = f"({length - 1}-{count})" if params["reverse"] else count

    def row(x: Value) -> Value:
        return Value(x.shape[1:], x.dtype, lambda i: x.at([place, *i] if x.shape[0] > 1 else [0, *i]))

    inner: list[str] = []
    found = program.body(inner, params["jaxpr"], [*inputs[:consts], *carry, *map(row, inputs[after:])])
    for result, v in zip(results, found[len(carry) :]):
        at = place if result.shape[0] > 1 else 0
        if v.shape == ():
            inner.append(f"{result.at([at])}={v.at([])};")
        else:
            v = program.kept(inner, v)
            program.loop(inner, v.shape, lambda i, r=result, v=v, at=at: f"{r.at([at, *i])}={v.at(i)};")
    put_all(program, inner, carry, found[: len(carry)])
    lines += [f"for(let {count}=0;{count}<{length};{count}++){{", *inner, "}"]
    return [*carry, *results]


def counts_of(params) -> tuple[int, int]:
    """Return how many inputs of a scan are constants, and how many are carried. JAX 0.12 groups them."""
    if "ft_in" in params:
        consts, carried, _ = params["ft_in"].unpack()
        return len(consts), len(carried)
    return params["num_consts"], params["num_carry"]


def begun(program, lines, start) -> list[Value]:
    """Return what a loop carries: variables and arrays of its own, with these values at first."""
    carry = []
    for v in start:
        if v.shape == ():
            carry.append(program.variable(lines, v.dtype, v.at([]), "let"))
        else:
            carry.append(held(program.array(v.shape, v.dtype), v.shape, v.dtype))
            program.fill(lines, carry[-1].buffer, v)
    return carry


def put(program, lines, to: Value, value: Value) -> None:
    """Write a value into a variable or an array."""
    if to.shape == ():
        lines.append(f"{to.at([])}={value.at([])};")
    elif value.buffer is not None:
        lines.append(f"{to.buffer}.set({value.buffer});")
    else:
        program.fill(lines, to.buffer, value)


def put_all(program, lines, carry: list[Value], values: list[Value]) -> None:
    """Write the next values of what a loop carries, which may depend on its present ones."""
    own, fixed = {c.buffer for c in carry if c.buffer}, []
    for v in values:
        if v.shape == ():
            fixed.append(program.variable(lines, v.dtype, v.at([])))
            continue
        if v.buffer is None or v.buffer in own:  # it reads the present ones
            v = Value(v.shape, v.dtype, v.at, False)
        fixed.append(program.kept(lines, v))
    for to, v in zip(carry, fixed):
        put(program, lines, to, v)
