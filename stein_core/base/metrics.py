"""Metrics of an ensemble of classifiers: what it knows, and whether it knows how much.

`probabilities` are (m, N, C): member, input, class. Their mean over members is the ensemble's prediction. Logarithms
are natural. Source: D'Angelo, Fortuin & Wenzel 2021 (On Stein variational neural network ensembles), eq. 7-9, app. B;
"as coded" means its code, where it differs from the usual definition.
"""

from __future__ import annotations

import numpy as np
from scipy.stats import entropy as shannon
from sklearn.metrics import log_loss, roc_auc_score

BINS = 30  # of the calibration error, the paper's


def entropy(probabilities: np.ndarray, normalised: bool = False) -> np.ndarray:
    """Return (N,) the entropy of the mean prediction, in nats; normalised: divided by log C."""
    mean = np.mean(np.asarray(probabilities, float), axis=0)
    return shannon(mean, axis=-1) / (np.log(mean.shape[-1]) if normalised else 1.0)


def disagreement(probabilities: np.ndarray, as_coded: bool = False) -> np.ndarray:
    """Return (N,) how much members differ: the mean over classes of the variance between them (eq. 8-9).

    Args:
        probabilities: (m, N, C).
        as_coded: the mean over classes of the unbiased standard deviation instead, NaN for one member.
    """
    probabilities = np.asarray(probabilities, float)
    if as_coded and len(probabilities) < 2:
        return np.full(probabilities.shape[1], np.nan)
    spread = probabilities.std(axis=0, ddof=1) if as_coded else probabilities.var(axis=0)
    return spread.mean(axis=-1)


def auroc(known: np.ndarray, unknown: np.ndarray) -> float:
    """Return the probability that an unknown input has a larger score than a known one; ties count half.

    Args:
        known, unknown: scores, such as entropies, of inputs like the training data and of others.
    """
    labels = np.repeat([0, 1], [len(known), len(unknown)])
    return float(roc_auc_score(labels, np.concatenate([known, unknown])))


def accuracy(probabilities: np.ndarray, y: np.ndarray) -> float:
    """Return the share of inputs whose most probable class is y (N,)."""
    return float(np.mean(np.argmax(np.mean(probabilities, axis=0), axis=1) == y))


def calibration_error(probabilities: np.ndarray, y: np.ndarray, bins: int = BINS, weighted: bool = True) -> float:
    """Return the expected calibration error: the mean over bins of |accuracy - confidence|.

    Args:
        probabilities: (m, N, C).
        y: (N,) classes.
        bins: number of equal bins of confidence in [0, 1].
        weighted: by the number of inputs in each bin, the usual definition (Guo et al. 2017); else each bin with an
            input counts the same.
    """
    confidence, right, which = binned(np.mean(np.asarray(probabilities, float), axis=0), y, bins)
    counts = np.bincount(which, minlength=bins)
    gaps = np.abs(np.bincount(which, right - confidence, bins))
    if weighted:
        return float(gaps.sum() / len(y))
    return float(np.mean(gaps[counts > 0] / counts[counts > 0]))


def binned(p: np.ndarray, labels: np.ndarray, bins: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the largest of the probabilities p (k, c), whether it is the label's, and the bin of it: (k,) each."""
    confidence = p.max(axis=1)
    return confidence, p.argmax(axis=1) == labels, np.minimum((confidence * bins).astype(int), bins - 1)


def nll(probabilities: np.ndarray, y: np.ndarray, as_coded: bool = False) -> float:
    """Return the mean of -log of the probability of y; as_coded: -log of the mean probability, which is smaller."""
    mean = np.mean(np.asarray(probabilities, float), axis=0)
    if as_coded:
        return float(-np.log(np.mean(np.take_along_axis(mean, np.asarray(y)[:, None], axis=1))))
    whole = mean / mean.sum(axis=1, keepdims=True)  # float32 sums to 1 within 1e-7, and scikit-learn wants more
    return float(log_loss(y, whole, labels=np.arange(mean.shape[1])))


def retention(uncertainty: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return (N,) the accuracy among the k inputs of least uncertainty, k = 1 ... N; it falls if doubt is well placed.

    Args:
        uncertainty: (N,) entropy or disagreement; inputs of no class may be among them.
        right: (N,) whether the prediction is right, False for an input of no class.
    """
    order = np.argsort(uncertainty, kind="stable")
    return np.cumsum(np.asarray(right, float)[order]) / np.arange(1, len(order) + 1)


def separation(known: np.ndarray, unknown: np.ndarray) -> float:
    """Return the mean disagreement at unknown inputs over that at known ones, MD_o / MD_t of the paper; NaN if that is
    0."""
    return float(np.mean(unknown) / np.mean(known)) if np.mean(known) > 0 else float("nan")
