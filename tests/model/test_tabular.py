"""The backbone for tables: ramps over quantiles, whatever shift; residual blocks; the average of weights."""

import numpy as np
import pytest
import torch

import calida
from calida.model import Network, build_classifier
from calida.model.tabular import PiecewiseLinear, ResidualBlock
from calida.seeds import Seeds

RANDOM = torch.Generator().manual_seed(0)


def test_ramps_are_linear_interpolation_between_quantiles():
    x = torch.cat([torch.randn(500, 1, generator=RANDOM), torch.randint(0, 2, (500, 1), generator=RANDOM)], 1).double()
    layer = PiecewiseLinear(2, pieces=8, width=1).double()
    layer.fit_inputs(x)
    torch.nn.init.ones_(layer.weight)
    new = 3 * torch.randn(200, 2, generator=RANDOM).double()
    # A ramp up by one over each piece: together, how many pieces a value has come through.
    quantiles = np.quantile(x[:, 0].numpy(), np.linspace(0, 1, 9), method="nearest")
    np.testing.assert_allclose(layer.edges[0], quantiles, atol=0.05)
    expected = np.interp(new[:, 0], layer.edges[0], np.arange(9.0))
    np.testing.assert_allclose(layer(new)[:, 0].detach(), expected, atol=1e-9)
    # An indicator has two values and one piece between them.
    np.testing.assert_allclose(layer(new)[:, 1].detach(), new[:, 1].clamp(0, 1), atol=1e-9)


def test_pieces_hold_equally_many_samples_and_what_lies_beyond_is_the_end():
    x = torch.randn(801, 3, generator=RANDOM).exp()
    layer = PiecewiseLinear(3)
    layer.fit_inputs(x)
    counts = np.stack([np.histogram(x[:, column], layer.edges[column])[0] for column in range(3)])
    assert np.abs(counts - 100).max() <= 1
    ends = layer(torch.stack([x.amin(0), x.amax(0)]))
    torch.testing.assert_close(layer(torch.stack([x.amin(0) - 9, x.amax(0) * 99])), ends)


def test_a_block_without_weights_changes_nothing():
    block, x = ResidualBlock(5, 0.0), torch.randn(7, 5, generator=RANDOM)
    for parameter in block.parameters():
        torch.nn.init.zeros_(parameter)
    torch.testing.assert_close(block(x), x)


def test_quantiles_are_those_of_the_source_and_saved_with_the_model(tmp_path):
    x = torch.rand(200, 3, generator=RANDOM) ** 4
    labels = (x[:, 0] > 0.1).long()
    adapted = calida.adapt((x, labels), x + 0.01, "rer-1", backbone="tabular", epochs=3, rounds=1, guard=False)
    fresh = build_classifier(Network((3,), 2, "tabular"), Seeds(0))
    edges = [next(one for one in net.modules() if isinstance(one, PiecewiseLinear)).edges for net in
             (adapted.classifier, fresh)]  # fmt: skip
    assert not torch.allclose(*edges)
    adapted.save(tmp_path / "model")
    same = calida.load(tmp_path / "model")
    assert torch.equal(same.predict(x).log_probs, adapted.predict(x).log_probs)


def test_it_learns_steps_that_a_plain_network_smooths_over():
    x = torch.rand(900, 4, generator=RANDOM)
    labels = (x[:, 0] * 8).long() % 2
    found = {
        backbone: calida.adapt(
            (x[:600], labels[:600]), x[600:], "source", backbone=backbone, epochs=15, guard=False
        ).predict(x[600:])
        for backbone in ("mlp", "tabular")
    }
    right = {name: float((one.labels == labels[600:]).double().mean()) for name, one in found.items()}
    assert right["tabular"] > max(0.9, right["mlp"])


def test_the_average_of_weights_ends_pre_training():
    x = torch.randn(120, 4, generator=RANDOM)
    labels = (x[:, 0] > 0).long()

    def weights(**settings):
        adapted = calida.adapt((x, labels), x, "source", epochs=3, guard=False, batch_size=20, **settings)
        return torch.cat([value.flatten() for value in adapted.classifier.backbone.parameters()])

    last = weights()
    torch.testing.assert_close(weights(weight_average=1e-9), last)  # looks back at nothing
    assert (weights(weight_average=1.0) - last).abs().max() > 1e-3
    with pytest.raises(calida.InputError, match="weight_average"):
        weights(weight_average=-1)
