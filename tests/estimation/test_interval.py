"""Intervals of estimates: what chance leaves, and what other shifts had to be widened by."""

import json
import math
from importlib.resources import files

import pytest

from calida.estimation import Counts, Widths, empirical_interval, fitted_widths
from calida.uncertainty import wilson

WIDTHS = Widths(0.2, 0.5)


def test_where_domains_mix_it_is_what_chance_leaves():
    counts = Counts(1000, 80, 400)
    found = empirical_interval(0.9, 0.0, counts, WIDTHS)
    assert (found.low, found.high) == pytest.approx(wilson(0.9, 80, 1.645))  # the fewer of validation and target


def test_where_they_never_meet_both_parts_add_as_variances_do():
    found, chance = empirical_interval(0.7, 1.0, Counts(400, 100, 900), WIDTHS), wilson(0.7, 100, 1.645)
    beyond = 0.5 * (0.2 + 1 / math.sqrt(400))
    assert 0.7 - found.low == pytest.approx(math.hypot(0.7 - chance[0], beyond))
    assert found.high - 0.7 == pytest.approx(math.hypot(chance[1] - 0.7, beyond))


def test_more_samples_and_nearer_domains_narrow_it():
    def width(apart=1.0, source=400, validation=100):
        found = empirical_interval(0.6, apart, Counts(source, validation, 500), WIDTHS)
        return found.high - found.low

    assert width(apart=0.5) < width()
    assert width(source=4000) < width()
    assert width(validation=300) < width()


@pytest.mark.parametrize("value", [0.0, 0.02, 0.98, 1.0])
def test_it_stays_within_shares(value):
    found = empirical_interval(value, 1.0, Counts(30, 3, 20), WIDTHS)
    assert 0 <= found.low <= value <= found.high <= 1


def test_the_table_that_is_shipped_is_the_one_that_is_used():
    values = json.loads(files("calida.estimation").joinpath("widths.json").read_text())
    assert fitted_widths() == Widths(**values)
    assert min(fitted_widths()) > 0
