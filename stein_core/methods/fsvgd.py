"""f-SVGD: SVGD on outputs of functions, pulled back to the weights."""

import jax
import jax.numpy as jnp

from stein_core.contract.registry import METHODS
from stein_core.forces.gram import gram_of
from stein_core.forces.interaction import Forces, distances_and_bandwidth, flow
from stein_core.forces.sums import pair_gradients
from stein_core.methods.parts import estimators, schedules
from stein_core.methods.parts.function_space import LINK, check, functions_of, of_features, outputs_of, without_spare
from stein_core.methods.parts.functional_priors import PRIOR_KNOB, prior_score
from stein_core.methods.svgd import ALPHA


@METHODS.register(
    "fsvgd",
    label="f-SVGD",
    reference="D'Angelo et al. 2021, eq. 5; Wang et al. 2019",
    guides=("point",),
    functions=True,
    check=check,
    knobs=(ALPHA, PRIOR_KNOB, LINK, estimators.knob("function_estimator", "stein"), *schedules.knobs("none")),
    least=schedules.least,
    noisy=lambda choices: choices.get("method.prior") in ("ssge", "moments"),
    colour=("#3A7600", "#DEEEA6"),
    marker="inverted_triangle",
)
def fsvgd(problem, *, alpha, prior, link, function_estimator, **schedule):
    """Forces between outputs, with a prior over functions. The Jacobian of each network pulls them back to its
    weights."""

    def field(key, state):
        x = without_spare(problem, state.particles)
        n = len(x)
        out = outputs_of(problem, key, x, link)
        likelihood = functions_of(problem, key).log_likelihood
        labelled = len(out.rows.weights)
        g = jax.vmap(jax.grad(lambda values: likelihood(values[:labelled], out.rows)))(out.values)
        g = (g + prior_score(problem, key, out, prior)).reshape(n, -1)

        among, weights = of_features(problem, out), problem.weights(n)
        squared, sigma = distances_and_bandwidth(among, out.features)
        pairs = pair_gradients(among, out.features, squared, sigma)
        repulsion = jnp.einsum("i,ilk->lk", problem.active(n).astype(x.dtype), pairs)
        gram = gram_of(among, out.features)
        attract, repulse = estimators.estimate(function_estimator, gram, g, repulsion, weights)
        gamma = schedules.gamma(step=state.step, **schedule)
        return Forces(gamma * out.pull(attract.reshape(out.values.shape)), alpha * out.pull_features(repulse))

    return flow(problem, field)
