import pytest
import torch
from torch import nn

from calida.errors import InputError
from calida.model import (
    BACKBONES,
    Classifier,
    Logits,
    Network,
    SampleNoise,
    build_backbone,
    build_classifier,
    build_head,
    draw_noise,
    evaluation_mode,
    predict,
    scratch_buffers,
)
from calida.model.sampling import dropouts
from calida.seeds import Seeds
from calida.uncertainty import decompose

IMAGES = (1, 28, 28)


def classifier(shape=IMAGES, gaussian=True, backbone="auto", classes=10, seed=0):
    return build_classifier(Network(shape, classes, backbone, gaussian), Seeds(seed))


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 32, 32), (1, 8, 8), (3, 112, 60)])
@pytest.mark.parametrize("name", ["dtn", "lenet", "compact", "conv3", "conv4"])
def test_image_backbones_take_any_size(name, shape):
    model = classifier(shape, backbone=name, classes=7)
    features, logits = model(torch.randn(2, *shape))
    assert features.shape == (2, {"dtn": 512, "lenet": 500}.get(name, 256))
    assert logits.mean.shape == logits.std.shape == (2, 7)
    assert (logits.std > 0).all()


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("layout", [torch.channels_last, torch.contiguous_format])
@pytest.mark.parametrize(("backbone", "convolutions"), [("compact", 3), ("conv3", 3), ("conv4", 4)])
def test_a_layout_reaches_every_layer_and_changes_no_value(channels, layout, backbone, convolutions):
    model, images = classifier((channels, 12, 12), backbone=backbone).eval(), torch.rand(4, channels, 12, 12)
    model.lay_out(torch.contiguous_format)
    expected = model(images).logits.mean
    laid_out = []
    for part in model.modules():
        if isinstance(part, nn.Conv2d):
            part.register_forward_hook(lambda _, __, out: laid_out.append(out.is_contiguous(memory_format=layout)))
    model.lay_out(layout)
    torch.testing.assert_close(model(images).logits.mean, expected)
    assert laid_out == [True] * convolutions


@pytest.mark.parametrize("gaussian", [True, False])
@pytest.mark.parametrize("backbone", ["dtn", "compact"])
def test_moved_logits_are_means_that_moved(gaussian, backbone):
    model, images = classifier(gaussian=gaussian, backbone=backbone).eval(), torch.rand(4, *IMAGES)
    before, offsets = model(images).logits, torch.arange(10, dtype=torch.float64)
    model.move_logits(offsets)
    after = model(images).logits
    torch.testing.assert_close(after.mean, before.mean + offsets.float())
    assert torch.equal(after.std, before.std)


def test_dtn_has_the_papers_layers():
    model = classifier((3, 32, 32), gaussian=True, backbone="dtn")
    shapes = {tuple(p.shape) for p in model.backbone.parameters() if p.ndim > 1}
    assert shapes == {(64, 3, 5, 5), (128, 64, 5, 5), (256, 128, 5, 5), (512, 4096)}
    assert [layer.p for layer in dropouts(model.backbone)] == [0.1, 0.3, 0.5]
    branches = [[type(layer).__name__ for layer in branch] for branch in (model.head.mean, model.head.log_variance)]
    assert branches == [["ReLU", "Dropout", "Linear"]] * 2


