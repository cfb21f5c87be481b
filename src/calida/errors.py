"""Every error a user can cause: one class each, one sentence each."""

import difflib
import inspect
import warnings
from collections.abc import Iterable


class CalidaError(Exception):
    """Base of all errors that calida raises on purpose.

    `option` is the option that would mend it, by its name in Python and in files; the command line says how to give it.
    """

    def __init__(self, message: str = "", option: str | None = None) -> None:
        super().__init__(message)
        self.option = option


class InputError(CalidaError, ValueError):
    """The data or a setting cannot be used; the message says which and why."""


class MissingExtraError(CalidaError, ImportError):
    """An optional package is needed and cannot be imported."""


class DownloadError(CalidaError, OSError):
    """A file cannot be fetched or stored; the message names its address and what to do."""


class WriteError(CalidaError, OSError):
    """A file cannot be written; the message names it, and nothing half-written is left."""


class CheckpointError(CalidaError):
    """A saved file is truncated, foreign, or of another run."""


class NonFiniteError(CalidaError, ArithmeticError):
    """A loss term became infinite or NaN; training stopped before the step was taken."""


class LostProcessError(CalidaError):
    """Of several processes that train together, another one has ended or cannot be reached."""


class CalidaWarning(UserWarning):
    """Something that is not wrong but may surprise."""


def warn_user(sentence: str) -> None:
    """Warn of something that is not wrong but may surprise, at the line outside this package that led to it."""
    package = __name__.split(".")[0]
    level, place, frame = 1, 1, inspect.currentframe()
    while frame is not None:  # what others' decorators put between two of our functions is no user's line
        if frame.f_globals.get("__name__", "").split(".")[0] == package:
            level = place
        place, frame = place + 1, frame.f_back
    warnings.warn(sentence, CalidaWarning, stacklevel=level + 1)


def suggest(name: object, known: Iterable[str], listed: bool = True) -> str:
    """For the end of a message: the known names that are nearest to one that is not, or, if `listed`, all of them."""
    names = list(known)
    if near := difflib.get_close_matches(str(name), names):
        return f"; did you mean {', '.join(near)}"
    return f"; there are {', '.join(names)}" if listed else ""
