"""A portion that follows the agreement of views instead of the clock."""

import pytest
import torch
from test_rounds import run

from calida.data import Augmentation, Labeled
from calida.model import Network, build_classifier
from calida.seeds import Seeds
from calida.validation import Predictor


def predictor(rows=300):
    target = torch.randn(rows, 6, generator=torch.Generator().manual_seed(1))
    model = build_classifier(Network((6,), 4, "mlp"), Seeds(0)).eval()
    return model, Predictor(Labeled(target[:10], torch.arange(10) % 4), target, 1, Seeds(0), 64)


def test_views_that_are_the_same_agree_and_noisier_ones_agree_less():
    model, view = predictor()
    labels = view.predict(model, view.target).labels
    assert view.agreement(model, labels, Augmentation()) == 1.0
    shares = [view.agreement(model, labels, Augmentation(noise=noise)) for noise in (0.05, 0.5, 5.0)]
    assert 1.0 > shares[0] > shares[1] > shares[2]
    assert view.agreement(model, labels, Augmentation(noise=0.5)) == shares[1]


def test_agreement_is_the_share_that_keeps_its_label():
    """Against labels of which a known part is wrong."""
    model, view = predictor()
    labels = view.predict(model, view.target).labels
    spoiled = torch.where(torch.arange(300) < 75, (labels + 1) % 4, labels)
    assert view.agreement(model, spoiled, Augmentation()) == pytest.approx(0.75)


def test_a_round_selects_as_much_as_its_views_agree():
    adapted = run("rer-inf", portion="agreement", noise=0.3)
    shares = [record.selected.share for record in adapted.history if record.selected is not None]
    assert len(shares) == 3
    assert all(0.3 < share < 1 for share in shares)
    steady = run("rer-inf", portion="agreement")  # without views there is nothing to contradict
    assert [record.selected.share for record in steady.history if record.selected is not None] == [1.0] * 3
