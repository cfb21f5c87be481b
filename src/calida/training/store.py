"""Tensors and JSON on disk: a bundle is either the old one or the new one, never a mixture, never unpickled."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as dump_tensors
from torch import Tensor

from calida.errors import CheckpointError
from calida.files import make_folder, write_atomically
from calida.json_values import digest_values, read_json
from calida.processes import Processes

_VERSION = 4  # 1 had settings without groups, 2 sentences where there are codes now, 3 no digest of values


class Bundle(NamedTuple):
    """Named tensors and the JSON values that belong to them."""

    tensors: dict[str, Tensor]
    values: dict[str, Any]


def write_bundle(folder: Path, name: str, bundle: Bundle) -> Path:
    """Write `name.json` and the `name-DIGEST.safetensors` that it points to; give the path of the former.

    The tensors get a file name of their own first; renaming the JSON into place is the one moment at which the new
    bundle replaces the old. A process killed anywhere leaves one of the two whole.
    """
    make_folder(folder)
    content = dump_tensors({key: t.detach().cpu().contiguous().clone() for key, t in bundle.tensors.items()})
    digest = digest_values(bundle.values, content)
    tensor_file = folder / f"{name}-{digest}.safetensors"
    write_atomically(tensor_file, content)
    header = {"format": f"calida-{name}", "version": _VERSION, "tensors": tensor_file.name, "digest": digest}
    text = json.dumps({**header, "values": bundle.values}, indent=1, allow_nan=True)
    write_atomically(folder / f"{name}.json", text.encode())
    for file in bundle_files(folder, name):
        if file not in (tensor_file, folder / f"{name}.json"):
            file.unlink(missing_ok=True)
    return folder / f"{name}.json"


def bundle_files(folder: Path, name: str) -> list[Path]:
    """What `write_bundle` has written: the folder may hold other people's files."""
    ours = re.compile(rf"{name}(\.json|-[0-9a-f]{{32}}\.safetensors)")
    return [file for file in folder.iterdir() if ours.fullmatch(file.name)]


def has_bundle(folder: Path, name: str) -> bool:
    """Whether a folder holds files of this name."""
    return (folder / f"{name}.json").exists()


def bundle_digest(folder: Path, name: str) -> str:
    """The digest that a bundle's JSON states, which `read_bundle` compares with what it reads."""
    header = read_json(folder / f"{name}.json")
    return str(header.get("digest")) if isinstance(header, dict) else ""


def unfinished(folder: Path) -> str:
    """What to say of a run that was stopped before its end."""
    begun = (folder / "checkpoint.json").exists()
    return f"; its run was stopped, go on with: calida adapt --resume --out {folder}" if begun else ""


def read_bundle(folder: Path, name: str) -> Bundle:
    """Read a bundle back, or say in one sentence what is wrong with it."""
    path = folder / f"{name}.json"
    try:
        header = read_json(path)
    except FileNotFoundError:
        if not folder.is_dir():
            raise CheckpointError(f"there is no folder {folder}") from None
        raise CheckpointError(f"there is no {name} in {folder}: {path.name} is missing{unfinished(folder)}") from None
    if not isinstance(header, dict) or header.get("format") != f"calida-{name}":
        raise CheckpointError(f"{path} is not a calida {name}")
    if header.get("version") != _VERSION:
        raise CheckpointError(f"{path} is of another version of calida, which this one does not read: run it again")
    if not isinstance(header.get("tensors"), str) or not isinstance(header.get("values"), dict):
        raise CheckpointError(f"{path} lacks its tensors or values")
    tensor_file = folder / Path(header["tensors"]).name  # a name, never a way out of the folder
    try:
        content = tensor_file.read_bytes()
    except (OSError, ValueError) as error:  # a name may hold what no file system takes
        raise CheckpointError(f"{path} points to {tensor_file.name!r}, which cannot be read: {error}") from None
    if digest_values(header["values"], content) != header.get("digest"):
        raise CheckpointError(
            f"{path} or {tensor_file.name} is truncated or was changed: the digest in {path.name} does not match"
        )
    try:
        tensors = load_tensors(content)
    except (SafetensorError, ValueError, KeyError) as error:
        raise CheckpointError(f"{tensor_file} is not a safetensors file: {error}") from None
    lost = [key for key, tensor in tensors.items() if tensor.is_floating_point() and bool(tensor.isnan().any())]
    if lost:
        raise CheckpointError(f"{tensor_file} has NaN among the numbers of {lost[0]!r}: it is of no use")
    return Bundle(tensors, header["values"])


def read_shared_bundle(folder: Path, name: str, processes: Processes) -> Bundle | None:
    """A bundle as the first process reads it, for all; None if there is none. Others may not see the same disk."""
    bundle = read_bundle(folder, name) if processes.first and has_bundle(folder, name) else None
    if processes.alone:
        return bundle
    values = processes.say(None if bundle is None else json.dumps(bundle.values).encode())
    if not values:
        return None
    tensors = processes.say(None if bundle is None else dump_tensors(bundle.tensors))
    return bundle or Bundle(load_tensors(tensors), json.loads(values))


def with_prefix(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors under a prefix."""
    return {f"{prefix}/{key}": tensor for key, tensor in tensors.items()}


def without_prefix(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors under a prefix, by the rest of their names."""
    start = f"{prefix}/"
    return {key.removeprefix(start): tensor for key, tensor in tensors.items() if key.startswith(start)}
