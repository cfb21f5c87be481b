"""Figures of rounds as TensorBoard shows them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from calida.errors import MissingExtraError
from calida.validation import RoundRecord


def tensorboard_log(folder: Path) -> Callable[[RoundRecord], None]:
    """What writes a round's figures there; one sentence if TensorBoard is not installed."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise MissingExtraError("TensorBoard logs need tensorboard: pip install 'calida[tensorboard]'") from None
    writers: list[SummaryWriter] = []

    def log(record: RoundRecord) -> None:
        if not writers:  # made with the first record, so that a run that never starts leaves nothing
            writers.append(SummaryWriter(str(folder)))
        recipe = f"{record.recipe}/" if record.recipe else ""  # where several are tried
        for name, value in _scalars(record.to_json()):
            writers[0].add_scalar(f"{recipe}{record.phase}/{name}", value, record.round)
        writers[0].flush()

    return log


def _scalars(record: Mapping[str, Any], prefix: str = "") -> list[tuple[str, float]]:
    found: list[tuple[str, float]] = []
    for key, value in record.items():
        if isinstance(value, Mapping):
            found += _scalars(value, f"{prefix}{key}/")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found.append((f"{prefix}{key}", float(value)))
    return found
