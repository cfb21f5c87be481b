"""Choosing among runs: ranks against scipy, and candidates of which one is known to be the best."""

import itertools

import numpy as np
import pytest
from scipy.stats import rankdata, spearmanr

from calida.validation import (
    DECIDING,
    ENSV,
    VALIDATORS,
    Candidate,
    agreement_with_others,
    choose_candidate,
    ensemble_agreement,
    rank,
)


def keys_to_values(keys):
    """Values that stand at these keys, for which more is better whatever the validator."""
    return {name: VALIDATORS[name].key(keys[name]) for name in VALIDATORS}


@pytest.fixture
def make(random_log_probs):
    """Candidates of random or given keys; each predicts a noisy version of one truth."""

    def candidates(names, seed=0, keys=None):
        chance = np.random.default_rng(seed)
        truth = random_log_probs(200, 4, seed)
        return {
            name: Candidate(
                keys_to_values({one: chance.normal() for one in VALIDATORS} if keys is None else keys[name]),
                (truth + (index + 1) * random_log_probs(200, 4, seed + 10 + index)).log_softmax(-1),
            )
            for index, name in enumerate(names)
        }

    return candidates


@pytest.mark.parametrize("count", [1, 2, 7, 40])
def test_ranks_agree_with_scipy(count):
    chance = np.random.default_rng(0)
    for values in (chance.normal(size=count), chance.integers(0, 4, count).astype(float), np.zeros(count)):
        np.testing.assert_allclose(rank(values.tolist()), rankdata(-values, method="average"))


def test_a_candidate_that_is_best_by_all_wins(make):
    even = dict.fromkeys(VALIDATORS, 0.0)
    for place in range(3):
        names = ["a", "b", "c"]
        names.insert(place, names.pop(0))
        best = {name: dict.fromkeys(VALIDATORS, 1.0) if name == "a" else even for name in names}
        candidates = make(names, keys=best)
        same = candidates["a"].log_probs
        found = choose_candidate({name: one._replace(log_probs=same) for name, one in candidates.items()})
        assert found.chosen == "a"
        assert {found.picks[name] for name in VALIDATORS} == {"a"}


@pytest.mark.parametrize("seed", range(5))
def test_the_choice_is_the_deciding_validators(make, seed):
    """All of it again, with numpy and scipy."""
    names = ["a", "b", "c", "d", "e"]
    candidates = make(names, seed)
    found = choose_candidate(candidates)
    agreement = ensemble_agreement([candidates[name].log_probs for name in names])
    keys = {one: [VALIDATORS[one].key(candidates[name].validators[one]) for name in names] for one in VALIDATORS} | {
        ENSV: agreement
    }
    ranks = {one: rankdata(-np.array(values)) for one, values in keys.items()}
    assert found.chosen == names[int(ranks[DECIDING].argmin())]
    for place, name in enumerate(names):
        assert found.table[name][ENSV] == pytest.approx(agreement[place])
        assert {one: found.table[name][one] for one in VALIDATORS} == candidates[name].validators
    assert found.picks == {one: names[int(np.argmax(values))] for one, values in keys.items()}
    pairs = [spearmanr(keys[one], keys[other]).statistic for one, other in itertools.combinations(keys, 2)]
    assert found.agreement == pytest.approx(np.mean(pairs), abs=1e-9)
    own = sum(pick == found.chosen for pick in found.picks.values())
    assert found.reason == f"{found.chosen} has the best {DECIDING}; {own} of {len(keys)} validators would choose it."


def test_the_order_of_candidates_does_not_matter(make):
    candidates = make(["a", "b", "c", "d"], seed=4)
    expected = choose_candidate(candidates)
    assert len({row[ENSV] for row in expected.table.values()}) == 4  # no ties, of which the first would be picked
    for order in itertools.permutations(candidates):
        found = choose_candidate({name: candidates[name] for name in order})
        assert (found.chosen, found.reason, found.picks) == (expected.chosen, expected.reason, expected.picks)
        assert found.agreement == pytest.approx(expected.agreement, abs=1e-12)
        for name, row in expected.table.items():
            assert found.table[name] == pytest.approx(row, abs=1e-12)


def test_agreement_is_one_where_validators_agree_and_less_where_not(make):
    names = ["a", "b", "c"]
    agreed = {name: dict.fromkeys(VALIDATORS, float(place)) for place, name in enumerate(names)}
    candidates = make(names, keys=agreed)
    same = {name: one._replace(log_probs=candidates["a"].log_probs) for name, one in candidates.items()}
    assert choose_candidate(same).agreement == pytest.approx(1)  # ENSV tells nobody apart, and has no say in it
    divided = {
        name: {one: float(place if index % 2 else -place) for index, one in enumerate(VALIDATORS)}
        for place, name in enumerate(names)
    }
    same = {name: one._replace(validators=keys_to_values(divided[name])) for name, one in same.items()}
    ways, total = len(VALIDATORS) // 2, len(VALIDATORS) * (len(VALIDATORS) - 1) / 2
    other = len(VALIDATORS) - ways
    alike = ways * (ways - 1) / 2 + other * (other - 1) / 2
    assert choose_candidate(same).agreement == pytest.approx((alike - ways * other) / total)


def test_of_equals_the_one_that_the_ensemble_agrees_with_wins(random_log_probs):
    """One is better by ENSV, the other by a validator that does not decide; nor does the order they come in."""
    sure, unsure = random_log_probs(100, 4, 0, sharpness=9.0), random_log_probs(100, 4, 1, sharpness=0.5)
    even = dict.fromkeys(VALIDATORS, 0.0)
    other = next(name for name in VALIDATORS if name != DECIDING)
    candidates = {
        "other": Candidate(keys_to_values({**even, other: 1.0}), unsure),
        "agreed": Candidate(keys_to_values(even), sure),
    }
    for order in (("other", "agreed"), ("agreed", "other")):
        found = choose_candidate({name: candidates[name] for name in order})
        assert found.table["agreed"][ENSV] > found.table["other"][ENSV]
        assert found.chosen == "agreed"


def test_one_candidate_is_chosen(make):
    found = choose_candidate(make(["only"]))
    assert (found.chosen, found.agreement) == ("only", 1.0)
    assert found.table["only"][ENSV] == 1.0


def test_agreement_with_others_counts_equal_labels(make):
    candidates = make(["a", "b", "c"], seed=3)
    labels = {name: candidate.log_probs.argmax(-1).tolist() for name, candidate in candidates.items()}
    for name, own in labels.items():
        shares = [
            np.mean([mine == theirs for mine, theirs in zip(own, others, strict=True)])
            for other, others in labels.items()
            if other != name
        ]
        assert agreement_with_others(name, candidates) == pytest.approx(np.mean(shares))
