"""What a user of skada would run: its deep methods on the same images, with our network, batches and learning rate."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import skada.deep
import torch
from torch import Tensor, nn

from calida.data import num_batches, unit_range
from calida.model import Classifier, Network, build_classifier
from calida.recipes import get_recipe
from calida.runs import RunConfig, open_data
from calida.seeds import Seeds
from calida.uncertainty import calibration_error

METHODS = ("DANN", "CDAN", "DeepCoral", "MCC")
_SOURCE, _TARGET, _NO_LABEL = 1, -2, -1  # skada's signs
_BACKBONE = "conv3"


class Net(nn.Module):
    """A classifier of ours as skada calls networks: inputs to logits, weights of samples ignored."""

    def __init__(self, classifier: Classifier) -> None:
        super().__init__()
        self.classifier = classifier

    def forward(self, x: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        logits: Tensor = self.classifier(x).logits.mean
        return logits


def equal_epochs(samples: int) -> int:
    """As many epochs as the default recipe's steps make, pre-training and rounds together."""
    recipe = get_recipe("calida")
    before, after = recipe.pretraining, recipe.adaptation
    epoch = num_batches(samples, recipe.optimization.batch_size)
    pretraining = before.epochs * _between(epoch, before.min_batches_per_epoch, before.max_batches_per_epoch)
    round_ = _between(after.passes * epoch, after.min_batches_per_round, after.max_batches_per_round)
    return round((pretraining + after.rounds * round_) / epoch)


def _between(batches: int, least: int, most: int | None) -> int:
    return max(min(batches, most or batches), least)


def measure_skada(method: str, source: str, target: str, seed: int) -> dict[str, Any]:
    """Train on both domains at once with one thread; without a choice of its own, the last epoch is what one has.

    `curve` has seconds of training and accuracy, measured with labels, after every epoch.
    """
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    data = open_data(RunConfig(source=source, target=target, target_labels="inside", seed=seed))
    assert data.truth is not None
    assert isinstance(data.source.samples, Tensor)
    assert isinstance(data.target.samples, Tensor)
    x, z = unit_range(data.source.samples), unit_range(data.target.samples)
    classes, epochs = int(data.labels.max()) + 1, equal_epochs(len(x))
    classifier = build_classifier(Network(tuple(x.shape[1:]), classes, _BACKBONE), Seeds(seed))
    classifier.standardize.fit(x)  # type: ignore[operator]
    with torch.no_grad():
        width = classifier.eval()(x[:2]).features.shape[1]
    needs = {"DANN": {"num_features": width}, "CDAN": {"num_features": width, "n_classes": classes}}
    estimator = getattr(skada.deep, method)(
        Net(classifier),
        "classifier.backbone",
        max_epochs=1,
        warm_start=True,
        batch_size=100,
        train_split=None,
        optimizer=torch.optim.Adam,
        optimizer__lr=1e-3,
        optimizer__weight_decay=5e-4,
        verbose=0,
        **needs.get(method, {}),
    )
    samples = np.concatenate([x.numpy(), z.numpy()])
    labels = np.concatenate([data.labels.numpy(), np.full(len(z), _NO_LABEL)])
    domain = np.repeat([_SOURCE, _TARGET], [len(x), len(z)])
    seconds, curve, log_probs = 0.0, [], torch.zeros(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(epochs):
            began = time.perf_counter()
            estimator.fit(samples, labels, sample_domain=domain)
            seconds += time.perf_counter() - began
            log_probs = torch.as_tensor(estimator.predict_proba(z.numpy(), sample_domain=domain[len(x) :])).log()
            curve.append([round(seconds, 1), float((log_probs.argmax(-1) == data.truth).double().mean())])
    return {
        "method": method,
        "accuracy": curve[-1][1],
        "ece": float(calibration_error(log_probs, data.truth)),
        "seconds": curve[-1][0],
        "curve": curve,
        "skada": skada.__version__,
    }
