import itertools
import math

import pytest
import torch

from calida.uncertainty import (
    decompose,
    expected_entropy,
    mean_log_probs,
    mutual_information,
    predictive_entropy,
    renyi_entropy,
)

ORDERS = [0.01, 0.3, 0.5, 0.9, 0.95, 0.999, 1.0, 1.001, 1.05, 1.2, 2.0, 7.0, 100.0, 1e39, math.inf]


def random_log_probs(*shape, scale=2.0, dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.log_softmax(scale * torch.randn(*shape, generator=generator, dtype=dtype), -1)


def reference(log_probs, order):
    probs = log_probs.double().exp()
    if order == 1:
        return -(probs * probs.log()).sum(-1)
    if order > 1e6:
        return -probs.max(-1).values.log()
    return probs.pow(order).sum(-1).log() / (1 - order)


@pytest.mark.parametrize("order", ORDERS)
def test_equals_the_definition_in_float64(order):
    log_probs = random_log_probs(2, 5, 6)
    # The definition itself loses digits by 1 / |order - 1|; nearer to 1 it is no reference (see the next test).
    torch.testing.assert_close(renyi_entropy(log_probs, order), reference(log_probs, order), rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("distance", [1e-1, 1e-2, 1e-3, 1e-5, 1e-8, 1e-12])
@pytest.mark.parametrize("sign", [-1, 1])
def test_float32_is_exact_and_continuous_through_order_one(distance, sign):
    """H_a = H_1 - (a - 1) / 2 Var(log P) + O((a - 1)^2); where that is too rough, the definition in float64."""
    log_probs = random_log_probs(50, 10, dtype=torch.float32)
    exact = log_probs.double()
    exact = exact - exact.logsumexp(-1, keepdim=True)
    value = renyi_entropy(log_probs, 1 + sign * distance).double()
    if distance > 1e-4:
        expected = reference(exact, 1 + sign * distance)
    else:
        shannon = reference(exact, 1)
        spread = (exact.exp() * (exact + shannon[:, None]).square()).sum(-1)
        expected = shannon - sign * distance / 2 * spread
    torch.testing.assert_close(value, expected, rtol=3e-6, atol=3e-6)


def test_both_forms_meet_at_the_border():
    log_probs = random_log_probs(50, 10, dtype=torch.float32)
    for border in (0.9, 1.1):
        below, above = renyi_entropy(log_probs, border - 1e-6), renyi_entropy(log_probs, border + 1e-6)
        torch.testing.assert_close(below, above, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("order", ORDERS)
def test_extreme_logits_give_finite_values_and_gradients_in_float32(order):
    rows = [[1e4, 0, -1e4], [0, 0, 0], [1e4, 1e4, -1e4], [-1e4, -1e4, -1e4], [1e4, 1e4 - 1, 3], [60, -60, 0]]
    logits = torch.tensor(rows, requires_grad=True)
    entropy = renyi_entropy(torch.log_softmax(logits, -1), order)
    (gradient,) = torch.autograd.grad(entropy.sum(), logits)
    assert entropy.isfinite().all()
    assert gradient.isfinite().all()
    torch.testing.assert_close(entropy[1], torch.tensor(math.log(3)))  # uniform
    torch.testing.assert_close(entropy[0], torch.tensor(0.0), atol=1e-5, rtol=0)  # one-hot
    torch.testing.assert_close(entropy[2], torch.tensor(math.log(2)))
    assert (entropy >= -1e-6).all()
    assert (entropy <= math.log(3) + 1e-6).all()


@pytest.mark.parametrize("order", ORDERS)
def test_exact_zeros_are_allowed(order):
    log_probs = torch.tensor(
        [[0.0, -math.inf, -math.inf], [math.log(0.5), math.log(0.5), -math.inf]], requires_grad=True
    )
    entropy = renyi_entropy(log_probs, order)
    torch.testing.assert_close(entropy, torch.tensor([0.0, math.log(2)]), atol=1e-6, rtol=0)
    assert torch.autograd.grad(entropy.sum(), log_probs)[0].isfinite().all()


@pytest.mark.parametrize("order", ORDERS)
def test_gradient_equals_finite_differences(order):
    logits = 0.7 * torch.randn(4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    assert torch.autograd.gradcheck(lambda z: renyi_entropy(torch.log_softmax(z, -1), order), logits.requires_grad_())


def test_limits_order_and_shapes():
    log_probs = random_log_probs(3, 4, 5, 6)
    values = [renyi_entropy(log_probs, order) for order in ORDERS]
    assert all(value.shape == (3, 4, 5) for value in values)
    # The Renyi entropy falls with its order: Shannon's is an upper bound of the min-entropy (Eq. 9).
    assert all((low >= high - 1e-12).all() for low, high in itertools.pairwise(values))
    torch.testing.assert_close(renyi_entropy(log_probs, 2.0), -log_probs.exp().square().sum(-1).log())
    torch.testing.assert_close(renyi_entropy(log_probs, 1e6), renyi_entropy(log_probs, math.inf), rtol=1e-5, atol=0)
    shuffled = log_probs[..., torch.randperm(6)]
    torch.testing.assert_close(renyi_entropy(shuffled, 0.7), renyi_entropy(log_probs, 0.7))


@pytest.mark.parametrize("order", [0, -1, math.nan])
def test_orders_outside_the_definition_are_refused(order):
    with pytest.raises(ValueError, match="order"):
        renyi_entropy(torch.zeros(1, 2), order)


def test_split_of_uncertainty_against_loops():
    samples = random_log_probs(7, 4, 5)  # [M, B, K]
    split = decompose(samples)
    for b in range(4):
        mean = sum(samples[m, b].exp() for m in range(7)) / 7
        assert float(split.predictive[b]) == pytest.approx(-sum(p * math.log(p) for p in mean.tolist()))
        parts = [-sum(math.exp(v) * v for v in samples[m, b].tolist()) for m in range(7)]
        assert float(split.aleatoric[b]) == pytest.approx(sum(parts) / 7)
    torch.testing.assert_close(split.predictive, split.aleatoric + split.epistemic)
    torch.testing.assert_close(predictive_entropy(samples), split.predictive)
    torch.testing.assert_close(expected_entropy(samples), split.aleatoric)
    assert (mutual_information(samples) > 0).all()


def test_samples_that_agree_have_no_epistemic_part_and_one_sample_is_itself():
    one = random_log_probs(1, 4, 5, dtype=torch.float32)
    assert torch.equal(mean_log_probs(one), one[0])
    assert torch.equal(mutual_information(one), torch.zeros(4))
    torch.testing.assert_close(mutual_information(one.expand(9, 4, 5)), torch.zeros(4), atol=1e-6, rtol=0)
    # Two certain samples that contradict each other are all epistemic.
    clash = torch.log_softmax(torch.tensor([[[50.0, 0.0]], [[0.0, 50.0]]]), -1)
    torch.testing.assert_close(mutual_information(clash), torch.tensor([math.log(2)]))
