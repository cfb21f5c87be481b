"""Whatever is in a file that is read back: it is as it was, or it is refused in one sentence, and no answer is NaN."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from commands import read_csv
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import calida
from calida.encoders.cache import EmbeddingCache
from calida.json_values import sealed, to_json
from calida.runs import RunFolder
from calida.runs.labeling import _checked, _read_answers, _read_design
from calida.studies import StudyPlan, finished_record
from calida.training import Bundle, read_bundle, write_bundle
from calida.training.checkpoint import read_checkpoint, saved_identity

FUZZ = settings(
    max_examples=10, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)  # fmt: skip
ROWS = torch.tensor([[0.5, 3.0, 1.0, 0.0], [2.5, 19.0, 0.0, 1.0]])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def place(original, tmp_path_factory):
    """A world to damage: what a test has changed it puts back."""
    world = shutil.copytree(original, tmp_path_factory.mktemp("fuzz") / "world")
    rows = read_csv(world / "run" / "label" / "labels.csv")
    labels = "".join(f"{row['number']},{row['name']},yes\n" for row in rows)
    (world / "run" / "label" / "labels.csv").write_text(f"number,name,label\n{labels}")
    plan = world / "plan.toml"
    plan.write_text(f'source = "{world}/s.csv"\ntarget = "{world}/t.csv"\nlabel = "y"\nrecipe = "source"\n')
    job = one_job(world)
    trust = calida.load(world / "run").trust
    record = {**job.identity(), "key": job.key, "returned": {}, "rounds": [], "trust": to_json(trust)}
    record |= {"training_seconds": 1.0, "seconds": 1.0}
    (world / "run" / "record.json").write_text(json.dumps(sealed(record)))
    return world


def one_job(world):
    (job,) = StudyPlan.read(world / "plan.toml").jobs().values()
    return job


def answers(world):
    return calida.load(world / "run").predict(ROWS).log_probs.tolist()


def finished(world):
    run = RunFolder(world / "run").read_finished()
    return run.metrics, run.predictions.after.target.tolist(), [one.to_json() for one in run.rounds], run.named


def progress(world):
    found = read_checkpoint(world / "run", saved_identity(world / "run") or {})
    return found.progress.phase, found.progress.rounds_done, [one.to_json() for one in found.progress.history]


def configured(world):
    config = RunFolder(world / "run").read_config()
    config.check()
    return config


def drawn(world):
    folder, labels = RunFolder(world / "run"), world / "run" / "label" / "labels.csv"
    _, names = folder.read_names(folder.read_arrays())
    design = _read_design(world / "run", labels, folder.read_config(), names)
    answers = [(number, word) for number, _, word in _read_answers(labels)]
    return design.to_json(), _checked(answers, len(design.rows), labels)


def recorded(world):
    job = one_job(world)
    place = world / "study" / job.folder
    place.mkdir(parents=True, exist_ok=True)
    shutil.copy(world / "run" / "record.json", place / "record.json")
    RunFolder(place).write_config(job.config.resolved(), "")
    return finished_record(job, world / "study")


READERS = {
    "model.json": answers,
    "source-only.json": answers,
    "checkpoint.json": progress,
    "metrics.json": finished,
    "metrics.jsonl": finished,
    "predictions.npz": finished,
    "predictions.csv": finished,
    "label/design.json": drawn,
    "record.json": recorded,
}
FREE = {"config.toml": configured, "label/labels.csv": drawn}  # people may edit these: any good value is good


def outcome(reader, world):
    """What a reader gives, or None if it refuses; anything but a sentence is an error of ours."""
    try:
        return json.loads(json.dumps(reader(world), default=str))
    except calida.CalidaError as error:
        told = str(error)
    assert told
    assert "\n" not in told
    return None


def damaged(content, data):
    """Bytes cut off, left out, doubled or replaced."""
    first, second = sorted(data.draw(st.integers(0, len(content))) for _ in range(2))
    other = data.draw(
        st.sampled_from([b"", content[first : first + 40], b"\0\xff", b"NaN", b"-1", b"]]", b"1e999", b'"'])
    )
    kept = data.draw(st.sampled_from([content[second:], content[first + len(other) :], b""]))
    return content[:first] + other + kept


@pytest.mark.parametrize("name", [*READERS, *FREE])
@FUZZ
@given(data=st.data())
def test_damaged_bytes(place, name, data):
    path = place / "run" / name
    content, reader = path.read_bytes(), {**READERS, **FREE}[name]
    before = outcome(reader, place)
    assert before is not None
    try:
        path.write_bytes(damaged(content, data))
        after = outcome(reader, place)
    finally:
        path.write_bytes(content)
    assert name in FREE or after in (None, before)


def places(value, path=()):
    """Every place in nested JSON values."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        yield from places(part, (*path, key))


def replaced(value, path, other):
    if not path:
        return other
    changed = dict(value) if isinstance(value, dict) else list(value)
    changed[path[0]] = replaced(changed[path[0]], path[1:], other)
    return changed


def drawn_change(values, data):
    path = data.draw(st.sampled_from([path for path in places(values) if path]))
    return replaced(values, path, data.draw(JSON))


@pytest.mark.parametrize("name", ["model", "source-only", "checkpoint"])
@FUZZ
@given(data=st.data())
def test_forged_bundles(place, name, data):
    """With a digest that fits: refused, or taken for what it says, and then no answer is NaN."""
    folder, reader = place / "run", READERS[f"{name}.json"]
    bundle, kept = read_bundle(folder, name), (folder / f"{name}.json").read_bytes()
    tensors = Path(folder / json.loads(kept)["tensors"])
    content = tensors.read_bytes()
    try:
        write_bundle(folder, name, Bundle(bundle.tensors, drawn_change(bundle.values, data)))
        after = outcome(reader, place)
    finally:
        for file in folder.glob(f"{name}-*.safetensors"):
            file.unlink()
        tensors.write_bytes(content)
        (folder / f"{name}.json").write_bytes(kept)
    assert after is None or reader is progress or "NaN" not in json.dumps(after)


@pytest.mark.parametrize("name", ["metrics.json", "label/design.json", "record.json"])
@FUZZ
@given(data=st.data())
def test_resealed_files(place, name, data):
    path = place / "run" / name
    content = path.read_bytes()
    try:
        path.write_text(json.dumps(sealed(drawn_change(json.loads(content), data))))
        outcome(READERS[name], place)
    finally:
        path.write_bytes(content)


class Three:
    """An encoder's name and width, which is all that a cache asks for."""

    name, num_features = "three", 3

    def fingerprint(self, precision):
        return "0"

    def identity(self, precision):
        return {"name": self.name, "weights": "0"}


@FUZZ
@given(data=st.data())
def test_damaged_embeddings_are_computed_again(tmp_path_factory, data):
    cache, keys = EmbeddingCache(Three(), "fp32", tmp_path_factory.mktemp("cache")), [b"a" * 16, b"b" * 16]
    features = torch.arange(6.0).view(2, 3)
    cache.add(keys, features)
    (shard,) = cache.folder.glob("*.safetensors")
    shard.write_bytes(damaged(shard.read_bytes(), data))
    found = torch.full((2, 3), -1.0)
    missing = cache.fill(keys, found)
    assert torch.equal(found[~missing], features[~missing])
    assert bool((found[missing] == -1).all())
