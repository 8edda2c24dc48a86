"""The models and metrics of the tables, against formulas written out in NumPy."""

import jax
import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, log_expit
from sklearn.metrics import log_loss

from stein_core import TARGETS, Recipe, Spec, compile, target_of
from stein_core.contract.spec import data_of
from stein_core.papers.published import published
from stein_core.papers.tables import TABLES, Cell, collapse_bnn, damped, ksivi, ksivi_posteriors, smi_mnist, smi_uci
from stein_core.papers.tables.blr import test_errors as errors_of
from stein_core.papers.tables.logistic import fixed_prior, gamma_prior
from stein_core.papers.tables.predictions import classification, classification_as_coded
from stein_core.papers.tables.table import A_STEP, compare, row_of
from stein_core.posterior.reference import nuts
from stein_core.targets import waveform as sampler_posteriors
from stein_core.targets.data import downloads
from stein_core.targets.uci import splits_of
from steinlab.pages.benchmarks.live import live_link

DATA = pytest.mark.skipif(downloads.data_file("uci/yacht.npz") is None, reason="STEIN_DATA names no folder of data")


def test_logistic_regressions_have_the_densities_of_the_papers():
    draw = np.random.default_rng(0)
    x, theta = draw.normal(size=(30, 3)), np.array([0.5, -1.0, 0.2, -0.7])
    y = np.float64(draw.random(30) < 0.5)
    likelihood = np.sum(np.where(y > 0, log_expit(x @ theta[:3]), log_expit(-x @ theta[:3])))
    one = fixed_prior(x, y, alpha=2.0)
    expected = likelihood + stats.norm.logpdf(theta[:3], 0, 2**-0.5).sum()
    assert float(one.log_density(np.float32(theta[:3]))) == pytest.approx(expected, rel=1e-5)
    other, a = gamma_prior(x, y), np.exp(theta[3])
    expected = (
        likelihood + stats.norm.logpdf(theta[:3], 0, a**-0.5).sum() + stats.gamma.logpdf(a, 1, scale=100) + theta[3]
    )
    assert float(other.log_density(np.float32(theta))) == pytest.approx(expected, rel=1e-5)
    p = expit(x @ theta[:3])
    found = errors_of(x, y, theta[None, :3])
    assert found["ll"] == pytest.approx(-log_loss(y, p)) and found["accuracy"] == np.mean((p > 0.5) == y)


@DATA
def test_the_model_of_the_smi_paper():
    """y in raw units, weights N(0, 1), precision softplus(u) ~ Gamma(1, rate 0.1) with its Jacobian."""
    options = {"target.dataset": "yacht", "target.model": "smi", "target.width": 2, "target.splits": "gap10"}
    spec = Spec("uci", method="svgd", options=options)
    theta = np.random.default_rng(1).normal(size=spec.dim) * 0.3
    data = data_of(spec)
    target = TARGETS["uci"].make(spec.dim, data=data, split=3, batch=None, **spec.options_of("target"))
    x, y = splits_of("yacht", "gap10", "smi").part(3, "train")
    w1, b1, w2, b2, u = np.split(theta, [12, 14, 16, 17])
    f = np.maximum(x @ w1.reshape(2, 6).T + b1, 0) @ w2 + b2
    precision = np.log1p(np.exp(u[0]))
    expected = stats.norm.logpdf(y, f, precision**-0.5).sum() + stats.norm.logpdf(theta[:-1]).sum()
    expected += np.log(0.1) - 0.1 * precision + log_expit(u[0])
    assert float(target.log_density(np.float32(theta))) == pytest.approx(expected, rel=1e-4)
    starts = np.asarray(target.start.draw(jax.random.key(0), 7))
    assert starts.shape == (7, spec.dim) and np.abs(starts).max() <= 0.1 and starts.std() > 0.05


def test_the_network_of_ba_et_al_has_functions_of_unit_scale():
    """With weights and biases N(0, 1) each pre-activation has variance (|a|^2 + 1) / (inputs + 1)."""
    draw, x = np.random.default_rng(0), np.float32([-1.0, 0.0, 1.0])
    width, theta = 5, draw.normal(size=46)
    a = x[:, None]
    for inputs, outputs in ((1, 5), (5, 5), (5, 1)):
        w, b, theta = np.split(theta, [inputs * outputs, (inputs + 1) * outputs])
        a = (a @ w.reshape(inputs, outputs) + b) / np.sqrt(inputs + 1)
        a = np.tanh(a) if outputs > 1 else a
    found = collapse_bnn.apply(np.float32(np.random.default_rng(0).normal(size=46)), x, width)
    np.testing.assert_allclose(found, a[:, 0], rtol=1e-5)
    assert damped.law("damped", 25) == pytest.approx(1.0) and damped.law("half damped", 25) == pytest.approx(0.5)


