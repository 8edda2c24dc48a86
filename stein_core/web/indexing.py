"""Primitives whose places are computed: slices, gather, scatter and sort."""

from __future__ import annotations

import math

from jax.lax import GatherScatterMode

from stein_core.web.expressions import Value, flat, held, shifted
from stein_core.web.translate import operation


def clamped(program, lines, starts, sizes, shape) -> list:
    """Return the starts of a slice, each within its axis."""
    found = []
    for start, size, n in zip(starts, sizes, shape):
        if n == size:
            found.append(0)
        else:
            text = f"Math.min(Math.max({start.at([])},0),{n - size})"
            found.append(program.variable(lines, "int32", text).at([]))
    return found


def summed(i, start) -> object:
    """Return i + start."""
    if isinstance(start, int):
        return shifted(i, start)
    return start if i == 0 else f"({i}+{start})"


@operation("dynamic_slice")
def dynamic_slice(program, lines, params, inputs, out, name):
    x = program.kept(lines, inputs[0])
    starts = clamped(program, lines, inputs[1:], params["slice_sizes"], x.shape)
    return Value(out[0].shape, x.dtype, lambda i: x.at(list(map(summed, i, starts))), False)


@operation("dynamic_update_slice")
def dynamic_update_slice(program, lines, params, inputs, out, name):
    x, new = inputs[0], program.kept(lines, inputs[1])
    starts = clamped(program, lines, inputs[2:], new.shape, x.shape)
    target = program.array(x.shape, x.dtype)
    program.fill(lines, target, x)
    program.loop(lines, new.shape, lambda i: f"{target}[{flat(list(map(summed, i, starts)), x.shape)}]={new.at(i)};")
    return held(target, x.shape, x.dtype)


def window(i, x: Value, batch, gone, offsets, pairs) -> list:
    """Return the index in x of an entry of a window, before the place of the window is added.

    Args:
        i: of the entry, among gathered or scattered ones.
        x: what is read or written.
        batch: the part of i that says which window it is.
        gone: axes of x in which a window has no extent.
        offsets: axes of i within the window.
        pairs: (axis of x, axis of batch) that go together.
    """
    inside = [d for d in range(len(x.shape)) if d not in gone]
    index: list = [0] * len(x.shape)
    for d, o in zip(inside, offsets):
        index[d] = i[o]
    for d, b in pairs:
        index[d] = batch[b]
    return index


def began(places: Value, batch, k: int) -> str:
    """Return where window `batch` begins along the axis that is the k-th of the places."""
    return places.at([*batch, 0 if places.shape[-1] == 1 else k])


@operation("gather")
def gather(program, lines, params, inputs, out, name):
    x, places = program.kept(lines, inputs[0]), program.kept(lines, inputs[1])
    how, sizes, mode = params["dimension_numbers"], params["slice_sizes"], params["mode"]
    gone = {*how.collapsed_slice_dims, *how.operand_batching_dims}
    pairs = list(zip(how.operand_batching_dims, how.start_indices_batching_dims))
    fill = mode == GatherScatterMode.FILL_OR_DROP
    shape, dtype = out[0].shape, str(out[0].dtype)
    nothing = "NaN" if dtype == "float32" else "0" if params["fill_value"] is None else str(params["fill_value"])

    def at(i):
        batch = [k for d, k in enumerate(i) if d not in how.offset_dims]
        index = window(i, x, batch, gone, how.offset_dims, pairs)
        tests = []
        for k, d in enumerate(how.start_index_map):
            start, most = began(places, batch, k), x.shape[d] - sizes[d]
            if fill:
                tests.append(f"{start}>=0&&{start}<={most}")
            else:
                start = f"Math.min(Math.max({start},0),{most})"
            index[d] = f"({start})" if index[d] == 0 else f"({index[d]}+{start})"
        return f"({'&&'.join(tests)}?{x.at(index)}:{nothing})" if tests else x.at(index)

    return Value(shape, dtype, at, False)


@operation("scatter", "scatter-add", "scatter-mul", "scatter-max", "scatter-min")
def scatter(program, lines, params, inputs, out, name):
    x, places, new = inputs[0], program.kept(lines, inputs[1]), program.kept(lines, inputs[2])
    how = params["dimension_numbers"]
    gone = {*how.inserted_window_dims, *how.operand_batching_dims}
    pairs = list(zip(how.operand_batching_dims, how.scatter_indices_batching_dims))
    target = program.array(x.shape, x.dtype)
    program.fill(lines, target, x)
    put = {
        "scatter": "{0}={1};", "scatter-add": "{0}+={1};", "scatter-mul": "{0}*={1};",
        "scatter-max": "{0}=Math.max({0},{1});", "scatter-min": "{0}=Math.min({0},{1});",
    }[name]  # fmt: skip

    def body(i):
        batch = [k for d, k in enumerate(i) if d not in how.update_window_dims]
        index = window(i, x, batch, gone, how.update_window_dims, pairs)
        tests = []
        for k, d in enumerate(how.scatter_dims_to_operand_dims):
            start = began(places, batch, k)
            index[d] = f"({start})" if index[d] == 0 else f"({index[d]}+{start})"
            tests.append(f"{index[d]}>=0&&{index[d]}<{x.shape[d]}")
        text = put.format(f"{target}[{flat(index, x.shape)}]", new.at(i))
        return f"if({'&&'.join(tests)}){{{text}}}" if tests else text

    program.loop(lines, new.shape, body)
    return held(target, x.shape, x.dtype)


@operation("sort")
def sort(program, lines, params, inputs, out, name):
    axis, keys, shape = params["dimension"], params["num_keys"], out[0].shape
    inputs = [program.kept(lines, v) for v in inputs]
    targets = [program.array(shape, v.dtype) for v in inputs]
    order, n = program.array([shape[axis]], "int32"), shape[axis]

    def body(i):
        at = lambda v, k: v.at([*i[:axis], k if n > 1 else 0, *i[axis:]])  # noqa: E731
        compared = "||".join(f"order({at(v, 'a')},{at(v, 'b')})" for v in inputs[:keys])
        moved = "".join(
            f"{t}[{flat([*i[:axis], 'r' if n > 1 else 0, *i[axis:]], shape)}]={at(v, f'{order}[r]')};"
            for t, v in zip(targets, inputs)
        )
        text = f"for(let r=0;r<{n};r++){order}[r]=r;{order}.sort((a,b)=>{compared}||a-b);"
        return f"{text}for(let r=0;r<{n};r++){{{moved}}}"

    program.loop(lines, [*shape[:axis], *shape[axis + 1 :]], body)
    return [held(t, shape, v.dtype) for t, v in zip(targets, inputs)]


def batched(program, lines, x: Value, outputs, call) -> list[Value]:
    """Call a function of `linear.js` on each matrix of x (..., n, k).

    Args:
        x: the matrices.
        outputs: (shape, dtype) of each result.
        call: (array of x, its offset, arrays of the results, their offsets) -> the statement.
    """
    x, count = program.in_buffer(lines, x), math.prod(x.shape[:-2])
    names = [program.array(shape, dtype) for shape, dtype in outputs]
    sizes = [math.prod(shape) // max(count, 1) for shape, _ in outputs]

    def body(i):
        at = i[0]
        offset = lambda size: "0" if at == 0 else f"{size}*{at}"  # noqa: E731
        return call(x.buffer, offset(math.prod(x.shape[-2:])), names, [offset(size) for size in sizes])

    program.loop(lines, [count], body)
    return [held(name, shape, dtype) for name, (shape, dtype) in zip(names, outputs)]
