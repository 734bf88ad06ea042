"""`DistSyncStore`: arrays that the workers of a job share, summed over all of them on each push.

There is no server: every worker holds the stored arrays. Sums travel by all-reduce, and every
worker applies the same update to its copy; of large models each worker updates a part, and sends
it to the others. Either way the copies stay equal bit by bit.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from .. import env
from .. import optimizer as opt
from ..distributed.overlap import OverlappedSums, can_send_early
from ..distributed.reduction import Reducer, Reduction
from ..distributed.sharding import ShardedReducer
from ..imperative.handle import plain, wrap_plain
from ..ndarray import NDArray
from ..ndarray.sparse import RowSparseNDArray, layout
from ..ndarray.sparse.arrays import make
from .compression import HALF_TYPES, TwoBit, make_compression
from .distributed import DistributedStore
from .keys import Key, grouped
from .kvstore import SYNC
from .packing import sum_packed
from .sharded_updater import ShardedUpdater, make_updater
from .summing import summed

__all__ = ["DistSyncStore"]


class DistSyncStore(DistributedStore):
    """A store that all workers of a job share; make it with `mx.kvstore.create('dist_sync')`.

    All workers push and pull the same keys in the same order. Without an optimizer the sum over
    devices and workers replaces the stored array; with one, the optimizer applies the sum once.
    `create`, `init`, `set_optimizer` and `barrier` wait for all workers.

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

        Sums of dense arrays travel while the program goes on; `pull` waits for them.
        """
        dense: dict[Key, NDArray] = {}
        for one, values in grouped("push", key, value):
            stored = self._known(one, values)
            is_one = len(values) == 1 and values[0].context == stored.context
            total = values[0] if is_one else summed(one, values, stored.context)
            if total.stype != "default" or (one in dense):
                self._start(dense)
                dense = {}
            if total.stype == "default":
                dense[one] = total
            else:
                self._wait_pending()
                self._apply_rows(one, stored, self._sum_rows(one, total))
        self._start(dense)

    def watch_gradients(
        self, keys: Sequence[Key], weights: Sequence[NDArray]
    ) -> OverlappedSums | None:
        """Let gradients of weights leave during backward; None where that cannot help.

        `push_watched` takes the place of `push` for them.
        """
        is_plain = not isinstance(self._compression, TwoBit)
        if self._group.size == 1 or not is_plain or not can_send_early(weights):
            return None
        sharded = self._sharded(keys)
        if sharded and len(sharded) < len(keys):
            return None
        reducer = self._updater.reducer if sharded else self._reducer
        early = OverlappedSums(reducer, keys, weights)
        if early.is_useful:
            return early
        early.close()
        return None

    def push_watched(
        self, early: OverlappedSums, keys: Sequence[Key], weights: Sequence[NDArray]
    ) -> bool:
        """Push gradients that are watched; return False if they must be pushed as others are."""
        self._wait_pending()
        reduction = early.finish(self._facts(), early.watches(keys, weights))
        if reduction is not None:
            self._pending.append(reduction)
        return reduction is not None

    def _start(self, values: Mapping[Key, NDArray]) -> None:
        if not values:
            return
        tensors = self._fitting(values)
        if isinstance(self._compression, TwoBit):
            sums = sum_packed(self._group, self._compression, list(tensors), [*tensors.values()])
            self._wait_pending()
            self._apply(self._arrays(dict(zip(tensors, sums, strict=True))))
            return
        sharded = dict.fromkeys(self._sharded(tensors))
        whole = [key for key in tensors if key not in sharded]
        for keys in (list(sharded), whole):
            if keys:
                reducer = self._updater.reducer if keys is not whole else self._reducer
                reduction = reducer.start(keys, [tensors[key] for key in keys], self._facts())
                self._pending.append(reduction)

    def _sharded(self, keys: Iterable[Key]) -> list[Key]:
        """Return those of the keys whose optimizer states are split over the workers."""
        updater = self._updater
        if not isinstance(updater, ShardedUpdater) or not updater.prepare():
            return []
        updater.reducer.wire = self._reducer.wire
        return [key for key in keys if updater.is_sharded(key)]

    def _fitting(self, values: Mapping[Key, NDArray]) -> dict[Key, Tensor]:
        """Return tensors of the stored types, which are the same on all ranks."""
        return {k: plain(v).to(_dtype_of(self._stored[k])) for k, v in values.items()}

    def _wait_pending(self) -> None:
        """Wait for all sums on their way, and store or apply them in order."""
        pending, self._pending = self._pending, []
        for reduction in pending:
            for bucket in reduction.buckets():
                if isinstance(reduction.reducer, ShardedReducer):
                    self._updater.step(bucket.bucket.keys, bucket.sums())
                else:
                    self._apply(self._arrays(bucket.sums()))
            if isinstance(reduction.reducer, ShardedReducer):
                self._updater.finish()

    def _arrays(self, tensors: Mapping[Key, Tensor]) -> dict[Key, NDArray]:
        return {k: wrap_plain(NDArray, t, self._stored[k]._ctx) for k, t in tensors.items()}

    def _apply(self, sums: Mapping[Key, NDArray]) -> None:
        """Apply whole sums; without an optimizer they overwrite the stored arrays."""
        if self._updater is None:
            for key, total in sums.items():
                if total.stype == self._stored[key].stype == "default":
                    plain(self._stored[key]).copy_(plain(total))  # a sum's buffer is used again
                else:
                    self._stored[key] = total
            return
        dense = {k: plain(sums[k]) for k in self._sharded(sums) if sums[k].stype == "default"}
        if dense:
            self._updater.step_by_whole(dense)
        sparse = [k for k in self._sharded(sums) if k not in dense]
        for key in sparse:
            self._updater.step_by_rows(key, sums[key])
        rest = {k: v for k, v in sums.items() if k not in dense and k not in sparse}
        if rest:
            super()._apply(rest)

    def _sum_rows(self, key: Key, value: Any) -> NDArray:
        """Return the sum over workers of a row_sparse array, as one."""
        what = f"the sum of rows of key {key}"
        rows = self._group.gather_ragged(value._indices, what)
        dtype = _dtype_of(self._stored[key])
        values = self._group.gather_ragged(value._values.to(dtype), what)
        return _row_sparse(values, rows, value)

    def _apply_rows(self, key: Key, stored: Any, total: Any) -> None:
        """Apply a row_sparse sum; without an optimizer it replaces only the rows that it has."""
        if self._updater is None and stored.stype == "row_sparse":
            kept = ~torch.isin(stored._indices, total._indices)
            values = [stored._values[kept], total._values.to(stored._values)]
            total = _row_sparse(values, [stored._indices[kept], total._indices], stored)
        self._apply({key: total})

    def pull(
        self, key: Any, out: Any = None, priority: int = 0, ignore_sparse: bool = True
    ) -> None:
        """Wait for the sums on their way and copy stored arrays into outputs; see `KVStore`."""
        self._wait_pending()
        super().pull(key, out, priority, ignore_sparse)

    def row_sparse_pull(
        self, key: Any, out: Any = None, priority: int = 0, row_ids: Any = None
    ) -> None:
        """Wait for the sums on their way and copy some rows of stored arrays; see `KVStore`."""
        self._wait_pending()
        super().row_sparse_pull(key, out, priority, row_ids)

    # -- updating -----------------------------------------------------------------------------

    def set_optimizer(self, optimizer: opt.Optimizer) -> None:
        """Let an optimizer apply the sums; its settings must be the same on all workers.

        MXNet sent a copy to its servers, which later changes of the learning rate did not reach.
        Here every worker updates by its own optimizer, so they do. The states of large models are
        split over the workers; see the variable ``MXNET_KVSTORE_SHARD_MB``.
        """
        self._wait_pending()
        limit = env.get("MXNET_KVSTORE_SHARD_MB")
        self._group.agree(f"{_described(optimizer)}, shards from {limit} MB", "the optimizer")
        self._updater = make_updater(optimizer, self._group, self._stored)
        if isinstance(self._updater, ShardedUpdater):
            weakref.finalize(self, self._updater.release).atexit = False

    def _facts(self) -> str:
        """Return what the workers must agree on in each round, or their weights would part."""
        if self._updater is None:
            return ""
        optimizer = self._updater.optimizer
        rate = optimizer.lr if optimizer.lr_scheduler is None else "scheduled"
        return f"rescale_grad={optimizer.rescale_grad:.9g} learning_rate={rate} wd={optimizer.wd}"

    def save_optimizer_states(self, fname: Any, dump_optimizer: bool = False) -> None:
        """Write the optimizer's states of all workers to a file; any worker may call it."""
        self._wait_pending()
        super().save_optimizer_states(fname, dump_optimizer)

    def load_optimizer_states(self, fname: Any) -> None:
        """Read what `save_optimizer_states` wrote; all workers read the same file."""
        self._wait_pending()
        super().load_optimizer_states(fname)

    def set_gradient_compression(self, compression_params: Mapping[str, Any]) -> None:
        """Send less: ``{'type': '2bit', 'threshold': 0.5}``, or ``{'type': 'fp16'}`` or 'bf16'."""
        self._wait_pending()
        kind = compression_params.get("type") if isinstance(compression_params, Mapping) else None
        if kind in HALF_TYPES:
            self._reducer.wire, self._compression = HALF_TYPES[kind], None
        else:
            self._compression = make_compression(compression_params)


def _dtype_of(array: Any) -> torch.dtype:
    return array._dtype if array._dtype is not None else array._values.dtype


def _row_sparse(values: list[Tensor], rows: list[Tensor], like: NDArray) -> NDArray:
    """Return the sum of row_sparse arrays, given by the values and numbers of their rows."""
    return make(RowSparseNDArray, like.shape, *layout.sum_rows(values, rows), ctx=like._ctx)


def _described(optimizer: opt.Optimizer) -> str:
    """Return class and settings of an optimizer as text."""
    kept = bool | int | float | str | None
    settings = {k: v for k, v in vars(optimizer).items() if isinstance(v, kept) and k[0] != "_"}
    return f"{type(optimizer).__name__} {dict(sorted(settings.items()))}"
