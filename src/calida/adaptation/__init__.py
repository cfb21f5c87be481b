"""Adapting on arrays: labeled source and unlabeled target in, an adapted classifier out."""

from calida.adaptation.adapt import adapt, adapt_with
from calida.adaptation.adapted import Adapted, Trust, load
from calida.adaptation.arguments import choose_device
from calida.adaptation.finetune import Tuning
from calida.adaptation.frames import with_column_names
from calida.adaptation.images import finetune, frames_of
from calida.adaptation.models import AUTO, MODELS, is_network
from calida.adaptation.new_samples import open_new
from calida.adaptation.options import AUTO_RECIPES, RunOptions
from calida.adaptation.verdict import SURE, Evidence, Level, Measured, Verdict, in_words, judge

__all__ = [
    "AUTO",
    "AUTO_RECIPES",
    "MODELS",
    "SURE",
    "Adapted",
    "Evidence",
    "Level",
    "Measured",
    "RunOptions",
    "Trust",
    "Tuning",
    "Verdict",
    "adapt",
    "adapt_with",
    "choose_device",
    "finetune",
    "frames_of",
    "in_words",
    "is_network",
    "judge",
    "load",
    "open_new",
    "with_column_names",
]
