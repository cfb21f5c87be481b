"""Embeddings: the same for a sample wherever it stands, computed once, whole or not there."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from calida.data import Loading, Texts
from calida.encoders import EmbeddingCache, cache_folder, clear_cache, embed, list_cache, own_encoder
from calida.encoders.embedding import content_keys
from calida.errors import InputError


class Counting(nn.Module):
    """Means over a grid of four, and how many images were asked for."""

    def __init__(self):
        super().__init__()
        self.images = 0

    def forward(self, images):
        self.images += len(images)
        return nn.functional.adaptive_avg_pool2d(images, 2).flatten(1)


@pytest.fixture
def counting():
    module = Counting()
    encoder = own_encoder(module, "counting", size=8, mean=(0, 0, 0), std=(1, 1, 1))
    module.images = 0
    return encoder, module


def pictures(count, seed=0, size=12):
    return torch.from_numpy(np.random.default_rng(seed).integers(0, 256, (count, 3, size, size), dtype=np.uint8))


def as_files(images, folder):
    folder.mkdir(exist_ok=True)
    paths = [folder / f"{place:03}.png" for place in range(len(images))]
    for image, path in zip(images, paths, strict=True):
        Image.fromarray(image.permute(1, 2, 0).numpy()).save(path)
    return paths


def test_what_is_known_is_not_computed_again(counting, tmp_path):
    encoder, module = counting
    images = pictures(70)
    first = embed(encoder, images, root=tmp_path)
    assert module.images == 70
    again = embed(encoder, images.flip(0), root=tmp_path)  # another order, the same content
    more = embed(encoder, torch.cat([images[:10], pictures(5, seed=1)]), root=tmp_path)
    assert module.images == 75
    assert torch.equal(again.features, first.features.flip(0))
    assert torch.equal(more.features[:10], first.features[:10])
    (kept,) = list_cache(tmp_path)
    assert (kept.name, kept.samples, kept.weights) == ("counting", 75, encoder.weights)


def test_equal_samples_are_computed_once(counting, tmp_path):
    encoder, module = counting
    images = pictures(3)[torch.tensor([0, 1, 0, 2, 0])]
    found = embed(encoder, images, root=tmp_path)
    assert module.images == 3
    assert torch.equal(found.features[0], found.features[4])
    assert found.rows == list(range(5))


def test_features_are_those_of_each_image_by_itself(counting, tmp_path):
    encoder, _ = counting
    images = pictures(40)
    found = embed(encoder, images, root=tmp_path).features
    alone = torch.cat([embed(encoder, images[row : row + 1], root=tmp_path / str(row)).features for row in (0, 17, 39)])
    assert torch.equal(found[torch.tensor([0, 17, 39])], alone)
    resized = nn.functional.interpolate(images.float() / 255, (8, 8), mode="bilinear", antialias=True)
    expected = nn.functional.adaptive_avg_pool2d(resized, 2).flatten(1)
    assert torch.allclose(found, expected, atol=5e-3)  # frames are bytes


def test_files_and_arrays_and_scales_agree(counting, tmp_path):
    encoder, _ = counting
    images = pictures(9)
    arrays = embed(encoder, images, root=tmp_path / "cache").features
    paths = as_files(images, tmp_path / "files")
    files = embed(encoder, paths, Loading(workers=0), root=tmp_path / "cache").features
    unit = embed(encoder, images.float() / 255, root=tmp_path / "cache").features
    assert torch.equal(files, arrays)
    assert torch.allclose(unit, arrays, atol=5e-3)  # bytes are rounded after they are resized


def test_a_file_that_moved_is_known_and_one_that_changed_is_not(counting, tmp_path):
    encoder, module = counting
    paths = as_files(pictures(4), tmp_path / "files")
    embed(encoder, paths, Loading(workers=0), root=tmp_path / "cache")
    moved = [path.rename(tmp_path / f"moved-{path.name}") for path in paths]
    embed(encoder, moved, Loading(workers=0), root=tmp_path / "cache")
    assert module.images == 4
    moved[0].write_bytes(moved[1].read_bytes())
    as_files(pictures(1, seed=5), tmp_path)
    embed(encoder, [tmp_path / "000.png", *moved], Loading(workers=0), root=tmp_path / "cache")
    assert module.images == 5


def test_unreadable_files_are_named_or_passed_over(counting, tmp_path):
    encoder, _ = counting
    images = pictures(5)
    paths = as_files(images, tmp_path / "files")
    paths[1].write_bytes(b"no image")
    paths[3].unlink()
    with pytest.raises(InputError, match=r"003.png cannot be read.*can be skipped"):
        embed(encoder, paths, Loading(workers=0), root=tmp_path / "cache")
    found = embed(encoder, paths, Loading(workers=0, skip_unreadable=True), root=tmp_path / "cache")
    assert found.rows == [0, 2, 4]
    assert torch.equal(found.features, embed(encoder, images[[0, 2, 4]], root=tmp_path / "cache").features)


def test_images_of_pillow_that_are_cut_off_are_as_files_are(counting, tmp_path):
    encoder, _ = counting
    paths = as_files(pictures(3, size=40), tmp_path / "files")
    content = paths[1].read_bytes()
    paths[1].write_bytes(content[: len(content) // 2])
    with pytest.raises(InputError, match=r"the image .* cannot be read: .*can be skipped"):
        embed(encoder, [Image.open(path) for path in paths], Loading(workers=0), root=tmp_path / "cache")
    given = [Image.open(path) for path in paths]
    found = embed(encoder, given, Loading(workers=0, skip_unreadable=True), root=tmp_path / "cache")
    assert found.rows == [0, 2]
    whole = embed(encoder, pictures(3, size=40)[[0, 2]], root=tmp_path / "cache").features
    assert torch.equal(found.features, whole)


def test_texts_come_back_in_their_order(tmp_path):
    lengths = own_encoder(lambda images: images.mean((2, 3)), "means", size=8)
    with pytest.raises(InputError, match="reads images, which these samples are not"):
        embed(lengths, Texts(["a"]), root=tmp_path)
    keys, _ = content_keys(Texts(["a", "b", "a", "\ud800"]))
    assert keys[0] == keys[2] != keys[1]


def test_broken_and_foreign_shards_count_for_nothing(counting, tmp_path):
    encoder, module = counting
    images = pictures(6)
    first = embed(encoder, images, root=tmp_path)
    (shard,) = tmp_path.rglob("*.safetensors")
    content = shard.read_bytes()
    shard.write_bytes(content[:-7])
    (shard.parent / "foreign.safetensors").write_bytes(b"{}")
    again = embed(encoder, images, root=tmp_path)
    assert module.images == 12
    assert torch.equal(again.features, first.features)
    assert shard.read_bytes() == content  # the name is that of the keys, and the shard is whole again


def test_other_weights_are_other_embeddings(tmp_path):
    images = pictures(4)
    encoders = [own_encoder(nn.Sequential(nn.Flatten(), nn.Linear(192, 3)), "own", size=8) for _ in range(2)]
    first, second = (embed(encoder, images, root=tmp_path).features for encoder in encoders)
    assert not torch.allclose(first, second)
    assert len(list_cache(tmp_path)) == 2
    assert [one.samples for one in clear_cache("own", tmp_path)] == [4, 4]
    assert list_cache(tmp_path) == []


def test_the_folder_can_be_named(monkeypatch, tmp_path, counting):
    monkeypatch.setenv("CALIDA_CACHE", str(tmp_path / "here"))
    assert cache_folder() == tmp_path / "here"
    (tmp_path / "here").write_text("a file, where a folder should be")
    with pytest.raises(InputError, match=r"embeddings cannot be kept in .*CALIDA_CACHE names another folder"):
        embed(counting[0], pictures(2))


PROGRAM = """
import sys, time, torch
from pathlib import Path
from calida.encoders import embed, own_encoder
sys.path.insert(0, {tests!r})
from test_embedding import pictures
seen = 0
def slow(images):
    global seen
    seen += len(images)
    if len(images) == 32:
        time.sleep({pause})
        print(seen, flush=True)
    return images.mean((2, 3))
