"""Twelve posteriors of posteriordb as NumPyro models, each written from its Stan program.

Source: posteriordb (Magnusson et al. 2025), https://github.com/stan-dev/posteriordb. Data and reference draws are read
from the folder `posteriordb` in the folder that the variable STEIN_DATA names.
"""

import os
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from jax.experimental.ode import odeint

from stein_core.base.errors import unknown

constraints = dist.constraints


class Reference(NamedTuple):
    """Hold the reference draws of a posterior.

    Args:
        names: (k,) Stan's names of the reported parameters, such as "beta[1]".
        mean, sd: (k,) of all 10,000 reference draws.
        draws: (2000, k) some of them.
    """

    names: tuple[str, ...]
    mean: np.ndarray
    sd: np.ndarray
    draws: np.ndarray

    def columns(self, values) -> np.ndarray:
        """Return named values of a model, (n, ...) each, as the columns (n, k) of these names."""
        found = []
        for name in self.names:
            site, _, index = name.partition("[")
            rows = np.asarray(values[site])
            found.append(rows[(slice(None), *(int(i) - 1 for i in index[:-1].split(",")))] if index else rows)
        return np.stack(found, axis=1)


def folder() -> Path:
    """Return the folder of the posteriors' files. It need not exist."""
    return Path(os.environ.get("STEIN_DATA", ""), "posteriordb")


def load(name: str) -> dict[str, np.ndarray]:
    """Read one posterior's file: `names`, `mean`, `sd`, `draws` (2000, k), and its data.

    Raises:
        UnknownName: another name.
        ValueError: its file is not there.
    """
    if name not in POSTERIORS:
        raise unknown("posterior", name, POSTERIORS)
    path = folder() / f"{name}.npz"
    if not path.is_file():
        raise ValueError(
            f"posterior {name!r} needs the file posteriordb/{name}.npz in the folder that STEIN_DATA names; it is not "
            "there."
        )
    with np.load(path, allow_pickle=False) as file:
        return dict(file)


def posterior(name: str):
    """Return (model, its arguments, Reference) of one posterior, or of one of `CENTRED`; see `load`."""
    model, name = CENTRED.get(name, (None, name))
    file = load(name)
    given, arguments = POSTERIORS[name]
    model = model or given
    names = tuple(str(each) for each in file["names"])
    return model, arguments(file), Reference(names, file["mean"], file["sd"], np.float64(file["draws"]))


def flat(name, size=None):
    """Sample a real site, or `size` of them, with a flat prior."""
    support = constraints.real if size is None else constraints.real_vector
    return numpyro.sample(name, dist.ImproperUniform(support, (), () if size is None else (size,)))


def flat_positive(name):
    """Sample a positive site with a flat prior."""
    return numpyro.sample(name, dist.ImproperUniform(constraints.positive, (), ()))


def normal(name, scale, size):
    return numpyro.sample(name, dist.Normal(0, scale).expand([size]).to_event(1))


# ---------------------------------------------------------------- linear regressions


def regression(x, y):
    """Regress with flat priors: logearn_interaction, logmesquite and nes."""
    beta, sigma = flat("beta", x.shape[1]), flat_positive("sigma")
    numpyro.sample("y", dist.Normal(x @ beta, sigma), obs=y)


def kidscore(x, y):
    beta, sigma = flat("beta", 3), numpyro.sample("sigma", dist.HalfCauchy(2.5))
    numpyro.sample("y", dist.Normal(x @ beta, sigma), obs=y)


def blr(x, y):
    beta, sigma = normal("beta", 10, x.shape[1]), numpyro.sample("sigma", dist.HalfNormal(10))
    numpyro.sample("y", dist.Normal(x @ beta, sigma), obs=y)


def diamonds(x, y):
    """Centre the columns of x, the first of which is the intercept's."""
    b = normal("b", 1, x.shape[1] - 1)
    intercept = numpyro.sample("Intercept", dist.StudentT(3, 8, 10))
    sigma = numpyro.sample("sigma", dist.FoldedDistribution(dist.StudentT(3, 0, 10)))
    centred = x[:, 1:] - x[:, 1:].mean(axis=0)
    numpyro.sample("y", dist.Normal(intercept + centred @ b, sigma), obs=y)


def columns(*parts):
    """Return a design matrix: a column of ones, then these."""
    return np.column_stack([np.ones(len(parts[0])), *parts])


def earnings_data(r):
    return columns(r["data_height"], r["data_male"], r["data_height"] * r["data_male"]), np.log(r["data_earn"])


def mesquite_data(r):
    sizes = ("diam1", "diam2", "canopy_height", "total_height", "density")
    return columns(*(np.log(r[f"data_{k}"]) for k in sizes), r["data_group"]), np.log(r["data_weight"])


def nes_data(r):
    ages = [r["data_age_discrete"] == group for group in (2, 3, 4)]
    others = [r[f"data_{k}"] for k in ("educ1", "gender", "income")]
    return columns(r["data_real_ideo"], r["data_race_adj"], *ages, *others), np.float64(r["data_partyid7"])


def kidiq_data(r):
    return columns(r["data_mom_hs"], r["data_mom_iq"]), np.float64(r["data_kid_score"])


# ---------------------------------------------------------------- time series


def ark(y, order):
    alpha, beta = numpyro.sample("alpha", dist.Normal(0, 10)), normal("beta", 10, order)
    sigma = numpyro.sample("sigma", dist.HalfCauchy(2.5))
    lags = jnp.stack([y[order - k : len(y) - k] for k in range(1, order + 1)], axis=1)
    numpyro.sample("y", dist.Normal(alpha + lags @ beta, sigma), obs=y[order:])


