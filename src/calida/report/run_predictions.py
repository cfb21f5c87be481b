"""What a run's report rests on: predictions before and after, a map of features, and a few images, as one file."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from calida.adaptation import Adapted
from calida.data import Labeled, Samples, load_arrays
from calida.data.unify.preparation import resize
from calida.errors import CheckpointError, InputError
from calida.files import write_atomically
from calida.json_values import digest_values
from calida.model import Prediction
from calida.seeds import Seeds
from calida.uncertainty import rejection_scores, temper

_DIGEST = "digest"
_ROUNDING = 1e-4
_ON_MAP = 600  # points of each domain
_SHOWN = 6  # samples of each kind for a class, and fewer where there are many classes
_SHOWN_IN_ALL = 240
_COMPARED = 8  # samples of either end
_PIXELS = 96  # of a thumbnail's longer side


def _digest(arrays: Mapping[str, np.ndarray]) -> str:
    """Of names, types, shapes and numbers."""
    told = {name: [array.dtype.str, list(array.shape)] for name, array in sorted(arrays.items())}
    return digest_values(told, *(arrays[name].tobytes() for name in sorted(arrays)))


def _matrix(array: np.ndarray) -> tuple[int, int]:
    if array.ndim != 2 or min(array.shape) < 1:
        raise ValueError(f"target has the shape {array.shape} instead of one row a sample")
    return array.shape[0], array.shape[1]


@dataclass(frozen=True)
class ClassifierPredictions:
    """What one classifier says of source validation and target, and where both lie on its map."""

    temperature: np.ndarray  # [], that the log-probabilities below are given at
    validation: np.ndarray  # [V, K] log-probabilities
    target: np.ndarray  # [N, K]
    uncertainty: np.ndarray  # [N, 3]: entropy, aleatoric, epistemic
    map: np.ndarray  # [S + T, 2]

    def scores(self) -> dict[str, Tensor]:
        """What the target can be ordered by, least certain last."""
        log_probs, parts = torch.from_numpy(self.target).double(), torch.from_numpy(self.uncertainty).double()
        return rejection_scores(log_probs.amax(-1).exp(), parts[:, 0], parts[:, 2])

    @property
    def uncalibrated(self) -> Tensor:
        """The network's own log-probabilities on target."""
        return temper(torch.from_numpy(self.target).double(), 1 / float(self.temperature))


