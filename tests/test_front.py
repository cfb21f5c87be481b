"""Python for people: whatever the command line takes, by the same code, and words in the user's own classes."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from commands import read_csv, succeed
from people import people
from pictures import class_folders
from PIL import Image
from safetensors.torch import load_file

import calida
from calida.adaptation import in_words
from calida.data import listed_labels
from calida.run_warnings import WarningCode

SETTINGS = {"epochs": 2, "min_batches_per_epoch": 1, "rounds": 1, "min_batches_per_round": 1, "batch_size": 16}
QUICK = {
    **SETTINGS,
    "guard": False,
    "precision": "fp32",
}  # without check classifiers, which take longer than all else here
AS_OPTIONS = [
    "--no-guard",
    "--precision",
    "fp32",
    *(word for name, value in SETTINGS.items() for word in ("--set", f"{name}={value}")),
]


def same_weights(adapted, run):
    """Whether a classifier is the one that a run's folder holds, to the last bit."""
    (file,) = run.glob("model*.safetensors")
    theirs, ours = load_file(file), adapted.classifier.state_dict()
    return all(torch.equal(value.cpu(), theirs[name]) for name, value in ours.items())


def same(first, second):
    return torch.equal(first.log_probs, second.log_probs) and torch.equal(first.epistemic, second.epistemic)


def as_written(prediction, path):
    """Whether a file of predictions has these labels and probabilities, to all digits that are written."""
    rows = read_csv(path)
    columns = [name for name in rows[0] if name.startswith("p_")]
    written = [[row[name] for name in columns] for row in rows]
    ours = [[f"{value:.6g}" for value in row] for row in prediction.probabilities.tolist()]
    key = next(iter(rows[0]))
    names = [row[key] for row in rows]
    return (written, [row["label"] for row in rows], names) == (ours, prediction.label_names, list(prediction.names))


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """Two folders, a run of the command line on them, and the same in Python."""
    folder = tmp_path_factory.mktemp("images")
    class_folders(folder / "photos", 24, 0)
    class_folders(folder / "camera", 20, 1, low=40, high=200)
    data = ("--source", folder / "photos", "--target", folder / "camera", "--backbone", "lenet")
    succeed("adapt", *data, *AS_OPTIONS, "--out", folder / "run")
    adapted = calida.adapt(folder / "photos", str(folder / "camera"), backbone="lenet", **QUICK)
    return folder, adapted


def test_folders_in_python_are_the_command_lines_bit_for_bit(images):
    folder, adapted = images
    loaded = calida.load(folder / "run")
    assert same_weights(adapted, folder / "run")
    assert adapted.preparation == loaded.preparation
    assert adapted.trust == loaded.trust
    assert adapted.classes == loaded.classes == ("lying", "standing")
    succeed("predict", folder / "run", folder / "camera", "--out", folder / "new.csv")
    for model in (adapted, loaded):
        prediction = model.predict(folder / "camera")
        assert as_written(prediction, folder / "new.csv")
        assert as_written(prediction, folder / "run" / "predictions.csv")


def test_a_run_folder_from_python_is_the_command_lines(images, tmp_path):
    folder, adapted = images
    told = []
    data = (folder / "photos", folder / "camera")
    again = calida.adapt(*data, folder=tmp_path / "run", observe=told.append, backbone="lenet", **QUICK)
    assert same(again.predict(folder / "camera"), adapted.predict(folder / "camera"))
    assert len(told) > 3
    for name in ("predictions.csv", "metrics.jsonl", "config.toml"):
        ours, theirs = ((place / name).read_text().splitlines() for place in (tmp_path / "run", folder / "run"))
        changing = r'"(seconds|seal|digest)": ("\w+"|[\d.e-]+)'
        kept = [re.sub(changing, "", line) for line in ours]
        assert kept == [re.sub(changing, "", line) for line in theirs if not line.startswith("#")]
    assert (tmp_path / "run" / "report.html").exists()
    with pytest.raises(calida.InputError, match="already holds a run"):
        calida.adapt(*data, folder=tmp_path / "run", **QUICK)


