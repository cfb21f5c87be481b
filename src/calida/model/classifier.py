"""A classifier: standardised inputs -> backbone -> Gaussian logits."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from statistics import NormalDist
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from calida.data import Samples, Scale, row_slices, stream
from calida.errors import InputError
from calida.model.backbones import DropoutToFeatures, Shape, build_backbone, name_backbone
from calida.model.heads import build_head
from calida.model.logits import Logits
from calida.model.sampling import Sampled, dropouts, first_sampled, layers_of, repeat_rows
from calida.seeds import Seeds

Precision = Literal["fp32", "bf16"]


class Standardize(nn.Module):
    """Bytes to 0..1, then every channel (or feature) to the source's zero mean and unit spread.

    A feature of a table that spreads further in the target is scaled by that: nearly constant in source and not in
    target, it would drown all others there.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        per_channel = (shape[0], *[1] * (len(shape) - 1))
        self.register_buffer("mean", torch.zeros(per_channel))
        self.register_buffer("scale", torch.ones(per_channel))
        self.memory_format = torch.channels_last

    @torch.no_grad()
    def fit(self, x: Samples, target: Samples | None = None) -> Standardize:
        """Take mean and spread from `x`, in slices, so that bytes of a large set never become floats at once."""
        axes = (0, *range(2, x.ndim))
        count, total, squares = 0, torch.zeros_like(self.mean).double(), torch.zeros_like(self.mean).double()
        for chunk in stream(x, row_slices(len(x), 1024)):
            part = unit_range(chunk).to(total.device, torch.float64)
            count += part.numel() // part.shape[1]
            total += part.sum(axes).view_as(total)
            squares += part.square().sum(axes).view_as(total)
        mean = total / count
        spread = (squares / count - mean.square()).clamp(min=0).sqrt()
        if isinstance(target, Tensor) and target.ndim == 2:
            spread = torch.maximum(spread, _middle_spread(unit_range(target)).to(spread))
        self.mean.copy_(mean)
        # A constant channel carries nothing; dividing by its rounding error would blow it up on target. Small units do
        # not make it constant: what counts is the spread beside the mean.
        self.scale.copy_(torch.where(spread > 1e-6 * mean.abs(), spread, 1.0))
        return self

    def forward(self, x: Tensor) -> Tensor:
        standard = (unit_range(x).to(self.mean.dtype) - self.mean) / self.scale
        return _laid_out(standard, self.memory_format) if standard.ndim == 4 else standard


def _middle_spread(rows: Tensor, quantile: float = 0.025) -> Tensor:
    """The standard deviation of a Gaussian with this middle 95 %: [D]. A few wild values do not move it."""
    out = int(quantile * (len(rows) - 1))  # at either end
    low, high = (rows.kthvalue(place, 0).values for place in (1 + out, len(rows) - out))
    return (high - low) / (2 * NormalDist().inv_cdf(1 - quantile))


def _laid_out(images: Tensor, memory_format: torch.memory_format) -> Tensor:
    """Images [B, C, H, W] in a layout; grey ones too, which torch takes for laid out either way and then for neither.

    Without the strides of channels_last, every layer after them would run in the slower layout: 1.4 times as long.
    """
    images = images.contiguous(memory_format=memory_format)
    if memory_format == torch.channels_last and images.shape[1] == 1:
        height, width = images.shape[2:]
        return images.as_strided(images.shape, (height * width, 1, width, 1))
    return images


def unit_range(x: Tensor) -> Tensor:
    """Bytes as floats in 0..1; floats as they are."""
    return x.float() / 255 if x.dtype == torch.uint8 else x


class Output(NamedTuple):
    """What the backbone saw in the samples, its mean over weight samples, and what the head made of it."""

    features: Tensor  # [B, D]
    logits: Logits  # [M, B, K]; [B, K] of a plain forward pass


class Classifier(nn.Module):
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

    def forward(self, x: Tensor) -> Output:
        """One pass with one mask a row, or none in evaluation mode: features [B, D], logits [B, K]."""
        features, (mean, std) = self.from_standard(self.standardize(x))
        return Output(features, Logits(mean[0], std[0]))

    def from_standard(self, standard: Tensor, num_samples: int = 1, sampled: Sampled | None = None) -> Output:
        """M weight samples on inputs that are standardised already (virtual adversarial steps move these).

        Layers below the first sampled one run once, the others on [M * B] rows; where nothing is sampled, one pass
        stands for all M. BatchNorm in training mode normalises all rows alike.
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

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device


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

    def __post_init__(self) -> None:
        # What `auto` means may change one day; what a file says it holds may not.
        object.__setattr__(self, "backbone", name_backbone(self.backbone, self.input_shape))

    def to_json(self) -> dict[str, Any]:
        values: dict[str, Any] = json.loads(json.dumps(asdict(self)))  # tuples as JSON has them
        return values

    @staticmethod
    def from_json(values: dict[str, Any]) -> Network:
        return Network(**{**values, "input_shape": tuple(values["input_shape"]), "scale": Scale(*values["scale"])})


CUSTOM = "custom"


def build_classifier(network: Network, seeds: Seeds, backbone: nn.Module | None = None) -> Classifier:
    """Build a network with weights drawn from the seed "weights"; a given backbone is copied, not changed."""
    with seeds.globally("weights"):
        if backbone is not None:
            module, kind = copy.deepcopy(backbone).float(), "linear"
        elif network.backbone == CUSTOM:
            raise InputError("this classifier has a backbone of its own: give the module as backbone=...")
        else:
            module, kind = build_backbone(network.backbone, network.input_shape)
        features = _count_features(module, network.input_shape)
        kind = kind if network.head == "auto" else network.head
        head = build_head(kind, features, network.num_classes, network.gaussian)
        classifier = Classifier(module, head, Standardize(network.input_shape), network.sampled)
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
