"""Inputs in one scale: images a channel at a time, vectors a feature at a time and within bounds."""

from __future__ import annotations

from statistics import NormalDist

import torch
from torch import Tensor, nn

from calida.data import Samples, row_slices, stream, unit_range
from calida.model.backbones import Shape
from calida.processes import ALONE, Processes, Share

_TAIL = 0.02  # of a feature's values at either end of the source that count as its last ordinary one
_BOUND = 2.0  # spreads that a feature stays within
_ROWS = 100_000  # that quantiles are taken from


class Standardize(nn.Module):
    """Bytes to 0..1, then every channel (or feature) to the source's zero mean and unit spread.

    Features of a table are also kept from drowning each other:

    - Mean and spread are those of values held within the middle 96 %, so that a few wild ones do not move them. Where
      the middle is a single value, as of rare indicators, all values count.
    - A feature that spreads further in the target is scaled by that.
    - The result is bounded smoothly, x / sqrt(1 + (x / 2)^2), after Holzmueller et al. (2024), who do so for networks
      on tables. What is nearly constant in source may lie hundreds of its spreads away in target.
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
    def fit(
        self,
        x: Samples,
        target: Samples | None = None,
        weight: Tensor | None = None,
        processes: Processes = ALONE,
    ) -> Standardize:
        """Take mean and spread from `x`, in slices, so that bytes of a large set never become floats at once.

        Of samples with weights, [N], one of weight 2 counts as two. Of several processes, each reads its share of a
        set of files; what is in memory, everybody looks at.
        """
        low, high = _range(x, weight) if isinstance(x, Tensor) and x.ndim == 2 else (None, None)
        axes = (0, *range(2, x.ndim))
        count, total, squares = 0.0, torch.zeros_like(self.mean).double(), torch.zeros_like(self.mean).double()
        share = Share.whole(len(x)) if isinstance(x, Tensor) else processes.share(len(x))
        slices = row_slices(share.stop, 1024, share.start)
        for rows, chunk in zip(slices, stream(x, slices), strict=True):
            part = unit_range(chunk).to(total.device, torch.float64)
            part = part if low is None else part.clamp(low, high)
            each = part.new_ones(()) if weight is None else weight[rows].to(part).view(-1, *[1] * (part.ndim - 1))
            count += float(each.expand_as(part[:, :1]).sum())
            total += (each * part).sum(axes).view_as(total)
            squares += (each * part.square()).sum(axes).view_as(total)
        values, total, squares = share.processes.sum_all([total.new_tensor(count), total, squares])
        mean = total / values
        spread = (squares / values - mean.square()).clamp(min=0).sqrt()
        if isinstance(target, Tensor) and target.ndim == 2:
            spread = torch.maximum(spread, _middle_spread(target).to(spread))
        self.mean.copy_(mean)
        # A constant channel carries nothing; dividing by its rounding error would blow it up on target. Small units do
        # not make it constant: what counts is the spread beside the mean.
        self.scale.copy_(torch.where(spread > 1e-6 * mean.abs(), spread, 1.0))
        return self

    def forward(self, x: Tensor) -> Tensor:
        standard = (unit_range(x).to(self.mean.dtype) - self.mean) / self.scale
        if standard.ndim == 2:
            return standard / (1 + (standard / _BOUND).square()).sqrt()
        return _laid_out(standard, self.memory_format) if standard.ndim == 4 else standard


def _range(x: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor]:
    """The ends [D] of the middle 96 % of each feature, or of all its values where the middle is one value."""
    step = -(-len(x) // _ROWS)
    rows = unit_range(x[::step]).double()
    low, high = _edges(rows, _TAIL) if weight is None else _weighted_edges(rows, weight[::step], _TAIL)
    single = low == high
    return torch.where(single, rows.amin(0), low), torch.where(single, rows.amax(0), high)


def _middle_spread(rows: Tensor, quantile: float = 0.025) -> Tensor:
    """The standard deviation of a Gaussian with this middle 95 %: [D]. A few wild values do not move it."""
    low, high = _edges(unit_range(rows[:: -(-len(rows) // _ROWS)]), quantile)
    return (high - low) / (2 * NormalDist().inv_cdf(1 - quantile))


def _edges(rows: Tensor, quantile: float) -> tuple[Tensor, Tensor]:
    """The values [D] that leave this share of the rows below and above them."""
    out = int(quantile * (len(rows) - 1))  # at either end
    low, high = (rows.kthvalue(place, 0).values for place in (1 + out, len(rows) - out))
    return low, high


def _weighted_edges(rows: Tensor, weight: Tensor, quantile: float) -> tuple[Tensor, Tensor]:
    """The same of rows with weights, [N]: with whole ones, as if every row were there so many times."""
    values, order = rows.sort(0)
    each = weight.to(rows)[order]  # [N, D]
    out = int(quantile * max(float(weight.sum()) - 1, 0))
    below, above = each.cumsum(0), each.flip(0).cumsum(0)
    first, last = ((some <= out).sum(0).clamp(max=len(rows) - 1)[None] for some in (below, above))
    return values.gather(0, first)[0], values.gather(0, len(rows) - 1 - last)[0]


def _laid_out(images: Tensor, memory_format: torch.memory_format) -> Tensor:
    """Images [B, C, H, W] in a layout; gray ones too, which torch takes for laid out either way and then for neither.

    Without the strides of channels_last, every layer after them would run in the slower layout: 1.4 times as long.
    """
    images = images.contiguous(memory_format=memory_format)
    if memory_format == torch.channels_last and images.shape[1] == 1:
        height, width = images.shape[2:]
        return images.as_strided(images.shape, (height * width, 1, width, 1))
    return images
