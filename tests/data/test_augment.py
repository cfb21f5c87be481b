"""Random views: nothing at strength 0, the same for the same seed, and truly affine."""

import math

import pytest
import torch
from scipy.ndimage import gaussian_filter

from calida.data import Augmentation, has_colors
from calida.processes import Share
from calida.seeds import Seeds


def ramp(size=33):
    """An image that is linear in x and y: an affine map of it is known in closed form."""
    axis = (torch.arange(size) + 0.5) / size * 2 - 1
    return (0.3 * axis[None, :] + 0.1 * axis[:, None]).expand(4, 1, size, size)


def test_strength_zero_and_vectors_are_left_alone():
    images, rows = torch.rand(4, 1, 8, 8), torch.rand(4, 8)
    assert Augmentation()(images, Seeds(0)) is images
    assert Augmentation(affine=1.0)(rows, Seeds(0)) is rows


def test_a_view_is_a_function_of_the_seed():
    images = torch.rand(4, 1, 16, 16)
    one, again, other = (Augmentation(affine=1.0)(images, Seeds(seed)) for seed in (1, 1, 2))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)
    assert not torch.equal(one[0] - images[0], one[1] - images[1])  # each sample has amounts of its own


def test_bytes_become_unit_floats():
    images = torch.randint(0, 256, (4, 1, 16, 16), dtype=torch.uint8)
    views = Augmentation(affine=0.5)(images, Seeds(0))
    assert torch.allclose(views, Augmentation(affine=0.5)(images / 255, Seeds(0)))
    assert 0 <= float(views.min()) <= float(views.max()) <= 1


@pytest.mark.parametrize(
    ("only", "limit"),
    [
        ({"rotation": math.radians(20)}, lambda m: (m[:, 0, 0] - math.cos(math.radians(20))).clamp(max=0)),
        ({"shift": 0.15}, lambda m: (0.3 - m[:, :, 2].abs()).clamp(max=0)),
        ({"stretch": 0.3}, lambda m: (0.3 - m[:, [0, 1], [0, 1]].log().abs()).clamp(max=0)),
    ],
)
def test_amounts_stay_within_their_limits(only, limit):
    amounts = {"rotation": 0.0, "stretch": 0.0, "shear": 0.0, "shift": 0.0} | only
    images = torch.zeros(500, 1, 8, 8)
    matrices = Augmentation(affine=1.0, **amounts)._matrices(images, Seeds(0).generator("affine"), Share.whole(500))
    assert bool((limit(matrices) > -1e-5).all())
    assert matrices.std(0).max() > 0.05  # and they are used


def test_the_image_moves_as_the_matrix_says():
    images = ramp()
    augmentation = Augmentation(affine=1.0)
    matrices = augmentation._matrices(images, Seeds(3).generator("affine"), Share.whole(len(images)))
    views = augmentation(images, Seeds(3))
    axis = (torch.arange(33) + 0.5) / 33 * 2 - 1
    places = torch.stack([axis.expand(33, 33), axis[:, None].expand(33, 33), torch.ones(33, 33)])  # x, y, 1
    for matrix, view in zip(matrices, views, strict=True):
        x, y = torch.einsum("ij,jhw->ihw", matrix, places)
        inside = (x.abs() < axis[-1]) & (y.abs() < axis[-1])  # beyond that the border is repeated
        assert inside.float().mean() > 0.4
        torch.testing.assert_close(view[0][inside], (0.3 * x + 0.1 * y)[inside], atol=1e-5, rtol=1e-4)