def test_metrics_of_a_classification():
    p = np.array([[0.9, 0.1], [0.6, 0.4], [0.3, 0.7], [0.2, 0.8]])
    labels = np.array([0, 1, 1, 1])
    found = classification(p, labels, bins=2)
    own = np.array([0.9, 0.4, 0.7, 0.8])
    assert found["nll"] == pytest.approx(log_loss(labels, p))
    assert found["acc"] == 0.75 and found["conf"] == pytest.approx(0.75)
    assert found["brier"] == pytest.approx(np.mean(2 * (1 - own) ** 2))
    assert found["ece"] == pytest.approx(0.0) and found["mce"] == pytest.approx(0.0)  # one bin: 0.75 and 0.75
    fine = classification(p, labels, bins=10)
    gaps = np.abs([1 - 0.9, 0 - 0.6, 1 - 0.7, 1 - 0.8])
    assert fine["ece"] == pytest.approx(gaps.mean()) and fine["mce"] == pytest.approx(0.6)


def synthetic(rows=2000):
    """Probabilities of ten classes, most of them sure and too sure, with labels."""
    draw = np.random.default_rng(3)
    p = draw.dirichlet(np.full(10, 0.1), size=rows)
    chance = 0.7 * p + 0.3 * draw.dirichlet(np.full(10, 0.3), size=rows)
    return p, np.array([draw.choice(10, p=row) for row in chance]), draw


def test_acc_conf_and_nll_as_coded_are_means_over_labels_that_are_drawn():
    """The code's own way: a label is drawn from each prediction, and its log probability is what NumPyro gives."""
    p, labels, draw = synthetic()
    found, sums = classification_as_coded(p, labels), []
    for _ in range(200):
        drawn = np.array([np.searchsorted(np.cumsum(row), u) for row, u in zip(p, draw.random(len(p)))])
        its = np.array([row[label] for row, label in zip(p, drawn)])
        sums.append([np.mean(drawn == labels), np.mean(its), -np.mean(np.log(its))])
    mean, error = np.mean(sums, axis=0), np.std(sums, axis=0) / np.sqrt(len(sums))
    coded = np.array([found[f"{name} as coded"] for name in ("acc", "conf", "nll")])
    assert np.all(np.abs(coded - mean) < 4 * error)
    usual = classification(p, labels)
    apart = np.abs(coded - [usual[name] for name in ("acc", "conf", "nll")])
    assert np.all(apart > 40 * error) and np.all(apart > 0.02)


def test_calibration_as_coded_is_over_all_bins_with_their_slip():
    """A loop over sorted rows. A run of empty bins takes the row that follows, which its own bin then lacks."""
    p, labels, _ = synthetic()
    gap = sorted((max(row), (np.argmax(row) == label) - max(row)) for row, label in zip(p, labels))
    found, usual, gaps, taken, before = classification_as_coded(p, labels), [], [], False, False
    for i in range(100):
        here = [g for c, g in gap if i / 100 <= c < (i + 1) / 100 or (i == 99 and c == 1)]
        after = [g for c, g in gap if c >= (i + 1) / 100]
        if here:
            gaps.append(abs(sum(here[1:] if taken else here)) / len(here))
            usual.append(abs(sum(here)) / len(here))
            taken, before = False, False
        else:
            gaps.append(0.0 if before or not after else abs(after[0]))
            taken, before = True, True
    assert gaps[0] > 0 and found["ece as coded"] == pytest.approx(np.mean(gaps), rel=1e-9)
    assert found["mce as coded"] == pytest.approx(max(gaps), rel=1e-9)
    right = classification(p, labels)
    assert right["ece"] == pytest.approx(np.mean(usual), rel=1e-9) and len(usual) < 90
    assert right["ece"] > 1.05 * found["ece as coded"]


