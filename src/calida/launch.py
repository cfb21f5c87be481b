"""What torchrun tells the processes that it starts; known before torch is loaded."""

from __future__ import annotations

import os


def is_one_of_several() -> bool:
    """Whether torchrun has started this process beside others."""
    return "TORCHELASTIC_RUN_ID" in os.environ and int(os.environ.get("WORLD_SIZE", "1")) > 1


def is_first() -> bool:
    """Whether this process is the one that speaks to people."""
    return not is_one_of_several() or os.environ.get("RANK") == "0"


def is_restarted() -> bool:
    """Whether torchrun has started this process anew, after one had died."""
    return is_one_of_several() and os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") != "0"
