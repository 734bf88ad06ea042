"""`KVStore`: arrays by key that the devices of one process share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import optimizer as opt
from ..error import InvalidValue, MXNetError, ShapeError, did_you_mean
from ..formats.atomic import replacing
from ..formats.files import existing_file, local_path
from ..imperative.handle import plain, wrap_plain
from ..ndarray import NDArray
from .base import KVStoreBase, UnknownCapability
from .compression import TwoBit, make_compression
from .keys import Key, dense_outputs, grouped
from .summing import summed

__all__ = ["KVStore", "is_distributed"]

LOCAL = ("local", "local_update_cpu", "local_allreduce_cpu")
DEVICE = ("device", "local_allreduce_device", "nccl")
SYNC = ("dist", "dist_sync", "dist_device_sync", "dist_sync_device", "p3", "p3store_dist")
ASYNC = ("dist_async", "dist_async_device", "dist_device_async")
DISTRIBUTED = (*SYNC, *ASYNC)
COLLECTIVE = ("horovod", "byteps")


def is_distributed(name: str) -> bool:
    """Return whether stores of this name share arrays with other processes.

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

    Pushed values are summed over devices. Without an updater the sum takes the place of the
    stored array; with one the updater changes the stored array by the sum.

    Parameters
    ----------
    handle
        Accepted for compatibility: the name of the store.
    names
        Names that stores of this class have.

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
            known = (*LOCAL, *DEVICE, *DISTRIBUTED, *KVStoreBase.kv_registry)
            hint = did_you_mean(name, known) or f"Known: {', '.join(known)}."
            raise MXNetError(f"Unknown KVStore type {handle!r}. {hint}")
        self._name = name
        self._stored: dict[Key, NDArray] = {}
        self._updater: Callable | None = None
        self._compression: TwoBit | None = None

    # -- arrays in and out --------------------------------------------------------------------

    def init(self, key: Any, value: Any) -> None:
        """Give keys their first values, each once, before they are pushed or pulled.

        Parameters
        ----------
        key : str, int or a list of them
            Keys of one store are all str or all int.
        value : NDArray, or one for each key
            The array of a key, or one for each device; such a value for each key.
        """
        entries = list(grouped("init", key, value))
        self._check_new(entries)
        self._stored.update((one, values[0].copy()) for one, values in entries)

    def push(self, key: Any, value: Any, priority: int = 0) -> None:
        """Sum the values of each key over devices, and store or apply the sum.

        Parameters
        ----------
        key : str, int or a list of them
            A key, or a list of keys: numbers or text.
        value : NDArray, a list of one for each device, or such a list for each key
            The array of a key, or one for each device; such a value for each key.
        priority : int
            Accepted; everything is done at once and in order.
        """
        sums: dict[Key, NDArray] = {}
        for one, values in grouped("push", key, value):
            stored = self._known(one, values)
            total = summed(one, values, stored.context, self._compression)
            if one in sums:  # a key given twice
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
            A key, or a list of keys: numbers or text.
        out : NDArray, a list of one for each device, or such a list for each key
            Where to copy to: an array, or one for each device; such a target for each key.
        priority : int
            Accepted; everything is done at once and in order.
        ignore_sparse : bool
            Leave row_sparse outputs as they are, with a warning: they are for `row_sparse_pull`.
        """
        if out is None:
            raise InvalidValue("pull needs out=: the arrays to fill.")
        for one, places in grouped("pull", key, out):
            stored = self._known(one, places)
            _spread(stored, dense_outputs(places) if ignore_sparse else places)

    def pushpull(self, key: Any, value: Any, out: Any = None, priority: int = 0) -> None:
        """Do `push` of values and `pull` into `out`, or back into the values.

        Parameters
        ----------
        key
            A key, or a list of keys: numbers or text.
        value
            The array of a key, or one for each device; such a value for each key.
        out
            Where to copy to: an array, or one for each device; such a target for each key.
        priority
            Accepted for compatibility, without effect.
        """
        self.push(key, value, priority)
        self.pull(key, value if out is None else out, priority, ignore_sparse=False)

    def broadcast(self, key: Any, value: Any, out: Any, priority: int = 0) -> None:
        """Do `init` and `pull`: a key is broadcast once.

        Parameters
        ----------
        key
            A key, or a list of keys: numbers or text.
        value
            The array of a key, or one for each device; such a value for each key.
        out
            Where to copy to: an array, or one for each device; such a target for each key.
        priority
            Accepted for compatibility, without effect.
        """
        self.init(key, value)
        self.pull(key, out, priority)

    def row_sparse_pull(
        self, key: Any, out: Any = None, priority: int = 0, row_ids: Any = None
    ) -> None:
        """Copy some rows of stored row_sparse arrays into row_sparse outputs.

        Parameters
        ----------
        key : str, int or a list of them
            A key, or a list of keys: numbers or text.
        out : RowSparseNDArray, a list of one for each device, or such a list for each key
            Where to copy to: an array, or one for each device; such a target for each key.
        priority : int
            Accepted; everything is done at once and in order.
        row_ids : NDArray, or a list of one for each output
            The rows, in any order; one that comes twice counts once.
        """
        if out is None or row_ids is None:
            raise InvalidValue("row_sparse_pull needs out= and row_ids=.")
        wanted = row_ids
        if isinstance(row_ids, list | tuple):
            wanted = row_ids[0] if len(row_ids) == 1 else row_ids
        if isinstance(wanted, NDArray):
            for one, places in grouped("row_sparse_pull", key, out):
                self._pull_rows(one, places, [wanted] * len(places))
            return
        pairs = zip(
            grouped("row_sparse_pull", key, out),
            grouped("row_sparse_pull", key, wanted),
            strict=True,
        )
        for (one, places), (_, rows) in pairs:
            if len(rows) == 1:
                rows = rows * len(places)
            self._pull_rows(one, places, rows)

    def _pull_rows(self, key: Key, places: list[NDArray], row_ids: list[NDArray]) -> None:
        if len(places) != len(row_ids):
            raise MXNetError(
                f"row_sparse_pull of key {key}: {len(places)} outputs need as many row_ids, "
                f"got {len(row_ids)}."
            )
        stored: Any = self._known(key, places)
        if stored.stype != "row_sparse":
            raise MXNetError(
                f"row_sparse_pull expects a row_sparse array, but key {key} is {stored.stype}; "
                "use pull."
            )
        for place, rows in zip(places, row_ids, strict=True):
            if place.stype != "row_sparse":
                raise MXNetError(
                    "Expected row_sparse storage type for row_sparse_pull values, but detected "
                    f"storage type {place.stype} in out= of key {key}."
                )
            chosen = wrap_plain(NDArray, plain(rows).flatten().long().unique().to(stored._indices))
            stored.retain(chosen).copyto(place)

    def watch_gradients(self, keys: Sequence[Key], weights: Sequence[NDArray]) -> Any:
        """Let gradients leave during backward; None, as nothing leaves the process.

        Parameters
        ----------
        keys
            Keys of the weights.
        weights
            Arrays whose gradients are pushed.
        """
        return None

    # -- updating -----------------------------------------------------------------------------

    def set_optimizer(self, optimizer: opt.Optimizer) -> None:
        """Let an optimizer apply pushed gradients to the stored weights.

        Parameters
        ----------
        optimizer
            The optimizer.
        """
        self._set_updater(opt.get_updater(optimizer))

    def _set_updater(self, updater: Callable[[Key, NDArray, NDArray], None]) -> None:
        """Let ``updater(key, sum, stored)`` change the stored array on each push."""
        self._updater = updater

    @property
    def updater(self) -> Callable | None:
        """What applies pushed values, or None."""
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
        """Store copies of arrays in place of what is stored."""
        for key, value in values.items():
            self._known(key, [value])
            self._stored[key] = value.copy()

    def save_optimizer_states(self, fname: Any, dump_optimizer: bool = False) -> None:
        """Write the optimizer's states to a file, with `dump_optimizer` the optimizer too.

        Parameters
        ----------
        fname
            Path of the file.
        dump_optimizer
            Whether to write the optimizer too.
        """
        with replacing(local_path(fname)) as file:
            file.write(self._states_of("save").get_states(dump_optimizer))

    def load_optimizer_states(self, fname: Any) -> None:
        """Read what `save_optimizer_states` wrote, here or in MXNet.

        Parameters
        ----------
        fname
            Path of the file.
        """
        updater = self._states_of("load")
        updater.set_states(Path(existing_file(fname)).read_bytes())

    def _states_of(self, verb: str) -> opt.Updater:
        if not isinstance(self._updater, opt.Updater):
            raise InvalidValue(f"Cannot {verb} states: set_optimizer has not been called.")
        return self._updater

    def set_gradient_compression(self, compression_params: Mapping[str, Any]) -> None:
        """Send two bits per value, ``{'type': '2bit', 'threshold': 0.5}``; 'device' stores only.

        Parameters
        ----------
        compression_params
            Type and threshold.
        """
        if self._name not in DEVICE:
            raise MXNetError("Gradient compression is not supported for this type of kvstore")
        self._compression = make_compression(compression_params)

    # -- facts --------------------------------------------------------------------------------

    @staticmethod
    def is_capable(capability: str) -> bool:
        """Return True for `OPTIMIZER`, the one capability that may be asked.

        Parameters
        ----------
        capability
            Name of the capability.
        """
        if capability.lower() == KVStoreBase.OPTIMIZER:
            return True
        raise UnknownCapability(f"Unknown capability: {capability}")

    @property
    def type(self) -> str:
        """The name that the store was created by."""
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
        """Wait for all workers, of which there is one."""

    _barrier = barrier

    def _send_command_to_servers(self, head: int, body: str) -> None:
        """Do nothing: a store of one process has no servers."""

    # -- checks -------------------------------------------------------------------------------

    def _check_new(self, entries: Sequence[tuple[Key, list[NDArray]]]) -> None:
        """Raise unless each of the keys comes for the first time, and once."""
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

    def _known(self, key: Key, values: Sequence[NDArray]) -> NDArray:
        """Return the stored array of a key; values that do not fit it are refused."""
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


def _spread(stored: NDArray, places: Sequence[NDArray]) -> None:
    for place in places:
        if stored.stype == "default" and place.stype == "default":
            plain(place).copy_(plain(stored))
        else:
            stored.copyto(place)
