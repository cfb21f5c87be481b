"""Source-only, adapted or the average of both, where it is known who is right."""

import pytest
import torch

from calida.estimation import choose_by_agreement, estimate_by_agreement
from calida.model import Prediction
from calida.panel import Opinion, Panel
from calida.validation import DomainPredictions, Returned
from calida.validation.mixing import Mixed

N, CLASSES = 2000, 4


def noisy(labels, wrong, generator):
    other = (labels + torch.randint(1, CLASSES, (len(labels),), generator=generator)) % CLASSES
    return torch.where(torch.rand(len(labels), generator=generator) < wrong, other, labels)


def answers(labels):
    return (0.97 * torch.nn.functional.one_hot(labels, CLASSES) + 0.01).float()


def predictions(validation, labels, target):
    zero, nothing = torch.zeros(N), torch.zeros(0, dtype=torch.long)
    said = [Prediction(answers(one).log(), zero, zero, zero, torch.zeros(N, 1)) for one in (validation, target)]
    return DomainPredictions(said[0], labels, said[1], Mixed(torch.zeros(0, CLASSES), nothing, nothing))


def world(before, after, views=("shared", "own"), misled=()):
    """Classifiers that err by these shares on target; members err by a tenth, misled views agree with the first."""
    generator = torch.Generator().manual_seed(0)
    source, target = (torch.randint(CLASSES, (N,), generator=generator) for _ in range(2))
    said = [(noisy(source, 0.05, generator), noisy(target, wrong, generator)) for wrong in (before, after)]
    opinions = []
    for place, view in enumerate(views * 3):
        there = noisy(said[0][1], 0.05, generator) if view in misled else noisy(target, 0.1, generator)
        opinions.append(Opinion(str(place), "kind", answers(noisy(source, 0.05, generator)), answers(there), view))
    candidates = [predictions(one, source, other) for one, other in said]
    return Panel(tuple(opinions), source), *candidates


@pytest.mark.parametrize(
    ("before", "after", "misled", "returned"),
    [
        (0.4, 0.1, (), Returned.ROUND),
        (0.1, 0.4, (), Returned.SOURCE_ONLY),
        (0.4, 0.1, ("shared",), Returned.SOURCE_ONLY),  # it clearly costs for those who see one scale
    ],
)
@pytest.mark.parametrize("taught", [False, True])
def test_adapting_has_to_pay_on_either_scale(before, after, misled, returned, taught):
    panel, *candidates = world(before, after, misled=misled)
    assert choose_by_agreement(panel, 1.0, *candidates, taught)[0] == returned


@pytest.mark.parametrize(
    ("before", "after", "untaught", "taught"),
    [
        (0.25, 0.21, Returned.ROUND, Returned.AVERAGE),
        (0.2, 0.2, Returned.AVERAGE, Returned.SOURCE_ONLY),  # a little less, by chance
        (0.2, 0.25, Returned.AVERAGE, Returned.SOURCE_ONLY),
    ],
)
def test_a_partial_panel_has_to_say_more_for_its_own_side(before, after, untaught, taught):
    """What gains or loses a little: the adapted classifier's teacher is not believed, its rival's is."""
    panel, *candidates = world(before, after)
    assert choose_by_agreement(panel, 1.0, *candidates, False)[0] == untaught
    assert choose_by_agreement(panel, 1.0, *candidates, True)[0] == taught


def a_student_of(sureness, worth_on_source):
    """A panel that changes three answers in ten, is so sure of its own, and is right so often where it changes them."""
    generator = torch.Generator().manual_seed(1)
    source, target = (torch.randint(CLASSES, (N,), generator=generator) for _ in range(2))
    before = noisy(source, 0.3, generator), noisy(target, 0.3, generator)
    changed = torch.rand(N, generator=generator) < 0.3
    other = (before[0] + 1) % CLASSES
    right = torch.rand(N, generator=generator) < worth_on_source
    after = torch.where(changed, torch.where(right, source, other), before[0]), noisy(target, 0.05, generator)
    even = torch.full((N, CLASSES), 1 / CLASSES)
    said = [sureness * torch.nn.functional.one_hot(labels, CLASSES) + (1 - sureness) * even for labels in after]
    opinions = tuple(Opinion(str(place), "kind", *said, view) for place, view in enumerate(("shared", "own") * 2))
    return Panel(opinions, source), *(
        predictions(*one) for one in ((before[0], source, before[1]), (after[0], source, after[1]))
    )


@pytest.mark.parametrize(
    ("sureness", "worth_on_source", "returned"),
    [
        (0.9, 1.0, Returned.ROUND),
        (0.05, 1.0, Returned.AVERAGE),  # all members agree with their student, and none is sure of it
        (0.9, 0.0, Returned.SOURCE_ONLY),  # sure of what is wrong wherever it can be checked
    ],
)
def test_the_students_teacher_has_to_be_sure_and_right_where_that_can_be_seen(sureness, worth_on_source, returned):
    panel, *candidates = a_student_of(sureness, worth_on_source)
    assert choose_by_agreement(panel, 1.0, *candidates, True)[0] == returned
    if returned == Returned.AVERAGE:  # agreement alone would have returned it
        assert choose_by_agreement(panel, 1.0, *candidates, False)[0] == Returned.ROUND


def test_belief_is_the_probability_that_the_panel_gives_and_what_it_was_worth_on_source():
    panel, before, _ = world(0.4, 0.1)
    found = estimate_by_agreement(panel, before.validation.labels, before.target.labels, 1.0)
    given = [
        sum(float(weight) * said[torch.arange(N), labels] for weight, said in zip(panel.weights, opinions, strict=True))
        for labels, opinions in (
            (before.target.labels, [one.target for one in panel.opinions]),
            (before.validation.labels, [one.validation for one in panel.opinions]),
        )
    ]
    right = float((before.validation.labels == panel.labels).double().mean())
    assert found.belief == pytest.approx(float(given[0].mean()), abs=1e-6)
    assert found.checked_belief == pytest.approx(found.belief + right - float(given[1].mean()), abs=1e-6)


def test_of_what_the_panel_taught_half_the_gain_is_believed():
    panel, *candidates = world(0.4, 0.1)
    _, found = choose_by_agreement(panel, 1.0, *candidates, True)
    before, after = (
        estimate_by_agreement(panel, one.validation.labels, one.target.labels, 1.0, True).value for one in candidates
    )
    assert found["source only"].value == pytest.approx(before)
    assert found["round"].value == pytest.approx((before + after) / 2)


def test_of_a_student_both_views_are_heard_and_of_others_the_one_that_agrees_more():
    panel, before, after = world(0.1, 0.4, misled=("shared",))
    plain, taught = (
        estimate_by_agreement(panel, after.validation.labels, after.target.labels, 1.0, flag) for flag in (False, True)
    )
    assert taught.value < plain.value
    right = float((before.validation.labels == panel.labels).double().mean())
    more = estimate_by_agreement(panel, before.validation.labels, before.target.labels, 1.0, True)
    assert more.value <= max(right, plain.value) + 1e-9


@pytest.mark.parametrize("taught", [False, True])
def test_what_is_returned_is_not_put_below_source_only(taught):
    """A panel that sees only its own errors in the average: it is returned as no worse, so it is called no worse."""
    panel, *candidates = world(0.2, 0.22)
    chosen, found = choose_by_agreement(panel, 1.0, *candidates, taught)
    assert found[chosen.value].value >= found[Returned.SOURCE_ONLY.value].value
    assert found[Returned.ROUND.value].value < found[Returned.SOURCE_ONLY.value].value
