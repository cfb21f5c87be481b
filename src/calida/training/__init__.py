"""The one loop, rounds on top of it, and checkpoints between them."""

from calida.training.checkpoint import load_weights
from calida.training.loop import train
from calida.training.phase import Domains, Lesson, Phase, Teaching
from calida.training.records import describe_labelled, describe_target, print_rounds
from calida.training.rounds import Outlook, Record, Run, run_rounds
from calida.training.store import Bundle, read_bundle, write_bundle

__all__ = [
    "Bundle",
    "Domains",
    "Lesson",
    "Outlook",
    "Phase",
    "Record",
    "Run",
    "Teaching",
    "describe_labelled",
    "describe_target",
    "load_weights",
    "print_rounds",
    "read_bundle",
    "run_rounds",
    "train",
    "write_bundle",
]