def test_turning_keeps_lengths_and_a_quarter_turn_is_known():
    image = torch.zeros(1, 1, 15, 15)
    image[0, 0, 7, 9:12] = 1  # a stroke to the right of the middle
    amounts = {"stretch": 0.0, "shear": 0.0, "shift": 0.0}
    for seed in range(20):
        turned = Augmentation(affine=1.0, rotation=math.pi / 2, **amounts)
        angle = torch.atan2(*turned._matrices(image, Seeds(seed).generator("affine"), Share.whole(1))[0, [1, 0], 0])
        view = turned(image, Seeds(seed))[0, 0]
        rows, columns = torch.meshgrid(torch.arange(15.0) - 7, torch.arange(15.0) - 7, indexing="ij")
        middle = torch.stack([(columns * view).sum(), (rows * view).sum()]) / view.sum()
        expected = 3 * torch.stack([angle.cos(), -angle.sin()])  # the map is from output to input, so it turns back
        assert torch.linalg.vector_norm(middle - expected) < 0.5


def test_every_strength_acts_on_its_own_kind_of_sample():
    images, rows = torch.rand(8, 3, 12, 12), torch.rand(8, 12)
    for name in ("affine", "sharpness", "color", "contrast", "polarity", "erasing"):
        one = Augmentation(**{name: 0.5})
        assert one(rows, Seeds(0)) is rows
        view = one(images, Seeds(0))
        assert view.shape == images.shape
        assert not torch.equal(view, images)
        assert torch.equal(view, one(images, Seeds(0)))
    for name in ("noise", "dropping"):
        one = Augmentation(**{name: 0.5})
        assert one(images, Seeds(0)) is images
        assert not torch.equal(one(rows, Seeds(0)), rows)


def test_one_change_leaves_the_draws_of_another_alone():
    """Each has a seed of its own name: adding polarity moves no image elsewhere."""
    images = torch.rand(16, 1, 12, 12)
    both, moved = Augmentation(affine=1.0, polarity=0.5)(images, Seeds(4)), Augmentation(affine=1.0)(images, Seeds(4))
    turned = moved.amin() + moved.amax() - moved
    same = (both == moved).flatten(1).all(1)
    negative = torch.isclose(both, turned, atol=1e-6).flatten(1).all(1)
    assert bool((same ^ negative).all())
    assert 2 <= int(negative.sum()) <= 14


def test_polarity_is_an_involution_with_a_probability():
    images = torch.rand(400, 1, 4, 4)
    images[:, 0, 0, 0], images[:, 0, 0, 1] = 0, 1  # so that the range is known
    view = Augmentation(polarity=0.3)(images, Seeds(0))
    changed = (view != images).flatten(1).any(1)
    assert 0.22 < changed.float().mean() < 0.38
    torch.testing.assert_close(view[changed], 1 - images[changed])


def test_contrast_keeps_order_and_range():
    """What was lighter stays at least as light, and nothing leaves the range of the batch."""
    images = torch.rand(50, 1, 6, 6)
    view = Augmentation(contrast=1.0)(images, Seeds(1))
    assert images.min() <= view.min()
    assert view.max() <= images.max()
    for image, other in zip(images.flatten(1), view.flatten(1), strict=True):
        assert bool((other[image.argsort()].diff() >= -1e-6).all())
    spreads = view.std((1, 2, 3)) / images.std((1, 2, 3))
    assert spreads.min() < 0.7
    assert spreads.max() > 1.2


def test_sharpness_takes_or_gives_the_detail_that_a_gaussian_takes_away():
    """Inside, where no border matters: one amount an image, times what scipy's Gaussian leaves out."""
    images = middling(40, 40)
    view = Augmentation(sharpness=1.0, detail=0.05)(images, Seeds(5))
    detail = images - torch.from_numpy(gaussian_filter(images.numpy(), (0, 0, 2, 2), truncate=8))
    inside = (slice(1, None), slice(None), slice(10, -10), slice(10, -10))
    change, detail = (view - images)[inside], detail[inside]
    amounts = (change * detail).sum((1, 2, 3)) / detail.square().sum((1, 2, 3))
    torch.testing.assert_close(change, amounts.view(-1, 1, 1, 1) * detail, atol=1e-5, rtol=1e-3)
    assert -1 - 1e-4 <= amounts.min() < -0.8
    assert 0.8 < amounts.max() <= 1 + 1e-4


