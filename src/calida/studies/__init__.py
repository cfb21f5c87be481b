"""Many runs, side by side and resumable, and what their records say together."""

from calida.studies.engine import Engine, Outcome
from calida.studies.forecast import forecast_seconds
from calida.studies.job import Job, finished_record, grouped_settings, run_job
from calida.studies.plan import StudyPlan
from calida.studies.progress import StudyProgress
from calida.studies.results import Results
from calida.studies.summary import Measure, RunRecord, Score, Spread, label_free
from calida.studies.task import StudyTask

__all__ = [
    "Engine",
    "Job",
    "Measure",
    "Outcome",
    "Results",
    "RunRecord",
    "Score",
    "Spread",
    "StudyPlan",
    "StudyProgress",
    "StudyTask",
    "finished_record",
    "forecast_seconds",
    "grouped_settings",
    "label_free",
    "run_job",
]
