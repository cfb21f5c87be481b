"""Monte-Carlo prediction (Eq. 2) with uncertainties."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import torch
from torch import Tensor

from calida.data import Samples, row_slices, stream, unit_range
from calida.errors import InputError, NonFiniteError
from calida.model.any_classifier import AnyClassifier, Sampling
from calida.model.classifier import evaluation_mode
from calida.processes import ALONE, Processes, Share
from calida.seeds import Seeds
from calida.uncertainty import (
    SCORES,
    accepted,
    coverage_at_risk,
    decompose,
    mean_log_probs,
    ranked,
    rejection_scores,
    renyi_entropy,
    temper,
)

_SHOWN, _LONG = 5, 60  # labels and samples that a prediction shows of itself, and letters of a label


@dataclass(frozen=True, repr=False)
class Prediction:
    """What a classifier says of N samples; entropy = aleatoric + epistemic, in nats."""

    log_probs: Tensor  # [N, K], of the averaged prediction
    entropy: Tensor  # [N]
    aleatoric: Tensor  # [N], the expected entropy of one weight sample
    epistemic: Tensor  # [N], mutual information of label and weight sample
    features: Tensor  # [N, D]
    classes: tuple[str, ...] = ()  # the names of the K classes, where they are known
    names: Sequence[str] = ()  # of the samples: paths or rows, where they have some
    right: Tensor | None = None  # [N], how likely each answer is right, where check classifiers have told

    @property
    def labels(self) -> Tensor:
        """The most probable class of each sample, as an index: [N]."""
        return self.log_probs.argmax(-1)

    @property
    def label_names(self) -> list[str]:
        """The most probable class of each sample, by its name."""
        classes = self.classes or tuple(map(str, range(self.log_probs.shape[-1])))
        return [classes[label] for label in self.labels.tolist()]

    @property
    def probabilities(self) -> Tensor:
        return self.log_probs.exp()

    @property
    def confidence(self) -> Tensor:
        return self.log_probs.amax(-1).exp()

    def scores(self) -> dict[str, Tensor]:
        """What samples can be ordered by, least certain last, each [N]."""
        return rejection_scores(self.confidence, self.entropy, self.epistemic)

    def accepted(
        self,
        coverage: float | None = None,
        max_risk: float | None = None,
        order_by: str | None = None,
        right: Tensor | None = None,
    ) -> Tensor:
        """Which samples to answer for, [N] booleans: this share of them, or as many as the risk allows.

        The expected risk is one less the mean confidence, which is the share of errors if probabilities are calibrated.
        Where more is known of how likely each answer is `right`, [N], that takes the place of confidence.
        """
        check_abstention(coverage, max_risk, order_by)
        right = self.right if right is None else right
        doubt = 1 - self.confidence.double()
        expected = doubt if right is None else 1 - right.double()
        # What is known of `right` is the same for many samples; the classifier's own doubt tells those apart.
        score = ranked(expected, doubt) if order_by is None else self.scores()[order_by].double()
        if order_by == "mutual-information" and len(score) > 1 and not bool(score.any()):
            raise InputError("a point network knows no mutual information; order by confidence or entropy")
        if coverage is None:
            coverage = 1.0 if max_risk is None else coverage_at_risk(score, expected, max_risk)
        return accepted(score, coverage)

    def tempered(self, temperature: float) -> Prediction:
        """The same labels at another temperature: log P / T, normalized; both parts of the entropy keep their share."""
        if temperature == 1.0:
            return self
        log_probs = temper(self.log_probs, temperature)
        entropy = renyi_entropy(log_probs)
        # Where the entropy was 0 there is nothing to share out, and all of it counts as aleatoric.
        share = torch.where(self.entropy > 0, self.epistemic / self.entropy.clamp(min=1e-12), 0.0).clamp(0, 1)
        return replace(
            self, log_probs=log_probs, entropy=entropy, aleatoric=entropy * (1 - share), epistemic=entropy * share
        )

    def averaged_with(self, other: Prediction) -> Prediction:
        """The mean of two classifiers' probabilities; what they disagree about counts as epistemic."""
        log_probs = torch.logaddexp(self.log_probs, other.log_probs) - math.log(2)
        entropy, aleatoric = renyi_entropy(log_probs), (self.aleatoric + other.aleatoric) / 2
        aleatoric = torch.minimum(aleatoric, entropy)  # rounding
        return replace(self, log_probs=log_probs, entropy=entropy, aleatoric=aleatoric, epistemic=entropy - aleatoric)

    def __getitem__(self, rows: Any) -> Prediction:
        """The same of some samples: a slice, a mask [N], places, or one place."""
        tensors = ("log_probs", "entropy", "aleatoric", "epistemic", "features")
        chosen = rows if isinstance(rows, slice) else torch.as_tensor(rows)
        places = torch.arange(len(self))[chosen].reshape(-1)
        names = [self.names[place] for place in places.tolist()] if len(self.names) else ()
        right = None if self.right is None else self.right[places]
        return replace(self, names=names, right=right, **{name: getattr(self, name)[places] for name in tensors})

    def __len__(self) -> int:
        return len(self.log_probs)

    def __repr__(self) -> str:
        """How many samples, the most frequent labels, and the first few samples."""
        count, labels = len(self), [name if len(name) <= _LONG else f"{name[:_LONG]}..." for name in self.label_names]
        often = Counter(labels).most_common(_SHOWN)
        more = ", ..." if len(set(labels)) > _SHOWN else ""
        lines = [
            f"Prediction of {count:,} sample{'s' * (count != 1)}, mean confidence {float(self.confidence.mean()):.1%}",
            "  " + ", ".join(f"{label}: {number:,}" for label, number in often) + more,
        ]
        for row, (label, sure) in enumerate(zip(labels[:_SHOWN], self.confidence.tolist(), strict=False)):
            lines.append(f"  {self.names[row] if self.names else row}  {label}  {sure:.1%}")
        return "\n".join([*lines, "  ..."] if count > _SHOWN else lines)


