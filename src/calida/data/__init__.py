"""What a user has -> one form for both domains -> checked tensors and batches."""

from calida.data.arrays.augment import UNCHANGED, Augmentation
from calida.data.arrays.batches import SourceBatch, TargetBatch, num_batches, shuffled_batches
from calida.data.arrays.checks import Labeled, Scale, as_inputs, as_labels, check_scale, check_shape, split_validation
from calida.data.arrays.samples import ImageFiles, Samples, digest, row_slices, stream, take
from calida.data.files.collection import Collection, class_indices, class_names
from calida.data.files.image_folders import check_printable
from calida.data.files.reading import INSIDE, Place, read_collection, read_labels
from calida.data.named.store import NAMED, data_folder, fetch_named, is_present, named_path
from calida.data.unify.comparison import compare_domains, describe_balance
from calida.data.unify.decide import OnMismatch, unify
from calida.data.unify.image_statistics import has_colors
from calida.data.unify.loading import Loaded, Loading, load_new, load_samples
from calida.data.unify.preparation import Preparation
from calida.data.unify.saved_preparation import SavedPreparation

__all__ = [
    "INSIDE",
    "NAMED",
    "UNCHANGED",
    "Augmentation",
    "Collection",
    "ImageFiles",
    "Labeled",
    "Loaded",
    "Loading",
    "OnMismatch",
    "Place",
    "Preparation",
    "Samples",
    "SavedPreparation",
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
    "has_colors",
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