def test_one_image_in_any_form_is_that_image(images):
    folder, adapted = images
    paths = sorted((folder / "camera").rglob("*.png"))[:3]
    whole = adapted.predict(paths)
    assert list(whole.names) == [str(path) for path in paths]
    for row, path in enumerate(paths):
        alone = adapted.predict(path)
        assert torch.allclose(alone.log_probs[0], whole.log_probs[row], atol=1e-5)  # a batch adds up in another order
        for form in (str(path), [path], Image.open(path), [Image.open(path)], Image.open(path).convert("RGB")):
            assert same(adapted.predict(form), alone)
    everywhere = adapted.predict(folder / "camera")
    places = [list(everywhere.names).index(path.relative_to(folder / "camera").as_posix()) for path in paths]
    assert torch.allclose(everywhere.log_probs[places], whole.log_probs, atol=1e-5)
    pictures = [Image.open(path) for path in paths]
    assert same(adapted.predict(pictures), whole)
    assert adapted.predict_sets(pictures, 0.5).shape == (3, 2)


def test_images_beside_their_labels_are_read_as_files_are(images):
    folder, adapted = images
    paths = sorted((folder / "photos").rglob("*.png"))
    labels = np.array([path.parent.name for path in paths])
    for form in ([str(path) for path in paths], [Image.open(path) for path in paths]):
        target = [Image.open(path) for path in sorted((folder / "camera").rglob("*.png"))]
        other = calida.adapt((form, labels), target, backbone="lenet", **QUICK)
        assert same(other.predict(target), adapted.predict(target))


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    source, target = people(200, 1).drop(columns="code"), people(120, 2, older=8.0).drop(columns="code")
    for name, frame in (("2023", source), ("2024", target)):
        pl.from_pandas(frame).write_parquet(folder / f"{name}.parquet")
    words = ("--label", "state", "--id", "patient", "--drop", "site", "--target-labels", "inside", "--recipe", "rer-1")
    data = ("--source", folder / "2023.parquet", "--target", folder / "2024.parquet")
    succeed("adapt", *data, *words, *AS_OPTIONS, "--out", folder / "run")
    options = {"label": "state", "id": "patient", "drop": "site", "target_labels": "inside", "recipe": "rer-1", **QUICK}
    return folder, source, target, options


def test_frames_and_tables_are_the_command_lines_bit_for_bit(tables):
    folder, source, target, options = tables
    loaded = calida.load(folder / "run")
    forms = [(folder / "2023.parquet", folder / "2024.parquet"), (source, target)]
    for adapted in (calida.adapt(*form, **options) for form in forms):
        assert same_weights(adapted, folder / "run")
        assert [record.to_json() | {"seconds": 0} for record in adapted.history] == [
            record.to_json() | {"seconds": 0} for record in loaded.history
        ]
        assert as_written(adapted.predict(target), folder / "run" / "predictions.csv")
    pairs = {name: value for name, value in options.items() if name not in ("label", "target_labels")}
    apart = calida.adapt((source.drop(columns="state"), source["state"]), target.drop(columns="state"), **pairs)
    assert same_weights(apart, folder / "run")


def test_raw_rows_are_rows_of_the_table(tables):
    folder, _, target, _ = tables
    model = calida.load(folder / "run")
    expected = model.predict(folder / "2024.parquet")
    rows = target.drop(columns="state").to_dict("records")
    assert same(model.predict(rows), expected)
    assert same(model.predict(pl.from_pandas(target)), expected)
    for place in (0, 7):
        one = {name: value for name, value in rows[place].items() if value is not None}  # a gap may be left out ...
        full = {**dict.fromkeys(rows[place]), **one}  # ... or said
        assert same(model.predict(full), model.predict(target.iloc[[place]]))
        assert torch.allclose(model.predict(full).log_probs[0], expected.log_probs[place], atol=1e-5)
    assert model.predict(rows[0]).label_names[0] in ("ill", "well")
    with pytest.raises(calida.InputError, match="'age'"):
        model.predict({"city": "Rome"})


