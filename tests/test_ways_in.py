"""Posteriors of other tools: the same model gives the same density, coordinates and verdict."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
from numpyro.infer import MCMC, NUTS
from scipy.stats import norm

from stein_core import diagnose, fit, from_numpyro, from_pymc, from_stan
from stein_core.targets.own.density import log_densities
from stein_core.targets.own.numpyro_models import ModelWarning

RNG = np.random.default_rng(0)
X = RNG.normal(size=30)
Y = 1 + 2 * X + 0.5 * RNG.normal(size=30)


def theirs(pm, data=Y):
    with pm.Model() as model:
        a, b, s = pm.Normal("a", 0, 5), pm.Normal("b", 0, 5, shape=2), pm.HalfNormal("s", 2.0)
        pm.Deterministic("twice", 2 * s)
        pm.Normal("y", a + b[0] * X + b[1] * X**2, s, observed=data)
    return model


def ours(x, y):
    a = numpyro.sample("a", dist.Normal(0, 5))
    b = numpyro.sample("b", dist.Normal(0, 5).expand([2]).to_event(1))
    s = numpyro.sample("s", dist.HalfNormal(2.0))
    numpyro.sample("y", dist.Normal(a + b[0] * x + b[1] * x**2, s), obs=y)


@pytest.fixture(scope="module")
def pm():
    return pytest.importorskip("pymc", reason="PyMC is not installed")


def test_a_model_of_pymc_is_the_same_posterior_as_in_numpyro(pm):
    model = theirs(pm)
    target = from_pymc(model)
    with jax.enable_x64():
        same = from_numpyro(ours, X, Y)
    assert target.coordinates == same.coordinates == ("a", "b[0]", "b[1]", "log s")
    theta = np.random.default_rng(1).normal(size=(5, 4))
    for got, wanted in zip(log_densities(target, theta), log_densities(same, theta)):
        np.testing.assert_allclose(got, wanted, rtol=1e-6)
    point = {"a": theta[0, 0], "b": theta[0, 1:3], "s_log__": theta[0, 3]}
    assert log_densities(target, theta[:1])[0][0] == pytest.approx(float(model.compile_logp()(point)), rel=1e-9)
    with jax.enable_x64():
        values = target.constrain(jnp.asarray(theta))
        assert {name: each.shape for name, each in values.items()} == {"a": (5,), "b": (5, 2), "s": (5,), "twice": (5,)}
        np.testing.assert_allclose(values["twice"], 2 * np.exp(theta[:, 3]))
        np.testing.assert_allclose(target.unconstrain({k: v[2] for k, v in values.items()}), theta[2])
        assert float(target.log_joint(theta[0])) == pytest.approx(float(same.log_joint(theta[0])), rel=1e-6)


def test_variables_that_depend_on_each_other_find_their_way_back(pm):
    with pm.Model() as model:
        top = pm.HalfNormal("top", 2.0)
        part = pm.Uniform("part", 0, top)  # the end of its range is a variable
        w = pm.Dirichlet("w", np.ones(3))
        pm.Normal("y", part + w[0], 1.0, observed=Y)
    target = from_pymc(model)
    assert target.coordinates == ("unconstrained part", "log top", "unconstrained w[0]", "unconstrained w[1]")
    with jax.enable_x64():
        theta = jnp.asarray([0.3, -0.2, 0.5, -1.0])
        values = target.constrain(theta)
        assert 0 < values["part"] < values["top"] and float(values["w"].sum()) == pytest.approx(1)
        np.testing.assert_allclose(target.unconstrain(values), theta, atol=1e-9)


@pytest.mark.long
def test_the_verdict_of_a_fit_does_not_depend_on_the_tool(pm):
    with jax.enable_x64():
        same = from_numpyro(ours, X, Y)
    one, other = (fit(target, progress=False) for target in (from_pymc(theirs(pm)), same))
    assert diagnose(one).verdict == diagnose(other).verdict
    for own, others in ((one.draws.mean, other.draws.mean), (one.draws.std, other.draws.std)):
        np.testing.assert_allclose(own(axis=0), others(axis=0), atol=1e-3)  # the searches end 1e-4 sds apart


def test_a_model_that_has_run_in_float32_is_taken_in_float64_with_the_same_data():
    MCMC(NUTS(ours), num_warmup=2, num_samples=2, progress_bar=False).run(jax.random.PRNGKey(0), X, Y)
    with jax.enable_x64():
        assert from_numpyro(ours, X, Y).start.center.dtype == np.float64


@pytest.mark.long
def test_pymc_leaves_precision_and_devices_of_the_process_as_they_were():
    pytest.importorskip("pymc", reason="PyMC is not installed")
    script = """
