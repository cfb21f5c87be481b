"""What a run found, in figures and on one page."""

from calida.report.groups import measure_groups
from calida.report.label_sheet import SheetItem, render_sheet
from calida.report.metrics import compute_metrics
from calida.report.page import render, write_report
from calida.report.run_predictions import RunPredictions, gather, thumbnails
from calida.report.run_results import RunResults
from calida.report.templating import picture
from calida.report.verdict import judge_results

__all__ = [
    "RunPredictions",
    "RunResults",
    "SheetItem",
    "compute_metrics",
    "gather",
    "judge_results",
    "measure_groups",
    "picture",
    "render",
    "render_sheet",
    "thumbnails",
    "write_report",
]
