"""What is said before a run: which method, what it costs, and what it keeps. Then the run shows it."""

import math
import threading

import numpy as np
import pytest

from stein_core import METHODS, Recipe, Spec, advise, collect, in_short
from stein_core.posterior.advice import STEPS, beta_for, kept
from stein_core.theory import simplex_variance
from steinlab.stage.law_line import LawLine, sentences
from steinlab.stage.setup import Setup


def test_a_sentence_says_what_points_keep_and_what_keeps_90_percent():
    said = in_short("svgd", 50, {"method.particles": 20})
    assert said == (
        "SVGD: by the law 20 points in 50 dimensions keep 6 % of a normal's variance. "
        "For 90 % take SMI, or noisy SVGD with beta 2.7."
    )
    assert round(100 * np.log(20) / 50 * 20 / 19) == 6
    assert in_short("svgd", 50, {"method.particles": 20, "method.alpha": 16.0}).endswith(
        "101 % of a normal's variance."
    )


@pytest.mark.parametrize("method, dim", [("svgd", 2), ("smi", 50), ("vi", 50), ("mala", 50)])
def test_nothing_is_said_without_a_law(method, dim):
    assert in_short(method, dim, {"method.particles": 20}) == ""


def test_the_law_takes_every_knob_that_moves_it():
    usual = kept("svgd", 50, {"method.particles": 20})
    assert usual == pytest.approx(simplex_variance(50, 20))
    for knobs in (
        {"method.alpha": 0.5},
        {"kernel.name": "imq"},
        {"bandwidth.rule": "median"},
        {"bandwidth.factor": 2.0},
    ):
        assert kept("svgd", 50, {"method.particles": 20, **knobs}) != pytest.approx(usual, rel=0.05), knobs


def test_beta_is_the_largest_with_that_share():
    for dim, count in ((50, 20), (100, 50), (19, 20)):
        beta = beta_for(dim, count)
        now, more = (kept("noisy", dim, {"method.particles": count, "method.beta": b}) for b in (beta, 1.1 * beta))
        assert now >= 0.9 > more
    assert math.isnan(beta_for(2, 20))


def test_the_advised_noise_keeps_what_was_said():
    """By a run: the mean over its last steps, which is within four standard errors and the 3 % of a leading order."""
    choice = next(one for one in advise(30, budget=200_000, want="sample").choices if one.method == "noisy")
    spec = Spec("gaussian", 30, method="noisy", optimizer="sgd", capacity=32)
    frames = collect(Recipe(spec, {**choice.knobs, "method.step_size": 0.05}), steps=8000, every=50)[40:]
    found = np.mean([frame.metrics["sample_variance"] for frame in frames])
    wanted = kept("noisy", 30, {**choice.knobs, "method.step_size": 0.05})
    assert found == pytest.approx(wanted, rel=0.04) and wanted == pytest.approx(0.9, abs=0.02)


def test_a_choice_is_what_the_budget_pays():
    for budget in (2_000, 20_000, 50_000, 400_000, 10**7):
        for want in ("sample", "means", "bands"):
            if want != "means" and budget < 20_000:
                continue
            for one in advise(50, budget=budget, want=want).choices:
                assert one.gradients * one.steps <= budget and one.steps >= STEPS
    assert advise(50, want="means").best.method == "svgd" and advise(50, want="bands").best.method == "smi"
    words = str(advise(50, want="sample"))
    assert "2. Noisy SVGD" in words and "keeps 90 % of the variance by its law" in words and "has no law" in words
    assert advise("banana").dim == advise(Spec("banana", method="svgd")).dim == 2


@pytest.mark.parametrize("arguments, message", [
    ({"target": "banan"}, "did you mean 'banana'"),
    ({"target": 0}, "target = 0"),
    ({"target": 5, "want": "band"}, "did you mean 'bands'"),
    ({"target": 5, "budget": 100}, "budget = 100 gradients; allowed: at least 2,000"),
])  # fmt: skip
def test_what_cannot_be_advised_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        advise(**arguments)


def test_the_line_below_a_stage_speaks_of_what_is_on_screen():
    said, there = [], threading.Event()

    def later(call):
        call()
        said.append(line.text.object)
        there.set()

    line = LawLine(later)
    line.show(Setup("gaussian", ("svgd", "smi"), dim=50, knobs={"method.particles": 20}))
    assert there.wait(60) and said[-1].startswith("SVGD: by the law 20 points in 50 dimensions keep 6 %")
    assert line.text.visible
    there.clear()
    line.turn({"method.particles": 50})
    assert there.wait(60) and "50 points in 50 dimensions keep 8 %" in said[-1]
    line.rest({"svgd": 1200, "smi": None})
    assert line.text.object == f"{line.laws} SVGD is at rest since step 1,200." and "keep 8 %" in line.laws
    there.clear()
    line.rest({})
    line.show(Setup("banana", ("svgd",)))
    assert there.wait(60) and said[-1] == "" and not line.text.visible
    line.rest({"svgd": 500})
    assert line.text.object == "SVGD is at rest since step 500." and line.text.visible
    assert sentences({"svgd": 50, "annealed": 50}, {"method.particles": 20}).count("keep 6 %") == 2
    assert METHODS["annealed"].label in sentences({"annealed": 50}, {"method.particles": 20})
