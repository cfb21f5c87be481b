"""What Ctrl-C and SIGTERM do to a command: they end it, without a traceback, and what is open is closed."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


def stop_quietly() -> None:
    """From now on Ctrl-C raises KeyboardInterrupt in work, and ends the process at once in an import.

    A module that is cut in two can turn the interrupt into any error, and while one is imported nothing is open.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # a shell's background has it ignored
        signal.signal(signal.SIGINT, _interrupt)


def end_at_once() -> None:
    """From now on Ctrl-C ends the process as it ends any other: there is nothing left to close but Python itself."""
    if signal.getsignal(signal.SIGINT) is _interrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _interrupt(number: int, frame: FrameType | None) -> None:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            end_at_once()
            signal.raise_signal(number)
        frame = frame.f_back
    raise KeyboardInterrupt


@contextmanager
def terminable() -> Iterator[None]:
    """Let SIGTERM end what is inside as Ctrl-C does: a cluster's way of ending a process saves what a person's does."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
