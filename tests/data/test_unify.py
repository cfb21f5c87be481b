"""Both domains are brought to one form, visibly; what cannot be brought there is refused in a sentence."""

import joblib
import numpy as np
import pytest
import torch
from pictures import arrays, class_folders
from PIL import Image

from calida.data import Collection, Preparation, load_new, load_samples, read_collection, stream, unify
from calida.data.unify.loading import Loading
from calida.errors import InputError
from calida.seeds import Seeds


def images(values):
    x = torch.as_tensor(values)
    return Collection("some", x, [str(row) for row in range(len(x))])


def bars(size=16, **look):
    return torch.from_numpy(arrays(40, 0, size=size, **look)[0])[:, None]


def prepared(source, target, **options):
    first, second = unify(images(source), images(target), **options)
    return first(source), second(target)


def as_read(x):
    """As the classifier reads it."""
    return x / 255 if x.dtype == torch.uint8 else x


def test_equal_domains_are_left_alone():
    x = bars()
    first, second = prepared(x, x.clone())
    assert torch.equal(first, x)
    assert torch.equal(second, x)


def test_sizes_and_channels_meet_at_the_larger():
    gray, color = bars(16), bars(28).expand(-1, 3, -1, -1)
    first, second = prepared(gray, color)
    assert first.shape[1:] == second.shape[1:] == (3, 28, 28)
    assert torch.equal(first[:, 0], first[:, 2])
    first, second = prepared(gray, color, size=12)
    assert first.shape[1:] == second.shape[1:] == (3, 12, 12)


def test_content_is_made_equally_large_and_detail_equally_fine():
    """The convention of the digit sets: 20 of 28 pixels against a full frame of 16, or of 8."""
    framed = torch.zeros(30, 1, 28, 28, dtype=torch.uint8)
    framed[:, :, 4:24, 8:20] = 255
    for size in (16, 8):
        full = torch.zeros(30, 1, size, size, dtype=torch.uint8)
        full[:, :, :, size // 4 : -size // 4] = 255
        source, target = unify(images(framed), images(full))
        assert source.inner is None
        assert target.inner == (20, 20)
        assert source.detail == ((11, 11) if size == 8 else None)  # 8 of 20 pixels; 16 of 20 is close enough
        lit = target(full)[0, 0] > 127
        assert lit.any(1).nonzero().flatten().tolist() == list(range(4, 24))
    backwards, _ = unify(images(full), images(framed))
    assert backwards.inner == (20, 20)


def test_tiny_content_leaves_a_pixel_of_the_other():
    full, tiny = torch.zeros(2, 20, 1, 200, 200, dtype=torch.uint8)
    full[..., 20:-20] = 255  # a bar from top to bottom
    tiny[..., 99:101, 99:101] = 255
    first, second = prepared(full, tiny, size=16)
    assert first.shape == second.shape == (20, 1, 16, 16)
    assert int((first > 0).sum()) == 20  # one in each image


def test_photographs_have_no_background_to_go_by():
    noise = torch.randint(0, 256, (30, 3, 20, 20), dtype=torch.uint8)
    source, target = unify(images(noise), images(bars()))
    assert source.inner is None
    assert target.inner is None


def test_crop_keeps_proportions():
    wide = torch.zeros(1, 1, 10, 30, dtype=torch.uint8)
    wide[..., 10:20] = 200
    middle = Preparation((1, 10, 10))
    assert bool((middle(wide) == 200).all())  # the middle third, not a squeezed whole
    assert "the middle 10 x 10 of 10 x 30 taken" in " ".join(middle.explain((1, 10, 30)))


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (lambda x: x / 255, lambda x: x.float()),
        (lambda x: x.float(), lambda x: x / 255),
        (lambda x: x, lambda x: (x > 128).byte()),
        (lambda x: x, lambda x: x / 255 * 16),
        (lambda x: x / 255, lambda x: x / 127.5 - 1),
    ],
    ids=["unit-bytes", "bytes-unit", "bytes-binary", "bytes-sixteen", "unit-symmetric"],
)
def test_a_mismatch_of_scale_stops_or_is_matched(source, target):
    x = bars(high=255)
    x[x < 128] = 0
    with pytest.raises(InputError, match=r"source values lie in .* and target values in .*on_mismatch=match"):
        prepared(source(x), target(x))
    first, second = prepared(source(x), target(x), on_mismatch="match")
    assert (as_read(first) - as_read(second)).abs().max() <= 0.01
    assert float(as_read(first).max()) == 1


