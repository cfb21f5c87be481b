"""Prediction and embedding in parts: on a real cluster with a worker killed, and stopped and begun again."""

import json
import re
import signal
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from commands import calida_command, read_csv, succeed
from pictures import class_folders

from calida.data import read_collection
from calida.encoders import PACKAGED, embed, install_command, load_encoder
from calida.runs import EmbedParts, make_parts
from calida.seeds import Seeds
from calida.workers import Workers

QUICK = [word for pair in ("epochs=2", "rounds=1", "passes=1") for word in ("--set", pair)]
ALONE = Workers(jobs=1)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A run on tables, and new rows in a folder of two Parquet files."""
    place = tmp_path_factory.mktemp("parts")
    rng = np.random.default_rng(0)
    for name, count, moved in (("source", 120, 0.0), ("target", 120, 0.5), ("new/a", 170, 0.5), ("new/b", 130, 0.5)):
        x = rng.normal(size=(count, 3)) + moved
        kind = np.where(x[:, 0] + x[:, 1] > 2 * moved, "yes", "no")
        (place / name).parent.mkdir(exist_ok=True)
        columns = {f"x{index}": x[:, index] for index in range(3)}
        pl.DataFrame({**columns, "kind": kind}).write_parquet(place / f"{name}.parquet")
    domains = ("--source", "source.parquet", "--target", "target.parquet", "--label", "kind")
    succeed("adapt", *domains, "--recipe", "rer-1", "--no-guard", *QUICK, "--out", "run", "--quiet", cwd=place)
    return place


def parts_of(folder):
    return sorted(folder.glob("part-*.parquet"))


def predict(place, out, *more):
    done = succeed("predict", "run", "new", "--out", out, "--rows-per-part", "25", "--json", *more, cwd=place)
    return json.loads(done.stdout)


def test_a_killed_worker_loses_nothing_and_no_part_is_made_twice(place, monkeypatch):
    pytest.importorskip("distributed")
    from clusters import running_cluster, striking

    notes = place / "notes"
    notes.touch()
    monkeypatch.setenv("CALIDA_TEST_NOTES", str(notes))
    preload = ("--preload", str(Path(__file__).with_name("noting.py")))

    def in_the_midst():
        words = notes.read_text().split()
        return words.count("ended") >= 2 and words.count("begun") > words.count("ended")

    with running_cluster(place, *preload) as (address, workers), striking(address, workers, in_the_midst) as struck:
        summary = predict(place, "cluster", "--engine", "dask", "--scheduler", address)
        (dead,) = struck
        assert workers[dead].wait(10) == -signal.SIGKILL
    assert summary["samples"] == 300
    told = Counter(notes.read_text().splitlines())
    names = [path.stem for path in parts_of(place / "cluster")]
    assert len(names) == 7 + 6  # 170 and 130 rows, 25 a part
    assert {text: count for text, count in told.items() if text.startswith("ended")} == {
        f"ended {name}": 1 for name in names
    }
    assert sum(count for text, count in told.items() if text.startswith("begun")) <= len(names) + 1
    whole = []
    for name in ("a", "b"):
        succeed("predict", "run", f"new/{name}.parquet", "--out", f"{name}.csv", "--quiet", cwd=place)
        whole += read_csv(place / f"{name}.csv")
    frame = pl.concat(pl.read_parquet(path) for path in parts_of(place / "cluster"))
    assert frame.columns == list(whole[0])
    assert frame["row"].to_list() == [line["row"] for line in whole]
    assert frame["label"].to_list() == [line["label"] for line in whole]
    for column in ("probability", "entropy", "p_yes"):
        assert frame[column].to_numpy() == pytest.approx([float(line[column]) for line in whole], rel=1e-4, abs=1e-6)
    assert summary["confidence"] == pytest.approx(frame["probability"].mean())


def test_what_is_there_is_not_made_again(place):
    predict(place, "local", "--engine", "local")
    parts = parts_of(place / "local")
    before = {path: path.stat().st_mtime_ns for path in parts}
    lost = pl.read_parquet(parts[3])
    parts[3].unlink()
    assert predict(place, "local", "--engine", "local")["samples"] == 300
    assert {path for path in parts if path.stat().st_mtime_ns != before[path]} == {parts[3]}
    assert pl.read_parquet(parts[3]).equals(lost)
    assert not list((place / "local").glob(".part-*"))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["local", "--samples", "3"], "other data or by other options"),
        (["run"], "no parts; choose another folder"),
        (["x", "--coverage", "0.5"], "compare all samples"),
        (["x", "--scheduler", "tcp://127.0.0.1:1"], "belong together"),
        (["run/config.toml"], "is a file; parts need a folder"),
    ],
)
def test_what_cannot_be_is_refused(place, words, sentence):
    if not (place / "local").exists():
        predict(place, "local", "--engine", "local")
    more = ("--engine", "local", "--rows-per-part", "25", "--out", *words)
    done = calida_command("predict", "run", "new", *more, cwd=place)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert not (place / "x").exists()


def test_a_part_that_cannot_be_made_is_told(place):
    (place / "odd").mkdir(exist_ok=True)
    pl.DataFrame({"x0": [1.0], "x1": [2.0]}).write_parquet(place / "odd" / "a.parquet")
    done = calida_command("predict", "run", "odd", "--engine", "local", "--out", "none", cwd=place)
    assert done.returncode == 2
    assert re.search("1 of 1 parts failed; part 0: .*x2", done.stderr.replace("\n", " "))


needs_images = pytest.mark.skipif(not PACKAGED["efficientnet-lite0"].is_installed(), reason=install_command("images"))


@needs_images
def test_images_are_embedded_in_parts_as_they_are_together(tmp_path):
    folder = class_folders(tmp_path / "photos", 7, 0, size=40)
    work = EmbedParts("efficientnet-lite0", size=32)
    assert make_parts(str(folder), work, tmp_path / "out", ALONE, rows=3) == 7
    frame = pl.concat(pl.read_parquet(path) for path in parts_of(tmp_path / "out"))
    collection = read_collection(str(folder), Seeds(0), False)
    together = embed(load_encoder("efficientnet-lite0", 32), collection.samples, root=tmp_path / "cache").features
    assert frame["path"].to_list() == list(collection.names)
    found = torch.from_numpy(frame.drop("path").to_numpy())
    assert (found - together).norm() < 0.02 * together.norm()  # bf16 rounds by the batch that it is in
    assert not list((tmp_path / "out").glob(".part-*"))  # what a second attempt would have gone on from


def test_vectors_and_lists_of_numbers_are_no_parts(tmp_path):
    np.savez(tmp_path / "x.npz", x=np.zeros((4, 2)))
    done = calida_command(
        *("embed", tmp_path / "x.npz", "--engine", "local", "--encoder", "efficientnet-lite0", "--out", tmp_path / "y")
    )
    assert done.returncode == 2
    assert "cannot be cut into parts" in done.stderr
