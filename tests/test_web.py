"""JAX programs as JavaScript, run by Node: primitives beside JAX; methods, targets and kernels beside a Stepper."""

import json
import shutil
import subprocess
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from playwright._impl._driver import compute_driver_executable

from stein_core import BANDWIDTHS, KERNELS, METHODS, TARGETS, Spec, Target, compile
from stein_core.contract.known import Start
from stein_core.web import HELPERS, function_of, program_of
from steinlab.site.build import METHODS_HERE, TARGETS_HERE

NODE = shutil.which("node") or compute_driver_executable()[0]  # Playwright comes with one
READ = """
const kinds = { float32: Float32Array, int32: Int32Array, uint32: Uint32Array, bool: Uint8Array };
const value = (a) => (Array.isArray(a[2]) ? new kinds[a[0]](a[2].map(Number)) : Number(a[2]));
const said = (a) => (a.length === undefined ? String(+a) : Array.from(a, String));
const given = JSON.parse(require("fs").readFileSync(0, "utf8"));
const tell = (found) => console.log(JSON.stringify(found));
"""


def node(script: str, given) -> list:
    """What a script tells, which has read `given`."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "script.js"
        file.write_text(READ + script)
        done = subprocess.run([NODE, file], input=json.dumps(given), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-1500:]
    return json.loads(done.stdout)


def plain(array) -> tuple:
    """An array as `value` of READ takes it."""
    array = np.asarray(array)
    numbers = [str(float(x)) for x in array.ravel()]
    return (
        str(array.dtype),
        array.shape,
        [x.replace("inf", "Infinity").replace("nan", "NaN") for x in numbers] if (array.shape) else numbers[0],
    )


def numbers(said, shape):
    return np.array([float(x) for x in np.ravel(said)]).reshape(shape)


def both(call, *arrays):
    """What a function returns in JavaScript, and in JAX."""
    arrays = [np.asarray(a) for a in arrays]
    script = HELPERS + function_of(call, arrays) + "tell(f(...given.map(value)).map(said));"
    wanted = [np.asarray(w) for w in call(*map(jnp.asarray, arrays))]
    found = node(script, [plain(a) for a in arrays])
    return [numbers(f, w.shape) for f, w in zip(found, wanted, strict=True)], wanted


RNG = np.random.default_rng(0)
A = RNG.normal(size=(3, 4, 4)).astype("f")
S = A @ A.transpose(0, 2, 1) + np.eye(4, dtype="f")
B = RNG.normal(size=(3, 4, 2)).astype("f")
X = RNG.normal(size=(5, 3)).astype("f")
K = np.int32(4)
CASES = {
    "cholesky": (lambda s: [jnp.linalg.cholesky(s)], S),
    "solve": (lambda s, b: [jnp.linalg.solve(s, b), jnp.linalg.solve(s[0], b[0])], A, B),
    "eigh": (lambda s: [jnp.linalg.eigh(s)[0], jnp.abs(jnp.linalg.eigh(s)[1])], S),
    "qr": (lambda a: list(jnp.linalg.qr(a)), A[0][:, :3]),
    "triangle": (
        lambda s, b: [
            jax.scipy.linalg.solve_triangular(s[0], b[0], lower=True),
            jax.scipy.linalg.solve_triangular(s[1], b[1], trans=1),
            jax.lax.linalg.triangular_solve(s[2], b[2].T, left_side=False, lower=True),
            jax.lax.linalg.triangular_solve(s[2], b[2].T, left_side=False, transpose_a=True, unit_diagonal=True),
        ],
        S,
        B,
    ),
    "sort": (lambda x: [jnp.sort(x, axis=0), jnp.argsort(x, axis=1), jnp.median(x), jnp.argmax(x, axis=0)], X),
    "gather": (lambda x: [x[jnp.array([4, 0, 2])], jnp.take(x, jnp.array([2, 9]), axis=1), x[:, jnp.array([1, 0])]], X),
    "scatter": (
        lambda x: [x.at[jnp.array([1, 1, 7])].add(2.0), x.at[2].set(0.0), x.at[:, 1].multiply(3.0), x.at[1].max(0.1)],
        X,
    ),
    "scan": (
        lambda x: [
            *jax.lax.scan(lambda c, r: (c + r.sum(), c * r), 0.0, x),
            *jax.lax.scan(lambda c, r: (c + r, r[0] * c[1]), x[0], x, reverse=True),
            jnp.cumsum(x, axis=0),
            jax.lax.cummax(x, axis=1, reverse=True),
        ],
        X,
    ),
    "cond": (lambda x, k: [jax.lax.switch(k - 3, [lambda a: a + 1, lambda a: a * 2, lambda a: a[::-1]], x)], X, K),
    "while": (
        lambda x: jax.lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[2], c[1] + c[0]), (0, x, 2 * x))[1:],
        X,
    ),
    "swap": (
        lambda x: jax.lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[2], c[1]), (0, x, 2 * x))[1:],
        X,
    ),
    "nested": (
        lambda x: [
            jax.lax.fori_loop(
                0, 3, lambda i, c: jax.lax.fori_loop(0, 2, lambda j, d: jnp.roll(d, 1, 0) + i * d.T[0, 0], c), x
            )
        ],
        X,
    ),
    "random": (
        lambda s: [
            jax.random.normal(jax.random.fold_in(jax.random.PRNGKey(s), 3), (5, 3)),
            jax.random.uniform(jax.random.split(jax.random.PRNGKey(s), 3)[1], (4,)),
            jax.random.bits(jax.random.key(s), (3,)),
        ],
        np.uint32(7),
    ),
    "special": (
        lambda x: [
            jax.scipy.special.erf(2 * x),
            jax.scipy.special.erfc(2 * x),
            jax.scipy.special.gammaln(5 * jnp.abs(x) + 0.1),
            jax.scipy.special.digamma(5 * jnp.abs(x) + 0.1),
            jax.scipy.special.ndtri(jax.nn.sigmoid(x)),
            jax.nn.softplus(20 * x),
            jax.nn.logsumexp(x, axis=1),
        ],
        X,
    ),
    "entries": (
        lambda x: [
            jnp.round(3 * x), jnp.floor_divide(x, 0.3), jnp.sign(x), x**3, x**-2, jnp.exp2(x), jnp.arctan2(x, x[0, 0]),
            jnp.where(x > 0, x, 0), jnp.clip(x, -0.5, 0.5), jnp.isfinite(1 / jnp.round(x)), ~(x > 0) ^ (x < 1),
            (3 * x).astype(jnp.int32) // 2, (3 * x).astype(jnp.int32) << 2, jnp.select([x > 1, x > 0], [x, -x], 7.0),
        ],
        X,
    ),
    "shapes": (
        lambda x: [
            jnp.pad(x, ((1, 2), (0, 1))), jax.lax.pad(x, 0.5, ((1, 0, 2), (0, 2, 1))),
            jnp.pad(x[:1], ((1, 1), (0, 0))), jnp.concatenate([x, 2 * x], axis=1), jnp.stack([x, -x], axis=1), x[::-1],
            x[::2, 1:], jnp.tile(x, (2, 1)), x.reshape(3, 5).T, jnp.eye(3), jnp.arange(4) % 3, jnp.split(x, [2])[1],
            jnp.all(x > 0, axis=1), jnp.any(x > 1), x.max(0), x.min(1), jnp.prod(x, axis=0),
            jnp.einsum("ij,kj->ik", x, x), jnp.einsum("ij,ik->ijk", x, x), x[:1] + jnp.zeros((5, 3)),
        ],
        X,
    ),
    "slices": (
        lambda x, k: [
            jax.lax.dynamic_slice(x, (k, 0), (2, 3)), jax.lax.dynamic_update_slice(x, 9 * x[:2], (k, 0)), x[k],
            x[k - 9],
        ],
        X,
        K,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_primitives_give_what_jax_gives(name):
    call, *arrays = CASES[name]
    for found, wanted in zip(*both(call, *arrays)):
        np.testing.assert_allclose(found, wanted, rtol=3e-6, atol=3e-6 * np.nanmax(np.abs(wanted), initial=1e-3))


def test_draws_are_the_same_to_the_last_bits():
    found, wanted = both(lambda seed: [jax.random.normal(jax.random.PRNGKey(seed), (4000,))], np.uint32(5))
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("call, said", [
    (lambda x: [jax.lax.igamma(x, x)], "no JavaScript for JAX's 'igamma'; allowed: abs, .*, add, "),
    (lambda x: [jnp.fft.fft(x).real], "no JavaScript for JAX's '.*' of complex64; allowed: float32, "),
    (lambda x: [jax.random.normal(jax.random.split(jax.random.key(0))[0])], "JAX's 'slice' of key<fry>; allowed: "),
])  # fmt: skip
def test_what_has_no_translation_is_refused_by_its_name(call, said):
    with pytest.raises(ValueError, match=said):
        function_of(call, [X])


def test_a_refusal_names_the_method_and_the_target():
    target = Target(
        lambda theta: jnp.sum(jax.lax.igamma(1.0 + theta**2, theta**2)),
        start=Start(np.zeros(2), np.ones(2)),
        coordinates=("a", "b"),
        constrain=lambda theta: {"x": theta},
        name="odd",
    )
    with pytest.raises(ValueError, match=r"^method 'svgd' on target .*: no JavaScript for JAX's '.*'; allowed: "):
        program_of(Spec(target, method="svgd", capacity=8))


SCRIPT = """
const look = program.look(given.state.map(value), given.knobs), { after, ...seen } = look;
tell([program.meta, Object.fromEntries(Object.entries(seen).map(([k, a]) => [k, said(a)])), after.map(said),
  program.reset(3, given.knobs).map(said), said(program.particle(value(given.place), given.knobs))]);