import os, jax, pymc
from stein_core import from_pymc
with pymc.Model() as model:
    pymc.Normal("y", pymc.Normal("a"), 1.0, observed=0.5)
with jax.enable_x64():
    from_pymc(model)
print(jax.config.jax_enable_x64, os.environ.get("XLA_FLAGS"))"""
    without = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    for flags in (None, "--xla_cpu_enable_fast_math=false"):
        environment = without if flags is None else {**without, "XLA_FLAGS": flags}
        command = [sys.executable, "-W", "ignore", "-c", script]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        assert done.stdout.strip() == f"False {flags}"


def test_what_cannot_be_taken_is_named(pm):
    with pm.Model() as counts:
        pm.Normal("y", pm.Poisson("k", 3), 1, observed=Y)
    with pytest.raises(ValueError, match="'k' is discrete"):
        from_pymc(counts)
    with pytest.raises(ValueError, match="all data at once"):
        with pm.Model() as batches:
            pm.Normal("y", pm.Normal("a"), 1.0, observed=pm.Minibatch(Y, batch_size=10), total_size=30)
        from_pymc(batches)
    with pytest.raises(ValueError, match="nothing to infer"):
        from_pymc(pm.Model())
    with pytest.raises(ValueError, match="allowed: a pymc.Model"):
        from_pymc(ours)
    with pm.Model() as prior, pytest.warns(ModelWarning, match="no observed variable"):
        pm.Normal("a")
        from_pymc(prior)


class Bridge:
    """A posterior with BridgeStan's methods: m ~ normal(0, 2), s > 0 half-normal(1), and transformed `twice`."""

    def name(self):
        return "two_model"

    def param_unc_num(self):
        return 3

    def param_unc_names(self):
        return ["m.1", "m.2", "s"]

    def param_names(self, include_tp=False, include_gq=False):
        return ["m.1", "m.2", "s", *["twice"] * include_tp]

    def param_constrain(self, theta, include_tp=False):
        s = np.exp(theta[2])
        return np.array([theta[0], theta[1], s, *[2 * s] * include_tp])

    def param_unconstrain(self, values):
        return np.array([values[0], values[1], np.log(values[2])])

    def log_density(self, theta, propto, jacobian):
        if theta[2] > 50:
            raise RuntimeError("scale is inf")
        half = np.log(2) - 0.5 * np.log(2 * np.pi) - 0.5 * np.exp(2 * theta[2])
        return norm.logpdf(theta[:2], 0, 2).sum() + half + jacobian * theta[2]

    def log_density_gradient(self, theta, propto, jacobian):
        return None, np.array([-theta[0] / 4, -theta[1] / 4, jacobian - np.exp(2 * theta[2])])

    def log_density_hessian(self, theta, propto, jacobian):
        return None, None, np.diag([-0.25, -0.25, -2 * np.exp(2 * theta[2])])


def test_a_program_of_stan_is_asked_for_its_density_and_two_derivatives():
    bridge = Bridge()
    with jax.enable_x64():
        target = from_stan(bridge)
        assert target.coordinates == ("m[0]", "m[1]", "log s") and target.name == "two_model"
        np.testing.assert_allclose(target.start.center, [0, 0, 0], atol=1e-6)  # d/dt (t - e^2t / 2) = 0
        np.testing.assert_allclose(target.start.scale, [2, 2, np.sqrt(0.5)], rtol=1e-6)
        theta = jnp.asarray(np.random.default_rng(0).normal(size=(4, 3)))
        right = [bridge.log_density(row, False, True) for row in np.asarray(theta)]
        np.testing.assert_allclose(jax.vmap(target.log_density)(theta), right, rtol=1e-12)
        slopes = jax.jit(jax.vmap(jax.grad(target.log_density)))(theta)
        right = [bridge.log_density_gradient(row, False, True)[1] for row in np.asarray(theta)]
        np.testing.assert_allclose(slopes, right, rtol=1e-12)
        curved = bridge.log_density_hessian(np.asarray(theta[0]), False, True)[2]
        np.testing.assert_allclose(jax.hessian(target.log_density)(theta[0]), curved, rtol=1e-12, atol=1e-15)
        values = target.constrain(theta)
        assert {name: each.shape for name, each in values.items()} == {"m": (4, 2), "s": (4,), "twice": (4,)}
        np.testing.assert_allclose(target.unconstrain({name: each[1] for name, each in values.items()}), theta[1])
        assert np.isnan(target.log_density(jnp.asarray([0.0, 0.0, 60.0])))
    with pytest.raises(ValueError, match="allowed: a bridgestan.StanModel"):
        from_stan("model.stan")


