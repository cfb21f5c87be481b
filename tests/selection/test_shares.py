import pytest
import torch

from calida.selection import expected_shares, resample

SKEWED = torch.tensor([0.7, 0.1, 0.1, 0.1])  # 0.45 from equal shares


@pytest.mark.parametrize("error", [0.0, 0.1, 0.3, 0.449])
def test_shares_move_towards_equal_by_the_error_and_no_further(error):
    found = expected_shares(SKEWED, error)
    assert float(found.sum()) == pytest.approx(1)
    assert float((found - SKEWED).abs().sum()) / 2 == pytest.approx(error, abs=1e-6)
    left = float((found - 0.25).abs().sum()) / 2
    assert left == pytest.approx(0.45 - error, abs=1e-6)  # straight there: no other distribution within reach is nearer


@pytest.mark.parametrize("error", [0.45, 1.0, 7.0, float("inf")])
def test_a_classifier_that_errs_much_is_no_witness_against_equal_classes(error):
    torch.testing.assert_close(expected_shares(SKEWED, error), torch.full((4,), 0.25))


def test_each_index_is_drawn_in_proportion_to_its_weight():
    weights = torch.rand(50, generator=torch.Generator().manual_seed(0)) + 0.05
    expected = 50 * weights / weights.sum()
    seen = torch.stack(
        [
            torch.bincount(resample(weights, torch.Generator().manual_seed(seed)), minlength=50).float()
            for seed in range(2000)
        ]
    )
    assert (seen >= expected.floor() - 1e-6).all()
    assert (seen <= expected.ceil() + 1e-6).all()
    torch.testing.assert_close(seen.mean(0), expected, atol=0.05, rtol=0)


def test_equal_weights_give_everyone_once():
    drawn = resample(torch.full((333,), 0.1), torch.Generator().manual_seed(0))
    torch.testing.assert_close(drawn, torch.arange(333))
