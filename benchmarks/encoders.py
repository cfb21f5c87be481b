"""What adapting on embeddings reaches, beside what others would run on the same features.

    python -m benchmarks.encoders --photos photo art_painting --texts books.jsonl dvd.jsonl --label label --text text

Every ordered pair of the folders, and of the tables, is a task. Target labels are read for the last column alone. The
encoder is the preferred one that is installed; embeddings come from its cache where they are known.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np
import skada
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.semi_supervised import LabelSpreading
from torch import Tensor, nn

from calida.adaptation import adapt
from calida.data import INSIDE, Preparation
from calida.runs import RunConfig, open_data

Array = NDArray[np.float32]
Method = Callable[["Task", int], NDArray[np.int64]]
_BATCH, _PASSES = 64, 15


@dataclass(frozen=True)
class Task:
    """Features of both domains as the encoder gave them, and source labels; `truth` is for the last measure alone."""

    name: str
    source: Array
    labels: NDArray[np.int64]
    target: Array
    truth: NDArray[np.int64]

    @property
    def classes(self) -> int:
        return int(self.labels.max()) + 1

    def standardized(self) -> tuple[Array, Array]:
        return standardize(self.source), standardize(self.target)


def standardize(x: Array) -> Array:
    """Every feature to mean 0 and spread 1."""
    spread = x.std(0)
    return np.asarray((x - x.mean(0)) / np.where(spread > 1e-6, spread, 1.0), np.float32)


def logistic_regression(task: Task, seed: int) -> NDArray[np.int64]:
    """On the features as they are, with scikit-learn's defaults."""
    return _labels(_fitted(task.source, task.labels).predict(task.target))


def logistic_regression_standardized(task: Task, seed: int) -> NDArray[np.int64]:
    source, target = task.standardized()
    return _labels(_fitted(source, task.labels, 0.01).predict(target))


def coral(task: Task, seed: int) -> NDArray[np.int64]:
    """The source with the target's covariance (Sun et al., 2016), then logistic regression."""
    source, target = task.standardized()
    roots = [torch.linalg.eigh(torch.from_numpy(np.cov(x.T)) + torch.eye(x.shape[1])) for x in (source, target)]
    whiten = roots[0].eigenvectors @ torch.diag(roots[0].eigenvalues ** -0.5) @ roots[0].eigenvectors.T
    color = roots[1].eigenvectors @ torch.diag(roots[1].eigenvalues ** 0.5) @ roots[1].eigenvectors.T
    moved = np.asarray(source @ (whiten @ color).numpy(), np.float32)
    return _labels(_fitted(moved, task.labels, 0.01).predict(target))


