"""Records of runs that were made when settings had no groups: their names then, and what they are called now.

Records are never edited, so they are read with these.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calida.recipes import Recipe

FLAT_NAMES = {
    "gaussian": "posterior.gaussian",
    "sampled": "posterior.sampled",
    "num_samples": "posterior.num_samples",
    "batch_size": "optimization.batch_size",
    "optimizer": "optimization.optimizer",
    "weight_decay": "optimization.weight_decay",
    "affine": "augmentation.affine",
    "sharpness": "augmentation.sharpness",
    "colour": "augmentation.color",
    "contrast": "augmentation.contrast",
    "polarity": "augmentation.polarity",
    "erasing": "augmentation.erasing",
    "noise": "augmentation.noise",
    "dropping": "augmentation.dropping",
    "pretrain_epochs": "pretraining.epochs",
    "shortest_epoch": "pretraining.min_batches_per_epoch",
    "longest_epoch": "pretraining.max_batches_per_epoch",
    "pretrain_learning_rate": "pretraining.learning_rate",
    "pretrain_final_rate": "pretraining.final_rate_fraction",
    "rounds": "adaptation.rounds",
    "passes": "adaptation.passes",
    "shortest_round": "adaptation.min_batches_per_round",
    "longest_round": "adaptation.max_batches_per_round",
    "learning_rate": "adaptation.learning_rate",
    "final_rate": "adaptation.final_rate_fraction",
    "schedule": "adaptation.schedule",
    "source_portion": "adaptation.source_portion",
    "statistics": "adaptation.statistics",
    "share_doubt": "adaptation.uniform_prior_slack",
    "teacher_memory": "teacher.memory",
    "teacher_steps": "teacher.max_steps",
    "order": "entropy.order",
    "multiplier": "entropy.multiplier",
    "entropy_budget": "entropy.budget",
    "dual_rate": "entropy.dual_rate",
    "dual_damping": "entropy.dual_damping",
    "dual_maximum": "entropy.dual_maximum",
    "selection": "pseudo_labels.selection",
    "selection_shares": "pseudo_labels.class_shares",
    "portion": "pseudo_labels.portion",
    "label_temperature": "pseudo_labels.temperature",
    "normalise_labels": "pseudo_labels.normalize",
    "diversity": "terms.diversity",
    "consistency": "terms.consistency",
    "consistency_threshold": "terms.consistency_threshold",
    "mrkld": "terms.mrkld",
    "mmd": "terms.mmd",
    "vat": "terms.vat",
    "vat_radius": "terms.vat_radius",
    "gvr_weight": "gradient_variance.weight",
    "gvr_groups_only": "gradient_variance.groups_only",
    "gvr_groups": "gradient_variance.groups",
    "gvr_inner_step": "gradient_variance.inner_step",
    "gvr_bound": "gradient_variance.bound",
    "gvr_cap": "gradient_variance.cap",
    "gvr_part": "gradient_variance.part",
    "gvr_share": "gradient_variance.share",
}


def grouped_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """A record's settings in today's groups; a setting that is younger than the record had its default."""
    named = {FLAT_NAMES.get(name, name): value for name, value in settings.items()}
    return Recipe("").with_settings(named).settings()
