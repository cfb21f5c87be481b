"""Estimators by name, and how each kind is stored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from calida.errors import InputError
from calida.families.fit import Fit, LinearFit, OpaqueFit
from calida.families.trees import TreeFit
from calida.threads import threads_for

NETWORK, OWN = "network", "estimator"


@dataclass(frozen=True)
class Family:
    """A kind of classifier that is fitted anew each round, by scikit-learn's verbs."""

    name: str
    summary: str
    make: Callable[[int], Any]  # from a seed
    storable: bool = True  # what it learns can be written to a file

    def fit(self, x: Any, y: Any, weight: Any, seed: int, num_classes: int) -> Fit:
        """Fit on rows [N, D], class indices [N] and weights [N]."""
        estimator = self.make(seed)
        # Weights of 1 say nothing, and finding weighted quantiles takes boosting 15 times as long.
        given = {} if (weight == 1).all() else {"sample_weight": weight}
        with threads_for(x.size):
            estimator.fit(x, y, **given)
        return store(estimator, num_classes)


def store(estimator: Any, num_classes: int) -> Fit:
    """What a fitted estimator has learned, as arrays where its kind is known."""
    kind = _storing(estimator)
    if kind is LinearFit.of and num_classes > 2 and _is_one_against_rest(estimator):
        return OpaqueFit(estimator, num_classes)
    return kind(estimator, num_classes)


def _is_one_against_rest(estimator: Any) -> bool:
    """Whether a logistic regression has a sigmoid a class and no softmax, as scikit-learn before 1.8 could."""
    return estimator.solver == "liblinear" or getattr(estimator, "multi_class", "auto") == "ovr"


def _storing(estimator: Any) -> Callable[[Any, int], Fit]:
    from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    known: dict[type, Callable[[Any, int], Fit]] = {
        LogisticRegression: LinearFit.of,
        RandomForestClassifier: TreeFit.of_forest,
        ExtraTreesClassifier: TreeFit.of_forest,
        HistGradientBoostingClassifier: TreeFit.of_boosting,
    }
    # Exactly these: a subclass may predict in a way of its own, and categories are cut otherwise than numbers.
    cut_as_numbers = getattr(estimator, "categorical_features", None) in (None, "from_dtype")
    return known.get(type(estimator), OpaqueFit) if cut_as_numbers else OpaqueFit


def _logistic(seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(max_iter=300, random_state=seed)


def _forest(seed: int) -> Any:
    from sklearn.ensemble import ExtraTreesClassifier

    # Cut at random places, trees change more smoothly with a sample that has moved than those cut at the best ones.
    return ExtraTreesClassifier(200, min_samples_leaf=2, random_state=seed)


def _hgb(seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(
        max_iter=60, max_leaf_nodes=7, max_features=0.5, early_stopping=False, random_state=seed
    )


FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Family("logistic", "logistic regression", _logistic),
        Family("forest", "200 extremely randomized trees", _forest),
        Family("hgb", "gradient boosting on histograms", _hgb),
    )
}


def own_family(estimator: Any) -> Family:
    """An estimator of the user's own as a family: copies of it are fitted, itself is left alone."""
    from sklearn.base import clone
    from sklearn.utils.validation import has_fit_parameter

    name = type(estimator).__name__
    if isinstance(estimator, type):
        raise InputError(f"model is the class {estimator.__name__}; give an object of it, {estimator.__name__}()")
    if not (hasattr(estimator, "fit") and hasattr(estimator, "predict_proba")):
        raise InputError(f"an estimator needs fit and predict_proba; {name} lacks one of them")
    if not has_fit_parameter(estimator, "sample_weight"):
        raise InputError(f"self-training weighs samples, and {name}.fit takes no sample_weight")

    def make(seed: int) -> Any:
        copy = clone(estimator)
        if "random_state" in copy.get_params(deep=False):
            copy.set_params(random_state=seed)
        return copy

    return Family(OWN, name, make, storable=_storing(estimator) is not OpaqueFit)
