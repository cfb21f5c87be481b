import importlib.util

import pytest
import torch

# Some CPU builds of torchvision come without their compiled operators and then fail to import, which takes timm and
# torchmetrics along. Naming the two operators is enough for what the tests use (neither is ever called).
_operators = torch.library.Library("torchvision", "FRAGMENT")
if importlib.util.find_spec("torchvision"):
    try:
        import torchvision  # noqa: F401
    except RuntimeError:
        for _name in ("nms", "qnms"):
            _operators.define(f"{_name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


@pytest.fixture(autouse=True)
def one_thread():
    """Two processes may share the cores; small tensors gain nothing from threads."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
