"""Runs that a follower's own device makes: their program beside that of a batch, and how they are given and taken."""

import gzip
from dataclasses import replace
from types import SimpleNamespace

import jax
import numpy as np
import pytest
from checks import until
from test_classroom import WHO, Phone, room  # noqa: F401
from test_web import node

from stein_core import TARGETS, Recipe, Spec
from stein_core.sweep.batches import ENDS, arguments_of, functions_of, program_of, run_batch
from stein_core.sweep.in_browser import args_of, kind_of, settling
from stein_core.sweep.stop import Stop
from stein_core.web import HELPERS
from steinlab.classroom import runs

STOP = Stop(most=3000)
ALPHA = {"ask": "?"} | runs.facts_of("method.alpha", "target=gaussian&dim=7&methods=svgd&method.particles=5")
SETTLE = """
const copy = (run) => run.map((a) => (a.length === undefined ? +a : Array.from(a)));
let run = program.begin(given.args), kept = null;
while (!run[program.done]) {
  run = program.block(run, given.args, given.limits);
  kept ??= [run, copy(run)];
  if (given.once) break;
}
if (JSON.stringify(copy(kept[0])) !== JSON.stringify(kept[1])) throw new Error("a later step changed this run");
tell([kept[1], Array.from(program.finish(run, given.args)), run[program.done], run[program.step]]);
"""


def settled(recipe, once=False, stop=STOP):
    text = f"{HELPERS}\nconst program = {settling(recipe, stop, 'sample_variance')};{SETTLE}"
    return node(text, {**args_of(recipe, stop), "once": once})


def recipe_of(spec, seed=3, **knobs):
    return Recipe(spec, {f"method.{name}": value for name, value in knobs.items()}, seed)


@pytest.mark.parametrize("spec, knobs", [
    (Spec("gaussian", dim=7, method="svgd", capacity=128), {"particles": 5, "alpha": 2.0}),
    (Spec("gaussian", dim=50, method="svgd", capacity=128), {"particles": 20}),
])  # fmt: skip
def test_a_run_in_javascript_settles_at_the_variance_of_a_batch(spec, knobs):
    _, (left,), done, step = settled(recipe_of(spec, **knobs))
    (wanted,) = run_batch([recipe_of(spec, **knobs)], STOP)
    assert ENDS[done] == wanted["stopped"] == "converged" and step % 35 == 0
    assert left == pytest.approx(wanted["metrics"]["sample_variance"], rel=1e-5)


@pytest.mark.parametrize("spec", [
    Spec("banana", dim=2, method="random_subspace", capacity=6),
    Spec("oring", dim=2, method="smi", capacity=6),
    Spec("gaussian", dim=3, method="langevin", capacity=6),
])  # fmt: skip
def test_a_block_in_javascript_is_that_of_a_batch(spec):
    recipe = recipe_of(spec, particles=4)
    seeds, knobs, d, limits, data = arguments_of([recipe], STOP)
    one = {name: value[0] for name, value in knobs.items()}
    start, block, _ = functions_of(program_of(recipe, STOP))
    with jax.default_matmul_precision("highest"):
        after = jax.jit(block)(start(seeds[0], one, d[0], data), one, d[0], *(v[0] for v in limits), data)
    wanted = [np.asarray(leaf) for leaf in jax.tree.leaves(after)]
    first, _, _, step = settled(recipe, once=True)
    assert step == 35 and len(first) == len(wanted)
    for found, leaf in zip(first, wanted):
        np.testing.assert_allclose(np.reshape(found, leaf.shape), leaf, rtol=2e-3, atol=2e-4)


def test_a_run_ends_at_its_last_step_and_where_it_diverges():
    slow = recipe_of(Spec("banana", dim=2, method="svgd", capacity=6), step_size=1e-5)
    assert settled(slow, stop=Stop(most=700))[2:] == [2, 700]
    wild = recipe_of(Spec("banana", dim=2, method="svgd", optimizer="sgd", capacity=6), step_size=1000.0)
    assert ENDS[settled(wild)[2]] == "diverged" == run_batch([wild], STOP)[0]["stopped"]


