"""The lines of stein_core/README.md that check draws of other tools, beside the truth about these draws."""

import re
from pathlib import Path
from types import SimpleNamespace

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import optax
import pytest
from numpyro.contrib.einstein import MixtureGuidePredictive, RBFKernel, SteinVI
from numpyro.infer import MCMC, NUTS, SVI, Trace_ELBO
from numpyro.infer.autoguide import AutoMultivariateNormal, AutoNormal
from test_ways_in import Bridge, X, Y, ours, theirs

from stein_core import diagnose, from_numpyro, from_pymc, from_stan
from stein_core.base.arviz_api import from_groups
from stein_core.base.samples import width_ratios

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("optimized")]  # some tools take many small steps
X, Y = X.copy(), Y.copy()  # JAX 0.10 remembers the precision in which it met an array: other modules keep theirs
README = (Path(__file__).parents[1] / "stein_core/README.md").read_text()
LINES = re.search(r"```python\n(diagnose\(mcmc.*?)```", README, re.DOTALL).group(1).splitlines()
LEGACY = jax.random.PRNGKey  # what NumPyro takes


@pytest.fixture(scope="module")
def target():
    return from_numpyro(ours, X, Y)


@pytest.fixture(scope="module")
def mcmc():
    made = MCMC(NUTS(ours), num_warmup=500, num_samples=4000, progress_bar=False)
    made.run(LEGACY(0), X, Y)
    return made


def check(line, **names):
    """The report of the line that ends with this comment."""
    (code,) = (one for one in LINES if one.partition("  # ")[2].startswith(line))
    return eval(code, {"diagnose": diagnose, "key": LEGACY(1), "data": (X, Y), **names})


def truly_fine(draws, mcmc):
    """Whether means are within 0.2 sd, and sds within 20 %, of those of long NUTS, in the model's values."""
    found = []
    for name, exact in mcmc.get_samples().items():
        sd = np.std(exact, axis=0)
        found.append(np.abs(np.mean(draws[name], axis=0) - np.mean(exact, axis=0)) / sd < 0.2)
        found.append(np.abs(np.std(draws[name], axis=0) / sd - 1) < 0.2)
    return all(np.all(one) for one in found)


def test_every_line_is_tried():
    said = Path(__file__).read_text()
    for line in LINES:
        start = re.match(r"[\w' ]+", line.partition("  # ")[2]).group()
        assert f'check("{start.strip()}' in said, line


def test_draws_of_nuts(target, mcmc):
    assert check("NumPyro's NUTS", mcmc=mcmc, target=target).ok


@pytest.mark.parametrize("kind, right", [(AutoMultivariateNormal, True), (AutoNormal, False)])
def test_draws_of_svi(target, mcmc, kind, right):
    guide = kind(ours)
    result = SVI(ours, guide, numpyro.optim.Adam(0.01), Trace_ELBO(num_particles=10)).run(
        LEGACY(1), 3000, X, Y, progress_bar=False
    )
    report = check("NumPyro's SVI", guide=guide, result=result, target=target)
    draws = guide.sample_posterior(LEGACY(1), result.params, sample_shape=(1000,))
    assert report.ok == right == truly_fine(draws, mcmc), report.verdict
    assert right or "Too narrow" in report.verdict


@pytest.mark.rare
def test_draws_of_steinvi(target, mcmc):
    guide = AutoNormal(ours)
    stein = SteinVI(ours, guide, numpyro.optim.Adagrad(0.5), RBFKernel(), num_stein_particles=20, num_elbo_particles=10)
    result = stein.run(LEGACY(1), 2000, X, Y, progress_bar=False)
    sites = list(mcmc.get_samples())
    mixture = MixtureGuidePredictive(
        ours, guide, result.params, stein.guide_sites, num_samples=1000, return_sites=sites
    )
    report = check("NumPyro's SteinVI", mixture=mixture, target=target)
    draws = mixture(LEGACY(1), X, Y)
    assert report.ok == truly_fine(draws, mcmc) == False, report.verdict  # noqa: E712

    def theta(values):
        return np.column_stack([values["a"], values["b"], np.log(values["s"])])

    worst = int(re.search(r"(\d+) % of the right width", report.verdict).group(1))  # along a direction
    ratios = width_ratios(theta(draws), np.cov(theta(mcmc.get_samples()).T))
    assert worst == pytest.approx(100 * np.sqrt(ratios[0]), rel=0.2)


def test_particles_of_blackjax(target, mcmc):
    svgd = blackjax.svgd(jax.grad(target.log_density), optax.adam(0.05))
    start = jnp.asarray(target.start.center) + jnp.asarray(target.start.scale) * jax.random.normal(
        jax.random.key(0), (100, target.dim)
    )
    state = jax.lax.fori_loop(0, 2000, lambda _, state: svgd.step(state), svgd.init(start))
    report = check("BlackJAX's SVGD", state=state, target=target)
    assert report.ok == truly_fine(target.constrain(state.particles), mcmc), report.verdict
    # The same particles, half as wide.
    narrow = SimpleNamespace(
        particles=state.particles.mean(axis=0) + (state.particles - state.particles.mean(axis=0)) / 2
    )
    report = check("BlackJAX's SVGD", state=narrow, target=target)
    assert report.ok is False and "Too narrow" in report.verdict


def test_draws_of_pathfinder(target, mcmc):
    found, _ = blackjax.pathfinder.approximate(
        jax.random.key(0), target.log_density, jnp.asarray(target.start.center) + 0.5, num_samples=200
    )
    report = check("BlackJAX's Pathfinder", blackjax=blackjax, found=found, target=target)
    draws = target.constrain(blackjax.pathfinder.sample(LEGACY(1), found, 1000)[0])
    assert report.ok == truly_fine(draws, mcmc), report.verdict


def test_draws_of_pymc(mcmc):
    pm = pytest.importorskip("pymc", reason="PyMC is not installed")
    model = theirs(pm)
    with model:
        trace = pm.sample(500, tune=500, chains=2, cores=1, progressbar=False, random_seed=1)
    assert check("PyMC", trace=trace, model=model, from_pymc=from_pymc).ok


def test_draws_of_cmdstanpy():
    """ArviZ makes groups of arrays by Stan's names, with chains before draws. No CmdStan is here to make a real fit."""
    draws = np.random.default_rng(0).normal(size=(4, 500, 2))
    s = np.abs(np.random.default_rng(1).normal(size=(4, 500)))

    def from_cmdstanpy(width):
        return from_groups({"posterior": {"m": 2 * width * draws, "s": s, "twice": 2 * s}})

    az = SimpleNamespace(from_cmdstanpy=from_cmdstanpy)
    for width, right in ((1.0, True), (0.7, False)):
        report = check("CmdStanPy", az=az, sampled=width, from_stan=from_stan, posterior=Bridge())
        assert report.ok is right, report.verdict


def test_draws_with_gradients_of_anything():
    draws = np.random.default_rng(0).normal(size=(2000, 3))
    assert check("anything that has gradients of the log density", draws=draws, scores=-draws).ok
    assert check("anything that has gradients of the log density", draws=0.6 * draws, scores=-0.6 * draws).ok is False
