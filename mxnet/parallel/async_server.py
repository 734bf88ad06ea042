"""The server of `dist_async`: arrays, and calls of workers.

`AsyncServer` runs in a server process, or in every worker of a job without servers. Each worker has
its own connection, whose calls are answered in order; a lock serializes the calls of all workers.
Arrays are sent as records of ``.params`` files, optimizers and their states as ``.states`` files,
everything else as JSON.
"""

from __future__ import annotations

import copy
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from torch import Tensor

from .. import optimizer as opt
from .._process import env
from ..context import cpu
from ..error import MXNetError
from ..formats import params_file
from ..formats.atomic import replacing
from ..kvstore.base import Key
from ..kvstore.kvstore import KVStore
from ..ndarray import NDArray
from ..ndarray.sparse import from_stored
from ..optimizer.states_file import dump_states, read_states
from ..runtime.array import plain, wrap_plain
from .channel import Channel, ChannelError, Listener

Data = Sequence[bytes | memoryview]


def pack_array(array: NDArray) -> bytes:
    """Return a dense or row_sparse array as bytes."""
    if array.stype == "default":
        return params_file.dump_record(plain(array).detach().cpu())
    return array.as_in_context(cpu()).__getstate__()["handle"]


def unpack_array(record: bytes | memoryview) -> NDArray:
    """Return the array that `pack_array` packed."""
    stored, _ = params_file.load_record(record, "a message of the job")
    return wrap_plain(NDArray, stored) if isinstance(stored, Tensor) else from_stored(stored)


def pack_optimizer(optimizer: opt.Optimizer) -> bytes:
    """Return an optimizer as bytes: its class name and attributes."""
    if not _is_ours(optimizer) or not _is_ours(optimizer.lr_scheduler):
        kind = type(optimizer if not _is_ours(optimizer) else optimizer.lr_scheduler)
        raise MXNetError(
            f"{kind.__module__}.{kind.__qualname__} is a user-defined class. Servers of an "
            "asynchronous store run no code from the network, and support only MXNet's optimizers "
            "and schedulers: use one of these, or 'dist_sync', where every worker updates by its "
            "own optimizer."
        )
    copied = copy.copy(optimizer)
    for which in ("lr_mult", "wd_mult"):  # multipliers of Gluon's parameters, which are not sent
        own = {key: getattr(param, which) for key, param in optimizer.param_dict.items()}
        setattr(copied, which, {**getattr(optimizer, which), **own})
    return dump_states(({}, copied))


def _is_ours(value: Any) -> bool:
    return value is None or type(value).__module__.startswith("mxnet.")


