"""Everything that --source and --target take, and every way in which it can be wrong."""

import csv
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from pictures import arrays, class_folders
from PIL import Image

from calida.data import (
    ColumnChoice,
    TablePreparation,
    class_indices,
    class_names,
    collect,
    read_collection,
    read_labels,
)
from calida.data.arrays.decode import decode_image, image_facts
from calida.data.files.delimited_text import separator_of
from calida.data.files.reading import ALL_COLUMNS, Place
from calida.data.files.tables import read_label_column
from calida.errors import CalidaWarning, InputError
from calida.seeds import Seeds

SEEDS = Seeds(0)


def read(place, labeled=True, label=None, seeds=SEEDS, table=None, **choice):
    return read_collection(str(place), seeds, labeled, ColumnChoice(label=label, **choice), table)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("mnist", Place("mnist")),
        ("mnist:train:2000", Place("mnist", "train", 2000)),
        ("mnist:2000", Place("mnist", None, 2000)),
        ("a:b/c.npz:test", Place("a:b/c.npz", "test")),
        ("C:/x.npz", Place("C:/x.npz")),
        ("all", Place("all")),
    ],
)
def test_a_place_is_read_from_the_right(text, place):
    assert Place.parse(text) == place


def test_class_folders(tmp_path):
    folder = class_folders(tmp_path / "photos", 6, 0)
    (folder / "lying" / "notes.txt").write_text("no image")
    (folder / ".hidden").mkdir()
    Image.new("L", (4, 4)).save(folder / ".hidden" / "x.png")
    found = read(folder)
    assert found.labels == ["lying"] * 3 + ["standing"] * 3
    assert list(found.names) == [f"lying/00{i}.png" for i in (0, 2, 4)] + [f"standing/00{i}.png" for i in (1, 3, 5)]
    assert found.notes == ("1 files that are no images were left out",)


def test_a_target_folder_may_be_nested_or_flat_and_its_names_are_no_labels(tmp_path):
    nested = read(class_folders(tmp_path / "nested", 4, 0), labeled=False)
    assert len(nested) == 4
    assert nested.labels is None
    (tmp_path / "flat").mkdir()
    Image.new("RGB", (4, 4)).save(tmp_path / "flat" / "UPPER.JPG")
    assert list(read(tmp_path / "flat", labeled=False).names) == ["UPPER.JPG"]
    with pytest.raises(InputError, match="lie directly in"):
        read(tmp_path / "flat")


