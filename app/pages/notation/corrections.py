"""Our corrections of what is printed or published. In Markdown with formulas."""

from typing import NamedTuple


class Correction(NamedTuple):
    """State a difference from a paper or a published code.

    Args:
        said: by whom, and what.
        holds: what we find instead, with the evidence.
        link: a view that shows it, or "".
    """

    said: str
    holds: str
    link: str = ""


CORRECTIONS = (
    Correction(
        "NumPyro 0.16 to 0.22, `SteinVI`: a guide's scale is constrained twice.",
        "Draws have $\\sigma = \\mathrm{softplus}(u)$, but their density is taken at $\\mathrm{softplus}(\\sigma)$. "
        "One guide on $N(0, 1)$ ends at $\\sigma = \\ln(e - 1) = 0.541$ instead of 1. A test in "
        "`tests/test_references.py` runs NumPyro itself and fails once NumPyro is corrected.",
        "page=location&target=gaussian&methods=smi,svgd&guide.density=twice",
    ),
    Correction(
        "SMI paper, fig. 8: the locations of two guides go to the centre; one guide covers the variance in one "
        "dimension, both cover it in the other.",
        "By eq. 9 with $\\alpha = 1$ the two guides split along one axis. In two dimensions runs stay there up to "
        "$\\alpha = 1.14$ (`median_log`) or $4.27$ (`numpyro`); beyond it they end as the figure's text says "
        "(`tests/test_fixed_points.py`). NumPyro's fault above also brings locations to the centre, some scales to 0. "
        "The figure's $\\alpha$, bandwidth and program are not published, so how it was made is not known.",
        "page=location&target=gaussian&methods=smi,svgd&method.alpha=1.5",
    ),
    Correction(
        "SMI paper, eq. 9, and the runs behind its figures: one $\\alpha$.",
        "The published runs sum the attraction over the $m$ particles and average the repulsion, so their $\\alpha$ is "
        "$m$ times that of eq. 9. With eq. 9 as printed, $\\alpha = 1$ and 20 guides overestimate the variance in one "
        "dimension by 93 % (`assets/variance_collapse.json`); both scales are offered, and `tests/test_exact.py` holds "
        "their ratio.",
        "page=location&target=gaussian&methods=smi,svgd&method.force_scale=numpyro&bandwidth.rule=numpyro",
    ),
    Correction(
        "SMI paper, eq. 8: the gradient has a second term.",
        "It is exactly zero: $\\sum_i \\mathbb{E}_{q_i}[\\nabla q_l / \\sum_j q_j] = \\int \\nabla q_l = 0$. Leaving "
        "it out and taking the gradient pathwise changes nothing but the noise; quadrature agrees "
        "(`tests/test_exact.py`).",
        "target=ring&methods=smi&method.particles=12",
    ),
    Correction(
        "SMI paper, app. A.1: an entropy is added to the ELBO and the sum is called a bound.",
        "The inequality is printed the wrong way round: with $L$ the mixture ELBO and $L_\\mathrm{up}$ the mean of the "
        "guides' own, $L_\\mathrm{up} \\le L$, since $L - L_\\mathrm{up}$ is a mutual information between 0 and $\\ln "
        "m$. We show $L$, which is a bound, and $e^{L - L_\\mathrm{up}}$ as the effective number of components.",
        "page=location&target=gaussian&methods=smi,svgd&method.alpha=0.0",
    ),
    Correction(
        "NumPyro 0.18 to 0.22, `ASVGD`: the attraction is a sum.",
        "The factor $1/m$ is missing, so a run ends at SVGD's variance divided by $m$. By construction annealing ends "
        "as plain SVGD does; a test holds NumPyro's error.",
        "page=collapse&methods=svgd,annealed",
    ),
    Correction(
        "NumPyro 0.16 to 0.22, `SVGD`: no log-Jacobian.",
        "For a positive latent the particles then follow another density: Gamma(3, 2), with mean 1.5, comes out with "
        "mean 1.0, the value of its mode. We add the log-Jacobian; a test holds NumPyro's error.",
        "target=gamma&methods=svgd,map",
    ),
    Correction(
        "Ba et al., Prop. 3 and 5: limits for $d, n \\to \\infty$; and the SMI paper's fig. 2: SVGD's variance as "
        "measured.",
        "For a standard normal and $n \\le d + 1$ the particles end on a regular simplex. There the variance has an "
        "exact law for any radial kernel, and the limits are that law. It goes through the points to five digits "
        "(`tests/test_theory.py`).",
        "page=collapse",
    ),
    Correction(
        "Ba et al., proof of Prop. 2: constants of the two mean squared errors.",
        "Monte Carlo at $d = 50$: 6.899 for the attraction, where ours says 6.903 and the print 7.168; 0.00273 for the "
        "repulsion, where ours says 0.00273 and the print 0.01355. The orders in $d$ stand.",
        "",
    ),
    Correction(
        "Ba et al., fig. 7(b): a density with $-\\prod_i x_i^3 / 3$ in the exponent.",
        "It has no finite integral. We take $-\\sum_i |x_i|^3 / 3$, which is a product of densities.",
        "target=cubic&methods=svgd,langevin",
    ),
    Correction(
        "SMI paper, fig. 4: distance between covariances.",
        "The public code compares the diagonals only. Both are offered, with their names.",
        "page=collapse&y=covariance_error",
    ),
    Correction(
        "SMI paper, fig. 5: resampled SVGD has a biased mean.",
        "Its published means lie within $1/\\sqrt{n d}$, one standard deviation of the mean of 20 independent draws; "
        "the page shades two. So they are no evidence of a bias.",
        "page=collapse&y=mean_location",
    ),
    Correction(
        "SMI paper, app. C.2: the wave $1.5 \\sin(2\\pi(x + 2/3)) + 3x + 1$.",
        "Code and figures have $1.5 \\sin(2\\pi x + 2\\pi/3) + 3x + 1$. The numbers of weights, 41 and 10,301, are "
        "those of a network without a bias in the second layer; the code has one. The page has the paper's network, "
        "option *bias of the second layer* the code's.",
        "page=wave",
    ),
    Correction(
        "The code of the wave's experiment: log predictive density of SVGD.",
        "It forgets to divide by $m$, so the value is too high by $\\ln m$ for each test point. "
        "`tests/test_wave.py` holds both, and we show the mean over the particles.",
        "page=wave",
    ),
    Correction(
        "SVGD paper, table 1: the number of steps and the log-likelihood.",
        "The paper does not say how many steps it took. After 2,000 steps Boston and Wine have their RMSE, and the "
        "others are behind. After 10,000, on five splits, Boston, Concrete, Combined and Protein have theirs, Wine is "
        "behind, and Energy, Kin8nm, Naval and Yacht are ahead. The authors' code does not use the precision that it "
        "infers: it takes 1 / MSE of each particle on held-out rows, which maximises the likelihood that it is "
        "compared by. On Energy after 2,000 steps this gives a log-likelihood of $-1.84$, the inferred one $-2.41$.",
        "page=benchmarks&table=svgd_uci",
    ),
    Correction(
        "SVGD paper, sec. 5: AdaGrad.",
        "The code's rule forgets: $h \\leftarrow 0.9 h + 0.1 \\phi^2$, starting at $\\phi^2$. That is RMSprop; it "
        "is the optimiser `svgd_code`. Its bandwidth is the median over the whole matrix, zeros included, divided by "
        "$\\ln(n + 1)$: rule `liuwang`.",
        "",
    ),
    Correction(
        "SMI paper, table 2: RMSE and NLL.",
        "The code's RMSE is over draws and points, so it includes the predictive variance. Its NLL of SVGD and ASVGD "
        "is a mean over particles, and of the other methods that of the mixture. Both definitions are shown.",
        "page=benchmarks&table=smi_uci",
    ),
    Correction(
        "SMI paper, table 2: SMI and SVGD on Energy.",
        "The code has two hidden layers where the text has one. Its SMI has the double softplus of NumPyro 0.16 to "
        "0.22, with which guides become nearly points. Its SVGD has 10 particles from a wide start. SMI comes near the "
        "published NLL of 0.8 with both, the fault and the second layer, and with neither alone. OVI, which has no "
        "such fault, has 2.0 there and here.",
        "page=benchmarks&table=smi_uci&row=Energy",
    ),
    Correction(
        "SMI paper, table 3: Acc, Conf and NLL.",
        "The code draws a label from each prediction, and NumPyro puts that label in place of the true one. So its "
        "NLL is the entropy of the predictions, its Acc the mean probability of the true label, and its Conf the mean "
        "of $\\sum_c p_c^2$. That is why MAP, whose 50 draws are equal, has an NLL of $0.050 \\pm 0.002$. The page "
        "has these and the usual definitions.",
        "page=benchmarks&table=smi_mnist",
    ),
    Correction(
        "Ba et al., app. A.3: $\\lambda = \\max\\{1, \\ldots\\}$.",
        "It must be the minimum, as in eq. 5: the maximum would weaken nothing. Damping sets the Stein trace to 1, and "
        "not the variance: at 10 particles the trace is 1.00 while the variance is 1.37 times the truth.",
        "page=benchmarks&table=damped",
    ),
    Correction(
        "D'Angelo et al. 2021, eq. 2: noise with the square root of each entry of the kernel matrix.",
        "A sampler needs a root of the matrix, its Cholesky factor. With the printed one, 20 particles on $N(0, 1)$ "
        "get a variance of 1.5 to 2 instead of 1 (`tests/test_estimators.py`). Both are offered, with their names.",
        "page=functions&methods=fw&method.added_noise=elementwise",
    ),
    Correction(
        "D'Angelo et al. 2021, table 1: a row pSGLD.",
        "Its code adds noise to the gradient that Adam takes. Adam rescales it: on $N(0, 1)$ the variance is "
        "$\\sqrt{\\epsilon}/2$, not 1 (`tests/test_function_space.py`). We call that noisy Adam, and have pSGLD too.",
        "page=functions&methods=noisy_adam,psgld",
    ),
    Correction(
        "KSIVI paper, table 5: SIVI-SM, whose critic is said to be a network.",
        "The code adds the target's score to it. We do so, and let the step size stay as it is. At 0.0001 SW1 is "
        "then 26.2 and 28.4 after 10,000 and 20,000 steps (published: 24.3, 28.6). At 0.001 it is 0.16 after "
        "10,000 (0.12), and 29 if the score is not added.",
        "page=benchmarks&table=ksivi_waveform",
    ),
    Correction(
        "KSIVI paper, sec. 7.1: a regularisation that stabilises the discrepancy.",
        "The code adds $-0.05\\, E \\log p$ to the loss for the first 40 % of the steps. Without it the draws of "
        "a Student-t run away, for both scores vanish far out: within $|x| < 5$ the squared distance to exact "
        "draws is 11, not 0.07.",
        "page=benchmarks&table=ksivi_extensions",
    ),
    Correction(
        "The code of D'Angelo et al. 2021: negative log-likelihood.",
        "It is $-\\log$ of the mean probability of the labels, which is smaller than the mean of $-\\log$. "
        "`tests/test_metrics.py` holds both; values of the two are not to be compared.",
    ),
)
