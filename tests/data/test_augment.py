"""Random views: nothing at strength 0, the same for the same seed, and truly affine."""

import math

import pytest
import torch

from calida.data import Augmentation
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
    matrices = Augmentation(affine=1.0, **amounts)._matrices(torch.zeros(500, 1, 8, 8), Seeds(0))
    assert bool((limit(matrices) > -1e-5).all())
    assert matrices.std(0).max() > 0.05  # and they are used


def test_the_image_moves_as_the_matrix_says():
    images = ramp()
    augmentation = Augmentation(affine=1.0)
    matrices = augmentation._matrices(images, Seeds(3))
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
        angle = torch.atan2(*turned._matrices(image, Seeds(seed))[0, [1, 0], 0])
        view = turned(image, Seeds(seed))[0, 0]
        rows, columns = torch.meshgrid(torch.arange(15.0) - 7, torch.arange(15.0) - 7, indexing="ij")
        middle = torch.stack([(columns * view).sum(), (rows * view).sum()]) / view.sum()
        expected = 3 * torch.stack([angle.cos(), -angle.sin()])  # the map is from output to input, so it turns back
        assert torch.linalg.vector_norm(middle - expected) < 0.5
