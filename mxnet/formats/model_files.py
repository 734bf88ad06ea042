"""Checkpoints: a symbol and its parameters in two files."""

from __future__ import annotations

import logging
import warnings
import zlib
from collections.abc import Mapping

from .. import ndarray as nd
from .. import symbol as sym
from ..context import cpu
from ..error import FormatError
from ..ndarray import NDArray
from ..ndarray.utils import save_with_info
from ..symbol import Symbol
from .atomic import one_commit, replacing
from .files import existing_file, local_path
from .params_file import read_info

Params = dict[str, NDArray]


def save_checkpoint(
    prefix: str,
    epoch: int,
    symbol: Symbol | None,
    arg_params: Mapping[str, NDArray],
    aux_params: Mapping[str, NDArray],
    remove_amp_cast: bool = True,
) -> None:
    """Save ``prefix-symbol.json`` and ``prefix-%04d.params``.

    Both files are replaced atomically.

    Parameters
    ----------
    prefix
        Prefix of the file names.
    epoch
        Number of the epoch, at the end of the parameter file's name.
    symbol
        The network.
    arg_params, aux_params
        Parameters and auxiliary states by name.
    remove_amp_cast
        Whether to remove casts of mixed precision from the saved symbol.

    >>> mx.model.save_checkpoint("net", 3, mx.sym.relu(mx.sym.var("x")), {"w": mx.nd.ones(2)}, {})
    >>> import os
    >>> sorted(os.listdir())
    ['net-0003.params', 'net-symbol.json']
    """
    with one_commit():
        text = None
        if symbol is not None:
            text = write_symbol(f"{prefix}-symbol.json", symbol, remove_amp_cast)
        name = params_name(prefix, epoch)
        write_params(name, arg_params, aux_params, text)
    logging.info('Saved checkpoint to "%s"', name)


def load_checkpoint(prefix: str, epoch: int) -> tuple[Symbol, Params, Params]:
    """Load a checkpoint: symbol, arguments and auxiliary states.

    Warns if the parameters were saved with a different symbol.

    Parameters
    ----------
    prefix
        Prefix of the file names.
    epoch
        Number of the epoch, at the end of the parameter file's name.

    >>> mx.model.save_checkpoint("net", 3, mx.sym.var("x"), {"w": mx.nd.ones(2)}, {})
    >>> symbol, arg_params, aux_params = mx.model.load_checkpoint("net", 3)
    >>> symbol, list(arg_params)
    (<Symbol x>, ['w'])
    """
    path = existing_file(f"{prefix}-symbol.json")
    symbol = sym.load(str(path))
    params = load_params(prefix, epoch)
    name = params_name(prefix, epoch)
    saved_with = read_info(name).get("symbol_crc32")
    if saved_with is not None and saved_with != zlib.crc32(path.read_bytes()):
        warnings.warn(
            f"{name!r} was saved with a symbol different from the one in {str(path)!r}: one of the "
            "files was replaced since. Check that they belong together.",
            stacklevel=2,
        )
    return symbol, *params


def load_params(prefix: str, epoch: int) -> tuple[Params, Params]:
    """Load the parameters of a checkpoint: arguments and auxiliary states.

    Parameters
    ----------
    prefix
        Prefix of the file names.
    epoch
        Number of the epoch, at the end of the parameter file's name.

    >>> mx.model.save_checkpoint("net", 3, mx.sym.var("x"), {"w": mx.nd.ones(2)}, {})
    >>> arg_params, aux_params = mx.model.load_params("net", 3)
    >>> arg_params["w"].shape
    (2,)
    """
    return read_params(params_name(prefix, epoch))


def params_name(prefix: str, epoch: int) -> str:
    """Return the name of a checkpoint's parameter file.

    >>> params_name("mnist", 3)
    'mnist-0003.params'
    """
    return f"{prefix}-{epoch:04d}.params"


def write_symbol(fname: str, symbol: Symbol, remove_amp_cast: bool = True) -> bytes:
    """Write a symbol's JSON atomically; return its bytes."""
    text = symbol.tojson(remove_amp_cast=remove_amp_cast).encode("utf-8")
    with replacing(local_path(fname)) as file:
        file.write(text)
    return text


def write_params(
    fname: str,
    arg_params: Mapping[str, NDArray],
    aux_params: Mapping[str, NDArray],
    symbol_text: bytes | None = None,
) -> None:
    """Write parameters, and a record of the symbol they belong to."""
    info = None if symbol_text is None else {"symbol_crc32": zlib.crc32(symbol_text)}
    save_with_info(fname, named_params(arg_params, aux_params), info)


def named_params(arg_params: Mapping[str, NDArray], aux_params: Mapping[str, NDArray]) -> Params:
    """Return all parameters by their names in files."""
    named = {f"arg:{name}": value.as_in_context(cpu()) for name, value in arg_params.items()}
    named.update((f"aux:{name}", value.as_in_context(cpu())) for name, value in aux_params.items())
    return named


def read_params(fname: str) -> tuple[Params, Params]:
    """Read a parameter file; return arguments and auxiliary states."""
    read = nd.load(fname)
    if isinstance(read, list):
        if not read:
            logging.warning("Params file '%s' is empty", fname)
            return {}, {}
        raise FormatError(f"{fname!r} contains arrays without names, which are not parameters.")
    kinds: dict[str, Params] = {"arg": {}, "aux": {}}
    for name, value in read.items():
        kind, colon, rest = name.partition(":")
        if not colon or kind not in kinds:
            raise FormatError(
                f"Invalid param file {fname!r}: the name {name!r} does not begin with 'arg:' or "
                "'aux:'. Read it with mx.nd.load."
            )
        kinds[kind][rest] = value
    return kinds["arg"], kinds["aux"]
