import math

import pytest
import torch

from calida.shift import (
    balancing_weights,
    chance_distance,
    estimate_shares,
    mlls_shares,
    prior_logit_offsets,
    resample,
    rlls_shares,
    shares_nearest_uniform,
    thin_out,
)

SKEWED = torch.tensor([0.7, 0.1, 0.1, 0.1])  # 0.45 from equal shares


@pytest.mark.parametrize("error", [0.0, 0.1, 0.3, 0.449])
def test_shares_move_towards_equal_by_the_error_and_no_further(error):
    found = shares_nearest_uniform(SKEWED, error)
    assert float(found.sum()) == pytest.approx(1)
    assert float((found - SKEWED).abs().sum()) / 2 == pytest.approx(error, abs=1e-6)
    left = float((found - 0.25).abs().sum()) / 2
    assert left == pytest.approx(0.45 - error, abs=1e-6)  # straight there: no other distribution within reach is nearer


@pytest.mark.parametrize("error", [0.45, 1.0, 7.0, float("inf")])
def test_a_classifier_that_errs_much_is_no_witness_against_equal_classes(error):
    torch.testing.assert_close(shares_nearest_uniform(SKEWED, error), torch.full((4,), 0.25))


def test_share_logits_are_bayes_rule():
    """Three Gaussian classes on a line, told apart with equal shares, and then with those that they have."""
    x, means = torch.linspace(-4, 4, 41, dtype=torch.float64), torch.tensor([-1.0, 0.0, 1.5], dtype=torch.float64)
    shares = torch.tensor([0.7, 0.28, 0.02], dtype=torch.float64)
    density = torch.distributions.Normal(means, 1).log_prob(x[:, None])
    moved = density.log_softmax(-1) + prior_logit_offsets(shares, 1000, 0.1)
    torch.testing.assert_close(moved.softmax(-1), (density + shares.log()).softmax(-1))
    assert prior_logit_offsets(shares, 1000, 0.5) is None
    assert prior_logit_offsets(torch.tensor([1.0, 0.0]), 50, 0.1).tolist() == pytest.approx(
        [math.log(2), math.log(2 / 50)]
    )


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
    drawn = resample(balancing_weights(labels, shares), torch.Generator().manual_seed(0))
    counts = torch.bincount(labels[drawn])
    assert (counts - 500).abs().max() <= 20


def test_shares_that_are_equal_enough_are_left_alone():
    shares = torch.tensor([0.6, 0.4])
    assert balancing_weights(torch.zeros(9, dtype=torch.long), shares, tolerance=0.11) is None
    assert balancing_weights(torch.zeros(9, dtype=torch.long), shares, tolerance=0.09) is not None
    assert balancing_weights(torch.zeros(9, dtype=torch.long), torch.full((7,), 1 / 7)) is None


def test_a_class_that_nobody_has_gets_no_infinite_weight():
    weights = balancing_weights(torch.tensor([0, 0, 1, 2]), torch.tensor([1.0, 0.0, 0.0]))
    torch.testing.assert_close(weights, torch.tensor([1.0, 1.0, 4.0, 4.0]))


