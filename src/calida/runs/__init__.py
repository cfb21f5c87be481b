"""A run as a folder: from the names of two data sets to a model, figures, predictions and a report."""

from calida.runs.config import AUTO_ENCODER, RunConfig
from calida.runs.data import ReadingProgress, RunData, open_data, open_new
from calida.runs.execution import Metrics, evaluate_run, execute, republish
from calida.runs.folder import RunFolder, write_predictions
from calida.runs.labeling import LabelFiles, evaluate_with_labels, write_label_files
from calida.runs.selection import select_run

__all__ = [
    "AUTO_ENCODER",
    "LabelFiles",
    "Metrics",
    "ReadingProgress",
    "RunConfig",
    "RunData",
    "RunFolder",
    "evaluate_run",
    "evaluate_with_labels",
    "execute",
    "open_data",
    "open_new",
    "republish",
    "select_run",
    "write_label_files",
    "write_predictions",
]
