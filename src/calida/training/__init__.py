"""The one loop, rounds on top of it, and checkpoints between them."""

from calida.training.checkpoint import has_checkpoint, load_weights
from calida.training.judge import Judge, Judgement, Record
from calida.training.loop import train
from calida.training.phase import SOURCE_PHASE, Domains, Phase, PseudoLabeler, PseudoLabels, build_steps
from calida.training.records import (
    describe_labeled,
    describe_target,
    mean_class_accuracy,
    print_rounds,
    round_line,
    target_shares,
    unmet_budget,
)
from calida.training.rounds import Run, run_rounds
from calida.training.store import Bundle, bundle_files, has_bundle, read_bundle, without_prefix, write_bundle

__all__ = [
    "SOURCE_PHASE",
    "Bundle",
    "Domains",
    "Judge",
    "Judgement",
    "Phase",
    "PseudoLabeler",
    "PseudoLabels",
    "Record",
    "Run",
    "build_steps",
    "bundle_files",
    "describe_labeled",
    "describe_target",
    "has_bundle",
    "has_checkpoint",
    "load_weights",
    "mean_class_accuracy",
    "print_rounds",
    "read_bundle",
    "round_line",
    "run_rounds",
    "target_shares",
    "train",
    "unmet_budget",
    "without_prefix",
    "write_bundle",
]
