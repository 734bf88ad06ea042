"""Stores that sum over the workers of a job: 'dist_sync' and its aliases, 'horovod', 'byteps'.

There is no server: every worker has the stored arrays. Gradients are summed by all-reduce, and
every worker applies the same update to its copy; of large models each worker updates a part and
sends it to the others (`sharded_updater`). In both cases all copies stay identical. 'horovod' and
'byteps' sum without storing; neither library is needed.
"""

from __future__ import annotations

import weakref
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .. import optimizer as opt
from .._process import env
from ..ndarray import NDArray
from ..ndarray.sparse import RowSparseNDArray, layout
from ..ndarray.sparse.arrays import make
from ..parallel.group import Group, join_group
from ..parallel.reduction import OverlappedSums, Reducer, Reduction, can_send_early
from ..parallel.sharding import ShardedReducer
from ..runtime.array import plain, wrap_plain
from .base import Key, KVStoreBase, answer_capability
from .compression import HALF_TYPES, TwoBit, make_compression, sum_packed
from .kvstore import SYNC, KVStore, group_by_key, sum_over_devices
from .sharded_updater import ShardedUpdater, make_updater

__all__ = ["BytePS", "DistSyncStore", "DistributedStore", "Horovod"]


class _Member:
    _group: Group

    @property
    def rank(self) -> int:
        """The number of this worker, from 0."""
        return self._group.rank

    @property
    def num_workers(self) -> int:
        """The number of workers."""
        return self._group.size


class DistributedStore(_Member, KVStore):
    """Base class of distributed stores: joins the job, and synchronizes workers like MXNet.

    Subclasses define `_init_value`, which sets the initial value of a key, and `_wait_pending`.
    `names` are the names of this type of store.
    """

    def __init__(self, name: str, names: Sequence[str]) -> None:
        super().__init__(name, names)
        self._group = join_group()

    def init(self, key: Any, value: Any) -> None:
        """Set the initial values of keys to those of rank 0, and wait for all workers."""
        entries = group_by_key("init", key, value)
        self._check_new(entries)
        described = ", ".join(
            f"key {k} {v.shape} {np.dtype(v.dtype).name} {v.stype}" for k, (v, *_) in entries
        )
        self._group.agree(described, "shape or dtype at init")
        for one, (first, *_) in entries:
            self._stored[one] = self._init_value(one, first)
        self._group.barrier("init")

    def _init_value(self, key: Key, value: NDArray) -> NDArray:
        raise NotImplementedError

    def _set_updater(self, updater: Callable[[Key, NDArray, NDArray], None]) -> None:
        """Ignore an updater, as MXNet's distributed stores do; use `set_optimizer`."""

    @property
    def bytes_sent(self) -> int:
        """Number of bytes of arrays that this worker has sent in collectives."""
        return self._group.bytes_sent

    def barrier(self) -> None:
        """Wait for all workers and their pushes."""
        self._wait_pending()
        self._group.barrier()

    _barrier = barrier


