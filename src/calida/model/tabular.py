"""Layers of a network for tables: numbers spread over pieces of their range, and residual blocks."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

_WITHIN = 2.0  # standardized features lie between this and its negative
_NARROW = 1e-4  # a piece that is narrower holds a single value
_ROWS = 100_000  # that quantiles are taken from


class PiecewiseLinear(nn.Module):
    """Each feature as ramps over its source quantiles, embedded in E numbers (Gorishniy et al., 2022): [B, D E].

    A feature x is written as T numbers, how far it has come through each of T pieces that hold equally many source
    samples: clamp((x - low) / width, 0, 1). A layer of its own maps them to E numbers. So a network can bend at any
    place where samples are dense, and what lies beyond the source's range counts as its end.
    """

    edges: Tensor  # [D, T + 1]

    def __init__(self, features: int, pieces: int = 8, width: int = 4) -> None:
        super().__init__()
        self.register_buffer("edges", torch.linspace(-_WITHIN, _WITHIN, pieces + 1).repeat(features, 1))
        self.weight = nn.Parameter(torch.randn(features, pieces, width) / math.sqrt(pieces))
        self.bias = nn.Parameter(torch.zeros(features, width))

    @torch.no_grad()
    def fit_inputs(self, x: Tensor) -> None:
        """Lay the pieces by the source's standardized samples, [N, D]; pieces between equal quantiles stay empty."""
        rows = x[:: -(-len(x) // _ROWS)].sort(0).values
        shares = torch.linspace(0, 1, self.edges.shape[1]).double()
        self.edges.copy_(rows[(shares * (len(rows) - 1)).round().long()].T)

    def forward(self, x: Tensor) -> Tensor:
        low, width = self.edges[:, :-1], self.edges.diff()
        ramps = ((x[:, :, None] - low) / width.clamp(min=_NARROW)).clamp(0, 1) * (width > _NARROW)  # [B, D, T]
        return torch.relu(torch.einsum("bdt,dte->bde", ramps, self.weight) + self.bias).flatten(1)


class ResidualBlock(nn.Module):
    """x + f(x), f two linear layers behind a BatchNorm (He et al., 2016; for tables, Gorishniy et al., 2021)."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.change = nn.Sequential(
            nn.BatchNorm1d(width), nn.Linear(width, width), nn.ReLU(), nn.Dropout(dropout), nn.Linear(width, width)
        )

    def forward(self, x: Tensor) -> Tensor:
        changed: Tensor = x + self.change(x)
        return changed
