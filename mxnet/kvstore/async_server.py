"""What a server of `dist_async` holds, and the calls that workers make on it.

Every function here without an underscore runs on the server, in a thread of torch's remote
procedure calls; one lock puts the calls in order.
"""

from __future__ import annotations

import contextlib
import pickle
import threading
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .. import env
from ..imperative.handle import plain, wrap_plain
from ..ndarray import NDArray
from ..ndarray.sparse import RowSparseNDArray
from ..ndarray.sparse.arrays import make
from .base import Key
from .kvstore import KVStore

_lock = threading.Lock()
_held = KVStore("local")
_connected = False
LOST = ("eof", "connection", "broken pipe", "timed out", "pipe closed", "unreachable")


@dataclass(frozen=True)
class Payload:
    """An array on its way: a dense tensor, or the rows of a row_sparse array."""

    values: Tensor
    rows: Tensor | None = None
    shape: tuple[int, ...] = ()

    @staticmethod
    def of(array: Any) -> Payload:
        """Pack a copy of an array."""
        if array.stype == "default":
            return Payload(plain(array).detach().cpu().clone())
        return Payload(array._values.cpu().clone(), array._indices.cpu().clone(), array.shape)

    def array(self) -> NDArray:
        """Return the array."""
        if self.rows is None:
            return wrap_plain(NDArray, self.values)
        return make(RowSparseNDArray, self.shape, self.values, self.rows)


def init(key: Key, payload: Payload) -> None:
    """Store the first value of a key."""
    with _lock:
        _held._stored[key] = payload.array()


def push(content: Mapping[Key, Sequence[Payload]]) -> None:
    """Apply gradients by the optimizer."""
    with _lock:
        for key, payloads in content.items():
            for payload in payloads:
                _held._apply({key: payload.array()})


def pull(keys: Sequence[Key]) -> list[Payload]:
    """Return stored arrays."""
    with _lock:
        return [Payload.of(_held._stored[key]) for key in keys]


def pull_rows(key: Key, rows: Tensor) -> Payload:
    """Return some rows of a row_sparse array."""
    with _lock:
        stored: Any = _held._stored[key]
        return Payload.of(stored.retain(wrap_plain(NDArray, rows)))


def set_optimizer(pickled: bytes) -> None:
    """Take over an optimizer; the workers of a job trust each other."""
    with _lock:
        _held.set_optimizer(pickle.loads(pickled))


def change_settings(settings: tuple) -> None:
    """Follow rank 0's learning rate, weight decay and gradient scale."""
    rate, decay, scale = settings
    with _lock:
        optimizer = _held._states_of("change").optimizer
        optimizer.wd, optimizer.rescale_grad = decay, scale
        if rate is not None:
            optimizer.lr = rate


def states() -> bytes:
    """Return the states of the optimizer."""
    with _lock:
        return _held._states_of("save").get_states()


def load_states(data: bytes) -> None:
    """Take over states; those of other servers' keys do no harm."""
    with _lock:
        _held._states_of("load").set_states(data)


# -- joining -----------------------------------------------------------------------------------


def connect(store: Any, name: str, number: int, workers: int, servers: int) -> None:
    """Join the processes that call each other: workers first, then servers."""
    global _connected
    if _connected:
        return
    from torch.distributed import rpc

    store.set("rpc", "wanted")  # servers join when a store needs them

    def meet(url: str, **_: Any) -> Any:
        yield torch.distributed.PrefixStore("rpc", store), number, workers + servers

    with contextlib.suppress(RuntimeError):  # known already
        torch.distributed.register_rendezvous_handler("mxnet", meet)
    options = rpc.TensorPipeRpcBackendOptions(
        num_worker_threads=4,
        rpc_timeout=env.get("MXNET_KVSTORE_TIMEOUT"),
        init_method="mxnet://job",
    )
    with warnings.catch_warnings():  # torch's own call of a deprecated class
        warnings.simplefilter("ignore", UserWarning)
        size = workers + servers
        rpc.init_rpc(name, rank=number, world_size=size, rpc_backend_options=options)
    _connected = True


def disconnect() -> None:
    """Leave, after all calls of this job are done."""
    global _connected
    if _connected:
        from torch.distributed import rpc

        _connected = False
        with contextlib.suppress(RuntimeError):  # a peer is gone: so are we
            rpc.shutdown(graceful=True, timeout=10)


def is_connection_error(error: RuntimeError) -> bool:
    """Return whether a call failed on its way, rather than in the server."""
    text = str(error).lower()
    return "on node" not in text and any(word in text for word in LOST)
