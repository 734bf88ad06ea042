"""Checkpoints: a symbol and its parameters in two files."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from .. import ndarray as nd
from .. import symbol as sym
from ..context import cpu
from ..error import FormatError
from ..formats.atomic import replacing
from ..formats.location import existing_file, local_path
from ..ndarray import NDArray
from ..symbol import Symbol

Params = dict[str, NDArray]


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
