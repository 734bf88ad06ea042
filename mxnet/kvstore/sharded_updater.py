"""`ShardedUpdater`: an updater with states sharded over the workers (ZeRO, stage 1).

Each worker owns some rows of every weight, keeps only the optimizer's states of these rows, updates
them, and sends the new rows to the others. Files have complete states, so that any number of
workers, and MXNet, can load them.

Programs save on rank 0 only (``if store.rank == 0: trainer.save_states(...)``), while other workers
continue or exit. So states are not gathered by a collective: a thread in each worker
(`ShardExchange`) answers requests through the job's key-value service. The states do not change
meanwhile, because a step needs all workers, and one of them waits for the answers.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, cast

import torch
from torch import Tensor

from .. import optimizer as opt
from .._process import env
from ..error import MXNetError
from ..ndarray import NDArray, zeros
from ..ndarray.sparse import RowSparseNDArray
from ..ndarray.sparse.arrays import make
from ..optimizer.multi_tensor import ListOptimizer
from ..optimizer.states_file import dump_states, read_states
from ..optimizer.updater import takes_all
from ..parallel.group import Group
from ..parallel.heartbeat import OWN_WORK, WorkerFailed
from ..parallel.sharding import MAX_IN_FLIGHT, Gathering, Partition, ShardedReducer
from ..runtime.array import plain, wrap_plain
from .base import Key

__all__ = ["ShardedUpdater", "make_updater"]
POLL_SECONDS = 0.1
PATIENCE_SECONDS = 2.0  # seconds in a collective after which a missing worker is reported
REQUEST = "a request for optimizer states"  # description of saving, for error messages
CHUNK_BYTES = 4 * 2**20  # maximum size of an entry of the key-value service


def make_updater(
    optimizer: opt.Optimizer, group: Group, stored: Mapping[Key, NDArray]
) -> opt.Updater:
    """Return an updater for stored weights, sharded if possible."""
    kind = optimizer.shards_by if takes_all(optimizer) else None
    is_possible = kind is not None and group.size > 1 and group.job is not None
    if not is_possible or env.get("MXNET_KVSTORE_SHARD_MB") < 0 or not _has_states(optimizer):
        return opt.get_updater(optimizer)
    return ShardedUpdater(optimizer, group, stored)


def _has_states(optimizer: opt.Optimizer) -> bool:
    return optimizer.create_state(0, zeros((1, 1))) is not None or optimizer.multi_precision


class ShardedUpdater(opt.Updater):
    """Updates this worker's rows of the weights, if these are large enough in total.

    `stored` are the weights of a store, the same on all workers.
    """

    def __init__(
        self, optimizer: opt.Optimizer, group: Group, stored: Mapping[Key, NDArray]
    ) -> None:
        super().__init__(optimizer)
        self._group, self._stored = group, stored
        self.partition = Partition(group.size, splits=optimizer.shards_by == "rows")
        self.reducer = ShardedReducer(group, self.partition, None)
        self._seen = 0  # number of weights at the last call of `prepare`
        self._is_worthwhile: bool | None = None  # None until all weights are known
        self._exchange: ShardExchange | None = None
        self._gatherings: deque[Gathering] = deque()
        self._rows: dict[Key, tuple[Tensor, NDArray]] = {}  # weights, and this worker's rows

    # -- ownership of rows ------------------------------------------------------------------------

    def prepare(self) -> bool:
        """Assign rows of the weights added since the last call; return whether any is sharded."""
        if self._seen == len(self._stored):
            return bool(self._is_worthwhile)
        self._seen = len(self._stored)
        new = {k: w for k, w in self._stored.items() if k not in self.partition}
        dense = {k: w.shape for k, w in new.items() if w.stype == "default" and w.shape}
        if self._is_worthwhile is None and dense:
            size = sum(plain(w).nbytes for k, w in new.items() if k in dense)
            self._is_worthwhile = size >= env.get("MXNET_KVSTORE_SHARD_MB") * 2**20
            if self._is_worthwhile:
                self._exchange = ShardExchange(self._group, self)
        if self._is_worthwhile and dense:
            self.partition.add(dense)
        return bool(self._is_worthwhile)

    def release(self) -> None:
        """Mark the store of this updater as deleted."""
        if self._exchange is not None:
            self._exchange.release()

    def is_sharded(self, key: Key) -> bool:
        """Return whether the states of a key are sharded."""
        return key in self.partition

    @property
    def nbytes(self) -> int:
        """Number of bytes of the states on this worker."""
        return sum(array.nbytes for state in self.states.values() for array in _leaves(state))

    def _own_rows(self, key: Key) -> NDArray:
        whole = plain(self._stored[key])
        held = self._rows.get(key)
        if held is None or held[0] is not whole:
            start, stop = self.partition[key][self._group.rank]
            rows = wrap_plain(NDArray, whole[start:stop], self._stored[key]._ctx)
            held = self._rows[key] = whole, rows
        return held[1]

    def _owns(self, key: Key) -> bool:
        start, stop = self.partition[key][self._group.rank]
        return stop > start

    # -- updating -----------------------------------------------------------------------------

    def step(self, keys: Sequence[Key], sums: Mapping[Key, Tensor]) -> None:
        """Update this worker's rows by their gradients, and start sending them; see `finish`.

        `keys` are all keys of the step; `sums` are gradients of the rows that this worker owns.
        """
        weights = [self._own_rows(key) for key in sums]
        grads = [wrap_plain(NDArray, sums[k], w._ctx) for k, w in zip(sums, weights, strict=True)]
        self(list(sums), grads, weights)
        self._count([key for key in keys if key not in sums])
        arrays = [plain(self._stored[key]) for key in keys]
        bounds = [self.partition[key] for key in keys]
        self._gatherings.append(Gathering(self.reducer, arrays, bounds))
        if len(self._gatherings) > MAX_IN_FLIGHT:
            self._gatherings.popleft().finish("updated weights")

    def finish(self) -> None:
        """Wait for the rows updated by other workers."""
        while self._gatherings:
            self._gatherings.popleft().finish("updated weights")

    def step_by_whole(self, sums: Mapping[Key, Tensor]) -> None:
        """Run `step` with gradients of whole weights, and `finish`."""
        owned = {}
        for key, total in sums.items():
            if self._owns(key):
                start, stop = self.partition[key][self._group.rank]
                owned[key] = total[start:stop]
        self.step(list(sums), owned)
        self.finish()

    def step_by_rows(self, key: Key, total: Any) -> None:
        """Update by a row_sparse gradient of a whole weight, and send only changed rows."""
        bounds, indices = self.partition[key], total._indices
        positions = [_find_rows(indices, *bound) for bound in bounds]
        first, last = positions[self._group.rank]
        if self._owns(key):
            rows = self._own_rows(key)
            start = bounds[self._group.rank][0]
            values, own = total._values[first:last], indices[first:last] - start
            self([key], [make(RowSparseNDArray, rows.shape, values, own, ctx=rows._ctx)], [rows])
        else:
            self._count([key])
        whole = plain(self._stored[key])
        # Others are not sharded; see `make_updater`.
        optimizer = cast(ListOptimizer, self.optimizer)
        if not optimizer._is_lazy(self._stored[key], total):
            Gathering(self.reducer, [whole], [bounds]).finish("updated weights")
            return
        changed = whole[indices]
        Gathering(self.reducer, [changed], [positions]).finish("updated rows")
        whole[indices] = changed

    def _count(self, keys: list[Key]) -> None:
        """Count the updates of other workers, for schedules and bias correction."""
        if keys:
            self.optimizer._set_current_context(self._stored[keys[0]].context.device_id)
            self.optimizer._update_count(keys)

    # -- files --------------------------------------------------------------------------------

    def own_states(self) -> bytes:
        """Return the states on this worker."""
        return super().get_states()

    def get_states(self, dump_optimizer: bool = False) -> bytes:
        """Gather the complete states; see `Updater.get_states`.

        Any worker may call it, alone or together with others.
        """
        if not self.prepare() or self._exchange is None:
            return super().get_states(dump_optimizer)
        collected = self._exchange.collect(self.own_states())
        parts = [cast("dict[Key, Any]", read_states(data)) for data in collected]
        whole = dict(self.states)
        for key in {key for part in parts for key in part if self.is_sharded(key)}:
            whole[key] = _join_rows([part[key] for part in parts if key in part])
        return dump_states((whole, self.optimizer) if dump_optimizer else whole)

    def set_states(self, states: bytes) -> None:
        """Load this worker's part of complete states; see `Updater.set_states`."""
        previous = self.optimizer
        super().set_states(states)
        if self.optimizer.shards_by != previous.shards_by:
            name, self.optimizer = type(self.optimizer).__name__, previous
            raise MXNetError(
                f"The states are of {name}, which workers cannot share as in "
                f"{type(previous).__name__}: create the store with {name}."
            )
        if self.prepare():
            own = {k: s for k, s in self.states.items() if not self.is_sharded(k) or self._owns(k)}
            self.states = {k: self._part(k, state) for k, state in own.items()}
            self.states_synced = dict.fromkeys(own, False)

    def _part(self, key: Key, state: Any) -> Any:
        if not self.is_sharded(key):
            return state
        start, stop = self.partition[key][self._group.rank]
        return _map_arrays(lambda array: array[start:stop].copy(), state)


