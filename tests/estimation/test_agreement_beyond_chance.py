"""Estimates by agreement, where the answer is known."""

import pytest
import torch

from calida.estimation.agreement import estimate_by_agreement
from calida.panel import Opinion, Panel

N = 4000


def noisy(labels, wrong, generator, classes=4):
    """Labels of which a share is replaced by another class."""
    other = (labels + torch.randint(1, classes, (len(labels),), generator=generator)) % classes
    return torch.where(torch.rand(len(labels), generator=generator) < wrong, other, labels)


def world(wrong_on_target, members=(0.1, 0.1, 0.1), classes=4, seed=0):
    """A panel whose members err independently of f; f errs by a tenth on source."""
    generator = torch.Generator().manual_seed(seed)
    source, target = (torch.randint(classes, (N,), generator=generator) for _ in range(2))
    opinions = []
    for number, wrong in enumerate(members):
        said = [noisy(source, 0.1, generator, classes), noisy(target, wrong, generator, classes)]
        opinions.append(
            Opinion(str(number), "kind", *(torch.nn.functional.one_hot(one, classes).float() for one in said))
        )
    f = noisy(source, 0.1, generator, classes), noisy(target, wrong_on_target, generator, classes)
    return Panel(tuple(opinions), source), *f, float((f[1] == target).double().mean())


@pytest.mark.parametrize("apart", [0.0, 1.0])
@pytest.mark.parametrize("wrong", [0.1, 0.4, 0.7])
def test_the_estimate_follows_the_truth_where_members_err_on_their_own(wrong, apart):
    panel, validation, target, truth = world(wrong)
    found = estimate_by_agreement(panel, validation, target, apart)
    assert found.value == pytest.approx(truth, abs=0.1)  # members are right on nine of ten


def test_domains_that_mix_give_source_accuracy():
    panel, validation, target, _ = world(0.1)
    found = estimate_by_agreement(panel, validation, target, 0.0)
    assert found.value == pytest.approx(0.9, abs=0.06)


def test_one_class_for_everything_is_worth_no_more_than_chance_where_domains_never_meet():
    ones = torch.ones(100, dtype=torch.long)
    said = torch.nn.functional.one_hot(ones, 2).float()
    labels = torch.cat([torch.zeros(6, dtype=torch.long), ones[:94]])
    panel = Panel((Opinion("a", "a", said, said), Opinion("b", "b", said, said)), labels)
    for one in estimate_by_agreement(panel, ones, ones, 1.0).agreements:
        assert one.estimate == pytest.approx(0.5)
    for one in estimate_by_agreement(panel, ones, ones, 0.0).agreements:
        assert one.estimate == pytest.approx(0.94)  # full agreement is worth what it is worth on source


def test_each_sample_has_the_share_of_the_panel_that_is_with_it():
    panel, validation, target, _ = world(0.5)
    found = estimate_by_agreement(panel, validation, target, 1.0)
    same = torch.stack([one.target.argmax(1) == target for one in panel.opinions]).double()
    assert torch.allclose(found.by_sample, panel.weights @ same)  # members that are sure believe what they say
    assert found.by_sample.min() >= 0
    assert found.by_sample.max() <= 1 + 1e-9


def test_renamed_classes_change_nothing():
    panel, validation, target, _ = world(0.3)
    order = torch.tensor([2, 3, 1, 0])
    back = order.argsort()
    renamed = Panel(
        tuple(Opinion(one.name, one.kind, one.validation[:, back], one.target[:, back]) for one in panel.opinions),
        order[panel.labels],
    )
    first = estimate_by_agreement(panel, validation, target, 0.7)
    second = estimate_by_agreement(renamed, order[validation], order[target], 0.7)
    assert first.value == pytest.approx(second.value, abs=1e-9)
