"""What a user has -> checked tensors and batches."""

from calida.data.arrays import Labelled, Scale, as_inputs, as_labels, check_scale, check_shape, split_validation
from calida.data.batches import SourceBatch, TargetBatch, num_batches, shuffled_batches

__all__ = [
    "Labelled",
    "Scale",
    "SourceBatch",
    "TargetBatch",
    "as_inputs",
    "as_labels",
    "check_scale",
    "check_shape",
    "num_batches",
    "shuffled_batches",
    "split_validation",
]
