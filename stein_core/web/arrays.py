"""Primitives that move, sum or search the entries of arrays."""

from __future__ import annotations

import math
from numbers import Integral

import numpy as np

from stein_core.web.expressions import Value, flat, held, shifted
from stein_core.web.translate import operation


def view(source: Value, shape, index) -> Value:
    """Return a Value whose entry at i is that of source at index(i)."""
    return Value(shape, source.dtype, lambda i: source.at(index(i)), source.cheap)


# ---- views: the index changes, not the entry


@operation("broadcast_in_dim")
def broadcast_in_dim(program, lines, params, inputs, out, name):
    x, dims, shape = inputs[0], params["broadcast_dimensions"], out[0].shape
    if math.prod(shape) > math.prod(x.shape):
        x = program.kept(lines, x)
    return view(x, shape, lambda i: [0 if n == 1 else i[k] for n, k in zip(x.shape, dims)])


@operation("reshape", "expand_dims")
def reshape(program, lines, params, inputs, out, name):
    x, shape = inputs[0], out[0].shape
    if [n for n in x.shape if n > 1] == [n for n in shape if n > 1]:

        def index(i):
            long = iter([k for k, n in zip(i, shape) if n > 1])
            return [next(long) if n > 1 else 0 for n in x.shape]

        return view(x, shape, index)
    return held(program.in_buffer(lines, x).buffer, shape, x.dtype)


@operation("slice")
def slice_(program, lines, params, inputs, out, name):
    steps, begin = params["strides"] or [1] * len(out[0].shape), params["start_indices"]

    def place(k, b, s):
        return shifted(k if s == 1 else k * s if isinstance(k, Integral) else f"{s}*({k})", b)

    return view(inputs[0], out[0].shape, lambda i: list(map(place, i, begin, steps)))


@operation("squeeze")
def squeeze(program, lines, params, inputs, out, name):
    def index(i):
        rest = iter(i)
        return [0 if k in params["dimensions"] else next(rest) for k in range(len(inputs[0].shape))]

    return view(inputs[0], out[0].shape, index)


@operation("transpose")
def transpose(program, lines, params, inputs, out, name):
    order = list(params["permutation"])
    return view(inputs[0], out[0].shape, lambda i: [i[order.index(k)] for k in range(len(order))])


@operation("rev")
def rev(program, lines, params, inputs, out, name):
    def place(d, k):
        n = out[0].shape[d]
        return k if d not in params["dimensions"] else n - 1 - k if isinstance(k, Integral) else f"({n - 1}-{k})"

    return view(inputs[0], out[0].shape, lambda i: [place(d, k) for d, k in enumerate(i)])


@operation("tile")
def tile(program, lines, params, inputs, out, name):
    x = program.kept(lines, inputs[0])

    def place(n, k):
        return 0 if n == 1 else k % n if isinstance(k, Integral) else f"({k}%{n})"

    return view(x, out[0].shape, lambda i: list(map(place, x.shape, i)))


@operation("split")
def split(program, lines, params, inputs, out, name):
    x, axis, begin, parts = program.kept(lines, inputs[0]), params["axis"], 0, []
    for o, size in zip(out, params["sizes"]):
        parts.append(view(x, o.shape, lambda i, b=begin: [shifted(k, b) if d == axis else k for d, k in enumerate(i)]))
        begin += size
    return parts


@operation("unstack")
def unstack(program, lines, params, inputs, out, name):
    x, axis = program.kept(lines, inputs[0]), params["axis"]
    return [view(x, o.shape, lambda i, k=k: [*i[:axis], k, *i[axis:]]) for k, o in enumerate(out)]


@operation("iota")
def iota(program, lines, params, inputs, out, name):
    axis = params["dimension"]
    return Value(out[0].shape, str(out[0].dtype), lambda i: str(i[axis]))


@operation("empty2", "empty")
def empty(program, lines, params, inputs, out, name):
    return program.constant(np.zeros(out[0].shape, out[0].dtype))


