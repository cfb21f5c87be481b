"""Two domains side by side: nothing to say of equal ones, the right sentence for each thing that is wrong."""

import pictures
import pytest
import torch
from PIL import Image

from calida.data import ImageFiles, compare_domains, describe_balance


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
        sentence = compare_domains(*pair)[0]
        assert sentence.startswith("Pixel values spread by")
        assert sentence.endswith("one scale?")


@EVERY_KIND
def test_inverted_images_are_noticed(kind):
    (sentence,) = compare_domains(kind(images()), kind(255 - images(seed=1)))
    assert sentence.startswith("The background is")
    assert sentence.endswith("inverted?")


@EVERY_KIND
def test_smaller_content_is_noticed(kind):
    source, target = kind(images()), kind(shrunk(images(seed=1)))
    for pair in ((source, target), (target, source)):
        (sentence,) = compare_domains(*pair)
        assert sentence.startswith("Content fills")
        assert sentence.endswith("framed alike?")


def test_sentences_give_the_figures_of_either_side():
    (sentence,) = compare_domains(images(), 255 - images(seed=1))
    assert sentence == "The background is 10% bright on source and 90% on target: inverted?"
    x = images().float() / 255
    (sentence,) = compare_domains(x, x / 4)
    assert f"spread by {float(x.std()):.3g} on source and by {float(x.std()) / 4:.3g} on target" in sentence


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
        (sentence,) = compare_domains(*pair)
        assert sentence.startswith(f"Feature {column} is")
        assert sentence.endswith("(1 such): one scale?")


def test_a_column_that_is_far_away_is_named():
    target = vectors(seed=1)
    target[:, 1] += 500
    target[:, 3] += 2e5
    (sentence,) = compare_domains(vectors(), target)
    assert sentence.startswith("Feature 1 is")  # 50 spreads away, the other 20
    assert "(2 such)" in sentence


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
    (sentence,) = compare_domains(source, target)
    assert sentence.startswith("Feature 0 is")


def test_rare_classes_are_named():
    labels = torch.arange(1000) % 4
    assert describe_balance(labels, 4) == []
    labels[labels == 2] = 1
    labels[:7] = 2
    (sentence,) = describe_balance(labels, 4)
    assert sentence == "Class 2 has 0.70% of the source (1 of 4 are that rare)."
    (sentence,) = describe_balance(torch.arange(1000) % 4, 6)
    assert sentence == "Class 4 has 0.00% of the source (2 of 6 are that rare)."


def test_unbalanced_is_not_yet_rare():
    assert describe_balance(torch.cat([torch.zeros(900), torch.ones(100)]).long(), 2) == []
