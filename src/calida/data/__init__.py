"""What a user has -> one form for both domains -> checked tensors and batches."""

from calida.data.arrays import Labelled, Scale, as_inputs, as_labels, check_scale, check_shape, split_validation
from calida.data.augment import UNCHANGED, VIEW_SETTINGS, Augmentation
from calida.data.batches import SourceBatch, TargetBatch, num_batches, shuffled_batches
from calida.data.card import DataCard
from calida.data.collection import Collection, class_indices, class_names
from calida.data.comparison import compare_domains, describe_balance
from calida.data.folders import check_printable
from calida.data.loading import Loaded, Loading, load_new, load_samples
from calida.data.looks import has_colours
from calida.data.named import NAMED, data_folder, fetch_named, is_present, named_path
from calida.data.preparation import Preparation
from calida.data.reading import INSIDE, Place, read_collection, read_labels
from calida.data.samples import ImageFiles, Samples, digest, row_slices, stream, take
from calida.data.unify import OnMismatch, unify

__all__ = [
    "INSIDE",
    "NAMED",
    "UNCHANGED",
    "VIEW_SETTINGS",
    "Augmentation",
    "Collection",
    "DataCard",
    "ImageFiles",
    "Labelled",
    "Loaded",
    "Loading",
    "OnMismatch",
    "Place",
    "Preparation",
    "Samples",
    "Scale",
    "SourceBatch",
    "TargetBatch",
    "as_inputs",
    "as_labels",
    "check_printable",
    "check_scale",
    "check_shape",
    "class_indices",
    "class_names",
    "compare_domains",
    "data_folder",
    "describe_balance",
    "digest",
    "fetch_named",
    "has_colours",
    "is_present",
    "load_new",
    "load_samples",
    "named_path",
    "num_batches",
    "read_collection",
    "read_labels",
    "row_slices",
    "shuffled_batches",
    "split_validation",
    "stream",
    "take",
    "unify",
]
