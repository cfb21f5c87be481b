"""What faults are made of: files that are damaged or lie, and files that were changed and sealed again."""

import gzip
import io
import json
import struct
import zipfile
import zlib
from pathlib import Path

import numpy as np
import torch

from calida.json_values import sealed
from calida.report import RunPredictions
from calida.training import Bundle, read_bundle, write_bundle

DEEP = "[" * 200_000


def put(values, path, value):
    """Nested JSON values with another one in a place; `del` takes the place out."""
    (first, *rest) = path
    changed = dict(values) if isinstance(values, dict) else list(values)
    if value is del_ and not rest:
        del changed[first]
    else:
        changed[first] = put(changed[first], rest, value) if rest else value
    return changed


def del_():
    """In place of a value: none at all."""


def edit(name, *path, value):
    """A JSON file of the run with another value, as an editor would leave it: the digest is the old one."""

    def change(world):
        file = world / "run" / name
        file.write_text(json.dumps(put(json.loads(file.read_text()), path, value)))

    return change


def forge(name, *path, value):
    """A bundle of the run with another value and a digest that fits it."""

    def change(world):
        bundle = read_bundle(world / "run", name)
        write_bundle(world / "run", name, Bundle(bundle.tensors, put(bundle.values, path, value)))

    return change


def forge_tensors(name, act):
    """A bundle of the run whose tensors were changed, with a digest that fits them."""

    def change(world):
        bundle = read_bundle(world / "run", name)
        tensors = {key: tensor.clone() for key, tensor in bundle.tensors.items()}
        act(tensors)
        write_bundle(world / "run", name, Bundle(tensors, bundle.values))

    return change


def reseal(name, *path, value):
    """A JSON file with a seal, changed and sealed again."""

    def change(world):
        file = world / "run" / name
        file.write_text(json.dumps(sealed(put(json.loads(file.read_text()), path, value))))

    return change


def reseal_lines(act):
    """The rounds of the run, changed and sealed again."""

    def change(world):
        file = world / "run" / "metrics.jsonl"
        lines = act([json.loads(line) for line in file.read_text().splitlines()])
        file.write_text("".join(json.dumps(sealed(line)) + "\n" for line in lines))

    return change


def overwrite(name, content):
    """A file with other content."""

    def change(world):
        file = world / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())

    return change


def cut(name, share=0.5):
    """A file of which the end is missing."""

    def change(world):
        file = world / name
        file.write_bytes(file.read_bytes()[: int(share * file.stat().st_size)])

    return change


def remove(name):
    return lambda world: (world / name).unlink()


def tensor_file(world, name):
    return world / "run" / json.loads((world / "run" / f"{name}.json").read_text())["tensors"]


def rewrite_arrays(act, signed):
    """predictions.npz with other arrays; `signed` with a digest of them."""

    def change(world):
        path = world / "run" / "predictions.npz"
        with np.load(path) as file:
            arrays = {name: file[name] for name in file.files}
        act(arrays)
        if signed:
            kept = RunPredictions.load(path)
            views = {name: vars(getattr(kept, name)) for name in ("before", "after")}
            for name in ("before", "after"):
                for key in views[name]:
                    object.__setattr__(getattr(kept, name), key, arrays[f"{name}_{key}"])
            for key in vars(kept).keys() - {"before", "after"}:
                object.__setattr__(kept, key, arrays[key])
            kept.save(path)
        else:
            np.savez_compressed(path, **arrays)

    return change


def array(name, value):
    """An array in the place of another."""
    return lambda arrays: arrays.__setitem__(name, value(arrays[name]))


def npy_header(shape, dtype="<f4"):
    """The beginning of a .npy file that promises this, and nothing behind it."""
    text = repr({"descr": dtype, "fortran_order": False, "shape": shape}).encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def npz(**members):
    """An archive of these members, as bytes."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, member in members.items():
            archive.writestr(f"{name}.npy", member)
    return content.getvalue()


def zip_bomb():
    """A few kilobytes that say they are 8 GB: the size in the directory is a lie, and is read before anything else."""
    content = bytearray(npz(x=npy_header((1 << 31,)) + bytes(1000)))
    place = content.rindex(b"PK\x01\x02")
    struct.pack_into("<I", content, place + 24, (1 << 32) - 2)
    return bytes(content)


def gzip_bomb():
    """Half a megabyte of gzip that unpacks to 512 MB of zeros: one packed block, again and again."""
    block = gzip.compress(bytes(1 << 26), 9)
    return block * 8


def png(width, height):
    """An image whose header promises this size, and which has next to no data."""

    def chunk(kind, content):
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 64)) + chunk(b"IEND", b"")
    )


def save_arrays(path, **arrays):
    np.savez(path, **arrays)


def snapshot(folder):
    """Every file below a folder, by its bytes."""
    return {path.relative_to(folder): path.read_bytes() for path in sorted(Path(folder).rglob("*")) if path.is_file()}


def nan_in(key):
    def act(tensors):
        tensors[key].view(-1)[0] = torch.nan

    return act