def overlapping(shares, rows=3000, seed=0):
    """log p(class | x) of three classes on a line, taken for equally frequent, for samples that have these shares."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.multinomial(torch.tensor(shares), rows, replacement=True, generator=generator)
    x = 1.5 * labels + torch.randn(rows, generator=generator, dtype=torch.float64)
    return (-((x[:, None] - 1.5 * torch.arange(3)) ** 2) / 2).log_softmax(-1), labels


@pytest.mark.parametrize("shares", [[0.8, 0.15, 0.05], [0.1, 0.1, 0.8], [0.5, 0.0, 0.5]])
def test_likely_shares_are_those_of_the_samples(shares):
    log_probs, labels = overlapping(shares)
    found = mlls_shares(log_probs, torch.full((3,), 1 / 3))
    true = torch.bincount(labels, minlength=3).double() / len(labels)
    torch.testing.assert_close(found, true, atol=0.04, rtol=0)


def test_likely_shares_have_the_highest_likelihood():
    """Of all shares on a fine grid: p(x) is in proportion to the sum of share times p(class | x) / known share."""
    known = torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64)
    log_probs = (overlapping([0.6, 0.3, 0.1])[0] + known.log()).log_softmax(-1)
    grid = torch.cartesian_prod(torch.arange(0, 1.001, 0.01), torch.arange(0, 1.001, 0.01)).double()
    grid = torch.cat([grid, 1 - grid.sum(1, keepdim=True)], 1)
    grid = grid[(grid >= 0).all(1)]
    likelihood = ((log_probs.exp() / known) @ grid.T).log().mean(0)
    torch.testing.assert_close(mlls_shares(log_probs, known), grid[likelihood.argmax()], atol=0.011, rtol=0)


def test_likely_shares_of_certain_answers_are_their_counts():
    log_probs, known = torch.eye(3)[torch.tensor([0, 0, 0, 2])].log(), torch.full((3,), 1 / 3)
    torch.testing.assert_close(mlls_shares(log_probs, known).float(), torch.tensor([0.75, 0.0, 0.25]))


def test_a_class_that_the_source_lacks_has_no_share():
    log_probs = torch.tensor([[0.6, 0.3, 0.1], [0.2, 0.1, 0.7]]).log()
    found = mlls_shares(log_probs, torch.tensor([0.5, 0.5, 0.0]))
    torch.testing.assert_close(found.float(), torch.tensor([1.0, 0.0, 0.0]), atol=1e-4, rtol=0)
    certain = torch.tensor([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]).log()
    assert torch.isfinite(mlls_shares(certain, torch.tensor([0.5, 0.5, 0.0]))).all()


def test_thinned_out_rows_have_the_shares_and_no_repetition():
    labels = torch.arange(9000) % 3
    rows = thin_out(labels, torch.tensor([0.5, 0.4, 0.1]), torch.Generator().manual_seed(0))
    assert len(rows.unique()) == len(rows)
    counts = torch.bincount(labels[rows])
    assert counts[0] == 3000  # of the class that is rare among the labels for its share, everyone
    torch.testing.assert_close(counts.double() / len(rows), torch.tensor([0.5, 0.4, 0.1]).double(), atol=0.02, rtol=0)
    torch.testing.assert_close(
        thin_out(labels, torch.full((3,), 1 / 3), torch.Generator()), torch.arange(9000)
    )  # nothing to thin out
    without = thin_out(labels[labels < 2], torch.tensor([0.5, 0.4, 0.1]), torch.Generator())
    assert len(without) > 5000


def confused(shares, count, seed):
    """Labels with these shares, and what a classifier with a known confusion matrix says of them."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.multinomial(torch.tensor(shares), count, True, generator=generator)
    confusion = torch.tensor([[0.8, 0.15, 0.05], [0.1, 0.85, 0.05], [0.2, 0.1, 0.7]])
    said = torch.multinomial(confusion[labels], 1, generator=generator).squeeze(1)
    return labels, said


def test_rlls_inverts_the_confusion_matrix():
    wanted = [0.1, 0.2, 0.7]
    (labels, said), (_, target) = confused([0.4, 0.4, 0.2], 20_000, 0), confused(wanted, 20_000, 1)
    assert rlls_shares(said, labels, target, 3).tolist() == pytest.approx(wanted, abs=0.03)
    counted = torch.bincount(target, minlength=3) / len(target)
    assert float((counted - torch.tensor(wanted)).abs().max()) > 0.1  # what is predicted is not what is there


def test_a_classifier_that_knows_nothing_leaves_shares_as_they_were():
    generator = torch.Generator().manual_seed(0)
    labels = torch.multinomial(torch.tensor([0.6, 0.3, 0.1]), 5000, True, generator=generator)
    said, target = (torch.randint(3, (5000,), generator=generator) for _ in range(2))
    assert rlls_shares(said, labels, target, 3).tolist() == pytest.approx([0.6, 0.3, 0.1], abs=0.06)


def test_intervals_of_shares_hold_the_truth():
    wanted, held = torch.tensor([0.1, 0.3, 0.6]), 0
    for seed in range(10):
        (labels, said), (_, target) = confused([0.4, 0.4, 0.2], 400, seed), confused(wanted.tolist(), 400, 100 + seed)
        answers = [torch.nn.functional.one_hot(one, 3).double().clamp(1e-4).log() for one in (said, target)]
        known = torch.tensor([0.4, 0.4, 0.2], dtype=torch.float64)
        found = estimate_shares(answers[0], labels, answers[1], known, torch.Generator().manual_seed(seed))
        held += int(((found.low <= wanted) & (wanted <= found.high)).sum())
        assert float((found.high - found.low).max()) < 0.4
    assert held >= 24  # of 30


@pytest.mark.parametrize("count", [0, 5])
def test_too_few_samples_tell_no_shares(count):
    few = torch.zeros(count, 3, dtype=torch.float64).log_softmax(-1)
    known, labels = torch.full((3,), 1 / 3, dtype=torch.float64), torch.zeros(count, dtype=torch.long)
    assert estimate_shares(few, labels, few, known, torch.Generator()) is None
