"""Records of rounds for tests: made by hand, or compared without the time they took."""

from dataclasses import replace

from calida.training import RunStarted
from calida.validation import LabeledSummary, PredictionSummary, RoundRecord

EVEN = (0.25,) * 4


def labeled(accuracy=0.9, entropy=0.1, shares=EVEN, confidence=0.9):
    return LabeledSummary(entropy, entropy, 0.0, confidence, tuple(shares), accuracy, accuracy, 0.3, 0.2, 0.05)


def unlabeled(entropy=0.4, shares=EVEN, confidence=0.9):
    return PredictionSummary(entropy, entropy, 0.0, confidence, tuple(shares))


def without_times(history, **more):
    """The same records as if they had taken no time; `more` are other fields to make alike."""
    return [replace(record, seconds=0.0, **more) for record in history]


def is_round(event):
    return isinstance(event, RoundRecord)


def is_start(event):
    return isinstance(event, RunStarted)