def test_lists_with_and_without_header(tmp_path):
    class_folders(tmp_path, 4, 0)
    rows = [("lying/000.png", "a, b"), ("standing/001.png", "c")]
    with (tmp_path / "list.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("path", "label"), *rows])
    (tmp_path / "plain.tsv").write_text("".join(f"{path}\t{label}\n" for path, label in rows))
    (tmp_path / "official.txt").write_text("".join(f"{path} {label[-1]}\n" for path, label in rows))
    assert read(tmp_path / "list.csv").labels == ["a, b", "c"]
    assert read(tmp_path / "plain.tsv").labels == ["a, b", "c"]
    assert read(tmp_path / "official.txt").labels == ["b", "c"]
    assert read(tmp_path / "list.csv", labeled=False).labels is None
    for encoding in ("utf-8", "utf-16"):
        (tmp_path / "other.csv").write_text("path;label\nlying/000.png;a, b\nstanding/001.png;c\n", encoding)
        assert read(tmp_path / "other.csv").labels == ["a, b", "c"]
    (tmp_path / "list.csv").write_text("path,label\nlying/000.png,a\nlying/gone.png,b\n")
    with pytest.raises(InputError, match=r"1 files that do not exist, the first is lying/gone.png"):
        read(tmp_path / "list.csv")
    (tmp_path / "list.csv").write_text("path,label\nlying/000.png\n")
    with pytest.raises(InputError, match="no label in row 1"):
        read(tmp_path / "list.csv")


def test_numpy_files_and_their_splits(tmp_path):
    x, y = arrays(10, 0)
    np.savez(tmp_path / "one.npz", x=x, y=y)
    np.savez(tmp_path / "two.npz", x_train=x[:6], y_train=y[:6], x_test=x[6:], y_test=y[6:])
    np.save(tmp_path / "bare.npy", x)
    one = read(tmp_path / "one.npz")
    assert torch.equal(one.samples, torch.from_numpy(x)[:, None])
    assert one.labels == [str(label) for label in y]
    assert len(read(f"{tmp_path}/two.npz")) == 6  # the training split
    assert torch.equal(read(f"{tmp_path}/two.npz:test").samples, torch.from_numpy(x[6:])[:, None])
    assert len(read(f"{tmp_path}/two.npz:all")) == 10
    assert read(tmp_path / "bare.npy", labeled=False).labels is None
    with pytest.raises(InputError, match="no labels"):
        read(tmp_path / "bare.npy")
    with pytest.raises(InputError, match="no split 'test'"):
        read(f"{tmp_path}/one.npz:test")


def test_splits_that_do_not_fit_together_are_named(tmp_path):
    x, y = np.zeros((6, 8, 8)), np.zeros(6)
    np.savez(tmp_path / "sizes.npz", x_train=x, y_train=y, x_test=np.zeros((4, 9, 9)), y_test=y[:4])
    told = r"sizes.npz:all cannot be joined: .*x_train of shape \(6, 8, 8\).* and x_test of shape \(4, 9, 9\)"
    with pytest.raises(InputError, match=told):
        read(f"{tmp_path}/sizes.npz:all")
    np.savez(tmp_path / "ranks.npz", x_train=x, y_train=y, x_test=x, y_test=y[:, None])
    with pytest.raises(InputError, match=r"y_train of shape \(6,\).* and y_test of shape \(6, 1\)"):
        read(f"{tmp_path}/ranks.npz:all")


def test_hostile_and_broken_numpy_files(tmp_path):
    np.savez(tmp_path / "objects.npz", x=np.array([object()]), y=np.array([0]))
    with pytest.raises(InputError, match="Python objects"):
        read(tmp_path / "objects.npz")
    whole = tmp_path / "whole.npz"
    np.savez(whole, x=np.zeros((4, 3)), y=np.zeros(4))
    (tmp_path / "cut.npz").write_bytes(whole.read_bytes()[:100])
    with pytest.raises(InputError, match="cannot be read as a NumPy file"):
        read(tmp_path / "cut.npz")
    np.savez(tmp_path / "keys.npz", images=np.zeros((4, 3)))
    with pytest.raises(InputError, match="no array x or x_train; it has images"):
        read(tmp_path / "keys.npz")
    np.savez(tmp_path / "half.npz", x=np.zeros((4, 3)), y=np.array([0, 1, 0.5, 1]))
    with pytest.raises(InputError, match="neither whole numbers nor words"):
        read(tmp_path / "half.npz")
    np.savez(tmp_path / "short.npz", x=np.zeros((4, 3)), y=np.zeros(3))
    with pytest.raises(InputError, match="4 samples but 3 labels"):
        read(tmp_path / "short.npz")


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet"])
def test_tables(tmp_path, suffix):
    frame = pd.DataFrame({"b": [1.5, 2.5], "kind": ["yes", "no"], "a": [3, 4], "flag": [True, False]})
    path = tmp_path / f"table.{suffix}"
    if suffix == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if suffix == "tsv" else ",")
    found = read(path, label="kind")
    assert found.columns == ("b", "a", "flag")
    assert found.samples.tolist() == [[1.5, 3, 1], [2.5, 4, 0]]
    assert found.labels == ["yes", "no"]
    unlabeled = read(path, labeled=False, label="kind")
    assert unlabeled.labels is None
    assert unlabeled.columns == found.columns


@pytest.mark.parametrize(
    ("written", "classes"),
    [
        (["01", "1", "2"], ["01", "1", "2"]),
        (["3.0", "1.0", "2.0"], ["3", "1", "2"]),
        (["3", "1.5", "2.0"], ["3", "1.5", "2.0"]),
        ([" 3", "NA", "2"], None),
        (["NA", "SA", "EU"], ["NA", "SA", "EU"]),
        (["a", " ", "b"], None),
        (["true", "false", "true"], ["true", "false", "true"]),
        (["1.0e300", "1.0", "2.0"], ["1.0e300", "1.0", "2.0"]),
    ],
)
def test_labels_of_a_table_are_as_written(tmp_path, written, classes):
    (tmp_path / "t.csv").write_text("a,kind\n" + "".join(f"{row},{word}\n" for row, word in enumerate(written)))
    (tmp_path / "truth.csv").write_text("anything\n" + "".join(f"{word}\n" for word in written))
    if classes is None:
        with pytest.raises(InputError, match=r"label column 'kind' of .* lacks some values"):
            read(tmp_path / "t.csv", label="kind")
        return
    assert read(tmp_path / "t.csv", label="kind").labels == classes
    assert read_label_column(tmp_path / "truth.csv", "kind") == (None, classes)


