"""What a classifier says of both domains after a round: all that judgement without target labels can use."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from calida.data import Augmentation, Labeled, Samples, stream
from calida.model import AnyClassifier, Prediction, predict
from calida.processes import ALONE, Processes
from calida.seeds import Seeds
from calida.validation.mixing import MIXVAL_SHARE, Mixed, predict_mixed

_COMPARED = 2000  # a share to a point, at the cost of a pass over that many samples


@dataclass(frozen=True)
class DomainPredictions:
    """Predictions on source validation, whose labels are known, on target, and on mixed pairs of target samples."""

    validation: Prediction
    labels: Tensor  # [V] of source validation
    target: Prediction
    mixed: Mixed


@dataclass(frozen=True)
class Predictor:
    """The samples that classifiers are judged by, and how they predict."""

    validation: Labeled
    target: Samples
    num_samples: int
    seeds: Seeds
    batch_size: int
    processes: Processes = ALONE

    def predict_domains(self, model: AnyClassifier) -> DomainPredictions:
        target = self.predict(model, self.target)
        mixed = self.mix(model, target.labels, MIXVAL_SHARE)
        return DomainPredictions(self.predict(model, self.validation.x), self.validation.y, target, mixed)

    def predict(self, model: AnyClassifier, x: Samples) -> Prediction:
        return predict(model, x, self.num_samples, self.seeds, self.batch_size, processes=self.processes)

    def agreement(self, model: AnyClassifier, labels: Tensor, augmentation: Augmentation) -> float:
        """The share of the target (of 2,000 samples at most) that keeps its predicted label in another view."""
        rows = torch.randperm(len(self.target), generator=self.seeds.generator("agreement"))[:_COMPARED]
        same = []
        batches = list(rows.split(self.batch_size))
        for number, (chosen, x) in enumerate(zip(batches, stream(self.target, batches), strict=True)):
            view = augmentation(x, self.seeds.at("agreement", number))
            same.append(self.predict(model, view).labels == labels[chosen])
        return float(torch.cat(same).double().mean())

    def mix(self, model: AnyClassifier, labels: Tensor, share: float) -> Mixed:
        """Predictions on mixed target pairs; `labels` are the predicted ones of the whole target."""
        how = (self.num_samples, self.seeds, self.batch_size, self.processes)
        return predict_mixed(model, self.target, labels, share, *how)
