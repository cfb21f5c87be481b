"""What a device can do."""

from __future__ import annotations

import torch


def has_bf16(device: torch.device | str) -> bool:
    """Whether a processor or GPU computes with bfloat16 itself, instead of going through float32."""
    device = torch.device(device)
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported())
    supported = getattr(torch.cpu, "_is_avx512_bf16_supported", None)
    return device.type == "cpu" and supported is not None and bool(supported())
