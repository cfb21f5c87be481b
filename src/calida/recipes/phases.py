"""From a recipe's values to what the training loop runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from calida.data import Augmentation, photograph_views
from calida.errors import InputError
from calida.objective import (
    Consistency,
    Diversity,
    DualAscent,
    ExpectedLikelihood,
    GradientVariance,
    MeanDiscrepancy,
    Objective,
    PredictiveLikelihood,
    PseudoLabelLikelihood,
    TargetEntropy,
    UniformDivergence,
    VirtualAdversarial,
    Weighted,
)
from calida.recipes.recipe import Recipe
from calida.training import FINETUNING_PHASE, SOURCE_PHASE, Phase, PseudoLabeler

_OF_PSEUDO_LABELS = ("pseudo_label", "mrkld")  # terms on selected samples alone


def phases(recipe: Recipe, extra_terms: Mapping[str, Weighted] | None = None) -> list[Phase]:
    """Pre-training on source by the ELBO, then rounds of adaptation by Eq. 5-8 and whatever else has weight."""
    shared: dict[str, Any] = {
        **{name: value for name, value in asdict(recipe.optimization).items() if name != "label_smoothing"},
        "num_samples": recipe.posterior.num_samples,
        "augmentation": Augmentation(**asdict(recipe.augmentation)),
        "pretrained_rate_fraction": recipe.finetuning.rate_fraction,
    }
    pretraining = Phase(
        name=SOURCE_PHASE,
        objective=Objective({"likelihood": Weighted(ExpectedLikelihood(recipe.optimization.label_smoothing))}),
        rounds=recipe.pretraining.epochs,
        min_batches=recipe.pretraining.min_batches_per_epoch,
        max_batches=recipe.pretraining.max_batches_per_epoch,
        learning_rate=recipe.pretraining.learning_rate,
        final_rate_fraction=recipe.pretraining.final_rate_fraction,
        warmup_fraction=recipe.pretraining.warmup_fraction,
        teacher_memory=recipe.pretraining.weight_average,
        keep_best=recipe.pretraining.keep_best,
        **shared,
    )
    schedule, extra = recipe.adaptation, dict(extra_terms or {})
    if schedule.rounds == 0:
        if extra:
            raise InputError(f"the recipe {recipe.name} has no rounds of adaptation for the terms {', '.join(extra)}")
        return [pretraining]
    terms = _adaptation_terms(recipe)
    if taken := terms.keys() & extra.keys():
        raise InputError(f"the recipe has a term {min(taken)!r} of its own; choose another name")
    objective = Objective({**terms, **extra}, _gradient_variance(recipe))
    on_all_target = any(
        "target" in term.domains
        for name, (term, weight) in objective.terms.items()
        if weight != 0 and name not in _OF_PSEUDO_LABELS
    )
    adaptation = Phase(
        name="adapt",
        objective=objective,
        rounds=schedule.rounds,
        passes=schedule.passes,
        min_batches=schedule.min_batches_per_round,
        max_batches=schedule.max_batches_per_round,
        learning_rate=schedule.learning_rate,
        final_rate_fraction=schedule.final_rate_fraction,
        warmup_fraction=schedule.warmup_fraction,
        schedule=schedule.schedule,
        source_portion=schedule.source_portion,
        statistics=("source", "target") if schedule.statistics == "both" else ("target",),
        uniform_prior_slack=schedule.uniform_prior_slack,
        teacher_memory=recipe.teacher.memory,
        teacher_max_steps=recipe.teacher.max_steps,
        pseudo_labeler=PseudoLabeler(**vars(recipe.pseudo_labels)) if recipe.uses_pseudo_labels else None,
        selected_only=recipe.uses_pseudo_labels and not on_all_target,
        **shared,
    )
    return [pretraining, adaptation]


def finetuning_phase(recipe: Recipe, adaptation: Phase, on_cpu: bool) -> Phase:
    """The last phase, of a pre-trained network: adaptation's terms, and views that agree, on images."""
    values = recipe.finetuning
    consistency = Weighted(Consistency(recipe.terms.consistency_threshold), values.finetune_consistency)
    objective = replace(adaptation.objective, terms={**adaptation.objective.terms, "consistency": consistency})
    return replace(
        adaptation,
        name=FINETUNING_PHASE,
        objective=objective,
        rounds=values.finetune_rounds,
        passes=1,
        min_batches=1,
        max_batches=values.cpu_batches if on_cpu else None,
        batch_size=values.finetune_batch_size,
        learning_rate=values.finetune_rate,
        augmentation=photograph_views(values.finetune_views),
        selected_only=adaptation.selected_only and not values.finetune_consistency,
    )


def _adaptation_terms(recipe: Recipe) -> dict[str, Weighted]:
    entropy, weights = recipe.entropy, recipe.terms
    terms = {"likelihood": Weighted(PredictiveLikelihood(recipe.optimization.label_smoothing))}
    if entropy.order is not None:
        weight: float | DualAscent = entropy.multiplier
        if entropy.budget is not None:
            weight = DualAscent(entropy.budget, entropy.dual_rate, entropy.dual_damping, entropy.dual_maximum)
        if recipe.is_self_training:
            if weights.pseudo_label:
                raise InputError(
                    "pseudo_label weighs pseudo-labels beside an entropy of finite order; at order inf they are the "
                    "entropy, and multiplier is their weight"
                )
            terms["pseudo_label"] = Weighted(PseudoLabelLikelihood(), weight)
        else:
            terms["target_entropy"] = Weighted(TargetEntropy(entropy.order), weight)
    if recipe.uses_pseudo_labels and not recipe.is_self_training:
        terms["pseudo_label"] = Weighted(PseudoLabelLikelihood(), weights.pseudo_label)
    return terms | {
        "diversity": Weighted(Diversity(), weights.diversity),
        "consistency": Weighted(Consistency(weights.consistency_threshold), weights.consistency),
        "mrkld": Weighted(UniformDivergence(), weights.mrkld),
        "vat": Weighted(VirtualAdversarial(weights.vat_radius), weights.vat),
        "mmd": Weighted(MeanDiscrepancy(), weights.mmd),
    }


def _gradient_variance(recipe: Recipe) -> GradientVariance | None:
    settings = recipe.gradient_variance
    if not settings.grouped:
        return None
    values = {name: value for name, value in asdict(settings).items() if name != "groups_only"}
    return GradientVariance(**values)
