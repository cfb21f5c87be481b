"""Studies: many runs, side by side and resumable, and the paper's tables and claims made from their records."""

from calida.studies.cells import CHOICES, Line, Spread, base_lines, table_lines
from calida.studies.claims import Finding, examine_claims
from calida.studies.engine import Engine, Outcome
from calida.studies.job import Job, RunRecord, finished_record, run_job
from calida.studies.memory import MemoryPlan, memory_plan
from calida.studies.page import write_page
from calida.studies.paper import MNIST_USPS, SVHN_MNIST, TABLE1, TABLES, VISDA17, Table
from calida.studies.progress import StudyProgress
from calida.studies.results import Results
from calida.studies.study import STUDIES, Study, plan_study
from calida.studies.tasks import PROTOCOLS, StudyTask
from calida.studies.visda17 import generate_visda17

__all__ = [
    "CHOICES",
    "MNIST_USPS",
    "PROTOCOLS",
    "STUDIES",
    "SVHN_MNIST",
    "TABLE1",
    "TABLES",
    "VISDA17",
    "Engine",
    "Finding",
    "Job",
    "Line",
    "MemoryPlan",
    "Outcome",
    "Results",
    "RunRecord",
    "Spread",
    "Study",
    "StudyProgress",
    "StudyTask",
    "Table",
    "base_lines",
    "examine_claims",
    "finished_record",
    "generate_visda17",
    "memory_plan",
    "plan_study",
    "run_job",
    "table_lines",
    "write_page",
]
