"""Photographs and texts from files to predictions, by encoders that are installed."""

import json

import numpy as np
import polars as pl
import pytest
import torch
from commands import calida_command, read_csv, succeed
from pictures import color_photographs

from calida.data import read_collection
from calida.encoders import PACKAGED, install_command, installed_encoders, own_encoder
from calida.runs import RunConfig, RunFolder
from calida.runs.encoding import choose_encoder, score_encoder
from calida.seeds import Seeds

BRIEF = ["--set", "epochs=3", "--set", "rounds=2", "--set", "batch_size=8"]
needs_images = pytest.mark.skipif(not PACKAGED["efficientnet-lite0"].is_installed(), reason=install_command("images"))
needs_text = pytest.mark.skipif(not PACKAGED["minilm"].is_installed(), reason=install_command("texts"))


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("CALIDA_CACHE", str(tmp_path / "cache"))
    return tmp_path


@needs_images
def test_photographs_go_through_the_encoder_and_new_ones_too(place):
    source, target = color_photographs(place / "photos", 24, 0), color_photographs(place / "dark", 16, 1, light=0.5)
    size = ["--size", "64", "--workers", "0", "--encoder", "efficientnet-lite0"]
    done = succeed(
        *("adapt", "--source", source, "--target", target, "--target-labels", "inside"),
        *("--out", "run", "--json", *size, *BRIEF),
        cwd=place,
    )
    metrics = json.loads(done.stdout)
    assert metrics["recipe"] == "features"
    assert "read by the pre-trained encoder efficientnet-lite0 at 64 pixels" in metrics["data"]["source"]["notes"][0]
    assert metrics["adapted"]["oracle"]["accuracy"] == 1.0
    config = RunFolder(place / "run").read_config()
    assert (config.encoder, config.recipe, config.backbone) == ("efficientnet-lite0", "features", "linear")
    succeed("predict", "run", target, "--out", "new.csv", "--workers", "0", cwd=place)
    for new, old in zip(read_csv(place / "new.csv"), read_csv(place / "run" / "predictions.csv"), strict=True):
        assert new["label"] == old["label"]
        assert float(new["probability"]) == pytest.approx(float(old["probability"]), rel=1e-4)
    listed = json.loads(succeed("cache", "list", "--json").stdout)
    assert [(one["name"], one["samples"]) for one in listed] == [("efficientnet-lite0", 40)]
    assert json.loads(succeed("cache", "clear", "--json").stdout)["removed"] == 40
    assert calida_command("cache", "clear", "efficientnet-lite0").returncode == 2


@needs_images
def test_the_encoder_learns_as_well_and_reads_new_images(place):
    source, target = color_photographs(place / "photos", 24, 0), color_photographs(place / "dark", 16, 1, light=0.5)
    more = ["--size", "32", "--workers", "0", "--encoder", "efficientnet-lite0", "--finetune", "--set", "blocks=2"]
    more += ["--set", "finetune_rounds=1", "--set", "finetune_batch_size=8"]
    done = succeed(
        *("adapt", "--source", source, "--target", target, "--target-labels", "inside"),
        *("--out", "run", *more, *BRIEF),
        cwd=place,
    )
    assert "the encoder's network learns as well: a step takes about" in done.stderr
    assert "finetune 1/1" in done.stderr
    config = RunFolder(place / "run").read_config()
    assert (config.encoder, config.recipe, config.finetune) == ("efficientnet-lite0", "features", True)
    succeed("predict", "run", target, "--out", "new.csv", "--workers", "0", cwd=place)
    for new, old in zip(read_csv(place / "new.csv"), read_csv(place / "run" / "predictions.csv"), strict=True):
        assert (new["label"], new["probability"]) == (old["label"], old["probability"])
    assert (place / "run" / "report.html").stat().st_size < 3e6  # images are shown smaller than they are read


