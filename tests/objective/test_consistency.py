"""Consistency of a plain and an augmented view."""

import pytest
import torch

from calida.data import TargetBatch
from calida.model import Network, build_classifier
from calida.objective import Consistency, Step
from calida.seeds import Seeds


@pytest.fixture
def model():
    return build_classifier(Network((1, 12, 12), 4, "dtn"), Seeds(0)).train()


def step(model, plain, view):
    labels, selected = torch.zeros(len(view), 4), torch.zeros(len(view))
    return Step(model, {"target": TargetBatch(view, labels, selected, plain)}, Seeds(1))


def test_value_and_gradient_against_a_reference(model):
    torch.manual_seed(0)
    plain, view = torch.rand(16, 1, 12, 12), torch.rand(16, 1, 12, 12)
    term = Consistency(threshold=0.35)
    here = step(model, plain, view)
    value = term(here)
    gradient = torch.autograd.grad(value, model.backbone[0].weight, retain_graph=True)[0]
    # By hand: label the plain view on its own batch statistics without dropout, then an ordinary cross-entropy.
    reference = build_classifier(Network((1, 12, 12), 4, "dtn"), Seeds(0)).train()
    for part in reference.modules():
        if "Dropout" in type(part).__name__:
            part.eval()
    with torch.no_grad():
        confidence, labels = reference(plain).logits.mean.softmax(-1).max(-1)
    sure = confidence >= 0.35
    assert 0 < int(sure.sum()) < 16
    losses = torch.nn.functional.cross_entropy(here.output("target").logits.mean[0], labels, reduction="none")
    expected = (losses * sure).sum() / 16
    assert value.item() == pytest.approx(expected.item(), rel=1e-5)
    again = torch.autograd.grad(expected, model.backbone[0].weight)[0]
    assert torch.allclose(gradient, again, atol=1e-6)


def test_nothing_sure_gives_nothing(model):
    plain = torch.rand(8, 1, 12, 12)
    value = Consistency(threshold=1.0)(step(model, plain, plain))
    value.backward()
    assert value.item() == 0
    assert all(p.grad is None or not p.grad.any() for p in model.parameters())


def test_the_labelling_pass_leaves_no_trace(model):
    plain = torch.rand(8, 1, 12, 12)
    one = step(model, plain, plain.flip(-1))
    one.output("target")
    buffers = {name: buffer.clone() for name, buffer in model.named_buffers()}
    Consistency()(one)
    assert all(torch.equal(buffer, buffers[name]) for name, buffer in model.named_buffers())
    assert all(part.training for part in model.modules())
