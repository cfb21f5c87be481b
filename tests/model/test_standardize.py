"""Scales of inputs: images as ever, features of a table robust to what the source never showed."""

import pytest
import torch
from sklearn.neighbors import KNeighborsClassifier

from calida.model import Standardize


def bounded(standard):
    return standard / (1 + standard**2 / 4) ** 0.5


def rows(count, *shape, seed=0):
    return torch.randn(count, *shape, generator=torch.Generator().manual_seed(seed))


def test_bytes_and_floats_are_the_same_image():
    pixels = torch.randint(0, 256, (50, 1, 8, 8), dtype=torch.uint8)
    standardize = Standardize((1, 8, 8)).fit(pixels)
    out = standardize(pixels)
    torch.testing.assert_close(out, standardize(pixels.float() / 255))
    assert abs(float(out.mean())) < 1e-5
    assert float(out.std(correction=0)) == pytest.approx(1, abs=1e-5)


def test_features_are_bounded_scores_by_the_middle_of_the_source():
    """Against sorting, cutting and dividing by hand."""
    x = rows(1001, 3) * torch.tensor([1.0, 100.0, 1e-3]) + torch.tensor([0.0, 5.0, 7.0])
    ordered = x.double().sort(0).values
    cut = x.double().clamp(ordered[20], ordered[-21])
    expected = bounded((x - cut.mean(0)) / cut.std(0, correction=0))
    torch.testing.assert_close(Standardize((3,)).fit(x)(x).double(), expected, rtol=1e-3, atol=1e-3)


def test_a_constant_feature_is_not_divided_by_a_rounding_error():
    x = torch.full((50, 1), 7.1)
    assert (Standardize((1,)).fit(x)(x) == 0).all()
    assert float(Standardize((1,)).fit(x)(x + 1)[0, 0]) == pytest.approx(float(bounded(torch.tensor(1.0))))


def test_wild_values_move_nothing():
    x = rows(5000, 2)
    spoiled = x.clone()
    spoiled[:50] = 1e9  # a hundredth of the rows
    clean, other = (Standardize((2,)).fit(one) for one in (x, spoiled))
    torch.testing.assert_close(other.scale, clean.scale, rtol=0.05, atol=0)
    torch.testing.assert_close(other(x[50:]), clean(x[50:]), rtol=0, atol=0.1)
    assert float(clean(spoiled).abs().max()) <= 2


def test_a_rare_indicator_is_told_from_its_absence():
    x = torch.zeros(1000, 1)
    x[:5] = 1  # fewer than lie beyond the middle
    there, gone = Standardize((1,)).fit(x)(torch.tensor([[1.0], [0.0]])).flatten().tolist()
    assert there > 1.9
    assert abs(gone) < 0.1


def test_what_is_nearly_constant_in_source_does_not_drown_the_rest():
    """Nearest neighbors by one good feature, beside many that hardly vary in source and do in target."""
    labels = torch.arange(400) % 2
    good = 4.0 * labels[:, None] + rows(400, 1, seed=1)
    source = torch.cat([good, 1e-3 * rows(400, 30, seed=2)], 1)
    noisy = 5 * (rows(400, 30, seed=4) > 1.5).float()  # bright now and then, as the edge of a picture
    target = torch.cat([4.0 * labels[:, None] + rows(400, 1, seed=3), noisy], 1)

    def accuracy(scale):
        return KNeighborsClassifier(1).fit(scale(source), labels).score(scale(target), labels)

    plain = accuracy(lambda x: (x - source.mean(0)) / source.std(0))
    assert plain < 0.8
    assert accuracy(Standardize((31,)).fit(source, target)) > plain + 0.15


@pytest.mark.parametrize("unit", [1e-12, 1e-6, 1.0, 1e6])
def test_the_unit_of_a_feature_does_not_matter(unit):
    x = torch.randn(500, 3, generator=torch.Generator().manual_seed(0)) + torch.tensor([0.0, 1.0, 50.0])
    torch.testing.assert_close(
        Standardize((3,)).fit(x * unit)(x * unit), Standardize((3,)).fit(x)(x), rtol=1e-3, atol=1e-4
    )


def test_a_feature_is_scaled_by_the_domain_where_it_spreads_further():
    spread = torch.tensor([1.0, 3.0, 0.0, 0.0])  # of the source; the target's is the reverse, so the last is constant
    draws = torch.randn(20_000, 2, 4, generator=torch.Generator().manual_seed(0))
    source, target = draws[:, 0] * spread, draws[:, 1] * torch.tensor([3.0, 1.0, 2.0, 0.0])
    target[:20] = 1e9  # a thousandth of the rows is garbage
    scale = Standardize((4,)).fit(source, target).scale
    torch.testing.assert_close(scale, torch.tensor([3.0, 3.0, 2.0, 1.0]), rtol=0.03, atol=0)
    torch.testing.assert_close(Standardize((4,)).fit(target[20:], source).scale, scale, rtol=0.06, atol=0)


def test_the_targets_spread_changes_nothing_where_it_is_smaller_and_for_images():
    x = torch.randn(500, 3)
    assert torch.equal(Standardize((3,)).fit(x, x * 0.9).scale, Standardize((3,)).fit(x).scale)
    images = torch.rand(20, 3, 8, 8)
    assert torch.equal(Standardize((3, 8, 8)).fit(images, 5 * images).scale, Standardize((3, 8, 8)).fit(images).scale)
