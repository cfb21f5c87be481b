"""Kinds of columns, what is left out, and encoders against values worked out by hand."""

import datetime
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from sklearn.feature_extraction.text import HashingVectorizer

from calida.data import read_collection
from calida.data.tables.encoders import encoder_from_json, fit_encoder
from calida.data.tables.frames import as_frame, is_frame
from calida.data.tables.kinds import Kind, LeftOut, kind_of, why_left_out
from calida.data.tables.preparation import ColumnChoice, TablePreparation
from calida.data.tables.values import ColumnError
from calida.errors import InputError
from calida.seeds import Seeds

ROWS = 100
RNG = np.random.default_rng(0)


def column(values, name="c"):
    return pl.Series(name, values, strict=False)


def encoded(values, others=None, name="c"):
    """Fitted to `values`, applied to `others`."""
    fitted = column(values, name)
    encoder = fit_encoder(fitted, kind_of(fitted))
    assert encoder_from_json(json.loads(json.dumps(encoder.to_json()))) == encoder
    result = encoder.encode(encoder.read(fitted if others is None else column(others, name)))
    assert result.dtype == np.float32
    assert result.shape[1] == len(encoder.features)
    return result.tolist()


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, 2, None], Kind.NUMBER),
        (["1.5", " 2 ", "NA", "?"], Kind.NUMBER),
        (["1,5", "2,25", "3"], Kind.NUMBER),
        ([*map(str, range(30)), "unknown"], Kind.NUMBER),
        ([*map(str, range(30)), *(f"V{place}" for place in range(30))], Kind.CATEGORY),
        ([True, False, None], Kind.BOOLEAN),
        (["TRUE", "false", ""], Kind.BOOLEAN),
        (["yes", "no"], Kind.CATEGORY),  # a target may have "perhaps" as well
        (["T", "F", None], Kind.CATEGORY),
        (["2024-02-29", "1999-12-31", None], Kind.DATE),
        (["29.02.2024", "31.12.1999"], Kind.DATE),
        (["2024-02-29T10:11:12.5", "1999-12-31T00:00:00"], Kind.DATE),
        (["2024-02-30", "1999-12-31"], Kind.CATEGORY),  # no such day
        ([datetime.date(2024, 2, 29)], Kind.DATE),
        ([datetime.time(10, 22)], Kind.DATE),
        ([datetime.timedelta(hours=1)], Kind.NUMBER),
        ([20210314, 20210403, None], Kind.DATE),
        (["20210314", "20210403", "NA"], Kind.DATE),
        ([20210314.0, 20210403.0], Kind.DATE),
        ([20210314, 20210432], Kind.NUMBER),  # no such day
        ([2**53, 2**53 + 2], Kind.NUMBER),
        ([2**60, 2**60 + 1], Kind.CATEGORY),  # the same number in floating point: codes
        ([2**53 + place for place in range(99)], Kind.TEXT),
        ([f"word {place}" for place in range(65)], Kind.TEXT),
        ([f"word {place % 64}" for place in range(300)], Kind.CATEGORY),
        ([*(f"word {place % 64}" for place in range(300)), None], Kind.CATEGORY),
        (pl.Series([f"word {place % 70}" for place in range(300)], dtype=pl.Categorical), Kind.CATEGORY),
    ],
)
def test_kinds(values, kind):
    assert kind_of(column(values)) == kind


def test_numbers_keep_their_unit_and_gaps_are_the_median_with_a_mark():
    assert encoded([1, 2, 30]) == [[1], [2], [30]]
    assert encoded([1.0, 2.0, None, 30.0]) == [[1, 0], [2, 0], [2, 1], [30, 0]]
    assert encoded(["1,5", "NA", "2,5", "9"]) == [[1.5, 0], [2.5, 1], [2.5, 0], [9, 0]]
    assert encoded([1.0, 2.0, 30.0], [None, 7.0]) == [[2], [7]]  # no gaps in source: nothing to learn a mark from
    assert encoded([*map(str, range(1, 20)), "unknown"], ["unknown", "3"]) == [[10, 1], [3, 0]]


