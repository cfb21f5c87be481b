"""A run as a folder: from the names of two data sets to a model, figures, predictions and a report."""

from calida.runs.config import AUTO_ENCODER, RunConfig
from calida.runs.data import ReadingProgress, RunData, open_data
from calida.runs.execution import Metrics, evaluate_run, execute, republish
from calida.runs.folder import RunFolder, prediction_columns
from calida.runs.labeling import LabelFiles, evaluate_with_labels, write_label_files
from calida.runs.parts import EmbedParts, PartWork, PredictParts, make_parts
from calida.runs.selection import comparable, select_run

__all__ = [
    "AUTO_ENCODER",
    "EmbedParts",
    "LabelFiles",
    "Metrics",
    "PartWork",
    "PredictParts",
    "ReadingProgress",
    "RunConfig",
    "RunData",
    "RunFolder",
    "comparable",
    "evaluate_run",
    "evaluate_with_labels",
    "execute",
    "make_parts",
    "open_data",
    "prediction_columns",
    "republish",
    "select_run",
    "write_label_files",
]
