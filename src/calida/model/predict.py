"""Monte-Carlo prediction (Eq. 2) with uncertainties."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from calida.data import Samples, row_slices, stream
from calida.errors import InputError
from calida.model.classifier import Classifier, evaluation_mode
from calida.model.logits import draw_noise
from calida.seeds import Seeds
from calida.uncertainty import (
    SCORES,
    accepted,
    coverage_at_risk,
    decompose,
    mean_log_probs,
    rejection_scores,
    renyi_entropy,
)


@dataclass(frozen=True)
class Prediction:
    """What a classifier says of N samples; entropy = aleatoric + epistemic, in nats."""

    log_probs: Tensor  # [N, K], of the averaged prediction
    entropy: Tensor  # [N]
    aleatoric: Tensor  # [N], the expected entropy of one Monte-Carlo sample
    epistemic: Tensor  # [N], mutual information of label and Monte-Carlo sample
    features: Tensor  # [N, D]

    @property
    def labels(self) -> Tensor:
        return self.log_probs.argmax(-1)

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
        self, coverage: float | None = None, max_risk: float | None = None, order_by: str = SCORES[0]
    ) -> Tensor:
        """Which samples to answer for, [N] booleans: this share of them, or as many as the risk allows.

        The expected risk is one less the mean confidence, which is the share of errors if probabilities are calibrated.
        """
        check_abstention(coverage, max_risk, order_by)
        score = self.scores()[order_by].double()
        if order_by == "mutual-information" and len(score) > 1 and not bool(score.any()):
            raise InputError("a point network knows no mutual information; order by confidence or entropy")
        if coverage is None:
            expected = 1 - self.confidence.double()
            coverage = 1.0 if max_risk is None else coverage_at_risk(score, expected, max_risk)
        return accepted(score, coverage)

    def tempered(self, temperature: float) -> Prediction:
        """The same labels at another temperature: log P / T, normalised; both parts of the entropy keep their share."""
        if temperature == 1.0:
            return self
        log_probs = torch.log_softmax(self.log_probs / temperature, -1)
        entropy = renyi_entropy(log_probs)
        # Where the entropy was 0 there is nothing to share out, and all of it counts as aleatoric.
        share = torch.where(self.entropy > 0, self.epistemic / self.entropy.clamp(min=1e-12), 0.0).clamp(0, 1)
        return replace(
            self, log_probs=log_probs, entropy=entropy, aleatoric=entropy * (1 - share), epistemic=entropy * share
        )

    def __len__(self) -> int:
        return len(self.log_probs)


def check_abstention(coverage: float | None, max_risk: float | None, order_by: str) -> None:
    """Refuse what decides nothing, or twice."""
    if coverage is not None and max_risk is not None:
        raise InputError("coverage and max_risk both decide how many answers are given; choose one")
    for name, share in {"coverage": coverage, "max_risk": max_risk}.items():
        if share is not None and not 0 <= share <= 1:
            raise InputError(f"{name} is a share between 0 and 1, not {share:g}")
    if order_by not in SCORES:
        raise InputError(f"order_by is one of {', '.join(SCORES)}, not {order_by!r}")


@torch.no_grad()
def predict(
    classifier: Classifier,
    x: Samples,
    num_samples: int = 1,
    seeds: Seeds | None = None,
    batch_size: int = 500,
    monte_carlo_dropout: bool = False,
) -> Prediction:
    """Average `num_samples` predictions a sample, batch by batch, results on the CPU.

    The backbone runs once and only logit noise is drawn. The same noise serves every sample, so that a prediction
    does not depend on which others are in its batch. With `monte_carlo_dropout` each draw is a pass of its own with
    new dropout masks; BatchNorm stays in evaluation mode.
    """
    seeds = seeds or Seeds(0)
    device = classifier.device
    passes = num_samples if monte_carlo_dropout else 1
    parts = []
    with evaluation_mode(classifier, dropout=monte_carlo_dropout):
        for index, rows in enumerate(stream(x, row_slices(len(x), batch_size))):
            batch = rows.to(device, non_blocking=True)
            draws = []
            for turn in range(passes):
                place = seeds.at("prediction", turn)
                with place.at(index * batch_size).globally("dropout", device):
                    features, logits = classifier(batch)
                generator = place.generator("noise", device)
                noise = draw_noise(num_samples // passes, logits, generator, shared=True)
                draws.append(logits.sample_log_probs(noise))
            samples = torch.cat(draws) if len(draws) > 1 else draws[0]  # [M, B, K]
            split = decompose(samples)
            found = (mean_log_probs(samples), split.predictive, split.aleatoric, split.epistemic, features)
            parts.append([part.cpu() for part in found])
    return Prediction(*(torch.cat(column) for column in zip(*parts, strict=True)))