def test_bytes_beside_unit_floats_are_one_scale():
    x = bars()
    first, second = prepared(x, x / 255)
    assert torch.allclose(first / 255, second)


@pytest.mark.parametrize("low_high", [(0, 1), (-1, 1), (-3, 5)])
def test_floats_of_any_range_are_inverted_within_it(low_high):
    low, high = low_high
    x = low + (high - low) * bars().float() / 255
    with pytest.raises(InputError, match="light on dark"):
        prepared(x, low + high - x)
    first, second = prepared(x, low + high - x, on_mismatch="match")
    assert (first - second).abs().max() < 0.2  # ranges that are not known are taken from what was seen
    assert (first - second).abs().mean() < 0.1


def test_ignored_mismatches_are_left_to_the_user():
    x = bars()
    first, second = prepared(x, x / 255 * 16, on_mismatch="ignore")
    assert torch.allclose(16 / 255 * first, second, atol=1e-6)
    assert first.dtype == second.dtype == torch.float32


@pytest.mark.parametrize("channels", [2, 5, 12])
def test_images_of_odd_channels_are_refused(channels):
    odd = torch.zeros(4, channels, 16, 16, dtype=torch.uint8)
    with pytest.raises(InputError, match=f"images of {channels} channels"):
        prepared(odd, odd)


def test_new_samples_of_the_same_scale_stored_otherwise_are_the_same_samples():
    x = bars()
    framed = torch.nn.functional.pad(x, (6, 6, 6, 6), value=20)
    _, preparation = unify(images(framed), images(x))
    assert preparation.inner is not None
    bytes_, floats = (load_new(images(one), preparation, Loading()).samples for one in (x, x / 255))
    assert (as_read(bytes_) - as_read(floats)).abs().max() <= 2 / 255  # bytes are rounded when they are resized
    for wrong in (x.float() / 16, x / 127.5 - 1, (x > 128).byte()):
        with pytest.raises(InputError, match=r"this classifier was trained on 0..255"):
            load_new(images(wrong), preparation, Loading())


@pytest.mark.parametrize(
    ("trained", "new"),
    [
        (lambda x: x, lambda x: 0 * x),  # black bytes
        (lambda x: x.float(), lambda x: x.float() / 3),  # dark images in 0..255
        (lambda x: x / 51 - 2, lambda x: x / 255 - 0.5),  # standardized images, dim
    ],
)
def test_new_images_need_not_fill_the_range(trained, new):
    x = bars()
    _, preparation = unify(images(trained(x)), images(trained(x)))
    found = load_new(images(new(x)), preparation, Loading()).samples
    assert torch.equal(found, preparation(new(x)))


@pytest.mark.parametrize("new", [lambda x: x / 16, lambda x: x / 250, lambda x: x / 255])
def test_new_images_that_hardly_use_the_range_are_in_another(new):
    x = bars()
    _, preparation = unify(images(x.float()), images(x.float()))
    with pytest.raises(InputError, match=r"this classifier was trained on 0..255; on_mismatch=ignore"):
        load_new(images(new(x)), preparation, Loading())
    assert torch.equal(load_new(images(new(x)), preparation, Loading(), check_scale=False).samples, preparation(new(x)))


def test_new_rows_may_have_any_value_that_others_had_and_no_other_unit():
    values = torch.randn(400, generator=torch.Generator().manual_seed(0))
    rows = torch.stack([values, (torch.arange(400) % 200 == 0).float()], 1)  # the second is a rare flag
    _, preparation = unify(images(rows), images(rows))

    def load(x, **options):
        return load_new(images(x), preparation, Loading(), **options).samples

    for usual in (rows[rows[:, 1] == 1], torch.tensor([[0.001, 0.0]]), torch.tensor([[4.0, 3.0]]), rows[:1], rows):
        assert torch.equal(load(usual), usual)
    for strange in (1000 * rows, rows[:1] * 1e5, rows / 1000):
        with pytest.raises(InputError, match=r"the column [01] of .* is of another scale .*on_mismatch=ignore"):
            load(strange)
        assert torch.equal(load(strange, check_scale=False), strange)


