"""The scikit-learn estimator: fit, predict and predict_proba on vectors or frames, with the target unlabeled."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import _safe_indexing, check_array, check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
from torch import Tensor, nn

from calida.adaptation import Adapted, RunOptions, adapt
from calida.data import TablePreparation, as_frame, check_sizes, is_frame, named_frame, only_source_is_scaled
from calida.errors import InputError, warn_user
from calida.estimation import DEFAULT_CALIBRATION
from calida.families import NETWORK
from calida.model import Prediction
from calida.recipes import DEFAULT_RECIPE, Recipe
from calida.training import print_rounds
from calida.uncertainty import SCORES
from calida.validation import DEFAULT_RULE, merit, returned_record

_UNCERTAINTIES = ("confidence", "entropy", "aleatoric", "epistemic")
_SETTING = "settings__"
_ROWS = 64  # a multiple of every vector width
_TRANSFORM = (
    "the earlier steps of a Pipeline reach it if the pipeline is made with transform_input=['X_target'] under "
    "scikit-learn's metadata routing, or if the target is among the rows of X, marked by sample_domain"
)


class CalibratedAdapter(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A scikit-learn classifier that adapts to unlabeled target samples while it is fitted.

    `model` is a network, or the name of another family (logistic, forest, hgb); `estimator` is one of your own with
    `fit(sample_weight)` and `predict_proba`, of which copies are fitted. `settings` overrides values of the recipe; a
    search may also reach one by name, as `settings__rounds`. Samples are vectors [N, D], or data frames whose columns
    may be numbers, words, dates and gaps (`table_` says what was made of them). Labels are of any kind; images go to
    `calida.adapt`. Probabilities are calibrated, and `trust_` has the estimated accuracy on target, the temperature,
    and which round was kept and why.
    """

    # scikit-learn's metadata routing, and with it skada's pipelines, hand over what is asked for here.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {
        "X_target": True,
        "sample_domain": True,
        "sample_weight": True,
    }
    __metadata_request__predict: ClassVar[dict[str, bool]] = {"sample_domain": True}
    __metadata_request__predict_proba: ClassVar[dict[str, bool]] = {"sample_domain": True}
    __metadata_request__predict_log_proba: ClassVar[dict[str, bool]] = {"sample_domain": True}

    def __init__(
        self,
        recipe: str | Recipe = DEFAULT_RECIPE,
        settings: Mapping[str, Any] | None = None,
        backbone: str | nn.Module = "auto",
        model: str = NETWORK,
        estimator: Any = None,
        class_weight: str | Mapping[Any, float] | None = None,
        validation: float = 0.1,
        choice: str = DEFAULT_RULE,
        calibration: str = DEFAULT_CALIBRATION,
        guard: bool = True,
        random_state: int | np.random.RandomState | None = 0,
        device: torch.device | str | None = None,
        verbose: int = 0,
    ) -> None:
        self.recipe = recipe
        self.model = model
        self.estimator = estimator
        self.class_weight = class_weight
        self.settings = settings
        self.backbone = backbone
        self.validation = validation
        self.choice = choice
        self.calibration = calibration
        self.guard = guard
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def set_params(self, **params: Any) -> CalibratedAdapter:
        """Set parameters; `settings__NAME` sets one of the recipe's and leaves the others as they are."""
        single = {key.removeprefix(_SETTING): params.pop(key) for key in list(params) if key.startswith(_SETTING)}
        super().set_params(**params)
        if single:
            self.settings = {**(self.settings or {}), **single}
        return self

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, X_target: Any = None, sample_domain: Any = None
    ) -> CalibratedAdapter:
        """Train on source and adapt to target.

        The target comes as `X_target`, or among the rows of `X`, marked as skada does by a negative `sample_domain`;
        what `y` says of those rows is dropped unread. With neither, the recipe's network is trained on source alone.
        The steps before this one in a pipeline see all rows of `X`, but `X_target` only if the pipeline is made with
        `transform_input=["X_target"]`; a target that they seem to have passed by is warned of. Batches are made smaller
        where there are too few samples to fill one.

        `sample_weight` has a weight for each row of `X`; those of target rows are not read. `class_weight` maps labels
        to weights, or is "balanced". See `calida.adapt` for what they do.
        """
        if sample_domain is not None:
            if X_target is not None:
                raise InputError("the target is given twice, as X_target and by sample_domain; choose one")
            X, y, X_target, sample_weight = _split_domains(X, y, sample_domain, sample_weight)
        if is_frame(X):
            x, y = validate_data(self, X, y, skip_check_array=True)
            y = column_or_1d(y, warn=True)
            check_consistent_length(x, y)
        else:
            x, y = validate_data(self, X, y, dtype=np.float32, ensure_min_samples=2)
        check_classification_targets(y)
        target = x if X_target is None else self._check_target(X_target, x)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, x, dtype=np.float64, ensure_non_negative=True)
        self.classes_, labels = np.unique(y, return_inverse=True)
        seed = _as_seed(self.random_state)
        recipe, settings = self._recipe_and_settings(adapting=X_target is not None)
        self.adapted_ = adapt(
            (x, labels),
            target,
            recipe,
            model=self._model,
            backbone=self.backbone,
            class_weight=self._class_weight(),
            sample_weight=sample_weight,
            num_classes=len(self.classes_) if len(self.classes_) > 1 else None,
            validation=self.validation,
            choice=self.choice,
            calibration=self.calibration,
            guard=self.guard,
            seed=seed,
            device=self.device,
            on_mismatch="ignore",  # warned of above
            observe=print_rounds if self.verbose else None,
            **settings,
        )
        self.table_ = None if self.adapted_.preparation is None else self.adapted_.preparation.table
        self.history_ = self.adapted_.history
        self.trust_ = None if X_target is None else self.adapted_.trust  # of its own samples it would say too much
        self.target_score_ = merit(DEFAULT_RULE, returned_record(self.history_))
        return self

    def predict(self, X: Any, *, sample_domain: Any = None) -> NDArray[Any]:
        """The most probable class of each sample, whichever domain it is from."""
        most_probable = self.predict_log_proba(X).argmax(1)
        labels: NDArray[Any] = self.classes_[most_probable]
        return labels

    def predict_proba(self, X: Any, *, sample_domain: Any = None) -> NDArray[np.float64]:
        """Probabilities [N, K], columns in the order of `classes_`."""
        probabilities: NDArray[np.float64] = np.exp(self.predict_log_proba(X))
        return probabilities

    def predict_log_proba(self, X: Any, *, sample_domain: Any = None) -> NDArray[np.float64]:
        """Logarithms of the probabilities, [N, K]."""
        return _normalized(self._predict(X)).numpy()

    def predict_uncertainty(self, X: Any) -> dict[str, NDArray[np.float64]]:
        """Confidence, and entropy = aleatoric + epistemic in nats, each [N]; pandas.DataFrame makes a table of it."""
        prediction = self._predict(X)
        return {name: getattr(prediction, name).double().numpy() for name in _UNCERTAINTIES}

    def accepted(
        self, X: Any, coverage: float | None = None, max_risk: float | None = None, order_by: str = SCORES[0]
    ) -> NDArray[np.bool_]:
        """Which samples to answer for and which to leave: the most certain share, or as many as the risk allows."""
        mask: NDArray[np.bool_] = self._predict(X).accepted(coverage, max_risk, order_by).numpy()
        return mask

    def predict_sets(self, X: Any, level: float = 0.9) -> NDArray[np.bool_]:
        """For each sample the classes that should hold the right one at this level: [N, K], in order of `classes_`."""
        check_is_fitted(self)
        self.adapted_.check_sets(level)
        inside: NDArray[np.bool_] = self.adapted_.sets_of(self._predict(X, raw=True), level).numpy()
        return inside

    def _predict(self, X: Any, raw: bool = False) -> Prediction:
        check_is_fitted(self)
        table: TablePreparation | None = self.table_
        if table is None:
            return _predict(self.adapted_, validate_data(self, X, reset=False, dtype=np.float32), raw)
        validate_data(self, X, reset=False, skip_check_array=True)
        frame = as_frame(X if is_frame(X) else self._named(X), "X")
        return _predict(self.adapted_, table.apply(frame, "X").numpy(), raw)

    def _check_target(self, X_target: Any, x: Any) -> Any:
        """Check the target's values under its own name, and its features against the source's, names and number."""
        if is_frame(x):
            validate_data(self, X_target, reset=False, skip_check_array=True)
            X_target = X_target if is_frame(X_target) else self._named(X_target)
            self._compare_scales(*_numbers_of(as_frame(x, "X"), as_frame(X_target, "X_target")))
            return X_target
        if is_frame(X_target) and not all(dtype.is_numeric() for dtype in as_frame(X_target, "X_target").dtypes):
            raise InputError(f"X is an array of numbers, and X_target a data frame with words: {_TRANSFORM}")
        target: NDArray[np.float32] = check_array(
            X_target, dtype=np.float32, ensure_min_samples=2, estimator=self, input_name="X_target"
        )
        validate_data(self, X_target, reset=False, skip_check_array=True)
        self._compare_scales(torch.from_numpy(x), torch.from_numpy(target))
        return target

    def _compare_scales(self, x: Tensor, target: Tensor) -> None:
        if len(x) and len(target) and only_source_is_scaled(x, target):
            warn_user(f"X is scaled and X_target seems not to be: {_TRANSFORM}")

    def _named(self, X: Any) -> pl.DataFrame:
        """Rows without names of columns, given the source's."""
        return named_frame(
            np.asarray(X), getattr(self, "feature_names_in_", list(map(str, range(self.n_features_in_))))
        )

    def _recipe_and_settings(self, adapting: bool) -> tuple[str | Recipe, Mapping[str, Any]]:
        """The recipe and its settings; without a target, its training on source alone."""
        settings = {} if self.settings is None else self.settings
        if not isinstance(settings, Mapping):
            raise InputError(f"settings is a mapping from names to values, not {settings!r}")
        recipe, *others = RunOptions(self.recipe, self._model, settings=settings).recipes()
        if not adapting:
            return recipe.with_settings({"rounds": 0, "gradient_variance.weight": 0.0, "groups_only": False}), {}
        return (self.recipe, settings) if others else (recipe, {})

    def _class_weight(self) -> Any:
        """Weights of classes by their place in `classes_`."""
        if not isinstance(self.class_weight, Mapping):
            return self.class_weight
        places = {label: place for place, label in enumerate(self.classes_.tolist())}
        if unknown := [label for label in self.class_weight if label not in places]:
            raise InputError(f"class_weight names the class {unknown[0]!r}; there are {', '.join(map(str, places))}")
        return {places[label]: weight for label, weight in self.class_weight.items()}

    @property
    def _model(self) -> Any:
        return self.model if self.estimator is None else self.estimator