class DistSyncStore(DistributedStore):
    """A store shared by all workers of a job, created by `mx.kvstore.create('dist_sync')`.

    All workers must push and pull the same keys in the same order. Without an optimizer the sum
    over devices and workers replaces the stored array; with one, the optimizer applies the sum
    once. `create`, `init`, `set_optimizer` and `barrier` wait for all workers.

    Parameters
    ----------
    name
        Name of the store.

    >>> mx.distributed.init()
    >>> mx.kvstore.create("dist_sync").num_workers
    1
    """

    def __init__(self, name: str) -> None:
        super().__init__(name, SYNC)
        self._reducer = Reducer(self._group)
        self._pending: list[Reduction] = []
        self._overwritten = ""  # keys overwritten since the last push, compared across workers
        self._group.barrier(f"create({name!r})")

    # -- arrays in and out --------------------------------------------------------------------

    def _init_value(self, key: Key, value: Any) -> NDArray:
        what = f"init of key {key}"
        if value.stype == "default":
            first = value.copy()
            self._group.broadcast(plain(first), 0, what)
            return first
        rows = self._group.gather_ragged(value._indices, what)
        values = self._group.gather_ragged(value._values, what)
        return _row_sparse(values[:1], rows[:1], value)

    def push(self, key: Any, value: Any, priority: int = 0) -> None:
        """Sum the values of each key over devices and workers, and store or apply the sum.

        Dense arrays are summed asynchronously; `pull` waits for them.
        """
        dense: dict[Key, NDArray] = {}
        for one, values in group_by_key("push", key, value):
            stored = self._lookup(one, values)
            is_one = len(values) == 1 and values[0].context == stored.context
            total = values[0] if is_one else sum_over_devices(one, values, stored.context)
            if total.stype != "default" or one in dense:
                self._start(dense)
                dense = {}
            if total.stype == "default":
                dense[one] = total
            else:
                self._wait_pending()
                self._apply_rows(one, stored, self._sum_rows(one, total))
        self._start(dense)
        self._overwritten = ""

    def overwrite(self, keys: Sequence[Key], values: Sequence[NDArray]) -> None:
        """Replace stored arrays, for example after loading a file during training.

        All workers must call it with the same values. The next push raises `Disagreement` on all
        workers if they have overwritten different keys.
        """
        self._wait_pending()
        checksum = 0
        for key, value in zip(keys, values, strict=True):
            self._stored[key][:] = value
            checksum = zlib.crc32(value.asnumpy().tobytes(), checksum)
        names = ", ".join(map(str, keys[:3])) + (", ..." if len(keys) > 3 else "")
        details = f"(keys {names}; checksum {checksum:08x})"
        self._overwritten = f"{len(keys)} weights overwritten {details}"

    def watch_gradients(
        self, keys: Sequence[Key], weights: Sequence[NDArray]
    ) -> OverlappedSums | None:
        """Start sending gradients of weights during backward; return None if not applicable.

        `push_watched` replaces `push` for them.
        """
        is_plain = not isinstance(self._compression, TwoBit)
        if self._group.size == 1 or not is_plain or not can_send_early(weights):
            return None
        by_reducer = self._group_by_reducer(keys)
        if len(by_reducer) != 1:
            return None
        early = OverlappedSums(by_reducer[0][0], keys, weights)
        if early.is_useful:
            return early
        early.close()
        return None

    def push_watched(
        self, early: OverlappedSums, keys: Sequence[Key], weights: Sequence[NDArray]
    ) -> bool:
        """Push watched gradients; return False if they must be pushed normally."""
        self._wait_pending()
        reduction = early.finish(self._facts(), early.watches(keys, weights))
        if reduction is not None:
            self._pending.append(reduction)
            self._overwritten = ""
        return reduction is not None

    def _start(self, values: Mapping[Key, NDArray]) -> None:
        if not values:
            return
        # Decided by the stored types, which are the same on all ranks.
        tensors = {k: plain(v).to(_dtype_of(self._stored[k])) for k, v in values.items()}
        if isinstance(self._compression, TwoBit):
            sums = sum_packed(self._group, self._compression, list(tensors), [*tensors.values()])
            self._wait_pending()
            self._apply(self._arrays(dict(zip(tensors, sums, strict=True))))
            return
        for reducer, keys in self._group_by_reducer(tensors):
            reduction = reducer.start(keys, [tensors[key] for key in keys], self._facts())
            self._pending.append(reduction)

    def _sharded_updater(self) -> ShardedUpdater | None:
        """Return the updater if it shards the optimizer's states, else None."""
        updater = self._updater
        if not isinstance(updater, ShardedUpdater) or not updater.prepare():
            return None
        updater.reducer.wire = self._reducer.wire
        return updater

    def _group_by_reducer(self, keys: Collection[Key]) -> list[tuple[Reducer, list[Key]]]:
        updater = self._sharded_updater()
        if updater is None:
            return [(self._reducer, list(keys))] if keys else []
        sharded = [key for key in keys if updater.is_sharded(key)]
        whole = [key for key in keys if not updater.is_sharded(key)]
        groups = [(updater.reducer, sharded), (self._reducer, whole)]
        return [(reducer, group) for reducer, group in groups if group]

    def _wait_pending(self) -> None:
        pending, self._pending = self._pending, []
        for reduction in pending:
            updater = self._updater if isinstance(reduction.reducer, ShardedReducer) else None
            for bucket in reduction.buckets():
                if isinstance(updater, ShardedUpdater):
                    updater.step(bucket.bucket.keys, bucket.sums())
                else:
                    self._apply(self._arrays(bucket.sums()))
            if isinstance(updater, ShardedUpdater):
                updater.finish()

    def _arrays(self, tensors: Mapping[Key, Tensor]) -> dict[Key, NDArray]:
        return {k: wrap_plain(NDArray, t, self._stored[k]._ctx) for k, t in tensors.items()}

    def _apply(self, sums: Mapping[Key, NDArray]) -> None:
        """Apply complete sums; without an optimizer they overwrite the stored arrays."""
        if self._updater is None:
            for key, total in sums.items():
                if total.stype == self._stored[key].stype == "default":
                    plain(self._stored[key]).copy_(plain(total))  # the buffer of a sum is reused
                else:
                    self._stored[key] = total
            return
        whole = dict(sums)
        updater = self._sharded_updater()
        if updater is not None:
            sharded = {key: whole.pop(key) for key in sums if updater.is_sharded(key)}
            dense = {k: plain(v) for k, v in sharded.items() if v.stype == "default"}
            if dense:
                updater.step_by_whole(dense)
            for key, total in sharded.items():
                if key not in dense:
                    updater.step_by_rows(key, total)
        if whole:
            super()._apply(whole)

    def _sum_rows(self, key: Key, value: Any) -> NDArray:
        what = f"the sum of rows of key {key}"
        rows = self._group.gather_ragged(value._indices, what)
        dtype = _dtype_of(self._stored[key])
        values = self._group.gather_ragged(value._values.to(dtype), what)
        return _row_sparse(values, rows, value)

    def _apply_rows(self, key: Key, stored: Any, total: Any) -> None:
        """Apply a row_sparse sum; without an optimizer it replaces only its rows."""
        if self._updater is None and stored.stype == "row_sparse":
            is_unchanged = ~torch.isin(stored._indices, total._indices)
            values = [stored._values[is_unchanged], total._values.to(stored._values)]
            rows = [stored._indices[is_unchanged], total._indices]
            total = _row_sparse(values, rows, stored)
        self._apply({key: total})

    # -- updating -----------------------------------------------------------------------------

    def set_optimizer(self, optimizer: opt.Optimizer) -> None:
        """Set the optimizer that applies the sums; its settings must be the same on all workers.

        Later changes of the learning rate take effect, because every worker updates by its own
        optimizer; in MXNet they did not reach the servers. The states of large models are sharded
        over the workers; see ``MXNET_KVSTORE_SHARD_MB``.
        """
        self._wait_pending()
        limit = env.get("MXNET_KVSTORE_SHARD_MB")
        self._group.agree(f"{_describe(optimizer)}, shards from {limit} MB", "the optimizer")
        self._updater = make_updater(optimizer, self._group, self._stored)
        if isinstance(self._updater, ShardedUpdater):
            weakref.finalize(self, self._updater.release).atexit = False

    def _facts(self) -> str:
        """Return the settings that must be equal on all workers in each round."""
        overwritten = self._overwritten and f"{self._overwritten} "
        if not isinstance(self._updater, opt.Updater):
            return overwritten
        optimizer = self._updater.optimizer
        rate = optimizer.lr if optimizer.lr_scheduler is None else "scheduled"
        settings = f"rescale_grad={optimizer.rescale_grad:.9g} learning_rate={rate}"
        return f"{overwritten}{settings} wd={optimizer.wd}"

    def set_gradient_compression(self, compression_params: Mapping[str, Any]) -> None:
        """Compress gradients: ``{'type': '2bit', 'threshold': 0.5}``, or type 'fp16' or 'bf16'."""
        self._wait_pending()
        kind = compression_params.get("type") if isinstance(compression_params, Mapping) else None
        if kind in HALF_TYPES:
            self._reducer.wire, self._compression = HALF_TYPES[kind], None
        else:
            self._compression = make_compression(compression_params)


