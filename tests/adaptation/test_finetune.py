"""Fine-tuning: it goes on from the adapted classifier, moves what it may, and can be interrupted or undone."""

import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import calida
from calida.adaptation import RunOptions, frames_of
from calida.adaptation.finetune import Tuning, _judged, _mapped, _memory, _network
from calida.adaptation.task import Learned, Task
from calida.data import Labeled, Scale
from calida.encoders import own_encoder, standardizing
from calida.errors import InputError
from calida.model import EncoderBackbone, Network, build_classifier
from calida.recipes import get_recipe
from calida.run_warnings import WarningCode
from calida.seeds import Seeds
from calida.training import FINETUNING_PHASE, Domains, Progress, copied_weights
from calida.validation import RoundRecord

BRIEF = {
    "epochs": 4,
    "rounds": 2,
    "batch_size": 20,
    "finetune_batch_size": 10,
    "finetune_rounds": 2,
    "precision": "fp32",
}


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CALIDA_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def encoder():
    torch.manual_seed(1)
    module = nn.Sequential(
        *(nn.Conv2d(3, 8, 3, 2, bias=False), nn.BatchNorm2d(8), nn.ReLU()),
        *(nn.Conv2d(8, 16, 3, 2, bias=False), nn.BatchNorm2d(16), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()),
    )
    return own_encoder(module, "small", size=16)


