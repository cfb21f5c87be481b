"""How likely each answer is right: the mean is what is known, the order what was found."""

import pytest
import torch

from calida.estimation import probability_right, with_mean


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
