"""The one loop, rounds on top of it, and checkpoints between them."""

from calida.training.checkpoint import Progress, copied_weights, has_checkpoint, load_weights, saved_identity
from calida.training.events import Observe, PhasePlan, RunEvent, RunStarted, StepTaken
from calida.training.fit_trainer import FitTrainer
from calida.training.loop import train
from calida.training.network_trainer import NetworkTrainer
from calida.training.phase import (
    FINETUNING_PHASE,
    SOURCE_PHASE,
    Domains,
    Phase,
    PseudoLabeler,
    PseudoLabels,
    build_steps,
)
from calida.training.records import (
    print_rounds,
    round_line,
    target_shares,
    unmet_budget,
)
from calida.training.round_choice import RoundChoice, RoundChooser, RoundMeasures
from calida.training.rounds import Run, run_rounds
from calida.training.store import (
    Bundle,
    bundle_digest,
    bundle_files,
    has_bundle,
    read_bundle,
    unfinished,
    with_prefix,
    without_prefix,
    write_bundle,
)
from calida.training.trainer import MakeTrainer, RoundStart, Trainer

__all__ = [
    "FINETUNING_PHASE",
    "SOURCE_PHASE",
    "Bundle",
    "Domains",
    "FitTrainer",
    "MakeTrainer",
    "NetworkTrainer",
    "Observe",
    "Phase",
    "PhasePlan",
    "Progress",
    "PseudoLabeler",
    "PseudoLabels",
    "RoundChoice",
    "RoundChooser",
    "RoundMeasures",
    "RoundStart",
    "Run",
    "RunEvent",
    "RunStarted",
    "StepTaken",
    "Trainer",
    "build_steps",
    "bundle_digest",
    "bundle_files",
    "copied_weights",
    "has_bundle",
    "has_checkpoint",
    "load_weights",
    "print_rounds",
    "read_bundle",
    "round_line",
    "run_rounds",
    "saved_identity",
    "target_shares",
    "train",
    "unfinished",
    "unmet_budget",
    "with_prefix",
    "without_prefix",
    "write_bundle",
]
