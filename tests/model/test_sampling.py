"""Weight samples by dropout masks, against enumerated masks, loops and closed forms."""

import itertools

import pytest
import torch
from torch import nn

from calida.data import SourceBatch
from calida.model import Classifier, Logits, Network, SampleNoise, build_classifier, build_head, dropping_only, predict
from calida.model.backbones import DropoutToFeatures
from calida.model.sampling import dropouts, masks_from
from calida.objective import Step
from calida.seeds import Seeds
from calida.uncertainty import decompose, mean_log_probs

IMAGES = (1, 28, 28)


def tiny(gaussian, sampled="all", drop=0.4):
    """Three hidden units that can be dropped, two classes: eight networks in all."""
    torch.manual_seed(3)
    backbone = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Dropout(drop))
    model = Classifier(backbone, build_head("linear", 3, 2, gaussian), sampled=sampled).eval()
    with torch.no_grad():
        model.head.mean.weight.mul_(6)
    return model


def enumerated(model, x, draws=4000):
    """Exact predictive, aleatoric and epistemic entropy over all masks; the logits' noise by many draws."""
    layer, head = model.backbone[2], model.head
    hidden = model.backbone[:2](x)
    chances, log_probs = [], []
    for mask in itertools.product((0.0, 1.0), repeat=3):
        keep = torch.tensor(mask)
        chances.append(float(torch.where(keep > 0, 1 - layer.p, layer.p).prod()))
        mean, std = head(hidden * keep / (1 - layer.p))
        noise = torch.randn(draws, *mean.shape, generator=torch.Generator().manual_seed(0))
        log_probs.append(mean_log_probs(Logits(mean, std).sample_log_probs(noise)))
    chance = torch.tensor(chances)[:, None]
    probs = torch.stack(log_probs).exp()  # [8, B, 2]
    entropy = -(probs * probs.log()).sum(-1)
    average = (chance[..., None] * probs).sum(0)
    predictive, aleatoric = -(average * average.log()).sum(-1), (chance * entropy).sum(0)
    return average, predictive, aleatoric, predictive - aleatoric


@pytest.mark.parametrize("gaussian", [False, True], ids=["std 0", "Gaussian"])
def test_many_samples_approach_the_average_over_all_masks(gaussian):
    model, x = tiny(gaussian), torch.randn(6, 2, generator=torch.Generator().manual_seed(1))
    average, predictive, aleatoric, epistemic = enumerated(model, x)
    made = predict(model, x, num_samples=4000)
    assert float(epistemic.min()) > 0.02  # there is something to find
    torch.testing.assert_close(made.probabilities, average, atol=0.03, rtol=0)
    torch.testing.assert_close(made.entropy, predictive, atol=0.03, rtol=0)
    torch.testing.assert_close(made.aleatoric, aleatoric, atol=0.03, rtol=0)
    torch.testing.assert_close(made.epistemic, epistemic, atol=0.03, rtol=0.1)


def test_noise_of_the_logits_is_not_epistemic():
    """Without masks there is one network, however noisy its logits; with them, noise adds to the aleatoric part."""
    x = torch.randn(20, 2, generator=torch.Generator().manual_seed(1))
    assert float(predict(tiny(True, sampled="none"), x, 200).epistemic.abs().max()) < 1e-6
    quiet, loud = tiny(True), tiny(True)
    with torch.no_grad():
        for model, log_variance in ((quiet, -20.0), (loud, 0.5)):
            model.head.log_variance.weight.zero_()
            model.head.log_variance.bias.fill_(log_variance)
    calm, noisy = (predict(model, x, 2000) for model in (quiet, loud))
    assert float(noisy.aleatoric.mean()) > 1.1 * float(calm.aleatoric.mean())
    assert float(noisy.epistemic.mean()) < float(calm.epistemic.mean())


@pytest.mark.parametrize("backbone", ["dtn", "lenet", "compact", "conv4"])
@pytest.mark.parametrize("sampled", ["top", "all"])
def test_a_prediction_is_a_function_of_its_sample(backbone, sampled):
    """Not of its place, its neighbors or the batch: one by one, backwards, or all at once."""
    model = build_classifier(Network(IMAGES, 10, backbone, True, sampled=sampled), Seeds(0))
    x = torch.rand(24, *IMAGES, generator=torch.Generator().manual_seed(0))
    whole = predict(model, x, 7)
    backwards, singly = predict(model, x.flip(0), 7, batch_size=5), predict(model, x, 7, batch_size=1)
    for other in (backwards.log_probs.flip(0), singly.log_probs):
        torch.testing.assert_close(other, whole.log_probs, atol=1e-4, rtol=1e-4)
    alone = predict(model, x[13:14], 7)
    torch.testing.assert_close(alone.log_probs, whole.log_probs[13:14], atol=1e-4, rtol=1e-4)
    bytes_ = (x * 255).round().to(torch.uint8)
    torch.testing.assert_close(predict(model, bytes_, 7).log_probs, predict(model, bytes_ / 255, 7).log_probs)


