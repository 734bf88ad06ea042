"""`Group`: the workers of this job, and collectives that raise instead of hanging."""

from __future__ import annotations

import atexit
import contextlib
import copy
import datetime
import socket
import time
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from .. import accelerator
from .._process import env
from ..error import MXNetError
from ..ops.nn import synchronized_statistics
from .channel import closing_listeners
from .heartbeat import (
    OWN_WORK,
    HeartbeatMonitor,
    WorkerFailed,
    describe_line,
    end_process,
    silence_limit,
)
from .rendezvous import Job, Members, join, read_job
from .store import JobStore


class Disagreement(MXNetError, ValueError):
    """Raised if workers of one job make different calls at the same time.

    >>> issubclass(mx.distributed.Disagreement, mx.base.MXNetError)
    True
    """


NOT_LAUNCHED = (
    "A distributed kvstore needs to know the other workers, but no launcher has set them. Start "
    "the program with `mx launch -n 4 python train.py`, with torchrun, or with MXNet's launch.py; "
    "or use kvstore 'device' in one process."
)
SLICE = datetime.timedelta(seconds=1)  # seconds of a wait between checks of the monitor


class Group:
    """All workers of a job; with one worker every collective is the identity.

    `job` is None in a program without a launcher.
    """

    def __init__(self, job: Job | None = None) -> None:
        self.job = job
        self.rank, self.size, self.hosts = 0, 1, [""]
        self.monitor: Any = None  # a HeartbeatMonitor, unless there is no job
        self.store: Any = None
        self._processes: Any = None  # torch's process group; None: all workers
        # A second process group, for small messages between large collectives.
        self._side: Any = None
        self.bytes_sent = 0  # bytes that this rank has sent in reductions and gathers
        self.reducer: Any = None  # for sums without a store
        self.is_closed = False
        self.timeout = env.get("MXNET_KVSTORE_TIMEOUT")
        if job is not None:
            self._connect(job)
        elif dist.is_initialized():  # initialized by the program
            self.rank, self.size = dist.get_rank(), dist.get_world_size()
            self._side = dist.new_group(backend="gloo")
            self.hosts = self.gather_text(socket.gethostname(), "hosts")
        self.local_rank, self.local_size = self._local_rank_and_size()
        self.ranks = list(range(self.size))  # ranks of the members among all workers

    def split(self, ranks: Sequence[int]) -> Group:
        """Return the group of some workers; all workers must call it together.

        On the other workers the new group has the rank -1 and cannot be used.
        """
        part = copy.copy(self)
        part.ranks, part.reducer = sorted(ranks), None
        own = self.ranks[self.rank]
        part.rank, part.size = part.ranks.index(own) if own in ranks else -1, len(part.ranks)
        part.hosts = [self.hosts[rank] for rank in part.ranks]
        if self.size > 1:
            with closing_listeners():
                part._processes = dist.new_group(part.ranks)
                part._side = dist.new_group(part.ranks, backend="gloo")
        return part

    def _connect(self, job: Job) -> None:
        members: Members = join(job)
        self.rank, self.size, self.hosts = members.rank, job.size, members.hosts
        self.store = members.store
        self._server = members.server  # kept as long as the group
        self.monitor = HeartbeatMonitor(
            members.store.clone(),
            self.rank,
            self.size,
            silence_limit(),
            serves=members.server is not None,
            rendezvous=job.describe_rendezvous(members.hosts[0]),
        )
        self.monitor.start()  # a worker may fail while the others connect to it
        with closing_listeners():
            self._start_processes(members.store)
        atexit.register(self._abandon)

    def _start_processes(self, store: JobStore) -> None:
        """Connect torch's process groups of all workers."""
        if self.size > 1 and not dist.is_initialized():
            dist.init_process_group(
                accelerator.distributed_backend(),
                store=dist.PrefixStore("torch", store),
                rank=self.rank,
                world_size=self.size,
                # The monitor's limit is shorter, and its error names the late rank.
                timeout=datetime.timedelta(seconds=self.timeout + 60),
            )
        if self.size > 1:
            self._side = dist.new_group(backend="gloo")
            synchronized_statistics.sum_in_place = lambda tensor: self.sum(tensor, "SyncBatchNorm")

    def _local_rank_and_size(self) -> tuple[int, int]:
        host = self.hosts[self.rank]
        rank, size = self.hosts[: self.rank].count(host), self.hosts.count(host)
        if self.job is not None:
            rank = rank if self.job.local_rank is None else self.job.local_rank
            size = size if self.job.local_size is None else self.job.local_size
        return rank, size

    # -- collectives --------------------------------------------------------------------------

    def start_sum(self, tensor: Tensor, op: Any = dist.ReduceOp.SUM) -> Any:
        """Start to sum a tensor in place over all ranks; `finish` waits for it."""
        if self.size == 1:
            return None
        # A ring: every rank sends each part of the tensor twice, except one.
        self.bytes_sent += 2 * (self.size - 1) * tensor.numel() * tensor.element_size() // self.size
        return dist.all_reduce(tensor, op, group=self._processes, async_op=True)

    def sum(self, tensor: Tensor, what: str) -> Tensor:
        """Sum a tensor in place over all ranks, and return it."""
        self.finish(self.start_sum(tensor), what)
        return tensor

    def broadcast(self, tensor: Tensor, root: int, what: str) -> Tensor:
        """Overwrite a tensor by the one of the root, and return it."""
        if self.size > 1:
            work = dist.broadcast(tensor, group=self._processes, group_src=root, async_op=True)
            self.finish(work, what)
        return tensor

    def gather(self, tensor: Tensor, what: str, on: Any = None) -> Tensor:
        """Stack the tensors of all ranks, which have the same shape."""
        if self.size == 1:
            return tensor.unsqueeze(0)
        self.bytes_sent += (self.size - 1) * tensor.numel() * tensor.element_size()
        rows = tensor.new_empty((self.size, *tensor.shape))
        parts = list(rows.unbind(0))
        processes = self._processes if on is None else on
        work = dist.all_gather(parts, tensor.contiguous(), group=processes, async_op=True)
        self.finish(work, what)
        return rows

    def exchange_ragged(self, parts: Sequence[Tensor], what: str) -> list[Tensor]:
        """Send one flat tensor to each rank, and return the received tensors by rank."""
        if self.size == 1:
            return list(parts)
        lengths = torch.tensor([len(part) for part in parts])
        expected = torch.empty_like(lengths)
        self.bytes_sent += (self.size - 1) * lengths.element_size()
        work = dist.all_to_all_single(expected, lengths, group=self._processes, async_op=True)
        self.finish(work, what)
        received = parts[0].new_empty(int(expected.sum()))
        sizes = expected.tolist()
        work = self.start_exchange(received, torch.cat(list(parts)), sizes, lengths.tolist())
        self.finish(work, what)
        return list(received.split(sizes))

    def start_exchange(
        self, received: Tensor, sent: Tensor, received_sizes: Sequence[int], sizes: Sequence[int]
    ) -> Any:
        """Start to send consecutive parts of a flat tensor to the ranks; `finish` waits for it."""
        if self.size == 1:
            received.copy_(sent)
            return None
        self.bytes_sent += (sent.numel() - sizes[self.rank]) * sent.element_size()
        sizes, received_sizes = list(sizes), list(received_sizes)
        return dist.all_to_all_single(
            received, sent, received_sizes, sizes, group=self._processes, async_op=True
        )

    def gather_bytes(self, data: bytes, what: str) -> list[bytes]:
        """Return the bytes of all ranks, which may differ in length."""
        if self.size == 1:
            return [data]
        lengths = self.gather(torch.tensor([len(data)]), what, self._side).flatten().tolist()
        padded = torch.frombuffer(bytearray(data.ljust(max(1, *lengths), b"\0")), dtype=torch.uint8)
        rows = self.gather(padded, what, self._side)
        return [row[:length].numpy().tobytes() for row, length in zip(rows, lengths, strict=True)]

    def gather_text(self, text: str, what: str) -> list[str]:
        """Return the strings of all ranks."""
        return [data.decode() for data in self.gather_bytes(text.encode(), what)]

    def agree(self, facts: str, what: str) -> None:
        """Raise on all ranks unless `facts` are equal; the error shows those of each rank."""
        values = self.gather_text(facts, f"a comparison of {what}")
        if len(set(values)) > 1:
            raise Disagreement(f"Workers differ in {what}: {ranks_of(values)}.")

    def gather_ragged(self, tensor: Tensor, what: str) -> list[Tensor]:
        """Return the tensors of all ranks, which may differ in their first dimension."""
        if self.size == 1:
            return [tensor]
        lengths = self.gather(torch.tensor([len(tensor)]), what).flatten().tolist()
        padded = tensor.new_zeros((max(lengths), *tensor.shape[1:]))
        padded[: len(tensor)] = tensor
        rows = self.gather(padded, what) if max(lengths) else [padded] * self.size
        return [row[:length] for row, length in zip(rows, lengths, strict=True)]

    def barrier(self, what: str = "a barrier") -> None:
        """Wait for all ranks."""
        self.sum(torch.zeros(1), what)

    # -- waiting ------------------------------------------------------------------------------

    def finish(self, work: Any, what: str) -> None:
        """Wait for a collective; raise `WorkerFailed` with the name of a missing worker."""
        if work is None:
            return
        monitor = self.monitor
        if monitor is None:  # the process group was made by the program itself
            work.wait()
            return
        monitor.enter(what)
        start = time.monotonic()
        while not _ends_soon(work):
            failure = self._failure(what, start)
            if failure is not None:
                raise failure
        try:
            work.wait()  # returns, or raises its error
        except RuntimeError as error:
            raise self._lost(error, what, start) from None
        monitor.leave()

    def _failure(self, what: str, start: float) -> WorkerFailed | None:
        """Return why a collective cannot be finished, or None if it may still finish."""
        monitor, waited = self.monitor, time.monotonic() - start
        if monitor.failure is None and waited < self.timeout:
            return None
        if monitor.failure is None:
            with contextlib.suppress(RuntimeError):  # the rendezvous is lost as well
                self._report_late_rank(monitor, what)
        monitor.has_unfinished = monitor.has_failed = True
        return WorkerFailed(monitor.describe(what, waited))

    def _report_late_rank(self, monitor: HeartbeatMonitor, what: str) -> None:
        beats = {r: monitor.beat_of(r) for r in self.ranks if r != monitor.rank}
        late = min(beats, key=lambda r: (beats[r]["round"], r))
        beat = beats[late]
        if not beat["doing"].startswith(OWN_WORK) and beat["for"] > self.timeout / 2:
            why = (
                f"cannot finish {what} within {self.timeout:g} s (MXNET_KVSTORE_TIMEOUT), although "
                f"nobody is late: rank {late} has been in {beat['doing']} for {beat['for']:g} s. "
                f"The network between some of {self._members()} is cut or very slow, or their "
                "programs differ"
            )
            monitor.report_failure(None, "", 0, why)
            return
        monitor.report_failure(
            late,
            beat["host"],
            beat["pid"],
            f"did not take part in {what} within {self.timeout:g} s: it has been in "
            f"{beat['doing']}{describe_line(beat)} for {beat['for']:g} s. MXNET_KVSTORE_TIMEOUT "
            "sets the limit",
        )

    def _members(self) -> str:
        if self.size > 8:
            return f"the {self.size} workers"
        pairs = zip(self.ranks, self.hosts, strict=True)
        return ", ".join(f"rank {rank} on {host}" for rank, host in pairs)

    def _lost(self, error: RuntimeError, what: str, start: float) -> WorkerFailed:
        """Return the error for a broken connection, with the lost rank."""
        monitor = self.monitor
        monitor.suspect()
        failure = monitor.wait_for_failure(monitor.heartbeat + 5)
        monitor.has_failed = True
        waited = time.monotonic() - start
        if failure is None:
            failure = {"why": f"lost a connection: {str(error).partition(chr(10))[0]}"}
        return WorkerFailed(monitor.describe(what, waited, failure))

    def _abandon(self) -> None:
        """End the process if a collective was abandoned: torch would wait for it at exit."""
        if self.monitor.has_unfinished:
            self.monitor.stop()
            end_process()

    def close(self) -> None:
        """Leave the job."""
        self.is_closed = True
        synchronized_statistics.sum_in_place = None
        if self.size > 1 and dist.is_initialized():
            self.barrier("shutdown")
            dist.destroy_process_group()
        if self.monitor is not None:
            self.monitor.stop()