class AsyncServer(Listener):
    """Stores arrays and applies the pushes of workers."""

    def __init__(self, host: str, workers: int) -> None:
        self._store = KVStore("local")
        self._changed = threading.Condition()  # the condition's lock serializes all calls
        self._max_ahead = env.get("MXNET_KVSTORE_MAX_STALENESS")
        self._pushes: dict[Key, dict[int, int]] = {}  # number of pushes of each key, by worker
        self._present = set(range(workers))
        self._trace = ServerTrace()
        super().__init__(host, 0, self._answer)
        self.address = (host, self.port)

    def _answer(self, channel: Channel) -> None:
        worker = int(channel.receive()[0]["worker"])
        try:
            while True:
                request, data = channel.receive()
                name = request.pop("call")
                call = CALLS[name]
                try:
                    with self._changed, self._trace.record(name, worker, request, data):
                        answer = call(self, data, worker=worker, **request)
                except Exception as error:  # error of the call, raised by the worker
                    channel.send({"error": str(error)})
                else:
                    channel.send({}, answer)
        except ChannelError:  # the worker has ended
            pass
        finally:
            with self._changed:
                self._present.discard(worker)
                self._changed.notify_all()

    # -- calls: from byte strings to byte strings ---------------------------------------

    def _init(self, data: Data, keys: Sequence[Key], worker: int) -> Data:
        for key, record in zip(keys, data, strict=True):
            self._store._stored[key] = unpack_array(record)
        return []

    def _push(self, data: Data, keys: Sequence[Key], worker: int) -> Data:
        for key, record in zip(keys, data, strict=True):
            self._store._apply({key: unpack_array(record)})
            counts = self._pushes.setdefault(key, {})
            counts[worker] = counts.get(worker, 0) + 1
        self._changed.notify_all()
        if self._max_ahead >= 0:
            self._await_slowest(keys, worker)
        return []

    def _await_slowest(self, keys: Sequence[Key], worker: int) -> None:
        """Delay the response while this worker is too far ahead of another one."""

        def is_close() -> bool:
            others = self._present - {worker}
            return all(
                self._pushes[key][worker] - self._pushes[key].get(other, 0) <= self._max_ahead
                for key in keys
                for other in others
            )

        limit = env.get("MXNET_KVSTORE_TIMEOUT")
        if not self._changed.wait_for(is_close, limit):
            raise MXNetError(
                f"worker {worker} has been more than {self._max_ahead} pushes ahead of another "
                f"for {limit:g} s (MXNET_KVSTORE_MAX_STALENESS, MXNET_KVSTORE_TIMEOUT)"
            )

    def _pull(self, data: Data, keys: Sequence[Key], worker: int) -> Data:
        return [pack_array(self._store._stored[key]) for key in keys]

    def _pull_rows(self, data: Data, keys: Sequence[Key], worker: int) -> Data:
        stored: Any = self._store._stored[keys[0]]
        return [pack_array(stored.retain(unpack_array(data[0])))]

    def _set_optimizer(self, data: Data, worker: int) -> Data:
        read: Any = read_states(bytes(data[0]))
        self._store.set_optimizer(read[1])
        return []

    def _change_settings(self, data: Data, settings: Sequence[Any], worker: int) -> Data:
        """Apply rank 0's learning rate, weight decay and gradient scale."""
        rate, decay, scale = settings
        optimizer = self._store._states_of("change").optimizer
        optimizer.wd, optimizer.rescale_grad = decay, scale
        if rate is not None:
            optimizer.lr = rate
        return []

    def _states(self, data: Data, worker: int) -> Data:
        return [self._store._states_of("save").get_states()]

    def _load_states(self, data: Data, worker: int) -> Data:
        """Load the states of all keys. States of keys on other servers are never used."""
        self._store._states_of("load").set_states(bytes(data[0]))
        return []

    def _profile(self, data: Data, command: str, value: str, worker: int) -> Data:
        """Start or stop the trace, or write it."""
        self._trace.control(command, value)
        return []


class ServerTrace:
    """Trace of the calls of a server, as events for chrome://tracing."""

    def __init__(self) -> None:
        self._path = Path("profile.json")
        self._records = False
        self._events: list[dict[str, Any]] = []

    @contextmanager
    def record(
        self, name: str, worker: int, request: Mapping[str, Any], data: Data
    ) -> Iterator[None]:
        """Record the duration of a call, excluding waiting."""
        start = time.time_ns() / 1000
        yield
        if self._records and name != "profile":
            arguments = {"keys": request.get("keys", []), "bytes": sum(map(len, data))}
            end = time.time_ns() / 1000
            event = {"name": name, "cat": "server", "ph": "X", "ts": start, "dur": end - start}
            self._events.append({**event, "pid": os.getpid(), "tid": worker, "args": arguments})

    def control(self, command: str, value: str) -> None:
        """Run a command of `mx.profiler`; every server writes a trace file of its own."""
        if command == "config" and value:
            self._path = Path(value)
        elif command in ("run", "stop"):
            self._records = command == "run"
        elif command == "dump":
            self._path.parent.mkdir(parents=True, exist_ok=True)
            trace = {"traceEvents": self._events, "displayTimeUnit": "ms"}
            with replacing(self._path) as file:
                file.write(json.dumps(trace).encode())


CALLS: dict[str, Callable[..., Data]] = {
    "profile": AsyncServer._profile,
    "init": AsyncServer._init,
    "push": AsyncServer._push,
    "pull": AsyncServer._pull,
    "pull_rows": AsyncServer._pull_rows,
    "set_optimizer": AsyncServer._set_optimizer,
    "change_settings": AsyncServer._change_settings,
    "states": AsyncServer._states,
    "load_states": AsyncServer._load_states,
}
