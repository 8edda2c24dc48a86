"""The terms that a reader may not know, each in one sentence: on page Notation, and as a card on every other page."""

TERMS = {
    "score": "The slope of the log density: in which direction, and how strongly, a posterior becomes likelier.",
    "ELBO": "Evidence lower bound: what variational inference maximises; at most the log evidence of the model.",
    "k-hat": "How heavy the tail of the importance weights is; above 0.7 the draws do not reach the posterior's tails.",
    "NNGP": "Neural network Gaussian process: the exact prior of a network whose layers are infinitely wide.",
    "R-hat": "Compares the spread between chains with that inside them; 1 if they agree, and above 1.01 they do not.",
    "LPPD": "Log pointwise predictive density: how likely test points are under the predictions. Higher is better.",
    "MMD": "Maximum mean discrepancy: the distance of two samples as a kernel sees it; 0 if they are alike.",
    "KSD": "Kernel Stein discrepancy: how far draws are from a density of which only the score is known.",
    "AUROC": "How well a score separates two groups: 1 if it always does, 0.5 if it guesses.",
    "Stein trace": "A number that exact draws of any posterior have at 1; below 1 the draws are too narrow.",
    "effective guides": "How many guides a mixture really has: 1 if all are alike, all of them if none overlap.",
    "effective components": "How many guides a mixture really has: 1 if all are alike, all of them if none overlap.",
    "HDI": "Highest density interval: the narrowest interval that holds the chosen share of the probability.",
    "KSIVI": "Kernel semi-implicit variational inference: it trains a network that turns noise into draws.",
    "NUTS": "No-U-turn sampler: exact in the long run, and slow. Here it is the reference.",
}
