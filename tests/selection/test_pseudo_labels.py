import itertools
import math

import pytest
import torch

from calida.errors import InputError
from calida.selection import (
    SELECTORS,
    Ramp,
    select_class_balanced,
    select_global,
    select_reweighted,
    selector,
    tempered_labels,
)

EVERY = pytest.mark.parametrize("select", SELECTORS.values(), ids=SELECTORS)


def random_log_probs(rows, classes, seed=0, tilt=0.0):
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(rows, classes, generator=generator, dtype=torch.float64)
    return torch.log_softmax(logits + tilt * torch.arange(classes), -1)


def slow_thresholds(log_probs, portion):
    """exp(-k_c): the confidence at rank portion * N_c among the samples predicted as c; 1 for a class without any."""
    probs = log_probs.exp()
    thresholds = []
    for c in range(probs.shape[1]):
        confidences = sorted((float(row.max()) for row in probs if int(row.argmax()) == c), reverse=True)
        rank = math.ceil(round(portion * len(confidences), 9))
        thresholds.append(confidences[rank - 1] if confidences else 1.0)
    return torch.tensor(thresholds, dtype=log_probs.dtype)


@pytest.mark.parametrize("portion", [0.1, 0.3, 0.5, 1.0])
@pytest.mark.parametrize(("rows", "classes", "tilt"), [(200, 5, 0.0), (60, 2, 1.0), (300, 8, 1.0)])
def test_class_balanced_against_the_definition(rows, classes, tilt, portion):
    log_probs = random_log_probs(rows, classes, tilt=tilt)
    threshold = slow_thresholds(log_probs, portion)
    plain, weighted = select_class_balanced(log_probs, portion), select_reweighted(log_probs, portion)
    torch.testing.assert_close(plain.class_threshold, threshold)
    torch.testing.assert_close(weighted.class_threshold, threshold)
    for row in range(rows):
        probs = log_probs[row].exp()
        label = int(probs.argmax())
        assert int(plain.labels[row]) == label
        assert bool(plain.selected[row]) == bool(probs[label] >= threshold[label] - 1e-12)
        ratio = probs / threshold
        assert int(weighted.labels[row]) == int(ratio.argmax())
        assert bool(weighted.selected[row]) == bool(ratio.max() >= 1 - 1e-12)


def test_global_takes_the_most_confident_of_all():
    log_probs = random_log_probs(100, 4)
    chosen = select_global(log_probs, 0.3)
    best = log_probs.max(-1).values.argsort(descending=True)[:30]
    assert sorted(chosen.selected.nonzero().flatten().tolist()) == sorted(best.tolist())
    assert len(chosen.class_threshold.unique()) == 1


def test_class_balance_gives_every_predicted_class_its_share():
    log_probs = random_log_probs(1000, 4, tilt=0.7)
    chosen = select_class_balanced(log_probs, 0.25)
    predicted = torch.bincount(log_probs.argmax(-1), minlength=4)
    kept = torch.bincount(chosen.labels[chosen.selected], minlength=4)
    assert kept.tolist() == [math.ceil(0.25 * n) for n in predicted.tolist()]


def test_reweighting_helps_the_class_that_the_model_finds_hard():
    """Class 1 never reaches 0.6; a sample between the classes goes to it once confidences are normalized."""
    probs = torch.tensor([[0.99, 0.01], [0.98, 0.02], [0.55, 0.45], [0.45, 0.55], [0.46, 0.54], [0.48, 0.52]])
    plain, weighted = (select(probs.log(), 0.34) for select in (select_class_balanced, select_reweighted))
    assert int(plain.labels[2]) == 0
    assert int(weighted.labels[2]) == 1


@EVERY
def test_portion_zero_selects_nobody_and_one_selects_everybody(select):
    log_probs = random_log_probs(50, 6)
    assert not select(log_probs, 0.0).selected.any()
    everybody = select(log_probs, 1.0)
    assert everybody.selected.all()
    for bad in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match="portion"):
            select(log_probs, bad)