def _find_rows(indices: Tensor, start: int, stop: int) -> tuple[int, int]:
    """Return the range of sorted row indices between start and stop.

    >>> _find_rows(torch.tensor([2, 5, 7]), 3, 7)
    (1, 2)
    """
    limits = torch.tensor([start, stop], device=indices.device, dtype=indices.dtype)
    first, last = torch.searchsorted(indices, limits).tolist()
    return first, last


def _leaves(state: Any) -> list[Any]:
    if isinstance(state, tuple | list):
        return [leaf for part in state for leaf in _leaves(part)]
    return [plain(state)] if isinstance(state, NDArray) else []


def _map_arrays(function: Any, state: Any) -> Any:
    if isinstance(state, tuple | list):
        return type(state)(_map_arrays(function, part) for part in state)
    return function(state) if isinstance(state, NDArray) else state


def _join_rows(parts: Sequence[Any]) -> Any:
    """Concatenate the rows of a state from several workers."""
    first = parts[0]
    if isinstance(first, tuple | list):
        return type(first)(_join_rows(kind) for kind in zip(*parts, strict=True))
    if not isinstance(first, NDArray):
        return first
    return wrap_plain(NDArray, torch.cat([plain(part) for part in parts]))


# Of this process, in the same order on all workers.
_exchanges: list[weakref.ref[ShardExchange]] = []