@needs_images
def test_of_several_encoders_the_one_with_more_agreement_is_taken(place):
    """Features that any classifier can use, against noise: the panel sees it without a target label."""
    source, target = color_photographs(place / "photos", 40, 0), color_photographs(place / "dark", 40, 1, light=0.5)
    config = RunConfig(source=str(source), target=str(target), size=32, workers=0)
    domains = [read_collection(name, Seeds(0), name == config.source) for name in (config.source, config.target)]
    good = own_encoder(lambda images: images.mean((2, 3)), "colors", size=32)
    chaos = 1e4 * torch.arange(1.0, 9.0)  # of the sum of all pixels, which says nothing of the pattern
    noise = own_encoder(lambda images: torch.frac(images.sum((1, 2, 3))[:, None] * chaos), "noise", size=32)
    scores = [score_encoder(one, config, *domains, lambda name, done, total: None) for one in (good, noise)]
    assert scores[0] > scores[1]
    chosen = choose_encoder(config, *domains, lambda name, done, total: None)
    assert chosen is not None
    assert chosen.encoder.name in installed_encoders("images")
    assert bool(chosen.notes) == (len(installed_encoders("images")) > 1)


@needs_images
def test_embeddings_can_be_made_ahead_and_taken_elsewhere(place):
    photos = color_photographs(place / "photos", 6, 0)
    words = ["embed", photos, "--size", "32", "--workers", "0", "--json"]
    first = json.loads(succeed(*words, "--out", place / "features.npz").stdout)
    assert (first["samples"], first["features"], first["encoder"]) == (6, 1280, "efficientnet-lite0")
    arrays = np.load(place / "features.npz", allow_pickle=False)
    assert arrays["X"].shape == (6, 1280)
    assert arrays["names"][0] == "checks/01.png"
    assert json.loads(succeed(*words).stdout)["folder"] == first["folder"]


@needs_text
def test_texts_from_a_table(place):
    good = [
        "I loved it",
        "A wonderful and moving story",
        "Great fun, highly recommended",
        "Works perfectly, very happy",
    ]
    bad = ["I hated it", "A dull and pointless story", "A waste of money, avoid", "Broke at once, very unhappy"]
    for name, ending in (("books", " (a book)"), ("films", " - the film")):
        rows = [
            (text + ending + str(number), kind)
            for number in range(4)
            for kind, some in (("good", good), ("bad", bad))
            for text in some
        ]
        pl.DataFrame(rows, schema=["review", "verdict"], orient="row").write_csv(place / f"{name}.csv")
    done = succeed(
        *("adapt", "--source", "books.csv", "--target", "films.csv", "--text", "review", "--label", "verdict"),
        *("--target-labels", "inside", "--out", "run", "--json", *BRIEF),
        cwd=place,
    )
    metrics = json.loads(done.stdout)
    assert "texts read by the pre-trained encoder minilm" in metrics["data"]["target"]["notes"][0]
    assert metrics["adapted"]["oracle"]["accuracy"] >= 0.8
    succeed("predict", "run", "films.csv", "--out", "new.csv", cwd=place)
    assert [row["label"] for row in read_csv(place / "new.csv")] == [
        row["label"] for row in read_csv(place / "run" / "predictions.csv")
    ]
    refused = calida_command("predict", "run", "run/predictions.csv", cwd=place)
    assert refused.returncode == 2
    assert "has no column 'review'" in refused.stderr


def test_no_encoder_means_a_network_from_nothing(place):
    source, target = color_photographs(place / "photos", 12, 0), color_photographs(place / "dark", 8, 1)
    succeed(
        *("adapt", "--source", source, "--target", target, "--out", "run", "--encoder", "none", "--size", "16"),
        *("--backbone", "lenet", "--workers", "0", *BRIEF),
        cwd=place,
    )
    config = RunFolder(place / "run").read_config()
    assert (config.encoder, config.recipe) == ("none", "calida")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--encoder", "efficientnet-light0"],
            "unknown encoder 'efficientnet-light0'; did you mean efficientnet-lite0",
        ),
        (["--encoder", "minilm"], "the encoder minilm reads texts"),
        (["--encoder", "minilm", "--finetune"], "fine-tuning takes an encoder of images"),
        (["--encoder", "none", "--finetune"], "fine-tuning trains an encoder's network"),
        (["--model", "hgb", "--finetune"], "fine-tuning begins with a network of its own"),
    ],
)
def test_what_cannot_be_is_one_sentence(place, words, message):
    source = color_photographs(place / "photos", 4, 0)
    done = calida_command("adapt", "--source", source, "--target", source, "--out", place / "run", *words)
    assert done.returncode == 2
    assert message in done.stderr or install_command("texts") in done.stderr
    assert not (place / "run").exists()
