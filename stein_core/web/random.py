"""Primitives of random numbers: Threefry, as JAX has it, so that a seed gives the same draws."""

from __future__ import annotations

import math

from stein_core.web.expressions import Value, flat, held
from stein_core.web.translate import operation


@operation("threefry2x32")
def threefry2x32(program, lines, params, inputs, out, name):
    shape, dtype = out[0].shape, str(out[0].dtype)
    parts = [program.kept(lines, v) for v in inputs]
    names = [program.array(shape, dtype) for _ in out]

    def body(i):
        words = ",".join(v.at([0 if n == 1 else k for n, k in zip(v.shape, i)]) for v in parts)
        return f"threefry({words});" + "".join(f"{n}[{flat(i, shape)}]=T[{k}];" for k, n in enumerate(names))

    program.loop(lines, shape, body)
    return [held(n, shape, dtype) for n in names]


def drawn(program, lines, params, inputs, out, words: int, put: str):
    """Return what Threefry makes of a key (2,) and the numbers 0, 1, ..., see `jax_threefry_partitionable`."""
    key, shape = program.kept(lines, inputs[0]), (*out[0].shape, *[2] * (words == 2))
    if key.shape != (2,):
        raise ValueError(f"no JavaScript for random numbers of several keys, {key.shape}.")
    target = program.array(shape, "uint32")
    count = math.prod(shape) // words
    text = put.format(target)
    lines.append(f"for(let i=0;i<{count};i++){{threefry({key.at([0])},{key.at([1])},0,i);{text}}}")
    return held(target, shape, "uint32")


@operation("random_bits")
def random_bits(program, lines, params, inputs, out, name):
    if params["bit_width"] != 32:
        raise ValueError(f"no JavaScript for random numbers of {params['bit_width']} bits; allowed: 32.")
    return drawn(program, lines, params, inputs, out, 1, "{0}[i]=T[0]^T[1];")


@operation("random_split")
def random_split(program, lines, params, inputs, out, name):
    return drawn(program, lines, params, inputs, out, 2, "{0}[2*i]=T[0];{0}[2*i+1]=T[1];")


@operation("random_fold_in")
def random_fold_in(program, lines, params, inputs, out, name):
    key, data = inputs
    if out[0].shape != ():
        raise ValueError(f"no JavaScript for JAX's 'random_fold_in' of several keys, {out[0].shape}.")
    target = program.array((2,), "uint32")
    words = ",".join(v.at([]) if v.shape == () else v.at([k]) for v, k in ((key, 0), (key, 1)))
    lines.append(f"threefry({words},0,{data.at([])});{target}.set(T);")
    return held(target, (2,), "uint32")


@operation("random_seed")
def random_seed(program, lines, params, inputs, out, name):
    seed = inputs[0].at([])
    return Value((2,), "uint32", lambda i: "0" if i[0] == 0 else seed if i[0] == 1 else f"({i[0]}?{seed}:0)")
