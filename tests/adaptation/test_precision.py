"""bf16 where it is faster: who decides, what stays in fp32, and that a resumed run does not decide again."""

import pytest
import torch
from pictures import arrays

import calida
from calida.adaptation import RunOptions, task
from calida.data import TargetBatch
from calida.errors import CheckpointError, InputError
from calida.model import Network, build_classifier, precision
from calida.objective import Step, VirtualAdversarial
from calida.seeds import Seeds

SHAPE = (1, 12, 12)
QUICK = {
    "recipe": "rer-1",
    "epochs": 1,
    "rounds": 2,
    "passes": 1,
    "batch_size": 20,
    "backbone": "compact",
    "guard": False,
    "precision": "auto",
}


@pytest.fixture
def network():
    return build_classifier(Network(SHAPE, 2, "compact"), Seeds(0))


@pytest.fixture
def domains():
    return arrays(60, 0, size=12), arrays(60, 1, size=12, high=180)[0]


def weights(adapted):
    return adapted.classifier.state_dict()


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A folder of the test's own: what one trial has found would decide the next."""
    monkeypatch.setenv("CALIDA_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.parametrize("damaged", [None, "", "[]", '{"a": "fp16"}', "[" * 100_000])
def test_what_was_found_is_kept_so_that_a_run_can_be_repeated(network, monkeypatch, cache, damaged):
    monkeypatch.setattr(precision, "has_bf16", lambda device: True)
    times = iter([1.0, 0.5] * 3 + [0.5, 1.0] * 100)  # another trial would find the opposite
    monkeypatch.setattr(precision, "_seconds_of_pass", lambda classifier, inputs: next(times))
    assert [precision.faster_precision(network, SHAPE, 16, Seeds(seed)) for seed in (0, 1)] == ["bf16", "bf16"]
    assert precision.faster_precision(network, SHAPE, 17, Seeds(0)) == "fp32"  # another batch, another trial
    if damaged is not None:
        (cache / "precision.json").write_text(damaged)
        assert precision.faster_precision(network, SHAPE, 16, Seeds(0)) == "fp32"  # tried anew


@pytest.mark.parametrize(("share", "chosen"), [(0.5, "bf16"), (0.94, "bf16"), (0.96, "fp32"), (2.0, "fp32")])
def test_what_is_faster_is_taken(network, monkeypatch, share, chosen):
    times = iter([9.0, 9.0, 1.0, share, *[5.0] * 10**6])  # the fastest pass of each counts
    monkeypatch.setattr(precision, "has_bf16", lambda device: True)
    monkeypatch.setattr(precision, "_TRIAL_SECONDS", 0.0)
    monkeypatch.setattr(precision, "_seconds_of_pass", lambda classifier, inputs: next(times))
    assert precision.faster_precision(network, SHAPE, 16, Seeds(0)) == chosen


def test_without_bf16_or_images_there_is_no_trial(network, monkeypatch):
    monkeypatch.setattr(precision, "_seconds_of_pass", lambda classifier, inputs: pytest.fail("a trial"))
    monkeypatch.setattr(precision, "has_bf16", lambda device: False)
    assert precision.faster_precision(network, SHAPE, 16, Seeds(0)) == "fp32"
    monkeypatch.setattr(precision, "has_bf16", lambda device: True)
    vectors = build_classifier(Network((5,), 2), Seeds(0))
    assert precision.faster_precision(vectors, (5,), 16, Seeds(0)) == "fp32"


def test_a_trial_leaves_no_trace(network, monkeypatch):
    monkeypatch.setattr(precision, "has_bf16", lambda device: True)
    monkeypatch.setattr(precision, "_TRIAL_SECONDS", 0.0)
    network.eval()
    before, drawn = {name: value.clone() for name, value in network.state_dict().items()}, torch.get_rng_state()
    precision.faster_precision(network, SHAPE, 16, Seeds(0))
    assert same(before, network.state_dict())
    assert torch.equal(drawn, torch.get_rng_state())
    assert not network.training
    assert network.precision == "fp32"
    assert all(parameter.grad is None for parameter in network.parameters())


def test_bf16_rounds_the_backbone_alone(network):
    x = torch.rand(16, *SHAPE, generator=torch.Generator().manual_seed(0))
    network.train()
    found = {}
    for name in ("fp32", "bf16"):
        network.precision = name
        with Seeds(0).globally("dropout"):
            found[name] = network(x)
    assert found["bf16"].logits.mean.dtype == found["bf16"].features.dtype == torch.float32
    error = (found["bf16"].features - found["fp32"].features).norm() / found["fp32"].features.norm()
    assert 1e-5 < error < 0.02  # bf16 has eight bits: rounded, and by no more than that


def test_the_adversarial_direction_is_found_in_full_precision(network):
    x = torch.rand(16, *SHAPE, generator=torch.Generator().manual_seed(0))
    network.train()

    def term():
        batch = TargetBatch(x, torch.zeros(16, 2), torch.zeros(16))
        return VirtualAdversarial()(Step(network, {"target": batch}, Seeds(0)))

    full = term()
    network.precision = "bf16"
    assert term().item() == pytest.approx(full.item(), rel=1e-6)


def test_what_was_decided_is_recorded_saved_and_not_decided_again(domains, tmp_path, monkeypatch):
    monkeypatch.setattr(task, "faster_precision", lambda *_: "bf16")
    whole = calida.adapt(*domains, **QUICK)
    assert whole.network.precision == whole.classifier.precision == "bf16"
    assert not same(weights(whole), weights(calida.adapt(*domains, **{**QUICK, "precision": "fp32"})))

    def stop(event):
        if getattr(event, "phase", "") == "adapt" and getattr(event, "seconds", None) is not None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        calida.adapt(*domains, **QUICK, folder=tmp_path / "run", observe=stop)
    monkeypatch.setattr(task, "faster_precision", lambda *_: pytest.fail("decided again"))
    with pytest.raises(CheckpointError, match="network precision"):
        calida.adapt(*domains, **{**QUICK, "precision": "fp32"}, folder=tmp_path / "run", resume=True)
    resumed = calida.adapt(*domains, **QUICK, folder=tmp_path / "run", resume=True)
    assert same(weights(resumed), weights(whole))
    begun = calida.adapt(*domains, **QUICK, start=whole.source_only)
    assert begun.network.precision == "bf16"

    whole.save(tmp_path / "saved")
    monkeypatch.setattr("calida.adaptation.adapted.has_bf16", lambda device: True)
    again = calida.load(tmp_path / "saved", "cpu")
    assert torch.equal(again.predict(domains[1]).log_probs, whole.predict(domains[1]).log_probs)
    monkeypatch.setattr("calida.adaptation.adapted.has_bf16", lambda device: False)
    assert calida.load(tmp_path / "saved", "cpu").classifier.precision == "fp32"


def test_options_that_cannot_be_are_refused():
    with pytest.raises(InputError, match="auto, fp32, bf16, not 'fp16'"):
        RunOptions(precision="fp16").check()
    with pytest.raises(InputError, match="on a GPU alone"):
        RunOptions(compile=True, device="cpu").check()


def test_a_compiled_backbone_is_the_same_network(network):
    x = torch.rand(4, *SHAPE, generator=torch.Generator().manual_seed(0))
    network.eval()
    before = network(x).logits.mean
    names = list(network.state_dict())
    network.backbone.compile(backend="eager")  # the tracing that a GPU would have, without its code generator
    assert torch.equal(network(x).logits.mean, before)
    assert list(network.state_dict()) == names
