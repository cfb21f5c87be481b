"""From a recipe's values to what the training loop runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calida.data import VIEW_SETTINGS, Augmentation
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
from calida.training import SOURCE_PHASE, Phase, Teaching


def phases(recipe: Recipe, extra_terms: Mapping[str, Weighted] | None = None) -> list[Phase]:
    """Pre-training on source by the ELBO, then rounds of adaptation by Eq. 5-8 and whatever else has weight."""
    shared: dict[str, Any] = {
        "batch_size": recipe.batch_size,
        "num_samples": recipe.num_samples,
        "optimizer": recipe.optimizer,
        "weight_decay": recipe.weight_decay,
        "augmentation": Augmentation(**{name: getattr(recipe, name) for name in VIEW_SETTINGS}),
    }
    pretraining = Phase(
        name=SOURCE_PHASE,
        objective=Objective({"likelihood": Weighted(ExpectedLikelihood())}),
        rounds=recipe.pretrain_epochs,
        shortest=recipe.shortest_epoch,
        longest=recipe.longest_epoch,
        learning_rate=recipe.pretrain_learning_rate,
        final_rate=recipe.pretrain_final_rate,
        **shared,
    )
    extra = dict(extra_terms or {})
    if recipe.rounds == 0:
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
        if weight != 0 and name not in ("pseudo_label", "mrkld")
    )
    adaptation = Phase(
        name="adapt",
        objective=objective,
        rounds=recipe.rounds,
        passes=recipe.passes,
        shortest=recipe.shortest_round,
        longest=recipe.longest_round,
        learning_rate=recipe.learning_rate,
        final_rate=recipe.final_rate,
        schedule=recipe.schedule,
        teacher_memory=recipe.teacher_memory,
        teacher_steps=recipe.teacher_steps,
        share_doubt=recipe.share_doubt,
        source_portion=recipe.source_portion,
        teaching=_teaching(recipe) if recipe.taught else None,
        statistics=("source", "target") if recipe.statistics == "both" else ("target",),
        selected_only=recipe.taught and not on_all_target,
        **shared,
    )
    return [pretraining, adaptation]


def _adaptation_terms(recipe: Recipe) -> dict[str, Weighted]:
    terms = {"likelihood": Weighted(PredictiveLikelihood())}
    if recipe.order is not None:
        weight: float | DualAscent = recipe.multiplier
        if recipe.entropy_budget is not None:
            weight = DualAscent(recipe.entropy_budget, recipe.dual_rate, recipe.dual_damping, recipe.dual_maximum)
        if recipe.taught:
            terms["pseudo_label"] = Weighted(PseudoLabelLikelihood(), weight)
        else:
            terms["target_entropy"] = Weighted(TargetEntropy(recipe.order), weight)
    return terms | {
        "diversity": Weighted(Diversity(), recipe.diversity),
        "consistency": Weighted(Consistency(recipe.consistency_threshold), recipe.consistency),
        "mrkld": Weighted(UniformDivergence(), recipe.mrkld),
        "vat": Weighted(VirtualAdversarial(recipe.vat_radius), recipe.vat),
        "mmd": Weighted(MeanDiscrepancy(), recipe.mmd),
    }


def _teaching(recipe: Recipe) -> Teaching:
    return Teaching(
        recipe.selection, recipe.portion, recipe.label_temperature, recipe.normalise_labels, recipe.selection_shares
    )


def _gradient_variance(recipe: Recipe) -> GradientVariance | None:
    if not recipe.grouped:
        return None
    return GradientVariance(
        weight=recipe.gvr_weight,
        groups=recipe.gvr_groups,
        inner_step=recipe.gvr_inner_step,
        bound=recipe.gvr_bound,
        cap=recipe.gvr_cap,
        part=recipe.gvr_part,
        share=recipe.gvr_share,
    )
