"""Which round is kept: hand-made records against the rule in words."""

import itertools
import json
import random
from dataclasses import replace

import pytest
from histories import labeled, unlabeled

from calida.errors import InputError
from calida.run_warnings import RunWarning, WarningCode
from calida.shift import MeasuredShift
from calida.validation import (
    DEFAULT_RULE,
    LAST,
    SOURCE_ONLY,
    TOLERANCE,
    VALIDATORS,
    VOTERS,
    Decision,
    Reason,
    Returned,
    RoundRecord,
    check_rule,
    decide,
    merit,
    prefers,
    votes,
)

MAJORITY = len(VOTERS) // 2 + 1
RULES = (DEFAULT_RULE, LAST, *VALIDATORS)


def record(keys, index=None, rounds=None, **more):
    """A round whose validators stand at these keys, for which more is better whatever the validator."""
    values = {name: VALIDATORS[name].key(keys[name]) for name in VALIDATORS}  # turned twice is as it was
    place = ("pretrain", 1, 2) if index is None else ("adapt", index, rounds)
    return RoundRecord(*place, labeled(), target=unlabeled(), validators=values, **more)


def even(value):
    return dict.fromkeys(VALIDATORS, value)


def kept_by(rule, guard, all_keys):
    """Feed rounds one after another, as a run does; give the history."""
    start, *later = all_keys
    history = [RoundRecord("pretrain", 0, 2, labeled()), record(start)]
    for index, keys in enumerate(later):
        now = record(keys, index, len(later))
        history.append(replace(now, kept=prefers(rule, now, history, guard)))
    return history


def last_kept(history):
    """The number of the kept round, 0 for source only."""
    looked = [past for past in history if past.validators]
    return max(place for place, past in enumerate(looked) if past.kept)


def random_runs(count, rounds=5, seed=0):
    chance = random.Random(seed)
    for _ in range(count):
        yield [{name: chance.gauss(place * 0.3, 1) for name in VALIDATORS} for place in range(rounds + 1)]


def won(keys, start):
    return sum(keys[name] > start[name] for name in VOTERS)


@pytest.mark.parametrize("rule", RULES)
def test_with_the_guard_no_round_is_kept_that_loses_the_vote(rule):
    refused = 0
    for run in random_runs(60):
        history = kept_by(rule, True, run)
        for keys, past in zip(run[1:], history[2:], strict=True):
            if won(keys, run[0]) < MAJORITY:
                assert not past.kept
                refused += 1
    assert refused > 20


@pytest.mark.parametrize("rule", RULES)
def test_without_the_guard_the_first_round_is_always_kept(rule):
    for run in [*random_runs(30), [even(1.0), even(-1.0)], [even(0.0), even(0.0)]]:
        assert kept_by(rule, False, run)[2].kept


@pytest.mark.parametrize("guard", [False, True])
def test_the_rule_last_keeps_the_last_that_may_be_kept(guard):
    for run in random_runs(60):
        history = kept_by(LAST, guard, run)
        allowed = [
            0,
            *(place for place, keys in enumerate(run) if place and (not guard or won(keys, run[0]) >= MAJORITY)),
        ]
        assert last_kept(history) == allowed[-1]


@pytest.mark.parametrize("name", VALIDATORS)
def test_a_validators_name_picks_its_best_round(name):
    """Turned the right way: the highest source accuracy, the lowest entropy."""
    for run in random_runs(40):
        assert last_kept(kept_by(name, False, run)) == max(range(1, len(run)), key=lambda place: run[place][name])
    scale = {"low": 0.1, "high": 0.9}
    values = {word: replace(record(even(0.0)), validators={**even(0.0), name: value}) for word, value in scale.items()}
    better = "high" if VALIDATORS[name].higher_is_better else "low"
    assert max(values, key=lambda word: merit(name, values[word])) == better


