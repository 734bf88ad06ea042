"""Checkpoints of recurrent networks, with separate weights for each gate.

So checkpoints of `FusedRNNCell` can be loaded into unfused cells, and vice versa.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..base import _as_list
from ..formats.model_files import load_checkpoint, save_checkpoint
from ..ndarray import NDArray
from ..symbol import Symbol, Variable
from .base_cell import BaseRNNCell

__all__ = ["do_rnn_checkpoint", "load_rnn_checkpoint", "rnn_unroll", "save_rnn_checkpoint"]

Cells = BaseRNNCell | Sequence[BaseRNNCell]


def rnn_unroll(
    cell: BaseRNNCell,
    length: int,
    inputs: Any = None,
    begin_state: Sequence[Symbol] | None = None,
    input_prefix: str = "",
    layout: str = "NTC",
) -> tuple:
    """Old form of ``cell.unroll(...)``; inputs are optional here.

    Parameters
    ----------
    cell
        The cell.
    length
        Number of steps.
    inputs
        Inputs of all steps: a symbol, or a list of symbols.
    begin_state
        Initial states; by default zeros.
    input_prefix
        Prefix of the names of created inputs.
    layout
        Order of the axes of inputs that are one symbol: ``'NTC'`` or ``'TNC'``.

    >>> import warnings
    >>> warnings.simplefilter("ignore")
    >>> outputs, states = mx.rnn.rnn.rnn_unroll(mx.rnn.RNNCell(2), 3, input_prefix="t")
    >>> len(outputs)
    3
    """
    warnings.warn("rnn_unroll is deprecated. Please call cell.unroll directly.", stacklevel=2)
    if inputs is None:
        inputs = [Variable(f"{input_prefix}t{i}_data") for i in range(length)]
    return cell.unroll(length, inputs=inputs, begin_state=begin_state, layout=layout)


def save_rnn_checkpoint(
    cells: Cells,
    prefix: str,
    epoch: int,
    symbol: Symbol,
    arg_params: Mapping[str, NDArray],
    aux_params: Mapping[str, NDArray],
) -> None:
    """Save a checkpoint with unpacked weights of the cells.

    Parameters
    ----------
    cells
        The cell, or list of cells, of the network.
    prefix
        Prefix of the file names.
    epoch
        Number of the epoch.
    symbol
        The network.
    arg_params, aux_params
        Parameters and auxiliary states by name.

    >>> cell = mx.rnn.DropoutCell(0.5)
    >>> mx.rnn.save_rnn_checkpoint(cell, "net", 1, mx.sym.var("x"), {"w": mx.nd.ones(2)}, {})
    >>> mx.rnn.load_rnn_checkpoint(cell, "net", 1)[0]
    <Symbol x>
    """
    for cell in _as_list(cells):
        arg_params = cell.unpack_weights(arg_params)
    save_checkpoint(prefix, epoch, symbol, arg_params, aux_params)


def load_rnn_checkpoint(cells: Cells, prefix: str, epoch: int) -> tuple[Symbol, dict, dict]:
    """Load a checkpoint, and pack the weights for the cells.

    Parameters
    ----------
    cells
        The cell, or list of cells, of the network.
    prefix
        Prefix of the file names.
    epoch
        Number of the epoch.

    >>> cell = mx.rnn.DropoutCell(0.5)
    >>> mx.rnn.save_rnn_checkpoint(cell, "net", 1, mx.sym.var("x"), {"w": mx.nd.ones(2)}, {})
    >>> symbol, arg_params, aux_params = mx.rnn.load_rnn_checkpoint(cell, "net", 1)
    """
    symbol, args, auxes = load_checkpoint(prefix, epoch)
    for cell in _as_list(cells):
        args = cell.pack_weights(args)
    return symbol, args, auxes


def do_rnn_checkpoint(cells: Cells, prefix: str, period: int = 1) -> Callable[..., None]:
    """Return an epoch callback that saves every `period` epochs.

    Parameters
    ----------
    cells
        The cell, or list of cells, of the network.
    prefix
        Prefix of the file names.
    period
        Number of epochs between checkpoints.

    >>> save = mx.rnn.do_rnn_checkpoint(mx.rnn.LSTMCell(3), "lstm", period=2)
    >>> callable(save)
    True
    """
    period = max(1, int(period))

    def save(iter_no: int, sym: Any = None, arg: Any = None, aux: Any = None) -> None:
        if (iter_no + 1) % period == 0:
            save_rnn_checkpoint(cells, prefix, iter_no + 1, sym, arg, aux)

    return save