def test_truth_however_it_is_written():
    assert encoded([True, False, True, None]) == [[1, 0], [0, 0], [1, 0], [pytest.approx(2 / 3), 1]]
    assert encoded([True, False], ["Yes", "f", "TRUE", "0"]) == [[1], [0], [1], [0]]


def test_categories_rare_ones_and_those_never_seen():
    assert encoded(["b", "a", "b", "a"], ["a", "b", "new", None]) == [[1, 0], [0, 1], [0, 0], [0, 0]]
    # `c` has one row: it shares a feature with whatever else is rare or new.
    assert encoded(["b", "a", "b", "a", "c"], ["a", "c", "new"]) == [[1, 0, 0], [0, 0, 1], [0, 0, 1]]
    assert encoded(["a", None, "a", " b", "b "], ["b", None]) == [[0, 1, 0], [0, 0, 1]]
    fitted = fit_encoder(column(["3", "3", "4", "4"]).cast(pl.Categorical), Kind.CATEGORY)
    for same in ([3, 4], [3.0, 4.0], ["3", "4"]):
        assert fitted.encode(fitted.read(column(same))).tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize("name", ["rows", "count", "word", "index", ""])
def test_a_column_may_have_any_name(name):
    """Also one that a count of categories would like to have."""
    fitted = fit_encoder(pl.Series(name, ["a", "b", "a", "b"]), Kind.CATEGORY)
    assert fitted.encode(fitted.read(pl.Series(name, ["b"]))).tolist() == [[0, 1]]


def test_dates_count_days_within_those_of_the_source():
    source = ["2024-01-01", "2024-01-02", "2024-01-04"]
    assert encoded(source, ["2024-01-03", "2030-06-01", "1990-01-01"]) == [[2], [3], [0]]
    assert encoded(source, [datetime.datetime(2024, 1, 2, 12)]) == [[1.5]]
    year = [datetime.date(2023, 1, 1) + datetime.timedelta(days=day) for day in range(365)]
    rows = np.array(encoded(year, [year[3], year[10], None]))  # two Wednesdays: the same place in the week
    assert rows.shape == (3, 5)
    np.testing.assert_allclose(rows[0, 3:], rows[1, 3:], atol=1e-4)
    np.testing.assert_allclose((rows[:2, 1:] ** 2).reshape(2, 2, 2).sum(2), 1, atol=1e-4)  # points on circles
    assert rows[2].tolist() == [182, 0, 0, 0, 0]
    hours = np.array(encoded([f"2024-01-01 {hour:02d}:00" for hour in (0, 6, 12, 18)]))
    np.testing.assert_allclose(hours[:, 1:], [[0, 1], [1, 0], [0, -1], [-1, 0]], atol=1e-3)


def test_moments_with_an_offset_are_those_of_greenwich():
    source = ["2024-01-01T10:00:00+01:00", "2024-01-01T10:00:00.5-02:00", "2024-01-03T00:00:00+00:00"]
    assert kind_of(column(source)) == Kind.DATE
    assert encoded(source, ["2024-01-01T21:00:00+00:00"])[0][0] == pytest.approx(0.5)  # from nine o'clock on


def test_a_mistake_among_dates_is_told_and_no_text_made_of_them():
    with pytest.raises(ColumnError, match="holds '2023-02-30' among dates"):
        kind_of(column([*(f"2023-01-{day:02d}" for day in range(1, 29)), "2023-02-30"]))


def test_words_for_gaps_are_gaps_of_categories_too():
    fitted = fit_encoder(column(["red", "NA", "blue", "red", None, "blue"]), Kind.CATEGORY)
    assert fitted.features == ("c = blue", "c = red", "c is missing")
    assert fitted.encode(fitted.read(column(["?", "red"]))).tolist() == [[0, 0, 1], [0, 1, 0]]


