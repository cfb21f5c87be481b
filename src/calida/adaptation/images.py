"""Fine-tuning on arrays: images in, a classifier out whose backbone is an encoder's network."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from calida.adaptation.adapt import adapt_with
from calida.adaptation.adapted import Adapted
from calida.adaptation.arguments import Array, choose_device
from calida.adaptation.finetune import Tuning
from calida.adaptation.options import RunOptions
from calida.data import Preparation, SavedPreparation, Values, as_inputs
from calida.encoders import Encoder, ImageInput, embed, load_encoder, standardizing
from calida.errors import InputError
from calida.recipes import FEATURES_RECIPE, Recipe
from calida.training import Observe

_AT_ONCE = 256  # images that are brought to the encoder's size


def finetune(
    encoder: str | Encoder,
    source: tuple[Array, Array],
    target: Array,
    recipe: str | Recipe = FEATURES_RECIPE,
    *,
    num_classes: int | None = None,
    class_names: Sequence[str] | None = None,
    folder: str | os.PathLike[str] | None = None,
    resume: bool = False,
    observe: Observe = lambda event: None,
    progress: Callable[[int, int], None] = lambda done, total: None,
    oracle_labels: Array | None = None,
    sample_weight: Array | None = None,
    **options: Any,
) -> Adapted:
    """Adapt a classifier on an encoder's features of images, then train the encoder's network with it.

    The encoder is a name, or what `own_encoder` made of a module. Images are [N, C, H, W] or [N, H, W, C], bytes or
    floats, of any size; those that the result predicts may be of any size too. `progress` hears of the embedding; all
    else is as in `adapt`. Settings of the group `finetuning` say what learns and for how long.
    """
    if not isinstance(source, tuple | list) or len(source) != 2:
        raise InputError("source is a pair (images, labels)")
    encoder = load_encoder(encoder) if isinstance(encoder, str) else encoder
    chosen = RunOptions.of(recipe, {"backbone": "linear", **options})
    chosen.check()
    images = [as_inputs(x, name) for x, name in ((source[0], "source"), (target, "target"))]
    prepared = [frames_of(encoder, x) for x in images]
    device = choose_device(chosen.device)
    features = [embed(encoder, x, device=device, progress=progress).features for x in images]  # type: ignore[arg-type]
    steps = [standardizing(some) for some in features]
    frames = [
        torch.cat([step(part) for part in x.split(_AT_ONCE)])  # type: ignore[union-attr]
        for step, x in zip(prepared, images, strict=True)
    ]
    x, y = (step(some) for step, some in zip(steps, features, strict=True))
    adapted = adapt_with(
        chosen,
        (x, source[1]),
        y,
        num_classes=num_classes,
        class_names=class_names,
        start=None,
        folder=folder,
        resume=resume,
        observe=observe,
        terms={},
        oracle_labels=oracle_labels,
        tuning=Tuning(encoder, steps[1], *frames),
        sample_weight=sample_weight,
    )
    return replace(adapted, preparation=SavedPreparation(adapted.classes, None, prepared[0], prepared[1]))


def frames_of(encoder: Encoder, images: Any) -> Preparation:
    """What brings images, files or arrays, to the frame that an encoder reads them in."""
    if not isinstance(encoder.input, ImageInput):
        raise InputError(f"the encoder {encoder.name} reads texts, and only those of images can be fine-tuned")
    if not isinstance(images, Tensor):
        return replace(encoder.input.frame, values=Values.of(images))
    if images.ndim != 4:
        raise InputError(f"fine-tuning takes images, not samples of shape {tuple(images.shape[1:])}")
    return replace(encoder.input.frame, **Values.of(images).steps())
