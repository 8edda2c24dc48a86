"""The papers that the registries cite. In Markdown with formulas."""

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
        "Brownlee 1965",
        "Statistical theory and methodology in science and engineering, 2nd edition, p. 454",
        "Wiley",
        "The data of the target *Stack loss of a plant*.",
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
        "Liu & Lee 2017",
        "Black-box importance sampling",
        "AISTATS 2017",
        "Stein weights, `weigh`: the weights with the least kernel Stein discrepancy. The density of the draws is not "
        "needed.",
    ),
    Paper(
        "Riabiz et al. 2022",
        "Optimal thinning of MCMC output",
        "Journal of the Royal Statistical Society B 84",
        "Stein thinning, `thin`: the draws that lower the kernel Stein discrepancy most, one after the other.",
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
        "Gelfand & Dey 1994",
        "Bayesian model choice: asymptotics and exact calculations",
        "JRSS B 56",
        "The check *Modes*: the mass of a mode from the log densities of its draws.",
    ),
    Paper(
        "Gorinova et al. 2020",
        "Automatic reparameterisation of probabilistic programs",
        "ICML 2020",
        "Decentring, by NumPyro's `LocScaleReparam`: `fit` does it if the mode is no place to start.",
    ),
    Paper(
        "Zhang et al. 2020",
        "Stochastic particle-optimization sampling and the non-asymptotic convergence theory",
        "AISTATS 2020",
        "SPOS: SVGD with Langevin noise of weight 1/beta, here *Noisy SVGD*.",
    ),
    Paper(
        "MacDonald et al. 2025",
        "Hybrid kernel Stein variational gradient descent",
        "TMLR 2025",
        "One kernel for the scores, another for the repulsion. Its name h-SVGD is also that of another method here.",
    ),
    Paper(
        "Singhal et al. 2019",
        "Kernelized complete conditional Stein discrepancy",
        "arXiv 1904.04478",
        "A kernel for each coordinate: *Block SVGD* with blocks of one.",
    ),
    Paper(
        "Gong et al. 2021",
        "Sliced kernelized Stein discrepancy",
        "ICLR 2021",
        "SVGD along lines (S-SVGD).",
    ),
    Paper(
        "Liu et al. 2022",
        "Grassmann Stein variational gradient descent",
        "AISTATS 2022",
        "SVGD in subspaces that move (GSVGD). Ours are random at each step, without its drift.",
    ),
    Paper(
        "Chen & Ghattas 2020",
        "Projected Stein variational gradient descent",
        "NeurIPS 2020",
        "SVGD in the directions that the data inform.",
    ),
    Paper(
        "Zhuo et al. 2018",
        "Message passing Stein variational gradient descent",
        "ICML 2018",
        "The kernel of a coordinate sees its Markov blanket: *Graphical SVGD*.",
    ),
    Paper(
        "Wang et al. 2018",
        "Stein variational message passing for continuous graphical models",
        "ICML 2018",
        "The same idea.",
    ),
    Paper(
        "Wang et al. 2019 (matrix kernels)",
        "Stein variational gradient descent with matrix-valued kernels",
        "NeurIPS 2019",
        "The mean Hessian as the metric of the kernel.",
    ),
    Paper(
        "He et al. 2025",
        "Regularized Stein variational gradient flow",
        "Foundations of Computational Mathematics 2025",
        "The inverse of the Gram matrix before the force (R-SVGD).",
    ),
    Paper(
        "Stein & Li 2025",
        "Accelerated Stein variational gradient flow",
        "GSI 2025",
        "Nesterov's momentum in SVGD's geometry. Their ASVGD; annealed and amortized SVGD have the same initials.",
    ),
    Paper(
        "Nuesken 2024",
        "Stein transport for Bayesian inference",
        "arXiv 2409.01464",
        "Particles that follow a path of densities and arrive at time 1.",
    ),
)
