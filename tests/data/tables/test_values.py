"""Numbers and truth, however a person or a program wrote them."""

import itertools

import numpy as np
import polars as pl
import pytest

from calida.data.tables.dates import as_dates
from calida.data.tables.encoders import NumberEncoder
from calida.data.tables.kinds import Kind, kind_of
from calida.data.tables.numbers import as_numbers
from calida.data.tables.truth import as_truth
from calida.data.tables.values import ColumnError


@pytest.mark.parametrize(
    ("written", "numbers"),
    [
        (["$123.45", "$1,200.50", "-$7"], [123.45, 1200.5, -7]),
        (["45.0%", "3 %", None], [45, 3, None]),
        (["\u20ac 12.30", "\u20ac3"], [12.3, 3]),
        (["5 \u20ac", "7,5 \u20ac"], [5, 7.5]),
        (["1.234,50", "12,5", "1.000"], [1234.5, 12.5, 1000]),
        (["1,200.50", "45.10", "3,000"], [1200.5, 45.1, 3000]),
        (["1.234.567,5", "-2"], [1234567.5, -2]),
        (["12,5", "3"], [12.5, 3]),
        (["1,234,567", "12,345", "7"], [1234567, 12345, 7]),
        (["1.234.567", "12.345"], [1234567, 12345]),
        (["1,200", "45.10"], [1200, 45.1]),
        (["1'234.5", "12.5"], [1234.5, 12.5]),
        (["1\u2019234", "7"], [1234, 7]),
        (["1 234,5", "7,5", "12"], [1234.5, 7.5, 12]),
        (["1\u00a0234\u00a0567,5", "1\u202f234", "1\u2009000"], [1234567.5, 1234, 1000]),
        (["\u22125", "7.5", "+3"], [-5, 7.5, 3]),
        (["12.5 EUR", "EUR 7", "3"], [12.5, 7, 3]),
        (["$1,200", "$5", "-$3,100", "$ -2"], [1200, 5, -3100, -2]),
        (["1.200 \u20ac", "5 \u20ac"], [1200, 5]),
        (["5 kg", "7.25 kg", "1e3 kg"], [5, 7.25, 1000]),
    ],
)
def test_numbers_with_signs_and_separators(written, numbers):
    column = pl.Series("n", written)
    assert kind_of(column) == Kind.NUMBER
    assert as_numbers(column).to_list() == numbers


@pytest.mark.parametrize(
    "written",
    [
        ["10,600", "9"],  # a fraction, or thousands
        ["$5", "\u20ac5"],  # two currencies are no number
        ["12.5", "1.234,50"],  # two ways of writing
        ["A12", "A13"],  # a code
        ["1,234", "5,678"],
        ["5 EUR", "5 USD"],
        ["12A", "13A"],
        ["1 23", "4 56"],  # no thousands
    ],
)
def test_what_may_mean_two_things_is_no_number(written):
    with pytest.raises(ColumnError):
        as_numbers(pl.Series("n", written))


def test_numbers_stand_for_truth_only_where_they_are_0_or_1():
    assert as_truth(pl.Series("b", [0, 1, None])).to_list() == [0, 1, None]
    with pytest.raises(ColumnError, match=r"holds 39 \(and 1 more\) where there should be true or false"):
        as_truth(pl.Series("b", [0, 39, 1, -2]))


@pytest.mark.parametrize(
    ("source", "later", "numbers"),
    [
        (["1.234,50", "12,5"], ["1.234", "2.000", "7"], [1234, 2000, 7]),
        (["12,5", "3"], ["1.234"], [1234]),
        (["$1,234.50"], ["$1,234", "$5"], [1234, 5]),
        (["$5", "$7"], ["$1,234", "6"], [1234, 6]),
        (["1,234,567"], ["1,234"], [1234]),
        (["12.5 EUR"], ["1.200 EUR", "1,200 EUR"], [1.2, 1200]),
        (["12,5 EUR"], ["1.200 EUR"], [1200]),
    ],
)
def test_later_numbers_are_read_by_the_decimal_mark_of_the_source(source, later, numbers):
    encoder = NumberEncoder.fit(pl.Series("n", source))
    assert encoder.read(pl.Series("n", later)).to_list() == numbers
    assert encoder.as_written == (encoder.mark == ",")  # a comma is no fraction to those who read the file


@pytest.mark.parametrize(
    ("style", "unit"),
    list(
        itertools.product(
            [("", "."), (",", "."), (".", ","), ("\u202f", ","), ("'", ".")], ["{}", "{} %", "$ {}", "{} kg"]
        )
    ),
)
def test_what_python_writes_is_read_back(style, unit):
    separator, mark = style
    numbers = np.random.default_rng(0).normal(0, 1e5, 200).round(2)
    swap = str.maketrans({",": separator, ".": mark})
    written = pl.Series("n", [unit.format(f"{one:,.2f}".translate(swap)) for one in numbers])
    assert kind_of(written) == Kind.NUMBER
    encoder = NumberEncoder.fit(written)
    assert encoder.read(written).to_list() == numbers.tolist()
    for row in range(0, 200, 20):  # one row says no less than all of them
        assert encoder.read(written[row : row + 1]).to_list() == [numbers[row]]


@pytest.mark.parametrize(
    ("source", "later", "told"),
    [
        (["5.5", "7"], "$5", "holds '\\$5' where there should be numbers$"),
        (["5 EUR", "7 EUR"], "5 USD", "holds '5 USD' where there should be numbers in EUR"),
        (["12 %", "7 %"], "\u20ac5", "where there should be numbers in %"),
        ([5.5, 7], "1,234", "holds '1,234', a fraction or thousands"),
    ],
)
def test_a_unit_that_the_source_has_not_is_refused(source, later, told):
    with pytest.raises(ColumnError, match=told):
        NumberEncoder.fit(pl.Series("n", source)).read(pl.Series("n", [later]))


def test_numbers_among_many_words_are_no_reason_to_stop():
    assert kind_of(pl.Series("n", ["red", "blue", "10,600"])) == Kind.CATEGORY


@pytest.mark.parametrize(("source", "later"), [(["1.234,50"], "12.5"), (["$1,234.50"], "$12,5")])
def test_numbers_with_another_decimal_mark_than_the_source_are_refused(source, later):
    with pytest.raises(ColumnError, match="where there should be numbers"):
        NumberEncoder.fit(pl.Series("n", source)).read(pl.Series("n", [later]))


@pytest.mark.parametrize("written", [[None, None], ["", "NA"], []])
@pytest.mark.parametrize("form", [None, "%m/%d/%Y"])
def test_no_dates_at_all_are_gaps(written, form):
    """A source whose dates have a type of their own knows no format."""
    found = as_dates(pl.Series("d", written, pl.String), form)
    assert found.dtype == pl.Datetime("us")
    assert found.to_list() == [None] * len(written)
    with pytest.raises(ColumnError, match="holds 'soon' where there should be dates"):
        as_dates(pl.Series("d", [*written, "soon"], pl.String), form)


def test_days_and_months_change_no_places():
    """A format that fits the source is the source's; one that has them the other way round is no other spelling."""
    source, later = pl.Series("d", ["01/02/2020", "03/04/2020"]), pl.Series("d", ["01/02/2020", "25/03/2020"])
    assert as_dates(source, "%m/%d/%Y").dt.month().to_list() == [1, 3]
    with pytest.raises(ColumnError, match="'25/03/2020' where there should be dates, month before day as in source"):
        as_dates(later, "%m/%d/%Y")
    assert as_dates(pl.Series("d", ["2020-02-01"]), "%m/%d/%Y").dt.month().to_list() == [2]
