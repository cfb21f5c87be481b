"""Classifiers of other kinds, each a function from labeled rows to probabilities on other rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calida.panel.information import classify_by_information
from calida.panel.views import Floats

Integers = NDArray[np.int64]
Probabilities = NDArray[np.float64]
# Labeled rows, their labels, groups of rows to classify, the number of classes, a seed -> [n, K] for each group.
Classify = Callable[[Floats, Integers, list[Floats], int, int], list[Probabilities]]

_NEIGHBORS = 7
_SHARPNESS = 0.1  # of cosines, in the softmax that makes probabilities of them
_GRAPH_NEIGHBORS, _GRAPH_MEMORY, _GRAPH_STEPS = 10, 0.9, 30


class Member(NamedTuple):
    """A check classifier: what kind of thing it is, and how it answers where every class has a labeled row."""

    kind: str
    answer: Classify

    def classify(self, x: Floats, y: Integers, groups: list[Floats], classes: int, seed: int) -> list[Probabilities]:
        """Probabilities of every group's rows; a class without a labeled row has none."""
        known, places = np.unique(y, return_inverse=True)
        found = []
        for answers in self.answer(x, places, groups, len(known), seed):
            every = np.zeros((len(answers), classes))
            every[:, known] = answers
            found.append(every)
        return found


def _fitted(make: Callable[[int, int], Any]) -> Classify:
    """A scikit-learn classifier, made for a number of classes and a seed."""

    def classify(x: Floats, y: Integers, groups: list[Floats], classes: int, seed: int) -> list[Probabilities]:
        model = make(classes, seed).fit(x, y)
        return [model.predict_proba(rows) for rows in groups]

    return classify


def _linear(classes: int, seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=0.3, max_iter=300, class_weight="balanced")


def _trees(classes: int, seed: int) -> Any:
    from sklearn.ensemble import ExtraTreesClassifier

    return ExtraTreesClassifier(100, min_samples_leaf=2, class_weight="balanced", random_state=seed)


def _gaussian(classes: int, seed: int) -> Any:
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

    return LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto", priors=np.full(classes, 1 / classes))


def _neighbors(x: Floats, y: Integers, groups: list[Floats], classes: int, seed: int) -> list[Probabilities]:
    """Nearest neighbors, whose votes count more the rarer their class is."""
    from sklearn.neighbors import KNeighborsClassifier

    model = KNeighborsClassifier(min(_NEIGHBORS, max(len(x) // 2, 1)), weights="distance")
    shares = np.bincount(y) / len(y)
    return [_normalized(answers / shares) for answers in _fitted(lambda *_: model)(x, y, groups, classes, seed)]


def _prototypes(x: Floats, y: Integers, groups: list[Floats], classes: int, seed: int) -> list[Probabilities]:
    """The nearest class mean by angle."""
    means = _directions(_class_sums(_directions(x), y, classes))
    return [_softmax(_directions(rows) @ means.T / _SHARPNESS) for rows in groups]


def _propagation(x: Floats, y: Integers, groups: list[Floats], classes: int, seed: int) -> list[Probabilities]:
    """Labels spread over a graph of nearest neighbors, of labeled rows and one group at a time (Zhou et al., 2004)."""
    return [_spread(x, y, rows, classes) for rows in groups]


def _spread(x: Floats, y: Integers, rows: Floats, classes: int) -> Probabilities:
    from scipy.sparse import diags
    from sklearn.neighbors import kneighbors_graph

    every = np.concatenate([x, rows])
    graph = kneighbors_graph(every, min(_GRAPH_NEIGHBORS, len(every) - 1), mode="distance")
    width = np.median(graph.data) or 1.0
    graph.data = np.exp(-((graph.data / width) ** 2) / 2)
    graph = graph.maximum(graph.T)
    scale = diags(1 / np.sqrt(np.maximum(np.asarray(graph.sum(1)).ravel(), 1e-12)))
    graph = scale @ graph @ scale
    known = np.zeros((len(every), classes))
    known[np.arange(len(y)), y] = 1 / np.bincount(y)[y]  # classes begin alike
    spread = known
    for _ in range(_GRAPH_STEPS):
        spread = _GRAPH_MEMORY * (graph @ spread) + (1 - _GRAPH_MEMORY) * known
    return _normalized(spread[len(y) :])


def _class_sums(x: Floats, y: Integers, classes: int) -> Floats:
    sums = np.zeros((classes, x.shape[1]), dtype=np.float32)
    np.add.at(sums, y, x)
    return sums


def _directions(x: Floats) -> Floats:
    directions: Floats = x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1e-9)
    return directions


def _softmax(scores: NDArray[Any]) -> Probabilities:
    shifted = np.exp(scores.astype(np.float64) - scores.max(1, keepdims=True))
    probabilities: Probabilities = shifted / shifted.sum(1, keepdims=True)
    return probabilities


def _normalized(scores: Probabilities) -> Probabilities:
    """Rows that sum to one; a row that says nothing is even."""
    total = scores.sum(1, keepdims=True)
    even = np.full_like(scores, 1 / scores.shape[1])
    return np.where(total > 0, scores / np.where(total > 0, total, 1.0), even)


MEMBERS: dict[str, Member] = {
    "logistic regression": Member("linear", _fitted(_linear)),
    "discriminant analysis": Member("gaussian", _fitted(_gaussian)),
    "random trees": Member("trees", _fitted(_trees)),
    "nearest neighbors": Member("neighbors", _neighbors),
    "prototypes": Member("prototypes", _prototypes),
    "label propagation": Member("graph", _propagation),
    "information maximization": Member("margin", classify_by_information),
}
