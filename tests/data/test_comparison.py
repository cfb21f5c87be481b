"""Two domains side by side: nothing to say of equal ones, the right sentence for each thing that is wrong."""

import pictures
import pytest
import torch
from PIL import Image

from calida.data import ImageFiles, compare_domains, describe_balance
from calida.run_warnings import RunWarning, WarningCode


def images(count=60, seed=0, **look):
    """[N, 1, H, W] bytes: light bars on dark."""
    return torch.from_numpy(pictures.arrays(count, seed, size=20, **look)[0]).unsqueeze(1)


def vectors(rows=300, seed=0):
    return torch.randn(rows, 5, generator=torch.Generator().manual_seed(seed)) * torch.tensor([1, 10, 0.1, 1e4, 1e-4])


def shrunk(x):
    """Content in the middle half of the frame, on the same ground."""
    small = torch.nn.functional.interpolate(x.float(), scale_factor=0.5, mode="nearest").byte()
    framed = torch.full_like(x, 25)
    framed[..., 5:15, 5:15] = small
    return framed


KINDS = {
    "bytes": lambda x: x,
    "0..1": lambda x: x.float() / 255,
    "floats to 255": lambda x: x.float(),
    "-1..1": lambda x: x.float() / 127.5 - 1,
    "color": lambda x: x.expand(-1, 3, -1, -1),
    "two channels": lambda x: x.expand(-1, 2, -1, -1),
    "seven channels": lambda x: x.float().expand(-1, 7, -1, -1),
}
EVERY_KIND = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)


@EVERY_KIND
def test_draws_of_one_domain_give_no_sentence(kind):
    assert compare_domains(kind(images()), kind(images(40, seed=1))) == []
    assert compare_domains(kind(images()), kind(images())) == []
    assert compare_domains(kind(images()), kind(images(seed=1, low=35, high=200))) == []  # a little brighter


@EVERY_KIND
def test_dimmed_images_are_of_another_scale(kind):
    source, target = kind(images()), kind((images(seed=1).float() / 4).byte())
    for pair in ((source, target), (target, source)):
        assert compare_domains(*pair)[0].code == WarningCode.PIXEL_SPREAD


@EVERY_KIND
def test_inverted_images_are_noticed(kind):
    (warning,) = compare_domains(kind(images()), kind(255 - images(seed=1)))
    assert warning.code == WarningCode.BACKGROUND


@EVERY_KIND
def test_smaller_content_is_noticed(kind):
    source, target = kind(images()), kind(shrunk(images(seed=1)))
    for pair in ((source, target), (target, source)):
        (warning,) = compare_domains(*pair)
        assert warning.code == WarningCode.FRAMING


def test_sentences_give_the_figures_of_either_side():
    (warning,) = compare_domains(images(), 255 - images(seed=1))
    assert str(warning) == "The background is 10% bright on source and 90% on target: inverted?"
    x = images().float() / 255
    (warning,) = compare_domains(x, x / 4)
    assert warning.values == pytest.approx({"source": float(x.std()), "target": float(x.std()) / 4})


def test_bytes_beside_floats_from_0_to_1_are_one_scale():
    assert compare_domains(images(), images(seed=1).float() / 255) == []


def test_files_are_compared_as_arrays_are(tmp_path):
    inverted = 255 - images(12, seed=1)
    paths = [tmp_path / f"{row}.png" for row in range(12)]
    for path, picture in zip(paths, inverted, strict=True):
        Image.fromarray(picture[0].numpy()).save(path)
    files = ImageFiles(paths, lambda picture: picture, (1, 20, 20), workers=0)
    assert compare_domains(images(), files) == compare_domains(images(), inverted) != []


def test_blank_images_have_no_content_to_compare():
    blank = torch.full((10, 1, 8, 8), 30, dtype=torch.uint8)
    assert compare_domains(blank, blank) == []


def test_vectors_of_one_kind_give_no_sentence():
    assert compare_domains(vectors(), vectors(seed=1)) == []
    assert compare_domains(vectors(), 2 * vectors(seed=1)) == []  # a shift, which adaptation is for


@pytest.mark.parametrize("column", range(5))
@pytest.mark.parametrize("factor", [1000.0, 0.001])
def test_a_column_in_other_units_is_named(column, factor):
    target = vectors(seed=1)
    target[:, column] *= factor
    for pair in ((vectors(), target), (target, vectors())):
        (warning,) = compare_domains(*pair)
        assert (warning.code, warning.values["feature"]) == (WarningCode.FEATURE_SCALE, column)
        assert warning.values["count"] == 1
        assert warning.values["source_std"] == pytest.approx(float(pair[0][:256, column].std()), rel=0.2)


def test_a_column_that_is_far_away_is_named():
    target = vectors(seed=1)
    target[:, 1] += 500
    target[:, 3] += 2e5
    (warning,) = compare_domains(vectors(), target)
    assert warning.values["feature"] == 1  # 50 spreads away, the other 20
    assert warning.values["count"] == 2


def test_a_constant_column_is_not_told():
    source, target = vectors(), vectors(seed=1)
    source[:, 2] = target[:, 2] = 3.0
    assert compare_domains(source, target) == []
    target[:, 2] = 7.0
    assert compare_domains(source, target) == []
    assert compare_domains(source, vectors(seed=1)) == []


def test_the_order_of_samples_says_nothing_and_the_whole_domain_is_looked_at():
    """A domain that is odd in its second half only, and larger than what is looked at."""
    source, target = vectors(1000), vectors(1000, 1)
    target[500:, 0] *= 1000
    (warning,) = compare_domains(source, target)
    assert warning.values["feature"] == 0


def test_rare_classes_are_named():
    labels = torch.arange(1000) % 4
    assert describe_balance(labels, 4) == []
    labels[labels == 2] = 1
    labels[:7] = 2
    (warning,) = describe_balance(labels, 4)
    assert warning == RunWarning(WarningCode.RARE_CLASS, {"name": "2", "share": 0.007, "count": 1, "classes": 4})
    (warning,) = describe_balance(torch.arange(1000) % 4, 6)
    assert warning == RunWarning(WarningCode.RARE_CLASS, {"name": "4", "share": 0.0, "count": 2, "classes": 6})


def test_unbalanced_is_not_yet_rare():
    assert describe_balance(torch.cat([torch.zeros(900), torch.ones(100)]).long(), 2) == []
