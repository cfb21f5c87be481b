"""Encoders by name."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from calida.encoders.encoder import Encoder, ImageInput, Reads
from calida.encoders.hubs import load_hugging_face, load_timm, load_torchvision
from calida.encoders.packaged import PACKAGED
from calida.errors import InputError

_HUBS: dict[str, Callable[[str, Path | None, bool], Encoder]] = {
    "timm": load_timm,
    "torchvision": load_torchvision,
    "hf": load_hugging_face,
}


def check_encoder_name(name: str) -> None:
    """Refuse a name that no encoder can have, before anything is read or fetched."""
    if is_encoder_name(name):
        return
    plain = name.partition("@")[0]
    near = difflib.get_close_matches(plain, PACKAGED, n=1)
    hint = f"; did you mean {near[0]}" if near else ""
    known = ", ".join([*PACKAGED, *(f"{hub}:NAME" for hub in _HUBS)])
    raise InputError(f"unknown encoder {name!r}{hint}: there are {known}, each also with @FILE.safetensors")


@lru_cache(maxsize=2)
def load_encoder(name: str, size: int | None = None) -> Encoder:
    """An encoder by name: `efficientnet-lite0`, `mobilenet-v2`, `minilm`, `timm:NAME`, `torchvision:NAME`, `hf:REPO`.

    NAME@FILE takes the weights from a safetensors file. `size` is the pixels a side that images are brought to, where
    that is not what the network was trained with.
    """
    given = name.partition("@")[2]
    return _sized(_load(name, Path(given).expanduser() if given else None, True), size)


def blank_encoder(name: str, size: int | None = None) -> Encoder:
    """The network of an encoder before it has any weights, for one that was saved with weights of its own."""
    return _sized(_load(name, None, False), size)


def is_encoder_name(name: str) -> bool:
    """Whether a name is one that an encoder can have."""
    plain = name.partition("@")[0]
    hub, colon, model = plain.partition(":")
    return plain in PACKAGED or bool(hub in _HUBS and colon and model)


def _load(name: str, file: Path | None, filled: bool) -> Encoder:
    check_encoder_name(name)
    plain = name.partition("@")[0]
    hub, colon, model = plain.partition(":")
    encoder = _HUBS[hub](model, file, filled) if colon else PACKAGED[plain].load(plain, file, filled)
    return replace(encoder, name=name)


def _sized(encoder: Encoder, size: int | None) -> Encoder:
    name = encoder.name
    if size is None:
        return encoder
    if not isinstance(encoder.input, ImageInput):
        raise InputError(f"the encoder {name} reads texts, which have no size in pixels")
    return replace(encoder, input=replace(encoder.input, size=size))


def installed_encoders(reads: Reads) -> list[str]:
    """The encoders of a kind that need no download, the preferred one first."""
    return [name for name, one in PACKAGED.items() if one.reads == reads and one.is_installed()]


def install_command(reads: Reads) -> str:
    """What brings the preferred encoder of a kind."""
    return next(one.source.install for one in PACKAGED.values() if one.reads == reads)
