"""`calida demo --photos`: photographs that packages carry, or folders that are named."""

import json

import numpy as np
import pytest
from commands import calida_command, succeed
from pictures import color_photographs
from PIL import Image

from calida.data import write_parts
from calida.data.named import sample_photographs
from calida.encoders import PACKAGED, install_command
from calida.runs import RunFolder
from calida.seeds import Seeds

needs_images = pytest.mark.skipif(not PACKAGED["efficientnet-lite0"].is_installed(), reason=install_command("images"))


def test_parts_are_of_two_halves_and_the_same_for_a_seed(tmp_path):
    source, target = write_parts(tmp_path / "one", Seeds(0))
    assert sorted(path.name for path in source.iterdir()) == sorted(path.name for path in target.iterdir())
    assert {"china", "flower"} <= {path.name for path in source.iterdir()}
    again, _ = write_parts(tmp_path / "two", Seeds(0))
    other, _ = write_parts(tmp_path / "three", Seeds(1))
    name = "flower/07.png"
    assert (source / name).read_bytes() == (again / name).read_bytes() != (other / name).read_bytes()
    photograph, print_ = (np.asarray(Image.open(folder / name)) for folder in (source, target))
    assert photograph.shape == print_.shape == (96, 96, 3)
    assert all(len(np.unique(print_[..., channel])) <= 5 for channel in range(3))
    assert len(np.unique(photograph)) > 50


@needs_images
def test_the_demo_says_that_its_shift_is_made_up(tmp_path, monkeypatch):
    monkeypatch.setenv("CALIDA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sample_photographs, "_PARTS", 10)
    told = " ".join(succeed("demo", "--photos", cwd=tmp_path).stderr.split())
    assert "a made-up shift show how such a run goes, and not how well it does on yours" in told
    config = RunFolder(tmp_path / "runs" / "demo-photos").read_config()
    assert (config.encoder, config.recipe) == ("efficientnet-lite0", "features")


@needs_images
def test_folders_that_are_named_have_no_labels_read(tmp_path, monkeypatch):
    monkeypatch.setenv("CALIDA_CACHE", str(tmp_path / "cache"))
    source, target = color_photographs(tmp_path / "a", 12, 0), color_photographs(tmp_path / "b", 8, 1)
    words = ("demo", "--photos", "--source", source, "--target", target, "--out", tmp_path / "run", "--json")
    assert "oracle" not in json.loads(succeed(*words).stdout)["adapted"]
    succeed(*words)  # an earlier one on the same folders is replaced
    refused = calida_command("demo", "--photos", "--source", source, "--target", source, "--out", tmp_path / "run")
    assert (refused.returncode, "holds another run" in refused.stderr) == (2, True)


@pytest.mark.parametrize("words", [["--photos", "--source", "a"], ["--source", "a", "--target", "b"]])
def test_folders_belong_to_photographs(tmp_path, words):
    done = calida_command("demo", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert "belong together, and to --photos" in done.stderr
    assert not list(tmp_path.iterdir())