def test_inverted_polarity_stops_or_is_matched_or_ignored():
    x = bars()
    with pytest.raises(InputError, match="source images are light on dark and target images dark on light"):
        prepared(x, 255 - x)
    first, second = prepared(x, 255 - x, on_mismatch="match")
    assert torch.equal(first, second)
    first, second = prepared(x, 255 - x, on_mismatch="ignore")
    assert torch.equal(second, 255 - x)


def test_vectors_of_another_scale():
    rows = torch.randn(100, 5) + 2
    scaled = 1000 * rows
    with pytest.raises(InputError, match=r"the column \d lies in .* in source and in .* in target"):
        prepared(rows, scaled)
    one = rows.clone()
    one[:, 3] *= 100
    assert torch.equal(prepared(rows, one)[1], one)  # a single column may have drifted: no reason to stop
    one[:, 1:3] *= 1000
    with pytest.raises(InputError, match=r"the column [12] lies in"):
        prepared(rows, one)
    one[:, 1:3] = 0  # a column of zeros tells nothing
    prepared(rows, one)
    first, second = prepared(rows, scaled, on_mismatch="match")
    assert torch.allclose(first, second, atol=1e-4)
    with pytest.raises(InputError, match="5 features and target some has 4"):
        prepared(rows, rows[:, :4])
    with pytest.raises(InputError, match="both must be of one kind"):
        prepared(rows, bars())


def test_a_preparation_survives_json_and_explains_itself():
    source, target = unify(images(bars(28)), images(255 - bars(8)), on_mismatch="match")
    for preparation in (source, target):
        assert Preparation.from_json(preparation.to_json()) == preparation
    told = " ".join(target.explain((1, 8, 8)))
    assert "light and dark exchanged" in told
    assert "resized from 8 x 8" in told


def test_files_in_memory_and_streamed_are_the_same_bytes(tmp_path):
    collection = read_collection(str(class_folders(tmp_path, 10, 0, size=20)), Seeds(0), True)
    preparation, _ = unify(collection, collection, size=16)
    memory = load_samples(collection, preparation, Loading(workers=0))
    streamed = load_samples(collection, preparation, Loading(memory=1e-9, workers=2))
    assert torch.is_tensor(memory.samples)
    assert not torch.is_tensor(streamed.samples)
    assert streamed.samples.shape == memory.samples.shape
    assert torch.equal(streamed.samples[torch.arange(10)], memory.samples)
    assert "streamed from disk" in streamed.notes[0]
    reference = np.array(Image.open(collection.samples[3]).resize((16, 16), Image.Resampling.BILINEAR))
    assert np.abs(memory.samples[3, 0].numpy().astype(int) - reference).max() <= 1  # Pillow's own filter


def _streamed(folder, workers):
    collection = read_collection(str(folder), Seeds(0), True)
    preparation, _ = unify(collection, collection, size=16)
    files = load_samples(collection, preparation, Loading(memory=1e-9, workers=workers)).samples
    return torch.cat(list(stream(files, [torch.arange(5), torch.arange(5, 10)])))


def test_files_are_read_ahead_in_processes_of_joblib_too(tmp_path):
    """A study's runs are such processes, and start processes of their own to read images."""
    folder = class_folders(tmp_path, 10, 0, size=20)
    (there,) = joblib.Parallel(2, backend="loky")([joblib.delayed(_streamed)(folder, 2)])
    assert torch.equal(there, _streamed(folder, 0))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("memory", [1.0, 1e-9])
def test_an_unreadable_image_is_named_or_skipped(tmp_path, workers, memory):
    folder = class_folders(tmp_path, 8, 0)
    (folder / "lying" / "broken.png").write_bytes((folder / "lying" / "000.png").read_bytes()[:60])
    (folder / "standing" / "text.jpg").write_text("not an image")
    collection = read_collection(str(folder), Seeds(0), True)
    with pytest.raises(InputError, match=r"(broken.png|text.jpg) cannot be read"):
        unify(collection, collection)
    preparation, _ = unify(collection, collection, skip_unreadable=True)
    with pytest.raises(InputError, match=r"broken.png cannot be read: .*such files can be skipped"):
        load_samples(collection, preparation, Loading(memory, workers))
    loaded = load_samples(collection, preparation, Loading(memory, workers, skip_unreadable=True))
    assert len(loaded.samples) == len(loaded.collection) == len(loaded.collection.labels) == 8
    assert "2 unreadable images skipped: lying/broken.png, standing/text.jpg" in loaded.notes
