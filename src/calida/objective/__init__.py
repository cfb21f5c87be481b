"""What a training step minimizes: terms, their weights, and the gradient variance."""

from calida.objective.adversarial import VirtualAdversarial
from calida.objective.consistency import Consistency
from calida.objective.discrepancy import MeanDiscrepancy, squared_mmd
from calida.objective.entropy import Diversity, TargetEntropy
from calida.objective.gradient_variance import GradientVariance, StepLoss, VarianceStep, parameter_positions
from calida.objective.likelihood import (
    ExpectedLikelihood,
    PredictiveLikelihood,
    PseudoLabelLikelihood,
    UniformDivergence,
)
from calida.objective.multiplier import DualAscent, EntropyBudget, MultiplierState
from calida.objective.objective import Objective, Term, Weighted
from calida.objective.step import Domain, Step

__all__ = [
    "Consistency",
    "Diversity",
    "Domain",
    "DualAscent",
    "EntropyBudget",
    "ExpectedLikelihood",
    "GradientVariance",
    "MeanDiscrepancy",
    "MultiplierState",
    "Objective",
    "PredictiveLikelihood",
    "PseudoLabelLikelihood",
    "Step",
    "StepLoss",
    "TargetEntropy",
    "Term",
    "UniformDivergence",
    "VarianceStep",
    "VirtualAdversarial",
    "Weighted",
    "parameter_positions",
    "squared_mmd",
]
