"""What a run found, in figures and on one page."""

from calida.report.evidence import Evidence, gather
from calida.report.finding import Finding
from calida.report.metrics import compute_metrics, score
from calida.report.page import render, write_report
from calida.report.verdict import Verdict, judge

__all__ = ["Evidence", "Finding", "Verdict", "compute_metrics", "gather", "judge", "render", "score", "write_report"]
