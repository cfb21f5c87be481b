"""How many threads scikit-learn works with."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

_SMALL = 8_000_000  # values; below, threads that wait for each other cost more than they bring


def one_thread() -> AbstractContextManager[Any]:
    """One thread for what happens inside.

    The threads of OpenBLAS and of OpenMP wait for each other and for torch's. After a training step on two free cores,
    a logistic regression of 2,000 rows took ten times as long with two threads as with one, and check classifiers on
    3,600 embeddings nearly twice as long.
    """
    from threadpoolctl import threadpool_limits  # imported late: it comes with scikit-learn

    return threadpool_limits(1)  # type: ignore[no-any-return]


def threads_for(values: int) -> AbstractContextManager[Any]:
    """All threads for a fit on many values, one for a fit on few."""
    return nullcontext() if values > _SMALL else one_thread()
