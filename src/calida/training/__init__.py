"""The one loop, rounds on top of it, and checkpoints between them."""

from calida.training.checkpoint import has_checkpoint, load_weights
from calida.training.loop import train
from calida.training.phase import SOURCE_PHASE, Domains, Lesson, Phase, Teaching, build_steps
from calida.training.records import (
    believed_shares,
    describe_labelled,
    describe_target,
    mean_class_accuracy,
    print_rounds,
    round_line,
    unmet_budget,
)
from calida.training.rounds import Judgement, Record, Run, run_rounds
from calida.training.store import Bundle, bundle_files, has_bundle, read_bundle, without_prefix, write_bundle

__all__ = [
    "SOURCE_PHASE",
    "Bundle",
    "Domains",
    "Judgement",
    "Lesson",
    "Phase",
    "Record",
    "Run",
    "Teaching",
    "believed_shares",
    "build_steps",
    "bundle_files",
    "describe_labelled",
    "describe_target",
    "has_bundle",
    "has_checkpoint",
    "load_weights",
    "mean_class_accuracy",
    "print_rounds",
    "read_bundle",
    "round_line",
    "run_rounds",
    "train",
    "unmet_budget",
    "without_prefix",
    "write_bundle",
]