embed(own_encoder(slow, "slow", size=8), pictures({count}), root=Path({root!r}))
print("computed", seen - 2, flush=True)  # two were tried to count the features
"""


def start(root, count, pause):
    code = PROGRAM.format(tests=os.path.dirname(__file__), root=str(root), count=count, pause=pause)
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)


def test_a_killed_run_leaves_what_it_had_finished(tmp_path):
    process = start(tmp_path, 1200, 0.01)
    while not list(tmp_path.rglob("*.safetensors")):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = sum(one.samples for one in list_cache(tmp_path))
    assert done in (512, 1024)
    out, _ = start(tmp_path, 1200, 0.0).communicate()
    assert out.splitlines()[-1] == f"computed {1200 - done}"


def test_two_processes_can_fill_one_cache(tmp_path):
    processes = [start(tmp_path, 600, 0.005) for _ in range(2)]
    for process in processes:
        process.communicate()
        assert process.returncode == 0
    encoder = own_encoder(lambda images: images.mean((2, 3)), "slow", size=8)
    features = torch.zeros(600, 3)
    missing = EmbeddingCache(encoder, "bf16", tmp_path).fill(content_keys(pictures(600))[0], features)
    other = EmbeddingCache(encoder, "fp32", tmp_path).fill(content_keys(pictures(600))[0], features)
    assert not bool(missing.any()) or not bool(other.any())
    assert not list(tmp_path.rglob(".writing-*"))