@dataclass(frozen=True)
class RunPredictions:
    """Both classifiers' views of the same samples."""

    before: ClassifierPredictions
    after: ClassifierPredictions
    validation_labels: np.ndarray  # [V]
    mapped_source: np.ndarray  # [S] rows of validation
    mapped_target: np.ndarray  # [T] rows of target
    shown: np.ndarray  # [I] rows of target that have an image below
    images: np.ndarray  # [I, C, H, W] bytes, empty for vectors
    truth: np.ndarray  # [N] true labels where an oracle gave them, else empty
    right: np.ndarray = field(default_factory=lambda: np.zeros(0, np.float32))  # [N] how likely each answer is right
    # Rows of target, those that look most like the source first; and their images, if there are any.
    by_domain: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    by_domain_images: np.ndarray = field(default_factory=lambda: np.zeros(0, np.uint8))

    def save(self, path: Path) -> None:
        arrays = {key: value for key, value in vars(self).items() if isinstance(value, np.ndarray)}
        for name in ("before", "after"):
            arrays |= {f"{name}_{key}": value for key, value in vars(getattr(self, name)).items()}
        arrays |= {_DIGEST: np.array(_digest(arrays))}
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **arrays)  # type: ignore[arg-type]  # a flag of its own stands among the names
        write_atomically(path, buffer.getvalue())

    @staticmethod
    def load(path: Path) -> RunPredictions:
        """What `save` wrote, or CheckpointError: no array is taken that was changed or does not fit the others."""
        if not path.exists():
            raise CheckpointError(f"{path.parent} holds no finished run: {path.name} is missing")
        try:
            arrays = load_arrays(path)
            known = arrays.pop(_DIGEST, None)
            views = {
                name: ClassifierPredictions(
                    **{key: arrays[f"{name}_{key}"] for key in ClassifierPredictions.__dataclass_fields__}
                )
                for name in ("before", "after")
            }
            rest: dict[str, Any] = {key: arrays[key] for key in RunPredictions.__dataclass_fields__ if key not in views}
        except (InputError, KeyError) as error:
            raise CheckpointError(f"{path} is truncated or not a calida file: {error}") from None
        if known is None or str(known) != _digest(arrays):
            raise CheckpointError(f"{path} was changed after calida wrote it: its digest does not match its arrays")
        found = RunPredictions(views["before"], views["after"], **rest)
        try:
            found._check()
        except ValueError as error:
            raise CheckpointError(f"{path} is not what calida wrote: {error}") from None
        return found

    def _check(self) -> None:
        """Refuse arrays that do not belong together."""
        (count, classes), held = _matrix(self.after.target), len(self.validation_labels)
        on_map = len(self.mapped_source) + len(self.mapped_target)
        for view in (self.before, self.after):
            shapes = {"validation": (held, classes), "target": (count, classes), "uncertainty": (count, 3)}
            shapes["map"] = (on_map, 2)
            for name, shape in shapes.items():
                array = getattr(view, name)
                if array.shape != shape or array.dtype.kind != "f":
                    raise ValueError(f"{name} has the shape {array.shape} instead of {shape}")
                if np.isnan(array).any() or (name in ("validation", "target") and (array > _ROUNDING).any()):
                    raise ValueError(f"{name} has numbers that it cannot have")
            if view.temperature.shape != () or not 0 < float(view.temperature) < np.inf:
                raise ValueError("a temperature is none")
        rows = {"validation_labels": classes, "mapped_source": held, "mapped_target": count, "shown": count}
        rows["by_domain"] = count
        for name, most in {**rows, "truth": classes}.items():
            array = getattr(self, name)
            if array.dtype.kind not in "iu" or array.ndim != 1 or ((array < 0) | (array >= most)).any():
                raise ValueError(f"{name} has numbers that are not from 0 to {most - 1}")
        right = self.right
        if right.dtype.kind != "f" or right.shape not in ((0,), (count,)) or not ((right >= 0) & (right <= 1)).all():
            raise ValueError("right has numbers that it cannot have")
        if len(self.truth) not in (0, count):
            raise ValueError(f"there are {len(self.truth)} true labels for {count} samples")
        for images, places in ((self.images, self.shown), (self.by_domain_images, self.by_domain)):
            if images.dtype != np.uint8 or (images.size and images.shape[:1] != places.shape):
                raise ValueError(f"there are images of the shape {images.shape} for {len(places)} samples")


def gather(
    adapted: Adapted,
    validation: Labeled,
    target: Samples,
    truth: Tensor | None,
    pictures: Callable[[Tensor], np.ndarray] | None = None,
    on_map: int = _ON_MAP,
) -> tuple[RunPredictions, Prediction]:
    """Both domains by both classifiers; and what the adapted one predicts on target, in full.

    What the returned classifier said of both domains when it was trained is taken as it is.
    `pictures` gives images of rows of the target that have none of their own, since an encoder has read them.
    `on_map` points of each domain are mapped, which takes longer than all the rest.
    """
    seeds = Seeds(adapted.seed)
    before_model = adapted.source_only or adapted
    said = {
        name: _both_domains(model, validation, target) for name, model in (("before", before_model), ("after", adapted))
    }
    mapped = [_some(len(x), on_map, seeds, f"{name} map") for name, x in (("source", validation.y), ("target", target))]
    temperatures = {"before": before_model.temperature, "after": adapted.temperature}
    views = {name: _view(temperatures[name], *pair, mapped, seeds) for name, pair in said.items()}
    after = said["after"][1]
    shown = telling_rows(after.labels, after.confidence if adapted.right is None else adapted.right)
    by_domain = rows_by_domain(adapted.domain_scores)
    drawn = pictures if pictures is not None and len(target.shape) != 4 else partial(thumbnails, target)
    gathered = RunPredictions(
        views["before"],
        views["after"],
        validation.y.numpy(),
        mapped[0].numpy(),
        mapped[1].numpy(),
        shown.numpy(),
        drawn(shown),
        np.zeros(0, dtype=np.int64) if truth is None else truth.numpy(),
        np.zeros(0, np.float32) if adapted.right is None else adapted.right.float().numpy(),
        by_domain.numpy(),
        drawn(by_domain),
    )
    return gathered, after