def images(count, seed, light=1.0):
    """Stripes down or across, in two colors: bytes [N, 20, 20, 3] and labels."""
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 60, (count, 20, 20, 3)), np.arange(count) % 2
    lines = np.tile(150 * ((np.arange(20) // 3) % 2), (20, 1))
    for place, label in enumerate(y):
        x[place, ..., label] += lines if label else lines.T
    return (light * x).clip(0, 255).astype(np.uint8), y


SOURCE, TARGET = images(40, 0), images(40, 1, light=0.6)


def finetune(encoder, **more):
    return calida.finetune(encoder, SOURCE, TARGET[0], **{**BRIEF, **more})


def adapted_on_features(encoder, recipe, count=40, **options):
    """A task on features in full precision, what it learned, and the same images for fine-tuning."""
    (x, labels), (y, _) = images(count, 0), images(count, 1, light=0.6)
    frames = [frames_of(encoder, part)(part) for part in (torch.from_numpy(one).permute(0, 3, 1, 2) for one in (x, y))]
    features = [encoder(part, "fp32", torch.device("cpu")) for part in frames]
    steps = [standardizing(some) for some in features]
    source, target = (step(some) for step, some in zip(steps, features, strict=True))
    held, labels = count // 4, torch.from_numpy(labels)
    parts = Labeled(source[held:], labels[held:]), Labeled(source[:held], labels[:held])
    task = Task(RunOptions(backbone="linear", **options), Domains(*parts, target, 2), Scale.of(source), {}, None, None)
    learned = task.learn(get_recipe(recipe).with_settings(epochs=4, rounds=2), None, lambda event: None, False)
    return task, learned, Tuning(encoder, steps[1], *frames)


def whole_network(encoder, learned, tuning):
    """The adapted classifier behind the encoder's network, in full precision, and how it is built."""
    network = _network(learned.network, tuning)
    model = build_classifier(network, Seeds(0), EncoderBackbone(encoder, True))
    model.load_state_dict(_mapped(learned.classifier.state_dict(), model, tuning.standardized))
    return model.eval(), network


def test_it_begins_with_what_the_adapted_classifier_says(encoder):
    """The whole network on images is the linear classifier on their standardized features, before any step."""
    task, learned, tuning = adapted_on_features(encoder, "brer-1", guard=False)
    model, network = whole_network(encoder, learned, tuning)
    assert (network.gaussian, network.sampled, network.input_shape) == (True, "top", (3, 16, 16))
    learned.classifier.eval()
    with torch.no_grad():
        found, expected = model(tuning.target), learned.classifier(task.domains.target)
    assert torch.allclose(found.features, expected.features, atol=2e-3)
    assert torch.allclose(found.logits.mean, expected.logits.mean, atol=2e-3)
    assert torch.allclose(found.logits.std, expected.logits.std, atol=2e-3)


@pytest.mark.parametrize(("blocks", "statistics"), [(0, "kept"), (1, "kept"), ("all", "adapted")])
def test_it_moves_what_it_may(encoder, blocks, statistics):
    adapted = finetune(encoder, blocks=blocks, batch_statistics=statistics, guard=False, choice="last")
    before, after = encoder.module.state_dict(), adapted.classifier.backbone.network.state_dict()
    moved = {name for name, value in before.items() if not torch.equal(value, after[name])}
    weights = {"0.weight", "1.weight", "1.bias"}, {"3.weight", "4.weight", "4.bias"}
    counts = {f"{place}.{name}" for place in (1, 4) for name in ("running_mean", "running_var", "num_batches_tracked")}
    expected = {(0, "kept"): set(), (1, "kept"): weights[1], ("all", "adapted"): weights[0] | weights[1] | counts}
    assert moved == expected[blocks, statistics]
    assert [record.phase for record in adapted.history][-2:] == [FINETUNING_PHASE] * 2
    assert adapted.source_only is not None
    for name, value in adapted.source_only.classifier.backbone.network.state_dict().items():
        assert torch.equal(value, before[name])


def test_what_was_saved_reads_images_of_any_size(encoder, tmp_path):
    adapted = finetune(encoder, oracle_labels=TARGET[1])
    assert adapted.history[-1].oracle.accuracy > 0.9
    adapted.save(tmp_path)
    again = calida.load(tmp_path, backbone=EncoderBackbone(encoder, True))
    here, there = adapted.predict(TARGET[0]), again.predict(TARGET[0])
    assert torch.equal(here.log_probs, there.log_probs)
    larger = np.kron(TARGET[0], np.ones((1, 2, 2, 1), np.uint8))
    assert float((again.predict(larger).labels == there.labels).double().mean()) > 0.9
    with pytest.raises(InputError, match="give the module as backbone"):
        calida.load(tmp_path)


def test_stopped_and_resumed_it_is_the_same_run(encoder, tmp_path):
    """Target labels that are given for figures change nothing either."""
    whole = finetune(encoder, recipe="rer-1")

    def stop(event):
        if isinstance(event, RoundRecord) and (event.phase, event.round) == (FINETUNING_PHASE, 0):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        finetune(encoder, recipe="rer-1", folder=tmp_path, observe=stop)
    heard = []
    wrong = 1 - TARGET[1]
    resumed = finetune(encoder, recipe="rer-1", folder=tmp_path, resume=True, observe=heard.append, oracle_labels=wrong)
    for name, value in whole.classifier.state_dict().items():
        assert torch.equal(value, resumed.classifier.state_dict()[name]), name
    rounds = [(one.phase, one.round) for one in heard if isinstance(one, RoundRecord)]
    assert rounds == [(FINETUNING_PHASE, 1)]
    assert [one.memory is None for one in heard if isinstance(one, calida.RunStarted)] == [True, False]


def test_fine_tuning_that_check_classifiers_find_worse_is_undone(encoder):
    task, learned, tuning = adapted_on_features(encoder, "rer-1", count=120)
    model, network = whole_network(encoder, learned, tuning)
    begun = copied_weights(model)
    rows = torch.arange(30, 120), torch.arange(30)
    on_images = replace(task, domains=tuning.domains(task.domains, *rows), checked_by=task)
    last = replace(learned.progress.history[-1], phase=FINETUNING_PHASE)
    progress = Progress(3, history=[*learned.progress.history, last])
    tuned = Learned(model, network, learned.recipe, progress)

    found, history = _judged(on_images, tuned, learned, task, task.checks, begun)  # nothing was changed
    assert (found, history) == (on_images, progress.history)

    with torch.no_grad():
        model.head.mean.weight.neg_()
        model.head.mean.bias.neg_()
    found, history = _judged(on_images, tuned, learned, task, task.checks, begun)
    (undone,) = found.findings
    assert undone.code == WarningCode.FINETUNING_UNDONE
    assert undone.values["after"] < undone.values["before"] - 0.06
    assert [record.kept for record in history][-2:] == [True, False]
    assert all(torch.equal(value, begun[name]) for name, value in model.state_dict().items())


@pytest.mark.parametrize("guard", [True, False])
def test_the_guard_asks_check_classifiers_whatever_the_recipe(encoder, guard, monkeypatch):
    """Where nothing is good enough for them, fine-tuning by a recipe that trains without them is undone."""
    monkeypatch.setattr(
        sys.modules["calida.adaptation.finetune"], "_MARGIN", -1.0
    )  # the package has a function of that name
    (x, labels), (y, _) = images(120, 0), images(120, 1, light=0.6)
    adapted = calida.finetune(encoder, (x, labels), y, recipe="rer-1", guard=guard, **{**BRIEF, "choice": "last"})
    codes = [finding.code for finding in adapted.trust.warnings]
    assert (WarningCode.FINETUNING_UNDONE in codes) == guard
    unmoved = encoder.module.state_dict()
    found = adapted.classifier.backbone.network.state_dict()
    assert all(torch.equal(value, unmoved[name]) for name, value in found.items()) == guard


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"recipe": "source", "rounds": 0}, "fine-tuning goes on where adaptation ends"),
        ({"recipe": "auto"}, "with one recipe"),
        ({"blocks": -1}, "blocks must be at least 0"),
        ({"batch_statistics": "reset"}, "kept, adapted"),
    ],
)
def test_what_cannot_be_is_one_sentence(encoder, words, message):
    with pytest.raises(InputError, match=message):
        finetune(encoder, **words)


