"""Do two domains look as if one network could read them? Warnings on scale, polarity, geometry and class balance."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from calida.data.arrays.checks import WORTH_A_WARNING, Scale
from calida.data.arrays.samples import Samples, unit_range
from calida.data.unify.image_statistics import ground_words, is_inverted, statistics_of
from calida.errors import InputError, warn_user
from calida.run_warnings import RunWarning, WarningCode

_LOOKED_AT = 256
_FACTOR = 2.5  # by which one domain's spread may exceed the other's
_RARE = 0.1  # of an even share
_SEVERAL = 10  # images, whose polarity is no chance
_ROUNDING = 0.01
_FAR = 4  # spreads, or powers of two of one, that most columns of a shift do not differ by
_MARKED = 0.95  # share of columns with the marks of a scaler


def compare_domains(source: Samples, target: Samples) -> list[RunWarning]:
    """What stands out in a sample of both domains, which must have one shape; nothing is changed."""
    first, second = (_some(domain) for domain in (source, target))
    return _compare_images(first, second) if first.ndim == 4 else _compare_vectors(first, second)


def describe_balance(labels: Tensor, num_classes: int, names: Sequence[str] | None = None) -> list[RunWarning]:
    """Classes of the source that are so rare that pseudo-labels and class shares mean little for them."""
    shares = torch.bincount(labels, minlength=num_classes).double() / len(labels)
    rare = (shares < _RARE / num_classes).nonzero().flatten().tolist()
    if not rare:
        return []
    name = str(rare[0]) if names is None else names[rare[0]]
    values = {"name": name, "share": float(shares[rare[0]]), "count": len(rare), "classes": num_classes}
    return [RunWarning(WarningCode.RARE_CLASS, values)]


def with_looks(scale: Scale, source: Samples, target: Samples) -> Scale:
    """A scale that knows how bright the images of both domains are, and on what ground."""
    looks = [_look(domain) for domain in (source, target)]
    if any(look is None for look in looks):
        return scale
    grounds, lights = zip(*(look for look in looks if look is not None), strict=True)
    return scale._replace(backgrounds=() if None in grounds else grounds, light=min(lights))


def check_looks(known: Scale, x: Samples, name: str) -> None:
    """Refuse new images that are negatives of those that are known, and warn of much darker ones."""
    look = _look(x) if known.light else None
    if look is None or not look[1]:  # black images say nothing
        return
    ground, light = look
    if ground is not None and known.backgrounds and all(is_inverted(ground, one) for one in known.backgrounds):
        told = f"{name} is {ground_words(ground)}, unlike what the classifier was trained on"
        if len(x) >= _SEVERAL:
            raise InputError(f"{told}: invert it; on_mismatch=ignore takes it as it is", "on_mismatch")
        warn_user(f"{told}: inverted?")
    if known.light / light >= WORTH_A_WARNING:
        warn_user(
            f"the images of {name} are {known.light / light:.2g} times as dark as those that the classifier was "
            "trained on: are they in one scale?"
        )


def refuse_inverted(source: Samples, target: Samples) -> None:
    """Refuse images in memory whose domains are negatives of each other, as is done with files."""
    looks = [_look(domain) for domain in (source, target)]
    levels = [look[0] for look in looks if look is not None and look[0] is not None]
    if len(levels) == 2 and is_inverted(*levels):
        words = [ground_words(level) for level in levels]
        raise InputError(
            f"source images are {words[0]} and target images {words[1]}: their polarity is inverted; invert one of "
            "them, or let on_mismatch=ignore leave it",
            "on_mismatch",
        )


def _look(x: Samples) -> tuple[float | None, float] | None:
    """The level of a plain background, and the brightness of the brightest hundredth; None if these are no images."""
    if x.ndim != 4 or not len(x):
        return None
    images = _some(x)
    if float(images.min()) < -_ROUNDING or float(images.max()) > 1 + _ROUNDING:
        return None
    gray = images.mean(1, keepdim=True)
    return statistics_of(gray).background, float(torch.quantile(gray.flatten(1), 0.99, dim=1).mean())


def only_source_is_scaled(source: Tensor, target: Tensor) -> bool:
    """Whether vectors look as if something had been done to the source, and not to the target: [S, D], [T, D].

    A transformer leaves exact marks: mean 0, a largest value of 1, extremes that mirror each other, median 0 and
    quartiles 1 apart, rows of length 1, or whole numbers that the target does not have. Half of the target's columns
    lie a spread away then, or spread by a factor of two. Without such marks, half of them lie four spreads away or
    spread by a factor of sixteen.
    """
    x, t = source.double(), target.double()
    spread = x.std(0, correction=0)
    told = spread > 1e-9
    if not bool(told.any()):
        return False
    lengths = _near(x.norm(dim=1), 1)
    x, t, spread = x[:, told], t[:, told], spread[told]
    away = (t.mean(0) - x.mean(0)).abs() / spread
    wider = (t.std(0, correction=0).clamp(min=1e-12) / spread).log2().abs()
    apart = float(torch.maximum(away, wider).median())
    if apart <= 1:
        return False
    low, middle, high = torch.quantile(x[:: max(1, len(x) // 100_000)], x.new_tensor([0.25, 0.5, 0.75]), 0)
    marks = [
        _near(x.mean(0) / spread, 0),
        _near(x.abs().amax(0), 1),
        _near(x.amin(0) / x.amax(0), -1),
        _near(middle, 0) & _near(high - low, 1),
        lengths,
        (x == x.round()).all(0) & ~(t == t.round()).all(0),
    ]
    return apart > _FAR or any(float(mark.double().mean()) >= _MARKED for mark in marks)


def _near(values: Tensor, wanted: float) -> Tensor:
    return (values - wanted).abs() < 1e-3


def _some(samples: Samples) -> Tensor:
    """Up to 256 samples, spread over the whole domain, bytes as 0..1."""
    step = max(len(samples) / _LOOKED_AT, 1.0)
    rows = torch.tensor([int(place * step) for place in range(min(len(samples), _LOOKED_AT))])
    chosen = samples[rows]
    return unit_range(chosen).float()


def _compare_images(source: Tensor, target: Tensor) -> list[RunWarning]:
    found = []
    spreads = [float(domain.std()) for domain in (source, target)]
    if min(spreads) * _FACTOR < max(spreads):
        found.append(_compared(WarningCode.PIXEL_SPREAD, *spreads))
    # Statistics are of gray images in 0..1, and these may have any range and any number of channels.
    low = min(0.0, *(float(domain.min()) for domain in (source, target)))
    high = max(1.0, *(float(domain.max()) for domain in (source, target)))
    images = [statistics_of((domain.mean(1, keepdim=True) - low) / (high - low)) for domain in (source, target)]
    levels = [image.background for image in images]
    if levels[0] is not None and levels[1] is not None:
        if is_inverted(levels[0], levels[1]):
            found.append(_compared(WarningCode.BACKGROUND, levels[0], levels[1]))
        elif max(image.content for image in images) > 1.5 * min(image.content for image in images):
            found.append(_compared(WarningCode.FRAMING, *(image.content for image in images)))
    return found


def _compared(code: WarningCode, source: float, target: float) -> RunWarning:
    return RunWarning(code, {"source": source, "target": target})


def _compare_vectors(source: Tensor, target: Tensor) -> list[RunWarning]:
    """The feature whose values differ most, by mean or by spread, where that is more than a shift would explain."""
    spreads = [domain.std(0).clamp(min=1e-12) for domain in (source, target)]
    told = (spreads[0] > 1e-9) & (spreads[1] > 1e-9)
    ratio = (spreads[0] / spreads[1]).log().abs().exp()
    distance = (source.mean(0) - target.mean(0)).abs() / (spreads[0] + spreads[1])
    odd = torch.where(told, torch.maximum(ratio / WORTH_A_WARNING, distance / 5), 0.0)
    if float(odd.max()) < 1:
        return []
    worst = int(odd.argmax())
    values: dict[str, float] = {"feature": worst, "count": int((odd >= 1).sum())}
    for name, domain in (("source", source), ("target", target)):
        column = domain[:, worst]
        values |= {f"{name}_mean": float(column.mean()), f"{name}_std": float(column.std())}
    return [RunWarning(WarningCode.FEATURE_SCALE, values)]
