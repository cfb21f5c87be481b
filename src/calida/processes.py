"""Several processes that train one model: who they are, which rows of a batch are whose, what they tell each other.

Every process draws the same random numbers for the whole batch and keeps those of its own rows. What is computed from
gathered rows, such as a loss, is computed alike by all. For a scalar that all processes compute alike:

- a gradient by what entered through `Share.take` is the whole gradient, on every process;
- a gradient by the parameters is the whole one on the mean over processes, which `Processes.average_gradients` takes.

One process alone is the special case in which nothing has to be told to anybody, and every method is the identity.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import groupby
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from calida.errors import CalidaError, InputError, LostProcessError
from calida.launch import is_one_of_several
from calida.watch import LOST, Watch, keep_lines

_MEETING = timedelta(minutes=10)  # until all processes have come to where training starts
_WORKING = timedelta(days=7)  # one may work alone for long; that another has died is noticed at once, by its connection
_REASON = "calida/why"


@dataclass(frozen=True)
class Processes:
    """This process and those that train with it."""

    rank: int = 0
    count: int = 1
    group: Any = field(default=None, repr=False, compare=False)
    local_rank: int = 0  # on this machine
    local_count: int = 1
    watch: Watch | None = field(default=None, repr=False, compare=False)

    @property
    def first(self) -> bool:
        """Whether this is the process that writes and speaks."""
        return self.rank == 0

    @property
    def alone(self) -> bool:
        return self.count == 1

    def share(self, rows: int, blocks: int | None = None) -> Share:
        """Which of a batch's rows are whose: even shares, cut between blocks of rows where there are blocks."""
        blocks = rows if blocks is None else blocks
        first = [-(-rank * blocks // self.count) for rank in range(self.count + 1)]  # the first process is never idle
        return Share(self, tuple(block * rows // max(blocks, 1) for block in first))

    def device(self, asked: torch.device) -> torch.device:
        """The asked device; of several GPUs, the one that is this process's own."""
        if self.alone or asked.type != "cuda":
            return asked
        if str(asked) != "cuda":
            raise InputError("each of several processes takes a GPU of its own: ask for cuda, not for one by number")
        if (found := torch.cuda.device_count()) < self.local_count:
            there = f"{self.local_count} processes need as many GPUs, and there are {found}"
            raise InputError(f"{there}; start fewer, or use the cpu")
        torch.cuda.set_device(self.local_rank)
        return torch.device("cuda", self.local_rank)

    def sum(self, value: Tensor) -> Tensor:
        """The sum over processes, in place and given back."""
        return self._reduce(value, "SUM")

    def maximum(self, value: Tensor) -> Tensor:
        """The largest over processes, in place and given back."""
        return self._reduce(value, "MAX")

    def stack(self, value: Tensor) -> Tensor:
        """Everybody's value of one shape, [...] -> [N, ...], through which a gradient flows."""
        own = value[None]
        return own if self.alone else _Gathered.apply(own, Share(self, tuple(range(self.count + 1))))

    def sum_all(self, values: Sequence[Tensor]) -> list[Tensor]:
        """The sums over processes of several tensors, told at once for each type of number."""
        if self.alone or not values:
            return list(values)
        sums: dict[int, Tensor] = {}
        places = sorted(range(len(values)), key=lambda place: str(values[place].dtype))
        for _, same in groupby(places, key=lambda place: values[place].dtype):
            chosen = list(same)
            flat = self.sum(torch.cat([values[place].detach().flatten() for place in chosen]))
            parts = flat.split([values[place].numel() for place in chosen])
            sums |= {place: part.view(values[place].shape) for place, part in zip(chosen, parts, strict=True)}
        return [sums[place] for place in range(len(values))]

    def average_gradients(self, model: nn.Module) -> None:
        """Give every process the mean over processes of each parameter's gradient."""
        gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
        if not self.alone:
            for gradient, total in zip(gradients, self.sum_all(gradients), strict=True):
                gradient.copy_(total.div_(self.count))

    @torch.no_grad()
    def from_first(self, tensors: Iterable[Tensor]) -> None:
        """Overwrite tensors by those of the first process."""
        if not self.alone:
            for tensor in tensors:
                with _talking():
                    whole = tensor.contiguous()
                    dist.broadcast(whole, 0, group=self.group)
                    tensor.copy_(whole)

    def say(self, content: bytes | None) -> bytes:
        """What the first process says; the others give nothing that counts."""
        if self.alone:
            return content or b""
        said = bytearray(content or b"") if self.first else bytearray()
        size = torch.tensor([len(said)])
        self.from_first([size])
        said = said if self.first else bytearray(int(size))
        if said:
            self.from_first([torch.frombuffer(said, dtype=torch.uint8)])
        return bytes(said)

    def everyones(self, text: str) -> list[str]:
        """A text of each process, by rank."""
        if self.alone:
            return [text]
        own = torch.tensor(list(text.encode()), dtype=torch.uint8)
        sizes = self.stack(torch.tensor(len(own))).tolist()
        together = Share(self, tuple(sum(sizes[:rank]) for rank in range(self.count + 1))).gather(own)
        return [bytes(part.tolist()).decode() for part in together.split(sizes)]

    @contextmanager
    def first_ahead(self) -> Iterator[None]:
        """The first process goes through the block before the others do, then the first of each other machine.

        What they download or compute is there for those who come after them.
        """
        turn = 0 if self.first else 1 if self.local_rank == 0 else 2
        for _ in range(turn):
            self.sum(torch.zeros(1))
        yield
        for _ in range(2 - turn):
            self.sum(torch.zeros(1))

    @contextmanager
    def training(self) -> Iterator[None]:
        """While processes depend on each other: one that dies ends them all. They leave the block together."""
        if self.watch is not None:
            self.watch.on = True
        try:
            yield
            self.sum(torch.zeros(1))
        finally:
            if self.watch is not None:
                self.watch.on = False

    def _reduce(self, value: Tensor, operation: str) -> Tensor:
        if not self.alone:  # there are builds of torch that know no other processes
            with _talking():
                dist.all_reduce(value, getattr(dist.ReduceOp, operation), group=self.group)
        return value


ALONE = Processes()


@dataclass(frozen=True)
class Share:
    """The rows of a batch that are this process's own, among all that there are."""

    processes: Processes
    edges: tuple[int, ...]  # where the rows of each process begin, and the number of all

    @staticmethod
    def whole(rows: int) -> Share:
        """All rows are one's own."""
        return Share(ALONE, (0, rows))

    @property
    def count(self) -> int:
        """Of all rows."""
        return self.edges[-1]

    @property
    def start(self) -> int:
        return self.edges[self.processes.rank]

    @property
    def stop(self) -> int:
        return self.edges[self.processes.rank + 1]

    def own(self, blocks: int) -> range:
        """Which of so many nearly equal blocks of rows lie within one's own."""
        places = [block for block in range(blocks) if self.start <= block * self.count // blocks < self.stop]
        return range(places[0], places[-1] + 1) if places else range(0)

    def take(self, rows: Tensor, dim: int = 0) -> Tensor:
        """One's own of all rows; a gradient by all of them is the same on every process."""
        if self.processes.alone:
            return rows
        if rows.requires_grad:
            taken: Tensor = _Taken.apply(rows.movedim(dim, 0), self)
            return taken.movedim(0, dim)
        return rows.narrow(dim, self.start, self.stop - self.start)

    def gather(self, own: Tensor, dim: int = 0) -> Tensor:
        """All rows, from everybody's own; gradients flow back to whose they are."""
        if self.processes.alone:
            return own
        gathered: Tensor = _Gathered.apply(own.movedim(dim, 0), self)
        return gathered.movedim(0, dim)

    def extremes(self, own: Tensor) -> tuple[Tensor, Tensor]:
        """The smallest and the largest value of all rows."""
        if self.processes.alone:
            return own.amin(), own.amax()
        found = (own.amin().neg(), own.amax()) if own.numel() else (own.new_tensor(-torch.inf),) * 2
        low, high = self.processes.maximum(torch.stack(found)).unbind()
        return low.neg(), high

    def mean(self, own: Tensor) -> Tensor:
        """Over all rows."""
        return own.mean(0) if self.processes.alone else self.processes.sum(own.sum(0)) / self.count

    def std(self, own: Tensor) -> Tensor:
        """Over all rows, without a correction for their number."""
        if self.processes.alone:
            return own.std(0, correction=0)
        return (self.processes.sum((own - self.mean(own)).square().sum(0)) / self.count).sqrt()


class _Gathered(torch.autograd.Function):
    """Own rows -> all rows; backwards, everybody's gradients by one's own rows, added up."""

    @staticmethod
    def forward(ctx: Any, own: Tensor, share: Share) -> Tensor:
        ctx.share = share
        sizes = [stop - start for start, stop in zip(share.edges, share.edges[1:], strict=False)]
        padded = own.new_zeros((max(sizes), *own.shape[1:]))
        padded[: len(own)] = own
        parts = [torch.empty_like(padded) for _ in sizes]
        with _talking():
            dist.all_gather(parts, padded, group=share.processes.group)
        return torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)])

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return _Scattered.apply(gradient, ctx.share), None


class _Scattered(torch.autograd.Function):
    """Everybody's values for all rows -> their sum for one's own rows; backwards, gathered again."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, share: Share) -> Tensor:
        ctx.share = share
        total = share.processes.sum(rows.clone(memory_format=torch.contiguous_format))
        return total[share.start : share.stop].clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return _Gathered.apply(gradient, ctx.share), None


class _Taken(torch.autograd.Function):
    """All rows, the same on every process -> own rows; backwards, the gradient by all of them.

    The processes' losses are one loss: own gradients hold it as often as there are processes.
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor, share: Share) -> Tensor:
        ctx.share = share
        return rows[share.start : share.stop].clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return ctx.share.gather(gradient) / ctx.share.processes.count, None


@contextmanager
def _talking() -> Iterator[None]:
    """A broken connection as an error of calida's own."""
    try:
        yield
    except RuntimeError as error:
        raise LostProcessError(LOST) from error


_joined: list[Processes] = []


def join() -> Processes:
    """The processes that torchrun has started, once all of them have come here; without torchrun, this one alone."""
    if not _joined:
        _joined.append(_meet() if is_one_of_several() else ALONE)
    return _joined[0]


def _meet() -> Processes:
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() and dist.is_nccl_available() else "gloo"
    try:
        if not dist.is_initialized():
            dist.init_process_group(backend, timeout=_MEETING)
        group = dist.new_group(backend=backend, timeout=_WORKING)
    except (RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise LostProcessError(f"the processes that torchrun started have not found each other: {reason}") from error
    atexit.register(_part)
    on_machine = (int(os.environ.get("LOCAL_RANK", "0")), int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
    found = Processes(dist.get_rank(), dist.get_world_size(), group, *on_machine)
    return replace(found, watch=keep_lines(found.rank, found.count, os.environ["MASTER_ADDR"], found.say))


def _part() -> None:
    """Close the connections while Python still runs; left to the end of the process, their threads may abort it."""
    _joined.clear()
    with suppress(RuntimeError, ValueError):  # whoever has gone before needs no goodbye
        dist.destroy_process_group()


@contextmanager
def telling_reasons() -> Iterator[None]:
    """Join, and where another process fails in the block by an error that it can name, let the first one raise that."""
    processes = join()
    try:
        yield
    except LostProcessError as lost:
        reason = _reason() if processes.first else None
        if reason is None:
            raise
        raise InputError(reason) from lost
    except (CalidaError, OSError) as error:
        if not processes.first:
            dist.distributed_c10d._get_default_store().set(_REASON, f"process {processes.rank}: {error}")
        raise


def _reason() -> str | None:
    store = dist.distributed_c10d._get_default_store()
    with suppress(RuntimeError):  # where nobody has said anything
        store.wait([_REASON], timedelta(seconds=1))
        return str(store.get(_REASON).decode())
    return None
