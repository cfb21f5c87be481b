"""Choosing among finished runs on one target, and how far the validators disagree about them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from calida.uncertainty import accuracy
from calida.validation.decision import DECIDING, explain_picks
from calida.validation.prediction_scores import ensemble_agreement
from calida.validation.validators import VALIDATORS

ENSV = "ensv"


class Candidate(NamedTuple):
    """A finished run: its validators' values and its predictions on the target that all candidates share."""

    validators: Mapping[str, float]
    log_probs: Tensor  # [N, K]


class Selection(NamedTuple):
    """The chosen candidate, and what every validator makes of all of them."""

    chosen: str
    table: dict[str, dict[str, float]]  # candidate -> validator -> value
    picks: dict[str, str]  # validator -> the candidate that it would choose
    agreement: float  # mean rank correlation of any two validators, 1 if all say the same

    @property
    def reason(self) -> str:
        return explain_picks(self.picks)


def choose_candidate(candidates: Mapping[str, Candidate]) -> Selection:
    """The candidate that the deciding validator prefers; among equals, the one that agrees most with all of them."""
    names = list(candidates)
    agreements = ensemble_agreement([candidate.log_probs for candidate in candidates.values()])
    table = {
        name: {**candidate.validators, ENSV: value}
        for (name, candidate), value in zip(candidates.items(), agreements, strict=True)
    }
    ranks = {
        validator: rank([turned(validator, table[name][validator]) for name in names])
        for validator in (*VALIDATORS, ENSV)
    }
    best = min(range(len(names)), key=lambda index: (float(ranks[DECIDING][index]), -agreements[index]))
    picks = {validator: names[int(values.argmin())] for validator, values in ranks.items()}
    picks[DECIDING] = names[best]
    return Selection(names[best], table, picks, _agreement(ranks))


def agreement_with_others(chosen: str, candidates: Mapping[str, Candidate]) -> float:
    """How often the chosen candidate's label is another's, on average over the others.

    Classifiers that err independently agree about as often as they are right (Jiang et al., 2022).
    """
    labels = candidates[chosen].log_probs.argmax(-1)
    others = [accuracy(candidate.log_probs, labels) for name, candidate in candidates.items() if name != chosen]
    return sum(others) / len(others)


def rank(values: Sequence[float]) -> Tensor:
    """1 for the largest, 2 for the next, and the mean of their places for equals: [C] -> [C]."""
    place = torch.tensor(values, dtype=torch.float64).nan_to_num(nan=-torch.inf)
    larger = (place[None] > place[:, None]).double().sum(1)
    equal = (place[None] == place[:, None]).double().sum(1)
    return larger + (equal + 1) / 2


def turned(validator: str, value: float) -> float:
    """A validator's value, that of EnsV included, turned so that more is better."""
    return value if validator == ENSV else VALIDATORS[validator].key(value)


def _agreement(ranks: Mapping[str, Tensor]) -> float:
    """Mean of Spearman's correlations of all pairs of validators that tell candidates apart at all."""
    telling = [values for values in ranks.values() if float(values.std(unbiased=False)) > 0]
    pairs = [float(torch.corrcoef(torch.stack(pair))[0, 1]) for pair in itertools.combinations(telling, 2)]
    return sum(pairs) / len(pairs) if pairs else 1.0