def test_texts_and_rows_of_texts_go_through_the_encoder(tmp_path):
    pytest.importorskip("tokenizers")
    random = np.random.default_rng(0)
    words = {"good": ["lovely", "great", "fine"], "bad": ["awful", "poor", "dull"]}
    labels = ["good", "bad"] * 12
    texts = [f"a {random.choice(words[label])} book {row}" for row, label in enumerate(labels)]
    others = [f"a {random.choice(words[label])} film {row}" for row, label in enumerate(labels)]
    pl.DataFrame({"review": texts, "stars": labels}).write_csv(tmp_path / "books.csv")
    pl.DataFrame({"review": others}).write_csv(tmp_path / "films.csv")
    names = (tmp_path / "books.csv", tmp_path / "films.csv")
    succeed("adapt", "--source", names[0], "--target", names[1], "--text", "review", "--label", "stars", *AS_OPTIONS,
            "--out", tmp_path / "run")  # fmt: skip
    named = calida.adapt(*names, text="review", label="stars", **QUICK)
    listed = calida.adapt((texts, labels), others, **QUICK)
    assert same_weights(named, tmp_path / "run")
    assert same_weights(listed, tmp_path / "run")
    loaded = calida.load(tmp_path / "run")
    expected = named.predict(names[1])
    assert as_written(expected, tmp_path / "run" / "predictions.csv")
    for prediction in (
        loaded.predict(others),
        listed.predict(others),
        loaded.predict([{"review": one} for one in others]),
    ):
        assert same(prediction, expected)
    with pytest.raises(calida.InputError, match=r"features of .*: to encode, name files"):
        loaded.predict(np.zeros((2, 3, 8, 8), np.uint8))


GREY, FRAME = Image.new("L", (8, 8)), pd.DataFrame({"a": [1, 2, 3], "b": [1, 2, 3]})
BLOBS = np.random.default_rng(0).normal(size=(90, 2)) + 4 * np.eye(3)[np.arange(90) % 3][:, :2]
NAMES = np.array(["zebra", "ant", "<b>cow</b>"])


@pytest.mark.parametrize("form", [list, tuple, np.asarray, pd.Series, pl.Series, pd.Categorical])
def test_words_are_found_in_any_form(form):
    assert listed_labels(form(["b", "a", "b"])) == ["b", "a", "b"]
    assert listed_labels(form([1, 0, 1])) is None


def test_labels_may_be_words(tmp_path):
    """Words are indices of their sorted names: the same classifier as of those, bit for bit."""
    words = NAMES[np.arange(90) % 3]
    classes, indices = np.unique(words, return_inverse=True)
    by_index = calida.adapt((BLOBS, indices), BLOBS + 0.5, "rer-1", oracle_labels=indices, **QUICK)
    by_word = calida.adapt((BLOBS, list(words)), BLOBS + 0.5, "rer-1", oracle_labels=list(words), **QUICK)
    expected, prediction = by_index.predict(BLOBS), by_word.predict(BLOBS)
    assert same(prediction, expected)
    assert by_word.history[-1].oracle == by_index.history[-1].oracle
    assert prediction.label_names == [classes[label] for label in expected.labels]
    assert expected.label_names == [str(label) for label in expected.labels.tolist()]
    by_word.save(tmp_path)
    loaded = calida.load(tmp_path)
    assert loaded.classes == by_word.classes == loaded.source_only.classes == tuple(classes)
    assert loaded.predict(BLOBS).label_names == prediction.label_names
    other = calida.adapt((BLOBS, list(words)), BLOBS, "source", class_names=list(NAMES), **QUICK)
    assert other.classes == tuple(NAMES)


