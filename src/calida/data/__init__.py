"""What a user has -> checked tensors and batches."""

from calida.data.arrays import Labelled, as_inputs, as_labels, check_same_kind, split_validation
from calida.data.batches import SourceBatch, TargetBatch, num_batches, shuffled_batches

__all__ = [
    "Labelled",
    "SourceBatch",
    "TargetBatch",
    "as_inputs",
    "as_labels",
    "check_same_kind",
    "num_batches",
    "shuffled_batches",
    "split_validation",
]