@pytest.mark.parametrize(("pixels", "first"), [(20, 20), (28, 28), (32, 32), (64, 32), (96, 32), (224, 32)])
@pytest.mark.parametrize("name", ["conv3", "conv4"])
def test_networks_that_pool_first_bring_every_size_to_maps_of_one_size(name, pixels, first):
    sizes = {nn.Conv2d: [], nn.BatchNorm2d: []}
    model = classifier((3, pixels, pixels), backbone=name).eval()
    for part in model.modules():
        if type(part) in sizes:
            part.register_forward_hook(lambda part, _, out: sizes[type(part)].append(out.shape[-1]))
    model(torch.rand(2, 3, pixels, pixels))
    half, quarter, eighth = (-(-first // share) for share in (2, 4, 8))
    third = {"conv3": [(quarter, eighth)], "conv4": [(quarter, quarter), (quarter, eighth)]}[name]
    convolved, normalized = zip((first, half), (half, quarter), *third, strict=True)
    assert sizes == {nn.Conv2d: list(convolved), nn.BatchNorm2d: list(normalized)}


def test_conv3_is_compact_pooled_first():
    """Where BatchNorm keeps the order of values, the largest of four may be taken before it or after it."""
    slow, fast = (classifier(IMAGES, backbone=name).backbone.eval() for name in ("compact", "conv3"))
    for norm in (part for part in slow.modules() if isinstance(part, nn.BatchNorm2d)):
        for tensor in (norm.weight.data, norm.running_var):
            tensor.uniform_(0.5, 2)
        for tensor in (norm.bias.data, norm.running_mean):
            tensor.normal_()
    fast.load_state_dict(dict(zip(fast.state_dict(), slow.state_dict().values(), strict=True)))
    images = torch.randn(4, *IMAGES)
    torch.testing.assert_close(fast(images), slow(images))


def test_rectifying_after_pooling_changes_nothing():
    """Values and gradients are those of ReLU before the pool, in the order of the textbooks."""
    ours = classifier(IMAGES, backbone="compact").backbone.eval()
    layers = list(ours)
    for place, layer in enumerate(layers[:-1]):
        if isinstance(layer, nn.MaxPool2d):
            layers[place : place + 2] = [layers[place + 1], layer]
    textbook = nn.Sequential(*layers)
    assert [type(layer) for layer in textbook] != [type(layer) for layer in ours]
    found = []
    for network in (ours, textbook):
        images = torch.randn(4, *IMAGES, generator=torch.Generator().manual_seed(0), requires_grad=True)
        features = network(images)
        found.append((features, torch.autograd.grad(features.square().sum(), images)[0]))
    assert torch.equal(found[0][0], found[1][0])
    torch.testing.assert_close(found[0][1], found[1][1])


def test_visda_heads():
    head = build_head("visda", 2048, 12, gaussian=True)
    shapes = [tuple(p.shape) for p in head.mean.parameters() if p.ndim == 2]
    assert shapes == [tuple(p.shape) for p in head.log_variance.parameters() if p.ndim == 2] == [(512, 2048), (12, 512)]


@pytest.mark.parametrize(
    ("shape", "name"), [((1, 28, 28), "conv3"), ((3, 32, 32), "conv3"), ((3, 33, 20), "conv4"), ((12,), "mlp")]
)
def test_auto_is_settled_by_the_shape_and_kept_by_its_name(shape, name):
    assert Network(shape, 3, "auto").to_json()["backbone"] == name
    assert Network(shape, 3, "lenet").backbone == "lenet"
    chosen, named = (classifier(shape, backbone=one).state_dict() for one in ("auto", name))
    assert all(torch.equal(chosen[key], value) for key, value in named.items())


def test_names_are_checked():
    assert set(BACKBONES) == {"dtn", "lenet", "compact", "conv3", "conv4", "mlp", "tabular", "linear"}
    with pytest.raises(InputError, match="unknown backbone 'dtm'; did you mean dtn"):
        build_backbone("dtm", IMAGES)
    with pytest.raises(InputError, match="unknown head 'tail'"):
        build_head("tail", 4, 2, False)
    with pytest.raises(InputError, match="reads images"):
        build_backbone("dtn", (12,))


def test_a_backbone_of_ones_own_is_copied_and_must_give_vectors():
    own = nn.Sequential(nn.Flatten(), nn.Linear(12, 5))
    model = build_classifier(Network((12,), 3, "custom"), Seeds(0), own)
    assert model.head.mean.in_features == 5
    assert model.backbone[1].weight is not own[1].weight
    with pytest.raises(InputError, match="gives features"):
        build_classifier(Network((1, 8, 8), 3, "custom"), Seeds(0), nn.Conv2d(1, 2, 3))
    with pytest.raises(InputError, match="backbone of its own"):
        build_classifier(Network((12,), 3, "custom"), Seeds(0))


def test_weights_follow_the_seed_and_nothing_else():
    torch.manual_seed(1)
    state = torch.get_rng_state()
    first = classifier(seed=3)
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(2)
    again, other = classifier(seed=3), classifier(seed=4)
    assert all(torch.equal(a, b) for a, b in zip(first.parameters(), again.parameters(), strict=True))
    assert not torch.equal(next(first.parameters()), next(other.parameters()))


def test_std_zero_is_the_point_network():
    """One code path: a Gaussian head whose variance vanishes predicts as the point head does, sample by sample."""
    x = torch.randn(6, *IMAGES)
    point, gaussian = classifier(gaussian=False), classifier(gaussian=True)
    gaussian.load_state_dict(point.state_dict(), strict=False)
    with torch.no_grad():
        gaussian.head.log_variance[-1].weight.zero_()
        gaussian.head.log_variance[-1].bias.fill_(-1e9)
    a, b = predict(point, x, num_samples=5), predict(gaussian, x, num_samples=5)
    torch.testing.assert_close(a.log_probs, b.log_probs, atol=1e-2, rtol=0)  # std is bounded below by 6e-4
    assert torch.equal(predict(point, x, 1).log_probs, torch.log_softmax(logits_in_evaluation(point, x).mean, -1))
    torch.testing.assert_close(a.epistemic, torch.zeros(6), atol=1e-6, rtol=0)


def logits_in_evaluation(model, x):
    with torch.no_grad(), evaluation_mode(model):
        return model(x).logits


def test_prediction_is_the_average_of_softmax_samples():
    model, x = classifier((5,)), torch.randn(7, 5)
    mean, std = logits_in_evaluation(model, x)
    noise = SampleNoise(x, Seeds(0).at("prediction")).normal("logits", 9, 10)
    samples = torch.stack([torch.softmax(mean + std * noise[m], -1) for m in range(9)])
    prediction = predict(model, x, num_samples=9)
    torch.testing.assert_close(prediction.probabilities, samples.mean(0))
    torch.testing.assert_close(prediction.entropy, decompose(samples.log()).predictive)
    torch.testing.assert_close(prediction.entropy, prediction.aleatoric + prediction.epistemic)
    assert torch.equal(prediction.labels, samples.mean(0).argmax(-1))


def test_many_samples_approach_the_integral():
    """K = 2: P(y=0) = E sigmoid(d), d normal with mean m0 - m1 and variance s0^2 + s1^2, by quadrature."""
    logits = Logits(torch.tensor([[0.5, -0.3]]).double(), torch.tensor([[1.0, 2.0]]).double())
    grid = torch.linspace(-40, 40, 200_001, dtype=torch.float64)
    density = torch.exp(-((grid - 0.8) ** 2) / (2 * 5.0)) / (2 * torch.pi * 5.0) ** 0.5
    exact = torch.trapezoid(torch.sigmoid(grid) * density, grid)
    noise = draw_noise(200_000, logits, torch.Generator().manual_seed(0))
    estimate = logits.sample_log_probs(noise).exp().mean(0)[0, 0]
    assert float(estimate) == pytest.approx(float(exact), abs=4 * 0.35 / 200_000**0.5)


def test_the_backbone_runs_once_however_many_samples():
    model = classifier((5,))
    calls = []
    model.backbone.register_forward_hook(lambda *arguments: calls.append(1))
    predict(model, torch.randn(7, 5), num_samples=100)
    assert len(calls) == 1
    predict(model, torch.randn(7, 5), num_samples=100, batch_size=3)
    assert len(calls) == 4


def test_a_prediction_does_not_depend_on_its_neighbors():
    model, x = classifier((5,)), torch.randn(40, 5)
    whole = predict(model, x, num_samples=20)
    parts = predict(model, x.flip(0), num_samples=20, batch_size=7)
    torch.testing.assert_close(whole.log_probs, parts.log_probs.flip(0), atol=1e-5, rtol=1e-5)


def test_monte_carlo_dropout_draws_masks_but_leaves_batchnorm_alone():
    model, x = classifier((5,), gaussian=False), torch.randn(40, 5) + 3
    model.train()
    before = {name: buffer.clone() for name, buffer in model.named_buffers()}
    plain, dropped = predict(model, x, 8), predict(model, x, 8, monte_carlo_dropout=True)
    assert torch.equal(predict(model, x, 8, monte_carlo_dropout=True).log_probs, dropped.log_probs)
    assert (plain.epistemic.abs() < 1e-6).all()
    assert (dropped.epistemic > 1e-6).all()
    assert all(torch.equal(before[name], buffer) for name, buffer in model.named_buffers())
    assert all(part.training for part in model.modules())
    # In evaluation mode BatchNorm maps each sample alone: without dropout to draw, the batch does not matter.
    for part in model.modules():
        if isinstance(part, nn.Dropout):
            part.p = 0.0
    one = predict(model, x[:1], 8, monte_carlo_dropout=True)
    torch.testing.assert_close(one.log_probs, plain.log_probs[:1], atol=1e-6, rtol=1e-5)


def test_scratch_buffers_throw_updates_away():
    model = classifier((5,)).train()
    before = {name: buffer.clone() for name, buffer in model.named_buffers()}
    with scratch_buffers(model) as moved:
        model(torch.randn(9, 5))
        assert not torch.equal(moved["backbone.2.running_mean"], before["backbone.2.running_mean"])
    assert all(torch.equal(before[name], buffer) for name, buffer in model.named_buffers())
    assert moved.keys() == before.keys()


def test_any_module_is_a_backbone():
    model = Classifier(nn.Linear(4, 3), build_head("linear", 3, 2, True))
    assert model(torch.randn(5, 4)).logits.mean.shape == (5, 2)
