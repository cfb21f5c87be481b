"""What a user of skada would run: its deep methods, with our network, the same data, batches and learning rate."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
import skada.deep
import torch
from torch import Tensor, nn

from benchmarks.recipe_tasks import BRIEF
from calida.data import num_batches, unit_range
from calida.model import Classifier, Network, build_classifier
from calida.recipes import get_recipe
from calida.runs import RunConfig, open_data
from calida.seeds import Seeds
from calida.uncertainty import calibration_error

METHODS = ("DANN", "CDAN", "DeepCoral", "MCC")
_SOURCE, _TARGET, _NO_LABEL = 1, -2, -1  # skada's signs


class Net(nn.Module):
    """A classifier of ours as skada calls networks: inputs to logits, weights of samples ignored."""

    def __init__(self, classifier: Classifier) -> None:
        super().__init__()
        self.classifier = classifier

    def forward(self, x: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        logits: Tensor = self.classifier(x).logits.mean
        return logits


def equal_epochs(samples: int) -> int:
    """As many epochs as the default recipe has in all: 40 and 20 passes, fewer of a large source."""
    recipe = get_recipe("calida").with_settings(**BRIEF)
    epoch, before, after = num_batches(samples, recipe.optimization.batch_size), recipe.pretraining, recipe.adaptation
    pretraining = before.epochs * min(epoch, before.max_batches_per_epoch or epoch)
    adaptation = after.rounds * min(after.passes * epoch, after.max_batches_per_round or after.passes * epoch)
    return round((pretraining + adaptation) / epoch)


def run_skada(method: str, config: RunConfig) -> dict[str, Any]:
    """Train on both domains at once with one thread; without a choice of its own, the last epoch is what one has."""
    torch.set_num_threads(1)
    torch.manual_seed(config.seed)
    data = open_data(config)
    assert data.truth is not None
    assert isinstance(data.source.samples, Tensor)
    assert isinstance(data.target.samples, Tensor)
    source, target = unit_range(data.source.samples), unit_range(data.target.samples)
    classes, epochs = int(data.labels.max()) + 1, equal_epochs(len(source))
    classifier = build_classifier(Network(tuple(source.shape[1:]), classes, config.backbone), Seeds(config.seed))
    classifier.standardize.fit(source)  # type: ignore[operator]
    with torch.no_grad():
        width = classifier.eval()(source[:2]).features.shape[1]
    needs = {"DANN": {"num_features": width}, "CDAN": {"num_features": width, "n_classes": classes}}
    estimator = getattr(skada.deep, method)(
        Net(classifier),
        "classifier.backbone",
        max_epochs=epochs,
        batch_size=100,
        train_split=None,
        optimizer=torch.optim.Adam,
        optimizer__lr=1e-3,
        optimizer__weight_decay=5e-4,
        verbose=0,
        **needs.get(method, {}),
    )
    x = np.concatenate([source.numpy(), target.numpy()])
    y = np.concatenate([data.labels.numpy(), np.full(len(target), _NO_LABEL)])
    domain = np.repeat([_SOURCE, _TARGET], [len(source), len(target)])
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        estimator.fit(x, y, sample_domain=domain)
        probs = estimator.predict_proba(target.numpy(), sample_domain=domain[len(source) :])
    seconds = time.perf_counter() - began
    log_probs = torch.as_tensor(probs).log()
    return {
        "accuracy": float((log_probs.argmax(-1) == data.truth).double().mean()),
        "ece": float(calibration_error(log_probs, data.truth)),
        "seconds": round(seconds, 1),
        "epochs": epochs,
        "skada": skada.__version__,
        "torch": torch.__version__,
    }