class Cells(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.text = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.text.append(data)


def test_a_result_says_what_a_user_wants_to_know(tmp_path):
    names = ["<script>alert(1)</script>", "a\x1b[31mb", "c & d"]
    adapted = calida.adapt((BLOBS, np.array(names)[np.arange(90) % 3]), BLOBS + 0.5, **SETTINGS)
    adapted.save(tmp_path)
    for one in (adapted, calida.load(tmp_path)):
        text, trust = repr(one), one.trust
        lines = text.splitlines()
        assert 7 <= len(lines) <= 14
        assert max(map(len, lines)) <= 100
        assert trust.returned in text
        shares = [in_words(share) for share in (trust.accuracy.value, trust.accuracy.low, trust.accuracy.high)]
        assert "{} right on target, {} to {}, estimated without labels.".format(*shares) in text
        assert "\x1b" not in text
        assert all(
            f"\n  {word} " in text for word in ("returned", "can I use it", "estimate", "findings", "next", "classes")
        )
        page = Cells()
        page.feed(one._repr_html_())
        assert set(page.tags) == {"table", "caption", "tr", "th", "td"}
        assert names[0] in "".join(page.text)
        assert "\x1b" not in one._repr_html_()
    assert "3 samples" in repr(adapted.predict(BLOBS[:3]))
    assert len(repr(adapted.predict(BLOBS)).splitlines()) <= 9


def test_progress_shows_the_run_to_its_end_and_changes_nothing(capsys):
    heard = []
    data = (BLOBS, np.arange(90) % 3), BLOBS + 0.5, "rer-1"
    shown = calida.adapt(*data, progress=True, observe=heard.append, **QUICK)
    assert same(shown.predict(BLOBS), calida.adapt(*data, **QUICK).predict(BLOBS))
    printed = capsys.readouterr()
    assert not printed.out
    rounds = [event for event in heard if isinstance(event, calida.RoundRecord)]
    assert len(printed.err.splitlines()) == len(rounds) == 3


def test_predict_as_json_gives_the_labels(images, tmp_path):
    folder, adapted = images
    prediction = adapted.predict(folder / "camera")
    words = ("predict", folder / "run", folder / "camera", "--json", "--out", tmp_path / "p.csv")
    told = json.loads(succeed(*words).stdout)["labels"]
    assert [one["name"] for one in told] == list(prediction.names)
    assert [one["label"] for one in told] == prediction.label_names
    assert [one["probability"] for one in told] == prediction.confidence.tolist()
    half = json.loads(succeed(*words, "--coverage", "0.5").stdout)["labels"]
    kept = prediction.accepted(coverage=0.5).tolist()
    assert [one["label"] for one in half] == [
        label if keep else None for label, keep in zip(prediction.label_names, kept, strict=True)
    ]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: calida.adapt("nowhere/", "nobody/"), "there is no file or folder nowhere/"),
        (lambda: calida.adapt((BLOBS, np.arange(90) % 3), BLOBS, label="x"), "label is for data by name"),
        (lambda: calida.adapt("mnist-5k:50", BLOBS), "give both in one form"),
        (lambda: calida.adapt("mnist-5k:50", "uci-digits:50", num_classes=10), "these data name their classes"),
        (lambda: calida.adapt("mnist-5k:50", "uci-digits:50", size="big"), "must be a whole number, not 'big'"),
        (lambda: calida.adapt("mnist-5k:50", "uci-digits:50", epoches=3), "epoches"),
        (lambda: calida.adapt((["a", "b"], ["x"]), ["c"]), "2 samples and 1 labels"),
        (lambda: calida.adapt(pd.DataFrame({"a": [1, 2]}), pd.DataFrame({"a": [1, 2]})), "name its label column"),
        (lambda: calida.adapt([GREY] * 4, [GREY] * 4), "the source has no labels"),
        (lambda: calida.adapt((BLOBS, np.arange(90) % 3), BLOBS, folder=3), "folder is"),
        (lambda: calida.adapt((FRAME, FRAME["a"][::-1]), FRAME), "the same index in another order"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(call, words):
    with pytest.raises(calida.InputError, match=re.escape(words)) as error:
        call()
    assert "\n" not in str(error.value)


def test_a_model_of_arrays_says_that_it_reads_arrays(tmp_path):
    adapted = calida.adapt((BLOBS, np.arange(90) % 3), BLOBS, "source", epochs=1, guard=False)
    with pytest.raises(calida.InputError, match="trained on arrays"):
        adapted.predict("image.jpg")


def test_frames_warn_of_columns_and_findings_name_them():
    frame = pl.DataFrame({"east": BLOBS[:, 0], "north": BLOBS[:, 1], "unit": ["m"] * 90})
    target = frame.with_columns(pl.col("north") * 30)
    labeled = frame.with_columns(kind=pl.Series([str(row % 3) for row in range(90)]))
    with pytest.warns(calida.CalidaWarning, match="left out as .*'unit'"):
        adapted = calida.adapt(labeled, target, label="kind", **SETTINGS)
    (scale,) = [one for one in adapted.trust.warnings if one.code == WarningCode.FEATURE_SCALE]
    assert str(scale).startswith("Feature 'north' is ")
