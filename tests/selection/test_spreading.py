"""Label spreading against its closed form, and its limits."""

import pytest
import torch

from calida.selection import neighbors as module
from calida.selection import smooth_over_neighbors


def problem(count=40, classes=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    log_probs = torch.randn(count, classes, generator=generator, dtype=torch.float64).log_softmax(1)
    return log_probs, torch.randn(count, 5, generator=generator, dtype=torch.float64)


def naive_weights(features, neighbors):
    unit = torch.nn.functional.normalize(features.float(), dim=1)
    weights = torch.zeros(len(unit), len(unit), dtype=torch.float64)
    for row in range(len(unit)):
        similar = sorted((float(unit[row] @ unit[other]), other) for other in range(len(unit)) if other != row)
        for value, other in similar[-neighbors:]:
            weights[row, other] = max(value, 1e-6)
    return weights / weights.sum(1, keepdim=True)


def test_it_is_the_solution_of_the_linear_system():
    log_probs, features = problem()
    weights, share = naive_weights(features, 4), 0.5
    system = torch.eye(len(weights), dtype=torch.float64) - share * weights
    expected = torch.linalg.solve(system, (1 - share) * log_probs.exp())
    found = smooth_over_neighbors(log_probs, features, 4, share)
    assert torch.allclose(found.exp(), expected, atol=1e-5)  # 0.5 ** 20 is left
    assert torch.allclose(found.exp().sum(1), torch.ones(len(found), dtype=torch.float64))


def test_no_share_changes_nothing_and_one_sample_has_no_neighbors():
    log_probs, features = problem()
    assert smooth_over_neighbors(log_probs, features, 4, 0.0) is log_probs
    assert smooth_over_neighbors(log_probs[:1], features[:1], 4, 0.9) is log_probs[:1] or len(log_probs[:1]) == 1


def test_a_cluster_outvotes_its_odd_member():
    centres = torch.eye(2).repeat_interleave(10, 0) * 10
    features = centres + 0.1 * torch.randn(20, 2, generator=torch.Generator().manual_seed(0))
    log_probs = torch.tensor([[0.9, 0.1]] * 10 + [[0.1, 0.9]] * 10).log()
    log_probs[0] = torch.tensor([0.3, 0.7]).log()
    assert smooth_over_neighbors(log_probs, features, 5, 0.8).argmax(1).tolist() == [0] * 10 + [1] * 10


def test_classes_and_samples_may_be_permuted():
    log_probs, features = problem()
    order, classes = torch.randperm(40, generator=torch.Generator().manual_seed(1)), torch.tensor([2, 0, 1])
    found = smooth_over_neighbors(log_probs, features, 4, 0.7)
    moved = smooth_over_neighbors(log_probs[order][:, classes], features[order], 4, 0.7)
    assert torch.allclose(moved, found[order][:, classes], atol=1e-12)


@pytest.mark.parametrize("anchors", [7, 39])
def test_of_many_samples_a_part_is_looked_at(monkeypatch, anchors):
    monkeypatch.setattr(module, "_ANCHORS", anchors)
    monkeypatch.setattr(module, "_ROWS", 16)
    log_probs, features = problem()
    found = smooth_over_neighbors(log_probs, features, 4, 0.7)
    assert torch.allclose(found.exp().sum(1), torch.ones(40, dtype=torch.float64))
