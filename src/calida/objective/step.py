"""What a term sees of one training step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, cast

import torch
from torch import Tensor

from calida.data import SourceBatch, TargetBatch
from calida.model import Classifier, Logits, Output, as_one_batch, draw_noise
from calida.seeds import Seeds
from calida.uncertainty import mean_log_probs

Domain = Literal["source", "target"]


class Step:
    """A model, the batches of this step, and seeds. Each domain runs through the network once, when first asked.

    Terms share that pass, so a second term on a domain is nearly free, and a domain that no term asks for is not run
    (nor does its BatchNorm move). Dropout and noise are functions of the seeds: the same step gives the same values
    whenever it is run.

    Where several processes share a batch, each runs its own rows through the network. What the network says of them is
    gathered, so that a term sees the whole batch, as it does where there is one process.
    """

    def __init__(
        self,
        model: Classifier,
        batches: Mapping[Domain, SourceBatch | TargetBatch],
        seeds: Seeds,
        num_samples: int = 1,
        teacher: Classifier | None = None,
    ) -> None:
        self.model = model
        self.teacher = model if teacher is None else teacher  # who labels what the model is to learn
        self.batches = batches
        self.seeds = seeds
        self.num_samples = num_samples
        self._outputs: dict[Domain, Output] = {}
        self._samples: dict[Domain, Tensor] = {}

    @property
    def source(self) -> SourceBatch:
        return cast(SourceBatch, self.batches["source"])

    @property
    def target(self) -> TargetBatch:
        return cast(TargetBatch, self.batches["target"])

    def output(self, domain: Domain) -> Output:
        if domain not in self._outputs:
            own = self.model.standardize(self.batches[domain].own)
            self._outputs[domain] = self.run_own(domain, self.model, own, f"{domain} dropout")
        return self._outputs[domain]

    def run(self, domain: Domain, standard: Tensor) -> Output:
        """A pass of its own over standardized inputs, with this domain's dropout masks: M of each sampled layer."""
        own = self.batches[domain].share.take(standard)
        return self.run_own(domain, self.model, own, f"{domain} dropout")

    def run_own(self, domain: Domain, model: Classifier, standard: Tensor, masks: str) -> Output:
        """A pass of any classifier over this process's own rows, with dropout masks by name: [b, ...] -> all rows."""
        share = self.batches[domain].share
        with self.seeds.globally(masks, standard.device), as_one_batch(share, self.num_samples):
            features, (mean, std) = model.from_standard(standard, self.num_samples)
        if share.processes.alone:
            return Output(features, Logits(mean, std))
        mean, std = share.gather(torch.cat([mean, std], -1), 1).chunk(2, -1)
        return Output(share.gather(features), Logits(mean, std))

    def features(self, domain: Domain) -> Tensor:
        return self.output(domain).features  # [B, D]

    def sample_log_probs(self, domain: Domain) -> Tensor:
        if domain not in self._samples:
            self._samples[domain] = self.draw(domain, self.output(domain).logits)
        return self._samples[domain]  # [M, B, K]

    def draw(self, domain: Domain, logits: Logits) -> Tensor:
        """Monte-Carlo log-probabilities with this domain's noise: [M, B, K]."""
        generator = self.seeds.generator(f"{domain} noise", logits.mean.device)
        return logits.sample_log_probs(draw_noise(self.num_samples, logits, generator))

    def log_probs(self, domain: Domain) -> Tensor:
        """The averaged prediction of Eq. 2: [B, K]."""
        return mean_log_probs(self.sample_log_probs(domain))

    def groups(self, domain: Domain, count: int) -> Iterator[Step]:
        """The domain's batch cut into `count` nearly equal steps with seeds of their own, made when asked for.

        Of several processes, each gets the groups that lie within its own rows.
        """
        batch = self.batches[domain]
        for index in batch.share.own(count):
            rows = slice(index * len(batch) // count, (index + 1) * len(batch) // count)
            seeds = self.seeds.at("group", index)
            yield Step(self.model, {domain: batch[rows]}, seeds, self.num_samples, self.teacher)
