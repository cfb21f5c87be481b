"""How likely each answer is right: the mean is what is known, the order what was found."""

import pytest
import torch

from calida.estimation import probability_right, right_by_confidence, with_mean, worth_of_confidence


@pytest.mark.parametrize("accuracy", [0.05, 0.5, 0.93, 0.999])
def test_the_mean_is_the_accuracy_and_the_order_stays(accuracy):
    votes, confidence = torch.linspace(0.1, 0.9, 50), torch.linspace(0.4, 0.95, 50)
    found = probability_right(votes, confidence, accuracy)
    assert float(found.mean()) == pytest.approx(accuracy, abs=1e-6)
    moved = with_mean(found, 0.7)
    assert float(moved.mean()) == pytest.approx(0.7, abs=1e-6)
    for one in (found, moved):
        assert bool((one.diff() > 0).all())


def test_what_has_the_right_mean_is_left_as_it_is():
    known = torch.rand(200, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    torch.testing.assert_close(with_mean(known, float(known.mean())), known, rtol=1e-9, atol=1e-9)


def test_what_confidence_is_worth_never_falls_and_keeps_the_mean():
    generator = torch.Generator().manual_seed(1)
    confidence = 0.4 + 0.6 * torch.rand(1000, generator=generator)
    right = (0.9 * confidence + 0.05 * torch.randn(1000, generator=generator)).clamp(0, 1).double()
    worth = worth_of_confidence(confidence, right)
    sure, share = (torch.tensor(row) for row in zip(*worth, strict=True))
    assert bool((sure.diff() > 0).all())
    assert bool((share.diff() >= 0).all())
    found = right_by_confidence(worth, confidence)
    assert float(found.mean()) == pytest.approx(float(right.mean()), abs=0.005)
    torch.testing.assert_close(found, 0.9 * confidence.double(), atol=0.05, rtol=0)


def test_confidence_that_tells_nothing_is_worth_the_mean():
    """Where sure answers are right less often than doubtful ones, no confidence is worth more than another."""
    confidence = torch.linspace(0.5, 1.0, 400)
    worth = worth_of_confidence(confidence, 1.2 - confidence.double())
    assert [share for _, share in worth] == pytest.approx([0.45] * len(worth), abs=1e-6)
    few = worth_of_confidence(torch.tensor([0.7, 0.9]), torch.tensor([0.5, 0.8]))
    assert right_by_confidence(few, torch.tensor([0.1, 0.8, 1.0])).tolist() == pytest.approx([0.5, 0.65, 0.8])