@pytest.mark.parametrize("rule", [DEFAULT_RULE, *VALIDATORS])
def test_what_is_kept_at_the_end_is_the_best_of_what_the_guard_allows(rule):
    """And so at every moment before the end: a run that is cut off has kept the best so far."""
    sources = 0
    for run in random_runs(60, seed=1):
        history = kept_by(rule, True, run)
        looked = history[1:]
        for end in range(1, len(run) + 1):
            allowed = [place for place in range(1, end) if won(run[place], run[0]) >= MAJORITY]
            best = max([0, *allowed], key=lambda place: merit(rule, looked[place]))
            if rule == DEFAULT_RULE:
                top = merit(rule, looked[best])
                near = [place for place in allowed if merit(rule, looked[place]) >= top - TOLERANCE * abs(top)]
                best = max(near, default=best)
            assert last_kept(history[: end + 1]) == best
        sources += last_kept(history) == 0
    assert 0 < sources < 60


@pytest.mark.parametrize("rule", VALIDATORS)
def test_of_equal_rounds_the_first_is_kept(rule):
    assert last_kept(kept_by(rule, False, [even(0.0), even(1.0), even(1.0)])) == 1
    assert last_kept(kept_by(rule, True, [even(0.0), even(1.0), even(1.0)])) == 1
    assert last_kept(kept_by(rule, True, [even(0.0), even(0.0), even(0.0)])) == 0


def test_the_default_rule_keeps_the_last_of_rounds_that_hardly_differ():
    """Each is measured against the best there was, so that many small steps down do not add up."""
    history = kept_by(DEFAULT_RULE, False, [even(value) for value in (0.0, 2.0, 1.992, 1.991, 1.989)])
    assert [past.kept for past in history[2:]] == [True, True, True, False]
    assert last_kept(history) == 3
    assert decide(history, DEFAULT_RULE, False).reason == Reason.NEAR_BEST
    assert last_kept(kept_by(DEFAULT_RULE, True, [even(0.0), even(1.0), even(1.0)])) == 2
    assert last_kept(kept_by(DEFAULT_RULE, True, [even(0.0), even(0.0), even(0.0)])) == 0


def test_a_round_that_won_the_vote_may_differ_from_the_source_only_classifier_by_as_little():
    """What is no difference among rounds is none from it either; small steps down do not add up here too."""
    start = even(2.0)

    def elected(value):
        return {**even(3.0), "corr-c": value}

    history = kept_by(DEFAULT_RULE, True, [start, elected(1.991), elected(1.989), elected(1.9905)])
    assert [past.kept for past in history[2:]] == [True, False, True]
    decision = decide(history, DEFAULT_RULE, True)
    assert decision.reason == Reason.NEAR_SOURCE_ONLY
    assert decision.votes == tuple(name for name in VOTERS if name != "corr-c")
    assert last_kept(kept_by("corr-c", True, [start, elected(1.991)])) == 0


def test_without_the_guard_the_source_only_classifier_is_no_rival():
    """A round that is far under it is the best there is."""
    history = kept_by(DEFAULT_RULE, False, [even(3.0), even(2.0), even(1.0)])
    assert last_kept(history) == 1
    assert decide(history, DEFAULT_RULE, False).reason == Reason.BEST


def test_votes_name_the_voters_that_find_a_round_better():
    for better in itertools.chain.from_iterable(
        itertools.combinations(VOTERS, size) for size in range(len(VOTERS) + 1)
    ):
        keys = {**even(0.0), **dict.fromkeys(better, 1.0)}
        assert votes(record(keys, 0, 1), record(even(0.0))) == list(better)
        assert prefers(LAST, record(keys, 0, 1), [record(even(0.0))], True) == (len(better) >= MAJORITY)


def test_a_tie_is_no_vote():
    assert votes(record(even(2.0), 0, 1), record(even(2.0))) == []


def test_records_may_hold_more_than_is_read():
    """Oracle figures, and rounds that were not looked at, do not enter."""
    for run in random_runs(10):
        plain = kept_by(DEFAULT_RULE, True, run)
        told = [replace(past, oracle=labeled(1.0 / (1 + place))) for place, past in enumerate(plain)]
        for place in range(2, len(plain)):
            assert prefers(DEFAULT_RULE, told[place], told[:place], True) == plain[place].kept


