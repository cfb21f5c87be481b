import importlib.util

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

# Small tensors gain nothing from threads, two processes may share the cores, and sums must be cut in the same places
# for runs to be compared bit for bit: one thread from the first fixture on.
torch.set_num_threads(1)