def test_an_error_that_says_nothing_of_other_runs_gives_no_difference():
    cell = next(cell for cell in TABLES["smi_mnist"].make(False) if cell.row == "MAP" and cell.column == "one layer")
    rows = [row_of(cell, {"acc as coded": value, "acc": 0.968}, 1.0) for value in (0.944, 0.946)]
    found = {one.label: one for one in compare("smi_mnist", rows) if one.runs}
    one = found["one layer: Acc as coded"]
    assert (one.published, one.ours) == (0.952, pytest.approx(0.945)) and one.error == pytest.approx(0.001)
    assert np.isnan(one.published_error) and np.isnan(one.difference)
    assert np.isnan(found["one layer: Acc"].published)


def test_every_cell_has_a_claim_and_every_claim_a_published_cell():
    """Nothing is computed that nobody sees, and each published value that stands there exists."""
    for entry in TABLES.entries():
        claims = entry.facts.claims()
        for claim in claims:
            assert claim.table is None or claim.table.value(*claim.at) is not None
        seen = {(claim.row, claim.cells) for claim in claims}
        for full in (False, True):
            cells = entry.make(full)
            assert {(cell.row, cell.column) for cell in cells} <= seen, entry.name
            assert len({cell.key for cell in cells}) == len(cells)
        assert len(entry.make(False, 1)) < len(entry.make(True))


def test_the_time_of_a_step_is_that_of_the_fastest_run():
    cells = [c for c in TABLES["smi_uci"].make(False) if (c.row, c.column) == ("Boston", "SMI, standard")][:2]
    rows = [row_of(cell, {}, seconds) for cell, seconds in zip(cells, (30.0, 25.0))]
    (found,) = [one for one in compare("smi_uci", rows) if one.label.endswith(A_STEP) and one.runs]
    assert (found.ours, found.published, found.runs) == (0.0025, 0.0014, 1)


def test_mann_whitney_says_who_is_lowest_and_who_is_not_told_from_it():
    def rows(method, values):
        return [
            {"row": "Boston", "column": f"{method}, standard", "numbers": {"nll as coded": value}} for value in values
        ]

    given = rows("SMI", [2.0, 2.1, 2.2, 2.3, 2.4]) + rows("MAP", [2.05, 2.15, 2.1, 2.3, 2.5])
    said = smi_uci.tests(given + rows("SVGD", [5.0, 5.1, 5.2, 5.3, 5.4]))
    assert said == [
        "Lowest NLL as coded, standard splits, without NUTS: Boston SMI (5 splits; not told apart: SMI, MAP)."
    ]
    few = smi_uci.tests(rows("SMI", [2.0, 2.1]) + rows("SVGD", [5.0, 5.1]))
    assert few == ["Lowest NLL as coded, standard splits, without NUTS: Boston SMI (2 splits, too few for the test)."]
    assert smi_mnist.METHODS_OF["OVI"] == "vi"


@pytest.mark.long
def test_each_variant_of_the_uci_table_has_what_its_name_says():
    own = {cell.column: cell for cell in TABLES["smi_uci"].make(False) if cell.row == smi_uci.VARIED and not cell.seed}
    plain = {name: smi_uci.recipe_of(own[f"{name}, standard"]) for name in ("SMI", "SVGD")}
    for name, density, layers, particles in (
        ("SMI (twice)", "twice", 1, 5),
        ("SMI with two layers", "once", 2, 5),
        ("SMI (twice) with two layers", "twice", 2, 5),
        ("SVGD with two layers", None, 2, 5),
        ("SVGD with ten particles", None, 1, 10),
    ):
        recipe, same = smi_uci.recipe_of(own[f"{name}, standard"]), plain[name.split(" ")[0]]
        assert recipe.spec.method == same.spec.method and recipe.spec.options.get("guide.density") == density
        assert recipe.spec.dim == 8 * 50 + 50 + (layers - 1) * 50 * 51 + 51 + 1
        assert recipe.knobs["method.particles"] == particles <= recipe.spec.capacity
        assert recipe.knobs["method.step_size"] == same.knobs["method.step_size"]
    medians = np.median(np.random.default_rng(0).normal(size=(15, 20_000)), axis=0)  # as AutoDelta starts
    spread = recipe.knobs["init.spread"] * 0.1 / np.sqrt(3)  # sd of U[-0.1, 0.1], spread
    assert spread == pytest.approx(medians.std(), rel=0.03)