def label_free_score(estimator: Any, X: Any = None, y: Any = None) -> float:
    """How well predictions on target tell the classes apart: a scorer that reads no labels, more is better.

    It is what `calida select` decides by: the default rule's value, corr-c, of the round that was returned. The target
    is the one that the estimator was fitted with, or source if there was none; `X` and `y` are what scikit-learn's
    searches hand to any scorer, and are not looked at.
    """
    while not isinstance(estimator, CalibratedAdapter):
        estimator = _inside(estimator)
    check_is_fitted(estimator)
    return estimator.target_score_


def _inside(estimator: Any) -> Any:
    """What a pipeline ends in, a search has found, or a selector of skada has fitted."""
    if hasattr(estimator, "steps"):
        return estimator.steps[-1][1]
    for name in ("best_estimator_", "base_estimator_"):
        if hasattr(estimator, name):
            return getattr(estimator, name)
    raise InputError(f"there is no fitted CalibratedAdapter in {estimator!r}")


def _split_domains(X: Any, y: Any, sample_domain: Any, weight: Any) -> tuple[Any, Any, Any, Any]:
    """Source samples and labels, target samples, source weights: the target's labels go no further than this."""
    domain = check_array(sample_domain, ensure_2d=False, input_name="sample_domain")
    check_consistent_length(X, y, domain)
    source, target = np.flatnonzero(domain >= 0), np.flatnonzero(domain < 0)
    if not len(source) or not len(target):
        raise InputError(
            f"sample_domain marks {len(source)} samples as source (0 or more) and {len(target)} as target (negative); "
            "both are needed"
        )
    labels, weights = (None if some is None else _safe_indexing(some, source) for some in (y, weight))
    return _safe_indexing(X, source), labels, _safe_indexing(X, target), weights


