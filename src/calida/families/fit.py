"""What one fit of an estimator leaves: log-probabilities of samples, and arrays to keep it as."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Rows = NDArray[np.float32]  # [B, D]
RULED_OUT = -30.0  # the logit of a class that the fit has not seen


class Fit(ABC):
    """A fitted classifier of K classes."""

    kind: ClassVar[str]  # names it in files
    storable: ClassVar[bool] = True

    @abstractmethod
    def log_probs(self, x: Rows) -> Tensor:
        """[B, D] -> [B, K], finite."""

    @abstractmethod
    def arrays(self) -> dict[str, Tensor]:
        """All that is needed to predict again."""

    @classmethod
    @abstractmethod
    def from_arrays(cls, arrays: Mapping[str, Tensor], num_features: int, num_classes: int) -> Fit:
        """Read back what `arrays` gave; a ValueError or KeyError says what a file has wrong."""


@dataclass(frozen=True)
class LinearFit(Fit):
    """Logits that are linear in the features."""

    weight: Tensor  # [K, D]
    bias: Tensor  # [K]

    kind = "linear"

    @staticmethod
    def of(estimator: Any, num_classes: int) -> LinearFit:
        """From a fitted LogisticRegression; of two classes it keeps the second one's logit alone."""
        coefficients, intercepts = np.asarray(estimator.coef_), np.asarray(estimator.intercept_)
        seen = np.asarray(estimator.classes_)
        weight = np.zeros((num_classes, coefficients.shape[1]), np.float32)
        bias = np.full(num_classes, RULED_OUT, np.float32)
        bias[seen] = 0.0
        rows = seen[1:] if len(coefficients) == 1 else seen
        weight[rows], bias[rows] = coefficients, intercepts
        return LinearFit(torch.from_numpy(weight), torch.from_numpy(bias))

    def log_probs(self, x: Rows) -> Tensor:
        return torch.log_softmax(torch.from_numpy(x) @ self.weight.T + self.bias, -1)

    def arrays(self) -> dict[str, Tensor]:
        return {"weight": self.weight, "bias": self.bias}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Tensor], num_features: int, num_classes: int) -> LinearFit:
        weight, bias = (arrays[name].float() for name in ("weight", "bias"))
        if weight.shape != (num_classes, num_features) or bias.shape != (num_classes,):
            raise ValueError(f"a weight of shape {tuple(weight.shape)} is not for this data")
        return cls(weight, bias)


@dataclass(frozen=True)
class OpaqueFit(Fit):
    """An estimator that nobody here knows how to store: it predicts, and lives as long as the process."""

    estimator: Any
    num_classes: int
    number: int = 0  # by which a state names it

    kind = "estimator"
    storable = False

    def log_probs(self, x: Rows) -> Tensor:
        probabilities = np.zeros((len(x), self.num_classes))
        probabilities[:, np.asarray(self.estimator.classes_)] = self.estimator.predict_proba(x)
        return torch.from_numpy(probabilities).clamp(min=1e-6).log().log_softmax(-1).float()

    def arrays(self) -> dict[str, Tensor]:
        return {"number": torch.tensor(self.number)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Tensor], num_features: int, num_classes: int) -> Fit:
        raise ValueError("an estimator of one's own is not in the file")
