"""How a classifier that is no network is trained in a round: fitted anew on source and on pseudo-labeled target."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from calida.families import Family, Fit, FittedClassifier
from calida.model import AnyClassifier
from calida.seeds import Seeds
from calida.training.checkpoint import Checkpoint, Progress
from calida.training.phase import Phase, PseudoLabels
from calida.training.trainer import RoundDiagnosis, RoundStart, RoundWork
from calida.uncertainty import nll

if TYPE_CHECKING:
    from calida.training.rounds import Run

_LOOKED_AT = 2000  # rows that tell how well a fit knows what it was fitted on


class _Taught(NamedTuple):
    """Rows of one domain that a fit learns from."""

    x: Tensor  # [N, D]
    y: Tensor  # [N]
    weight: Tensor  # [N]


class FitTrainer:
    """Order-infinity regularization by fits: it needs no more of an estimator than weights and probabilities.

    With `average`, every round's classifier is the mean of the source-only fit and of the round's own: pseudo-labels
    then go on to come from both, and a round that went astray pulls the next one along half as far.
    """

    def __init__(
        self, run: Run, phase: Phase, model: AnyClassifier, *, family: Family, average: bool, max_rows: int
    ) -> None:
        assert isinstance(model, FittedClassifier)
        self.run, self.phase, self.model, self.family = run, phase, model, family
        self.average, self.max_rows = average, max_rows
        self.shown: AnyClassifier = model
        self.source_only: list[Fit] = []

    def begin(self, progress: Progress, checkpoint: Checkpoint | None) -> None:
        """Remember the source-only fit, the first member of what is averaged, before adaptation."""
        progress.multipliers = {}
        if self.phase.uses_target and self.average:
            self.source_only = self.model.members[:1]

    def train(self, start: RoundStart) -> RoundWork:
        """Fit once."""
        pools = self.phase.pools(self.run.domains, start.pseudo_labels, start.number, start.seeds)
        taught = {"likelihood": self._source(pools["source"], start.seeds)}
        if "target" in pools:
            taught["pseudo_label"] = self._target(pools["target"], start.pseudo_labels, start.seeds)
        x, y, weight = (torch.cat(parts).numpy() for parts in zip(*taught.values(), strict=True))
        classes, seed = self.run.domains.num_classes, start.seeds.integer("fit") % 2**31
        fit = self.family.fit(x, y, weight, seed, classes)
        self.model.consist_of([*self.source_only, fit])
        terms = {
            name: float(nll(fit.log_probs(_first(part.x)), part.y[:_LOOKED_AT]).mean())
            for name, part in taught.items()
            if len(part.y)
        }
        return RoundWork(terms, steps=1, samples=len(y))

    def diagnose(self) -> RoundDiagnosis:
        """Nothing more than every classifier tells."""
        return RoundDiagnosis()

    def state(self) -> dict[str, Tensor]:
        """A fit depends on no fit before it but through its predictions."""
        return {}

    def finish(self) -> None:
        """The model has what was fitted already."""

    def _source(self, pool: Tensor, seeds: Seeds) -> _Taught:
        rows = self._some(pool, seeds, "source rows")
        domains = self.run.domains
        weight = torch.ones(len(rows)) if domains.source_weight is None else domains.source_weight[rows].float()
        return _Taught(self._standard("source", rows), domains.source.y[rows], weight)

    def _target(self, pool: Tensor, pseudo_labels: PseudoLabels, seeds: Seeds) -> _Taught:
        """Hard labels as they are; a soft one as a row for each class, weighted by its share."""
        rows = self._some(pool, seeds, "target rows")
        terms = self.phase.objective.terms
        multiplier = terms["pseudo_label"].weight if "pseudo_label" in terms else 1.0
        place, labels = pseudo_labels.labels[rows].nonzero(as_tuple=True)
        weight = pseudo_labels.labels[rows][place, labels] * (multiplier if isinstance(multiplier, float) else 1.0)
        return _Taught(self._standard("target", rows)[place], labels, weight.float())

    def _some(self, pool: Tensor, seeds: Seeds, name: str) -> Tensor:
        """No more rows than a fit is to take, drawn anew each round."""
        if len(pool) <= self.max_rows:
            return pool
        return pool[torch.randperm(len(pool), generator=seeds.generator(name))[: self.max_rows]]

    def _standard(self, domain: str, rows: Tensor) -> Tensor:
        inputs = self.run.domains.source.x if domain == "source" else self.run.domains.target
        standard: Tensor = self.model.standardize(inputs[rows]).cpu()
        return standard


def _first(x: Tensor) -> NDArray[np.float32]:
    rows: NDArray[np.float32] = x[:_LOOKED_AT].numpy()
    return rows
