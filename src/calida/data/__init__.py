"""What a user has -> one form for both domains -> checked tensors and batches."""

from calida.data.arrays.augment import UNCHANGED, Augmentation, photograph_views
from calida.data.arrays.batches import SourceBatch, TargetBatch, num_batches, shuffled_batches
from calida.data.arrays.checks import (
    Labeled,
    Scale,
    as_inputs,
    as_labels,
    check_scale,
    check_shape,
    check_sizes,
    split_validation,
    tell_copies,
)
from calida.data.arrays.decode import ImageSource, UnreadableImageError, decode_image, image_facts
from calida.data.arrays.samples import (
    ImageFiles,
    Samples,
    Texts,
    digest,
    read_ahead,
    row_slices,
    stream,
    take,
    unit_range,
)
from calida.data.files.collection import Collection, class_indices, class_names
from calida.data.files.delimited_text import read_cells, refuse_twice
from calida.data.files.given import collect, is_collected, is_named, listed_labels
from calida.data.files.image_folders import check_printable
from calida.data.files.numpy_files import load_arrays
from calida.data.files.reading import INSIDE, Place, read_collection, read_labels
from calida.data.files.tables import RowRange
from calida.data.named.sample_photographs import write_parts
from calida.data.named.store import NAMED, data_folder, fetch_named, is_present, named_path
from calida.data.tables.encoders import fit_encoder
from calida.data.tables.frames import as_frame, is_frame, named_frame
from calida.data.tables.kinds import Kind, kind_of
from calida.data.tables.preparation import ColumnChoice, TablePreparation, listed
from calida.data.tables.values import as_words
from calida.data.unify.comparison import (
    check_looks,
    compare_domains,
    describe_balance,
    only_source_is_scaled,
    refuse_inverted,
    with_looks,
)
from calida.data.unify.decide import OnMismatch, unify
from calida.data.unify.image_statistics import has_colors
from calida.data.unify.loading import DecodedFiles, Loaded, Loading, load_new, load_samples
from calida.data.unify.preparation import Preparation, column_sizes
from calida.data.unify.saved_preparation import SavedEncoder, SavedPreparation
from calida.data.unify.values import Values

__all__ = [
    "INSIDE",
    "NAMED",
    "UNCHANGED",
    "Augmentation",
    "Collection",
    "ColumnChoice",
    "DecodedFiles",
    "ImageFiles",
    "ImageSource",
    "Kind",
    "Labeled",
    "Loaded",
    "Loading",
    "OnMismatch",
    "Place",
    "Preparation",
    "RowRange",
    "Samples",
    "SavedEncoder",
    "SavedPreparation",
    "Scale",
    "SourceBatch",
    "TablePreparation",
    "TargetBatch",
    "Texts",
    "UnreadableImageError",
    "Values",
    "as_frame",
    "as_inputs",
    "as_labels",
    "as_words",
    "check_looks",
    "check_printable",
    "check_scale",
    "check_shape",
    "check_sizes",
    "class_indices",
    "class_names",
    "collect",
    "column_sizes",
    "compare_domains",
    "data_folder",
    "decode_image",
    "describe_balance",
    "digest",
    "fetch_named",
    "fit_encoder",
    "has_colors",
    "image_facts",
    "is_collected",
    "is_frame",
    "is_named",
    "is_present",
    "kind_of",
    "listed",
    "listed_labels",
    "load_arrays",
    "load_new",
    "load_samples",
    "named_frame",
    "named_path",
    "num_batches",
    "only_source_is_scaled",
    "photograph_views",
    "read_ahead",
    "read_cells",
    "read_collection",
    "read_labels",
    "refuse_inverted",
    "refuse_twice",
    "row_slices",
    "shuffled_batches",
    "split_validation",
    "stream",
    "take",
    "tell_copies",
    "unify",
    "unit_range",
    "with_looks",
    "write_parts",
]