@EVERY
def test_larger_portions_contain_smaller_ones(select):
    log_probs = random_log_probs(200, 5)
    selected = [select(log_probs, portion).selected for portion in (0.1, 0.2, 0.4, 0.8, 1.0)]
    assert all((small <= large).all() for small, large in itertools.pairwise(selected))


@EVERY
def test_saturated_samples_are_told_apart_by_what_is_left_for_the_others(select):
    """In float32 all six have probability 1; the share that is asked for is the surest of them."""
    gaps = torch.tensor([40.0, 90.0, 60.0, 50.0, 80.0, 70.0, 1.0, 1.0, 1.0, 1.0])
    log_probs = torch.log_softmax(torch.stack([gaps, torch.zeros(10)], 1), -1)
    assert (log_probs[:6, 0] == 0).all()
    for portion, expected in ((0.1, {1}), (0.3, {1, 4, 5}), (0.6, {0, 1, 2, 3, 4, 5})):
        assert set(select(log_probs, portion).selected.nonzero().flatten().tolist()) == expected


@EVERY
def test_a_portion_of_equal_samples_is_that_portion_of_them(select):
    log_probs = torch.log_softmax(torch.tensor([[200.0, 0.0]] * 64 + [[1.0, 0.0]] * 36), -1)
    for portion in (0.1, 0.3, 0.6):
        assert int(select(log_probs, portion).selected.sum()) == round(100 * portion)


def slow_expected(log_probs, portion, shares):
    """Thresholds at rank portion * N * share among all samples' confidences in a class."""
    probs = log_probs.exp()
    ranks = [math.ceil(round(portion * len(probs) * float(share), 4)) for share in shares]
    return torch.tensor([float(probs[:, c].sort(descending=True).values[max(r, 1) - 1]) for c, r in enumerate(ranks)])


@pytest.mark.parametrize("portion", [0.1, 0.4, 1.0])
def test_expected_shares_decide_how_many_a_class_may_have(portion):
    """A class that predictions neglect gets its share of samples, whoever else they are predicted to be."""
    log_probs = random_log_probs(300, 4, tilt=1.0).float()  # class 0 is hardly predicted
    for shares in (torch.full((4,), 0.25), torch.tensor([0.1, 0.2, 0.3, 0.4])):
        threshold = slow_expected(log_probs, portion, shares)
        weighted = select_reweighted(log_probs, portion, shares)
        torch.testing.assert_close(weighted.class_threshold, threshold.double(), rtol=1e-5, atol=1e-7)
        ratio = log_probs.exp() / threshold
        assert torch.equal(weighted.labels, ratio.argmax(-1))
        assert torch.equal(weighted.selected, ratio.amax(-1) >= 1 - 1e-6)
    few, many = (
        int((chosen.labels[chosen.selected] == 0).sum())
        for chosen in (select_reweighted(log_probs, 0.4), select_reweighted(log_probs, 0.4, torch.full((4,), 0.25)))
    )
    assert many > 2 * few


def test_shares_of_the_predictions_are_those_of_cbst():
    """Where each class has its own samples surest, both rules agree."""
    logits = 9 * torch.nn.functional.one_hot(torch.arange(60) % 3, 3).double()
    log_probs = torch.log_softmax(logits * torch.linspace(1, 1.1, 20).repeat_interleave(3)[:, None], -1)
    predicted, expected = select_reweighted(log_probs, 0.5), select_reweighted(log_probs, 0.5, torch.full((3,), 1 / 3))
    assert torch.equal(predicted.selected, expected.selected)
    assert torch.equal(predicted.labels, expected.labels)


@EVERY
def test_one_class_takes_all_and_a_class_is_empty(select):
    log_probs = torch.log_softmax(torch.tensor([[3.0 + i, 0.0, -1.0] for i in range(10)]), -1)
    chosen = select(log_probs, 0.5)
    assert (chosen.labels == 0).all()
    assert int(chosen.selected.sum()) == 5
    assert chosen.class_threshold.isfinite().all()
    if select is not select_global:
        assert chosen.class_threshold[1:].tolist() == [1.0, 1.0]


