"""Records, decisions and warnings on disk: read back as they were, or refused in one sentence."""

import json
import string
from dataclasses import replace

import pytest
from histories import EVEN, labeled, unlabeled

from calida import run_warnings
from calida.errors import CheckpointError
from calida.objective import MultiplierState
from calida.run_warnings import RunWarning, WarningCode
from calida.shift import MeasuredShift
from calida.validation import (
    DECIDING,
    DEFAULT_RULE,
    LAST,
    VALIDATORS,
    VOTERS,
    Decision,
    PseudoLabelSummary,
    Reason,
    Returned,
    RoundRecord,
    explain,
)

SHIFT = MeasuredShift((0.5, 0.5), (0.9, 0.1), 0.1, 100, 30.0, 0.9, 9.0, 2.0, 9.0)
STOP = RunWarning(WarningCode.CLASS_TAKES_OVER, {"name": "dog", "share": 0.97})
FULL = RoundRecord(
    "adapt",
    1,
    3,
    labeled(),
    {"likelihood": 0.2},
    10,
    1000,
    1.5,
    unlabeled(),
    PseudoLabelSummary(0.3, EVEN),
    {"target_entropy": MultiplierState(0.1, 0.2, None, 0.3)},
    {"source": 1e-3},
    SHIFT,
    dict.fromkeys(VALIDATORS, 0.5),
    labeled(0.8),
    False,
    STOP,
    "calida",
)
SPARSE = RoundRecord("pretrain", 0, 2, labeled())


@pytest.mark.parametrize("record", [FULL, SPARSE], ids=["full", "sparse"])
def test_a_record_reads_back_as_it_was(record):
    assert RoundRecord.from_json(json.loads(json.dumps(record.to_json()))) == record


def test_what_was_not_taken_has_no_key():
    assert FULL.to_json().keys() == {"kind", *RoundRecord.__dataclass_fields__}
    absent = {"terms", "target", "selected", "multipliers", "gradient_variance", "shift"}
    absent |= {"validators", "oracle", "stopped", "recipe"}
    assert SPARSE.to_json().keys() == FULL.to_json().keys() - absent


def damaged_values():
    """Every leaf of a full record as something else, and every value left out that a reader needs."""
    whole = json.loads(json.dumps(FULL.to_json()))
    for key in sorted(whole.keys() - {"kind"}):
        yield f"{key} is a list of lists", {**whole, key: [[]]}
    for key in ("phase", "round", "rounds", "source"):
        yield f"no {key}", {name: value for name, value in whole.items() if name != key}
    for part in ("source", "target", "selected", "shift", "oracle"):
        for key in whole[part]:
            yield f"{part}.{key} is a word", {**whole, part: {**whole[part], key: "much"}}
    yield "no target", {name: value for name, value in whole.items() if name != "target"}
    yield "no deciding validator", {**whole, "validators": {"im": 0.5}}
    yield "other classes", {**whole, "target": {**whole["target"], "class_shares": [1.0]}}
    yield "an unknown code", {**whole, "stopped": {"code": "rain", "values": {}}}
    yield "a code without its values", {**whole, "stopped": {"code": STOP.code.value, "values": {"name": "dog"}}}
    yield "a value that no number is", {**whole, "stopped": {**whole["stopped"], "values": {"name": 1, "share": "x"}}}
    yield "no record", ["adapt", 1]


@pytest.mark.parametrize("values", [pytest.param(values, id=name) for name, values in damaged_values()])
def test_a_damaged_record_is_refused_in_one_sentence(values):
    with pytest.raises(CheckpointError, match=r"^metrics is not what calida wrote") as caught:
        RoundRecord.from_json(values, "metrics")
    assert "\n" not in str(caught.value)


def decisions():
    """Every reason that there is, with all that a reader of it needs."""
    yield Decision(Returned.SOURCE_ONLY, Reason.SOURCE_RECIPE)
    yield Decision(Returned.SOURCE_ONLY, Reason.NO_SHIFT, shift=replace(SHIFT, separation=2.0))
    yield Decision(Returned.PRIOR_CORRECTED, Reason.NO_SHIFT, shift=SHIFT)
    for rule in (DEFAULT_RULE, LAST, "im"):
        yield Decision(Returned.SOURCE_ONLY, Reason.NO_ROUND_HELPED, rule, stopped_round=2)
    for reason in (Reason.LAST_ROUND, Reason.BEST, Reason.NEAR_BEST, Reason.NEAR_SOURCE_ONLY):
        for guard in (True, False):
            yield Decision(Returned.ROUND, reason, guard=guard, round=1, rounds=4, votes=VOTERS[:3])


@pytest.mark.parametrize("decision", list(decisions()), ids=lambda one: f"{one.reason.name}-{one.rule}-{one.guard}")
def test_every_decision_reads_back_and_has_words_of_its_own(decision):
    picks = {**dict.fromkeys(VALIDATORS, "rer-1"), DECIDING: "calida"}
    for one in (decision, replace(decision, weighs_classes=True), replace(decision, tried=3, picks=picks)):
        assert Decision.from_json(json.loads(json.dumps(one.to_json()))) == one
        words = explain(one)
        assert words[0].isupper()
        assert words.endswith(".")
        assert [explain(other) for other in decisions()].count(words) == (one is decision)
    assert explain(replace(decision, tried=3, picks=picks)).startswith(
        "Of 3 recipes, calida has the best corr-c; 1 of 9"
    )


@pytest.mark.parametrize(
    "change",
    [
        {"returned": "nothing"},
        {"reason": "it is so"},
        {"reason": Reason.NO_SHIFT.value},
        {"round": None},
        {"returned": Returned.SOURCE_ONLY.value},
        {"votes": 3},
        {"picks": {"im": "calida"}},
    ],
    ids=str,
)
def test_a_damaged_decision_is_refused(change):
    values = Decision(Returned.ROUND, Reason.BEST, round=1, rounds=4).to_json()
    with pytest.raises(CheckpointError, match=r"^the model is not what calida wrote"):
        Decision.from_json({**values, **change}, "the model")


@pytest.mark.parametrize("code", WarningCode, ids=lambda code: code.name)
def test_every_warning_has_a_sentence_and_needs_its_values(code):
    """Hostile text among the values stays text: braces in a class name are no placeholders."""
    names = [name for _, name, _, _ in string.Formatter().parse(run_warnings.WORDS[code]) if name]
    values = {name: "{share.real}" if name == "name" else 0.25 for name in names}
    warning = RunWarning(code, values)
    assert RunWarning.from_json(json.loads(json.dumps(warning.to_json()))) == warning
    assert ("{share.real}" in str(warning)) == ("name" in names)
    for name in names:
        with pytest.raises(ValueError, match="lacks or garbles"):
            RunWarning(code, {key: value for key, value in values.items() if key != name})


def test_a_warning_of_a_round_says_which():
    assert str(replace(STOP, round=2)) == f"Round 3 was {STOP}."
