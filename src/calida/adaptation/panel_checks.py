"""Check classifiers around a run: fitted on its features, and what they find in the data."""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from calida.estimation import AgreementEstimate
from calida.panel import Panel, PanelRows, contested_share, fit_panel, outside_share
from calida.run_warnings import RunWarning, WarningCode
from calida.seeds import Seeds
from calida.shift import domain_gap
from calida.threads import one_thread
from calida.validation import DomainPredictions

_APART = 0.9  # of pairs told apart, from which domains hardly meet
_CONTESTED = 0.05  # of the target: none of the data sets whose domains are drawn alike comes near
_OUTSIDE = 1 / 3  # of the target; a fifth alarmed on shifts of which the classifier kept 97 %
FEWEST_TO_CHECK = 60  # samples of a domain
_KEPT = 4  # panels
_MOST = 10_000  # of a domain that the panel is asked about: its graph's time grows with their square


@dataclass(frozen=True)
class PanelFeatures:
    """What check classifiers see of source, source validation and target, and the labels of the first two."""

    source: Tensor = field(repr=False)  # [S, D]
    labels: Tensor = field(repr=False)  # [S]
    validation: Tensor = field(repr=False)  # [V, D]
    validation_labels: Tensor = field(repr=False)  # [V]
    target: Tensor = field(repr=False)  # [T, D]


@dataclass(frozen=True)
class PanelChecks:
    """A fitted panel, how far apart the domains are, and what was found in the data.

    `seen` are the rows of source validation and target that the panel was asked about, of which 10,000 are enough.
    """

    panel: Panel
    apart: float
    findings: tuple[RunWarning, ...]
    seen: PanelRows
    domain_scores: Tensor = field(repr=False)  # [t] how much each looks like a target sample; nan if not asked

    def of(self, predictions: DomainPredictions) -> DomainPredictions:
        """What a classifier says of the samples that the panel was asked about."""
        return replace(
            predictions,
            validation=predictions.validation[self.seen.validation],
            labels=predictions.labels[self.seen.validation],
            target=predictions.target[self.seen.target],
        )

    def by_sample(self, estimate: AgreementEstimate, count: int) -> Tensor:
        """The panel's vote on each of so many target samples; of those that it was not asked about, the mean: [T]."""
        votes = estimate.by_sample.mean().repeat(count)
        votes[self.seen.target] = estimate.by_sample
        return votes

    def domain_scores_of(self, count: int) -> Tensor:
        """How much each of so many target samples looks like one, 0 to 1; nan where nobody was asked: [T]."""
        scores = torch.full((count,), torch.nan)
        scores[self.seen.target] = self.domain_scores
        return scores


def fit_panel_checks(x: PanelFeatures, num_classes: int, seeds: Seeds) -> PanelChecks:
    """Fit the panel and look for what a user should know of the data.

    The last few are kept: whoever tries several recipes on the same samples, with the same seed, waits once.
    """
    seeds = seeds.at("checks")
    key = (_MOST, num_classes, seeds.integer("panel"), *map(_digest, vars(x).values()))
    if key not in _kept:
        while len(_kept) >= _KEPT:
            del _kept[next(iter(_kept))]
        with one_thread(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of classes with few samples, which scikit-learn would tell the user
            _kept[key] = _fit(x, num_classes, seeds)
    return _kept[key]


_kept: dict[tuple[Any, ...], PanelChecks] = {}


def _digest(part: Tensor) -> tuple[Any, ...]:
    """Equal for equal tensors."""
    content = part.detach().cpu().contiguous().numpy()
    return content.dtype.str, content.shape, hashlib.blake2b(content.tobytes(), digest_size=16).digest()


def _fit(x: PanelFeatures, num_classes: int, seeds: Seeds) -> PanelChecks:
    seen = PanelRows(_some(len(x.validation), seeds, "validation"), _some(len(x.target), seeds, "target"))
    x = replace(
        x,
        validation=x.validation[seen.validation],
        validation_labels=x.validation_labels[seen.validation],
        target=x.target[seen.target],
    )
    gap = domain_gap(x.source, x.target, seeds)
    panel = fit_panel(x.source, x.labels, x.validation, x.validation_labels, x.target, num_classes, seeds)
    return PanelChecks(panel, gap.apart, tuple(_findings(x, panel, gap.auc, seeds)), seen, gap.scores)


def _some(count: int, seeds: Seeds, name: str) -> Tensor:
    """All rows, or as many as are enough."""
    if count <= _MOST:
        return torch.arange(count)
    return torch.randperm(count, generator=seeds.generator(f"rows of {name}"))[:_MOST].sort().values


def _findings(x: PanelFeatures, panel: Panel, auc: float, seeds: Seeds) -> list[RunWarning]:
    found = []
    if (share := contested_share(panel, x.target, seeds)) > _CONTESTED:
        found.append(RunWarning(WarningCode.CONTESTED, {"share": share}))
    if (share := outside_share(x.source, x.validation, x.target, seeds)) > _OUTSIDE:
        found.append(RunWarning(WarningCode.OUTSIDE, {"share": share}))
    if auc > _APART:
        found.append(RunWarning(WarningCode.DOMAINS_APART, {"auc": auc}))
    return found
