"""Samples that come after training, prepared as those of the run were."""

from __future__ import annotations

from typing import Any

import torch

from calida.adaptation.encoded import encode, load_encoded, same_encoder
from calida.data import (
    Collection,
    ColumnChoice,
    Loaded,
    Loading,
    RowRange,
    SavedPreparation,
    collect,
    is_named,
    load_new,
    read_collection,
)
from calida.errors import InputError
from calida.seeds import Seeds

DOMAINS = ("target", "source")


def open_new(
    given: Any,
    preparation: SavedPreparation,
    loading: Loading | None = None,
    labeled: bool = False,
    label: str | None = None,
    domain: str = "target",
    check_scale: bool = True,
    device: torch.device | str | None = None,
) -> Loaded:
    """New data by name, frames, rows, texts or images, read and prepared as this domain's data were."""
    collection = read_new(given, preparation, labeled, label)
    return prepare_new(collection, preparation, loading or Loading(), domain, check_scale, device)


def read_new(
    given: Any,
    preparation: SavedPreparation,
    labeled: bool = False,
    label: str | None = None,
    rows: RowRange | None = None,
) -> Collection:
    """New data as they are, with the columns that the classifier reads; of a Parquet file, `rows` may be a part."""
    row_id = None if preparation.table is None else preparation.table.id
    choice = ColumnChoice(label=label or preparation.label, id=row_id, text=preparation.text)
    if rows is not None:
        return read_collection(given, Seeds(0), labeled, choice, preparation.table, rows)
    # Words in a list are names of files, unless it is texts that the encoder reads.
    texts = (
        not is_named(given) and preparation.encoder is not None and same_encoder(preparation.encoder).reads == "texts"
    )
    return collect(given, Seeds(0), labeled, choice, preparation.table, texts=texts)


def prepare_new(
    collection: Collection,
    preparation: SavedPreparation,
    loading: Loading,
    domain: str,
    check_scale: bool = True,
    device: torch.device | str | None = None,
) -> Loaded:
    """The same as the classifier reads them."""
    if domain not in DOMAINS:
        raise InputError(f"the domain is source or target, not {domain!r}", "domain")
    prepared = preparation.source if domain == "source" else preparation.target
    if preparation.encoder is None:
        return load_new(collection, prepared, loading, check_scale)
    encoder = same_encoder(preparation.encoder)
    return load_encoded(encode(collection, encoder, loading, device, lambda done, total: None), prepared, encoder)
