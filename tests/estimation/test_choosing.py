"""Source-only, adapted or the average of both, where it is known who is right."""

import pytest
import torch

from calida.estimation import choose_by_agreement
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
        (0.2, 0.2, (), Returned.AVERAGE),
        (0.4, 0.1, ("shared",), Returned.SOURCE_ONLY),  # it clearly costs for those who see one scale
    ],
)
@pytest.mark.parametrize("taught", [False, True])
def test_adapting_has_to_pay_on_either_scale(before, after, misled, returned, taught):
    panel, *candidates = world(before, after, misled=misled)
    assert choose_by_agreement(panel, 1.0, *candidates, taught)[0] == returned


@pytest.mark.parametrize(
    ("before", "after", "untaught", "taught"),
    [(0.25, 0.2, Returned.ROUND, Returned.AVERAGE), (0.2, 0.25, Returned.AVERAGE, Returned.SOURCE_ONLY)],
)
def test_a_partial_panel_has_to_say_more_for_its_own_side(before, after, untaught, taught):
    """What gains or loses a little: the adapted classifier's teacher is not believed, its rival's is."""
    panel, *candidates = world(before, after)
    assert choose_by_agreement(panel, 1.0, *candidates, False)[0] == untaught
    assert choose_by_agreement(panel, 1.0, *candidates, True)[0] == taught


def test_of_what_the_panel_taught_half_the_gain_is_believed():
    panel, *candidates = world(0.4, 0.1)
    (_, plain), (_, taught) = (choose_by_agreement(panel, 1.0, *candidates, taught) for taught in (False, True))
    start = plain["source only"].value
    assert taught["source only"].value == pytest.approx(start)
    for kind, estimate in taught.items():
        assert estimate.value - start == pytest.approx((plain[kind].value - start) / 2)


@pytest.mark.parametrize("taught", [False, True])
def test_what_is_returned_is_not_put_below_source_only(taught):
    """A panel that sees only its own errors in the average: it is returned as no worse, so it is called no worse."""
    panel, *candidates = world(0.2, 0.22)
    chosen, found = choose_by_agreement(panel, 1.0, *candidates, taught)
    assert found[chosen.value].value >= found[Returned.SOURCE_ONLY.value].value
    assert found[Returned.ROUND.value].value < found[Returned.SOURCE_ONLY.value].value