def test_numbers_that_32_bits_cannot_tell_apart_lose_what_they_share():
    seconds = [1_600_000_000 + second for second in (0, 10, 20, 30)]
    assert encoded(seconds, [1_600_000_015, 1_600_000_016]) == [[0], [1]]
    assert encoded([5.0, 6.0, 7.0], [6.0]) == [[6]]


@pytest.mark.parametrize("dtype", ["bool", "float64", "int64", "object"])
def test_a_categorical_type_changes_no_word(dtype):
    """True is true and 1.0 is 1, whatever a column is declared as."""
    plain = pd.Series([1, 0, 1, 0]).astype(dtype)
    declared, as_they_are = (
        as_frame(pd.DataFrame({"c": one}), "source")["c"] for one in (plain.astype("category"), plain)
    )
    fitted = fit_encoder(declared, kind_of(declared))
    assert fitted.kind == Kind.CATEGORY
    assert np.array_equal(fitted.encode(fitted.read(as_they_are)), fitted.encode(fitted.read(declared)))


def test_text_is_hashed_letters():
    words = [f"word {place} of many" for place in range(70)]
    reference = HashingVectorizer(analyzer="char_wb", ngram_range=(2, 4), n_features=128).transform(["any other", ""])
    np.testing.assert_allclose(encoded(words, ["any other", None]), reference.toarray(), atol=1e-7)


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("a", [None] * ROWS, LeftOut.EMPTY),
        ("a", [7] * ROWS, LeftOut.CONSTANT),
        ("a", [7] * (ROWS - 1) + [None], None),  # that one is missing may tell something
        ("a", list(range(5, 5 + ROWS)), LeftOut.IDENTIFIER),
        ("a", [3 * row for row in range(ROWS)], None),
        ("PassengerId", [3 * row for row in range(ROWS)], LeftOut.IDENTIFIER),
        ("customer_id", [3 * row for row in range(ROWS)], LeftOut.IDENTIFIER),
        ("humid", [3 * row for row in range(ROWS)], None),
        ("a", [f"K{row:04d}" for row in range(ROWS)], LeftOut.IDENTIFIER),
        ("a", [f"a note on {row}" for row in range(ROWS)], None),
        ("a", [row + 0.5 for row in range(ROWS)], None),
        ("a", ["ill" if row % 2 else "well" for row in range(ROWS)], LeftOut.LEAK),
        ("a", [row % 4 for row in range(ROWS)], LeftOut.LEAK),
        ("a", [None if row % 2 else "well" for row in range(ROWS)], LeftOut.LEAK),
        ("a", [row % 2 if row else 1 for row in range(ROWS)], None),  # one row disagrees
        ("died", [None if row % 2 else f"2023-01-{1 + row % 28:02d}" for row in range(ROWS)], LeftOut.LEAK),
        ("died", [None if row % 2 or not row else row + 0.5 for row in range(ROWS)], None),  # one row disagrees
        ("patient_id", [f"P{row // 2}" for row in range(ROWS)], LeftOut.IDENTIFIER),  # two rows a patient
        ("id", [None, *(3 * row for row in range(ROWS - 1))], LeftOut.IDENTIFIER),
        ("shop_id", [row % 7 for row in range(ROWS)], None),
        ("a", [row % 20 for row in range(ROWS)], None),  # five rows a value can be chance
        ("a", list(range(6)), None),
    ],
)
def test_what_is_no_feature(name, values, reason):
    given = column(values, name)
    assert why_left_out(given, kind_of(given), [str(row % 2) for row in range(len(values))]) == reason


def frames():
    """One table in three libraries."""
    frame = pd.DataFrame(
        {
            "age": np.where(np.arange(ROWS) % 9, RNG.normal(40, 9, ROWS), np.nan),
            "city": RNG.choice(["Rome", "Oslo", None], ROWS),
            "vip": RNG.random(ROWS) < 0.5,
            "count": pd.array([None, *RNG.integers(0, 9, ROWS - 1)], dtype="Int64"),
            "when": pd.Timestamp("2020-01-01") + pd.to_timedelta(RNG.integers(0, 900, ROWS), "D"),
            "grade": pd.Categorical(RNG.choice(["low", "high"], ROWS)),
            "note": [f"on {RNG.integers(99)} and {row}" for row in range(ROWS)],
            "constant": 1,
        }
    )
    return {"pandas": frame, "polars": pl.from_pandas(frame), "arrow": pa.Table.from_pandas(frame)}


