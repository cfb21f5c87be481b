"""The verdict: two answers, one finding, one action, from findings, estimate and labels."""

import re
import shlex
import string
from dataclasses import replace

import pytest

from calida.adaptation import Evidence, Level, Measured, judge
from calida.cli.app import app
from calida.estimation import Estimate
from calida.run_warnings import WORDS, RunWarning, Severity, WarningCode, by_severity
from calida.validation import VALIDATORS, VOTERS, Decision, Reason, Returned

ROUND = Decision(Returned.ROUND, Reason.BEST, round=1, rounds=2, votes=VOTERS[:4])
SOURCE = Decision(Returned.SOURCE_ONLY, Reason.NO_ROUND_HELPED)
ALARM = RunWarning(WarningCode.OUTSIDE, {"share": 0.4})
CARE = RunWarning(WarningCode.BACKGROUND, {"source": 0.1, "target": 0.9})
NOTE = RunWarning(WarningCode.FEW_SAMPLES, {"domain": "The target", "count": 70})
STOPPED = RunWarning(WarningCode.CLASS_TAKES_OVER, {"name": "a", "share": 0.9}, round=3)
GOOD, WIDE, MIDDLING, POOR = (
    Estimate(*ends) for ends in ((0.95, 0.85, 1), (0.9, 0.6, 1), (0.8, 0.74, 0.88), (0.4, 0.3, 0.5))
)


def given(estimate=GOOD, *findings, decision=ROUND, **more):
    return Evidence(decision, estimate, findings, classes=10, samples=300, **{"sure": 0.05, "run": "my run", **more})


def labels(before, after, gain, count=300, width=0.0):
    ends = [Estimate(one, max(one - width, 0), min(one + width, 1)) for one in (before, after)]
    return Measured(*ends, count, gain, all=not width)


