"""`KVStore`: arrays by key, shared by the devices of one process.

Below the class: parsing of keys and values, and sums over devices.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .. import optimizer as opt
from ..base import users_stacklevel
from ..context import Context
from ..error import InvalidType, InvalidValue, MXNetError, ShapeError, did_you_mean
from ..formats.atomic import replacing
from ..formats.files import existing_file, local_path
from ..ndarray import NDArray
from ..runtime.array import plain, wrap_plain
from .base import Key, KVStoreBase, answer_capability
from .compression import TwoBit, make_compression

__all__ = ["KVStore", "is_distributed"]


LOCAL = ("local", "local_update_cpu", "local_allreduce_cpu")
DEVICE = ("device", "local_allreduce_device", "nccl")
SYNC = ("dist", "dist_sync", "dist_device_sync", "dist_sync_device", "p3", "p3store_dist")
ASYNC = ("dist_async", "dist_async_device", "dist_device_async")
DISTRIBUTED = (*SYNC, *ASYNC)
COLLECTIVE = ("horovod", "byteps")


def is_distributed(name: str) -> bool:
    """Return whether stores of this name span several processes.

    Parameters
    ----------
    name
        Name of the store.

    >>> is_distributed("dist_sync"), is_distributed("device")
    (True, False)
    """
    return "dist" in name or name.lower() in (*DISTRIBUTED, *COLLECTIVE)


class KVStore(KVStoreBase):
    """A store of one process; create it with `mx.kvstore.create`.

    Pushed values are summed over devices. Without an updater the sum replaces the stored array;
    otherwise the updater applies the sum to it.

    Parameters
    ----------
    handle
        Accepted for compatibility: the name of the store.
    names
        Names of this class of stores.

    >>> kv = mx.kvstore.create("local")
    >>> kv.init("w", mx.nd.zeros(2))
    >>> kv.push("w", [mx.nd.ones(2), mx.nd.ones(2)])
    >>> out = mx.nd.zeros(2)
    >>> kv.pull("w", out=out)
    >>> out.asnumpy()
    array([2., 2.], dtype=float32)
    """

    def __init__(self, handle: str, names: Sequence[str] = (*LOCAL, *DEVICE)) -> None:
        name = handle.lower()
        if name not in names:
            choices = (*LOCAL, *DEVICE, *DISTRIBUTED, *KVStoreBase.kv_registry)
            hint = did_you_mean(name, choices) or f"Known: {', '.join(choices)}."
            raise MXNetError(f"Unknown KVStore type {handle!r}. {hint}")
        self._name = name
        self._stored: dict[Key, NDArray] = {}
        self._updater: Callable | None = None
        self._compression: TwoBit | None = None

    # -- push and pull --------------------------------------------------------------------

    def init(self, key: Any, value: Any) -> None:
        """Set the initial values of keys, once per key, before push and pull.

        Parameters
        ----------
        key : str, int or a list of them
            A key, or a list of keys; all keys of a store must have the same type.
        value : NDArray, or one for each key
            Array, or list with one array per device; a list of these for a list of keys.
        """
        entries = group_by_key("init", key, value)
        self._check_new(entries)
        self._stored.update((one, values[0].copy()) for one, values in entries)

    def push(self, key: Any, value: Any, priority: int = 0) -> None:
        """Sum the values of each key over devices, and store or apply the sum.

        Parameters
        ----------
        key : str, int or a list of them
            A key, or a list of keys: int or str.
        value : NDArray, a list of one for each device, or such a list for each key
            Array, or list with one array per device; a list of these for a list of keys.
        priority : int
            Accepted for compatibility; has no effect.
        """
        sums: dict[Key, NDArray] = {}
        for one, values in group_by_key("push", key, value):
            stored = self._lookup(one, values)
            total = sum_over_devices(one, values, stored.context, self._compression)
            if one in sums:  # a repeated key
                total = total + sums[one]
            sums[one] = total
        self._apply(sums)

    def pull(
        self, key: Any, out: Any = None, priority: int = 0, ignore_sparse: bool = True
    ) -> None:
        """Copy stored arrays into outputs.

        Parameters
        ----------
        key : str, int or a list of them
            A key, or a list of keys: int or str.
        out : NDArray, a list of one for each device, or such a list for each key
            Output array, or list with one array per device; a list of these for a list of keys.
        priority : int
            Accepted for compatibility; has no effect.
        ignore_sparse : bool
            Skip row_sparse outputs with a warning; use `row_sparse_pull` for them.
        """
        self._wait_pending()
        if out is None:
            raise InvalidValue("pull needs out=, the arrays to fill.")
        for one, outputs in group_by_key("pull", key, out):
            stored = self._lookup(one, outputs)
            for output in dense_outputs(outputs) if ignore_sparse else outputs:
                if stored.stype == output.stype == "default":
                    plain(output).copy_(plain(stored))
                else:
                    stored.copyto(output)

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """Push values and pull into `out`, or back into the values.

        Parameters
        ----------
        key
            A key, or a list of keys: int or str.
        value
            Array, or list with one array per device; a list of these for a list of keys.
        out
            Output array, or list with one array per device; a list of these for a list of keys.
        priority
            Accepted for compatibility; has no effect.
        """
        self.push(key, value, priority)
        self.pull(key, value if out is None else out, priority, ignore_sparse=False)

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        """Initialize a key and pull it; a key can be broadcast only once.

        Parameters
        ----------
        key
            A key, or a list of keys: int or str.
        value
            Array, or list with one array per device; a list of these for a list of keys.
        out
            Output array, or list with one array per device; a list of these for a list of keys.
        priority
            Accepted for compatibility; has no effect.
        """
        self.init(key, value)
        self.pull(key, out, priority)

    def row_sparse_pull(
        self, key: Any, out: Any = None, priority: int = 0, row_ids: Any = None
    ) -> None:
        """Copy selected rows of stored row_sparse arrays into row_sparse outputs.

        Parameters
        ----------
        key : str, int or a list of them
            A key, or a list of keys: int or str.
        out : RowSparseNDArray, a list of one for each device, or such a list for each key
            Output array, or list with one array per device; a list of these for a list of keys.
        priority : int
            Accepted for compatibility; has no effect.
        row_ids : NDArray, or a list of one for each output
            Row indices, in any order; duplicates are ignored.
        """
        self._wait_pending()
        if out is None or row_ids is None:
            raise InvalidValue("row_sparse_pull needs out= and row_ids=.")
        if isinstance(row_ids, list | tuple) and len(row_ids) == 1:
            row_ids = row_ids[0]
        entries = group_by_key("row_sparse_pull", key, out)
        if isinstance(row_ids, NDArray):
            for one, outputs in entries:
                self._pull_rows(one, outputs, [row_ids] * len(outputs))
            return
        all_rows = group_by_key("row_sparse_pull", key, row_ids)
        for (one, outputs), (_, rows) in zip(entries, all_rows, strict=True):
            self._pull_rows(one, outputs, rows * len(outputs) if len(rows) == 1 else rows)

    def _pull_rows(self, key: Key, outputs: list[NDArray], row_ids: list[NDArray]) -> None:
        if len(outputs) != len(row_ids):
            raise MXNetError(
                f"row_sparse_pull of key {key}: {len(outputs)} outputs need the same number of "
                f"row_ids, got {len(row_ids)}."
            )
        stored: Any = self._lookup(key, outputs)
        if stored.stype != "row_sparse":
            raise MXNetError(
                f"row_sparse_pull expects a row_sparse array, but key {key} is {stored.stype}; "
                "use pull."
            )
        for output, rows in zip(outputs, row_ids, strict=True):
            if output.stype != "row_sparse":
                raise MXNetError(
                    "Expected row_sparse storage type for row_sparse_pull values, but detected "
                    f"storage type {output.stype} in out= of key {key}."
                )
            chosen = wrap_plain(NDArray, plain(rows).flatten().long().unique().to(stored._indices))
            stored.retain(chosen).copyto(output)

    def _wait_pending(self) -> None:
        """Wait for pending pushes; this store has none."""

    def watch_gradients(self, keys: Sequence[Key], weights: Sequence[NDArray]) -> Any:
        """Return None: a store of one process sends nothing.

        Parameters
        ----------
        keys
            Keys of the weights.
        weights
            The weights.
        """
        return None

    # -- updating -----------------------------------------------------------------------------

    def set_optimizer(self, optimizer: opt.Optimizer) -> None:
        """Set the optimizer that applies pushed gradients to the stored weights.

        Parameters
        ----------
        optimizer
            The optimizer.
        """
        self._set_updater(opt.get_updater(optimizer))

    def _set_updater(self, updater: Callable[[Key, NDArray, NDArray], None]) -> None:
        """Set ``updater(key, sum, stored)``, called on each push to update the stored array."""
        self._updater = updater

    @property
    def updater(self) -> Callable | None:
        """The updater that applies pushed values, or None."""
        return self._updater

    def _apply(self, sums: Mapping[Key, NDArray]) -> None:
        stored = self._stored
        if self._updater is None:
            for key, total in sums.items():
                stored[key] = total
        elif isinstance(self._updater, opt.Updater):
            weights = [stored[key] for key in sums]
            self._updater(list(sums), list(sums.values()), weights)
        else:
            for key, total in sums.items():
                self._updater(key, total, stored[key])

    def _replace(self, values: Mapping[Key, NDArray]) -> None:
        for key, value in values.items():
            self._lookup(key, [value])
            self._stored[key] = value.copy()

    def save_optimizer_states(self, fname: Any, dump_optimizer: bool = False) -> None:
        """Save the optimizer's states to a file.

        Parameters
        ----------
        fname
            Path of the file.
        dump_optimizer
            Whether to save the optimizer too.
        """
        self._wait_pending()
        with replacing(local_path(fname)) as file:
            file.write(self._states_of("save").get_states(dump_optimizer))

    def load_optimizer_states(self, fname: Any) -> None:
        """Load a file of `save_optimizer_states`, of MXNext or MXNet.

        Parameters
        ----------
        fname
            Path of the file.
        """
        self._wait_pending()
        updater = self._states_of("load")
        updater.set_states(Path(existing_file(fname)).read_bytes())

    def _states_of(self, verb: str) -> opt.Updater:
        if not isinstance(self._updater, opt.Updater):
            raise InvalidValue(f"Cannot {verb} states: set_optimizer has not been called.")
        return self._updater

    def set_gradient_compression(self, compression_params: Mapping[str, Any]) -> None:
        """Compress gradients to two bits per value; supported by 'device' stores only.

        Parameters
        ----------
        compression_params
            Parameters of the compression, ``{'type': '2bit', 'threshold': 0.5}``.
        """
        if self._name not in DEVICE:
            raise MXNetError("Gradient compression is not supported for this type of kvstore")
        self._compression = make_compression(compression_params)

    # -- facts --------------------------------------------------------------------------------

    @staticmethod
    def is_capable(capability: str) -> bool:
        """Return True for `OPTIMIZER`, the only defined capability.

        Parameters
        ----------
        capability
            Name of the capability.
        """
        return answer_capability(capability, can_update=True)

    @property
    def type(self) -> str:
        """The name with which the store was created."""
        return self._name

    @property
    def rank(self) -> int:
        """0: there is one worker."""
        return 0

    @property
    def num_workers(self) -> int:
        """1: there is one worker."""
        return 1

    def barrier(self) -> None:
        """Do nothing: the store has a single worker."""

    _barrier = barrier

    def _send_command_to_servers(self, head: int, body: str) -> None:
        """Do nothing: a store of one process has no servers."""

    # -- checks -------------------------------------------------------------------------------

    def _check_new(self, entries: Sequence[tuple[Key, list[NDArray]]]) -> None:
        """Raise if a key already exists or is repeated."""
        seen: set[Key] = set()
        for key, values in entries:
            if key in self._stored or key in seen or len(values) > 1:
                raise MXNetError(
                    f"duplicate init of key {key}. Please double check if you called kv.init or "
                    "kv.broadcast with this key multiple times"
                )
            seen.add(key)
            self._check_kind(key)

    def _check_kind(self, key: Key) -> None:
        first = next(iter(self._stored), key)
        if type(first) is not type(key):
            raise MXNetError(
                f"Mixed key types are not allowed: this store has keys like {first!r}, got {key!r}."
            )

    def _lookup(self, key: Key, values: Sequence[NDArray]) -> NDArray:
        """Return the stored array of a key; raise if values do not match it."""
        self._check_kind(key)
        stored = self._stored.get(key)
        if stored is None:
            raise MXNetError(f"key {key} has not been inited: call init({key!r}, value) first")
        for value in values:
            if value.shape != stored.shape:
                raise ShapeError(
                    f"Key {key} was inited with shape {stored.shape}, got an array of shape "
                    f"{value.shape}."
                )
        return stored


class KeyTypeError(InvalidType):
    """Raised if a key is neither str nor int, or a value is not an array."""


def _key(key: Any) -> Key:
    if isinstance(key, bool) or not isinstance(key, str | int | np.integer):
        raise KeyTypeError(f"unexpected type for keys: {type(key).__name__}; keys are str or int")
    return key if isinstance(key, str) else int(key)


def _arrays(verb: str, key: Key, value: Any) -> list[NDArray]:
    values = list(value) if isinstance(value, list | tuple) else [value]
    for one in values:
        if not isinstance(one, NDArray):
            raise KeyTypeError(
                f"{verb} of key {key} takes an NDArray or a list of them, got {type(one).__name__}"
            )
    if not values:
        raise MXNetError(f"{verb} of key {key} got no arrays.")
    return values


def dense_outputs(outputs: list[NDArray]) -> list[NDArray]:
    """Return the dense outputs of a pull; warn if there are others."""
    dense = [out for out in outputs if out.stype == "default"]
    if len(dense) != len(outputs):
        warnings.warn(
            "non-default weights detected during kvstore pull. This call has been ignored. Please "
            "make sure to use kv.row_sparse_pull() or module.prepare() with row_ids.",
            stacklevel=users_stacklevel(),
        )
    return dense


def group_by_key(verb: str, key: Any, value: Any) -> list[tuple[Key, list[NDArray]]]:
    """Return each key with its arrays, one for each device.

    >>> a, b = mx.nd.ones(1), mx.nd.ones(1)
    >>> [(k, len(v)) for k, v in group_by_key("push", ["x", "y"], [[a, b], a])]
    [('x', 2), ('y', 1)]
    """
    if not isinstance(key, list | tuple):
        key = _key(key)
        return [(key, _arrays(verb, key, value))]
    keys = [_key(k) for k in key]
    if len({type(k) for k in keys}) > 1:
        raise InvalidValue(f"inconsistent types of keys: {key}; use all str or all int")
    if not isinstance(value, list | tuple) or len(value) != len(keys):
        count = len(value) if isinstance(value, list | tuple) else 1
        raise InvalidValue(
            f"{verb} got {len(keys)} keys but {count} values: pass an array, or a list of arrays, "
            "for each key."
        )
    return [(k, _arrays(verb, k, v)) for k, v in zip(keys, value, strict=True)]


def sum_over_devices(
    key: Any, values: Sequence[NDArray], context: Context, compression: TwoBit | None = None
) -> NDArray:
    """Return the sum of arrays, compressed if requested, as a new array on a device."""
    if len({v.stype for v in values}) > 1:
        kinds = ", ".join(v.stype for v in values)
        raise MXNetError(f"Values of key {key} have different storage types: {kinds}.")
    is_dense = values[0].stype == "default"
    if is_dense and compression is not None:
        values = [
            wrap_plain(NDArray, compression((key, i), plain(v)), v._ctx)
            for i, v in enumerate(values)
        ]
    total = values[0].copyto(context)
    for other in values[1:]:
        if is_dense:
            buffer = plain(total)
            buffer += plain(other).to(buffer.device, buffer.dtype)
        else:
            total = total + other.as_in_context(context)
    return total