def _ends_soon(work: Any) -> bool:
    """Wait for a collective until the next check of the monitor; return whether it ended."""
    try:
        work.wait(SLICE)
    except RuntimeError:  # the time is up, or the collective failed
        return work.is_completed()
    return True


_current: Group | None = None


def current_group() -> Group | None:
    """Return the group that this process has joined, or None."""
    return _current


def join_group(alone: bool = False) -> Group:
    """Return this process's group; the first call joins the job that the launcher described.

    With `alone`, a program without a launcher is the only worker.
    """
    global _current
    if _current is None:
        job = read_job()
        if job is None and not alone and not dist.is_initialized():
            raise MXNetError(NOT_LAUNCHED)
        _current = Group(job)
    return _current


def leave_group() -> None:
    """Leave the job; a later call may join it again only after a restart."""
    global _current
    if _current is not None:
        _current.close()
        _current = None


def ranks_of(values: Sequence[Any]) -> str:
    """Format values by rank, with equal ones grouped.

    >>> ranks_of(["(2,)", "(3,)", "(2,)"])
    'rank 0, 2: (2,); rank 1: (3,)'
    """
    groups: dict[Any, list[int]] = {}
    for rank, value in enumerate(values):
        groups.setdefault(value, []).append(rank)
    return "; ".join(f"rank {', '.join(map(str, r))}: {v}" for v, r in groups.items())