CASES = {
    "all is well": (given(), Level.GOOD, "Yes", "calida predict 'my run' NEW_DATA --out new.csv"),
    "a note worries nobody": (given(GOOD, NOTE), Level.GOOD, "Yes", "calida predict"),
    "an alarm": (given(GOOD, NOTE, ALARM), Level.BAD, "No, not as it is", "calida label 'my run' --budget 50"),
    "a round that the guard stopped": (given(GOOD, STOPPED), Level.CARE, "Not before a check", "calida label"),
    "something to look at": (given(GOOD, CARE), Level.CARE, "Not before a check", "calida label 'my run' --budget 50"),
    "an interval that says nothing": (given(WIDE), Level.CARE, "Not before a check", "calida label"),
    "more wrong than right": (given(POOR), Level.BAD, "No", "calida label"),
    "some wrong": (given(MIDDLING), Level.CARE, "Where it is sure", "calida predict 'my run' NEW_DATA --coverage 0.8"),
    "abstaining would not help": (given(MIDDLING, sure=0.19), Level.CARE, "Where it is sure", "calida label"),
    "photographs without an encoder": (given(MIDDLING, install="pip install x"), Level.CARE, "", "pip install x"),
    "good all the same": (given(GOOD, install="pip install x"), Level.GOOD, "Yes", "calida predict"),
    "measured": (given(MIDDLING, CARE, measured=labels(0.7, 0.8, 1)), Level.CARE, "Where it is sure", "--coverage 0.8"),
    "measured and good": (given(GOOD, CARE, measured=labels(0.7, 0.95, 1)), Level.GOOD, "Yes", "calida predict"),
    "measured harm": (given(MIDDLING, measured=labels(0.9, 0.8, -1)), Level.CARE, "Where", "--recipe source"),
    "measured and poor": (given(POOR, measured=labels(0.4, 0.42, 0)), Level.BAD, "No", "--recipe auto"),
    "a few labels": (
        given(MIDDLING, measured=labels(0.7, 0.8, 0, 20, 0.2)),
        Level.CARE,
        "Not before more labels",
        "calida label 'my run' --budget 200 --out 'my run/label-200'",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_answer_and_the_one_action(case):
    evidence, level, short, command = CASES[case]
    verdict = judge(evidence)
    assert verdict.use.level == level
    assert verdict.use.short.startswith(short)
    assert command in verdict.action.command
    assert verdict.headline == f"{verdict.use.short}. {verdict.use.words}"
    if verdict.action.command.startswith("calida"):
        assert shlex.split(verdict.action.command)[1] in {one.callback.__name__ for one in app.registered_commands}


def test_the_most_important_finding_comes_first_and_once():
    assert judge(given(GOOD, NOTE, CARE, ALARM, CARE)).findings == (ALARM, CARE, NOTE)
    assert by_severity([]) == ()
    assert judge(given()).finding is None


def test_labels_that_the_estimate_misses_are_the_headline():
    for measured, level in ((0.6, Level.BAD), (0.97, Level.CARE)):
        verdict = judge(given(MIDDLING, CARE, measured=labels(0.5, measured, 1)))
        assert verdict.level == level
        assert verdict.headline == str(verdict.finding)
        assert f"{measured:.1%}" in verdict.headline
        assert "80.0%" in verdict.headline
        assert verdict.findings[1] == CARE
    near = judge(given(MIDDLING, measured=labels(0.5, 0.65, 0, 50, 0.1)))  # 55 to 75 % reaches the interval
    assert near.missed is None
    assert judge(given(MIDDLING, measured=labels(0.5, 0.6, 0, 50, 0.1))).missed is not None


def test_what_labels_have_answered_worries_nobody():
    falls = RunWarning(WarningCode.ACCURACY_FALLS, {"source": 0.99, "target": 0.7})
    assert judge(given(GOOD, falls, ALARM)).findings == (falls, ALARM)
    few = judge(given(GOOD, falls, ALARM, measured=labels(0.7, 0.9, 1, 50, 0.1)))
    assert few.findings == (ALARM,)  # a few labels say how often it is right, and nothing of the rest
    every = judge(given(GOOD, falls, ALARM, measured=labels(0.7, 0.95, 1)))
    assert every.findings == ()
    assert every.use.level == Level.GOOD


def test_no_more_samples_are_to_be_labeled_than_there_are():
    evidence = replace(given(MIDDLING, measured=labels(0.7, 0.8, 0, 20, 0.2)), samples=140)
    assert judge(evidence).action.words == "Label all of the target."
    assert "--budget 140" in judge(evidence).action.command


HELPED = {
    "votes": (given(), "4 of 5 checks"),
    "fell back": (given(decision=SOURCE), "as it was before"),
    "measured gain": (given(measured=labels(0.77, 0.95, 1)), "From 77.0% to 95.0% right"),
    "measured harm": (given(measured=labels(0.95, 0.77, -1)), "From 95.0% to 77.0% right"),
    "measured nothing": (given(measured=labels(0.8, 0.802, 0)), "80.0% right before and 80.2% after"),
    "source recipe": (given(decision=Decision(Returned.SOURCE_ONLY, Reason.SOURCE_RECIPE)), "source alone"),
    "guard off": (given(decision=Decision(Returned.ROUND, Reason.LAST_ROUND, guard=False, round=1)), "off"),
    **{
        kind.value: (
            given(
                decision=Decision(
                    kind,
                    Reason.AGREEMENT,
                    round=1,
                    rounds=2,
                    compared={one.value: 0.6 for one in (Returned.SOURCE_ONLY, Returned.ROUND, Returned.AVERAGE)},
                )
            ),
            words,
        )
        for kind, words in (
            (Returned.ROUND, "60% right before and 60% after"),
            (Returned.AVERAGE, "average of before and after"),
            (Returned.SOURCE_ONLY, "as it was before"),
        )
    },
}


@pytest.mark.parametrize("case", HELPED)
def test_whether_adaptation_helped_is_a_question_of_its_own(case):
    evidence, words = HELPED[case]
    assert words in judge(evidence).helped.words


NAMED = set(VALIDATORS) - {"source"}  # which is a word as well
JARGON = re.compile(rf"\b(nats?|temperature|oracle|entropy|{'|'.join(NAMED)})\b")


@pytest.mark.parametrize("code", WarningCode)
def test_any_finding_can_stand_on_the_first_screen(code):
    fields = [name for _, name, form, _ in string.Formatter().parse(WORDS[code]) if name]
    numbers = {name: form for _, name, form, _ in string.Formatter().parse(WORDS[code]) if name and form}
    warning = RunWarning(code, {name: 0.5 if re.search(r"[gf%]$", numbers.get(name, "")) else 7 for name in fields})
    assert JARGON.search(str(warning)) is None
    told = judge(given(GOOD, warning)).to_json()
    assert told["finding"]["severity"] in {one.value for one in Severity}
    assert told["finding"]["text"] == str(warning)


def test_no_answer_speaks_of_validators_nats_or_temperatures():
    for evidence, *_ in (*CASES.values(), *HELPED.values()):
        verdict = judge(evidence)
        words = (verdict.headline, verdict.helped.words, verdict.estimate, verdict.action.words)
        assert not [text for text in words if JARGON.search(text)]
