"""What class shares and certainty on target give reason to worry about, on answers that are made up."""

import pytest
import torch
from histories import labeled, unlabeled

from calida.adaptation.answer_findings import look_at_answers
from calida.model import Prediction
from calida.run_warnings import Severity, WarningCode
from calida.uncertainty import renyi_entropy
from calida.validation import DomainPredictions, Mixed, RoundRecord

NAMES = ["plain", "x" * 5000, "rare"]


def said(labels, sure=0.9):
    """A classifier that gives these labels, each with this probability."""
    labels = torch.tensor(labels)
    probs = torch.full((len(labels), 3), (1 - sure) / 2, dtype=torch.float64)
    probs[torch.arange(len(labels)), labels] = sure
    log_probs, nothing = probs.log(), torch.zeros(len(labels))
    return Prediction(log_probs, renyi_entropy(log_probs), nothing, nothing, torch.zeros(len(labels), 1))


def start(accuracy=0.95, entropy=0.5, before=(1 / 3,) * 3, confidence=0.5):
    target = unlabeled(shares=before, confidence=confidence)
    return RoundRecord("pretrain", 0, 1, labeled(accuracy, entropy, [1 / 3] * 3), target=target)


def codes(target, expected=(0, 1, 2) * 40, sure=0.9, temperature=1.0, adapted=True, known=(), held=None, **of_start):
    held = said(list(expected if held is None else held), sure)
    predictions = DomainPredictions(
        held, torch.tensor(expected), said(target, sure), Mixed(held.log_probs, held.labels, held.labels)
    )
    found = look_at_answers(start(**of_start), predictions, temperature, adapted, known, NAMES)
    return {one.code: one for one in found}


def test_nothing_is_found_where_nothing_is_wrong():
    assert codes([0, 1, 2] * 40) == {}


def test_a_class_that_takes_all_and_those_that_are_lost():
    found = codes([0] * 120)
    assert set(found) == {WarningCode.CLASS_COLLAPSED, WarningCode.CLASS_LOST}
    assert found[WarningCode.CLASS_COLLAPSED].severity == Severity.ALARM
    assert "plain takes 100.0%" in str(found[WarningCode.CLASS_COLLAPSED])
    assert "rare" in str(found[WarningCode.CLASS_LOST])
    assert len(str(found[WarningCode.CLASS_LOST])) < 200  # a name of 5,000 letters is told by its ends


def test_what_source_only_leaned_to_by_itself_has_not_collapsed():
    assert WarningCode.CLASS_COLLAPSED not in codes([0] * 120, before=(0.7, 0.2, 0.1))
    assert WarningCode.CLASS_COLLAPSED in codes([0] * 120, before=(0.6, 0.2, 0.2))


@pytest.mark.parametrize(("missed", "told"), [(9, False), (10, True)])
def test_a_class_is_missed_where_ten_of_it_were_to_be_expected(missed, told):
    rows = 3 * missed
    assert (WarningCode.CLASS_LOST in codes([0, 1] * (rows // 2) + [0] * (rows % 2))) == told


def test_what_was_frequent_on_source_may_be_so_on_target():
    shares = (0.94, 0.03, 0.03)
    assert codes([0] * 94 + [1] * 3 + [2] * 3, expected=(0,) * 116 + (1, 1, 2, 2), before=shares) == {}


def test_certainty_counts_beside_that_on_source_and_in_an_adapted_classifier_alone():
    """Three classes at 99 % have an entropy of 0.063 nats."""
    assert WarningCode.TOO_CERTAIN in codes([0, 1, 2] * 40, sure=0.99, entropy=0.13, accuracy=0.99)
    assert WarningCode.TOO_CERTAIN not in codes([0, 1, 2] * 40, sure=0.99, entropy=0.12, accuracy=0.99)
    assert WarningCode.TOO_CERTAIN not in codes([0, 1, 2] * 40, sure=0.99, entropy=0.13, accuracy=0.99, adapted=False)
    (told,) = codes([0, 1, 2] * 40, sure=0.99, entropy=0.63, accuracy=0.99).values()
    assert "10 times less" in str(told)


@pytest.mark.parametrize(("confidence", "warned"), [(0.9, False), (0.96, True)])
def test_class_shares_that_moved_further_than_doubt_explains_are_told_of(confidence, warned):
    """Shares 0.1 apart are more than twice a doubt of 0.04, and less than twice one of 0.1."""
    target = [0] * 52 + [1] * 40 + [2] * 28
    found = codes(target, confidence=confidence)
    assert list(found) == [WarningCode.SHARES_MOVED] * warned
    assert all(one.values == pytest.approx({"moved": 0.1, "doubt": 1 - confidence}) for one in found.values())
    # What the source-only classifier said by itself has not moved.
    assert codes(target, confidence=confidence, before=(52 / 120, 40 / 120, 28 / 120)) == {}


@pytest.mark.parametrize(("wrong", "told"), [(11, False), (13, True)])
def test_a_source_that_is_known_less_well_than_before_is_told_of(wrong, told):
    """Of 120 held-out samples 114 were right before; five points are six samples."""
    held = [(label + (place < wrong)) % 3 for place, label in enumerate([0, 1, 2] * 40)]
    assert (WarningCode.SOURCE_LOSS in codes([0, 1, 2] * 40, held=held, accuracy=114 / 120)) == told


def test_a_weak_source_and_too_much_confidence_are_told_once():
    found = codes([0, 1, 2] * 40, accuracy=0.45)
    assert list(found) == [WarningCode.WEAK_SOURCE, WarningCode.OVERCONFIDENT]
    assert found[WarningCode.OVERCONFIDENT].values["confidence"] == pytest.approx(0.9)
    assert list(codes([0, 1, 2] * 40, accuracy=0.45, known={WarningCode.WEAK_SOURCE})) == [WarningCode.OVERCONFIDENT]
    assert WarningCode.OVERCONFIDENT not in codes([0, 1, 2] * 40, accuracy=0.75, temperature=3.0)