def test_weights_belong_to_images_as_to_their_features(encoder, monkeypatch):
    """A sample of weight 0 is gone from both, and what the weights of the others are is known to the end."""
    seen = []
    domains = Tuning.domains

    def noting(self, features, kept, held):
        found = domains(self, features, kept, held)
        seen.append((found, features))
        return found

    monkeypatch.setattr(Tuning, "domains", noting)
    x, y = SOURCE
    weight = np.where(np.arange(40) < 3, 0.0, 1.0 + y)
    calida.finetune(encoder, (x, y), TARGET[0], **BRIEF, sample_weight=weight, guard=False)
    ((found, features),) = seen
    assert len(found.source.x) + len(found.validation.x) == 37
    assert torch.equal(found.source_weight, features.source_weight)
    assert torch.equal(found.source_weight, 1.0 + found.source.y)
    frame = frames_of(encoder, torch.from_numpy(x).permute(0, 3, 1, 2))
    every = frame(torch.from_numpy(x).permute(0, 3, 1, 2))
    for one, label in zip(found.source.x, found.source.y, strict=True):
        (places,) = np.nonzero([torch.equal(one, other) for other in every])
        assert set(y[places].tolist()) == {int(label)}
        assert min(places) >= 3


def test_what_no_machine_has_memory_for_is_refused(encoder):
    frames = torch.zeros(4, 3, 16, 16, dtype=torch.uint8)
    domains = Domains(Labeled(frames, torch.arange(4)), Labeled(frames, torch.arange(4)), frames, 4)
    model = build_classifier(Network((3, 16, 16), 4, "custom"), Seeds(0), EncoderBackbone(encoder, True))
    recipe = get_recipe("features")
    assert 0 < _memory(model, domains, recipe, True) < 10**8
    with pytest.raises(InputError, match=r"fine-tuning would take about .* let fewer blocks learn"):
        _memory(model, domains, recipe.with_settings(finetune_batch_size=10**10), True)


def test_rows_and_texts_are_not_images(encoder):
    with pytest.raises(InputError, match="fine-tuning takes images"):
        calida.finetune(encoder, (np.zeros((4, 3)), [0, 1, 0, 1]), np.zeros((4, 3)))
