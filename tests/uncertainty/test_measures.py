"""Scores, calibration and risk against torchmetrics, scikit-learn and plain loops."""

import numpy as np
import pytest
import torch
from sklearn.metrics import log_loss
from torchmetrics.functional.classification import binary_calibration_error, multiclass_calibration_error

from calida.uncertainty import (
    aurc,
    brier,
    calibration_error,
    classwise_calibration_error,
    nll,
    reliability_bins,
    risk_coverage,
)


@pytest.fixture
def predictions():
    generator = torch.Generator().manual_seed(0)
    log_probs = torch.log_softmax(3 * torch.randn(500, 7, generator=generator, dtype=torch.float64), -1)
    labels = torch.where(
        torch.rand(500, generator=generator) < 0.6,
        log_probs.argmax(-1),
        torch.randint(7, (500,), generator=generator),
    )
    return log_probs, labels


def test_nll_and_brier(predictions):
    log_probs, labels = predictions
    assert float(nll(log_probs, labels).mean()) == pytest.approx(log_loss(labels, log_probs.exp()), abs=1e-9)
    probs, one_hot = log_probs.exp().numpy(), np.eye(7)[labels]
    np.testing.assert_allclose(brier(log_probs, labels), ((probs - one_hot) ** 2).sum(1), atol=1e-12)
    stacked = log_probs.view(5, 100, 7)
    torch.testing.assert_close(nll(stacked, labels.view(5, 100)).flatten(), nll(log_probs, labels))


@pytest.mark.parametrize("num_bins", [1, 10, 15, 50])
def test_equal_width_error_agrees_with_torchmetrics(predictions, num_bins):
    log_probs, labels = predictions
    expected = multiclass_calibration_error(log_probs.exp(), labels, num_classes=7, n_bins=num_bins, norm="l1")
    assert float(calibration_error(log_probs, labels, num_bins)) == pytest.approx(float(expected), abs=1e-6)


def test_values_on_bin_edges_agree_with_torchmetrics():
    """Saturated confidences are the common case after entropy minimisation."""
    probs = torch.tensor([[1.0, 0.0], [0.5, 0.5], [0.8, 0.2], [0.6, 0.4], [1.0, 0.0]], dtype=torch.float64)
    labels = torch.tensor([0, 1, 0, 1, 1])
    expected = multiclass_calibration_error(probs, labels, num_classes=2, n_bins=10, norm="l1")
    assert float(calibration_error(probs.log(), labels, 10)) == pytest.approx(float(expected), abs=1e-6)


def test_classwise_error_is_the_mean_of_binary_errors(predictions):
    log_probs, labels = predictions
    expected = [
        float(binary_calibration_error(log_probs[:, k].exp(), (labels == k).long(), n_bins=15)) for k in range(7)
    ]
    assert float(classwise_calibration_error(log_probs, labels)) == pytest.approx(np.mean(expected), abs=1e-6)


def test_equal_mass_error_against_a_loop(predictions):
    log_probs, labels = predictions
    confidence, prediction = log_probs.exp().max(-1)
    order = np.argsort(confidence.numpy(), kind="stable")
    gap = 0.0
    for rows in np.array_split(order, 10):  # 500 samples: ten bins of 50
        correct = (prediction == labels).double().numpy()[rows].mean()
        gap += len(rows) / 500 * abs(confidence.numpy()[rows].mean() - correct)
    assert float(calibration_error(log_probs, labels, 10, "mass")) == pytest.approx(gap, abs=1e-12)
    bins = reliability_bins(confidence, prediction == labels, 10, "mass")
    assert bins.counts.tolist() == [50] * 10
    with pytest.raises(ValueError, match="binning"):
        reliability_bins(confidence, prediction == labels, 10, "height")


def test_perfectly_calibrated_bins_have_no_error():
    confidence = torch.full((10,), 0.7, dtype=torch.float64)
    bins = reliability_bins(confidence, torch.arange(10) < 7)
    filled = int(bins.counts.argmax())
    assert bins.counts.sum() == bins.counts[filled] == 10
    assert float(bins.confidence[filled]) == pytest.approx(float(bins.accuracy[filled]))


def test_risk_coverage_against_a_loop(predictions):
    log_probs, labels = predictions
    score = -log_probs.max(-1).values
    wrong = (log_probs.argmax(-1) != labels).double()
    curve = risk_coverage(score, wrong)
    order = np.argsort(score.numpy(), kind="stable")
    expected = [wrong.numpy()[order[:kept]].mean() for kept in range(1, 501)]
    np.testing.assert_allclose(curve.risk, expected, atol=1e-12)
    np.testing.assert_allclose(curve.coverage, np.arange(1, 501) / 500)
    assert float(aurc(score, wrong)) == pytest.approx(np.mean(expected))
    assert float(curve.risk[-1]) == pytest.approx(float(wrong.mean()))


def test_risk_does_not_depend_on_the_order_of_ties():
    score, wrong = torch.tensor([0.1, 0.5, 0.5, 0.5, 0.9]), torch.tensor([0.0, 1, 0, 0, 1])
    flipped = risk_coverage(score.flip(0), wrong.flip(0)).risk
    torch.testing.assert_close(risk_coverage(score, wrong).risk, flipped)
    # A score that knows nothing has the same risk at every coverage.
    torch.testing.assert_close(risk_coverage(torch.zeros(5), wrong).risk, torch.full((5,), 0.4))


def test_the_best_order_has_the_least_area():
    wrong = torch.tensor([0, 0, 0, 1, 1])
    assert aurc(torch.arange(5.0), wrong) < aurc(-torch.arange(5.0), wrong)
    assert float(aurc(torch.arange(5.0), wrong)) == pytest.approx((0 + 0 + 0 + 1 / 4 + 2 / 5) / 5)
