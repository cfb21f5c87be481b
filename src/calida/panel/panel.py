"""A panel of check classifiers: what they say of source validation and of the target, and the weight of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from calida.panel.agreement import beyond_chance, mean_agreement
from calida.panel.members import MEMBERS
from calida.panel.views import VIEWS, seen_as
from calida.seeds import Seeds

# What bounds the time: rows that members learn from, and directions of features that they see.
_LABELED, _DIRECTIONS = 4000, 256
# Powers of a member's skill on source validation and of its agreement with its peers on target. Of 4 x 4 pairs tried
# on 52 real shifts, all whose second power is 2 or more are within half a point of each other.
_SKILL, _PEER_AGREEMENT = 4, 3
_LEAST = 0.02


@dataclass(frozen=True)
class Opinion:
    """What one check classifier says, as probabilities."""

    name: str
    kind: str
    validation: Tensor = field(repr=False)  # [V, K]
    target: Tensor = field(repr=False)  # [T, K]
    view: str = ""  # the scale that it sees both domains on


class PanelRows(NamedTuple):
    """Rows that a panel was asked about: of source validation, [v], and of the target, [t]."""

    validation: Tensor
    target: Tensor


@dataclass(frozen=True)
class Panel:
    """Check classifiers of several kinds, each on two scales, and the labels of source validation."""

    opinions: tuple[Opinion, ...]
    labels: Tensor = field(repr=False)  # [V]

    @property
    def num_classes(self) -> int:
        return self.opinions[0].target.shape[-1]

    @cached_property
    def skill(self) -> Tensor:
        """How well each knows held-out source, beyond chance: [m]."""
        found = [beyond_chance(one.validation.argmax(-1), self.labels, self.num_classes) for one in self.opinions]
        return torch.tensor(found, dtype=torch.float64).clamp(min=_LEAST)

    @cached_property
    def peer_agreement(self) -> Tensor:
        """How far each agrees with the others on the target, beyond chance: [m]."""
        labels = torch.stack([one.target.argmax(-1) for one in self.opinions])
        return mean_agreement(labels, self.num_classes).clamp(min=_LEAST)

    @cached_property
    def weights(self) -> Tensor:
        """The weight of each member, [m], summing to one.

        One that does not know the source has none. One that nobody agrees with on the target is more likely to have
        lost its way there than to be the only one in the right.
        """
        weights = (self.skill / self.skill.max()) ** _SKILL * self.peer_agreement**_PEER_AGREEMENT
        return weights / weights.sum()

    def views(self) -> list[list[int]]:
        """The places of the members that see both domains on one scale, scale by scale."""
        names = dict.fromkeys(one.view for one in self.opinions)
        return [[place for place, one in enumerate(self.opinions) if one.view == view] for view in names]

    def with_opinions(self, *more: Opinion) -> Panel:
        """The panel with more voices, a network's own say."""
        return Panel((*self.opinions, *more), self.labels)

    def consensus(self, members: Sequence[int] | None = None) -> Tensor:
        """The weighted mean of what all of them, or these, say of the target: [T, K] probabilities."""
        return self._mean([one.target for one in self.opinions], members)

    def consensus_on_validation(self, members: Sequence[int] | None = None) -> Tensor:
        """The same on source validation: [V, K]."""
        return self._mean([one.validation for one in self.opinions], members)

    def _mean(self, said: Sequence[Tensor], members: Sequence[int] | None) -> Tensor:
        places = list(range(len(said)) if members is None else members)
        weights = self.weights[places] / self.weights[places].sum()
        return torch.einsum("m,mnk->nk", weights, torch.stack([said[place].double() for place in places]))


def fit_panel(
    source: Tensor,
    labels: Tensor,
    validation: Tensor,
    validation_labels: Tensor,
    target: Tensor,
    num_classes: int,
    seeds: Seeds,
    members: Sequence[str] = tuple(MEMBERS),
) -> Panel:
    """Fit every member on labeled source features and let it classify the rest: [S, D], [S], [V, D], [V], [T, D].

    Members learn of equally frequent classes, and Bayes' rule gives their answers the source's shares. How frequent
    classes are on target nobody knows, and what is worth most on tables whose columns say little is not to guess.

    Members learn from 4,000 rows at most and see at most 256 main directions of the features of both domains, so
    that the time does not grow with either. The draw is the seed's.
    """
    rows = torch.randperm(len(labels), generator=seeds.generator("panel rows"))[:_LABELED].sort().values
    parts = [part.float().numpy() for part in (source[rows], validation, target)]
    y = labels[rows].numpy()
    number = seeds.integer("panel") % 2**32
    prior = torch.bincount(labels, minlength=num_classes).double() / len(labels)
    opinions = []
    for view in VIEWS:
        first, second = seen_as(view, parts[0], parts[2])
        x, held, met = first(parts[0]), first(parts[1]), second(parts[2])
        x, held, met = main_directions([x, held, met], _DIRECTIONS, number)
        for name in members:
            member = MEMBERS[name]
            try:
                answers = member.classify(x, y, [held, met], num_classes, number)
            except ValueError:  # scikit-learn's word for rows that this kind cannot learn from: too few for the classes
                continue
            held_out, unknown = (_weighed(torch.from_numpy(one), prior) for one in answers)
            opinions.append(Opinion(f"{name}, {view} scale", member.kind, held_out, unknown, view))
    return Panel(tuple(opinions), validation_labels)


def _weighed(probabilities: Tensor, prior: Tensor) -> Tensor:
    """By Bayes' rule, what was said of equally frequent classes for classes as frequent as this: [N, K], [K]."""
    weighed = probabilities * prior
    return (weighed / weighed.sum(-1, keepdim=True).clamp(min=torch.finfo(torch.float64).tiny)).float()


def main_directions(parts: Sequence[np.ndarray], most: int, seed: int) -> list[np.ndarray]:
    """The same parts along the main directions of the first and the last, where there are more than `most`."""
    if parts[0].shape[1] <= most:
        return list(parts)
    from sklearn.decomposition import PCA

    few = np.concatenate([part[:: max(len(part) // _LABELED, 1)] for part in (parts[0], parts[-1])])
    if len(few) <= most:
        return list(parts)
    found = PCA(most, svd_solver="randomized", random_state=seed).fit(few)
    return [found.transform(part).astype(np.float32) for part in parts]
