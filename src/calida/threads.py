"""One thread for small fits of scikit-learn."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

_SMALL = 2_000_000  # values; below, threads that wait for each other cost more than they bring


def threads_for(values: int) -> AbstractContextManager[Any]:
    """All threads for a fit on many values, one for a fit on few.

    The threads of OpenBLAS and of OpenMP wait for each other and for torch's. After a training step on two free cores,
    a logistic regression of 2,000 rows took ten times as long with two threads as with one.
    """
    if values > _SMALL:
        return nullcontext()
    from threadpoolctl import threadpool_limits  # imported late: it comes with scikit-learn

    return threadpool_limits(1)  # type: ignore[no-any-return]