def _both_domains(model: Adapted, validation: Labeled, target: Samples) -> tuple[Prediction, Prediction]:
    """On source validation and target, at the classifier's temperature."""
    if model.predictions is None:
        return model.predict(validation.x), model.predict(target, on_mismatch="ignore")
    seen = model.predictions
    return seen.validation.tempered(model.temperature), seen.target.tempered(model.temperature)


def _view(
    temperature: float, validation: Prediction, target: Prediction, mapped: list[Tensor], seeds: Seeds
) -> ClassifierPredictions:
    features = torch.cat([validation.features[mapped[0]], target.features[mapped[1]]]).double().numpy()
    return ClassifierPredictions(
        np.array(temperature),
        validation.log_probs.float().numpy(),
        target.log_probs.float().numpy(),
        torch.stack([target.entropy, target.aleatoric, target.epistemic], 1).float().numpy(),
        flatten(features, seeds).astype(np.float32),
    )


def flatten(features: np.ndarray, seeds: Seeds) -> np.ndarray:
    """Two coordinates a sample by t-SNE on the main directions; what is too little for it is shown by PCA alone."""
    if not len(features):
        return np.zeros((0, 2))
    from sklearn.decomposition import PCA  # imported late: it takes as long as torch
    from sklearn.manifold import TSNE

    seed = seeds.integer("map") % 2**32
    spread = features.std(0).max() or 1.0
    width = min(30, *features.shape)
    main = PCA(width, random_state=seed).fit_transform(features / spread) if width > 2 else features / spread
    if len(main) < 30 or not np.isfinite(main).all() or main.std() < 1e-9:
        return np.pad(main, ((0, 0), (0, max(0, 2 - main.shape[1]))))[:, :2]
    # Half of scikit-learn's iterations: a map to look at settles long before, and this is a run's longest extra.
    tsne = TSNE(2, perplexity=min(30, len(main) / 4), init="pca", random_state=seed, max_iter=500)
    return np.asarray(tsne.fit_transform(main))


def _some(count: int, wanted: int, seeds: Seeds, name: str) -> Tensor:
    return torch.randperm(count, generator=seeds.generator(name))[:wanted].sort().values


def telling_rows(labels: Tensor, right: Tensor) -> Tensor:
    """For every predicted class its surest samples and those that are most likely wrong, the likeliest last.

    Where classes are many, those come first that should have the most wrong answers, as far as the page has room.
    """
    errors = torch.zeros(int(labels.max()) + 1 if len(labels) else 0, dtype=torch.float64)
    errors.index_add_(0, labels, 1 - right.double())
    counts = torch.bincount(labels, minlength=len(errors))
    used = [label for label in errors.argsort(descending=True, stable=True).tolist() if counts[label]]
    most = max(1, min(_SHOWN, _SHOWN_IN_ALL // (2 * max(len(used), 1))))
    rows: list[int] = []
    for label in sorted(used[: _SHOWN_IN_ALL // (2 * most)]):
        members = (labels == label).nonzero().flatten()
        order = members[right[members].argsort(descending=True, stable=True)].tolist()
        rows += order[:-most][:most] + order[-most:]
    return torch.tensor(rows, dtype=torch.long)


def rows_by_domain(domain_scores: Tensor | None) -> Tensor:
    """The samples that look most like the source, and those that look least like it, the least one last: [T] -> [2n].

    Between them stands what tells the domains apart.
    """
    if domain_scores is None:
        return torch.zeros(0, dtype=torch.long)
    known = domain_scores.isfinite().nonzero().flatten()
    order = known[domain_scores[known].argsort(stable=True)]
    few = min(_COMPARED, len(order) // 2)
    return torch.cat([order[:few], order[len(order) - few :]])


def thumbnails(samples: Samples, rows: Tensor) -> np.ndarray:
    """Images of these rows as bytes, no larger than a page shows them; empty where samples are no images."""
    if len(samples.shape) != 4 or not len(rows):
        return np.zeros((0,), dtype=np.uint8)
    images = samples[rows]
    if max(images.shape[2:]) > _PIXELS:
        scale = _PIXELS / max(images.shape[2:])
        images = resize(images, (max(round(scale * images.shape[2]), 1), max(round(scale * images.shape[3]), 1)))
    if images.dtype != torch.uint8:
        low, high = images.amin(), images.amax()
        images = ((images - low) / (high - low).clamp(min=1e-12) * 255).byte()
    return images.numpy()