@pytest.mark.parametrize("guard", [False, True])
@pytest.mark.parametrize("rule", RULES)
def test_the_decision_names_the_round_that_was_kept(rule, guard):
    seen = set()
    for run in [*random_runs(30, seed=2), [even(0.0), *[even(-1.0)] * 5]]:
        history = kept_by(rule, guard, run)
        decision, number = decide(history, rule, guard), last_kept(history)
        assert decision.candidate == (SOURCE_ONLY if number == 0 else f"round {number} of 5")
        assert (decision.rule, decision.guard) == (rule, guard)
        seen.add(number == 0)
        if number == 0:
            assert decision.reason == Reason.NO_ROUND_HELPED
        else:
            assert decision.votes == tuple(name for name in VOTERS if run[number][name] > run[0][name])
            assert (decision.reason == Reason.LAST_ROUND) == (rule == LAST)
        assert Decision.from_json(json.loads(json.dumps(decision.to_json()))) == decision
    assert seen == ({True, False} if guard else {False})


def test_a_run_that_was_stopped_says_in_which_round():
    stop = RunWarning(WarningCode.CLASS_TAKES_OVER, {"name": "1", "share": 0.97})
    run = [record(even(0.0)), record(even(1.0), 0, 2, kept=False, stopped=stop)]
    assert decide(run, DEFAULT_RULE, True) == Decision(Returned.SOURCE_ONLY, Reason.NO_ROUND_HELPED, stopped_round=0)


def apart(as_it_is, by_class=9.0, centred=9.0):
    """Shares that clearly help, if it is them that differ."""
    return MeasuredShift((0.5, 0.5), (0.9, 0.1), 0.13, 100, 20.1, 0.9, as_it_is, by_class, centred)


NEAR, FAR, ALIKE, MOVED = apart(2.9), apart(3.1, 3.1), apart(9.0, 2.9, 2.0), apart(9.0, 2.9, 1.8)
SMALL = apart(9.0, None)  # too few samples of the same classes


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize(
    ("measured", "guard", "kept"),
    [
        (NEAR, True, False),
        (ALIKE, True, False),
        (NEAR, False, True),
        (FAR, True, True),
        (MOVED, True, True),
        (SMALL, True, True),
        (None, True, True),
    ],
)
def test_where_nothing_tells_the_domains_apart_the_guard_keeps_source_only(rule, measured, guard, kept):
    """However well a round does by the validators; without the guard, and where it is not known, rounds are judged."""
    start, better = record(even(0.0), shift=measured), record(even(1.0), 0, 1)
    assert prefers(rule, better, [start], guard) == kept
    decision = decide([start, replace(better, kept=kept)], rule, guard)
    assert decision.returned == (Returned.ROUND if kept else Returned.SOURCE_ONLY)
    assert (decision.reason == Reason.NO_SHIFT) == (not kept)
    assert decision.shift == (None if kept else measured)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, True),
        ({"gain": 19.9}, False),  # twice the root of the answers that change
        ({"gain": float("nan")}, False),
        ({"share_error": 0.14}, False),  # a third of what they moved by, 0.4
        ({"separation": 2.9}, False),
        ({"centred_separation": 3.8}, False),  # not clearly worse than the classes' own
    ],
)
def test_where_classes_differ_in_frequency_alone_source_only_is_told(changes, told):
    """If that is sure, and more answers turn right than as many would by chance."""
    found = replace(apart(9.0, 2.9), **changes)
    run = [record(even(0.0), shift=found), record(even(1.0), 0, 1, kept=False)]
    expected = Returned.PRIOR_CORRECTED if told else Returned.SOURCE_ONLY
    assert decide(run, DEFAULT_RULE, True).returned == expected


def test_a_recipe_without_adaptation_says_so():
    decision = decide([record(even(0.0))], DEFAULT_RULE, True)
    assert decision == Decision(Returned.SOURCE_ONLY, Reason.SOURCE_RECIPE)


@pytest.mark.parametrize(
    ("rule", "near"), [("lats", "last"), ("corrc", "corr-c"), ("mix-val", "mixval"), ("?", "default")]
)
def test_an_unknown_rule_gets_the_nearest_names(rule, near):
    with pytest.raises(InputError, match=f"(did you mean|there are) .*{near}") as caught:
        check_rule(rule)
    assert str(caught.value).startswith(f"unknown choice {rule!r}")


def test_every_rule_is_known_and_voters_are_validators():
    for rule in RULES:
        check_rule(rule)
    assert set(VOTERS) <= set(VALIDATORS)
    assert len(VOTERS) % 2  # or half the votes would be neither won nor lost
