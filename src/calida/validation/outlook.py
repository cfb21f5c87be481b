"""What a classifier says of both domains after a round: all that judgement without target labels can use."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from calida.data import Labelled, Samples
from calida.model import Classifier, Prediction, predict
from calida.seeds import Seeds
from calida.validation.mixing import MIXVAL_SHARE, Mixed, predict_mixed


@dataclass(frozen=True)
class Outlook:
    """Predictions on source validation, whose labels are known, on target, and on mixed pairs of target samples."""

    validation: Prediction
    labels: Tensor  # [V] of source validation
    target: Prediction
    mixed: Mixed


@dataclass(frozen=True)
class Viewpoint:
    """The samples that classifiers are looked at with, and how they predict."""

    validation: Labelled
    target: Samples
    num_samples: int
    seeds: Seeds
    batch_size: int

    def look(self, model: Classifier) -> Outlook:
        target = self.predict(model, self.target)
        mixed = self.mix(model, target.labels, MIXVAL_SHARE)
        return Outlook(self.predict(model, self.validation.x), self.validation.y, target, mixed)

    def predict(self, model: Classifier, x: Samples) -> Prediction:
        return predict(model, x, self.num_samples, self.seeds, self.batch_size)

    def mix(self, model: Classifier, labels: Tensor, share: float) -> Mixed:
        """Predictions on mixed target pairs; `labels` are the predicted ones of the whole target."""
        return predict_mixed(model, self.target, labels, share, self.num_samples, self.seeds, self.batch_size)
