"""Which target samples may teach, and what: pure functions of the target's log-probabilities."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from calida.errors import InputError


class Selection(NamedTuple):
    """Labels for every target sample, which of them to use, and the log-confidence each class had to reach."""

    labels: Tensor  # [N]
    selected: Tensor  # [N], bool
    log_threshold: Tensor  # [K], -k_c in float64; 0 for a class nobody predicts, inf where nothing may be selected

    @property
    def class_threshold(self) -> Tensor:
        """The confidence each class had to reach, exp(-k_c): [K]."""
        return self.log_threshold.exp()


def select_global(log_probs: Tensor, portion: float, shares: Tensor | None = None) -> Selection:
    """The most confident `portion` of all samples: one threshold for every class, whatever their shares."""
    exact = desaturated(log_probs)
    top, labels = exact.max(-1)
    everyone = torch.zeros_like(labels)
    bar = _at_ranks(top, everyone, _ranks(portion, torch.tensor([len(labels)], device=labels.device)))
    return Selection(labels, _reaching(top - bar.value, everyone, bar), bar.value.expand(log_probs.shape[-1]))


def select_class_balanced(log_probs: Tensor, portion: float, shares: Tensor | None = None) -> Selection:
    """The most confident `portion` of the samples of each class (CBST, Zou et al., 2018).

    Without `shares`, [K], a class has as many samples as are predicted to be its own, as in CBST; with them, that share
    of all samples. A class that the model neglects then gets what it should have, not what it was left with.
    """
    exact = desaturated(log_probs)
    top, labels = exact.max(-1)
    bar = _class_bars(exact, portion, shares)
    return Selection(labels, _reaching(top - bar.value[labels], labels, bar), bar.value)


def select_reweighted(log_probs: Tensor, portion: float, shares: Tensor | None = None) -> Selection:
    """CBST with normalized argmax: label = argmax_c p_c / threshold_c, used where that ratio is at least 1.

    A class that the model finds hard has a low threshold and so gains samples from the classes it finds easy.
    """
    exact = desaturated(log_probs)
    bar = _class_bars(exact, portion, shares)
    # At portion 0 every ratio is zero, and there is nothing to compare.
    ratio, labels = (exact if portion == 0 else exact - bar.value).max(-1)
    lead = ratio if portion > 0 else torch.full_like(ratio, -math.inf)
    return Selection(labels, _reaching(lead, labels, bar), bar.value)


def desaturated(log_probs: Tensor) -> Tensor:
    """The same in float64, the largest of each row as log(1 - sum of the others): [N, K] -> [N, K].

    A probability over 1 - 6e-8 is 1 in float32, and all such samples look equally sure; what is left for the other
    classes still tells them apart.
    """
    exact = log_probs.double()
    top = exact.argmax(-1, keepdim=True)
    others = exact.scatter(-1, top, -math.inf).logsumexp(-1, keepdim=True).exp()
    # Where the others hold much, the value itself is the more exact one.
    return exact.scatter(-1, top, torch.where(others < 0.5, torch.log1p(-others), exact.gather(-1, top)))


def _ranks(portion: float, counts: Tensor) -> Tensor:
    """How many samples a portion of each count is, at least one: [K] -> [K]."""
    if not 0 <= portion <= 1:
        raise ValueError(f"a portion is a number in [0, 1], not {portion}")
    # 0.1 * 30 is a little over 3 in floating point; it means 3.
    return ((1 - 1e-6) * portion * counts.double()).ceil().long().clamp(min=1 if portion else 0)


class _Bar(NamedTuple):
    """What the samples of each group have to reach, [G], and how many of those that just reach it may pass, [G]."""

    value: Tensor
    ties: Tensor


def _class_bars(exact: Tensor, portion: float, shares: Tensor | None) -> _Bar:
    if shares is None:
        top, labels = exact.max(-1)
        return _at_ranks(top, labels, _ranks(portion, torch.bincount(labels, minlength=exact.shape[-1])))
    ranks = _ranks(portion, shares.to(exact) * len(exact)).clamp(max=len(exact))
    if portion == 0:
        return _Bar(torch.full_like(exact[0], math.inf), ranks)
    ordered = exact.sort(0, descending=True).values  # every sample is a candidate for every class
    value = ordered.gather(0, (ranks - 1)[None])[0]
    return _Bar(value, ranks - (exact > value).sum(0))


def _at_ranks(top: Tensor, groups: Tensor, ranks: Tensor) -> _Bar:
    """The log-confidence at a rank of each group: [N], [N], [G]; inf at rank 0, and 0 where a group is empty."""
    count = torch.bincount(groups, minlength=len(ranks))
    order = top.argsort(descending=True, stable=True)
    order = order[groups[order].argsort(stable=True)]  # by group, most confident first
    first = count.cumsum(0) - count
    at_rank = top[order][(first + ranks - 1).clamp(min=0, max=len(top) - 1)]
    value = torch.where(count == 0, 0.0, torch.where(ranks > 0, at_rank, math.inf))
    return _Bar(value, ranks - torch.bincount(groups[top > value[groups]], minlength=len(ranks)))


def _reaching(lead: Tensor, groups: Tensor, bar: _Bar) -> Tensor:
    """Which samples lead their group's bar, or tie with it while there is room: [N], [N] -> [N].

    Ties pass in order, so that a portion of equal samples is that portion of them.
    """
    selected = lead > 0
    tied = (lead == 0).nonzero().flatten()
    tied = tied[groups[tied].argsort(stable=True)]
    counts = torch.bincount(groups[tied], minlength=len(bar.ties))
    turn = torch.arange(len(tied), device=tied.device) - (counts.cumsum(0) - counts)[groups[tied]]
    selected[tied[turn < bar.ties[groups[tied]]]] = True
    return selected


Selector = Callable[[Tensor, float, Tensor | None], Selection]

SELECTORS: dict[str, Selector] = {
    "global": select_global,
    "class-balanced": select_class_balanced,
    "reweighted": select_reweighted,
}


def selector(name: str) -> Selector:
    """A way to select by its name."""
    if name not in SELECTORS:
        raise InputError(f"unknown selection {name!r}; there are {', '.join(SELECTORS)}")
    return SELECTORS[name]


def tempered_labels(log_probs: Tensor, temperature: float, log_threshold: Tensor | None = None) -> Tensor:
    """Label distributions proportional to (p / threshold)^(1/T): [N, K], [K] -> [N, K], rows sum to 1.

    One formula for three kinds: T = 0 is hard labels; T > 0 without thresholds the sharpened labels of
    deterministic-annealing EM (T from 1 to 0 leads from order 1 to order infinity); T = 0.25 with thresholds the soft
    labels of CRST (LRENT, Zou et al., 2019).
    """
    score = log_probs
    if log_threshold is not None:
        score = log_probs - torch.where(log_threshold.isfinite(), log_threshold, 0.0)
    if temperature == 0:
        return torch.nn.functional.one_hot(score.argmax(-1), score.shape[-1]).to(log_probs.dtype)
    if not temperature > 0:
        raise ValueError(f"a label temperature is at least 0, not {temperature}")
    return torch.softmax(score / temperature, -1).to(log_probs.dtype)
