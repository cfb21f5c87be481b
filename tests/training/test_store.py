import json
import os

import pytest
import torch

from calida.errors import CheckpointError
from calida.training import Bundle, read_bundle, write_bundle


@pytest.fixture
def bundle():
    tensors = {"a": torch.randn(3, 4), "b": torch.randn(2, 3, 4, 4).contiguous(memory_format=torch.channels_last)}
    return Bundle({**tensors, "tied": tensors["a"], "count": torch.tensor(7)}, {"seed": 3, "list": [1.5, float("inf")]})


def test_a_bundle_comes_back_as_it_was(tmp_path, bundle):
    write_bundle(tmp_path / "new" / "folder", "model", bundle)
    back = read_bundle(tmp_path / "new" / "folder", "model")
    assert back.values == bundle.values
    assert back.tensors.keys() == bundle.tensors.keys()
    assert all(torch.equal(back.tensors[key], value) for key, value in bundle.tensors.items())


def test_writing_again_replaces_and_leaves_nothing_behind(tmp_path, bundle):
    write_bundle(tmp_path, "model", Bundle({"a": torch.zeros(2)}, {}))
    write_bundle(tmp_path, "model", bundle)
    assert len(list(tmp_path.iterdir())) == 2
    assert read_bundle(tmp_path, "model").values == bundle.values


def test_only_files_of_its_own_are_removed(tmp_path, bundle):
    foreign = tmp_path / "model-00001-of-00002.safetensors"
    foreign.write_bytes(b"somebody's weights")
    write_bundle(tmp_path, "model", Bundle({"a": torch.zeros(2)}, {}))
    write_bundle(tmp_path, "model", bundle)
    assert foreign.read_bytes() == b"somebody's weights"
    plain = tmp_path / "plain"
    plain.touch()
    assert all(path.stat().st_mode == plain.stat().st_mode for path in tmp_path.iterdir())


@pytest.mark.parametrize("call", range(1, 5))
def test_a_failure_at_any_write_leaves_the_old_bundle_whole(tmp_path, bundle, monkeypatch, call):
    """The disk gives up at the n-th flush or rename; what was saved before can still be read."""
    old = Bundle({"a": torch.zeros(2)}, {"old": True})
    write_bundle(tmp_path, "model", old)
    calls = []
    originals = {"fsync": os.fsync, "replace": os.replace}

    def failing(name):
        def act(*arguments):
            calls.append(name)
            if len(calls) == call:
                raise OSError("no space left on device")
            return originals[name](*arguments)

        return act

    monkeypatch.setattr(os, "fsync", failing("fsync"))
    monkeypatch.setattr(os, "replace", failing("replace"))
    with pytest.raises(OSError, match="no space"):
        write_bundle(tmp_path, "model", bundle)
    assert len(calls) == call
    back = read_bundle(tmp_path, "model")
    assert back.values == {"old": True}
    assert torch.equal(back.tensors["a"], torch.zeros(2))
    assert not list(tmp_path.glob(".writing-*"))


def damaged(folder, change):
    path = folder / "model.json"
    header = json.loads(path.read_text())
    tensor_file = folder / header["tensors"]
    change(path, header, tensor_file)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda path, header, file: path.unlink(), "model.json is missing"),
        (lambda path, header, file: path.write_text(path.read_text()[:40]), "truncated or not a calida file"),
        (lambda path, header, file: path.write_bytes(b"\x80\x04\x95"), "truncated or not a calida file"),
        (lambda path, header, file: path.write_text("[1, 2]"), "is not a calida model"),
        (lambda path, header, file: path.write_text('{"format": "other"}'), "is not a calida model"),
        (
            lambda path, header, file: path.write_text(json.dumps({**header, "version": 99})),
            "another version of calida",
        ),
        (
            lambda path, header, file: path.write_text(json.dumps({**header, "values": 3})),
            "lacks its tensors or values",
        ),
        (lambda path, header, file: file.unlink(), "cannot be read"),
        (lambda path, header, file: file.write_bytes(file.read_bytes()[:-5]), "truncated or was changed"),
        (lambda path, header, file: file.write_bytes(b"\x80\x02csomething\nelse\n."), "truncated or was changed"),
    ],
)
def test_damage_is_named_in_one_sentence(tmp_path, bundle, change, sentence):
    write_bundle(tmp_path, "model", bundle)
    damaged(tmp_path, change)
    with pytest.raises(CheckpointError, match=sentence) as caught:
        read_bundle(tmp_path, "model")
    assert "\n" not in str(caught.value)


def test_a_name_in_the_header_cannot_lead_out_of_the_folder(tmp_path, bundle):
    inner = tmp_path / "inner"
    write_bundle(inner, "model", bundle)
    header = json.loads((inner / "model.json").read_text())
    (inner / header["tensors"]).rename(tmp_path / header["tensors"])
    (inner / "model.json").write_text(json.dumps({**header, "tensors": f"../{header['tensors']}"}))
    with pytest.raises(CheckpointError, match="cannot be read"):
        read_bundle(inner, "model")