"""
MEASURED = ("sample_variance", "force", "stein_trace")


def compare(spec, steps=(0, 25), tolerance=2e-5, **knobs):
    """One step of the JavaScript beside one of the Stepper, from the Stepper's own states."""
    stepper, script = compile(spec, measure=MEASURED), HELPERS + "const program = " + program_of(spec, MEASURED) + ";"
    traced = stepper.knobs_of(knobs).traced
    state = stepper.reset(3, knobs)
    place = stepper._center + np.float32(0.25)
    for goal in steps:
        state = stepper.advance(state, knobs, goal - int(state.step))
        frame, leaves = stepper.look(state, knobs, MEASURED), jax.tree.leaves(state)
        values = [float(value) for value in traced.values() if np.ndim(value) == 0]
        given = {"state": [plain(a) for a in leaves], "knobs": values, "place": plain(place)}
        meta, seen, after, begun, row = node(script + SCRIPT, given)
        n, capacity = len(frame.particles), spec.capacity
        for name in ("particles", "locations", "scales", "correlation", "attract", "repulse"):
            wanted = getattr(frame, name)
            found = numbers(seen[name], (capacity, *wanted.shape[1:]))[:n]
            size = np.abs(wanted).max() if name != "repulse" else max(np.abs(wanted).max(), np.abs(frame.attract).max())
            np.testing.assert_allclose(found, wanted, atol=tolerance * size + 1e-9, err_msg=name)
        metrics = dict(zip(meta["metrics"], numbers(seen["metrics"], -1)))
        assert metrics == pytest.approx(frame.metrics, rel=1e-4, abs=1e-6, nan_ok=True)
        assert float(seen["m"]) == n and float(seen["finite"]) == frame.finite
        for found, wanted in zip(after, jax.tree.leaves(stepper.advance(state, knobs, 1)), strict=True):
            wanted = np.asarray(wanted, float)
            found = numbers(found, wanted.shape)
            if wanted.shape[:1] == (capacity,):  # what idle rows hold is not said
                found, wanted = found[:n], wanted[:n]
            np.testing.assert_allclose(found, wanted, atol=tolerance * np.abs(wanted).max() + 1e-9, rtol=tolerance)
        if goal == 0:
            for found, wanted in zip(begun, leaves, strict=True):
                np.testing.assert_allclose(numbers(found, np.shape(wanted)), wanted, rtol=1e-5, atol=1e-6)
        wanted = np.asarray(stepper._init_particle(place, traced, None))
        np.testing.assert_allclose(numbers(row, wanted.shape), wanted, rtol=1e-6)


