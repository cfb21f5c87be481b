"""VisDA's network and layout, small: what table 3 runs on where the data and a GPU are at hand."""

import pytest
import torch

from calida.data import TargetBatch, read_collection
from calida.model import Network, build_classifier
from calida.objective import Step
from calida.recipes import phases
from calida.seeds import Seeds
from reproduction.tables import VISDA17
from reproduction.tasks import PROTOCOLS
from reproduction.visda17 import CLASSES, generate_visda17

TASK = PROTOCOLS["main"][VISDA17]


def test_resnet_101_with_its_two_heads_takes_a_step_with_gradient_variance():
    pytest.importorskip("timm")
    recipe = TASK.job("brer-inf-gvr", 0).recipe
    assert (recipe.optimization.optimizer, recipe.optimization.batch_size) == ("sgd", 32)
    assert recipe.gradient_variance.groups == 4
    model = build_classifier(Network((3, 32, 32), 12, TASK.backbone, gaussian=True, head=TASK.head), Seeds(0)).train()
    for branch in (model.head.mean, model.head.log_variance):
        assert [tuple(layer.weight.shape) for layer in branch if hasattr(layer, "weight")] == [(512, 2048), (12, 512)]
    assert sum(p.numel() for p in model.backbone.parameters()) == pytest.approx(42.5e6, rel=0.01)
    objective = phases(recipe.with_settings(batch_size=4, groups=2, share=1.0))[1].objective
    labels = torch.eye(12)[:4]
    step = Step(model, {"target": TargetBatch(torch.rand(4, 3, 32, 32), labels, torch.ones(4))}, Seeds(0), 10)
    values = objective.backward(step, {})
    assert values["gradient_variance"] > 0
    assert all(bool(p.grad.isfinite().all()) for p in model.parameters())


def test_the_official_lists_name_the_images_of_the_class_folders(tmp_path):
    root = generate_visda17(tmp_path, per_class=2)
    folder = read_collection(str(root / "train"), Seeds(0), True)
    listed = read_collection(str(root / "train" / "image_list.txt"), Seeds(0), True)
    assert dict(zip(folder.names, folder.labels, strict=True)) == {
        name: CLASSES[int(label)] for name, label in zip(listed.names, listed.labels, strict=True)
    }
    assert sorted(set(folder.labels)) == sorted(CLASSES)
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    generate_visda17(tmp_path, per_class=2)
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before