class ShardExchange:
    """Collects the optimizer states of all workers, and answers requests of other workers.

    The updater's ``own_states`` are served until all workers have called `release`.
    """

    def __init__(self, group: Group, updater: Any) -> None:
        if not _exchanges:
            atexit.register(_finish, group)
        _exchanges.append(weakref.ref(self))
        self._group, self._name = group, f"states/{len(_exchanges)}"
        self._updater: Any = updater  # kept while any worker may request its states
        self._is_released = False
        self._store = group.store.clone()  # connection of the thread
        self._answered = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve, name="mxnet-states", daemon=True)
        self._thread.start()

    # -- requests -------------------------------------------------------------------------------

    def collect(self, own: bytes) -> list[bytes]:
        """Return the states of all workers by rank; `own` are this worker's."""
        group, store = self._group, self._group.store
        number = store.add(f"{self._name}/requests", 1)
        store.set(f"{self._name}/{number}", str(group.rank))
        group.monitor.enter(REQUEST)
        states = []
        for rank in range(group.size):
            answer = f"{self._name}/{number}/{rank}"
            states.append(own if rank == group.rank else self._read(store, answer))
        group.monitor.leave()
        return states

    def _read(self, store: Any, answer: str) -> bytes:
        end = time.monotonic() + env.get("MXNET_KVSTORE_TIMEOUT")
        while not store.check([answer]):
            self._check_failure(REQUEST)
            if time.monotonic() > end:
                raise MXNetError(f"No worker answered the request for optimizer states {answer}.")
            time.sleep(POLL_SECONDS / 2)
        names = [f"{answer}/{i}" for i in range(int(store.get(answer)))]
        data = b"".join(store.get(name) for name in names)
        for name in names:
            store.delete_key(name)
        return data

    def _check_failure(self, what: str) -> None:
        monitor = self._group.monitor
        if monitor.failure is not None:
            monitor.has_failed = True
            raise WorkerFailed(monitor.describe(what, 0.0))

    # -- answering ----------------------------------------------------------------------------

    def release(self) -> None:
        """Mark this worker's store as deleted."""
        self._is_released = True

    def _serve(self) -> None:
        is_counted, name = False, f"{self._name}/released"
        with contextlib.suppress(RuntimeError):  # the service is gone, and so is the job
            while not self._stop.wait(POLL_SECONDS):
                self._answer()
                if self._is_released and not is_counted:
                    is_counted = self._store.add(name, 1) > 0
                if is_counted and self._store.add(name, 0) >= self._group.size:
                    break
        self._updater = None

    def _answer(self) -> None:
        for number in range(self._answered + 1, self._store.add(f"{self._name}/requests", 0) + 1):
            name = f"{self._name}/{number}"
            if int(self._store.get(name)) != self._group.rank:
                data = self._updater.own_states()
                chunks = [data[i : i + CHUNK_BYTES] for i in range(0, len(data), CHUNK_BYTES)]
                for i, chunk in enumerate(chunks):
                    self._store.set(f"{name}/{self._group.rank}/{i}", chunk)
                self._store.set(f"{name}/{self._group.rank}", str(len(chunks)))
            self._answered = number

    def stop(self) -> None:
        """End the thread."""
        self._stop.set()
        self._thread.join(5)


def _finish(group: Group) -> None:
    """At exit, answer requests until all workers exit: one may still save."""
    if not group.monitor.has_failed and not group.is_closed:
        with contextlib.suppress(RuntimeError):
            group.store.add("states/ended", 1)
            while group.store.add("states/ended", 0) < group.size and group.monitor.failure is None:
                _check_needed(group)
                time.sleep(POLL_SECONDS)
    for reference in _exchanges:
        exchange = reference()
        if exchange is not None:
            exchange.stop()


def _check_needed(group: Group) -> None:
    """Report the end of this worker if another one waits for it in a collective."""
    for rank in range(group.size):
        beat = group.monitor.beat_of(rank)
        is_waiting = beat["doing"] != REQUEST and not beat["doing"].startswith(OWN_WORK)
        if rank != group.rank and is_waiting and beat["for"] > PATIENCE_SECONDS:
            why = "ended its program while others still needed it"
            group.monitor.report_failure(group.rank, group.monitor.host, os.getpid(), why)
