"""`DistAsyncStore`: weights held by servers, to which every worker pushes at its own pace.

Guaranteed: a push is applied once, as soon as it arrives, and none is lost; a pull after a push
of the same worker sees that push. Not guaranteed: how pushes of different workers interleave, so
results differ from run to run. Keys are spread over the server processes of the job, or over the
workers themselves if it has none. Messages are torch's remote procedure calls.
"""

from __future__ import annotations

import atexit
import contextlib
import pickle
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from .. import optimizer as opt
from ..distributed.group import NOT_LAUNCHED
from ..distributed.heartbeat import WorkerFailed
from ..error import InvalidValue, MXNetError
from ..formats.atomic import replacing
from ..formats.files import existing_file, local_path
from ..imperative.handle import plain, wrap_plain
from ..ndarray import NDArray
from ..ndarray.sparse import zeros as sparse_zeros
from . import async_server
from .async_server import Payload
from .base import Key
from .dist_sync import DistributedStore
from .kvstore import ASYNC, dense_outputs, group_by_key, sum_over_devices

__all__ = ["DistAsyncStore"]


class DistAsyncStore(DistributedStore):
    """A store whose servers apply each push at once; `mx.kvstore.create('dist_async')`."""

    def __init__(self, name: str) -> None:
        super().__init__(name, ASYNC)
        group = self._group
        if group.job is None:
            raise MXNetError(NOT_LAUNCHED)
        servers = group.job.servers
        count = servers or group.size
        kind = "server" if servers else "worker"
        self._owners = [f"{kind}{i}" for i in range(count)]
        self._pending: list[Any] = []  # pushes on their way
        self._settings: tuple = ()
        self._optimizer: opt.Optimizer | None = None
        async_server.connect(group.store, f"worker{group.rank}", group.rank, group.size, servers)
        atexit.register(self._finish)
        group.barrier(f"create({name!r})")

    # -- calls to servers ---------------------------------------------------------------------

    def _owner(self, key: Key) -> str:
        return self._owners[zlib.crc32(str(key).encode()) % len(self._owners)]

    def _call(self, owner: str, function: Callable, *arguments: Any) -> Any:
        """Start a call on a server and return its future."""
        from torch.distributed import rpc

        try:
            return rpc.rpc_async(owner, function, args=arguments)
        except RuntimeError as error:
            raise self._lost(owner, error) from None

    def _result(self, owner: str, future: Any, what: str) -> Any:
        monitor = self._group.monitor
        monitor.enter(f"{what} at {owner}")
        try:
            return future.wait()
        except MXNetError:
            raise
        except RuntimeError as error:
            raise self._lost(owner, error) from None
        finally:
            monitor.leave()

    def _lost(self, owner: str, error: RuntimeError) -> MXNetError:
        text = str(error).strip().rpartition("\n")[2]
        if not async_server.is_connection_error(error):
            return MXNetError(f"{owner} of {self._name!r}: {text}")
        monitor = self._group.monitor
        monitor.suspect()
        failure = monitor.wait_for_failure(8.0)
        monitor.has_failed = self._group._unfinished = True
        if failure is not None and failure.get("rank") is not None:
            who = f"Rank {failure['rank']} on {failure['host']} {failure['why']}"
        else:
            who = f"{owner} does not answer"
        return WorkerFailed(f"{who}. Rank {self.rank} was in a call to {owner}: {text}")

    def _wait_pending(self) -> None:
        """Wait until the pushes of this worker have been applied."""
        pushes, self._pending = self._pending, []
        for owner, future in pushes:
            self._result(owner, future, "push")

    # -- arrays in and out --------------------------------------------------------------------

    def _init_value(self, key: Key, value: NDArray) -> NDArray:
        if self.rank == 0:
            owner = self._owner(key)
            call = self._call(owner, async_server.init, key, Payload.of(value))
            self._result(owner, call, "init")
        return _empty_like(value)

    def push(self, key: Any, value: Any, priority: int = 0) -> None:
        """Send the sum over devices of each key to its server, which applies it at once."""
        if self._optimizer is None:
            raise InvalidValue(
                f"A {self._name!r} store applies pushes by an optimizer: call set_optimizer first."
            )
        self._send_settings()
        payloads: dict[str, dict[Key, list[Payload]]] = {}
        for one, values in group_by_key("push", key, value):
            self._lookup(one, values)
            total = sum_over_devices(one, values, values[0].context)
            of_owner = payloads.setdefault(self._owner(one), {})
            of_owner.setdefault(one, []).append(Payload.of(total))
        for owner, content in payloads.items():
            self._pending.append((owner, self._call(owner, async_server.push, content)))

    def pull(
        self, key: Any, out: Any = None, priority: int = 0, ignore_sparse: bool = True
    ) -> None:
        """Copy the servers' arrays, which hold all earlier pushes of this worker, into outputs."""
        if out is None:
            raise InvalidValue("pull needs out=: the arrays to fill.")
        self._wait_pending()
        wanted: dict[str, list[tuple[Key, list[NDArray]]]] = {}
        for one, places in group_by_key("pull", key, out):
            self._lookup(one, places)
            if ignore_sparse and not (places := dense_outputs(places)):
                continue
            wanted.setdefault(self._owner(one), []).append((one, places))
        calls = {
            o: self._call(o, async_server.pull, [k for k, _ in rows]) for o, rows in wanted.items()
        }
        for owner, rows in wanted.items():
            found = self._result(owner, calls[owner], "pull")
            for (_, places), payload in zip(rows, found, strict=True):
                for place in places:
                    payload.array().copyto(place)

    def _pull_rows(self, key: Key, outputs: list[NDArray], row_ids: list[NDArray]) -> None:
        self._wait_pending()
        stored = self._lookup(key, outputs)
        if stored.stype != "row_sparse":
            raise MXNetError(f"row_sparse_pull: key {key} is {stored.stype}; use pull.")
        owner = self._owner(key)
        for output, rows in zip(outputs, row_ids, strict=True):
            ids = plain(rows).flatten().long().unique()
            found = self._result(owner, self._call(owner, async_server.pull_rows, key, ids), "pull")
            found.array().copyto(output)

    # -- updating -----------------------------------------------------------------------------

    def set_optimizer(self, optimizer: opt.Optimizer) -> None:
        """Send rank 0's optimizer to the servers, and wait for all workers.

        Later changes of rank 0's learning rate, weight decay and gradient scale follow with its
        next push; in MXNet they did not reach the servers.
        """
        self._optimizer, self._settings = optimizer, _settings(optimizer)
        if self.rank == 0:
            self._on_all(async_server.set_optimizer, pickle.dumps(optimizer))
        self._group.barrier("set_optimizer")

    def _send_settings(self) -> None:
        now = _settings(self._optimizer)
        if self.rank == 0 and now != self._settings:
            self._settings = now
            self._on_all(async_server.change_settings, now)

    def _on_all(self, function: Callable, *arguments: Any) -> list[Any]:
        calls = [(o, self._call(o, function, *arguments)) for o in self._owners]
        return [self._result(o, call, function.__name__) for o, call in calls]

    def save_optimizer_states(self, fname: Any, dump_optimizer: bool = False) -> None:
        """Gather the optimizer's states from all servers into a file."""
        self._wait_pending()
        gathered = opt.get_updater(self._need_optimizer())
        for states in self._on_all(async_server.states):
            part = opt.get_updater(self._need_optimizer())
            part.set_states(states)
            gathered.states.update(part.states)
        with replacing(local_path(fname)) as file:
            file.write(gathered.get_states(dump_optimizer))

    def load_optimizer_states(self, fname: Any) -> None:
        """Give the servers the states of a file; rank 0's call counts, all must make it."""
        self._need_optimizer()
        states = Path(existing_file(fname)).read_bytes()
        if self.rank == 0:
            self._on_all(async_server.load_states, states)
        self._group.barrier("load_optimizer_states")

    def _need_optimizer(self) -> opt.Optimizer:
        if self._optimizer is None:
            raise InvalidValue("A store has optimizer states only after set_optimizer.")
        return self._optimizer

    def set_gradient_compression(self, compression_params: Mapping[str, Any]) -> None:
        """Refuse: only synchronous stores compress."""
        raise MXNetError(f"Gradient compression is not supported for {self._name!r} stores.")

    def _finish(self) -> None:
        """At the end of the program wait for all pushes: workers may be servers as well."""
        if not self._group.monitor.has_failed:
            with contextlib.suppress(MXNetError):
                self._wait_pending()
                self._group.barrier("the end of the program")
            self._group.store.set(f"left/{self.rank}", "finished")  # servers leave now, too
            async_server.disconnect()


def _settings(optimizer: opt.Optimizer | None) -> tuple:
    if optimizer is None:
        return ()
    rate = optimizer.lr if optimizer.lr_scheduler is None else None
    return rate, optimizer.wd, optimizer.rescale_grad


def _empty_like(array: NDArray) -> NDArray:
    """Return an array with the shape and dtype of another, and no values."""
    if array.stype != "default":
        return sparse_zeros(array.stype, array.shape, dtype=array.dtype)
    return wrap_plain(NDArray, torch.empty(array.shape, dtype=plain(array).dtype, device="meta"))