def test_draws_follow_the_seed():
    model, x = build_classifier(Network((5,), 4, "mlp", True, sampled="top"), Seeds(0)), torch.randn(30, 5)
    first, again, other = (predict(model, x, 3, Seeds(seed)).log_probs for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.allclose(first, other, atol=1e-3)


def test_noise_has_its_distribution_and_is_independent():
    from scipy import stats

    noise = SampleNoise(torch.randn(400, 3, generator=torch.Generator().manual_seed(0)), Seeds(0))
    masks, normal = noise.masks("a", 5, 7, 0.3), noise.normal("a", 5, 7)
    assert masks.shape == normal.shape == (5, 400, 7)
    assert stats.binomtest(int((masks == 0).sum()), masks.numel(), 0.3).pvalue > 1e-3
    assert stats.kstest(normal.flatten(), "norm").pvalue > 1e-3
    other = noise.normal("b", 5, 7)
    pairs = {
        "draws": (normal[0], normal[1]),
        "samples": (normal[:, :-1], normal[:, 1:]),
        "places": (normal[..., :-1], normal[..., 1:]),
        "names": (normal, other),
    }
    for name, (one, two) in pairs.items():
        correlation = float(torch.corrcoef(torch.stack([one.flatten(), two.flatten()]))[0, 1])
        assert abs(correlation) < 4 / one.numel() ** 0.5, name


def test_samples_have_noise_of_their_own():
    """One draw for all samples of a batch would give all of them to one class."""
    model = tiny(True, sampled="none")
    with torch.no_grad():
        for part in (model.head.mean, model.head.log_variance):
            part.weight.zero_()
            part.bias.zero_()
    labels = predict(model, torch.randn(2000, 2, generator=torch.Generator().manual_seed(0)), 1).labels
    assert 0.45 < float(labels.double().mean()) < 0.55


def test_equal_samples_are_answered_alike():
    model = build_classifier(Network((5,), 4, "mlp", True, sampled="top"), Seeds(0))
    x = torch.randn(1, 5).repeat(9, 1)
    x[4, 2] = x[4, 2] + 0.0
    assert len(predict(model, x, 4).log_probs.round(decimals=4).unique(dim=0)) == 1


@pytest.mark.parametrize("layer", [nn.Dropout(0.3), nn.Dropout2d(0.3)], ids=["elements", "channels"])
def test_masks_drop_their_share_and_keep_the_mean(layer):
    noise = SampleNoise(torch.randn(50, 4, generator=torch.Generator().manual_seed(0)), Seeds(0))
    with masks_from(noise, [layer.eval()], 8):
        out = layer(torch.ones(8 * 50, 6, 3, 3))
    assert sorted(out.unique().tolist()) == pytest.approx([0, 1 / 0.7])
    if isinstance(layer, nn.Dropout2d):
        assert (out == out[..., :1, :1]).all()
    assert float((out[..., 0, 0] == 0).double().mean()) == pytest.approx(0.3, abs=0.03)
    assert torch.equal(layer(torch.ones(2, 6, 3, 3)), torch.ones(2, 6, 3, 3))  # outside the block nothing drops


@pytest.mark.parametrize("size", [4, 7])
def test_masks_of_channels_are_those_of_so_many_passes(size):
    """One product a channel, then the masks: as if each mask had gone through the layer by itself."""
    layer, maps = DropoutToFeatures(6, 5, 0.4).double().train(), torch.randn(3, 6, size, size).double()
    torch.manual_seed(0)
    made = layer(maps, 4)
    torch.manual_seed(0)
    keep = layer.dropout(torch.ones(4, 3, 6).double())
    grid = nn.functional.adaptive_avg_pool2d(maps, 4)
    loop = [layer.linear((grid * mask[..., None, None]).flatten(1)) for mask in keep]
    torch.testing.assert_close(made, torch.cat(loop))
    torch.manual_seed(0)
    single = layer(maps)
    torch.manual_seed(0)
    torch.testing.assert_close(single, layer.linear(nn.functional.dropout2d(grid, 0.4).flatten(1)))


@pytest.mark.parametrize(
    ("backbone", "sampled", "drops"),
    [
        ("dtn", "none", []),
        ("dtn", "top", [0.5, 0.5, 0.5]),
        ("dtn", "all", [0.1, 0.3, 0.5, 0.5, 0.5]),
        ("lenet", "top", [0.5]),
        ("lenet", "all", [0.5, 0.5]),
        ("compact", "top", [0.3, 0.5, 0.5]),
    ],
)
def test_which_layers_are_sampled(backbone, sampled, drops):
    model = build_classifier(Network(IMAGES, 10, backbone, True, sampled=sampled), Seeds(0))
    assert [layer.p for layer in model.sampled_layers()] == drops


@pytest.mark.parametrize(("sampled", "rows"), [("none", [4, 4, 4]), ("top", [4, 4, 20]), ("all", [20, 20, 20])])
def test_layers_below_the_first_sampled_one_run_once(sampled, rows):
    model = build_classifier(Network(IMAGES, 10, "lenet", True, sampled=sampled), Seeds(0)).train()
    seen = []
    for layer in (model.backbone[6], model.backbone[9], model.head.mean):
        layer.register_forward_hook(lambda _, inputs, __: seen.append(len(inputs[0])))
    logits = model.from_standard(torch.rand(4, *IMAGES), num_samples=5).logits
    assert seen == rows
    assert logits.mean.shape == (1 if sampled == "none" else 5, 4, 10)


def test_a_network_that_is_no_sequence_samples_its_heads_or_itself():
    class Own(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.dropout = nn.Linear(5, 6), nn.Dropout(0.2)

        def forward(self, x):
            return self.dropout(self.linear(x))

    top, every = (Classifier(Own(), build_head("dtn", 6, 3, False), sampled=one) for one in ("top", "all"))
    assert [layer.p for layer in top.sampled_layers()] == [0.5]
    assert [layer.p for layer in every.sampled_layers()] == [0.2, 0.5]
    x = torch.randn(9, 5)
    for model in (top, every):
        made = predict(model, x, 30)
        assert float(made.epistemic.mean()) > 1e-3
        torch.testing.assert_close(predict(model, x.flip(0), 30).log_probs.flip(0), made.log_probs)


def test_batchnorm_is_the_same_for_all_samples_of_a_step():
    """The statistics are those of all M * B rows, and running averages move once."""
    torch.manual_seed(0)
    norm = nn.BatchNorm1d(4)
    backbone = nn.Sequential(nn.Dropout(0.5), nn.Linear(3, 4), norm)
    model = Classifier(backbone, build_head("linear", 4, 2, False), sampled="all")
    seen = []
    norm.register_forward_hook(lambda _, inputs, out: seen.append((inputs[0], out)))
    model.train().from_standard(torch.randn(8, 3), num_samples=6)
    ((rows, out),) = seen
    assert rows.shape == (48, 4)
    torch.testing.assert_close(out, (rows - rows.mean(0)) / (rows.var(0, correction=0) + norm.eps).sqrt())
    assert int(norm.num_batches_tracked) == 1


def test_every_training_sample_has_masks_of_its_own():
    """In the likelihood of pre-training and in that of adaptation: the M samples are M networks."""
    model = build_classifier(Network((5,), 4, "mlp", sampled="top"), Seeds(0)).train()
    x = torch.randn(6, 5)
    step = Step(model, {"source": SourceBatch(x, torch.zeros(6, dtype=torch.long))}, Seeds(0), num_samples=8)
    samples = step.sample_log_probs("source")
    assert samples.shape == (8, 6, 4)
    assert len(samples.round(decimals=5).unique(dim=0)) == 8
    assert float(decompose(samples).epistemic.mean()) > 1e-4
    point = build_classifier(Network((5,), 4, "mlp"), Seeds(0)).train()
    one = Step(point, {"source": SourceBatch(x, torch.zeros(6, dtype=torch.long))}, Seeds(0), num_samples=8)
    assert len(one.sample_log_probs("source").round(decimals=5).unique(dim=0)) == 1


def test_a_point_network_is_its_own_only_sample():
    model, x = build_classifier(Network(IMAGES, 10, "dtn"), Seeds(0)), torch.rand(5, *IMAGES)
    with torch.no_grad():
        expected = torch.log_softmax(model.eval()(x).logits.mean, -1)
    for count in (1, 50):
        made = predict(model, x, count)
        assert torch.equal(made.log_probs, expected)
        assert float(made.epistemic.abs().max()) == 0


def test_only_named_layers_drop():
    model = build_classifier(Network(IMAGES, 10, "dtn", True, sampled="top"), Seeds(0)).train()
    kept = set(model.sampled_layers())
    with dropping_only(model, model.sampled_layers()):
        assert all(layer.training == (layer in kept) for layer in dropouts(model))
    assert all(layer.training for layer in dropouts(model))
