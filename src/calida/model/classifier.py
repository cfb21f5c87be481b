"""A classifier: standardized inputs -> backbone -> Gaussian logits."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from math import prod
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from calida.data import Samples, Scale
from calida.encoders import is_encoder_name
from calida.errors import InputError
from calida.json_values import from_json
from calida.model.any_classifier import AnyClassifier, Sampling
from calida.model.backbones import DropoutToFeatures, Shape, build_backbone, name_backbone
from calida.model.encoder_backbone import (
    STANDARDIZED,
    Blocks,
    EncoderBackbone,
    EncoderInput,
    Norm,
    blank_encoder_backbone,
)
from calida.model.heads import build_head
from calida.model.logits import Logits
from calida.model.sampling import (
    Sampled,
    SampleNoise,
    dropouts,
    first_sampled,
    layers_of,
    masks_from,
    repeat_rows,
)
from calida.model.standardize import Standardize
from calida.model.tabular import PiecewiseLinear
from calida.processes import ALONE, Processes
from calida.seeds import Seeds
from calida.uncertainty import mean_log_probs

Precision = Literal["fp32", "bf16"]

_NOISE_PAIRS = 4  # for each weight sample, a draw and its opposite: what they miss of the mean counts as epistemic
_FOLDED_ROWS = 3_200
MOST_CLASSES = 100_000
_MOST_VALUES = 1 << 26  # of one sample


class Output(NamedTuple):
    """What the backbone saw in the samples, its mean over weight samples, and what the head made of it."""

    features: Tensor  # [B, D]
    logits: Logits  # [M, B, K]; [B, K] of a plain forward pass


class Classifier(AnyClassifier):
    """Any backbone giving features [B, D], and a head giving Gaussian logits.

    `sampled` says which dropout layers draw weights from Q(w), in prediction too: none of a point network's.
    """

    def __init__(
        self,
        backbone: nn.Module,
        head: nn.Module,
        standardize: nn.Module | None = None,
        sampled: Sampled = "none",
    ) -> None:
        super().__init__()
        self.standardize = standardize or nn.Identity()
        self.backbone = backbone
        self.head = head
        self.sampled: Sampled = sampled
        self.precision: Precision = "fp32"  # of the backbone
        self.keeps_statistics = False  # of a pre-trained backbone's norms

    @torch.no_grad()
    def fit_inputs(
        self, source: Samples, target: Samples, weight: Tensor | None = None, processes: Processes = ALONE
    ) -> None:
        """Scales, and the pieces of numbers where the backbone has such a layer, before the first step."""
        if isinstance(self.standardize, Standardize):
            self.standardize.fit(source, target, weight, processes)
        for layer in self.backbone.modules():
            if isinstance(layer, PiecewiseLinear) and isinstance(source, Tensor):
                layer.fit_inputs(self.standardize(source))

    def forward(self, x: Tensor) -> Output:
        """One pass with one mask a row, or none in evaluation mode: features [B, D], logits [B, K]."""
        features, (mean, std) = self.from_standard(self.standardize(x))
        return Output(features, Logits(mean[0], std[0]))

    def from_standard(self, standard: Tensor, num_samples: int = 1, sampled: Sampled | None = None) -> Output:
        """M weight samples on inputs that are standardized already (virtual adversarial steps move these).

        Layers below the first sampled one run once, the others on [M * B] rows; where nothing is sampled, one pass
        stands for all M. BatchNorm in training mode normalizes all rows alike.
        """
        sampled = self.sampled if sampled is None else sampled
        masks = num_samples if self.sampled_layers(sampled) else 1
        features = self._features(standard, masks, sampled)
        mean, std = (part.unflatten(0, (masks, -1)) for part in self.head(features))
        return Output(features.unflatten(0, (masks, -1)).mean(0), Logits(mean, std))

    def _features(self, standard: Tensor, masks: int, sampled: Sampled) -> Tensor:
        """[B, ...] -> [M * B, D], the backbone in its precision, what follows in that of the inputs."""
        if self.precision == "fp32":
            return self._run_backbone(standard, masks, sampled)
        with torch.autocast(standard.device.type, torch.bfloat16):
            return self._run_backbone(standard, masks, sampled).to(standard.dtype)

    def _run_backbone(self, standard: Tensor, masks: int, sampled: Sampled) -> Tensor:
        split = first_sampled(self.backbone, sampled)
        below, above = (layers := layers_of(self.backbone))[:split], layers[split:]
        if not above:
            return repeat_rows(self.backbone(standard), masks)
        hidden = standard
        for layer in below:
            hidden = layer(hidden)
        spreads = isinstance(above[0], DropoutToFeatures)
        hidden = above.pop(0)(hidden, masks) if spreads else repeat_rows(hidden, masks)
        for layer in above:
            hidden = layer(hidden)
        return hidden

    def sampled_layers(self, sampled: Sampled | None = None) -> list[nn.Module]:
        """The dropout layers that are sampled: those of this network, or of another choice."""
        sampled = self.sampled if sampled is None else sampled
        if sampled == "none":
            return []
        above = layers_of(self.backbone)[first_sampled(self.backbone, sampled) :]
        return [layer for part in (*above, self.head) for layer in dropouts(part)]

    @property
    def pretrained(self) -> EncoderBackbone | None:
        """The backbone, if it came with weights."""
        return self.backbone if isinstance(self.backbone, EncoderBackbone) else None

    def tune(self, blocks: Blocks, keep_statistics: bool) -> None:
        """Say which of the last blocks of a pre-trained backbone learn, and whether its norms stay as they came."""
        if self.pretrained is not None:
            self.pretrained.train_last(blocks)
            self.keeps_statistics = keep_statistics

    def train(self, mode: bool = True) -> Classifier:
        """Training or evaluation mode; norms whose statistics are kept are in the latter always."""
        super().train(mode)
        for norm in self._kept_norms():
            norm.eval()
        return self

    def _kept_norms(self) -> list[nn.Module]:
        return [] if self.pretrained is None or not self.keeps_statistics else self.pretrained.norms()

    def moving_norms(self) -> list[Norm]:
        """The norms whose statistics are taken from the data."""
        kept = set(self._kept_norms())
        return [part for part in self.modules() if isinstance(part, Norm) and part not in kept]

    def parameter_groups(self, pretrained_rate_fraction: float) -> list[dict[str, Any]]:
        """The parameters that learn, in groups that each have a fraction of the learning rate."""
        learning = [parameter for parameter in self.parameters() if parameter.requires_grad]
        came = set() if self.pretrained is None else set(self.pretrained.network.parameters())
        groups = [
            {"params": [one for one in learning if one not in came], "fraction": 1.0},
            {"params": [one for one in learning if one in came], "fraction": pretrained_rate_fraction},
        ]
        return [group for group in groups if group["params"]]

    def lay_out(self, memory_format: torch.memory_format) -> None:
        """Keep images and convolution weights in this layout: channels_last, unless a double backward is ahead.

        On a CPU channels_last makes training and prediction faster, and the double backward through BatchNorm slower.
        """
        for parameter in self.parameters():
            if parameter.ndim == 4:
                parameter.data = parameter.data.contiguous(memory_format=memory_format)
        self.standardize.memory_format = memory_format  # type: ignore[assignment]

    @torch.no_grad()
    def move_logits(self, offsets: Tensor) -> None:
        """Add to the mean logit of each class, [K], for good: the last layer's bias takes it in."""
        layers = [layer for layer in self.head.get_submodule("mean").modules() if isinstance(layer, nn.Linear)]
        layers[-1].bias.add_(offsets.to(layers[-1].bias))

    def predict_batch(self, x: Tensor, sampling: Sampling) -> tuple[Tensor, Tensor]:
        """Every weight sample's log-probabilities, [M, B, K], or [1, B, K] without masks; features are their mean."""
        sampled, layers = self._drawn(sampling)
        noise = SampleNoise(x, sampling.seeds)
        with masks_from(noise, layers, sampling.num_samples):
            features, logits = self.from_standard(self.standardize(x), sampling.num_samples, sampled)
        return _without_noise(logits, noise, sampling.num_samples), features

    def rows_at_once(self, batch_size: int, sampling: Sampling) -> int:
        """Folded rows take memory like rows: with many masks, fewer samples at a time, enough to keep a core busy."""
        masks = sampling.num_samples if self._drawn(sampling)[1] else 1
        return max(min(batch_size, _FOLDED_ROWS // masks), min(batch_size, 16))

    def _drawn(self, sampling: Sampling) -> tuple[Sampled, list[nn.Module]]:
        sampled: Sampled = "all" if sampling.monte_carlo_dropout else self.sampled
        return sampled, self.sampled_layers(sampled)

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device


def _without_noise(logits: Logits, noise: SampleNoise, num_samples: int) -> Tensor:
    """log E_noise P(y | x, w) of every weight sample: [M, B, K].

    The noise of the logits is the data's (Kendall and Gal, 2017). Taking its mean for each weight sample leaves what
    weight samples disagree about: their mutual information with the label, the epistemic part.
    """
    weights, rows, classes = logits.mean.shape
    if not bool(logits.std.any()):
        return torch.log_softmax(logits.mean, -1)
    draws = num_samples if weights == 1 else _NOISE_PAIRS
    normal = noise.normal("logits", draws * weights, classes).to(logits.mean).view(draws, weights, rows, classes)
    if weights > 1:
        normal = torch.cat([normal, -normal])
    # Classes come first: a softmax over a few neighbors in memory takes four times as long.
    normal, mean, std = (part.movedim(-1, 0).contiguous() for part in (normal, *logits))  # [K, draws, M, B], [K, M, B]
    log_probs = torch.log_softmax(mean[:, None] + std[:, None] * normal, 0)
    return mean_log_probs(log_probs.transpose(0, 1)).movedim(0, -1).contiguous()


@dataclass(frozen=True)
class Network:
    """All that is needed to build a classifier again: plain values, kept beside its weights."""

    input_shape: Shape
    num_classes: int
    backbone: str = "auto"
    gaussian: bool = False
    head: str = "auto"
    scale: Scale = Scale(False, 0.0, 0.0)  # of the source samples
    sampled: Sampled = "none"  # the dropout layers that draw weights
    precision: Precision = "fp32"  # that the backbone was trained in, and predicts in
    model: str = "network"  # or the family of a classifier that is none

    def __post_init__(self) -> None:
        # What `auto` means may change one day; what a file says it holds may not.
        object.__setattr__(self, "backbone", name_backbone(self.backbone, self.input_shape))

    def to_json(self) -> dict[str, Any]:
        values: dict[str, Any] = json.loads(json.dumps(asdict(self)))  # tuples as JSON has them
        return values

    @staticmethod
    def from_json(values: Any, place: str = "a network") -> Network:
        return from_json(Network, values, place)

    def check(self) -> None:
        """Refuse what no classifier of ours has: ValueError, for those who read it from a file."""
        if not 2 <= self.num_classes <= MOST_CLASSES:
            raise ValueError(f"{self.num_classes} classes")
        if len(self.input_shape) not in (1, 3) or min(self.input_shape) < 1 or prod(self.input_shape) > _MOST_VALUES:
            raise ValueError(f"samples of the shape {self.input_shape}")


CUSTOM = "custom"


def build_classifier(network: Network, seeds: Seeds, backbone: nn.Module | None = None) -> Classifier:
    """Build a network with weights drawn from the seed "weights"; a given backbone is copied, not changed."""
    with seeds.globally("weights"):
        if backbone is not None:
            module, kind = copy.deepcopy(backbone).float(), "linear"
        elif is_encoder_name(network.backbone.removeprefix(STANDARDIZED)):
            module, kind = blank_encoder_backbone(network.backbone, network.input_shape), "linear"
        elif network.backbone == CUSTOM:
            raise InputError("this classifier has a backbone of its own: give the module as backbone=...")
        else:
            module, kind = build_backbone(network.backbone, network.input_shape)
        standardize: Standardize
        if isinstance(module, EncoderBackbone):
            features, standardize = module.num_features, EncoderInput(network.input_shape, module.reads)
        else:
            features, standardize = _count_features(module, network.input_shape), Standardize(network.input_shape)
        kind = kind if network.head == "auto" else network.head
        head = build_head(kind, features, network.num_classes, network.gaussian)
        classifier = Classifier(module, head, standardize, network.sampled)
    classifier.precision = network.precision
    classifier.lay_out(torch.channels_last)
    return classifier


@torch.no_grad()
def _count_features(backbone: nn.Module, shape: Shape) -> int:
    device = next(backbone.parameters(), torch.zeros(())).device
    with evaluation_mode(backbone):
        try:
            out = backbone(torch.zeros((2, *shape), device=device))  # two rows: some norms cannot take one
        except Exception as error:  # a module of the user's own may raise anything
            reason = " ".join(str(error).split())
            raise InputError(f"the backbone cannot read samples of shape {shape}: {reason[:200]}") from error
    if not isinstance(out, Tensor) or out.ndim != 2:
        got = tuple(out.shape) if isinstance(out, Tensor) else type(out).__name__
        raise InputError(f"a backbone gives features [B, D]; this one gives {got} for two samples of shape {shape}")
    return int(out.shape[1])


@contextmanager
def evaluation_mode(module: nn.Module) -> Iterator[None]:
    """Evaluate inside the block; every part is in its own mode again after it."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, mode in modes:
            part.training = mode


@contextmanager
def full_precision(classifier: Classifier) -> Iterator[None]:
    """Inside the block the backbone runs in its weights' own precision."""
    precision, classifier.precision = classifier.precision, "fp32"
    try:
        yield
    finally:
        classifier.precision = precision


@contextmanager
def scratch_buffers(module: nn.Module) -> Iterator[dict[str, Tensor]]:
    """Copies of all buffers stand in inside the block: BatchNorm in training mode leaves no trace.

    Yields the copies by name, so that a caller can see how a pass moved them.
    """
    kept = [
        (f"{prefix}.{name}" if prefix else name, part, name, buffer)
        for prefix, part in module.named_modules()
        for name, buffer in part._buffers.items()
        if buffer is not None
    ]
    scratch = {path: buffer.clone() for path, _, _, buffer in kept}
    for path, part, name, _ in kept:
        part._buffers[name] = scratch[path]
    try:
        yield scratch
    finally:
        for _, part, name, buffer in kept:
            part._buffers[name] = buffer