def test_every_library_gives_the_same_features():
    fitted = []
    for frame in frames().values():
        assert is_frame(frame)
        rows = as_frame(frame, "source")
        table = TablePreparation.fit(rows, None, ColumnChoice(), "source")
        assert table.left_out == {"constant": LeftOut.CONSTANT}
        kinds = ["number", "category", "boolean", "number", "date", "category", "text"]
        assert [encoder.kind.value for encoder in table.encoders] == kinds
        fitted.append(table.apply(rows, "source"))
        again = TablePreparation.from_json(json.loads(json.dumps(table.to_json())))
        assert again == table
        assert torch.equal(again.apply(rows, "source"), fitted[-1])
        assert fitted[-1].shape == (ROWS, len(table.features))
        assert len(set(table.features)) == len(table.features)
    assert torch.equal(fitted[0], fitted[1])
    assert torch.equal(fitted[0], fitted[2])
    for other in (np.zeros((3, 2)), torch.zeros(3, 2), [[1, 2]], {"a": [1]}):
        assert not is_frame(other)


def test_columns_are_found_by_name_and_new_rows_one_by_one():
    frame = as_frame(frames()["pandas"], "source")
    table = TablePreparation.fit(frame, None, ColumnChoice(), "source")
    whole = table.apply(frame, "source")
    assert torch.equal(table.apply(frame.select(reversed(frame.columns)), "source"), whole)
    assert torch.equal(torch.cat([table.apply(frame[row : row + 1], "new") for row in range(5)]), whole[:5])


def test_a_choice_of_columns():
    frame = pl.DataFrame(
        {"a": range(ROWS), "b": RNG.normal(size=ROWS), "c": RNG.normal(size=ROWS), "y": ["u", "v"] * 50}
    )
    labels = frame["y"].to_list()

    def columns(**choice):
        return TablePreparation.fit(frame, labels, ColumnChoice(**choice), "t").columns

    assert columns() == ("b", "c")
    assert columns(drop=(" b ",)) == ("c",)
    assert columns(id="b") == ("c",)
    assert columns(only=("c", "a", "y")) == ("c", "a", "y")  # who asks for a column gets it
    for choice, sentence in {
        (("z", "x"), ()): "t has no column 'z', 'x'; it has a, b, c, y",
        (("b",), ("b",)): "'b' is asked for as a feature and ruled out",
        (("b",), ("z",)): "no column 'z'",
        ((), ("b", "c")): "no feature columns: left out as asked: 'b', 'c'; left out as a name of rows: 'a'",
    }.items():
        with pytest.raises(InputError, match=sentence):
            columns(only=choice[0], drop=choice[1])


def test_all_problems_are_one_message():
    source = pl.DataFrame(
        {"a": [1.0, 2.0, 4.0], "b": [1.0, 5.0, 2.0], "day": ["2024-01-01", "2024-01-03", "2024-05-05"]}
    )
    table = TablePreparation.fit(source, None, ColumnChoice(), "source")
    with pytest.raises(InputError) as caught:
        table.apply(pl.DataFrame({"a": ["x", "2", "y"], "day": ["soon", "2024-01-01", "later"]}), "target")
    assert str(caught.value) == (
        "target: 3 problems with its columns: 'b' of the source is missing; 'a' holds 'x' (and 1 more) where there "
        "should be numbers; 'day' holds 'soon' where there should be dates; mend the file, or train "
        "without these columns"
    )
    broken = pl.DataFrame({"p": [1.0, float("inf")], "q": [[1], [2]]})
    with pytest.raises(
        InputError, match=r"source: 2 problems with its columns: 'p' holds inf .*; 'q' holds lists or dicts, which no"
    ):
        TablePreparation.fit(broken, None, ColumnChoice(), "source")