def test_the_variants_are_told_on_the_splits_that_all_have():
    cells = [cell for cell in TABLES["smi_uci"].make(False) if cell.row == smi_uci.VARIED]
    values = dict(zip(("SMI", *(name for name in smi_uci.VARIANTS if name.startswith("SMI"))), (3.0, 2.0, 2.5, 0.5)))
    rows = [
        row_of(cell, {"nll as coded": values[name] + cell.seed}, 1.0)
        for cell in cells
        for name in values
        if cell.column == f"{name}, standard"
    ]
    assert len(rows) == 5 + 3 * 3  # SMI has two splits more
    said = smi_uci.explained(rows)
    assert said[0] == (
        "Energy, NLL as coded on 3 splits: SMI 4.00, SMI (twice) 3.00, SMI with two layers 3.50, "
        "SMI (twice) with two layers 1.50; published 0.8."
    )
    assert len(said) == 2 and not smi_uci.explained(rows[:5])


@pytest.mark.rare
def test_the_gradients_of_nuts_are_counted_with_its_warm_up():
    target, counted = target_of(Spec("correlated", method="svgd")), []
    draws = nuts(target, chains=2, warmup=100, samples=200, gradients=counted)
    assert draws.shape == (2, 200, 2) and draws.reshape(-1, 2).std(axis=0) == pytest.approx(1.0, abs=0.25)
    assert 2 * 300 < counted[0] < 2 * 300 * 31


@DATA
@pytest.mark.rare
@pytest.mark.parametrize("method, model", [("svgd", "svgd"), ("smi", "smi")])
def test_networks_run_in_float64_and_spare_particles_change_nothing(method, model):
    options = {"target.dataset": "yacht", "target.width": 3, "target.model": model}
    knobs = {"method.particles": 3, "method.step_size": 1e-3, "bandwidth.rule": "liuwang", "target.split": 2}
    ends = []
    with jax.enable_x64():
        for capacity in (4, 8):
            spec = Spec("uci", method=method, draws=2, optimizer="svgd_code", capacity=capacity, options=options)
            stepper = compile(spec, look=False, measure=False)
            state = stepper.advance(stepper.reset(0, knobs), knobs, 50)
            assert state.particles.dtype == np.float64 and int(state.step) == 50
            ends.append(np.asarray(state.particles)[:3])
    np.testing.assert_allclose(*ends, rtol=1e-12, atol=1e-12)


@pytest.mark.long
def test_a_semi_implicit_cell_says_how_far_its_draws_are_beside_two_exact_samples():
    """A sample that has hardly been trained is far from a target whose two exact samples are near each other."""
    cell = Cell("ksivi_toys", "x-shaped", "KSIVI (u-stat)", 0, (("draws", 16), ("steps", 20)))
    found = ksivi.run_toy(cell)
    exact = [np.asarray(target_of(Spec("x_shaped")).truth.sample(jax.random.key(seed), 5000)) for seed in (98, 99)]
    along = np.random.default_rng(0).normal(size=(2, 200))
    along /= np.linalg.norm(along, axis=0)
    squares = [np.mean((np.sort(exact[0] @ v) - np.sort(exact[1] @ v)) ** 2) for v in along.T]
    assert found["floor"] == pytest.approx(np.sqrt(np.mean(squares)), rel=0.01)
    assert found["SW2"] > 3 * found["floor"] and found["SW1"] <= found["SW2"]


def test_the_distance_in_a_box_is_that_of_the_draws_there():
    """A shift by v is W2^2 = |v|^2; what lies outside does not count; sets of other sizes are cut to the smaller."""
    x = np.random.default_rng(0).normal(size=(400, 2)).clip(-1.9, 1.9)
    away = np.full((30, 2), 50.0)
    assert ksivi.boxed(np.vstack([x, away]), [x + [0.3, 0.4]] * 2, 3.0) == pytest.approx(0.25, rel=1e-6)
    assert ksivi.boxed(x, [x[:100]], 3.0) == pytest.approx(0.0, abs=1e-9)
    assert np.isnan(ksivi.boxed(away, [x], 3.0))


