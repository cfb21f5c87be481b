"""Dates and times in many writings, against Python's own reader."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest

from calida.data.tables.dates import CLOCK, as_dates, date_format, has_zone
from calida.data.tables.encoders import DateEncoder
from calida.data.tables.frames import as_frame
from calida.data.tables.kinds import Kind, kind_of
from calida.data.tables.preparation import ColumnChoice, TablePreparation
from calida.data.tables.values import ColumnError

RNG = np.random.default_rng(0)
MOMENTS = [
    datetime.datetime(1990, 1, 1) + datetime.timedelta(seconds=int(s)) for s in RNG.integers(0, 1_500_000_000, 99)
]
DAYS = [
    "%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%Y%m%d", "%d.%m.%Y", "%d.%m.%y", "%m/%d/%Y", "%d/%m/%Y", "%m/%d/%y",
    "%d/%m/%y", "%d-%m-%Y", "%m-%d-%Y", "%d %b %Y", "%d %B %Y", "%d-%b-%Y", "%d-%b-%y", "%b %d, %Y", "%B %d, %Y",
    "%B %d %Y", "%a, %d %b %Y",
]  # fmt: skip
TIMES = [
    "",
    " %H:%M",
    "T%H:%M",
    " %H:%M:%S",
    "T%H:%M:%SZ",
    " %H:%M:%S.500",
    ", %I:%M %p",
    " %H:%M:%S UTC",
    " %H:%M:%S +0200",
]


@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize("day", DAYS)
def test_whatever_python_writes_is_read_as_python_reads_it(day, time):
    written = [one.strftime(day + time) for one in MOMENTS]
    form = (day + time).replace(".500", ".%f").replace("Z", "").replace(" UTC", "").replace("+0200", "%z")
    bare = [one.replace(".500", ".500000").removesuffix("Z").removesuffix(" UTC") for one in written]
    known = [datetime.datetime.strptime(one, form) for one in bare]
    known = [one.astimezone(datetime.timezone.utc).replace(tzinfo=None) if one.tzinfo else one for one in known]
    column = pl.Series("d", [*written, None, "NA"])
    assert kind_of(column) == Kind.DATE
    encoder = DateEncoder.fit(column)
    assert as_dates(column, encoder.format).to_list() == [*known, None, None]
    assert encoder.zoned is (None if not time else time.endswith(("Z", "UTC", "0200")))
    for row in range(0, 99, 20):  # one row says no less than all of them
        assert as_dates(column[row : row + 1], encoder.format).to_list() == [known[row]]


def test_a_year_of_two_digits_is_never_one_of_four():
    """Before, 03/14/21 was a day of the year 3."""
    assert as_dates(pl.Series("d", ["03/14/21", "1/2/69"])).dt.year().to_list() == [2021, 2069]
    assert as_dates(pl.Series("d", ["14.03.99"])).to_list() == [datetime.datetime(1999, 3, 14)]
    assert date_format(pl.Series("d", ["14-03-21"])) is None  # which of the three is the year?


@pytest.mark.parametrize(
    ("source", "later"),
    [
        ("03/14/21", "14/03/21"),
        ("03/14/2021", "14/03/21"),
        ("14/03/21", "03/14/2021"),
        ("14-03-2021", "03-14-2021"),
    ],
)
def test_days_and_months_change_no_places_however_long_the_year(source, later):
    form = date_format(pl.Series("d", [source]))
    with pytest.raises(ColumnError, match=f"holds '{later}' where there should be dates, (day|month) before .* source"):
        as_dates(pl.Series("d", [later]), form)


def test_another_spelling_keeps_the_order_of_the_source():
    assert as_dates(pl.Series("d", ["01/02/2021"]), "%d.%m.%Y").dt.month().to_list() == [2]
    assert as_dates(pl.Series("d", ["01/02/2021"]), "%m-%d-%Y").dt.month().to_list() == [1]
    assert as_dates(pl.Series("d", [20210201]), "%d.%m.%Y").dt.month().to_list() == [2]
    assert as_dates(pl.Series("d", ["2021-02-01 10:22", "2021-02-01"]), "%d.%m.%Y").dt.hour().to_list() == [10, 0]


def test_formats_of_older_models_have_a_time_behind_the_day():
    column = pl.Series("d", ["25/03/2020 10:22"])
    for older in ("%d/%m/%Y %H:%M", "%Y-%m-%dT%H:%M:%S%.f%:z"):
        assert as_dates(column, older).to_list() == [datetime.datetime(2020, 3, 25, 10, 22)]


def test_times_of_day_are_no_dates_and_dates_no_times_of_day():
    clocks = [
        pl.Series("t", ["10:22", "23:59:30", None, "0:00"]),
        pl.Series("t", [datetime.time(10, 22), datetime.time(23, 59, 30), None, datetime.time(0)]),
        as_frame(pd.DataFrame({"t": [datetime.time(10, 22), datetime.time(23, 59, 30), None, datetime.time(0)]}), "x")[
            "t"
        ],
    ]
    for clock in clocks:
        assert kind_of(clock) == Kind.DATE
        encoder = DateEncoder.fit(clock)
        assert encoder.format == CLOCK
        assert encoder.cycles == ("day",)
        for other in clocks:
            known = [(10 + 22 / 60) / 24, (24 - 0.5 / 60) / 24, None, 0]
            assert encoder.read(other).to_list() == [None if one is None else pytest.approx(one) for one in known]
        with pytest.raises(ColumnError, match="where there should be times of day"):
            encoder.read(pl.Series("t", ["2021-03-14"]))
        with pytest.raises(ColumnError, match="where there should be times of day"):
            encoder.read(pl.Series("t", [datetime.date(2021, 3, 14)]))
    for dates in (pl.Series("d", ["2021-03-14"]), pl.Series("d", [datetime.date(2021, 3, 14)])):
        for clock in clocks:
            with pytest.raises(ColumnError, match="where there should be dates"):
                DateEncoder.fit(dates).read(clock)
    assert kind_of(pl.Series("t", ["10:22", "25:10"])) == Kind.CATEGORY


def test_zones():
    day = datetime.datetime(2021, 3, 14, 10)
    utc = day.replace(tzinfo=datetime.timezone.utc)
    for column, zoned in [
        ([day], False),
        ([utc], True),
        ([day.date()], None),
        (["2021-03-14T10:00:00Z"], True),
        (["2021-03-14 10:00"], False),
        (["2021-03-14"], None),
        ([20210314], None),
    ]:
        assert has_zone(pl.Series("d", column)) is zoned
    berlin = as_frame(pd.DataFrame({"d": pd.date_range("2021-01-01", periods=9, tz="Europe/Berlin")}), "x")
    bare = as_frame(pd.DataFrame({"d": pd.date_range("2021-01-01", periods=9)}), "x")
    for source, target, told in [
        (berlin, bare, True),
        (bare, berlin, True),
        (bare, bare, False),
        (berlin, berlin, False),
    ]:
        table = TablePreparation.fit(source, None, ColumnChoice(), "source")
        notes = table.compare(target, table.read(target, "target"))
        assert bool(notes) == told
        assert all("offset from Greenwich in one domain alone, which is not corrected: d" in note for note in notes)


def test_a_categorical_of_moments_holds_moments():
    moments = pd.Series(pd.to_datetime(["2021-01-01", "2021-02-01", None, "2021-01-01"]))
    plain, categorical = (as_frame(pd.DataFrame({"d": one}), "x")["d"] for one in (moments, moments.astype("category")))
    assert kind_of(categorical) == Kind.DATE
    assert as_dates(categorical).to_list() == as_dates(plain).to_list()
