"""The settings of a recipe, in small groups."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from calida.recipes.settings import (
    FRACTION,
    FRACTION_BELOW_ONE,
    FRACTION_OVER_ZERO,
    FROM_ZERO,
    FROM_ZERO_OR_INF,
    POSITIVE,
    POSITIVE_OR_INF,
    Constraint,
    Settings,
    at_least,
    setting,
)
from calida.selection import Ramp

MOST_SAMPLES = 10_000  # of a mean whose error is then a hundredth of one draw's
_SAMPLES = Constraint(f"a whole number from 1 to {MOST_SAMPLES}", lambda value: 1 <= value <= MOST_SAMPLES)


@dataclass(frozen=True)
class Posterior(Settings):
    """The network's weight samples and logits: a point network, or a Bayesian one."""

    gaussian: bool = setting(False, "a second head gives the logits a variance")
    sampled: Literal["none", "top", "all"] = setting(
        "none", "dropout layers that draw weights, in prediction too: none, the top ones, or all"
    )
    num_samples: int = setting(1, "Monte-Carlo samples M, each with its own masks and noise", _SAMPLES)


@dataclass(frozen=True)
class Optimization(Settings):
    """How a step is taken, in both phases."""

    batch_size: int = setting(100, "samples of a domain in one step", at_least(2))
    optimizer: Literal["adam", "sgd"] = setting("adam", "Adam, or SGD with Nesterov momentum 0.9")
    weight_decay: float = setting(5e-4, "L2 weight decay; with dropout, the KL term of the ELBO", FROM_ZERO)
    label_smoothing: float = setting(0.0, "share of each source label that is spread over all classes", FRACTION)


@dataclass(frozen=True)
class Augment(Settings):
    """Strengths of random changes of training samples; 0 leaves one out."""

    crop: float = setting(0.0, "cut a part out of images, at strength 1 down to half of each side", FRACTION)
    flip: float = setting(0.0, "fraction of images that are mirrored", FRACTION)
    changes: int = setting(
        0, "how many of the kinds of change below an image gets, drawn for it alone; 0: all of them", at_least(0)
    )
    affine: float = setting(0.0, "turn, stretch, shear and move images", FROM_ZERO)
    sharpness: float = setting(0.0, "blur or sharpen images", FRACTION)
    color: float = setting(0.0, "change hue and saturation, where the target has colors", FROM_ZERO)
    contrast: float = setting(0.0, "change contrast and brightness of images", FROM_ZERO)
    polarity: float = setting(0.0, "fraction of images turned into their negative", FRACTION)
    erasing: float = setting(0.0, "cover a patch of each image", FROM_ZERO)
    noise: float = setting(0.0, "noise on feature vectors, in standard deviations of each feature", FROM_ZERO)
    dropping: float = setting(0.0, "fraction of features replaced by their mean", FRACTION)


@dataclass(frozen=True)
class Pretraining(Settings):
    """Training on source."""

    epochs: int = setting(30, "passes over the source", at_least(1))
    min_batches_per_epoch: int = setting(
        1, "shortest epoch for images; small sets are passed up to five times", at_least(1)
    )
    max_batches_per_epoch: int | None = setting(None, "longest epoch, however large the source is", at_least(1))
    learning_rate: float = setting(1e-3, "learning rate in the first epoch", POSITIVE)
    final_rate_fraction: float = setting(1.0, "fraction of the learning rate left in the last epoch", FRACTION)
    warmup_fraction: float = setting(
        0.0, "fraction of the epochs in which the learning rate rises to its value", FRACTION_BELOW_ONE
    )
    weight_average: float = setting(0.0, "epochs an average of the weights looks back, which is kept", FROM_ZERO)
    keep_best: bool = setting(False, "keep the epoch that knows held-out source best, if clearly better than the last")


@dataclass(frozen=True)
class Adaptation(Settings):
    """Rounds of training on both domains; each ends with a look at the target and a checkpoint."""

    rounds: int = setting(0, "rounds of adaptation; 0 trains on source alone", at_least(0))
    passes: int = setting(2, "passes over the larger domain in a round", at_least(1))
    min_batches_per_round: int = setting(
        1, "shortest round for images; small sets are passed up to five times", at_least(1)
    )
    max_batches_per_round: int | None = setting(None, "longest round, however large the domains are", at_least(1))
    learning_rate: float = setting(1e-3, "learning rate in the first round", POSITIVE)
    final_rate_fraction: float = setting(0.03, "fraction of the learning rate left in the last round", FRACTION)
    warmup_fraction: float = setting(
        0.0, "fraction of the rounds in which the learning rate rises to its value", FRACTION_BELOW_ONE
    )
    schedule: Literal["alternate", "joint"] = setting(
        "alternate", "source and target steps in turns, or both domains in one step"
    )
    source_portion: Ramp = setting(Ramp(1.0), "portion of the source that a round draws on", FRACTION)
    statistics: Literal["both", "target"] = setting(
        "both", "domains whose batches give BatchNorm its statistics for prediction"
    )
    uniform_prior_slack: float = setting(
        math.inf,
        "draw classes equally often if shares are farther from equal than this times the expected error; inf: never",
        FROM_ZERO_OR_INF,
    )


@dataclass(frozen=True)
class Entropy(Settings):
    """The uncertainty term on target: Renyi entropy with a multiplier, fixed or moved by dual ascent."""

    order: float | None = setting(
        None, "order of the Renyi entropy; inf with a selection is self-training", POSITIVE_OR_INF
    )
    multiplier: float = setting(1.0, "weight of the entropy, beta of Eq. 7", FROM_ZERO)
    budget: float | Literal["source"] | None = setting(
        None, "entropy budget C of Eq. 5 in nats, or source: that of the source", POSITIVE
    )
    dual_rate: float = setting(0.03, "step size of dual ascent on the multiplier", POSITIVE)
    dual_damping: float = setting(2.0, "damping of dual ascent: how strongly it reacts to the moment", FROM_ZERO)
    dual_maximum: float = setting(5.0, "largest multiplier that dual ascent may reach", POSITIVE)