def test_sharpness_leaves_even_images_and_the_range_of_values_alone():
    even = torch.rand(8, 3, 1, 1).expand(-1, -1, 12, 9).contiguous()
    torch.testing.assert_close(Augmentation(sharpness=1.0)(even, Seeds(0)), even)
    images = torch.randint(0, 2, (50, 1, 12, 9)).float()
    view = Augmentation(sharpness=1.0)(images, Seeds(0))
    assert view.min() >= 0
    assert view.max() <= 1


def middling(count=200, size=6):
    """Color images whose views stay within the range of the batch, so that nothing is cut off."""
    images = 0.5 + 0.1 * (torch.rand(count, 3, size, size) - 0.5)
    images[0, :, 0, 0], images[0, :, 0, 1] = -2, 3
    return images


def test_hues_turn_around_the_axis_of_grays():
    """Every pixel by one matrix an image: the exponential of the turn's generator, by an angle within the limit."""
    images = middling()
    view = Augmentation(color=1.0, hue=math.radians(60), richness=0.0, gain=0.0)(images, Seeds(0))
    spin = torch.tensor([[0.0, -1, 1], [1, 0, -1], [-1, 1, 0]]) / math.sqrt(3)
    angles = []
    for image, other in zip(images[1:], view[1:], strict=True):
        before, after = (part.flatten(1) - part.flatten(1).mean(0) for part in (image, other))
        cos, sin = (before * after).sum(), ((spin @ before) * after).sum()
        angles.append(float(torch.atan2(sin, cos)))
        turn = torch.linalg.matrix_exp(angles[-1] * spin)
        torch.testing.assert_close(other.flatten(1), turn @ image.flatten(1), atol=1e-5, rtol=1e-4)
    assert max(map(abs, angles)) <= math.radians(60) + 1e-3
    assert min(angles) < math.radians(-50)
    assert max(angles) > math.radians(50)


def test_colors_get_richer_or_paler_and_grays_stay():
    images = middling()
    view = Augmentation(color=1.0, hue=0.0, richness=1.0, gain=0.0)(images, Seeds(1))
    torch.testing.assert_close(view[1:].mean(1), images[1:].mean(1))
    before, after = (part[1:] - part[1:].mean(1, keepdim=True) for part in (images, view))
    amounts = (after * before).sum((1, 2, 3)) / before.square().sum((1, 2, 3))
    torch.testing.assert_close(after, amounts.view(-1, 1, 1, 1) * before, atol=1e-5, rtol=1e-4)
    assert amounts.log().abs().max() <= 1 + 1e-3
    assert amounts.log().abs().max() > 0.9
    grays = torch.rand(20, 1, 6, 6).expand(-1, 3, -1, -1)
    still = Augmentation(color=1.0, gain=0.0)(grays, Seeds(1))
    torch.testing.assert_close(still, grays)


def test_a_color_view_changes_contrast_around_the_mean_and_leaves_gray_images_alone():
    images = middling()
    view = Augmentation(color=1.0, hue=0.0, richness=0.0, gain=0.7)(images, Seeds(2))
    before, after = (part[1:] - images[1:].mean((1, 2, 3), keepdim=True) for part in (images, view))
    gains = after.std((1, 2, 3)) / before.std((1, 2, 3))
    torch.testing.assert_close(after, gains.view(-1, 1, 1, 1) * before, atol=1e-5, rtol=1e-3)
    assert 0.6 < gains.log().abs().max() <= 0.7 + 1e-3
    gray = torch.rand(4, 1, 6, 6)
    assert torch.equal(Augmentation(color=1.0)(gray, Seeds(0)), gray)


def test_colors_are_seen_where_they_are():
    colorful, gray = torch.rand(300, 3, 4, 4), torch.rand(300, 1, 4, 4).expand(-1, 3, -1, -1)
    assert has_colors(colorful)
    assert has_colors((255 * colorful).byte())
    assert not has_colors(gray)
    assert not has_colors(gray + 0.005 * torch.rand(300, 3, 4, 4))  # what a lossy format makes of grays
    assert not has_colors(gray[:, :1])
    assert not has_colors(torch.rand(300, 3))