def test_tables_that_cannot_be_used(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,city,y\n1,Paris,0\n2,Rome,1\n")
    with pytest.raises(InputError, match="name its label column; it has a, city, y"):
        read(path)
    with pytest.raises(InputError, match="no column 'z'"):
        read(path, label="z")
    for wild in ("inf", "-1e300"):
        path.write_text(f"a,b,y\n1,2,0\n3,{wild},1\n")
        with pytest.raises(InputError, match=r"column 'b' holds -?(inf|1e\+300) in row 1: infinite, or too"):
            read(path, label="y")
    path.write_text("a,y\n")
    with pytest.raises(InputError, match="no rows"):
        read(path, label="y")
    (tmp_path / "t.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(InputError, match="cannot be read"):
        read(tmp_path / "t.parquet", label="y")


def test_tables_as_other_programs_write_them(tmp_path):
    path = tmp_path / "t.csv"
    pd.DataFrame({"a": [1.0, 2.0], "kind": ["NA", "b"]}, index=[7, 8]).to_csv(path)
    found = read(path, label="kind")
    assert found.columns == ("a",)
    assert found.labels == ["NA", "b"]
    assert found.notes == ("left out as an index without a name: ''",)
    path.write_text("\ufeffa;b;y\r\n1;2;0\r\n3;4;1\r\n", encoding="utf-8")
    assert read(path, label="y").samples.tolist() == [[1, 2], [3, 4]]
    path.write_text("\na | b | y\n1|2|01\n3|4|1\n")
    found = read(path, label=" y")
    assert (found.columns, found.labels) == (("a", "b"), ["01", "1"])
    path.write_text("a\tb\ty\r\n1\t2\tä\r\n3\t4\tö\r\n", encoding="utf-16")  # what Excel calls Unicode text
    found = read(path, label="y")
    assert (found.samples.tolist(), found.labels) == ([[1, 2], [3, 4]], ["ä", "ö"])
    for broken in ("a,y\n1,ä\n2,ö\n".encode("latin-1"), "a,y\n1,2\n".encode("utf-16") + b"\n"):
        path.write_bytes(broken)
        with pytest.raises(InputError, match="is not readable text; save it as UTF-8"):
            read(path, label="y")
    path.write_text("a,y\n1,0\n\n2,1\n\n")
    assert read(path, label="y").samples.tolist() == [[1], [2]]
    path.write_text("path,y\n-3.5,0\n2.5,1\n")  # a feature that happens to be called so
    assert read(path, label="y").samples.tolist() == [[-3.5], [2.5]]


def test_a_blank_label_of_a_frame_is_missing():
    frame = pl.DataFrame({"a": [1.0, 2.0, 3.0], "y": ["u", "", "v"]})
    with pytest.raises(InputError, match="label column 'y' of the input lacks some values, the first in row 1"):
        collect(frame, SEEDS, True, ColumnChoice(label="y"))


@pytest.mark.parametrize(
    ("content", "separator"),
    [
        ("Preis, EUR;Menge;y\n1.5;2;a\n3;4;b\n", ";"),
        ("Preis, EUR;Menge;y\n1,5;2;a\n3,0;4;b\n", ";"),  # a comma in each row, and more cells without it
        ("a|b,c\n1|2,3\n", ","),  # both make two
        ('a,"b;c;d;e",y\n1,2,3\n', ","),
        ('"x, y";z\n"1, 2";3\n', ";"),
        ('text,y\n"one;\ntwo",1\n', ","),
        ("a;b\n1\n2;3\n", ";"),  # what a row lacks is a gap
        ("a b\n1\n2\n", ","),
        ('"a, b"\n1\n2\n', ","),
        ("", ","),
    ],
)
def test_the_separator_is_what_cuts_all_rows_alike(tmp_path, content, separator):
    path = tmp_path / "t.csv"
    path.write_text(content)
    assert separator_of(path) == separator


def test_a_file_with_a_comma_in_its_header_is_read(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("Preis, EUR;Menge;y\n1,5;2;a\n3,0;4;b\n")
    found = read(path, label="y")
    assert (found.columns, found.samples.tolist()) == (("Preis, EUR", "Menge"), [[1.5, 2], [3, 4]])
    path.write_text("Preis\n1.5\n2\n")
    assert read(path, labeled=False).samples.tolist() == [[1.5], [2]]


def test_decimal_commas(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a;b;y\n1,5;-2;a,b\n0,125;3,0;c\n")
    found = read(path, label="y")
    assert found.samples.tolist() == [[1.5, -2], [0.125, 3]]
    assert found.labels == ["a,b", "c"]
    path.write_text('a,y\n"1,234",0\n"12,500",1\n17,1\n')
    with pytest.raises(InputError, match=r"column 'a' holds '1,234', a fraction or thousands"):
        read(path, label="y")
    for wrong, told in {"1,234.5": "'1,234.5'", "none": "'none'"}.items():
        path.write_text(f'a,b\n"2,5",1\n"{wrong}",0\n')
        with pytest.raises(InputError, match=rf"column 'a' holds {told} where there should be numbers"):
            read(path, labeled=False, table=found.table)


def test_truth_is_one_class_however_a_program_writes_it(tmp_path):
    pd.DataFrame({"a": [1.0, 2.0], "y": [True, False]}).to_parquet(tmp_path / "t.parquet")
    truth = read(tmp_path / "t.parquet", label="y").labels
    for written in ("True,False", "true,false", "TRUE,FALSE,unknown"):
        assert class_indices(truth, class_names(written.split(",")), "t").tolist() == [1, 0]
    assert class_indices(truth, ("False", "True", "true"), "t").tolist() == [1, 0]


def test_a_single_image_is_a_target(tmp_path):
    Image.new("L", (8, 8)).save(tmp_path / "one.png")
    assert list(read(tmp_path / "one.png", labeled=False).names) == ["one.png"]


def test_what_follows_a_colon_is_named(tmp_path):
    np.savez(tmp_path / "d.npz", x=np.zeros((4, 2)), y=np.zeros(4))
    with pytest.raises(InputError, match="followed by 'foo', which is neither a split nor a number"):
        read(f"{tmp_path}/d.npz:foo")
    with pytest.raises(InputError, match="no split 'train'; it has one array of samples and no splits"):
        read(f"{tmp_path}/d.npz:train")
    (tmp_path / "text.npz").write_text("no archive")
    with pytest.raises(InputError, match="does not begin as one"):
        read(tmp_path / "text.npz")


def test_class_folders_without_images_are_told(tmp_path):
    folder = class_folders(tmp_path, 4, 0)
    (folder / "nothing").mkdir()
    assert read(folder).notes == ("class folders without images: nothing",)


def test_target_columns_are_matched_by_name(tmp_path):
    (tmp_path / "s.csv").write_text("a,b,y\n1,2,0\n3,4,1\n")
    (tmp_path / "t.csv").write_text("extra,b,a\nwords,2,1\n")
    source = read(tmp_path / "s.csv", label="y")
    matched = read(tmp_path / "t.csv", labeled=False, label="y", table=source.table)
    assert matched.samples.tolist() == [[1, 2]]
    assert "extra" in matched.notes[0]
    (tmp_path / "t.csv").write_text("b\n2\n")
    with pytest.raises(InputError, match="the column 'a' of the source is missing"):
        read(tmp_path / "t.csv", labeled=False, table=source.table)


def test_a_subset_is_drawn_by_seed(tmp_path):
    np.savez(tmp_path / "s.npz", x=np.arange(200).reshape(100, 2), y=np.arange(100) % 3)
    first, again, other = (read(f"{tmp_path}/s.npz:20", seeds=Seeds(seed)) for seed in (1, 1, 2))
    assert first.names == again.names != other.names
    assert len(set(first.names)) == 20
    assert [int(name) * 2 for name in first.names] == first.samples[:, 0].tolist()  # rows kept their names
    with pytest.raises(InputError, match="asks for 101 samples and has 100"):
        read(f"{tmp_path}/s.npz:101")


def test_named_sets_that_need_no_download():
    digits = read("uci-digits:300")
    assert digits.samples.shape == (300, 1, 8, 8)
    assert class_names(digits.labels) == tuple("0123456789")
    with pytest.raises(InputError, match="no file or folder nowhere, and it is not a named set"):
        read("nowhere")


def test_labels_from_inside_or_from_files_follow_the_names(tmp_path):
    folder = class_folders(tmp_path / "t", 6, 0)
    target = read(f"{folder}:4", labeled=False)
    words = read_labels("inside", target, SEEDS)
    assert words == [name.split("/")[0] for name in target.names]
    # A list in another order, with more files than the subset has.
    rows = [f"{name},{name.split('/')[0].upper()}" for name in reversed(read(folder, labeled=False).names)]
    (tmp_path / "truth.csv").write_text("path,label\n" + "\n".join(rows))
    assert read_labels(str(tmp_path / "truth.csv"), target, SEEDS) == [word.upper() for word in words]
    (tmp_path / "truth.csv").write_text("path,label\n" + rows[0])
    with pytest.raises(InputError, match="none for"):
        read_labels(str(tmp_path / "truth.csv"), target, SEEDS)
    np.savez(tmp_path / "x.npz", x=np.zeros((10, 2)) + np.arange(10)[:, None], y=np.arange(10))
    rows = read(f"{tmp_path}/x.npz:4", labeled=False)
    np.save(tmp_path / "y.npy", np.arange(10) * 10)
    assert read_labels(str(tmp_path / "y.npy"), rows, SEEDS) == [str(10 * int(name)) for name in rows.names]
    np.save(tmp_path / "y.npy", np.arange(11))
    with pytest.raises(InputError, match=r"11 labels; .* has 10 samples"):
        read_labels(str(tmp_path / "y.npy"), rows, SEEDS)


def test_labels_with_rows_may_be_in_any_order(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((4, 2)))
    samples, path = read(tmp_path / "x.npy", labeled=False), tmp_path / "truth.csv"
    path.write_text("row,label\n2,c\n0,a\n3,d\n1,b\n")
    assert read_labels(str(path), samples, SEEDS) == ["a", "b", "c", "d"]
    pd.DataFrame({"label": ["d", "c", "b", "a"], "row": [3, 2, 1, 0]}).to_parquet(tmp_path / "truth.parquet")
    assert read_labels(str(tmp_path / "truth.parquet"), samples, SEEDS) == ["a", "b", "c", "d"]
    path.write_text("row,label\n2,c\n0,a\n3,d\n")
    with pytest.raises(InputError, match="3 labels, and none for 1 samples"):
        read_labels(str(path), samples, SEEDS)
    path.write_text("row,label\n2,c\n0,a\n3,d\n1,b\n2,b\n")
    with pytest.raises(InputError, match="two labels for 2: 'c' and 'b'"):
        read_labels(str(path), samples, SEEDS)


def test_labels_from_inside_a_table_follow_its_ids_and_its_subsets(tmp_path):
    frame = pl.DataFrame({"key": ["c", "a", "b"], "row": [9, 8, 7], "size": [1.0, 2.0, 3.5], " y": ["u", "v", "u"]})
    frame.write_parquet(tmp_path / "t.parquet")
    place, choice = str(tmp_path / "t.parquet"), ColumnChoice(label="y", id="key")
    whole = read_collection(place, SEEDS, False, choice)
    assert read_labels("inside", whole, SEEDS, "y") == ["u", "v", "u"]
    some = read_collection(f"{place}:2", SEEDS, False, choice)
    known = dict(zip("cab", "uvu", strict=True))
    assert read_labels("inside", some, SEEDS, "y") == [known[name] for name in some.names]
    unnamed = read_collection(f"{place}:2", SEEDS, False, ColumnChoice(label="y", drop=("key",)))
    assert read_labels("inside", unnamed, SEEDS, "y") == ["uvu"[int(name)] for name in unnamed.names]
    with pytest.raises(InputError, match="no column 'z'"):
        read_labels("inside", whole, SEEDS, "z")


def test_labels_from_inside_need_no_column_that_the_source_lacks(tmp_path):
    (tmp_path / "t.csv").write_text("b,city,a,y\n1,Paris,2,u\n3,Rome,4,v\n")
    target = read(tmp_path / "t.csv", labeled=False, label="y", only=("a", "b"))
    assert read_labels("inside", target, SEEDS, "y") == ["u", "v"]


def test_a_list_has_a_label_for_every_file(tmp_path):
    folder = class_folders(tmp_path / "t", 2, 0)
    first, second = read(folder).names
    (folder / "list.csv").write_text(f"{first},lying\n{second},\n")
    with pytest.raises(InputError, match=f"no label for {second}"):
        read(folder / "list.csv")
    assert read(folder / "list.csv", labeled=False).names == [first, second]


def test_a_path_that_exists_as_it_is_written_is_meant(tmp_path):
    folder = class_folders(tmp_path / "taken at 12:30", 6, 0)
    assert len(read(folder)) == 6
    assert len(read(f"{folder}:4")) == 4


def test_a_file_of_labels_follows_the_split_of_the_samples(tmp_path):
    x, y = np.zeros((6, 2)), np.arange(6)
    np.savez(tmp_path / "d.npz", x_train=x[:3], y_train=y[:3], x_test=x[3:], y_test=y[3:])
    for split, expected in (("", "012"), (":test", "345"), (":all", "012345")):
        samples = read(f"{tmp_path}/d.npz{split}", labeled=False)
        assert read_labels(str(tmp_path / "d.npz"), samples, SEEDS) == list(expected)


def test_links_that_lead_back_and_names_that_are_no_text(tmp_path):
    folder = class_folders(tmp_path / "photos", 6, 0)
    (folder / "lying" / "up").symlink_to("..")
    (folder / "standing" / "up").symlink_to("..")
    os.rename(folder / "lying" / "000.png", os.fsencode(folder / "lying") + b"/caf\xe9.png")
    found = read(folder)
    assert len(found) == 6
    assert "lying/caf\\udce9.png" in found.names
    assert decode_image(found.samples[found.names.index("lying/caf\\udce9.png")], 1).shape == (1, 16, 16)


def test_classes_that_the_source_never_showed_are_counted_apart():
    with pytest.raises(InputError, match=r"2 samples of the class 'x' \(and of 1 more such classes\), which"):
        class_indices(["a", "x", "y", "x", "y", "y"], ["a", "b"], "truth")
    with pytest.raises(InputError, match="1 samples of the class 'x', which"):
        class_indices(["a", "x"], ["a", "b"], "truth")


def test_class_names_are_ordered_as_people_count():
    assert class_names(["10", "9", "2"]) == ("2", "9", "10")
    assert class_names(["b", "a", "10"]) == ("10", "a", "b")
    assert class_indices(["b", "a"], ("a", "b"), "x").tolist() == [1, 0]
    with pytest.raises(InputError, match="'c', which the source never showed"):
        class_indices(["a", "c"], ("a", "b"), "the target")


def test_sixteen_bits_are_scaled_by_what_they_can_hold(tmp_path):
    levels = np.array([[0, 257, 250 * 257, 65535]], np.uint16)
    Image.fromarray(levels).save(tmp_path / "x.png")
    assert decode_image(tmp_path / "x.png", 1).flatten().tolist() == [0, 1, 250, 255]
    Image.fromarray(np.ones((2, 2), np.float32)).save(tmp_path / "x.tiff")
    with pytest.raises(InputError, match="floating-point"):
        decode_image(tmp_path / "x.tiff", 1)


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "P", "1", "I;16"])
def test_images_of_every_mode_are_bytes(tmp_path, mode):
    if mode == "I;16":
        Image.fromarray(np.full((5, 7), 65535, np.uint16)).save(tmp_path / "x.png")
    else:
        Image.new("L", (7, 5), 255).convert(mode).save(tmp_path / "x.png")
    for channels in (1, 3):
        pixels = decode_image(tmp_path / "x.png", channels)
        assert pixels.shape == (channels, 5, 7)
        assert pixels.dtype == torch.uint8
        assert bool((pixels == 255).all())


def test_threads_that_open_images_leave_the_limit_of_pillow(tmp_path, monkeypatch):
    """The first is held inside `Image.open` until the second is there too, or has waited; and it leaves first."""
    for name in ("first.png", "second.png"):
        Image.new("L", (4, 4)).save(tmp_path / name)
    plain = Image.open
    begun, inside, left = (threading.Event() for _ in range(3))

    def slow(path):
        if path.name == "first.png":
            begun.set()
            inside.wait(0.3)
        else:
            inside.set()
            left.wait(10)
        return plain(path)

    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 1000)
    monkeypatch.setattr(Image, "open", slow)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(image_facts, tmp_path / "first.png")
        first.add_done_callback(lambda done: left.set())
        assert begun.wait(10)
        second = threads.submit(image_facts, tmp_path / "second.png")
        assert first.result() == second.result() == (4, 4, 1)
    assert Image.MAX_IMAGE_PIXELS == 1000


def test_transparent_parts_are_white_and_turned_photos_upright(tmp_path):
    Image.new("RGBA", (2, 2), (255, 0, 0, 0)).save(tmp_path / "clear.png")
    assert bool((decode_image(tmp_path / "clear.png", 3) == 255).all())
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned by 90 degrees
    Image.new("RGB", (8, 4)).save(tmp_path / "turned.jpg", exif=exif)
    assert decode_image(tmp_path / "turned.jpg", 3).shape == (3, 8, 4)


def test_rows_of_gaps_keep_their_place_and_blank_lines_are_none(tmp_path):
    (tmp_path / "gaps.csv").write_text("\na,b,name\n1,2,x\n\n3,,y\n,,\n4,5,z\n,,\n\n")
    frame = read_collection(str(tmp_path / "gaps.csv"), Seeds(0), False).frame
    assert frame.rows() == [(1, 2, "x"), (3, None, "y"), (None, None, None), (4, 5, "z")]


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"x": 10**400, "y": 1.0}, "infinite"),
        ({"x": "\ud800", "y": 1.0}, "a text in 'x' that is not Unicode"),
    ],
)
def test_rows_that_no_number_or_text_holds_are_refused(row, told):
    table = TablePreparation.fit(pl.DataFrame({"x": [0.5, 1.0], "y": [1.0, 2.0]}), None, ColumnChoice(), "source")
    with pytest.raises(InputError, match=told):
        collect(row, Seeds(0), False, ALL_COLUMNS, table)


