"""What a run found, in figures and on one page."""

from calida.report.metrics import compute_metrics, score
from calida.report.page import render, write_report
from calida.report.run_predictions import Evidence, gather
from calida.report.run_results import Finding
from calida.report.verdict import Verdict, judge

__all__ = ["Evidence", "Finding", "Verdict", "compute_metrics", "gather", "judge", "render", "score", "write_report"]
