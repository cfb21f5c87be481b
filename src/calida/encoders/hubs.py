"""Encoders of timm, torchvision and Hugging Face, with their published weights and their own preprocessing."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from calida.encoders.encoder import Encoder, ImageInput, TextInput, make_encoder, weights_hash
from calida.encoders.sentence_transformer import Tokens, pool_layers
from calida.encoders.weights import read_weights
from calida.errors import DownloadError, InputError, MissingExtraError

_TEXT_LENGTH = 256


def import_optional(package: str, name: str) -> ModuleType:
    """A package that may be missing or broken: a torchvision built for another torch fails in many ways."""
    try:
        return importlib.import_module(package)
    except Exception as error:
        missing = isinstance(error, ModuleNotFoundError) and error.name == package
        told = " ".join(str(error).split())[:150]
        state = f"is not installed: pip install 'calida[{package}]'" if missing else f"cannot be imported here: {told}"
        raise MissingExtraError(f"{name} needs {package}, which {state}") from error


def load_timm(name: str, file: Path | None, filled: bool = True) -> Encoder:
    """A timm model without its classifier."""
    full = f"timm:{name}"
    timm = import_optional("timm", f"the encoder {full}")
    if not timm.is_model(name):
        raise InputError(f"timm has no model {name!r}")
    module = _fetched(full, lambda: timm.create_model(name, pretrained=filled and file is None, num_classes=0))
    values = timm.data.resolve_model_data_config(module)
    input = ImageInput(int(values["input_size"][-1]), values["mean"], values["std"], float(values.get("crop_pct", 1)))
    return _finished(full, module, input, file, filled)


# What the classifier is called that torchvision's models end with, and what stands before it.
_LAST = ("fc", "classifier", "heads", "head")


def load_torchvision(name: str, file: Path | None, filled: bool = True) -> Encoder:
    """A torchvision model without its classifier."""
    full = f"torchvision:{name}"
    models = import_optional("torchvision", f"the encoder {full}").models
    if name not in models.list_models():
        raise InputError(f"torchvision has no model {name!r}")
    published = models.get_model_weights(name).DEFAULT
    fetched = published if filled and file is None else None
    module = _fetched(full, lambda: models.get_model(name, weights=fetched))
    how = published.transforms()
    size, resized = how.crop_size[0], how.resize_size[0]
    last = next((part for part in _LAST if hasattr(module, part)), None)
    if last is None:
        raise InputError(f"{full} has no classifier that could be taken off")
    setattr(module, last, nn.Identity())
    input = ImageInput(size, tuple(how.mean), tuple(how.std), min(size / resized, 1.0))
    return _finished(full, module, input, file, filled)


class _HuggingFaceImages(nn.Module):
    """The pooled output of a vision model, or its first token."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> Tensor:
        # A model of images and texts in one space has a way of its own to one of them.
        run: Any = getattr(self.model, "get_image_features", self.model)
        found = run(pixel_values=images)
        pooled = found if isinstance(found, Tensor) else getattr(found, "pooler_output", None)
        pooled = found.last_hidden_state[:, 0] if pooled is None else pooled
        return pooled.flatten(1)


class _HuggingFaceTexts(nn.Module):
    """Two layers of a language model, pooled."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, tokens: Tokens) -> Tensor:
        found = self.model(input_ids=tokens.ids, attention_mask=tokens.present.long(), output_hidden_states=True)
        return pool_layers(found.hidden_states[1:], tokens.present)


def load_hugging_face(name: str, file: Path | None, filled: bool = True) -> Encoder:
    """An image or text model of Hugging Face, by the name of its repository or by a folder that holds one."""
    full = f"hf:{name}"
    transformers = import_optional("transformers", f"the encoder {full}")
    config = _fetched(full, lambda: transformers.AutoConfig.from_pretrained(name))
    if filled:  # from safetensors alone: other files could run code when they are read
        model = _fetched(full, lambda: transformers.AutoModel.from_pretrained(name, use_safetensors=True))
    else:
        model = _fetched(full, lambda: transformers.AutoModel.from_config(config))
    if hasattr(config, "vision_config") or hasattr(config, "image_size") or hasattr(config, "num_channels"):
        base = importlib.import_module("transformers.image_processing_base").ImageProcessingMixin
        values = _fetched(full, lambda: base.get_image_processor_dict(name)[0])
        return _finished(full, _HuggingFaceImages(model), _image_input(values), file, filled)
    tokenizer = _fetched(full, lambda: transformers.AutoTokenizer.from_pretrained(name))
    length = min(int(getattr(config, "max_position_embeddings", _TEXT_LENGTH)), _TEXT_LENGTH)

    def tokenize(texts: Sequence[str]) -> list[list[int]]:
        ids: list[list[int]] = tokenizer(list(texts), truncation=True, max_length=length)["input_ids"]
        return ids

    input = TextInput(tokenize, length, tokenizer.pad_token_id or 0)
    return _finished(full, _HuggingFaceTexts(model), input, file, filled)


def _image_input(values: Mapping[str, Any]) -> ImageInput:
    """From the configuration of a Hugging Face image processor, whose sizes are numbers or mappings."""
    resized = _side(values.get("size"), 224)
    size = _side(values.get("crop_size"), resized) if values.get("do_center_crop") else resized
    mean, std = values.get("image_mean") or ImageInput.mean, values.get("image_std") or ImageInput.std
    return ImageInput(size, tuple(mean), tuple(std), min(size / max(resized, size), 1.0))


def _side(size: Any, default: int) -> int:
    if isinstance(size, Mapping):
        size = next((size[key] for key in ("shortest_edge", "height") if key in size), default)
    return int(size or default)


def _fetched(name: str, fetch: Any) -> Any:
    """What a hub gives, from its cache or its address."""
    try:
        with torch.random.fork_rng(devices=[]):  # weights that are drawn and then replaced
            return fetch()
    except Exception as error:  # every hub has errors of its own, and networks have many
        told = " ".join(str(error).split())[:200]
        local = "folder: hf:FOLDER" if name.startswith("hf:") else f"file: {name}@FILE.safetensors"
        raise DownloadError(
            f"the encoder {name} cannot be had here: {told}; with a network connection it is fetched once, or name a "
            f"local {local}"
        ) from error


def _finished(name: str, module: nn.Module, input: ImageInput | TextInput, file: Path | None, filled: bool) -> Encoder:
    if not filled:
        return make_encoder(name, module, input, "")
    if file is not None:
        weights, own = read_weights(file), module.state_dict()
        if absent := [key for key in own if key not in weights]:
            raise InputError(f"{file} does not hold the weights of {name}: it lacks {absent[0]} and {len(absent)} such")
        module.load_state_dict({key: weights[key] for key in own})
    return make_encoder(name, module, input, weights_hash(module))
