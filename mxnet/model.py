"""Checkpoints, the exchange of gradients and weights between devices, and `FeedForward`."""

from __future__ import annotations

import logging
import time
import warnings
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from . import io, metric as metrics, ndarray as nd, optimizer as opt, symbol as sym
from . import kvstore as kvs
from .base import _as_list
from .callback import LogValidationMetricsCallback
from .context import Context, cpu, current_context
from .error import FormatError
from .formats.atomic import replacing
from .formats.location import existing_file, local_path
from .initializer import Initializer, Uniform
from .io import DataDesc  # noqa: F401 (MXNet shows it here)
from .ndarray import NDArray
from .optimizer import get_updater  # noqa: F401 (MXNet shows it here)
from .symbol import Symbol

__all__ = ["BatchEndParam", "FeedForward", "load_checkpoint", "load_params", "save_checkpoint"]

Params = dict[str, NDArray]
LARGE = 16 * 1024 * 1024  # elements; the update of larger weights is spread over the devices

BatchEndParam = namedtuple("BatchEndParams", ["epoch", "nbatch", "eval_metric", "locals"])
BatchEndParam.__doc__ = "What batch callbacks get; `locals` are the variables of the loop."


# -- checkpoints -------------------------------------------------------------------------------


def save_checkpoint(
    prefix: str,
    epoch: int,
    symbol: Symbol | None,
    arg_params: Mapping[str, NDArray],
    aux_params: Mapping[str, NDArray],
    remove_amp_cast: bool = True,
) -> None:
    """Write ``prefix-symbol.json`` and ``prefix-%04d.params``; each file appears whole or not."""
    if symbol is not None:
        write_symbol(f"{prefix}-symbol.json", symbol, remove_amp_cast)
    name = params_name(prefix, epoch)
    nd.save(name, named_params(arg_params, aux_params))
    logging.info('Saved checkpoint to "%s"', name)


def load_checkpoint(prefix: str, epoch: int) -> tuple[Symbol, Params, Params]:
    """Read what `save_checkpoint` wrote: symbol, arguments and auxiliary states."""
    symbol = sym.load(str(existing_file(f"{prefix}-symbol.json")))
    return symbol, *load_params(prefix, epoch)


def load_params(prefix: str, epoch: int) -> tuple[Params, Params]:
    """Read the parameters of a checkpoint: arguments and auxiliary states."""
    return read_params(params_name(prefix, epoch))


def params_name(prefix: str, epoch: int) -> str:
    """Return the name of a checkpoint's parameter file.

    >>> params_name("mnist", 3)
    'mnist-0003.params'
    """
    return f"{prefix}-{epoch:04d}.params"


def write_symbol(place: str, symbol: Symbol, remove_amp_cast: bool = True) -> None:
    """Write a symbol's JSON so that the file is there whole or not at all."""
    with replacing(local_path(place)) as file:
        file.write(symbol.tojson(remove_amp_cast=remove_amp_cast).encode("utf-8"))


def named_params(arg_params: Mapping[str, NDArray], aux_params: Mapping[str, NDArray]) -> Params:
    """Return all parameters under the names they have in files."""
    named = {f"arg:{name}": value.as_in_context(cpu()) for name, value in arg_params.items()}
    named.update((f"aux:{name}", value.as_in_context(cpu())) for name, value in aux_params.items())
    return named


def read_params(place: str) -> tuple[Params, Params]:
    """Read a parameter file; return arguments and auxiliary states."""
    read = nd.load(place)
    if isinstance(read, list):
        if not read:
            logging.warning("Params file '%s' is empty", place)
            return {}, {}
        raise FormatError(f"{place!r} holds arrays without names; parameters have names.")
    kinds: dict[str, Params] = {"arg": {}, "aux": {}}
    for name, value in read.items():
        kind, colon, rest = name.partition(":")
        if not colon or kind not in kinds:
            raise FormatError(
                f"Invalid param file {place!r}: the name {name!r} does not begin with 'arg:' or "
                "'aux:'. Read it with mx.nd.load."
            )
        kinds[kind][rest] = value
    return kinds["arg"], kinds["aux"]


# -- exchange between devices ------------------------------------------------------------------


def _create_kvstore(
    kvstore: Any, num_device: int, arg_params: Mapping[str, NDArray]
) -> tuple[Any, bool]:
    """Return the store, or None where one device needs none, and whether it does the updates."""
    if kvstore is None:
        return None, False
    if not isinstance(kvstore, str):
        if not hasattr(kvstore, "pushpull") and not hasattr(kvstore, "push"):
            raise TypeError("kvstore must be KVStore, str or None")
        return kvstore, True
    if num_device == 1 and "dist" not in kvstore:
        return None, False
    largest = max((value.size for value in arg_params.values()), default=0)
    return kvs.create(kvstore), not (kvstore == "local" and largest > LARGE)


def _initialize_kvstore(
    kvstore: Any,
    param_arrays: Sequence[Sequence[NDArray]],
    arg_params: Mapping[str, NDArray],
    param_names: Sequence[str],
    update_on_kvstore: bool,
) -> None:
    """Put all parameters into the store, and bring the devices' copies in line."""
    for index, (name, on_devices) in enumerate(zip(param_names, param_arrays, strict=True)):
        kvstore.init(name, arg_params[name])
        if update_on_kvstore:
            kvstore.pull(name, on_devices, priority=-index)


def _trained(
    param_arrays: Sequence[Sequence[NDArray]],
    grad_arrays: Sequence[Sequence[NDArray | None]],
    param_names: Sequence[str] | None,
) -> list[tuple[int, Any, Sequence[NDArray], Sequence[NDArray]]]:
    """Return index, key, weights and gradients of every parameter that has a gradient."""
    return [
        (index, index if param_names is None else param_names[index], weights, grads)
        for index, (weights, grads) in enumerate(zip(param_arrays, grad_arrays, strict=True))
        if grads[0] is not None
    ]


def _update_params_on_kvstore(
    param_arrays: Sequence[Sequence[NDArray]],
    grad_arrays: Sequence[Sequence[NDArray | None]],
    kvstore: Any,
    param_names: Sequence[str],
) -> None:
    """Send gradients to the store, which updates, and fetch the weights, all in one call each."""
    trained = _trained(param_arrays, grad_arrays, param_names)
    if not trained:
        return
    keys = [key for _, key, _, _ in trained]
    kvstore.push(keys, [list(grads) for *_, grads in trained])
    kvstore.pull(keys, [list(weights) for _, _, weights, _ in trained])


def _update_params(
    param_arrays: Sequence[Sequence[NDArray]],
    grad_arrays: Sequence[Sequence[NDArray | None]],
    updater: Callable,
    num_device: int,
    kvstore: Any = None,
    param_names: Sequence[str] | None = None,
) -> None:
    """Update the weights of every device with one call of the updater for each."""
    trained = _trained(param_arrays, grad_arrays, param_names)
    if not trained:
        return
    if kvstore is not None:
        keys = [key for _, key, _, _ in trained]
        grads = [list(grads) for *_, grads in trained]
        kvstore.push(keys, grads)
        kvstore.pull(keys, grads)
    for device in range(num_device):
        updater(
            [index * num_device + device for index, *_ in trained],
            [grads[device] for *_, grads in trained],
            [weights[device] for _, _, weights, _ in trained],
        )
