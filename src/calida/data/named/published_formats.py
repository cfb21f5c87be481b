"""Published files -> arrays, and archives of images -> folders; whatever they hold, nothing outside is touched."""

from __future__ import annotations

import gzip
import math
import shutil
import struct
import tarfile
import zlib
from pathlib import Path, PurePosixPath

import numpy as np

from calida.data.arrays.decode import IMAGE_SUFFIXES
from calida.errors import InputError
from calida.files import read_gzip


def read_idx(path: Path) -> np.ndarray:
    """Bytes of any shape: two zeros, the code 8, the number of dimensions, each as a big-endian integer, the data."""
    try:
        content = read_gzip(path)
        zeros, code, ndim = struct.unpack_from(">HBB", content)
        shape = struct.unpack_from(f">{ndim}I", content, 4)
    except (gzip.BadGzipFile, EOFError, zlib.error, struct.error) as error:
        raise InputError(f"{path.name} is truncated or not a gzipped IDX file: {error}") from None
    start = 4 + 4 * ndim
    if (zeros, code) != (0, 8) or len(content) - start != math.prod(shape):
        raise InputError(f"{path.name} is not an IDX file of bytes of shape {shape}")
    return np.frombuffer(content, np.uint8, offset=start).reshape(shape)


def read_libsvm(path: Path, num_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Features [N, D] and labels [N] of lines `label index:value ...`; indices start at 1, a missing one is 0."""
    from sklearn.datasets import load_svmlight_file

    try:
        features, labels = load_svmlight_file(path, n_features=num_features, zero_based=False)
    except (OSError, EOFError, ValueError) as error:
        raise InputError(f"{path.name} is truncated or not a libsvm file: {error}") from None
    return features.toarray(), labels


def read_mat(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Images [N, H, W, C] and labels [N] of a MATLAB file that holds X [H, W, C, N] and y [N, 1]."""
    from scipy.io import loadmat

    try:
        content = loadmat(path, variable_names=["X", "y"])
        images, labels = content["X"].transpose(3, 0, 1, 2), content["y"].reshape(-1)
    except Exception as error:  # scipy has no common base for what it raises on a broken file
        raise InputError(f"{path.name} is truncated or not a MATLAB file with X and y: {error}") from None
    return np.ascontiguousarray(images), labels


def unpack(archive: Path, root: str, folder: Path) -> None:
    """Copy the plain files below `root` out of a tar file into `folder`; a member that could harm refuses them all."""
    (folder / root).mkdir(parents=True)
    try:
        with tarfile.open(archive, "r:") as tar:
            for member in tar:
                place = PurePosixPath(member.name)
                if place.is_absolute() or ".." in place.parts or "\\" in member.name or ":" in member.name:
                    raise InputError(f"{archive.name} is refused: its member {member.name!r} points out of the folder")
                # Not `isfile`, which also means sparse files: a few bytes in the archive, any number on the disk.
                if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE):
                    raise InputError(f"{archive.name} is refused: its member {member.name!r} is no plain file")
                content = tar.extractfile(member)
                if place.parts[:1] == (root,) != place.parts and content is not None:
                    target = folder.joinpath(*place.parts)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    with target.open("wb") as file:
                        shutil.copyfileobj(content, file, 1 << 20)
    except tarfile.TarError as error:
        raise InputError(f"{archive.name} is truncated or not a tar file: {error}") from None


def check_listing(folder: Path) -> None:
    """The images below a folder are those that its `image_list.txt` names, each with a class: no more, no less."""
    path = folder / "image_list.txt"
    try:
        lines = [line.rpartition(" ") for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (FileNotFoundError, UnicodeDecodeError) as error:
        raise InputError(f"{folder.name}/{path.name} is missing or not a text: {error}") from None
    if not lines or not all(label.isdigit() for _, _, label in lines):
        raise InputError(f"{folder.name}/{path.name} has lines that are not an image and the number of its class")
    listed = {name for name, _, _ in lines}
    found = {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.suffix.lower() in IMAGE_SUFFIXES}
    if listed != found:
        raise InputError(
            f"{folder.name} does not match its {path.name}: {len(listed - found)} of {len(listed)} images are missing "
            f"and {len(found - listed)} are not listed"
        )