@dataclass(frozen=True)
class PseudoLabeling(Settings):
    """Which target samples teach, and what: class-balanced self-training at order infinity."""

    selection: Literal["none", "global", "class-balanced", "reweighted"] = setting(
        "reweighted", "select the most confident of all samples, of each class, or by normalized confidence (CBST)"
    )
    class_shares: Literal["predicted", "uniform", "source", "estimated"] = setting(
        "predicted", "class shares that the portion is taken of: predicted (CBST) or expected ones"
    )
    portion: Ramp | Literal["agreement"] = setting(
        Ramp(0.3, 0.05, 0.6),
        "portion of each class that is selected, by round; agreement: as far as augmented views agree",
        FRACTION,
    )
    temperature: Ramp = setting(
        Ramp(0.0), "temperature of the labels; 0 gives hard ones, 0.25 those of CRST", FROM_ZERO
    )
    neighbors_share: float = setting(
        0.0, "share that nearest neighbors by features have in a pseudo-label (label spreading); 0: none", FRACTION
    )
    neighbors: int = setting(10, "nearest neighbors that a pseudo-label is spread over", at_least(1))
    normalize: bool = setting(True, "divide soft labels by class thresholds (CRST), or not (annealing)")
    labeler: Literal["own", "panel"] = setting(
        "own", "who labels: the classifier itself, or the consensus of check classifiers and it (feature vectors)"
    )


@dataclass(frozen=True)
class Terms(Settings):
    """Weights of further terms; 0 leaves one out, bit for bit."""

    diversity: float = setting(
        0.0, "weight of diversity, the entropy of the mean prediction: all classes in use", FROM_ZERO
    )
    consistency: float = setting(
        0.0, "weight of consistency: augmented views are fitted to the plain one's label", FROM_ZERO
    )
    consistency_threshold: float = setting(0.9, "confidence from which the plain view's label counts", FRACTION)
    pseudo_label: float = setting(0.0, "weight of pseudo-labels beside an entropy of finite order", FROM_ZERO)
    mrkld: float = setting(0.0, "weight of the KL divergence of pseudo-labeled samples from uniform (CRST)", FROM_ZERO)
    mmd: float = setting(0.0, "weight of the maximum mean discrepancy of features; needs the joint schedule", FROM_ZERO)
    vat: float = setting(0.0, "weight of virtual adversarial smoothness on target", FROM_ZERO)
    vat_radius: float = setting(
        1.0, "size of the virtual adversarial perturbation, in source standard deviations", POSITIVE
    )


@dataclass(frozen=True)
class GradientVariance(Settings):
    """Gradient variance regularization of target steps (Algorithm 1)."""

    weight: float = setting(0.0, "weight of the variance beside the mean loss; 1 in the paper's scripts", FROM_ZERO)
    groups_only: bool = setting(False, "the control: the same groups with weight 0")
    groups: int = setting(10, "groups that a batch is cut into", at_least(2))
    inner_step: float = setting(0.02, "size eta of the inner step", POSITIVE)
    bound: Literal["none", "cap", "relative"] = setting(
        "cap", "how the variance is bounded, which has no upper end by itself"
    )
    cap: float = setting(0.1, "variance at which the push stops, with bound = cap", POSITIVE)
    part: str = setting("", "parameters whose variance counts, as a regular expression; all if empty")
    share: float = setting(
        1.0, "fraction of the target steps that carry the term, at weight / share", FRACTION_OVER_ZERO
    )

    @property
    def grouped(self) -> bool:
        """Whether target batches are cut into groups: for their gradient variance, or as its control."""
        return self.weight > 0 or self.groups_only


@dataclass(frozen=True)
class Teacher(Settings):
    """An averaged network that labels, predicts and is returned (mean teacher)."""

    memory: float = setting(0.0, "rounds that the average looks back; 0: no teacher", FROM_ZERO)
    max_steps: float = setting(math.inf, "steps that it looks back at most, however long a round is", POSITIVE_OR_INF)


@dataclass(frozen=True)
class Finetuning(Settings):
    """A backbone that comes with weights: what of it learns, and the last phase, where that is asked for."""

    blocks: int | Literal["all"] = setting(5, "how many of its last blocks learn", at_least(0))
    rate_fraction: float = setting(0.1, "its learning rate, as a fraction of the others'", FRACTION)
    batch_statistics: Literal["kept", "adapted"] = setting(
        "kept", "statistics of its BatchNorm layers: as they came, or those of the data"
    )
    finetune_rounds: int = setting(3, "rounds of the last phase", at_least(1))
    finetune_batch_size: int = setting(32, "samples of a domain in one step of it", at_least(2))
    finetune_rate: float = setting(1e-3, "learning rate of new layers in its first round", POSITIVE)
    finetune_consistency: float = setting(1.0, "weight of consistency in it", FROM_ZERO)
    finetune_views: float = setting(
        1.0, "strength of its views: parts of images, mirrored, and two of five other changes each", FRACTION
    )
    cpu_batches: int | None = setting(40, "longest round of it on a CPU; elsewhere one is a pass", at_least(1))


@dataclass(frozen=True)
class Fitting(Settings):
    """Classifiers that are no networks: trees and lines, fitted anew each round."""

    average: bool = setting(True, "each round's classifier is the mean of the source-only fit and of its own")
    max_rows: int = setting(500_000, "rows of a domain that one fit takes at most", at_least(2))