def test_rows_hold_numbers_of_any_library():
    table = TablePreparation.fit(pl.DataFrame({"x": [0.5, 1.0], "y": [1.0, 2.0]}), None, ColumnChoice(), "source")
    rows = [{"x": np.array(2.5), "y": Decimal("1.25")}, {"x": torch.tensor(3), "y": np.float32(4)}]
    found = collect(rows, Seeds(0), False, ALL_COLUMNS, table)
    assert found.samples.tolist() == [[2.5, 1.25], [3, 4]]
    assert collect({"x": Decimal("nan"), "y": 2}, Seeds(0), False, ALL_COLUMNS, table).samples.tolist() == [[0.75, 2]]


def test_a_row_may_lack_a_column_but_not_call_it_otherwise():
    table = TablePreparation.fit(pl.DataFrame({"x": [0.5, 1.0], "y": [1.0, 2.0]}), None, ColumnChoice(), "source")
    assert len(collect([{"x": 1.0, "y": 1.0}, {"x": 1.0}], Seeds(0), False, ALL_COLUMNS, table)) == 2
    with pytest.raises(InputError, match="row 1 of the input has a column 'Y' where row 0 has 'y'"):
        collect([{"x": 1.0, "y": 1.0}, {"x": 1.0, "Y": 1.0}], Seeds(0), False, ALL_COLUMNS, table)


def test_an_image_of_two_classes_is_refused_and_copies_are_warned_of(tmp_path):
    """A link to an image of another class is that image; an equal file may be an accident of a large collection."""
    for name, level in (("a/0.png", 10), ("a/1.png", 90), ("b/2.png", 200)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.fromarray(np.full((8, 8), level, np.uint8)).save(tmp_path / name)
    assert read(tmp_path).labels == ["a", "a", "b"]
    copy = tmp_path / "b" / "copy.png"
    copy.write_bytes((tmp_path / "a" / "1.png").read_bytes())
    with pytest.warns(CalidaWarning, match=r"1 images of .* of another class, such as b/copy.png of a/1"):
        read(tmp_path)
    copy.unlink()
    copy.symlink_to(tmp_path / "a" / "1.png")
    with pytest.raises(InputError, match=r"has two labels for b/copy.png: 'a' and 'b'"):
        read(tmp_path)


def test_names_of_rows_are_lines_of_text(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('id,x\n"a\r\nb",1\nc,2\n')
    found = read(path, labeled=False, id="id")
    assert list(found.names) == ["a\\r\\nb", "c"]
