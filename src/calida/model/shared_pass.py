"""A pass over one's own rows of a batch in which every layer acts as if it saw the whole batch.

Two kinds of layer look beyond a row. BatchNorm in training mode normalizes by moments of all rows: those of every
process are put together, and gradients flow back through them, so they are exact. Dropout draws masks one row after
the other: they are drawn for all rows, and one's own are kept. Both are met where modules call
`torch.nn.functional`, so that a network needs no other layers than it has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from calida.processes import Share

_DROPOUTS = (functional.dropout, functional.dropout1d, functional.dropout2d, functional.dropout3d)


def as_one_batch(share: Share, num_samples: int) -> AbstractContextManager[Any]:
    """Inside the block, layers see own rows as part of the whole batch; `num_samples` are the masks that rows may have.

    Nothing changes where all rows are one's own.
    """
    return nullcontext() if share.processes.alone else _SharedPass(share, num_samples)


class _SharedPass(TorchFunctionMode):
    def __init__(self, share: Share, num_samples: int) -> None:
        super().__init__()
        self.share, self.num_samples = share, num_samples

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if func is functional.batch_norm:
            return self._normalize(*args, **kwargs)
        if func in _DROPOUTS:
            return self._drop(func, *args, **kwargs)
        return func(*args, **kwargs)

    def _normalize(
        self,
        x: Tensor,
        running_mean: Tensor | None,
        running_var: Tensor | None,
        weight: Tensor | None = None,
        bias: Tensor | None = None,
        training: bool = False,
        momentum: float = 0.1,
        eps: float = 1e-5,
    ) -> Tensor:
        """BatchNorm: [b, C, ...] -> [b, C, ...]."""
        if not training:
            return functional.batch_norm(x, running_mean, running_var, weight, bias, False, momentum, eps)
        exact = x if x.dtype in (torch.float32, torch.float64) else x.float()
        count, mean, variance = self._moments(exact)
        if running_mean is not None and running_var is not None:
            with torch.no_grad():
                running_mean.lerp_(mean.to(running_mean), momentum)
                unbiased = variance * (count / (count - 1).clamp(min=1))
                running_var.lerp_(unbiased.to(running_var), momentum)
        scale = (variance + eps).rsqrt()
        scale = scale if weight is None else scale * weight
        shift = -mean * scale if bias is None else bias - mean * scale
        sides = (-1, *[1] * (x.ndim - 2))
        return torch.addcmul(shift.view(sides), exact, scale.view(sides)).to(x.dtype)

    def _moments(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """How many values a channel has in all rows, their mean and their variance: [], [C], [C].

        Each process tells its own count, mean and squared deviations from that mean, which add up without
        canceling (Chan et al., 1983).
        """
        axes, channels = (0, *range(2, x.ndim)), x.shape[1]
        count = x.new_tensor([x.numel() // channels])
        mean = x.sum(axes) / count.clamp(min=1)
        deviation = (x - mean.view(-1, *[1] * (x.ndim - 2))).square().sum(axes)
        told = self.share.processes.stack(torch.cat([count, mean, deviation]))  # [N, 1 + 2C]
        counts, means, deviations = told.split([1, channels, channels], 1)
        total = counts.sum()
        mean = (counts * means).sum(0) / total
        return total, mean, (deviations + counts * (means - mean).square()).sum(0) / total

    def _drop(
        self, func: Callable[..., Tensor], x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
    ) -> Tensor:
        """Dropout by masks of the whole batch. Rows are [M, b, k] in the first axis: M masks, samples, their parts.

        A layer that drops in another order than samples have, which none of calida's does, draws for itself.
        """
        own = self.share.stop - self.share.start
        if not training or p == 0 or own == 0 or len(x) % own:
            return func(x, p, training, inplace)
        masks, parts = len(x) // own, 1
        if masks not in (1, self.num_samples):
            outer = self.num_samples if masks % self.num_samples == 0 else 1
            masks, parts = outer, masks // outer
        ones = x.new_ones((masks * self.share.count * parts, *x.shape[1:]))
        if x.ndim == 4 and x.is_contiguous(memory_format=torch.channels_last) and not x.is_contiguous():
            ones = ones.contiguous(memory_format=torch.channels_last)  # masks are drawn in the order of memory
        keep = func(ones, p, True).unflatten(0, (masks, self.share.count, parts))
        return x * self.share.take(keep, 1).flatten(0, 2)
