"""Work side by side through joblib: processes of this machine, or the workers of a Dask cluster."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from calida.errors import InputError, MissingExtraError

_SECONDS_FOR_WORKERS = 30
Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Workers:
    """Where work is done: in `jobs` processes of this machine, or on a Dask cluster by the address of its scheduler.

    The workers of a cluster must see all folders and files under the same paths.
    """

    kind: Literal["local", "dask"] = "local"
    jobs: int = os.cpu_count() or 1
    scheduler: str | None = None
    device: str | None = None

    def check(self) -> None:
        if self.kind not in ("local", "dask"):
            raise InputError(f"the engine is local or dask, not {self.kind!r}")
        if (self.kind == "dask") != (self.scheduler is not None):
            raise InputError("the engine dask and the address of a scheduler belong together")
        if self.jobs < 1:
            raise InputError(f"the number of processes is at least 1, not {self.jobs}")

    def each(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """What `work` makes of every item, in the order in which it is done.

        The items of a worker that dies go to the others, so `work` must bear to be begun twice.
        """
        import joblib

        self.check()
        with self._backend():
            # One item a dispatch: items take minutes, and a lost worker is to lose as little as it can.
            parallel = joblib.Parallel(batch_size=1, pre_dispatch="all", return_as="generator_unordered")
            yield from parallel(joblib.delayed(work)(item) for item in items)

    @contextmanager
    def _backend(self) -> Iterator[None]:
        import joblib

        if self.kind == "local":
            with (
                warnings.catch_warnings(),
                joblib.parallel_config("loky", n_jobs=self.jobs, inner_max_num_threads=1),
            ):
                # loky renews a worker that has grown between two items, and need not tell.
                warnings.filterwarnings("ignore", "A worker stopped while some jobs were given")
                yield
            return
        try:
            from distributed import Client
        except ImportError:
            raise MissingExtraError("the dask engine needs dask: pip install 'calida[dask]'") from None
        try:
            client: Any = Client(self.scheduler, timeout=_SECONDS_FOR_WORKERS, set_as_default=False)
        except (OSError, ValueError) as error:
            raise InputError(f"no Dask scheduler answers at {self.scheduler}: {error}") from None
        with client:
            if not client.ncores():
                try:
                    client.wait_for_workers(1, timeout=_SECONDS_FOR_WORKERS)
                except TimeoutError:
                    raise InputError(f"no worker has joined the Dask scheduler at {self.scheduler}") from None
            with joblib.parallel_config("dask", client=client, wait_for_workers_timeout=_SECONDS_FOR_WORKERS):
                yield