def test_a_posterior_with_data_stays_on_the_server():
    with pytest.raises(ValueError, match="has data, which stays here"):
        settling(recipe_of(Spec("ring_classes", method="svgd", capacity=6)), STOP, "sample_variance")


def test_a_target_that_is_registered_again_is_translated_again(monkeypatch):
    monkeypatch.setattr(TARGETS, "_entries", dict(TARGETS._entries))
    recipe = recipe_of(Spec("gaussian", dim=2, method="svgd", capacity=6))
    before = kind_of(recipe, STOP), settling(recipe, STOP, "sample_variance")
    monkeypatch.setitem(TARGETS._entries, "gaussian", replace(TARGETS["gaussian"], make=TARGETS["student"].make))
    after = kind_of(recipe, STOP), settling(recipe, STOP, "sample_variance")
    assert before[0] != after[0] and before[1] != after[1]


@pytest.fixture
def own(room, monkeypatch):  # noqa: F811
    """Runs of a room with one phone, whose question has a script for phones; `later` and `timers` hold what is due."""
    later, timers, phone = [], [], Phone()
    loop = SimpleNamespace(call_later=lambda seconds, *call: timers.append((seconds, call)))
    monkeypatch.setattr(runs.IOLoop, "current", lambda: loop)
    monkeypatch.setattr(runs, "results", lambda wanted: {who: 0.125 for who, _ in wanted})
    made = runs.Runs(room, later.append)
    room.join(phone, WHO)
    room.ask(ALPHA)
    made.prepare()
    until(lambda: bool(later))
    later.pop(0)()
    assert made.scripts
    return SimpleNamespace(room=room, runs=made, phone=phone, later=later, timers=timers)


def given(own):
    """The runs that the phone was given, and what it was told of them."""
    texts = own.phone.texts
    return [text["run"] for text in texts if "run" in text], [text["mine"] for text in texts if "answered" in text]


def test_a_device_makes_its_own_run_and_the_server_none(own):
    assert own.room.answer(WHO, 1, 2.0, "Ada", own=True) == "" and not own.runs.busy
    (run,), _ = given(own)
    script = gzip.decompress(runs.SCRIPTS[run["script"]]).decode()
    recipe = runs.recipe_of(own.room.question, 2.0, WHO)
    assert {"to": 1, "of": 2.0, **args_of(recipe, runs.MOST)}.items() <= run.items()
    play = script.replace("onmessage = ", "const onmessage = ") + "\nonmessage({data: given});"
    answer = node("const postMessage = tell;" + play, run)  # as the worker does it
    own.runs.take(WHO, 1, 2.0, ENDS[answer["ended"]], answer["result"])
    (wanted,) = run_batch([recipe], runs.MOST)
    mine = own.room.mine(WHO)
    assert mine["result"] == pytest.approx(wanted["metrics"]["sample_variance"], rel=1e-5)
    assert mine["said"] == runs.THERE and given(own)[1] == [mine] and not own.runs.busy


# A worker whose program ends after `blocks` blocks of 35 steps, each of which takes `ms` on its clock.
WORKER = """
let clock = 0, onmessage = null;
const performance = {now: () => clock}, postMessage = (told) => tell(told);
const program = {every: 35, done: 1,
  begin: () => [0, 0],
  block: ([n]) => { clock += given.ms; return [n + 1, n + 1 < given.blocks ? 0 : 2]; },
  finish: ([n]) => [given.finite ? n / 2 : NaN],
};"""


@pytest.mark.parametrize("blocks, ms, finite, told", [
    (3, 10, True, {"ended": 2, "result": 1.5}),
    (3, 10, False, {"ended": 3, "result": 0}),  # it diverged
    (30, 450, True, {"ended": 2, "result": 15}),  # 14 s; 39 s if it took all its steps
    (30, 500, True, {"ended": 0, "result": 0}),  # 43 s by then: it gives up after five blocks
    (3, 20001, True, {"ended": 0, "result": 0}),
    (1, 19000, True, {"ended": 2, "result": 0.5}),
])  # fmt: skip
def test_a_device_gives_up_a_run_that_takes_too_long(blocks, ms, finite, told):
    given = {"blocks": blocks, "ms": ms, "finite": finite, "args": [], "limits": [0, 3000]}
    assert node(WORKER + runs.WORKER.read_text() + "\nonmessage({data: given});", given) == told


