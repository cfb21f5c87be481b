"""Signs that a run goes wrong: each reason on records that have it alone, and none on healthy ones."""

from dataclasses import replace

import pytest
from histories import EVEN, labeled, unlabeled

from calida.run_warnings import RunWarning, WarningCode
from calida.validation import VALIDATORS, VOTERS, RoundRecord, collapse, dominant_class, warnings_of
from calida.validation.collapse import _FALSELY_SURE, _FORGOTTEN


def record(shares=EVEN, entropy=0.4, accuracy=0.95, source_entropy=0.1, source_shares=EVEN, confidence=0.9, **more):
    more = {"validators": dict.fromkeys(VALIDATORS, 0.5), **more}
    source = labeled(accuracy, source_entropy, source_shares)
    return RoundRecord("adapt", 2, 5, source, target=unlabeled(entropy, shares, confidence), **more)


START = record(entropy=0.6)
HISTORY = [RoundRecord("pretrain", 0, 2, labeled(0.2)), START]


def test_healthy_rounds_go_on():
    for healthy in (
        START,
        record(),
        record([0.3, 0.3, 0.2, 0.2]),
        record([0.4, 0.2, 0.2, 0.2], entropy=0.05),
        record(accuracy=0.8),
        record(entropy=2 * _FALSELY_SURE * 0.1),
    ):
        assert collapse(healthy, HISTORY) is None


def test_a_class_that_takes_over_stops_the_run():
    expected = RunWarning(WarningCode.CLASS_TAKES_OVER, {"name": "1", "share": 0.97})
    assert collapse(record([0.01, 0.97, 0.01, 0.01]), HISTORY) == expected
    named = collapse(record([1.0, 0, 0, 0]), HISTORY, ["cat", "dog", "cow", "hen"])
    assert named.values == {"name": "cat", "share": 1.0}


def test_a_class_that_was_there_before_adaptation_does_not():
    """The source-only classifier leans on it as much; adaptation is not to blame."""
    leaning = [0.01, 0.97, 0.01, 0.01]
    assert collapse(record(leaning), [record(leaning)]) is None


def test_a_class_that_is_as_large_on_source_does_not():
    unbalanced = [0.02, 0.94, 0.02, 0.02]
    shares = [0.01, 0.97, 0.01, 0.01]
    assert collapse(record(shares, source_shares=unbalanced), [record(source_shares=unbalanced)]) is None


def test_a_class_that_takes_the_source_as_well_is_still_taking_over():
    """The usual collapse is of the network, on both domains: its own source shares are no measure."""
    taken = [0.01, 0.97, 0.01, 0.01]
    assert collapse(record(taken, source_shares=taken), HISTORY).code == WarningCode.CLASS_TAKES_OVER


def test_false_certainty_stops_the_run():
    """Entropy on target far under that on source in the same round; on the border it goes on."""
    border = _FALSELY_SURE * START.source.entropy
    assert collapse(record(entropy=1.01 * border), HISTORY) is None
    expected = RunWarning(WarningCode.FALSE_CERTAINTY, {"target": 0.99 * border, "source": 0.1})
    assert collapse(record(entropy=0.99 * border), HISTORY) == expected
    # An easy task: both domains have become certain.
    assert collapse(record(entropy=0.99 * border, source_entropy=border), HISTORY) is None


def test_a_forgotten_source_stops_the_run():
    """Measured from chance, 25% of four classes; on the border it goes on."""
    lost = _FORGOTTEN * (0.95 - 0.25)
    assert collapse(record(accuracy=0.95 - 0.99 * lost), HISTORY) is None
    expected = RunWarning(WarningCode.SOURCE_FORGOTTEN, {"before": 0.95, "now": 0.95 - 1.01 * lost})
    assert collapse(record(accuracy=0.95 - 1.01 * lost), HISTORY) == expected


def test_a_source_that_was_never_learned_cannot_be_forgotten():
    for before in (0.25, 0.1):
        assert collapse(record(accuracy=0.0), [record(accuracy=before)]) is None


def test_nothing_is_said_before_there_is_something_to_compare_with():
    assert collapse(record([1.0, 0, 0, 0]), []) is None
    assert collapse(record([1.0, 0, 0, 0]), HISTORY[:1]) is None


def test_the_round_before_adaptation_is_what_counts_not_the_last_one():
    """A slow collapse is one too: each round is near the one before it, and far from the first."""
    path = [[0.25 + step, *[(0.75 - step) / 3] * 3] for step in (0.2, 0.35, 0.5, 0.65, 0.74)]
    history, reasons = [START], []
    for shares in path:
        reasons.append(collapse(record(shares), history))
        history.append(record(shares))
    assert reasons[0] is None
    assert reasons[-1].code == WarningCode.CLASS_TAKES_OVER


@pytest.mark.parametrize("classes", [2, 4, 10, 345])
def test_the_dominant_class(classes):
    even = [1 / classes] * classes
    assert dominant_class(even, even) is None
    for taken in (0, classes - 1):
        everything = [float(index == taken) for index in range(classes)]
        assert dominant_class(everything, even) == taken
        assert dominant_class(everything, everything) is None
        nothing_before = [0.0 if index == taken else 1 / (classes - 1) for index in range(classes)]
        assert dominant_class(everything, nothing_before) == taken


@pytest.mark.parametrize("classes", [2, 4, 10, 345])
def test_once_dominant_stays_dominant_as_it_grows(classes):
    even = [1 / classes] * classes
    found = []
    for step in range(101):
        share = 1 / classes + step / 100 * (1 - 1 / classes)
        found.append(dominant_class([share, *[(1 - share) / (classes - 1)] * (classes - 1)], even))
    assert found[0] is None
    assert found == sorted(found, key=lambda one: one is not None)
    assert set(found) == {None, 0}


def test_classes_are_judged_by_their_share_not_by_their_place():
    shares, expected = [0.1, 0.05, 0.8, 0.05], [0.4, 0.2, 0.1, 0.3]
    for order in ([0, 1, 2, 3], [2, 0, 3, 1], [3, 2, 1, 0]):
        found = dominant_class([shares[index] for index in order], [expected[index] for index in order])
        assert order[found] == 2


def test_warnings_tell_of_the_start_and_of_stops():
    assert warnings_of([*HISTORY, record()]) == []
    leaning = record([0.01, 0.97, 0.01, 0.01])
    (warning,) = warnings_of([HISTORY[0], leaning, record(leaning.target.class_shares)])
    assert warning == RunWarning(WarningCode.DOMINANT_BEFORE, {"name": "1", "share": 0.97, "expected": 0.25})
    stop = collapse(record([0.01, 0.97, 0.01, 0.01]), HISTORY)
    stopped = record([0.01, 0.97, 0.01, 0.01], kept=False, stopped=stop)
    assert warnings_of([*HISTORY, stopped]) == [replace(stop, round=2)]


def test_certainty_and_a_lost_source_are_forgiven_where_most_validators_are_pleased():
    """An easy target, or BatchNorm on the target's statistics; one class for all is forgiven by nobody."""
    half = len(VOTERS) // 2
    for pleased, goes_on in ((half, False), (half + 1, True)):
        values = dict.fromkeys(VALIDATORS, 0.5) | dict.fromkeys(VOTERS[:pleased], 0.9)
        for bad in ({"entropy": 1e-6}, {"accuracy": 0.2}):
            assert (collapse(record(**bad, validators=values), HISTORY) is None) == goes_on
        assert collapse(record([1.0, 0, 0, 0], validators=values), HISTORY) is not None
