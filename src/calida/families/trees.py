"""Trees as flat arrays: forests and gradient boosting, predicted level by level, many trees and rows at once.

Trees of a few leaves have a shorter way (`small_trees`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from calida.families.fit import RULED_OUT, Fit, Rows
from calida.families.small_trees import SmallTree, small_trees, tree_sums

_ROWS_AT_ONCE = 256  # with a hundred trees, what is looked up stays in the cache
_ROWS_OF_SMALL = 8192  # of whose columns one stays there


class _Nodes(NamedTuple):
    """The nodes of one tree; a leaf has no children."""

    feature: NDArray[np.int64]  # [N]
    threshold: NDArray[np.float64]  # [N]; up to it samples go left
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    is_leaf: NDArray[np.bool_]
    value: NDArray[np.float64]  # [N, W]


@dataclass(frozen=True)
class TreeFit(Fit):
    """T trees of N nodes in all, whose leaves hold W values each.

    Boosting has a tree for each class in turn, W = 1, whose sums are logits; a forest has one for all classes, W = K,
    whose mean is a probability. Either way the values of a sample, [T, W], are C columns, one for each class in
    `classes`, to be summed.
    """

    roots: NDArray[np.int64]  # [T]
    feature: NDArray[np.int64]  # [N]
    threshold: Rows  # [N]
    children: NDArray[np.int64]  # [N, 2]; those of a leaf are itself
    value: Rows  # [N, W]
    classes: NDArray[np.int64]  # [C]
    start: Rows  # [K] logits before the first tree
    boosted: bool

    kind = "trees"

    @staticmethod
    def of_boosting(estimator: Any, num_classes: int) -> TreeFit:
        """From a fitted HistGradientBoostingClassifier without categorical features."""
        nodes = [_boosting_nodes(tree.nodes) for turn in estimator._predictors for tree in turn]
        seen = np.asarray(estimator.classes_)
        classes = seen[1:] if len(seen) == 2 else seen
        start = np.full(num_classes, RULED_OUT, np.float32)
        start[seen] = 0.0
        start[classes] = np.ravel(estimator._baseline_prediction)
        return _flat(nodes, classes, start, boosted=True)

    @staticmethod
    def of_forest(estimator: Any, num_classes: int) -> TreeFit:
        """From a fitted forest, random or of extremely randomized trees."""
        nodes = [_forest_nodes(tree.tree_) for tree in estimator.estimators_]
        return _flat(nodes, np.asarray(estimator.classes_), np.zeros(num_classes, np.float32), boosted=False)

    def log_probs(self, x: Rows) -> Tensor:
        at_once, sums_of = (_ROWS_AT_ONCE, self._sums) if self._small is None else (_ROWS_OF_SMALL, self._small_sums)
        parts = [sums_of(x[begin : begin + at_once]) for begin in range(0, len(x), at_once)]
        sums = np.zeros((len(x), len(self.start)), np.float32)
        sums[:, self.classes] = np.concatenate(parts)
        total = torch.from_numpy(sums)
        if self.boosted:
            return torch.log_softmax(total + torch.from_numpy(self.start), -1)
        # Trees that all agree are no proof: one more of them could have said anything.
        trees = len(self.roots)
        return ((total + 1 / len(self.start)) / (trees + 1)).log().log_softmax(-1)

    def _sums(self, x: Rows) -> Rows:
        """[B, D] -> [B, C]: every tree of every row goes down one level at a time."""
        values, first = np.ascontiguousarray(x).ravel(), (np.arange(len(x)) * x.shape[1])[:, None]
        at = np.repeat(self.roots[None], len(x), 0)  # [B, T]
        children = self.children.ravel()
        for _ in range(self._depth):
            place = self.feature.take(at)
            place += first
            right = values.take(place) > self.threshold.take(at)
            at *= 2
            at += right
            at = children.take(at)
        found: Rows = self.value.take(at, 0).reshape(len(x), -1, len(self.classes)).sum(1)
        return found

    def _small_sums(self, x: Rows) -> Rows:
        """The same, where no tree has more than a few leaves."""
        assert self._small is not None
        return tree_sums(self._small, x, len(self.classes))

    @cached_property
    def _small(self) -> list[SmallTree] | None:
        return small_trees(self.roots, self.feature, self.threshold, self.children, self.value)

    @cached_property
    def _depth(self) -> int:
        level, depth = self.roots, 0
        while len(level := level[self.children[level, 0] != level]):
            level, depth = self.children[level].ravel(), depth + 1
        return depth

    def arrays(self) -> dict[str, Tensor]:
        whole = {name: getattr(self, name).astype(np.int32) for name in ("roots", "feature", "children", "classes")}
        floats = {name: getattr(self, name) for name in ("threshold", "value", "start")}
        return {
            **{name: torch.from_numpy(array) for name, array in {**whole, **floats}.items()},
            "boosted": torch.tensor(self.boosted),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Tensor], num_features: int, num_classes: int) -> TreeFit:
        whole = {name: arrays[name].long().numpy() for name in ("roots", "feature", "children", "classes")}
        floats = {name: arrays[name].float().numpy() for name in ("threshold", "value", "start")}
        fit = cls(**whole, **floats, boosted=bool(arrays["boosted"]))
        fit._check(num_features, num_classes)
        return fit

    def _check(self, num_features: int, num_classes: int) -> None:
        """Refuse arrays that would lead a sample astray or round in circles."""
        nodes, trees = len(self.feature), len(self.roots)
        shapes = (
            (self.feature, (nodes,)),
            (self.threshold, (nodes,)),
            (self.children, (nodes, 2)),
            (self.roots, (trees,)),
            (self.classes, (len(self.classes),)),
            (self.value, (nodes, self.value.size // max(nodes, 1))),
            (self.start, (num_classes,)),
        )
        if any(array.shape != shape for array, shape in shapes):
            raise ValueError("the arrays of these trees do not belong together")
        indices = ((self.feature, num_features), (self.classes, num_classes), (self.roots, nodes))
        own, values = np.arange(nodes)[:, None], trees * self.value.shape[1]
        # Children stand behind their parents, so there is an end.
        ends = _within(self.children, nodes) and ((self.children > own).all(1) | (self.children == own).all(1)).all()
        if not (ends and all(_within(*pair) for pair in indices) and values and len(self.classes)):
            raise ValueError("these are no trees for this data")
        if values % len(self.classes):
            raise ValueError(f"{values} values a sample cannot be shared out among {len(self.classes)} classes")


def _within(indices: NDArray[np.int64], count: int) -> bool:
    return bool(((indices >= 0) & (indices < count)).all())


def _boosting_nodes(nodes: Any) -> _Nodes:
    whole = [nodes[name].astype(np.int64) for name in ("feature_idx", "left", "right")]
    leaf = nodes["is_leaf"].astype(bool)
    return _Nodes(whole[0], nodes["num_threshold"], whole[1], whole[2], leaf, nodes["value"][:, None])


def _forest_nodes(tree: Any) -> _Nodes:
    value = tree.value[:, 0, :]
    shares = value / value.sum(1, keepdims=True)
    left, right = tree.children_left, tree.children_right
    return _Nodes(tree.feature, tree.threshold, left, right, left == right, shares)


def _flat(trees: Sequence[_Nodes], classes: NDArray[np.int64], start: Rows, boosted: bool) -> TreeFit:
    sizes = np.array([len(tree.feature) for tree in trees])
    roots = np.cumsum(sizes) - sizes
    leaf = np.concatenate([tree.is_leaf for tree in trees])
    own = np.arange(len(leaf))[:, None]
    children = np.concatenate(
        [np.stack([tree.left, tree.right], 1) + root for tree, root in zip(trees, roots, strict=True)]
    )
    return TreeFit(
        roots,
        np.where(leaf, 0, np.concatenate([tree.feature for tree in trees])).astype(np.int64),
        np.where(leaf, np.inf, _at_most(np.concatenate([tree.threshold for tree in trees]))).astype(np.float32),
        np.where(leaf[:, None], own, children).astype(np.int64),
        np.concatenate([tree.value for tree in trees]).astype(np.float32),
        classes.astype(np.int64),
        start,
        boosted,
    )


def _at_most(threshold: NDArray[np.float64]) -> Rows:
    """The largest float32 up to a threshold: a float32 is on the same side of both."""
    near = threshold.astype(np.float32)
    below: Rows = np.where(near > threshold, np.nextafter(near, np.float32(-np.inf)), near)
    return below