@pytest.mark.parametrize("said, result, words", [
    ({}, 0.5, runs.THERE),
    ({"ended": "steps"}, 0.5, runs.THERE),
    ({"ended": "diverged"}, None, runs.DIVERGED),
    ({"result": -1.0}, None, runs.DIVERGED),
    ({"of": 3.0}, None, ""),  # of an answer that was changed since
    ({"number": 2}, None, ""),
    ({"who": "b" * 32}, None, ""),
])  # fmt: skip
def test_what_a_device_says_is_taken_for_the_run_it_was_given(own, said, result, words):
    own.room.answer(WHO, 1, 2.0, "", own=True)
    own.runs.take(**{"who": WHO, "number": 1, "of": 2.0, "ended": "converged", "result": 0.5} | said)
    mine = own.room.mine(WHO)
    assert (mine["result"], mine["said"]) == (result, words) and not own.runs.waiting and not own.runs.busy


def test_nobody_brings_a_result_that_was_not_asked_for(own):
    own.room.answer(WHO, 1, 2.0, "", own=True)
    for _ in range(2):
        own.runs.take(WHO, 1, 2.0, "converged", 0.5)
    own.runs.take(WHO, 1, 2.0, "converged", 0.75)  # a second one
    assert own.room.mine(WHO)["result"] == 0.5
    own.room.close()
    own.runs.take(WHO, 1, 2.0, "converged", 0.75)


@pytest.mark.parametrize("why", ["it gives up", "it is not heard of", "it offers nothing", "the script is gone"])
def test_the_server_makes_the_run_that_a_device_does_not(own, why, monkeypatch):
    if why == "the script is gone":
        runs.SCRIPTS.clear()
    own.room.answer(WHO, 1, 2.0, "", own=why != "it offers nothing")
    if why == "it gives up":
        own.runs.take(WHO, 1, 2.0, "running", 0.0)
    if why == "it is not heard of":
        (seconds, (call, *arguments)), *_ = own.timers
        assert seconds == runs.PATIENCE and not own.runs.busy
        call(*arguments)
    while own.room.mine(WHO)["result"] is None:
        until(lambda: bool(own.later))
        own.later.pop(0)()
    assert own.room.mine(WHO)["result"] == 0.125 and own.room.mine(WHO)["said"] == ""


def test_an_answer_that_is_changed_gets_another_run(own):
    for value in (2.0, 3.0):
        own.room.answer(WHO, 1, value, "", own=True)
    assert [run["of"] for run in given(own)[0]] == [2.0, 3.0]
    own.runs.take(WHO, 1, 2.0, "converged", 0.5)
    assert own.room.mine(WHO)["result"] is None
    own.runs.take(WHO, 1, 3.0, "converged", 0.25)
    assert own.room.mine(WHO)["result"] == 0.25


def test_what_was_given_for_an_answer_or_question_before_is_not_taken(own):
    own.room.answer(WHO, 1, 2.0, "", own=True)
    own.room.ask(ALPHA)
    own.room.answer(WHO, 2, 2.0, "", own=True)
    own.runs.take(WHO, 1, 2.0, "converged", 0.5)
    assert own.room.mine(WHO)["result"] is None
    own.runs.take(WHO, 2, 2.0, "converged", 0.25)
    assert own.room.mine(WHO)["result"] == 0.25
    own.room.answer(WHO, 2, 3.0, "", own=True)
    own.runs.busy = True  # the server's own turn does not come
    own.room.answer(WHO, 2, 4.0, "")
    own.runs.take(WHO, 2, 3.0, "converged", 0.5)
    assert own.room.mine(WHO)["result"] is None and own.runs.away == {} and own.runs.waiting == [WHO]


def test_a_server_keeps_the_newest_scripts(monkeypatch):
    monkeypatch.setattr(runs, "SCRIPTS", {})
    monkeypatch.setattr(runs, "MOST_SCRIPTS", 2)
    monkeypatch.setattr(runs, "settling", lambda recipe, stop, quantity: recipe)
    names = [runs.script_of(text) for text in ("one", "two", "one", "three")]
    assert list(runs.SCRIPTS) == names[2:] and names[0] == names[2]
