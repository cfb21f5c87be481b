import pytest
import torch

from calida.selection import chance_distance, equalising_weights, expected_shares, resample

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


@pytest.mark.parametrize(("classes", "batch"), [(2, 100), (10, 100), (7, 32)])
def test_the_distance_by_chance_is_that_of_random_batches(classes, batch):
    drawn = torch.randint(classes, (4000, batch), generator=torch.Generator().manual_seed(0))
    shares = torch.nn.functional.one_hot(drawn, classes).double().mean(1)  # [4000, K]
    assert chance_distance(classes, batch) == pytest.approx(
        float((shares - 1 / classes).abs().sum(1).mean()) / 2, rel=0.03
    )


def test_weights_make_classes_equally_frequent():
    labels = torch.arange(1000) % 10 // 7  # 700 of class 0, 300 of class 1
    shares = torch.tensor([0.7, 0.3])
    drawn = resample(equalising_weights(labels, shares), torch.Generator().manual_seed(0))
    counts = torch.bincount(labels[drawn])
    assert (counts - 500).abs().max() <= 20


def test_shares_that_are_equal_enough_are_left_alone():
    shares = torch.tensor([0.6, 0.4])
    assert equalising_weights(torch.zeros(9, dtype=torch.long), shares, tolerance=0.11) is None
    assert equalising_weights(torch.zeros(9, dtype=torch.long), shares, tolerance=0.09) is not None
    assert equalising_weights(torch.zeros(9, dtype=torch.long), torch.full((7,), 1 / 7)) is None


def test_a_class_that_nobody_has_gets_no_infinite_weight():
    weights = equalising_weights(torch.tensor([0, 0, 1, 2]), torch.tensor([1.0, 0.0, 0.0]))
    torch.testing.assert_close(weights, torch.tensor([1.0, 1.0, 4.0, 4.0]))