@pytest.mark.rare
@pytest.mark.parametrize("row, column", [("Student-t", "KSDD"), ("eight Gaussians", "SIVI")])
def test_a_method_of_section_7_that_has_hardly_moved_is_far_beyond_the_floor(row, column, monkeypatch):
    monkeypatch.setattr(ksivi, "POINT_STEPS", 5)
    found = ksivi.run_extended(Cell("ksivi_extensions", row, column, 0, (("draws", 16), ("steps", 20))))
    metric = "W2² in 5" if row == "Student-t" else "SW2"
    assert found[metric] > 2 * found[f"{metric} floor"] > 0
    if row == "eight Gaussians":
        assert found["modes floor"] == 8 > found["modes"]


def test_a_course_stops_where_its_run_diverges():
    knobs = {"method.particles": 8, "method.step_size": 1e3}
    recipe = Recipe(Spec("gaussian", 2, "svgd", optimizer="sgd", capacity=8), knobs)
    assert [name for name, *_ in ksivi.course(recipe, {"begin": 0, "end": 500}, 10)] == ["begin"]


def test_every_number_of_tables_2_6_and_7_has_its_claim():
    cells = {(cell.row, cell.column) for cell in TABLES["ksivi_diffusion"].make(True)}
    claims = [claim for claim in TABLES["ksivi_diffusion"].facts.claims() if claim.table]
    assert {(claim.row, claim.cells) for claim in claims} == cells
    said = {(claim.table.table, *claim.at) for claim in claims}
    for table in ("2", "6", "7"):
        known = published("ksivi", table)
        rows = [row for row in known.rows if row != "KSIVI"]  # in table 2: the two batches of table 7
        assert {(table, row, dim) for row in rows for dim in known.columns} <= said
    assert published("ksivi", "2").rows["KSIVI"] == published("ksivi", "7").rows["KSIVI (vanilla)"]


@pytest.mark.rare
def test_the_reference_of_the_diffusion_is_a_normal_regression_when_there_is_no_drift(monkeypatch):
    """Without drift the path is a Brownian motion: mean and variance are those of a normal regression."""
    monkeypatch.setattr(sampler_posteriors, "BETA", 0.0)
    sampler_posteriors._observed.cache_clear()
    ksivi_posteriors.diffusion_reference.cache_clear()
    made = TARGETS["diffusion"].make(50, simulated="same")
    monkeypatch.setattr(ksivi_posteriors, "target_of", lambda spec: made)
    try:
        draws = np.vstack(ksivi_posteriors.diffusion_reference(50))
        times, seen = (np.arange(50) + 1) / 50, sampler_posteriors._observed(50, "same")
        prior = np.minimum.outer(times, times)
        gain = prior[:, 4::5] @ np.linalg.inv(prior[4::5, 4::5] + 0.01 * np.eye(10))
        mean, covariance = gain @ seen, prior - gain @ prior[4::5]
        sd = np.sqrt(np.diag(covariance))
        assert np.abs((draws.mean(axis=0) - mean) / sd).max() < 0.15
        np.testing.assert_allclose(draws.std(axis=0) / sd, 1.0, atol=0.12)
    finally:
        sampler_posteriors._observed.cache_clear()
        ksivi_posteriors.diffusion_reference.cache_clear()


@pytest.mark.parametrize("name, page", [("ksivi_toys", "samplers"), ("svgd_uci", "particles")])
def test_a_cell_opens_on_the_page_that_has_its_method(name, page):
    assert live_link(TABLES[name].make(False)[0]).startswith(f"?page={page}&")


def test_the_link_of_a_cell_has_what_changes_on_the_way():
    cell = next(c for c in TABLES["ksivi_extensions"].make(False) if c.column == "KSIVI (Riesz)")
    link = live_link(cell)
    assert "method.entropic=0.05" in link and "changes=8000~method.entropic~0" in link


@DATA
@pytest.mark.rare
def test_the_score_in_its_critic_brings_sivi_sm_to_the_waveform_posterior():
    """After 10,000 steps of 0.001 from sigma 1 the paper has 0.12; without it SW1 is 29."""
    recipe = ksivi_posteriors.waveform_recipe(Cell("ksivi_waveform", "0.001", "SIVI-SM", 0))
    ((_, draws, _),) = ksivi.course(recipe, {"10k": 10_000}, 5000)
    assert ksivi.distances(draws, sampler_posteriors.waveform_reference())["SW1"] < 0.3
