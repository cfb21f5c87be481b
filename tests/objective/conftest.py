import pytest
import torch
from torch import nn

from calida.data import SourceBatch, TargetBatch
from calida.model import Classifier, build_head
from calida.objective import Step
from calida.seeds import Seeds

CLASSES = 3


@pytest.fixture
def make_step():
    """A float64 step on a small convolutional network with training-mode BatchNorm and both kinds of dropout."""

    def make(gaussian=True, num_samples=4, rows=12, seed=0, network_seed=0):
        torch.manual_seed(network_seed)
        backbone = nn.Sequential(
            nn.Conv2d(1, 4, 3, stride=2, bias=False),
            nn.BatchNorm2d(4),
            nn.Dropout2d(0.3),
            nn.Softplus(),  # smooth: gradients are never zero by chance
            nn.Flatten(),
            nn.Linear(36, 8, bias=False),
            nn.BatchNorm1d(8),
            nn.Tanh(),
            nn.Dropout(0.3),
        )
        head, sampled = build_head("linear", 8, CLASSES, gaussian), "all" if gaussian else "none"
        model = Classifier(backbone, head, sampled=sampled).double().train()
        source_x, target_x = torch.randn(2, rows, 1, 8, 8, dtype=torch.float64)
        labels = torch.softmax(torch.randn(rows, CLASSES, dtype=torch.float64), -1)
        target = TargetBatch(target_x + 1, labels, (torch.arange(rows) % 4 != 0).double())
        source = SourceBatch(source_x, torch.arange(rows) % CLASSES)
        return Step(model, {"source": source, "target": target}, Seeds(seed), num_samples)

    return make
