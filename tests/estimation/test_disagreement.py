"""The floor of Dis^2, where the answer is known."""

import math

import pytest
import torch

from calida.estimation import disagreement_floor
from calida.seeds import Seeds

N = 2000


def answers(right, generator, sure=3.0, classes=3):
    """Log-probabilities of which a share is right, and the labels."""
    labels = torch.randint(classes, (N,), generator=generator)
    wrong = (labels + torch.randint(1, classes, (N,), generator=generator)) % classes
    said = torch.where(torch.rand(N, generator=generator) < right, labels, wrong)
    logits = sure * torch.nn.functional.one_hot(said, classes) + torch.randn(N, classes, generator=generator)
    return logits.log_softmax(-1), labels


def test_domains_drawn_alike_lose_what_critics_overfit_and_chance_alone():
    generator = torch.Generator().manual_seed(0)
    (validation, labels), (target, _) = answers(0.9, generator), answers(0.9, generator)
    accuracy = float((validation.argmax(-1) == labels).double().mean())
    chance = math.sqrt(5 * math.log(10) / N)  # n_s = n_t = N / 2
    floor = disagreement_floor(validation, labels, target, Seeds(0))
    assert accuracy - chance - 0.08 < floor <= accuracy - chance


def test_a_target_of_uncertain_answers_has_a_low_floor():
    generator = torch.Generator().manual_seed(0)
    (validation, labels), (target, _) = answers(0.95, generator, sure=8.0), answers(0.95, generator, sure=0.0)
    assert disagreement_floor(validation, labels, target, Seeds(0)) < 0.5


@pytest.mark.parametrize("count", [0, 3])
def test_a_few_samples_say_nothing(count):
    validation = torch.zeros(count, 3).log_softmax(-1)
    floor = disagreement_floor(validation, torch.zeros(count, dtype=torch.long), torch.zeros(50, 3), Seeds(0))
    assert floor == 0.0