def label_propagation(task: Task, seed: int) -> NDArray[np.int64]:
    """scikit-learn's label spreading over ten neighbors of both domains."""
    source, target = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in task.standardized())
    known = np.concatenate([task.labels, np.full(len(target), -1)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        spread = LabelSpreading(kernel="knn", n_neighbors=10, alpha=0.8, max_iter=100)
        spread.fit(np.concatenate([source, target]), known)
    return _labels(spread.transduction_[len(source) :])


def shot(task: Task, seed: int, pseudo_labels: float = 0.0) -> NDArray[np.int64]:
    """Information maximisation by a bottleneck behind a fixed classifier (SHOT-IM, Liang et al., 2020).

    With pseudo-labels, those of the nearest weighted centroid, taken anew each epoch, have this weight.
    """
    torch.manual_seed(seed)
    source, target = map(torch.from_numpy, task.standardized())
    bottleneck = nn.Sequential(nn.Linear(source.shape[1], 256), nn.BatchNorm1d(256))
    classifier = nn.utils.parametrizations.weight_norm(nn.Linear(256, task.classes))
    labels = torch.from_numpy(task.labels)
    optimizer = torch.optim.SGD([*bottleneck.parameters(), *classifier.parameters()], 0.01, 0.9, nesterov=True)
    for rows in _epochs(len(source), 30):
        loss = nn.functional.cross_entropy(classifier(bottleneck(source[rows])), labels[rows], label_smoothing=0.1)
        _take_step(optimizer, loss)
    optimizer = torch.optim.SGD(bottleneck.parameters(), 0.01, 0.9, nesterov=True)
    per_epoch, given = max(len(target) // _BATCH, 1), None
    for step, rows in enumerate(_epochs(len(target), _PASSES)):
        if pseudo_labels and step % per_epoch == 0:
            given = _nearest_centroids(*_look(bottleneck, classifier, target))
        logits = classifier(bottleneck(target[rows]))
        log_probs = logits.log_softmax(1)
        mean = log_probs.exp().mean(0)
        loss = -(log_probs.exp() * log_probs).sum(1).mean() + (mean * mean.log()).sum()
        if given is not None:
            loss = loss + pseudo_labels * nn.functional.cross_entropy(logits, given[rows])
        _take_step(optimizer, loss)
    return _labels(_look(bottleneck, classifier, target)[1].argmax(1).numpy())


def shot_pseudo_labels(task: Task, seed: int) -> NDArray[np.int64]:
    return shot(task, seed, 0.3)


def shallow(name: str) -> Method:
    """A shallow method of skada with logistic regression behind it."""

    def run(task: Task, seed: int) -> NDArray[np.int64]:
        source, target = task.standardized()
        x = np.concatenate([source, target])
        y = np.concatenate([task.labels, np.full(len(target), -1)])
        domain = np.concatenate([np.ones(len(source), int), np.full(len(target), -2)])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimator = LogisticRegression(C=0.01, max_iter=200).set_fit_request(sample_weight=True)
            pipeline = getattr(skada, name)(estimator)
            pipeline.fit(x, y, sample_domain=domain)
            return _labels(pipeline.predict(target, sample_domain=np.full(len(target), -2)))

    return run


def ours(recipe: str) -> Method:
    """A recipe on features standardized in each domain, as a run from files has them."""

    def run(task: Task, seed: int) -> NDArray[np.int64]:
        source, target = task.standardized()
        adapted = adapt((source, task.labels), target, recipe, backbone="linear", seed=seed)
        return _labels(adapted.predict(target).labels.numpy())

    return run


METHODS: dict[str, Method] = {
    "logistic regression": logistic_regression,
    "... standardised": logistic_regression_standardized,
    "CORAL + logistic regression": coral,
    "label propagation": label_propagation,
    "SHOT-IM": shot,
    "SHOT-IM + pseudo-labels": shot_pseudo_labels,
    "skada SubspaceAlignment": shallow("SubspaceAlignment"),
    "skada LinearOTMapping": shallow("LinearOTMapping"),
    "calida features": ours("features"),
    "calida rer-1": ours("rer-1"),
    "calida brer-inf-gvr": ours("brer-inf-gvr"),
}


def _labels(values: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.asarray(values, np.int64)


def _fitted(x: Array, y: NDArray[np.int64], strength: float = 1.0) -> LogisticRegression:
    return LogisticRegression(C=strength, max_iter=1000).fit(x, y)


def _epochs(count: int, epochs: int) -> list[Tensor]:
    parts = [torch.randperm(count).split(_BATCH) for _ in range(epochs)]
    return [rows for part in parts for rows in part if len(rows) > 1]


def _take_step(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


@torch.no_grad()
def _look(bottleneck: nn.Module, classifier: nn.Module, x: Tensor) -> tuple[Tensor, Tensor]:
    """Features and probabilities, by statistics of all of `x`."""
    features = bottleneck(x)
    return features, classifier(features).softmax(1)


def _nearest_centroids(features: Tensor, probabilities: Tensor) -> Tensor:
    unit = nn.functional.normalize(features, dim=1)
    for _ in range(2):
        centroids = nn.functional.normalize(probabilities.T @ unit, dim=1)
        labels = (unit @ centroids.T).argmax(1)
        probabilities = nn.functional.one_hot(labels, probabilities.shape[1]).float()
    return labels


def _unstandardized(x: Tensor, steps: Preparation) -> Array:
    """Features as the encoder gave them; constant ones, which were taken for nothing, as 0."""
    gain, offset = torch.tensor(steps.gain), torch.tensor(steps.offset)
    return torch.where(gain > 0, (x - offset) / gain, 0.0).numpy()


def tasks(places: list[str], **options: str | None) -> list[Task]:
    """Every ordered pair of data sets as features."""
    found = []
    for source, target in itertools.permutations(places, 2):
        given = {name: value for name, value in options.items() if value is not None}
        data = open_data(RunConfig(source=source, target=target, target_labels=INSIDE).changed(given))
        assert isinstance(data.source.samples, Tensor)
        assert isinstance(data.target.samples, Tensor)
        assert data.truth is not None
        name = f"{Path(source).name} -> {Path(target).name}"
        before = _unstandardized(data.source.samples, data.preparation.source)
        after = _unstandardized(data.target.samples, data.preparation.target)
        found.append(Task(name, before, data.labels.numpy(), after, data.truth.numpy()))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", nargs="+", default=[], metavar="FOLDER")
    parser.add_argument("--texts", nargs="+", default=[], metavar="TABLE")
    parser.add_argument("--text", default="text")
    parser.add_argument("--label", default="label")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--out", type=Path, help="a file of JSON lines that results are added to")
    given = parser.parse_args()
    groups = [tasks(given.photos), tasks(given.texts, text=given.text, label=given.label)]
    for group in groups:
        for name in given.methods:
            cells, every = [], []
            for task in group:
                begun = time.perf_counter()
                found = [float((METHODS[name](task, seed) == task.truth).mean()) for seed in range(given.seeds)]
                seconds = (time.perf_counter() - begun) / given.seeds
                cells.append(f"{task.name} {100 * fmean(found):.1f}")
                every += found
                if given.out is not None:
                    record = {"method": name, "task": task.name, "accuracy": found, "seconds": round(seconds, 1)}
                    with given.out.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(record) + "\n")
            if cells:
                print(f"{name:28} mean {100 * fmean(every):.2f}   {'   '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
