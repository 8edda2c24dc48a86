"""Metrics of ensembles of classifiers against hand counts and scikit-learn."""

import numpy as np
import pytest
from sklearn.calibration import calibration_curve

from stein_core.base import metrics

SHARP = np.array([[[1.0, 0.0], [0.5, 0.5], [1.0, 0.0]], [[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]]])


def test_entropy_and_disagreement_tell_doubt_from_dispute():
    """Agreed doubt and dispute have one entropy; only a dispute is a disagreement."""
    np.testing.assert_allclose(metrics.entropy(SHARP), [0, np.log(2), np.log(2)], atol=1e-12)
    np.testing.assert_allclose(metrics.entropy(SHARP, normalised=True), [0, 1, 1], atol=1e-12)
    np.testing.assert_allclose(metrics.disagreement(SHARP), [0, 0, 0.25])
    np.testing.assert_allclose(metrics.disagreement(SHARP, as_coded=True), [0, 0, np.sqrt(0.5)])
    assert np.isnan(metrics.disagreement(SHARP[:1], as_coded=True)).all()
    assert metrics.separation(np.array([1.0, 3.0]), np.array([4.0])) == 2


def test_auroc_counts_ties_half():
    known, unknown = np.array([1, 2, 2, 3.0]), np.array([2, 4.0])
    wins = np.mean([(u > k) + 0.5 * (u == k) for u in unknown for k in known])
    assert metrics.auroc(known, unknown) == pytest.approx(wins)


def test_calibration_error_and_log_likelihood():
    draw = np.random.default_rng(0)
    p = draw.dirichlet(np.ones(3), size=(4, 500))
    y = draw.integers(3, size=500)
    mean = p.mean(axis=0)
    confidence, right = mean.max(axis=1), mean.argmax(axis=1) == y
    share, said = calibration_curve(right, confidence, n_bins=30)
    assert metrics.calibration_error(p, y, weighted=False) == pytest.approx(np.abs(share - said).mean(), rel=1e-9)
    counts = np.histogram(confidence, np.linspace(0, 1, 31))[0]
    assert metrics.calibration_error(p, y) == pytest.approx(np.abs(share - said) @ counts[counts > 0] / 500, rel=1e-9)
    of_y = mean[np.arange(500), y]
    assert metrics.nll(p, y) == pytest.approx(-np.log(of_y).mean(), rel=1e-9)
    assert metrics.nll(p, y, as_coded=True) == pytest.approx(-np.log(of_y.mean()), rel=1e-9)
    assert metrics.nll(p, y, as_coded=True) < metrics.nll(p, y)
    assert metrics.accuracy(p, y) == right.mean()
    np.testing.assert_allclose(metrics.calibration_error(np.eye(2)[None, [0, 1]], np.array([0, 1])), 0)


def test_retention_falls_where_doubt_is_well_placed():
    np.testing.assert_allclose(metrics.retention(np.array([3, 1, 2.0]), np.array([0, 1, 1])), [1, 1, 2 / 3])
