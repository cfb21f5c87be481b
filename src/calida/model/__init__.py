"""Classifiers with Gaussian logits, and Monte-Carlo prediction."""

from calida.model.any_classifier import AnyClassifier, Sampling
from calida.model.average import follow, make_teacher
from calida.model.backbones import BACKBONES, Backbone, build_backbone
from calida.model.classifier import (
    CUSTOM,
    MOST_CLASSES,
    Classifier,
    Network,
    Output,
    Precision,
    build_classifier,
    evaluation_mode,
    full_precision,
    scratch_buffers,
)
from calida.model.encoder_backbone import STANDARDIZED, Blocks, EncoderBackbone
from calida.model.heads import BRANCHES, Head, build_head
from calida.model.logits import Logits, draw_noise
from calida.model.memory import step_memory
from calida.model.precision import AUTO_PRECISION, faster_precision
from calida.model.predict import Prediction, check_abstention, predict
from calida.model.sampling import Sampled, SampleNoise, dropping_only
from calida.model.shared_pass import as_one_batch
from calida.model.standardize import Standardize

__all__ = [
    "AUTO_PRECISION",
    "BACKBONES",
    "BRANCHES",
    "CUSTOM",
    "MOST_CLASSES",
    "STANDARDIZED",
    "AnyClassifier",
    "Backbone",
    "Blocks",
    "Classifier",
    "EncoderBackbone",
    "Head",
    "Logits",
    "Network",
    "Output",
    "Precision",
    "Prediction",
    "SampleNoise",
    "Sampled",
    "Sampling",
    "Standardize",
    "as_one_batch",
    "build_backbone",
    "build_classifier",
    "build_head",
    "check_abstention",
    "draw_noise",
    "dropping_only",
    "evaluation_mode",
    "faster_precision",
    "follow",
    "full_precision",
    "make_teacher",
    "predict",
    "scratch_buffers",
    "step_memory",
]
