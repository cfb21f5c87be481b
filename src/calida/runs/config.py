"""A run as plain values: what a TOML file holds and the command line can change."""

from __future__ import annotations

import math
import typing
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import tomli_w

from calida.adaptation import AUTO, RunOptions, is_network
from calida.data import INSIDE, NAMED, ColumnChoice, Loading, Place, check_printable
from calida.encoders import check_encoder_name
from calida.errors import InputError
from calida.files import read_toml
from calida.recipes import DEFAULT_RECIPE

_MOST_WORKERS = 256
_KINDS = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}
AUTO_ENCODER, NO_ENCODER = "auto", "none"
# Of what a run's folder holds; the first had settings without groups, the second no codes, the third no digests.
_FORMAT, FORMAT = "format", 4


@dataclass(frozen=True)
class RunConfig(RunOptions):
    """A run's options as a file can hold them, and where its data are."""

    recipe: str = ""  # a name; if empty, the data decide: calida, or features where an encoder reads them
    model: str = RunOptions.model
    device: str | None = None
    backbone: str = "auto"
    class_weight: str | None = None
    source: str = ""
    target: str = ""
    label: str | None = None
    columns: list[str] = field(default_factory=list)  # of a table that become features; all if there are none
    drop: list[str] = field(default_factory=list)  # of a table that do not
    id: str | None = None  # the column of a table that names its rows
    text: str | None = None  # the column of texts, where a table holds texts
    encoder: str = AUTO_ENCODER  # a pre-trained network by name; auto: where photographs or texts need one
    finetune: bool = False  # after adapting on its features, train the encoder's network as well
    target_labels: str | None = None
    start: str | None = None  # the folder of a run whose source-only classifier is where this one begins
    size: int | None = None
    skip_unreadable: bool = False
    memory: float = Loading.memory
    workers: int = Loading.workers
    max_pixels: int = Loading.max_pixels  # of an image; a larger one cannot be read
    tensorboard: bool = False

    @property
    def loading(self) -> Loading:
        return Loading(self.memory, self.workers, self.skip_unreadable, self.max_pixels)

    @property
    def column_choice(self) -> ColumnChoice:
        return ColumnChoice(tuple(self.columns), tuple(self.drop), self.label, self.id, self.text)

    def check(self) -> None:
        """Refuse what no run could use, before any data are read."""
        super().check()
        if self.size is not None and not 8 <= self.size <= 1024:
            raise InputError(f"the image size is a number of pixels between 8 and 1024, not {self.size}")
        if not 0 <= self.memory < math.inf or not 0 <= self.workers <= _MOST_WORKERS:
            raise InputError(f"memory is a number of GB from 0 up, and workers are 0 to {_MOST_WORKERS} processes")
        if self.max_pixels < 1:
            raise InputError(f"max_pixels is a number of pixels from 1 up, not {self.max_pixels}")
        if self.encoder not in (AUTO_ENCODER, NO_ENCODER):
            check_encoder_name(self.encoder)
        if self.finetune and (self.encoder == NO_ENCODER or self.backbone not in ("auto", "linear")):
            raise InputError(
                "fine-tuning trains an encoder's network: leave the backbone out, and name an encoder", "encoder"
            )
        if self.finetune and (self.start is not None or not is_network(self.model)):
            raise InputError("fine-tuning begins with a network of its own: leave out the start, and the model")
        for name, text in {"source": self.source, "target": self.target}.items():
            if not text:
                raise InputError(f"name the {name} data: a folder, a file or a named set", name)
        for value in vars(self.resolved()).values():  # a file of settings is to hold them all
            for text in value if isinstance(value, list) else [value]:
                if isinstance(text, str):
                    check_printable(text)

    def resolved(self) -> RunConfig:
        """The same run from any working folder: paths made absolute, every setting of the recipe spelled out."""
        values = dict(self.settings)
        if self.recipe not in (AUTO, DEFAULT_RECIPE, ""):  # which those are is known when the data are
            values = self.recipes()[0].settings()
        files: dict[str, Any] = {
            key: str(Path(text).expanduser().resolve())
            for key in ("target_labels", "backbone_weights", "start")
            if (text := getattr(self, key)) is not None and text != INSIDE
        }
        source, target = _absolute(self.source), _absolute(self.target)
        return replace(self, source=source, target=target, settings=values, **files)

    def without_settings(self) -> RunConfig:
        return replace(self, settings={})

    def to_toml(self) -> str:
        values = {key: value for key, value in asdict(self).items() if value is not None}
        values["settings"] = _without_none(self.settings)
        return tomli_w.dumps({_FORMAT: FORMAT, **values})

    @staticmethod
    def from_toml(path: Path) -> RunConfig:
        return RunConfig.parsed(read_toml(path), str(path))

    @staticmethod
    def parsed(values: dict[str, Any], origin: str) -> RunConfig:
        """From the values of a file."""
        if values.pop(_FORMAT, FORMAT) != FORMAT:
            raise InputError(f"{origin} is of another version of calida, whose settings this one does not read")
        return RunConfig().changed(values, origin)

    def changed(self, values: Mapping[str, Any], origin: str = "the configuration") -> RunConfig:
        """With these values instead; `settings` are added to those that are there."""
        known = typing.get_type_hints(RunConfig)
        unknown = [key for key in values if key not in known]
        if unknown:
            raise InputError(f"{origin} has an unknown key {unknown[0]!r}; known are {', '.join(known)}")
        for key, value in values.items():
            if key != "settings" and not _fits(value, known[key]):
                raise InputError(f"{key} in {origin} must be {_kind_in_words(known[key])}, not {value!r}")
        settings = values.get("settings", {})
        if not isinstance(settings, Mapping):
            raise InputError(f"{origin} gives settings as {settings!r}; they are a table of names and values")
        return replace(self, **{**values, "settings": {**self.settings, **settings}})


def _without_none(settings: Any) -> Any:
    """Settings as TOML can hold them, which has no word for nothing."""
    if isinstance(settings, Mapping):
        return {name: _without_none(value) for name, value in settings.items()}
    return "none" if settings is None else settings


def _kind_in_words(kind: Any) -> str:
    if typing.get_origin(kind) is list:
        return "a list of texts"
    kinds = typing.get_args(kind) or (kind,)
    return " or ".join(_KINDS[one] for one in (bool, int, float, str) if one in kinds)


def _fits(value: Any, kind: Any) -> bool:
    if typing.get_origin(kind) is list:
        return isinstance(value, list) and all(_fits(one, typing.get_args(kind)[0]) for one in value)
    kinds = typing.get_args(kind) or (kind,)
    if isinstance(value, bool):
        return bool in kinds
    return isinstance(value, kinds) or (float in kinds and isinstance(value, int))


def _absolute(text: str) -> str:
    place = Place.parse(text)
    path = Path(place.name).expanduser()
    return text.replace(place.name, str(path.resolve()), 1) if place.name not in NAMED and path.exists() else text
