"""Do two domains look as if one network could read them? Sentences on scale, polarity, geometry and class balance."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from calida.data.arrays.samples import Samples
from calida.data.unify.image_statistics import statistics_of

_LOOKED_AT = 256
_FACTOR = 2.5  # by which one domain's spread may exceed the other's
_RARE = 0.1  # of an even share


def compare_domains(source: Samples, target: Samples) -> list[str]:
    """What stands out in a sample of both domains, which must have one shape; nothing is changed."""
    first, second = (_some(domain) for domain in (source, target))
    return _compare_images(first, second) if first.ndim == 4 else _compare_vectors(first, second)


def describe_balance(labels: Tensor, num_classes: int, names: Sequence[str] | None = None) -> list[str]:
    """Classes of the source that are so rare that pseudo-labels and class shares mean little for them."""
    shares = torch.bincount(labels, minlength=num_classes).double() / len(labels)
    rare = (shares < _RARE / num_classes).nonzero().flatten().tolist()
    if not rare:
        return []
    name, share = rare[0] if names is None else names[rare[0]], float(shares[rare[0]])
    return [f"Class {name} has {share:.2%} of the source ({len(rare)} of {num_classes} are that rare)."]


def _some(samples: Samples) -> Tensor:
    """Up to 256 samples, spread over the whole domain, bytes as 0..1."""
    step = max(len(samples) / _LOOKED_AT, 1.0)
    rows = torch.tensor([int(place * step) for place in range(min(len(samples), _LOOKED_AT))])
    chosen = samples[rows]
    return chosen.float() / 255 if chosen.dtype == torch.uint8 else chosen.float()


def _compare_images(source: Tensor, target: Tensor) -> list[str]:
    found = []
    spreads = [float(domain.std()) for domain in (source, target)]
    if min(spreads) * _FACTOR < max(spreads):
        found.append(f"Pixel values spread by {spreads[0]:.3g} on source and by {spreads[1]:.3g} on target: one scale?")
    # Statistics are of grey images in 0..1, and these may have any range and any number of channels.
    low = min(0.0, *(float(domain.min()) for domain in (source, target)))
    high = max(1.0, *(float(domain.max()) for domain in (source, target)))
    images = [statistics_of((domain.mean(1, keepdim=True) - low) / (high - low)) for domain in (source, target)]
    levels = [image.background for image in images]
    if levels[0] is not None and levels[1] is not None:
        if abs(levels[0] - levels[1]) >= 0.5:
            found.append(f"The background is {levels[0]:.0%} bright on source and {levels[1]:.0%} on target: inverted?")
        elif max(image.content for image in images) > 1.5 * min(image.content for image in images):
            found.append(
                f"Content fills {images[0].content:.0%} of the frame on source and {images[1].content:.0%} on target: "
                "framed alike?"
            )
    return found


def _compare_vectors(source: Tensor, target: Tensor) -> list[str]:
    """The feature whose values differ most, by mean or by spread, where that is more than a shift would explain."""
    spreads = [domain.std(0).clamp(min=1e-12) for domain in (source, target)]
    told = (spreads[0] > 1e-9) & (spreads[1] > 1e-9)
    ratio = (spreads[0] / spreads[1]).log().abs().exp()
    distance = (source.mean(0) - target.mean(0)).abs() / (spreads[0] + spreads[1])
    odd = torch.where(told, torch.maximum(ratio / 10, distance / 5), 0.0)
    if float(odd.max()) <= 1:
        return []
    worst = int(odd.argmax())
    words = [
        f"{float(domain[:, worst].mean()):.3g} +- {float(domain[:, worst].std()):.3g}" for domain in (source, target)
    ]
    return [
        f"Feature {worst} is {words[0]} on source and {words[1]} on target ({int((odd > 1).sum())} such): one scale?"
    ]