@EVERY
@pytest.mark.parametrize(("rows", "classes"), [(30, 2), (5000, 1000), (3, 1000), (1, 2)])
def test_few_and_many_classes(select, rows, classes):
    log_probs = random_log_probs(rows, classes)
    chosen = select(log_probs, 0.5)
    assert chosen.labels.shape == chosen.selected.shape == (rows,)
    assert chosen.class_threshold.shape == (classes,)
    assert 0 < int(chosen.selected.sum()) <= rows
    if select is select_global:
        assert int(chosen.selected.sum()) == math.ceil(rows / 2)


@EVERY
def test_equivariance(select):
    """Renaming classes or reordering samples changes nothing but names and order."""
    log_probs = random_log_probs(80, 6)
    chosen = select(log_probs, 0.4)
    generator = torch.Generator().manual_seed(1)
    rows, classes = torch.randperm(80, generator=generator), torch.randperm(6, generator=generator)
    moved = select(log_probs[rows][:, classes], 0.4)
    assert torch.equal(moved.selected, chosen.selected[rows])
    assert torch.equal(classes[moved.labels], chosen.labels[rows])


@EVERY
def test_extreme_predictions_stay_finite(select):
    log_probs = torch.log_softmax(torch.tensor([[1e4, -1e4, 0.0], [-1e4, 1e4, 0.0], [0.0, 0.0, 0.0]]), -1)
    chosen = select(log_probs, 0.5)
    assert not chosen.class_threshold.isnan().any()
    assert chosen.selected.any()


def test_unknown_selection_is_named():
    assert selector("global") is select_global
    with pytest.raises(InputError, match="unknown selection 'best'"):
        selector("best")


def test_tempered_labels_and_their_limits():
    log_probs = random_log_probs(20, 5)
    torch.testing.assert_close(tempered_labels(log_probs, 1.0), log_probs.exp())
    hard = torch.nn.functional.one_hot(log_probs.argmax(-1), 5).double()
    assert torch.equal(tempered_labels(log_probs, 0.0), hard)
    torch.testing.assert_close(tempered_labels(log_probs, 1e-4), hard)
    sharpened = log_probs.exp().pow(1 / 0.5)
    torch.testing.assert_close(tempered_labels(log_probs, 0.5), sharpened / sharpened.sum(-1, keepdim=True))
    with pytest.raises(ValueError, match="temperature"):
        tempered_labels(log_probs, -1.0)


def test_soft_labels_of_crst():
    log_probs = random_log_probs(20, 5)
    chosen = select_reweighted(log_probs, 0.4)
    weights = (log_probs.exp() / chosen.class_threshold).pow(1 / 0.25)
    expected = weights / weights.sum(-1, keepdim=True)
    torch.testing.assert_close(tempered_labels(log_probs, 0.25, chosen.log_threshold), expected)
    nobody = select_reweighted(log_probs, 0.0).log_threshold
    torch.testing.assert_close(tempered_labels(log_probs, 1.0, nobody), log_probs.exp())


def test_a_class_that_is_next_to_impossible_can_still_be_expected():
    """exp(-120) is 0 in float32, and exp(-1200) in float64."""
    logits = torch.tensor([[1200.0, 0.0, 120.0], [1201.0, 0.0, 119.0], [1202.0, 1.0, 118.0]])
    log_probs = torch.log_softmax(logits, -1)
    shares = torch.full((3,), 1 / 3)
    chosen = select_reweighted(log_probs, 0.3, shares)
    labels = tempered_labels(log_probs, 0.25, chosen.log_threshold)
    assert labels.dtype == log_probs.dtype
    torch.testing.assert_close(labels.sum(-1), torch.ones(3))
    torch.testing.assert_close(labels[0], torch.full((3,), 1 / 3))  # every class is at its threshold there
    assert chosen.labels[1:].tolist() == [0, 0]


def test_ramps():
    portion = Ramp(0.3, 0.05, 0.6)
    assert [round(portion(i), 2) for i in (0, 1, 5, 6, 7, 100)] == [0.3, 0.35, 0.55, 0.6, 0.6, 0.6]
    temperature = Ramp(1.0, -0.25, 0.0)
    assert [temperature(i) for i in range(6)] == [1.0, 0.75, 0.5, 0.25, 0.0, 0.0]
    assert Ramp(0.4)(7) == 0.4