def _numbers_of(x: pl.DataFrame, target: pl.DataFrame) -> tuple[Tensor, Tensor]:
    """The columns that hold numbers in both, in rows without gaps: [S, D], [T, D]."""
    columns = [name for name in x.columns if name in target.columns and x[name].dtype.is_numeric()]
    columns = [name for name in columns if target[name].dtype.is_numeric()]
    whole = (frame.select(columns).cast(pl.Float64).fill_nan(None).drop_nulls() for frame in (x, target))
    source, other = (torch.from_numpy(frame.to_numpy().copy()) for frame in whole)
    return source[: len(source) * bool(columns)], other[: len(other) * bool(columns)]


def _as_seed(random_state: Any) -> int:
    """A whole number as it is, so that it means what `calida.adapt` means by it; anything else gives one draw."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def _predict(adapted: Adapted, x: NDArray[np.float32], raw: bool) -> Prediction:
    """Predict in batches filled up to whole vectors.

    A processor rounds the last few rows of a batch otherwise than the rest, by one part in ten million, and
    scikit-learn holds that a sample's probabilities depend neither on its place nor on the samples beside it.
    """
    check_sizes(adapted.network.scale, torch.from_numpy(x), "X", "the source that this classifier was trained on")
    filled = np.pad(x, ((0, -len(x) % _ROWS), (0, 0)), mode="edge")
    prediction = adapted.predict(filled, batch_size=8 * _ROWS, raw=raw, on_mismatch="ignore")
    return prediction[: len(x)]


def _normalized(prediction: Prediction) -> Tensor:
    """Log-probabilities in float64, whose rows sum to one as closely as scikit-learn's metrics demand."""
    return prediction.log_probs.double().log_softmax(-1)