def garch(y, sigma1):
    mu, alpha0 = flat("mu"), flat_positive("alpha0")
    alpha1 = numpyro.sample("alpha1", dist.ImproperUniform(constraints.unit_interval, (), ()))
    beta1 = numpyro.sample("beta1", dist.ImproperUniform(constraints.interval(0.0, 1.0 - alpha1), (), ()))

    def step(sigma, before):
        sigma = jnp.sqrt(alpha0 + alpha1 * (before - mu) ** 2 + beta1 * sigma**2)
        return sigma, sigma

    first = sigma1 * jnp.ones_like(mu)
    sigma = jnp.concatenate([first[None], jax.lax.scan(step, first, y[:-1])[1]])
    numpyro.sample("y", dist.Normal(mu, sigma), obs=y)


# ---------------------------------------------------------------- the others


def eight_schools(y, errors):
    z = normal("theta_trans", 1, len(y))
    mu, tau = numpyro.sample("mu", dist.Normal(0, 5)), numpyro.sample("tau", dist.HalfCauchy(5))
    theta = numpyro.deterministic("theta", z * tau + mu)
    numpyro.sample("y", dist.Normal(theta, errors), obs=y)


def eight_schools_centred(y, errors):
    mu, tau = numpyro.sample("mu", dist.Normal(0, 5)), numpyro.sample("tau", dist.HalfCauchy(5))
    theta = numpyro.sample("theta", dist.Normal(mu, tau).expand([len(y)]).to_event(1))
    numpyro.sample("y", dist.Normal(theta, errors), obs=y)


def gaussian_process(x, y):
    rho, alpha = numpyro.sample("rho", dist.Gamma(25, 4)), numpyro.sample("alpha", dist.HalfNormal(2))
    sigma = numpyro.sample("sigma", dist.HalfNormal(1))
    distance = (x[:, None] - x) / rho
    covariance = alpha**2 * jnp.exp(-0.5 * distance**2) + sigma * jnp.eye(len(x))  # sigma is a variance here
    numpyro.sample("y", dist.MultivariateNormal(jnp.zeros(len(x)), covariance), obs=y)


def mixture(y):
    mu = numpyro.sample("mu", dist.ImproperUniform(constraints.ordered_vector, (), (2,)))
    numpyro.factor("prior of mu", dist.Normal(0, 2).log_prob(mu).sum())
    sigma = numpyro.sample("sigma", dist.HalfNormal(2).expand([2]).to_event(1))
    theta = numpyro.sample("theta", dist.Beta(5, 5))
    first, second = (dist.Normal(mu[i], sigma[i]).log_prob(y) for i in (0, 1))
    numpyro.factor("y", jnp.logaddexp(jnp.log(theta) + first, jnp.log1p(-theta) + second).sum())


def lotka_volterra(times, y_init, y, rtol=1e-5, atol=1e-3):
    """Solve the equations to Stan's tolerances. times[0] is the time of z_init."""
    loc, scale = jnp.array([1.0, 0.05, 1.0, 0.05]), jnp.array([0.5, 0.05, 0.5, 0.05])
    theta = numpyro.sample("theta", dist.TruncatedNormal(loc, scale, low=0.0).to_event(1))
    z_init = numpyro.sample("z_init", dist.LogNormal(jnp.log(10.0), 1).expand([2]).to_event(1))
    sigma = numpyro.sample("sigma", dist.LogNormal(-1, 1).expand([2]).to_event(1))

    def slope(z, time, theta):
        (u, v), (alpha, beta, gamma, delta) = z, theta
        return jnp.stack([(alpha - beta * v) * u, (-gamma + delta * u) * v])

    z = numpyro.deterministic("z", odeint(slope, z_init, times, theta, rtol=rtol, atol=atol, mxstep=500)[1:])
    numpyro.sample("y_init", dist.LogNormal(jnp.log(z_init), sigma), obs=y_init)
    numpyro.sample("y", dist.LogNormal(jnp.log(z), sigma), obs=y)


POSTERIORS = {  # name -> (model, its arguments from what `load` returns)
    "arK-arK": (ark, lambda r: (r["data_y"], int(r["data_K"]))),
    "diamonds-diamonds": (diamonds, lambda r: (r["data_X"], r["data_Y"])),
    "earnings-logearn_interaction": (regression, earnings_data),
    "eight_schools-eight_schools_noncentered": (
        eight_schools,
        lambda r: (np.float64(r["data_y"]), np.float64(r["data_sigma"])),
    ),
    "garch-garch11": (garch, lambda r: (r["data_y"], float(r["data_sigma1"]))),
    "gp_pois_regr-gp_regr": (gaussian_process, lambda r: (np.float64(r["data_x"]), r["data_y"])),
    "hudson_lynx_hare-lotka_volterra": (
        lotka_volterra,
        lambda r: (np.r_[0.0, r["data_ts"]], np.float64(r["data_y_init"]), r["data_y"]),
    ),
    "kidiq-kidscore_momhsiq": (kidscore, kidiq_data),
    "low_dim_gauss_mix-low_dim_gauss_mix": (mixture, lambda r: (r["data_y"],)),
    "mesquite-logmesquite": (regression, mesquite_data),
    "nes1980-nes": (regression, nes_data),
    "sblri-blr": (blr, lambda r: (r["data_X"], r["data_y"])),
}

CENTRED = {  # name -> (model, the posterior that has its data and reference draws: the same one in other coordinates)
    "eight_schools-eight_schools_centered": (eight_schools_centred, "eight_schools-eight_schools_noncentered"),
}
