"""Samples in another unit: arrays in Python and files on the command line are refused, and warned of, alike."""

import warnings

import pytest
import torch
from commands import calida_command

import calida
from calida.data import Collection, Loading, Scale, check_sizes, load_new, unify
from calida.errors import CalidaWarning, InputError


def rows(count=200, factor=1.0):
    """Two columns, of which the second is measured in a unit of its own."""
    drawn = torch.randn(count, 2, generator=torch.Generator().manual_seed(count))
    return torch.stack([drawn[:, 0], factor * (20 + drawn[:, 1])], 1)


def by_arrays(x):
    check_sizes(Scale.of(rows()), x, "the input", "the source")


def by_files(x):
    known = Collection("known", rows(), list(map(str, range(200))))
    _, preparation = unify(known, known)
    load_new(Collection("new", x, list(map(str, range(len(x))))), preparation, Loading())


@pytest.mark.parametrize("check", [by_arrays, by_files])
@pytest.mark.parametrize("factor", [100.0, 0.01])
def test_a_factor_of_fifty_is_another_unit(check, factor):
    with pytest.raises(InputError, match=r"column 1 .*by a factor of (9|1)\d.*on_mismatch=ignore"):
        check(rows(factor=factor))


@pytest.mark.parametrize("check", [by_arrays, by_files])
@pytest.mark.parametrize("factor", [6.0, 0.15])
def test_a_factor_of_five_is_worth_a_warning(check, factor):
    with pytest.warns(CalidaWarning, match=r"column 1 .*by a factor of 6.*one unit"):
        check(rows(factor=factor))


@pytest.mark.parametrize("check", [by_arrays, by_files])
@pytest.mark.parametrize("factor", [1.0, 4.5, 0.25])
def test_less_is_drift(check, factor):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(rows(factor=factor))
        check(rows(3, factor=factor / 40))  # few rows may all be small
        check(rows(3, factor=10 * factor))


def test_images_of_bytes_as_floats_are_not_those_in_zero_to_one():
    images = torch.rand(40, 1, 8, 8)
    with pytest.raises(InputError, match=r"the values of the input .* by a factor of 25\d"):
        check_sizes(Scale.of(images), 255 * images, "the input", "the source")
    check_sizes(Scale.of(images), images.byte(), "the input", "the source")


def test_marks_of_a_category_are_rare_or_frequent_and_no_smaller_for_it():
    often, seldom = ((torch.arange(400) % step == 0).float()[:, None] for step in (2, 200))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_sizes(Scale.of(often), seldom, "the input", "the source")
        check_sizes(Scale.of(seldom), often, "the input", "the source")


def test_python_refuses_what_the_command_line_refuses(tmp_path):
    x, y = rows(40), torch.arange(40) % 2
    with pytest.raises(InputError, match=r"column 1 of target .* factor of 100"):
        calida.adapt((x, y), 100 * x)
    for name, table in (("s", x), ("t", 100 * x)):
        lines = (f"{a:.4f},{b:.4f},{k}" for (a, b), k in zip(table.tolist(), y.tolist(), strict=True))
        (tmp_path / f"{name}.csv").write_text("\n".join(["a,b,y", *lines, ""]))
    done = calida_command(
        "adapt", "--source", "s.csv", "--target", "t.csv", "--label", "y", "--out", "run", cwd=tmp_path
    )
    assert done.returncode == 2
    assert "on_mismatch" in done.stderr
