"""The papers, and our corrections of what is printed or published. In Markdown with formulas."""

from typing import NamedTuple


class Paper(NamedTuple):
    """Name a paper.

    Args:
        name: short name, as entries of the registries cite it.
        title: its title.
        where: journal or conference.
        what: what the app takes from it.
    """

    name: str
    title: str
    where: str
    what: str


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


PAPERS = (
    Paper(
        "Liu & Wang 2016",
        "Stein variational gradient descent: a general purpose Bayesian inference algorithm",
        "NeurIPS 2016",
        "SVGD itself: the direction that lowers the KL divergence fastest within the unit ball of a kernel's space; "
        "attraction and repulsion (eq. 8); the median heuristic (sec. 5); the two-mode example (fig. 1).",
    ),
    Paper(
        "SMI paper",
        "ELBOing Stein: variational Bayes with Stein mixture inference (Rønning, Nalisnick, Ley, Smyth, Hamelryck)",
        "ICLR 2025",
        "A particle becomes a guide, and the guides' mixture climbs one ELBO (eq. 2, 9); variance against dimension "
        "(fig. 2, 4, 5); two guides (fig. 8); the 1-D wave (app. C.2). Read in its submitted version.",
    ),
    Paper(
        "Ba et al. 2022",
        "Understanding the variance collapse of SVGD in high dimensions",
        "ICLR 2022",
        "Why SVGD's variance falls with the dimension: predictions for $d/n \\to \\gamma$ (Prop. 3, 5, 7), damped SVGD "
        "(eq. 5), resampling (alg. 1), descent of the MMD (eq. 4).",
    ),
    Paper(
        "Cheng et al. 2024",
        "Kernel semi-implicit variational inference (KSIVI)",
        "ICML 2024",
        "A network that makes draws, trained by the kernel Stein discrepancy (eq. 20-23), its toys, waveform and "
        "diffusion posteriors, and the hierarchical variant.",
    ),
    Paper(
        "D'Angelo & Fortuin 2021",
        "Annealed Stein variational gradient descent",
        "AABI 2021",
        "The attraction switched off and on in cycles (eq. 4), to reach other modes.",
    ),
    Paper(
        "D'Angelo & Fortuin 2021 (Repulsive deep ensembles)",
        "Repulsive deep ensembles are Bayesian",
        "NeurIPS 2021",
        "Wasserstein descent: the score of the particles' density, estimated by a kernel.",
    ),
    Paper(
        "D'Angelo et al. 2021",
        "On Stein variational neural network ensembles",
        "arXiv 2106.10760",
        "Ensembles as SVGD without interaction (eq. 3); f-, fw- and h-SVGD (eq. 4-6); entropy and disagreement "
        "(eq. 7-9); the regression and the ring of classes (app. D).",
    ),
    Paper(
        "Gallego & Insua 2018",
        "Stochastic gradient MCMC with repulsive forces",
        "arXiv 1812.00071",
        "Stochastic SVGD: SVGD with the noise that makes it a sampler.",
    ),
    Paper(
        "Li & Turner 2018",
        "Gradient estimators for implicit models",
        "ICLR 2018",
        "The Stein gradient estimator SGE.",
    ),
    Paper(
        "Shi et al. 2018",
        "A spectral approach to gradient estimation for implicit distributions",
        "ICML 2018",
        "The spectral estimator SSGE.",
    ),
    Paper(
        "Wang et al. 2019",
        "Function space particle optimization for Bayesian neural networks",
        "ICLR 2019",
        "SVGD on outputs of functions, and the prior of functions as a Gaussian fitted to draws.",
    ),
    Paper(
        "Cho & Saul 2009; Lee et al. 2018",
        "Kernel methods for deep learning; Deep neural networks as Gaussian processes",
        "NeurIPS 2009; ICLR 2018",
        "The Gaussian process that a ReLU network's prior tends to: the prior of f-SVGD, and the exact band.",
    ),
    Paper(
        "Li et al. 2016",
        "Preconditioned stochastic gradient Langevin dynamics for deep neural networks",
        "AAAI 2016",
        "pSGLD (alg. 1).",
    ),
    Paper(
        "Welling & Teh 2011",
        "Bayesian learning via stochastic gradient Langevin dynamics",
        "ICML 2011",
        "SGLD: Langevin steps that see a mini-batch.",
    ),
    Paper(
        "Yin & Zhou 2018",
        "Semi-implicit variational inference",
        "ICML 2018",
        "SIVI: a network's draws, and a bound of their entropy; the waveform posterior.",
    ),
    Paper(
        "Titsias & Ruiz 2019",
        "Unbiased implicit variational inference",
        "AISTATS 2019",
        "UIVI: the entropy's gradient from short Hamiltonian chains.",
    ),
    Paper(
        "Yu & Zhang 2023",
        "Semi-implicit variational inference via score matching",
        "ICLR 2023",
        "SIVI-SM: a second network is the critic.",
    ),
    Paper(
        "Korba et al. 2021",
        "Kernel Stein discrepancy descent",
        "ICML 2021",
        "Points that descend the kernel Stein discrepancy (eq. 10).",
    ),
    Paper(
        "Li et al. 2023",
        "Sampling with mollified interaction energy descent",
        "ICLR 2023",
        "MIED: points that descend a mollified energy.",
    ),
    Paper(
        "Gorham & Mackey 2017",
        "Measuring sample quality with kernels",
        "ICML 2017",
        "The kernel Stein discrepancy that the stages show (eq. 5), and the IMQ kernel it needs.",
    ),
    Paper("Gretton et al. 2012", "A kernel two-sample test", "JMLR 13", "The maximum mean discrepancy (eq. 5)."),
    Paper(
        "Liu & Wang 2018",
        "Stein variational gradient descent as moment matching",
        "NeurIPS 2018",
        "The linear kernel, with which SVGD matches mean and covariance exactly.",
    ),
    Paper("Chen et al. 2018", "Stein points", "ICML 2018", "The log-inverse kernel."),
    Paper(
        "Roberts & Tweedie 1996",
        "Exponential convergence of Langevin distributions and their discrete approximations",
        "Bernoulli 2",
        "Langevin dynamics: chains that do not interact, for comparison.",
    ),
    Paper(
        "Kingma & Ba 2015",
        "Adam: a method for stochastic optimization",
        "ICLR 2015",
        "The optimiser `adam`.",
    ),
    Paper(
        "Tieleman & Hinton 2012",
        "Lecture 6.5: rmsprop",
        "Coursera, Neural networks for machine learning",
        "The optimiser `rmsprop`.",
    ),
    Paper(
        "Kucukelbir et al. 2017",
        "Automatic differentiation variational inference",
        "JMLR 18",
        "Guides in unconstrained space; the full-rank normal guide.",
    ),
    Paper(
        "Ong, Nott & Smith 2018",
        "Gaussian variational approximation with a factor covariance structure",
        "JCGS 27",
        "The low-rank guide.",
    ),
    Paper(
        "Gershman et al. 2012",
        "Nonparametric variational inference",
        "ICML 2012",
        "The model of the logistic regressions.",
    ),
    Paper(
        "Detommaso et al. 2018",
        "A Stein variational Newton method",
        "NeurIPS 2018",
        "The conditioned diffusion.",
    ),
    Paper(
        "Neal 2003",
        "Slice sampling",
        "Annals of Statistics 31",
        "The funnel.",
    ),
    Paper(
        "Haario et al. 1999",
        "Adaptive proposal distribution for random walk Metropolis algorithm",
        "Computational Statistics 14",
        "The banana.",
    ),
    Paper(
        "Cavendish 1798",
        "Experiments to determine the density of the Earth",
        "Philosophical Transactions 88",
        "The data of the target *Earth's density*.",
    ),
    Paper(
        "Dalal, Fowlkes & Hoadley 1989",
        "Risk analysis of the space shuttle: pre-Challenger prediction of failure",
        "JASA 84",
        "The data of the O-rings.",
    ),
    Paper(
        "Magnusson et al. 2025",
        "posteriordb: testing, benchmarking and developing Bayesian inference algorithms",
        "AISTATS 2025",
        "Models, data and reference draws of the table *posteriordb*.",
    ),
    Paper(
        "Oates et al. 2017",
        "Control functionals for Monte Carlo integration",
        "Journal of the Royal Statistical Society B 79",
        "The check *Tails*: a mean under the posterior is the intercept of a regression on functions whose mean is 0 "
        "by Stein's identity.",
    ),
    Paper(
        "South et al. 2022",
        "Semi-exact control functionals from Sard's method",
        "Biometrika 109",
        "The same with a polynomial part, which makes the check *Tails* exact on normal posteriors but for its ridge.",
    ),
    Paper(
        "Vehtari et al. 2021",
        "Rank-normalization, folding, and localization: an improved R-hat",
        "Bayesian Analysis 16",
        "R-hat and the effective sample size of chains.",
    ),
    Paper(
        "Vehtari et al. 2024",
        "Pareto smoothed importance sampling",
        "JMLR 25",
        "The check *k-hat* of importance weights.",
    ),
    Paper(
        "Gorinova et al. 2020",
        "Automatic reparameterisation of probabilistic programs",
        "ICML 2020",
        "Decentring, by NumPyro's `LocScaleReparam`: `fit` does it if the mode is no place to start.",
    ),
)

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
        "The figure's $\\alpha$, bandwidth and program are not published, so nobody can know how it was made.",
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
