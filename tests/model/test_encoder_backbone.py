"""A pre-trained network as a backbone: what of it learns, how fast, and how it reads images."""

import copy

import pytest
import torch
from torch import nn

from calida.encoders import ImageInput, blocks_of, own_encoder
from calida.encoders.inverted_residuals import EFFICIENTNET_LITE0, InvertedResidualNetwork
from calida.errors import InputError, MissingExtraError
from calida.model import EncoderBackbone, Network, build_classifier, step_memory
from calida.recipes import get_recipe
from calida.seeds import Seeds
from calida.training import Phase
from reproduction.memory import memory_plan


class Small(nn.Module):
    """A stem with its norm, a stack of two layers of one kind, and a pooled end."""

    class Layer(nn.Module):
        def __init__(self):
            super().__init__()
            self.convolution, self.norm = nn.Conv2d(4, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4)

        def forward(self, x):
            return x + self.norm(self.convolution(x)).relu()

    def __init__(self):
        super().__init__()
        self.stem, self.norm = nn.Conv2d(3, 4, 3, stride=2), nn.BatchNorm2d(4)
        self.stack = nn.Sequential(self.Layer(), self.Layer())

    def forward(self, x):
        return self.stack(self.norm(self.stem(x))).mean((2, 3))


@pytest.fixture
def encoder():
    torch.manual_seed(0)
    module = Small()
    with torch.no_grad():  # statistics that are not those of any data
        for part in module.modules():
            if isinstance(part, nn.BatchNorm2d):
                part.running_mean.normal_()
                part.running_var.uniform_(0.5, 2)
    return own_encoder(module, "small", size=8)


def tuned(encoder, standardized=False, blocks="all", keep=True, size=8):
    network = Network((3, size, size), 3, "custom")
    model = build_classifier(network, Seeds(0), EncoderBackbone(encoder, standardized))
    model.tune(blocks, keep)
    return model


def test_blocks_are_layers_with_their_norms(encoder):
    names = {id(part): name for name, part in encoder.module.named_modules()}
    assert [[names[id(part)] for part in block] for block in blocks_of(encoder.module)] == [
        ["stem", "norm"],
        ["stack.0"],
        ["stack.1"],
    ]
    network = InvertedResidualNetwork(*EFFICIENTNET_LITE0)
    network.classifier = nn.Identity()
    assert len(blocks_of(network)) == 1 + sum(stage.blocks for stage in EFFICIENTNET_LITE0[0]) + 1
    assert [len(block) for block in blocks_of(nn.Sequential(nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2))))] == [2]


def test_blocks_of_a_vision_transformer():
    transformers = pytest.importorskip("transformers", exc_type=ImportError)
    config = transformers.ViTConfig(
        hidden_size=16, num_hidden_layers=3, num_attention_heads=2, intermediate_size=32, image_size=16, patch_size=8
    )
    sizes = [len(block) for block in blocks_of(transformers.ViTModel(config))]
    assert len(sizes) == 5  # embeddings, three layers with the last norm, the pooler
    assert sum(sizes) == 6


@pytest.mark.parametrize(("blocks", "learning"), [("all", {"stem", "norm", "stack"}), (1, {"stack"}), (0, set())])
def test_only_the_last_blocks_learn(encoder, blocks, learning):
    model = tuned(encoder, blocks=blocks)
    named = dict(model.backbone.network.named_parameters())
    assert {name.split(".")[0] for name, value in named.items() if value.requires_grad} == learning
    assert named["stack.0.convolution.weight"].requires_grad == (blocks == "all")
    assert all(value.requires_grad for value in model.head.parameters())


def test_statistics_are_kept_or_those_of_the_data(encoder):
    x = torch.rand(16, 3, 8, 8)
    kept, moving = (tuned(encoder, standardized=True, keep=keep).train() for keep in (True, False))
    assert len(kept.moving_norms()) == 1  # that of the features
    assert len(moving.moving_norms()) == 4
    before = copy.deepcopy(kept.backbone.network.state_dict())
    for model in (kept, moving):
        model(x)
    assert all(torch.equal(before[name], value) for name, value in kept.backbone.network.state_dict().items())
    assert not torch.equal(before["norm.running_mean"], moving.backbone.network.state_dict()["norm.running_mean"])
    expected = encoder.module.eval()(encoder.input(x))
    assert torch.allclose(kept.backbone.network(kept.standardize(x)), expected, atol=1e-6)  # in training mode


