"""A recipe: every setting of a run as plain values."""

from __future__ import annotations

import difflib
import math
import re
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from calida.errors import InputError
from calida.selection import Ramp

_EVEN = "even"


@dataclass(frozen=True)
class Recipe:
    """Every setting of a run, each a value that a config file can hold.

    Ramps move from round to round: [start, step, stop], or one number that stays; the step "even" reaches the stop in
    the last round.
    """

    name: str
    summary: str = ""
    # The network and its Monte-Carlo samples (M of Eq. 2), each with masks of its own in the sampled dropout layers.
    gaussian: bool = False
    sampled: Literal["none", "top", "all"] = "none"
    num_samples: int = 1
    # Both phases.
    batch_size: int = 100
    optimizer: Literal["adam", "sgd"] = "adam"  # sgd has Nesterov's momentum, 0.9
    weight_decay: float = 5e-4
    # Strengths of random changes of training samples: images above, feature vectors below.
    affine: float = 0.0
    sharpness: float = 0.0
    colour: float = 0.0
    contrast: float = 0.0
    polarity: float = 0.0
    erasing: float = 0.0
    noise: float = 0.0
    dropping: float = 0.0
    # Pre-training on source.
    pretrain_epochs: int = 30
    shortest_epoch: int = 1  # in batches of images, if five times as many passes reach it; tables take fewer steps
    longest_epoch: int | None = None  # in batches, however many samples there are
    pretrain_learning_rate: float = 1e-3
    pretrain_final_rate: float = 1.0  # share of that rate left at the end
    # Adaptation.
    rounds: int = 0
    passes: int = 2
    shortest_round: int = 1  # as for epochs
    longest_round: int | None = None  # in batches, however many passes that would be
    learning_rate: float = 1e-3
    final_rate: float = 0.03  # share of the learning rate left in the last round, so that runs settle
    schedule: Literal["alternate", "joint"] = "alternate"
    source_portion: Ramp = Ramp(1.0)
    teacher_memory: float = 0.0  # rounds that an averaged network looks back, which labels and predicts; 0 has none
    teacher_steps: float = math.inf  # but at most so many steps, however long a round is
    # Target classes count as equally frequent as far as this many times the expected error allows; inf: always.
    share_doubt: float = math.inf
    statistics: Literal["both", "target"] = "both"  # the domains whose batches BatchNorm predicts with
    # The uncertainty term: order of the Renyi entropy; at order inf with a selection, pseudo-labels (Eq. 8).
    order: float | None = None
    multiplier: float = 1.0
    selection: Literal["none", "global", "class-balanced", "reweighted"] = "reweighted"
    selection_shares: Literal["predicted", "uniform", "source", "estimated"] = "predicted"  # of which it is a portion
    portion: Ramp | Literal["agreement"] = Ramp(0.3, 0.05, 0.6)  # or as far as augmented views agree
    label_temperature: Ramp = Ramp(0.0)
    normalise_labels: bool = True
    # Dual ascent on the multiplier (Eq. 6): a budget in nats, or "source".
    entropy_budget: float | Literal["source"] | None = None
    dual_rate: float = 0.03
    dual_damping: float = 2.0
    dual_maximum: float = 5.0
    # Other terms, by weight.
    diversity: float = 0.0
    consistency: float = 0.0
    consistency_threshold: float = 0.9
    mrkld: float = 0.0
    mmd: float = 0.0
    vat: float = 0.0
    vat_radius: float = 1.0
    # Gradient variance regularisation (Algorithm 1), and its control: the same groups, nothing maximised.
    gvr_weight: float = 0.0
    gvr_groups_only: bool = False
    gvr_groups: int = 10
    gvr_inner_step: float = 0.02
    gvr_bound: Literal["none", "cap", "relative"] = "cap"
    gvr_cap: float = 0.1
    gvr_part: str = ""
    gvr_share: float = 1.0  # of the target steps, the others are plain

    def with_settings(self, **settings: Any) -> Recipe:
        """The same recipe with other values; an unknown or unusable one is named."""
        kinds = {key: kind for key, kind in typing.get_type_hints(Recipe).items() if key not in ("name", "summary")}
        changed: dict[str, Any] = {}
        for key, value in settings.items():
            if key not in kinds:
                near = difflib.get_close_matches(key, kinds, n=3, cutoff=0.5)
                hint = f"; did you mean {', '.join(near)}" if near else f"; {self.name} has {', '.join(kinds)}"
                raise InputError(f"unknown setting {key!r}{hint}")
            changed[key] = _fit(key, value, kinds[key])
        recipe = replace(self, **changed)
        recipe.check()
        return recipe

    def fitted_to(self, shape: Sequence[int], target_colours: bool) -> Recipe:
        """For source samples of this shape: with batches that so few can fill, and no more groups than they have pairs.

        A smaller target needs nothing: its batches are as large as it is, and short batches have fewer groups. The
        rows of a table have no views that a longer look would show: epochs and rounds are as short as they come. Where
        the target is grey, hues are all the same to it, and views with others of them would only take time.
        """
        samples, recipe = shape[0], self
        if len(shape) == 2:
            recipe = replace(recipe, shortest_epoch=1, shortest_round=1)
        if not target_colours:
            recipe = replace(recipe, colour=0.0)
        if samples < self.batch_size:
            groups = max(2, min(self.gvr_groups, samples // 2))
            recipe = recipe.with_settings(batch_size=samples, gvr_groups=groups)
        return recipe

    @property
    def taught(self) -> bool:
        """Whether adaptation learns from pseudo-labels."""
        return self.order == math.inf and self.selection != "none"

    @property
    def grouped(self) -> bool:
        """Whether target batches are cut into groups: for their gradient variance, or as its control."""
        return self.gvr_weight > 0 or self.gvr_groups_only

    def check(self) -> None:
        """Refuse values that no run could use."""
        for key, least in {
            "num_samples": 1,
            "batch_size": 2,
            "pretrain_epochs": 1,
            "rounds": 0,
            "passes": 1,
            "shortest_epoch": 1,
            "longest_epoch": 1,
            "shortest_round": 1,
            "longest_round": 1,
        }.items():
            if getattr(self, key) is not None and getattr(self, key) < least:
                raise InputError(f"{key} must be at least {least}, not {getattr(self, key)}")
        for key in (
            "learning_rate",
            "pretrain_learning_rate",
            "gvr_inner_step",
            "gvr_cap",
            "vat_radius",
            "dual_rate",
        ):
            if not 0 < getattr(self, key) < math.inf:
                raise InputError(f"{key} must be a positive number, not {getattr(self, key)}")
        if self.order is not None and not self.order > 0:
            raise InputError(f"order must be in (0, inf], not {self.order}")
        if isinstance(self.entropy_budget, float) and not self.entropy_budget > 0:
            raise InputError(f"entropy_budget must be positive or 'source', not {self.entropy_budget}")
        if self.grouped and not 2 <= self.gvr_groups <= self.batch_size // 2:
            raise InputError(
                f"gvr_groups must be between 2 and half the batch size ({self.batch_size // 2}), not {self.gvr_groups}"
            )
        for key in (
            "weight_decay",
            "affine",
            "colour",
            "contrast",
            "erasing",
            "noise",
            "teacher_memory",
            "multiplier",
            "diversity",
            "consistency",
            "mrkld",
            "mmd",
            "vat",
            "gvr_weight",
            "dual_damping",
        ):
            if not 0 <= getattr(self, key) < math.inf:
                raise InputError(f"{key} must be a number from 0 up, not {getattr(self, key)}")
        if not self.share_doubt >= 0:
            raise InputError(f"share_doubt must be a number from 0 up, or inf, not {self.share_doubt}")
        if not self.teacher_steps > 0:
            raise InputError(f"teacher_steps must be a positive number, or inf, not {self.teacher_steps}")
        if self.gvr_groups_only and self.gvr_weight:
            raise InputError(f"gvr_groups_only is the control at weight 0; gvr_weight is {self.gvr_weight}")
        if not 0 < self.gvr_share <= 1:
            raise InputError(f"gvr_share is a share of steps, more than 0 and at most 1, not {self.gvr_share}")
        for key in (
            "final_rate",
            "pretrain_final_rate",
            "consistency_threshold",
            "sharpness",
            "polarity",
            "dropping",
        ):
            if not 0 <= getattr(self, key) <= 1:
                raise InputError(f"{key} is a share between 0 and 1, not {getattr(self, key)}")
        if self.entropy_budget is not None and (self.order is None or self.taught):
            raise InputError("entropy_budget bounds an entropy: it needs an order, and selection='none' at order inf")
        if self.mrkld and not self.taught:
            raise InputError("mrkld holds pseudo-labels back: it needs order inf and a selection")
        try:
            re.compile(self.gvr_part)
        except re.error as error:
            raise InputError(f"gvr_part is not a regular expression: {error}") from None
        if self.mmd and self.schedule != "joint":
            raise InputError("mmd compares both domains in one step: it needs schedule='joint'")
        for key, highest in {"portion": 1.0, "source_portion": 1.0, "label_temperature": math.inf}.items():
            ramp = getattr(self, key)
            if isinstance(ramp, Ramp) and not all(
                0 <= ramp(index, self.rounds) <= highest for index in (0, max(self.rounds - 1, 0))
            ):
                raise InputError(f"{key} must stay within 0 and {highest:g}, not {to_plain(ramp)}")

    def to_json(self) -> dict[str, Any]:
        """Plain values, infinity as "inf"; `Recipe.from_json` reads them back."""
        return {field.name: to_plain(getattr(self, field.name)) for field in fields(self)}

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> Recipe:
        settings = dict(values)
        name, summary = str(settings.pop("name", "custom")), str(settings.pop("summary", ""))
        return Recipe(name, summary).with_settings(**settings)


def to_plain(value: Any) -> Any:
    if isinstance(value, Ramp):
        parts = [value.start, _EVEN if value.step is None else value.step, value.stop]
        return parts if value.stop is not None else parts[:2]
    return "inf" if value == math.inf else value


def _fit(key: str, value: Any, kind: Any) -> Any:
    """Bring a setting to its declared type: config files and command lines know numbers, words and lists."""
    choices = typing.get_args(kind)
    if typing.get_origin(kind) is Literal:
        if value not in choices:
            raise InputError(f"{key} is one of {', '.join(map(str, choices))}, not {value!r}")
        return value
    for one in choices or (kind,):
        if one is type(None) and value is None:
            return None
        if typing.get_origin(one) is Literal and value in typing.get_args(one):
            return value
        if one is Ramp and isinstance(value, Ramp):
            return value
        try:
            if one is Ramp:
                parts = value if isinstance(value, list | tuple) else [value]
                return Ramp(float(parts[0]), *(None if part in (None, _EVEN) else float(part) for part in parts[1:]))
            if one is float and not isinstance(value, bool) and not math.isnan(float(value)):
                return float(value)
            if one is int and not isinstance(value, bool) and float(value) == int(value):
                return int(value)
        except (TypeError, ValueError, OverflowError, IndexError):
            continue
        if one in (bool, str) and isinstance(value, one):
            return value
    raise InputError(f"{key} cannot be {value!r}; it is {_kind_in_words(choices or (kind,))}")


def _kind_in_words(kinds: tuple[Any, ...]) -> str:
    words = {int: "a whole number", float: "a number", bool: "true or false", str: "text", Ramp: "a number or a ramp"}
    known = [
        words.get(kind) or " or ".join(map(str, typing.get_args(kind))) for kind in kinds if kind is not type(None)
    ]
    return " or ".join(known)
