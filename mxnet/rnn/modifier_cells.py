"""Cells around a cell: zoneout and residual connections."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import symbol
from ..ndarray import NDArray
from ..symbol import Symbol
from .base_cell import BaseRNNCell, RNNParams, Sequenced, as_sequence
from .fused_cell import FusedRNNCell
from .stacked_cells import BidirectionalCell, SequentialRNNCell


class ModifierCell(BaseRNNCell):
    """A cell that changes what another one does; that one is used through this one only.

    Parameters
    ----------
    base_cell : BaseRNNCell
        The cell that is changed.

    >>> issubclass(mx.rnn.ZoneoutCell, mx.rnn.ModifierCell)
    True
    """

    def __init__(self, base_cell: BaseRNNCell) -> None:
        super().__init__()
        base_cell._modified = True
        self.base_cell = base_cell

    @property
    def params(self) -> RNNParams:
        """The parameters of the cell inside."""
        self._own_params = False
        return self.base_cell.params

    @property
    def state_info(self) -> list[dict[str, Any]]:
        """Shape and layout of each state of the cell inside."""
        return self.base_cell.state_info

    def begin_state(
        self, init_sym: Callable = symbol.zeros, func: Callable | None = None, **kwargs: Any
    ) -> list[Symbol]:
        """Return the first states of the cell inside; `func` is another name of `init_sym`."""
        self._check_not_modified()
        self.base_cell._modified = False
        try:
            return self.base_cell.begin_state(func=func or init_sym, **kwargs)
        finally:
            self.base_cell._modified = True

    def unpack_weights(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Do what the cell inside does."""
        return self.base_cell.unpack_weights(args)

    def pack_weights(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Do what the cell inside does."""
        return self.base_cell.pack_weights(args)

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        """Do one step."""
        raise NotImplementedError


class ZoneoutCell(ModifierCell):
    """Keeps, in training, some outputs and states as they were a step before.

    Parameters
    ----------
    base_cell : BaseRNNCell
        The cell that is changed.
    zoneout_outputs, zoneout_states : float
        The probabilities.

    >>> cell = mx.rnn.ZoneoutCell(mx.rnn.RNNCell(4), zoneout_states=0.1)
    >>> outputs, states = cell.unroll(2, mx.sym.var("data"), merge_outputs=True)
    >>> outputs.infer_shape(data=(1, 2, 5))[1]
    [(1, 2, 4)]
    """

    def __init__(
        self, base_cell: BaseRNNCell, zoneout_outputs: float = 0.0, zoneout_states: float = 0.0
    ) -> None:
        if isinstance(base_cell, FusedRNNCell):
            raise AssertionError("FusedRNNCell doesn't support zoneout. Please unfuse first.")
        inner = base_cell._cells if isinstance(base_cell, SequentialRNNCell) else [base_cell]
        if any(isinstance(cell, BidirectionalCell) for cell in inner):
            raise AssertionError(
                "BidirectionalCell doesn't support zoneout since it doesn't support step. Please "
                "add ZoneoutCell to the cells underneath instead."
            )
        super().__init__(base_cell)
        self.zoneout_outputs, self.zoneout_states = zoneout_outputs, zoneout_states
        self.prev_output: Symbol | None = None

    def reset(self) -> None:
        """Forget the last output; the cell inside goes on counting its steps."""
        super().reset()
        self.prev_output = None

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        """Do one step."""
        output, new_states = self.base_cell(inputs, states)
        before = symbol.zeros((0, 0)) if self.prev_output is None else self.prev_output
        if self.zoneout_outputs:
            output = _mixed(self.zoneout_outputs, output, before)
        if self.zoneout_states:
            pairs = zip(new_states, states, strict=True)
            new_states = [_mixed(self.zoneout_states, new, old) for new, old in pairs]
        self.prev_output = output
        return output, new_states


def _mixed(p: float, new: Symbol, old: Symbol) -> Symbol:
    """Return the old value with probability `p`, the new one otherwise."""
    return symbol.where(symbol.Dropout(symbol.ones_like(new), p=p), new, old)


class ResidualCell(ModifierCell):
    """Adds the input to the output.

    Parameters
    ----------
    base_cell : BaseRNNCell
        The cell that is changed.

    >>> cell = mx.rnn.ResidualCell(mx.rnn.RNNCell(5))
    >>> outputs, states = cell.unroll(2, mx.sym.var("data"), merge_outputs=True)
    >>> outputs.infer_shape(data=(1, 2, 5))[1]
    [(1, 2, 5)]
    """

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        """Do one step."""
        output, states = self.base_cell(inputs, states)
        return _plus_residual(output, inputs), states

    def unroll(
        self,
        length: int,
        inputs: Sequenced,
        begin_state: Sequence[Symbol] | None = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
    ) -> tuple[Sequenced, list]:
        """Return outputs with the inputs added, and last states."""
        self.reset()
        self.base_cell._modified = False
        try:
            outputs, states = self.base_cell.unroll(
                length, inputs, begin_state, layout, merge_outputs
            )
        finally:
            self.base_cell._modified = True
        if merge_outputs is None:
            merge_outputs = isinstance(outputs, Symbol)
        inputs, _ = as_sequence(length, inputs, layout, merge_outputs)
        if merge_outputs:
            return _plus_residual(outputs, inputs), states
        return [_plus_residual(x, y) for x, y in zip(outputs, inputs, strict=True)], states


def _plus_residual(output: Symbol, inputs: Symbol) -> Symbol:
    return symbol.elemwise_add(output, inputs, name=f"{output.name}_plus_residual")