def test_erasing_covers_one_rectangle_with_the_mean():
    images = torch.rand(200, 3, 20, 20)
    view = Augmentation(erasing=1.0)(images, Seeds(2))
    shares = []
    for image, other in zip(images, view, strict=True):
        covered = (image != other).all(0)
        rows, columns = covered.any(1), covered.any(0)
        assert torch.equal(covered, rows[:, None] & columns[None, :])
        assert torch.allclose(other[:, covered], image.mean())
        assert torch.equal(other[:, ~covered], image[:, ~covered])
        shares.append(float(covered.float().mean()))
    assert max(shares) <= 0.25 + 0.06  # half of each side, and a pixel
    assert sum(shares) / 200 == pytest.approx(0.25**2, abs=0.02)


def test_noise_and_dropping_go_by_the_spread_of_each_feature():
    rows = torch.randn(4000, 3) * torch.tensor([1.0, 10.0, 0.0]) + 5
    moved = Augmentation(noise=0.1)(rows, Seeds(0)) - rows
    torch.testing.assert_close(moved.std(0), torch.tensor([0.1, 1.0, 0.0]), rtol=0.05, atol=1e-6)
    dropped = Augmentation(dropping=0.2)(rows, Seeds(0))
    replaced = dropped[:, :2] == rows.mean(0)[:2]
    assert 0.18 < float(replaced.float().mean()) < 0.22
    assert torch.equal(dropped[:, :2][~replaced], rows[:, :2][~replaced])


def test_a_cut_out_is_a_part_of_the_image_at_the_size_of_the_whole():
    """Of a ramp, any part is a ramp that is less steep, within the ends of the whole; never less than half of it."""
    ramp = torch.linspace(0, 1, 64).expand(200, 1, 64, 64).contiguous()
    views = Augmentation(crop=1.0)(ramp, Seeds(3))
    steps = views.diff(dim=3)[..., 2:-2]
    shares = steps.mean((1, 2, 3)) * 63
    assert torch.allclose(steps, steps.mean(3, keepdim=True).expand_as(steps), atol=1e-4)
    # A side is cut to half at most, and by proportion to exp(-0.15) of that.
    assert bool((shares > 0.5 * 0.86 - 0.01).all())
    assert bool((shares < 1.01).all())
    assert float(shares.min()) < 0.6 < 0.9 < float(shares.max())
    assert 0 <= float(views.min()) < float(views.max()) <= 1
    assert torch.equal(Augmentation(crop=1e-9)(ramp, Seeds(3)).round(decimals=4), ramp.round(decimals=4))


def test_mirrored_images_are_mirrored():
    x = torch.rand(300, 3, 5, 6)
    views = Augmentation(flip=0.5)(x, Seeds(0))
    turned = torch.tensor([torch.equal(view, image.flip(2)) for view, image in zip(views, x, strict=True)])
    same = torch.tensor([torch.equal(view, image) for view, image in zip(views, x, strict=True)])
    assert bool((turned ^ same).all())
    assert 100 < int(turned.sum()) < 200
    assert torch.equal(Augmentation(flip=1.0)(x, Seeds(0)), x.flip(3))


def test_each_image_gets_as_many_kinds_of_change_as_asked_for():
    """Negatives and patches can be told apart in a plain image: with one change, each has exactly one of them."""
    x = torch.zeros(400, 1, 8, 8)
    x[:, :, 0, 0] = 1.0
    strengths = {"polarity": 1.0, "erasing": 1.0}
    views = Augmentation(**strengths, changes=1)(x, Seeds(1))
    negative = views[:, 0, 7, 7] > 0.5
    assert 120 < int(negative.sum()) < 280
    assert torch.equal(views[negative], 1 - x[negative])
    assert bool((views[~negative] < 0.5).flatten(1)[:, 1:].all())
    every = Augmentation(**strengths)(x, Seeds(1))
    assert torch.equal(Augmentation(**strengths, changes=2)(x, Seeds(1)), every)
    assert bool((every[:, 0, 7, 7] > 0.5).all())