@operation("pad")
def pad(program, lines, params, inputs, out, name):
    x, around = program.kept(lines, inputs[0]), inputs[1]
    config = [tuple(map(int, each)) for each in params["padding_config"]]
    if 0 in x.shape:
        return Value(out[0].shape, x.dtype, lambda i: around.at([]))

    def at(i):
        index, tests = [], []
        for k, n, (low, high, inner) in zip(i, x.shape, config):
            here, step = shifted(k, -low), inner + 1
            if isinstance(here, Integral):
                if not 0 <= here <= (n - 1) * step or here % step:
                    return around.at([])
                index.append(here // step)
                continue
            last = low + (n - 1) * step
            tests += [f"{k}>={low}"] * (low > 0) + [f"{k}<={last}"] * (high > 0)
            tests += [f"({k}-{low})%{step}==0"] * (inner > 0)
            index.append(0 if n == 1 else here if step == 1 else f"({here}/{step})")
        return f"({'&&'.join(tests)}?{x.at(index)}:{around.at([])})" if tests else x.at(index)

    return Value(out[0].shape, str(out[0].dtype), at, False)


@operation("concatenate")
def concatenate(program, lines, params, inputs, out, name):
    axis, shape = params["dimension"], out[0].shape
    inputs = [v for v in inputs if v.shape[axis]]

    def at(i):
        text, end = None, shape[axis]
        for x in reversed(inputs):
            start = end - x.shape[axis]
            if isinstance(i[axis], int):
                if start <= i[axis] < end:
                    return x.at([*i[:axis], i[axis] - start, *i[axis + 1 :]])
            else:
                here = x.at([*i[:axis], 0 if x.shape[axis] == 1 else shifted(i[axis], -start), *i[axis + 1 :]])
                text = here if text is None else f"({i[axis]}<{end}?{here}:{text})"
            end = start
        return text

    return Value(shape, str(out[0].dtype), at, False)


@operation("stack")
def stack(program, lines, params, inputs, out, name):
    axis = params["axis"]

    def at(i):
        rest = [*i[:axis], *i[axis + 1 :]]
        if isinstance(i[axis], int):
            return inputs[i[axis]].at(rest)
        text = inputs[-1].at(rest)
        for k in reversed(range(len(inputs) - 1)):
            text = f"({i[axis]}=={k}?{inputs[k].at(rest)}:{text})"
        return text

    return Value(out[0].shape, str(out[0].dtype), at, False)


# ---- sums


def reduced(program, lines, x: Value, axes, out, first: str, add, combine=lambda text: text) -> Value:
    """Return a reduction over axes. add: entry -> the statement that takes it into `t`."""
    keep, shape = [k for k in range(len(x.shape)) if k not in axes], out.shape
    target = program.array(shape, str(out.dtype))

    def body(i):
        index: list = [None] * len(x.shape)
        for k, n in zip(keep, i):
            index[k] = n
        loops = ""
        for k in axes:
            index[k] = 0 if x.shape[k] == 1 else f"r{k}"
            loops += f"for(let r{k}=0;r{k}<{x.shape[k]};r{k}++)" if x.shape[k] > 1 else ""
        return f"let t={first};{loops}{{{add(x.at(index))}}}{target}[{flat(i, shape)}]={combine('t')};"

    program.loop(lines, shape, body)
    return held(target, shape, str(out.dtype))


REDUCED = {
    "reduce_sum": (lambda dtype: "0", "t+={};"),
    "reduce_prod": (lambda dtype: "1", "t*={};"),
    "reduce_max": (lambda dtype: "-Infinity" if dtype == "float32" else str(np.iinfo(dtype).min), "t=Math.max(t,{});"),
    "reduce_min": (lambda dtype: "Infinity" if dtype == "float32" else str(np.iinfo(dtype).max), "t=Math.min(t,{});"),
    "reduce_and": (lambda dtype: "1", "t&={};"),
    "reduce_or": (lambda dtype: "0", "t|={};"),
}


@operation(*REDUCED)
def reduce(program, lines, params, inputs, out, name):
    first, add = REDUCED[name]
    return reduced(program, lines, inputs[0], params["axes"], out[0], first(str(out[0].dtype)), add.format)


@operation("argmax", "argmin")
def arg(program, lines, params, inputs, out, name):
    (x,), (axis,), sign = inputs, params["axes"], ">" if name == "argmax" else "<"
    target = program.array(out[0].shape, str(out[0].dtype))

    def body(i):
        here = x.at([*i[:axis], "r", *i[axis:]])
        first = x.at([*i[:axis], 0, *i[axis:]])
        step = f"const v={here};if(v{sign}t||(v!=v&&t==t)){{t=v;a=r;}}"
        loop = f"for(let r=1;r<{x.shape[axis]};r++){{{step}}}"
        return f"let t={first},a=0;{loop}{target}[{flat(i, out[0].shape)}]=a;"

    program.loop(lines, out[0].shape, body)
    return held(target, out[0].shape, str(out[0].dtype))


@operation("cumsum", "cumprod", "cummax", "cummin")
def cumulative(program, lines, params, inputs, out, name):
    (x,), axis, shape = inputs, params["axis"], out[0].shape
    target, dtype = program.array(shape, str(out[0].dtype)), str(out[0].dtype)
    first, join = {
        "cumsum": ("0", "t+v"), "cumprod": ("1", "t*v"), "cummax": ("-Infinity", "Math.max(t,v)"),
        "cummin": ("Infinity", "Math.min(t,v)"),
    }[name]  # fmt: skip
    sizes = [*shape[:axis], *shape[axis + 1 :]]

    def body(i):
        at = [*i[:axis], f"{shape[axis] - 1}-r" if params["reverse"] else "r", *i[axis:]]
        if shape[axis] == 1:
            at[axis] = 0
        step = f"const v={x.at(at)};t={join};{target}[{flat(at, shape)}]=t;"
        return f"let t={first};for(let r=0;r<{shape[axis]};r++){{{step}}}"

    program.loop(lines, sizes, body)
    return held(target, shape, dtype)


@operation("dot_general")
def dot_general(program, lines, params, inputs, out, name):
    (lc, rc), (lb, rb) = params["dimension_numbers"]
    x, y = (program.kept(lines, v) for v in inputs)
    lf = [k for k in range(len(x.shape)) if k not in (*lc, *lb)]
    rf = [k for k in range(len(y.shape)) if k not in (*rc, *rb)]
    shape, dtype = out[0].shape, str(out[0].dtype)
    target = program.array(shape, dtype)

    def body(i):
        li, ri = [None] * len(x.shape), [None] * len(y.shape)
        for n, (k, m) in enumerate(zip(lb, rb)):
            li[k] = ri[m] = i[n]
        for n, k in enumerate(lf, len(lb)):
            li[k] = i[n]
        for n, k in enumerate(rf, len(lb) + len(lf)):
            ri[k] = i[n]
        loops = ""
        for n, (k, m) in enumerate(zip(lc, rc)):
            li[k] = ri[m] = 0 if x.shape[k] == 1 else f"r{n}"
            loops += f"for(let r{n}=0;r{n}<{x.shape[k]};r{n}++)" if x.shape[k] > 1 else ""
        return f"let t=0;{loops}t+={x.at(li)}*{y.at(ri)};{target}[{flat(i, shape)}]=t;"

    program.loop(lines, shape, body)
    return held(target, shape, dtype)