def check_abstention(coverage: float | None, max_risk: float | None, order_by: str | None = None) -> None:
    """Refuse what decides nothing, or twice."""
    if coverage is not None and max_risk is not None:
        raise InputError("coverage and max_risk both decide how many answers are given; choose one")
    for name, share in {"coverage": coverage, "max_risk": max_risk}.items():
        if share is not None and not _is_share(share):
            raise InputError(f"{name} is a share between 0 and 1, not {share!r:.100}")
    if order_by is not None and order_by not in SCORES:
        raise InputError(f"order_by is one of {', '.join(SCORES)}, not {order_by!r}")


def _is_share(value: object) -> bool:
    return not isinstance(value, bool) and isinstance(value, Real) and 0 <= float(value) <= 1


@torch.no_grad()
def predict(
    classifier: AnyClassifier,
    x: Samples,
    num_samples: int = 1,
    seeds: Seeds | None = None,
    batch_size: int = 500,
    monte_carlo_dropout: bool = False,
    processes: Processes = ALONE,
) -> Prediction:
    """Average the predictions of `num_samples` weight samples (Eq. 2), batch by batch, results on the CPU.

    Each weight sample has a dropout mask in every sampled layer of the classifier, or in all of its dropout layers with
    `monte_carlo_dropout`; a network without any is its own only sample. BatchNorm stays in evaluation mode. Masks and
    noise are a function of the sample (`SampleNoise`), so a prediction does not depend on its place or its neighbors.
    Of several processes, each predicts its share of the samples, and all get what all have found.
    """
    sampling = Sampling(num_samples, (seeds or Seeds(0)).at("prediction"), monte_carlo_dropout)
    parts = []
    # With fewer samples than processes, everybody predicts all of them.
    share = processes.share(len(x)) if len(x) >= processes.count else Share.whole(len(x))
    with evaluation_mode(classifier):
        for rows in stream(x, row_slices(share.stop, classifier.rows_at_once(batch_size, sampling), share.start)):
            batch = unit_range(rows.to(classifier.device, non_blocking=True))
            samples, features = classifier.predict_batch(batch, sampling)
            mean = mean_log_probs(samples)
            found = (mean, *decompose(samples, mean=mean), features)
            parts.append([part.cpu() for part in found])
    gathered = (share.gather(torch.cat(column)) for column in zip(*parts, strict=True))
    log_probs, entropy, aleatoric, epistemic, features = gathered
    lost = (log_probs.isnan().any(-1) | entropy.isnan()).nonzero().flatten()
    if len(lost):
        raise NonFiniteError(
            f"the classifier has no answer for {len(lost):,} of {len(x):,} samples, the first at index {int(lost[0])}: "
            "its numbers become infinite or NaN there"
        )
    return Prediction(log_probs, entropy, aleatoric, epistemic, features)
