"""`DistAsyncStore`: weights on servers, to which every worker pushes asynchronously.

Guaranteed: a push is applied once, on arrival, and none is lost; a pull returns all earlier pushes
of the same worker. The order of pushes of different workers is not defined, so results differ from
run to run. Keys are distributed over the server processes of the job, or over the workers if it has
none. `async_server` defines the messages, `async_client` sends them.
"""

from __future__ import annotations

import atexit
import sys
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from .. import optimizer as opt
from ..error import InvalidValue, MXNetError
from ..formats.atomic import replacing
from ..formats.files import existing_file, local_path
from ..ndarray import NDArray
from ..ndarray.sparse import zeros as sparse_zeros
from ..parallel.async_client import Peer, client_of, close_client
from ..parallel.async_server import pack_array, pack_optimizer, unpack_array
from ..parallel.group import NOT_LAUNCHED
from ..parallel.heartbeat import WorkerFailed
from ..runtime.array import plain, wrap_plain
from ..runtime.profiling.control import set_kvstore_handle
from .base import Key
from .dist_sync import DistributedStore
from .kvstore import ASYNC, dense_outputs, group_by_key, sum_over_devices

__all__ = ["DistAsyncStore"]


class DistAsyncStore(DistributedStore):
    """A store whose servers apply each push immediately; `mx.kvstore.create('dist_async')`."""

    def __init__(self, name: str) -> None:
        super().__init__(name, ASYNC)
        group = self._group
        if group.job is None:
            raise MXNetError(NOT_LAUNCHED)
        self._client = client_of(group)
        self._settings: tuple = ()
        self._optimizer: opt.Optimizer | None = None
        set_kvstore_handle(self)
        atexit.register(self._finish)
        group.barrier(f"create({name!r})")

    def _owner(self, key: Key) -> Peer:
        peers = self._client.peers
        return peers[zlib.crc32(str(key).encode()) % len(peers)]

    def _wait_pending(self) -> None:
        """Wait until the pushes of this worker have been applied."""
        self._client.settle()

    def profile_servers(self, command: str, value: str = "") -> None:
        """Run a command of `mx.profiler` on all servers; each has a file name of its own."""
        path = Path(value)
        for number, peer in enumerate(self._client.peers):
            own = str(path.with_name(f"rank{number}_{path.name}")) if value else ""
            peer.start("profile", {"command": command, "value": own})
            peer.finish("profile")

    # -- push and pull --------------------------------------------------------------------

    def _init_value(self, key: Key, value: NDArray) -> NDArray:
        if self.rank == 0:
            owner = self._owner(key)
            owner.start("init", {"keys": [key]}, [pack_array(value)])
            owner.finish("init")
        return _empty_like(value)

    def push(self, key: Any, value: Any, priority: int = 0) -> None:
        """Send the sum over devices of each key to its server, which applies it immediately."""
        if self._optimizer is None:
            raise InvalidValue(
                f"A {self._name!r} store applies pushes by an optimizer: call set_optimizer first."
            )
        self._send_settings()
        pushes: dict[Peer, tuple[list[Key], list[bytes]]] = {}
        for one, values in group_by_key("push", key, value):
            self._lookup(one, values)
            total = sum_over_devices(one, values, values[0].context)
            keys, data = pushes.setdefault(self._owner(one), ([], []))
            keys.append(one)
            data.append(pack_array(total))
        for owner, (keys, data) in pushes.items():
            owner.push({"keys": keys}, data)

    def pull(
        self, key: Any, out: Any = None, priority: int = 0, ignore_sparse: bool = True
    ) -> None:
        """Copy the servers' arrays, including all earlier pushes of this worker, into outputs."""
        if out is None:
            raise InvalidValue("pull needs out=, the arrays to fill.")
        requests: dict[Peer, list[tuple[Key, list[NDArray]]]] = {}
        for one, outputs in group_by_key("pull", key, out):
            self._lookup(one, outputs)
            if ignore_sparse and not (outputs := dense_outputs(outputs)):
                continue
            requests.setdefault(self._owner(one), []).append((one, outputs))
        self._wait_pending()
        for owner, entries in requests.items():
            owner.start("pull", {"keys": [one for one, _ in entries]})
        for owner, entries in requests.items():
            for (_, outputs), record in zip(entries, owner.finish("pull"), strict=True):
                array = unpack_array(record)
                for output in outputs:
                    array.copyto(output)

    def _pull_rows(self, key: Key, outputs: list[NDArray], row_ids: list[NDArray]) -> None:
        stored = self._lookup(key, outputs)
        if stored.stype != "row_sparse":
            raise MXNetError(f"row_sparse_pull: key {key} is {stored.stype}; use pull.")
        owner = self._owner(key)
        for output, rows in zip(outputs, row_ids, strict=True):
            ids = plain(rows).flatten().long().unique()
            owner.start("pull_rows", {"keys": [key]}, [pack_array(wrap_plain(NDArray, ids))])
            (record,) = owner.finish("pull_rows")
            unpack_array(record).copyto(output)

    # -- updating -----------------------------------------------------------------------------

    def set_optimizer(self, optimizer: opt.Optimizer) -> None:
        """Send rank 0's optimizer to the servers, and wait for all workers.

        Later changes of rank 0's learning rate, weight decay and gradient scale are sent with its
        next push; in MXNet they had no effect.
        """
        packed = pack_optimizer(optimizer)
        self._optimizer, self._settings = optimizer, _settings(optimizer)
        if self.rank == 0:
            self._client.call_all("set_optimizer", {}, [packed])
        self._group.barrier("set_optimizer")

    def _send_settings(self) -> None:
        now = _settings(self._optimizer)
        if self.rank == 0 and now != self._settings:
            self._settings = now
            self._client.call_all("change_settings", {"settings": now})

    def save_optimizer_states(self, fname: Any, dump_optimizer: bool = False) -> None:
        """Save the optimizer's states of all servers to a file."""
        self._wait_pending()
        gathered = opt.get_updater(self._need_optimizer())
        for (states,) in self._client.call_all("states", {}):
            part = opt.get_updater(self._need_optimizer())
            part.set_states(bytes(states))
            gathered.states.update(part.states)
        with replacing(local_path(fname)) as file:
            file.write(gathered.get_states(dump_optimizer))

    def load_optimizer_states(self, fname: Any) -> None:
        """Send the states in rank 0's file to the servers; all ranks must call this."""
        self._need_optimizer()
        states = Path(existing_file(fname)).read_bytes()
        if self.rank == 0:
            self._client.call_all("load_states", {}, [states])
        self._group.barrier("load_optimizer_states")

    def _need_optimizer(self) -> opt.Optimizer:
        if self._optimizer is None:
            raise InvalidValue("A store has optimizer states only after set_optimizer.")
        return self._optimizer

    def set_gradient_compression(self, compression_params: Mapping[str, Any]) -> None:
        """Not supported: only synchronous stores compress gradients."""
        raise MXNetError(f"Gradient compression is not supported for {self._name!r} stores.")

    def _finish(self) -> None:
        """Wait for all pushes at exit, because workers may be servers too."""
        if self._group.monitor.has_failed:
            return
        try:
            try:
                self._wait_pending()
            finally:
                self._group.barrier("the end of the program")
                close_client(self._group)
        except WorkerFailed as error:  # at exit nothing can catch it
            sys.stderr.write(f"mxnet.parallel.WorkerFailed: {error}\n")


def _settings(optimizer: opt.Optimizer | None) -> tuple:
    if optimizer is None:
        return ()
    rate = optimizer.lr if optimizer.lr_scheduler is None else None
    return rate, optimizer.wd, optimizer.rescale_grad


def _empty_like(array: NDArray) -> NDArray:
    if array.stype != "default":
        return sparse_zeros(array.stype, array.shape, dtype=array.dtype)
    return wrap_plain(NDArray, torch.empty(array.shape, dtype=plain(array).dtype, device="meta"))
