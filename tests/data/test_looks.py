"""New images beside those that a classifier knows: negatives and much darker ones."""

import warnings

import pytest
import torch

from calida.data import Scale, check_looks, refuse_inverted, with_looks
from calida.data.unify.image_statistics import ground_words, is_inverted
from calida.errors import CalidaWarning, InputError


def strokes(count=40, level=255, dtype=torch.uint8):
    """A bright bar somewhere on black, [N, 1, 16, 16]."""
    images = torch.zeros(count, 1, 16, 16, dtype=dtype)
    for place, image in enumerate(images):
        image[:, 4:12, 4 + place % 6] = level
    return images


KNOWN = with_looks(Scale.of(strokes()), strokes(), strokes(level=200))


def test_what_is_alike_is_taken_without_a_word():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for level in (255, 120, 45):
            check_looks(KNOWN, strokes(level=level), "new")
        check_looks(KNOWN, torch.zeros(20, 1, 16, 16, dtype=torch.uint8), "new")  # black says nothing
        check_looks(Scale.of(strokes()), 255 - strokes(), "new")  # nor does a classifier that knows nothing of looks


def test_five_times_as_dark_is_warned_of():
    with pytest.warns(CalidaWarning, match="are 5.1 times as dark"):
        check_looks(KNOWN, strokes(level=39), "new")
    with pytest.warns(CalidaWarning, match="are 20 times as dark"):
        check_looks(KNOWN, strokes(level=200 / 255 / 20, dtype=torch.float32), "new")


def test_negatives_are_refused_and_a_few_warned_of():
    with pytest.raises(InputError, match="new is dark on light, unlike what the classifier was trained on"):
        check_looks(KNOWN, 255 - strokes(), "new")
    with pytest.warns(CalidaWarning, match="dark on light"):
        check_looks(KNOWN, 255 - strokes(9), "new")


def test_a_ground_that_either_domain_has_is_known():
    both = with_looks(Scale.of(strokes()), strokes(), 255 - strokes())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_looks(both, strokes(), "new")
        check_looks(both, 255 - strokes(), "new")


def test_a_negative_is_half_the_range_away():
    assert is_inverted(0.25, 0.75)
    assert is_inverted(1, 0)
    assert not is_inverted(0.25, 0.74)
    assert [ground_words(level) for level in (0.0, 0.5, 0.51)] == ["light on dark", "light on dark", "dark on light"]


def test_arrays_of_two_polarities_are_refused_as_files_are():
    with pytest.raises(InputError, match="source images are light on dark and target images dark on light"):
        refuse_inverted(strokes(), 255 - strokes())
    refuse_inverted(strokes(), strokes(level=100))
    noise = torch.randint(256, (40, 1, 16, 16), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    refuse_inverted(strokes(), noise)  # which has no ground
