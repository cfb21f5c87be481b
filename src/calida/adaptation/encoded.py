"""Samples through a pre-trained encoder: features of one scale, by the same weights today as when it was trained."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from calida.adaptation.arguments import choose_device
from calida.data import Collection, Loaded, Loading, Preparation, SavedEncoder
from calida.encoders import Encoder, ImageInput, embed, load_encoder
from calida.errors import InputError

Progress = Callable[[int, int], None]


class Encoded(NamedTuple):
    """A domain whose samples could be read, what they are in a word, and their features [N, D]."""

    domain: Collection
    kind: str
    features: Tensor


def encode(
    domain: Collection, encoder: Encoder, loading: Loading, device: torch.device | str | None, progress: Progress
) -> Encoded:
    """The features of a domain; samples that cannot be read are passed over if the loading says so."""
    if domain.kind != encoder.reads:
        raise InputError(f"{domain.origin} holds {domain.kind}; the encoder {encoder.name} reads {encoder.reads}")
    features, rows = embed(encoder, domain.samples, loading, choose_device(device), progress)
    if not rows:
        raise InputError(f"none of the {len(domain):,} images of {domain.origin} can be read")
    if len(rows) < len(domain):
        names = [domain.names[row] for row in sorted(set(range(len(domain))) - set(rows))]
        more = ", ..." if len(names) > 5 else ""
        skipped = f"{len(names):,} unreadable images skipped: {', '.join(names[:5])}{more}"
        domain = replace(domain.take(rows), notes=(*domain.notes, skipped))
    return Encoded(domain, domain.kind, features)


def load_encoded(encoded: Encoded, preparation: Preparation, encoder: Encoder) -> Loaded:
    """Standardized features, and what was done in words."""
    size = f" at {encoder.input.size} pixels" if isinstance(encoder.input, ImageInput) else ""
    notes = [
        f"{len(encoded.domain):,} {encoded.kind} read by the pre-trained encoder {encoder.name}{size}",
        f"{encoder.num_features:,} features, each brought to mean 0 and spread 1 in its domain",
        *encoded.domain.notes,
    ]
    return Loaded(preparation(encoded.features), encoded.domain, notes)


def same_encoder(saved: SavedEncoder) -> Encoder:
    """The encoder that a classifier was trained behind; one sentence if its weights are others today."""
    encoder = load_encoder(saved.name, saved.size)
    if encoder.weights != saved.weights:
        raise InputError(
            f"the encoder {saved.name} has other weights here than those the classifier was trained behind: "
            f"{encoder.weights[:12]}... instead of {saved.weights[:12]}..."
        )
    return encoder
