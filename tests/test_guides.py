"""The full and the low-rank normal guide: their densities against SciPy, and where one of them is exact."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal

from stein_core import GUIDES, Recipe, Spec, collect
from stein_core.base.streams import Stream
from stein_core.contract.recipe import knobs_of
from stein_core.runs.assembly import assemble
from steinlab.stage.wire import rows

D, RANK = 3, 2


def made(name, dim=D):
    options = {"rank": RANK} if name == "low_rank" else {}
    guide = GUIDES[name].make(dim, width=jnp.float32(0.3), **options)
    size = GUIDES[name].facts.size(dim, **options)
    return guide, size


def covariances(name, psi):
    """By the formulas of the docstrings, in NumPy."""
    found = []
    for row in np.asarray(psi, float):
        dim = D
        scale = np.log1p(np.exp(row[dim : 2 * dim]))
        if name == "full":
            root = np.diag(scale)
            root[np.tril_indices(dim, -1)] = row[2 * dim :]
            found.append(root @ root.T)
        else:
            columns = row[2 * dim :].reshape(RANK, dim)
            found.append(np.diag(scale**2) + columns.T @ columns)
    return found


@pytest.mark.parametrize("name", ["full", "low_rank"])
def test_density_scale_and_draws_are_those_of_the_covariance(name):
    guide, size = made(name)
    psi = jax.random.normal(jax.random.key(0), (4, size))
    theta = 2.0 * jax.random.normal(jax.random.key(1), (6, D))
    wanted = [
        multivariate_normal(np.asarray(row[:D], float), cov).logpdf(np.asarray(theta, float))
        for row, cov in zip(psi, covariances(name, psi))
    ]
    np.testing.assert_allclose(guide.log_density(psi, theta), np.transpose(wanted), rtol=2e-4, atol=2e-4)
    for row, cov, scale, factor in zip(psi, covariances(name, psi), guide.scale(psi), guide.factor(psi)):
        np.testing.assert_allclose(scale, np.sqrt(np.diag(cov)), rtol=1e-5)
        off = ~np.eye(D, dtype=bool)
        np.testing.assert_allclose((factor @ factor.T)[off], cov[off], rtol=1e-4, atol=1e-5)
        eps = jax.random.normal(jax.random.key(2), (40_000, D + guide.noise))
        drawn = np.asarray(jax.vmap(guide.sample, (None, 0))(row, eps), float)
        np.testing.assert_allclose(drawn.mean(axis=0), row[:D], atol=6 * np.sqrt(np.diag(cov)).max() / 200)
        np.testing.assert_allclose(np.cov(drawn.T), cov, atol=0.05 * np.diag(cov).max())


def test_the_draws_of_diagnostics_are_no_normals_of_the_step():
    """A low-rank guide takes further normals in a step. The diagnostics' draws of theta must not be the same."""
    spec = Spec("gaussian", RANK, "smi", guide="low_rank", draws=1, capacity=64)
    problem, _ = assemble(spec, knobs_of(spec, {}).traced)
    key = jax.random.key(0)
    of_step = np.asarray(problem.draw(key, (64,)))
    seen = np.asarray(problem.draw(jax.random.fold_in(key, Stream.SEEN), (64,)))
    together = np.corrcoef(np.concatenate([of_step, seen], axis=1).T)
    assert np.abs(together - np.eye(len(together))).max() < 0.5  # 4 standard errors


@pytest.mark.parametrize("name", ["normal", "full", "low_rank"])
def test_padding_does_not_count(name):
    options = {"rank": RANK} if name == "low_rank" else {"density": "once"} if name == "normal" else {}
    width, mask = jnp.float32(0.5), jnp.array([1.0, 1.0, 0.0])
    small, padded = GUIDES[name].make(2, width=width, **options), GUIDES[name].make(3, mask, width=width, **options)
    locations, theta = jnp.array([[0.3, -1.0]]), jnp.array([[0.5, 0.2], [-1.0, 2.0]])
    widen = lambda x: jnp.pad(x, ((0, 0), (0, 1)))  # noqa: E731
    one, other = small.init(locations), padded.init(widen(locations))
    if name == "low_rank":  # its start depends on the number of coordinates
        one, other = one.at[:, 4:].set(0.0), other.at[:, 6:].set(0.0)
    np.testing.assert_allclose(
        small.log_density(one, theta), padded.log_density(other, widen(theta)), rtol=1e-5, atol=1e-5
    )


@pytest.mark.rare
@pytest.mark.parametrize("guide, options", [("full", {}), ("low_rank", {"guide.rank": 1})])
def test_one_guide_with_correlations_is_exact_on_a_correlated_gaussian(guide, options):
    spec = Spec("correlated", 2, "smi", guide, draws=20, capacity=2, options=options)
    frame = collect(Recipe(spec, {"method.particles": 1}), 1500)[-1]
    assert frame.metrics["mixture_elbo"] == pytest.approx(0, abs=1e-3)  # log Z of a normalised density
    assert frame.metrics["covariance_error"] < 1e-3
    np.testing.assert_allclose(frame.correlation, [0.8], atol=1e-3)
    assert rows(frame)[0, 8] == pytest.approx(0.8, abs=1e-3)


@pytest.mark.rare
def test_one_diagonal_guide_is_not():
    frame = collect(Recipe(Spec("correlated", 2, "smi", draws=1000, capacity=2), {"method.particles": 1}), 800)[-1]
    assert frame.metrics["covariance_error"] > 1
    # KL of the best diagonal normal: its precisions are those of the target, 1 / (1 - 0.8^2).
    assert frame.metrics["mixture_elbo"] == pytest.approx(0.5 * np.log(1 - 0.8**2), abs=0.05)