def _dtype_of(array: Any) -> torch.dtype:
    return array._dtype if array._dtype is not None else array._values.dtype


def _row_sparse(values: list[Tensor], rows: list[Tensor], like: NDArray) -> NDArray:
    return make(RowSparseNDArray, like.shape, *layout.sum_rows(values, rows), ctx=like._ctx)


def _describe(optimizer: opt.Optimizer) -> str:
    plain_types = bool | int | float | str | None
    settings = {
        k: v for k, v in vars(optimizer).items() if isinstance(v, plain_types) and k[0] != "_"
    }
    return f"{type(optimizer).__name__} {dict(sorted(settings.items()))}"


@KVStoreBase.register
class Horovod(_Member, KVStoreBase):
    """Sums over workers like Horovod; `mx.kvstore.create('horovod')`.

    Without a launcher there is one worker.
    """

    def __init__(self) -> None:
        self._group = join_group(alone=True)
        self._reducer = Reducer(self._group)

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        """Copy rank 0's value into the outputs of all workers."""
        entries, outs = group_by_key("broadcast", key, value), group_by_key("broadcast", key, out)
        for (one, values), (_, outputs) in zip(entries, outs, strict=True):
            root = values[0].copy()
            self._group.broadcast(plain(root), 0, f"broadcast of key {one}")
            for output in outputs:
                root.copyto(output)

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """Sum values over devices and workers, into `out` or back into `value`."""
        entries = group_by_key("pushpull", key, value)
        outputs = dict(entries if out is None else group_by_key("pushpull", key, out))
        totals = [
            plain(sum_over_devices(one, values, values[0].context)) for one, values in entries
        ]
        for one, total in self._reducer.sums([k for k, _ in entries], totals):
            for output in outputs[one]:
                plain(output).copy_(total)

    @staticmethod
    def is_capable(capability: str) -> bool:
        """Return False for `OPTIMIZER`: workers update their own weights."""
        return answer_capability(capability, can_update=False)

    @property
    def type(self) -> str:
        """The name of the kind of store."""
        return self.__class__.__name__.lower()

    @property
    def local_rank(self) -> int:
        """The rank of this worker among those on its host."""
        return self._group.local_rank


@KVStoreBase.register
class BytePS(Horovod):
    """Sums over workers like BytePS; `mx.kvstore.create('byteps')`."""
