"""Creation of stores, and exchange of gradients and weights between devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import kvstore as kvs
from .._process import env
from ..ndarray import NDArray
from .exchange import exchange_with

LARGE_WEIGHT = 16 * 1024 * 1024  # elements; for larger weights a "local" store only sums


def _create_kvstore(
    kvstore: Any, num_device: int, arg_params: Mapping[str, NDArray]
) -> tuple[Any, bool]:
    """Return the store (None for a single device) and whether it updates the weights."""
    if kvstore is None:
        return None, False
    by_store = env.get("MXNET_UPDATE_ON_KVSTORE")
    if isinstance(kvstore, kvs.KVStoreBase):
        return kvstore, by_store and kvstore.is_capable(kvs.KVStoreBase.OPTIMIZER)
    if not isinstance(kvstore, str):
        raise TypeError(f"kvstore must be KVStore, str or None, not {type(kvstore).__name__}")
    if num_device == 1 and not kvs.is_distributed(kvstore):
        return None, False
    largest = max((value.size for value in arg_params.values()), default=0)
    store = kvs.create(kvstore)
    if not store.is_capable(kvs.KVStoreBase.OPTIMIZER):
        return store, False
    return store, by_store and not (kvstore == "local" and largest > LARGE_WEIGHT)


def _create_sparse_kvstore(kvstore: Any) -> tuple[Any, bool]:
    """Return the store of row_sparse parameters, which updates them."""
    if not isinstance(kvstore, kvs.KVStoreBase | str):
        raise TypeError(
            f"Cannot create '{kvstore}' KVStore with row_sparse parameters. The type must be "
            "KVStore or str."
        )
    return (kvs.create(kvstore) if isinstance(kvstore, str) else kvstore), True


def _initialize_kvstore(
    kvstore: Any,
    param_arrays: Sequence[Sequence[NDArray]],
    arg_params: Mapping[str, NDArray],
    param_names: Sequence[str],
    update_on_kvstore: bool,
) -> None:
    """Initialize the store with all parameters, and synchronize the devices' copies."""
    exchange = exchange_with(kvstore)
    arrays = [list(on_devices) for on_devices in param_arrays]
    exchange.init(param_names, [arg_params[name] for name in param_names], arrays)
    if update_on_kvstore:
        exchange.pull(param_names, arrays)


def _trained(
    param_arrays: Sequence[Sequence[NDArray]],
    grad_arrays: Sequence[Sequence[NDArray | None]],
    param_names: Sequence[str] | None,
) -> list[tuple[int, Any, Sequence[NDArray], Sequence[Any]]]:
    return [
        (index, index if param_names is None else param_names[index], weights, grads)
        for index, (weights, grads) in enumerate(zip(param_arrays, grad_arrays, strict=True))
        if grads[0] is not None
    ]


def _exchange(
    kvstore: Any, indices: Sequence[int], keys: Sequence, values: list[list], outs: list[list]
) -> None:
    exchange = exchange_with(kvstore)
    exchange.push(keys, values, outs, priorities=[-index for index in indices])
    exchange.pull(keys, outs, ignore_sparse=False)


def _update_params_on_kvstore(
    param_arrays: Sequence[Sequence[NDArray]],
    grad_arrays: Sequence[Sequence[NDArray | None]],
    kvstore: Any,
    param_names: Sequence[str],
) -> None:
    trained = _trained(param_arrays, grad_arrays, param_names)
    if trained:
        indices, keys, weights, grads = zip(*trained, strict=True)
        _exchange(kvstore, indices, keys, [*map(list, grads)], [*map(list, weights)])


def _update_params(
    param_arrays: Sequence[Sequence[NDArray]],
    grad_arrays: Sequence[Sequence[NDArray | None]],
    updater: Callable,
    num_device: int,
    kvstore: Any = None,
    param_names: Sequence[str] | None = None,
) -> None:
    trained = _trained(param_arrays, grad_arrays, param_names)
    if not trained:
        return
    if kvstore is not None:
        indices, keys, _, grads = zip(*trained, strict=True)
        on_devices = [*map(list, grads)]
        _exchange(kvstore, indices, keys, on_devices, on_devices)
    for device in range(num_device):
        updater(
            [index * num_device + device for index, *_ in trained],
            [grads[device] for *_, grads in trained],
            [weights[device] for _, _, weights, _ in trained],
        )