POINTS = [name for name in METHODS if not METHODS[name].facts.sampler]


def marked(name, site):
    """What the site offers is tested at each change, the rest is rare."""
    return pytest.param(name, marks=pytest.mark.long if name in site else pytest.mark.rare)


@pytest.mark.parametrize("method", ["svgd", *(marked(name, METHODS_HERE) for name in POINTS if name != "svgd")])
def test_a_step_of_each_method(method):
    compare(Spec.fitting(target="banana", dim=2, method=method, capacity=16))


LIVE = [name for name in TARGETS if not TARGETS[name].facts.data and TARGETS[name].facts.default_dim <= 100]


@pytest.mark.parametrize("target", [marked(name, TARGETS_HERE) for name in LIVE])
def test_a_step_on_each_target(target):
    compare(Spec.fitting(target=target, method="smi", draws=3, capacity=16), steps=(5,))


@pytest.mark.long
@pytest.mark.parametrize("guide", [name for name in METHODS["smi"].facts.guides if name != "normal"])
def test_a_step_with_each_guide(guide):
    compare(Spec("banana", method="smi", guide=guide, draws=3, capacity=16), steps=(5,))


@pytest.mark.long
@pytest.mark.parametrize("name, entries", [("kernel.name", KERNELS), ("bandwidth.rule", BANDWIDTHS)])
def test_one_program_has_every_kernel_and_rule(name, entries):
    for entry in entries:
        compare(Spec("banana", method="svgd", capacity=16), steps=(3,), **{name: entry, "method.particles": 11})


@pytest.mark.long
def test_a_hundred_steps_of_svgd_are_those_of_the_app():
    spec = Spec("two_modes", method="svgd", capacity=32)
    stepper, script = compile(spec), HELPERS + "const program = " + program_of(spec) + ";"
    knobs = {"method.particles": 20}
    values = [float(value) for value in stepper.knobs_of(knobs).traced.values()]
    script += """let state = program.reset(0, given), finite;
for (let k = 0; k < 100; k++) [state, finite] = program.step(state, given);
tell(said(state[2]));"""
    found = numbers(node(script, values), (32, 2))[:20]
    wanted = np.asarray(stepper.advance(stepper.reset(0, knobs), knobs, 100).particles)[:20]
    np.testing.assert_allclose(found, wanted, atol=1e-4)


def test_an_added_particle_has_its_row_in_every_array():
    """Adam keeps two moments for each particle, and counts steps for all."""
    text = program_of(Spec("banana", method="svgd", capacity=8))
    meta = node(HELPERS + "const program = " + text + "; tell(program.meta);", None)
    shapes = [
        np.shape(leaf) for leaf in jax.tree.leaves(compile(Spec("banana", method="svgd", capacity=8)).reset(0, {}))
    ]
    assert [shapes[k] for k, axis in meta["rows"]] == [(8, 2)] * 3 and {axis for _, axis in meta["rows"]} == {0}
