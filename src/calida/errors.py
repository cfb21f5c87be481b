"""Every error a user can cause: one class each, one sentence each."""


class CalidaError(Exception):
    """Base of all errors that calida raises on purpose."""


class InputError(CalidaError, ValueError):
    """The data or a setting cannot be used; the message says which and why."""


class MissingExtraError(CalidaError, ImportError):
    """An optional package is needed and cannot be imported."""


class DownloadError(CalidaError, OSError):
    """A file cannot be fetched or stored; the message names its address and what to do."""


class CheckpointError(CalidaError):
    """A saved file is truncated, foreign, or of another run."""


class NonFiniteError(CalidaError, ArithmeticError):
    """A loss term became infinite or NaN; training stopped before the step was taken."""