def test_the_pretrained_part_has_a_learning_rate_of_its_own(encoder):
    model = tuned(encoder, blocks=1)
    groups = model.parameter_groups(0.1)
    assert [group["fraction"] for group in groups] == [1.0, 0.1]
    phase = Phase("x", None, 1, learning_rate=0.5, optimizer="sgd", weight_decay=0.0)
    optimizer = phase.make_optimizer(groups)
    for group in optimizer.param_groups:
        group["lr"] = phase.learning_rate * group["fraction"]
    before = copy.deepcopy(model.state_dict())
    model.train()(torch.rand(4, 3, 8, 8)).logits.mean.square().sum().backward()
    optimizer.step()
    for name, fraction in {"head.mean.weight": 1.0, "backbone.0.stack.1.convolution.weight": 0.1}.items():
        weight = model.get_parameter(name)
        step = 0.5 * fraction * (1 + 0.9) * weight.grad  # the first step of Nesterov's momentum
        assert torch.allclose(weight, before[name] - step, atol=1e-6)
    assert torch.equal(model.backbone.network.stem.weight, encoder.module.stem.weight)


def test_images_are_read_as_the_encoder_reads_them():
    """The middle of its frame, in its own scale: no second one on top."""
    module = nn.Sequential(nn.Conv2d(3, 5, 4), nn.Flatten(), nn.Linear(5, 2))
    encoder = own_encoder(module, size=4, mean=(0.1, 0.2, 0.3), std=(0.5, 0.6, 0.7))
    object.__setattr__(encoder, "input", ImageInput(4, (0.1, 0.2, 0.3), (0.5, 0.6, 0.7), crop=0.5))
    model = tuned(encoder, standardized=True, size=8).eval()
    frames = torch.randint(0, 256, (6, 3, 8, 8), dtype=torch.uint8)
    model.standardize.fit(frames, frames)
    assert torch.allclose(model.standardize(frames), encoder.input(frames), atol=1e-6)
    with pytest.raises(InputError, match=r"cannot read samples of shape"):
        build_classifier(Network((3, 8, 8), 3, "custom"), Seeds(0), module)


def test_memory_is_that_of_the_plan_on_shapes(encoder):
    """Both count what the graph keeps; the plan by every tensor of a step that has no memory, this by two samples."""
    backbone = EncoderBackbone(encoder, standardized=False)
    network = Network((3, 32, 32), 3, "custom")
    recipe = get_recipe("rer-1").with_settings(batch_size=64, schedule="alternate")
    plan = memory_plan(network, recipe, backbone)
    model = build_classifier(network, Seeds(0), backbone)
    found = step_memory(model, torch.rand(2, 3, 32, 32), 64, teacher=False)
    fixed = plan.weights + plan.gradients + plan.optimizer
    assert found - fixed == pytest.approx(plan.activations, rel=0.15)
    assert step_memory(model, torch.rand(2, 3, 32, 32), 64, teacher=True) - found == plan.weights
    model.tune(0, True)
    assert step_memory(model, torch.rand(2, 3, 32, 32), 64, teacher=False) < found / 5


def test_hubs_that_are_not_there_are_named(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(MissingExtraError, match=r"not installed: pip install 'calida\[timm\]'"):
        build_classifier(Network((3, 64, 64), 3, "timm:resnet18"), Seeds(0))
    with pytest.raises(InputError, match=r"reads images \[3, H, W\]"):
        build_classifier(Network((1, 64, 64), 3, "efficientnet-lite0"), Seeds(0))
    with pytest.raises(InputError, match="only those of images can be fine-tuned"):
        build_classifier(Network((3, 64, 64), 3, "minilm"), Seeds(0))