@pytest.mark.long
def test_a_program_of_stan_has_the_verdict_of_the_same_model_in_numpyro():
    def same():
        numpyro.sample("m", dist.Normal(0, 2).expand([2]).to_event(1))
        numpyro.sample("s", dist.HalfNormal(1))

    with jax.enable_x64(), pytest.warns(ModelWarning):
        other = from_numpyro(same)
    made = [fit(target, progress=False) for target in (from_stan(Bridge()), other)]
    one, two = map(diagnose, made)
    assert one.verdict == two.verdict
    np.testing.assert_allclose(made[0].draws.std(axis=0), made[1].draws.std(axis=0), rtol=1e-3)


def eight_schools_in_stan():
    """Return posteriordb's program with its data, or skip. STEINLAB_STAN_MODEL names the compiled program. Without it,
    BRIDGESTAN must name the source of BridgeStan, with Stan's, and there must be a compiler."""
    bridgestan = pytest.importorskip("bridgestan", reason="BridgeStan is not installed")
    name = "eight_schools-eight_schools_noncentered"
    folder = Path(os.environ.get("STEIN_DATA", "nowhere")) / "posteriordb"
    if not (folder / f"{name}.npz").exists():
        pytest.skip("STEIN_DATA names no folder with posteriordb")
    program = os.environ.get("STEINLAB_STAN_MODEL")
    if not program and not ("BRIDGESTAN" in os.environ and shutil.which("g++") and shutil.which("make")):
        pytest.skip("no source of Stan (BRIDGESTAN), or no compiler (g++ and make)")
    if not program:
        program = Path(tempfile.mkdtemp(prefix="steinlab-stan-")) / "eight.stan"
        shutil.copy(folder / f"{name}.stan.txt", program)
    known = np.load(folder / f"{name}.npz", allow_pickle=False)
    data = {key.removeprefix("data_"): known[key].tolist() for key in known if key.startswith("data_")}
    return bridgestan.StanModel(str(program), data=json.dumps(data)), known


@pytest.mark.long
def test_a_compiled_program_of_stan_is_the_same_posterior_as_in_numpyro():
    """On 27 November 2026 with BridgeStan 2.7, Stan 2.35 and g++: log densities within 1e-14, slopes within 1e-15."""
    posterior, known = eight_schools_in_stan()

    def same():
        z = numpyro.sample("theta_trans", dist.Normal(0, 1).expand([8]).to_event(1))
        mu, tau = numpyro.sample("mu", dist.Normal(0, 5)), numpyro.sample("tau", dist.HalfCauchy(5))
        numpyro.sample("y", dist.Normal(z * tau + mu, known["data_sigma"]), obs=known["data_y"])

    one = from_stan(posterior)
    with jax.enable_x64():
        other = from_numpyro(same)
    place = [one.coordinates.index(name) for name in other.coordinates]
    theta = np.random.default_rng(0).normal(size=(6, 10))
    (here, slopes), (there, others) = log_densities(one, theta), log_densities(other, theta[:, place])
    assert np.ptp(here - there) < 1e-10
    np.testing.assert_allclose(slopes[:, place], others, rtol=1e-10)
    made = [fit(target, progress=False) for target in (one, other)]
    first, second = map(diagnose, made)
    assert first.verdict == second.verdict and first.ok
    for name in ("mu", "tau"):
        mean, sd = (known[key][known["names"].tolist().index(name)] for key in ("mean", "sd"))
        for each in made:
            assert abs(each.values[name].mean() - mean) < 0.15 * sd and 0.85 < each.values[name].std() / sd < 1.15