def test_what_the_target_has_otherwise_is_told():
    source = pl.DataFrame({"city": ["Rome", "Oslo"] * 50, "age": list(RNG.normal(size=ROWS))})
    table = TablePreparation.fit(source, None, ColumnChoice(), "source")
    assert table.compare(source, table.read(source, "source")) == []
    age = pl.Series([None] * 30 + [1.0] * 70, dtype=pl.Float64)
    target = pl.DataFrame({"city": ["Rome"] * 75 + ["Bonn", "Kiel"] * 12 + [None], "age": age, "more": 1})
    assert table.compare(target, table.read(target, "target")) == [
        "columns that the source lacks were left out: more",
        "categories that the source never showed: city (24.0% of the rows, such as Bonn, Kiel)",
        "other shares of missing values: age (0.0% in source, 30.0% here)",
    ]


def test_words_are_read_as_they_are_written(tmp_path):
    """A file of new rows may hold nothing but numbers where the source had words."""
    (tmp_path / "s.csv").write_text("ward,x,y\n" + "01,1.5,u\nA2,2.5,v\n01,0.5,u\nA2,3.5,u\n")
    (tmp_path / "new.csv").write_text("ward,x,name\n01,2.5,007\n")
    source = read_collection(str(tmp_path / "s.csv"), Seeds(0), True, ColumnChoice(label="y"))
    new = read_collection(str(tmp_path / "new.csv"), Seeds(0), False, ColumnChoice(id="name"), source.table)
    assert new.samples.tolist() == [[1, 0, 2.5]]
    assert new.names == ["007"]


def test_frames_without_rows_or_with_names_twice_are_refused():
    frame = pl.DataFrame({"a": [1.0, 2.0]})
    table = TablePreparation.fit(frame, None, ColumnChoice(), "source")
    with pytest.raises(InputError, match="source has no rows"):
        TablePreparation.fit(frame[:0], None, ColumnChoice(), "source")
    with pytest.raises(InputError, match="target has no rows"):
        table.apply(frame[:0], "target")
    with pytest.raises(InputError, match="target has more than one column named 'a'"):
        as_frame(pd.DataFrame([[1, 2]], columns=["a", "a"]), "target")


def test_moments_of_any_library_and_zone():
    day = datetime.datetime(2024, 3, 1, 12, tzinfo=datetime.timezone.utc)
    frames = [pd.DataFrame({"t": [day, day]}), pl.DataFrame({"t": [day, day]}), pd.DataFrame({"t": [day.date()] * 2})]
    for frame in frames:
        assert kind_of(as_frame(frame, "x")["t"]) == Kind.DATE
    fitted = fit_encoder(as_frame(frames[1], "x")["t"], Kind.DATE)
    assert fitted.first == pytest.approx(19783.5)
    assert fitted.read(as_frame(frames[0], "x")["t"]).to_list() == [19783.5] * 2


def test_spaces_around_names_do_not_count_in_any_library():
    for frame in (pd.DataFrame({" a ": [1, 2], 7: [3, 4]}), pl.DataFrame({" a ": [1, 2], "7": [3, 4]})):
        assert as_frame(frame, "source").columns == ["a", "7"]
    with pytest.raises(InputError, match="more than one column named 'a'"):
        as_frame(pl.DataFrame({" a": [1], "a ": [2]}), "source")


def test_words_taken_for_gaps_and_columns_not_asked_for_are_told():
    frame = pl.DataFrame({"size": [*map(str, range(30)), "1O.5"], "age": [row % 9 for row in range(31)]})
    table = TablePreparation.fit(frame, None, ColumnChoice(), "source")
    assert "words among numbers, taken for missing ones: size ('1O.5')" in table.warnings()
    chosen = TablePreparation.fit(frame, None, ColumnChoice(only=("age",)), "source")
    assert chosen.left_out == {"size": LeftOut.DROPPED}
    assert chosen.compare(frame, chosen.read(frame, "source")) == []
