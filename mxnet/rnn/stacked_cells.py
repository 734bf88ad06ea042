"""Cells made of cells: in a row, or both ways in time; and dropout between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import symbol
from ..ndarray import NDArray
from ..symbol import Symbol
from .base_cell import BaseRNNCell, RNNParams, Sequenced, as_sequence


class _CellsOfCells(BaseRNNCell):
    """What they have in common: parameters and states are those of the cells."""

    _cells: list[BaseRNNCell]

    @property
    def state_info(self) -> list[dict[str, Any]]:
        """Shape and layout of each state of all cells."""
        return [info for cell in self._cells for info in cell.state_info]

    def begin_state(self, func: Callable = symbol.zeros, **kwargs: Any) -> list[Symbol]:
        """Return the first states of all cells."""
        self._check_not_modified()
        return [s for cell in self._cells for s in cell.begin_state(func=func, **kwargs)]

    def unpack_weights(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Return parameters with one weight and bias for each gate of each cell."""
        for cell in self._cells:
            args = cell.unpack_weights(args)
        return dict(args)

    def pack_weights(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Do the reverse of `unpack_weights`."""
        for cell in self._cells:
            args = cell.pack_weights(args)
        return dict(args)

    def _adopt(self, cell: BaseRNNCell, kind: str) -> None:
        """Let a cell and this one know each other's parameters."""
        if self._override_cell_params:
            if not cell._own_params:
                raise AssertionError(f"Either specify params for {kind} or child cells, not both.")
            cell.params._params.update(self.params._params)
        self.params._params.update(cell.params._params)


class SequentialRNNCell(_CellsOfCells):
    """Cells in a row, each on the outputs of the one before.

    Parameters
    ----------
    params : RNNParams, optional
        Parameters that are shared with other cells.

    >>> cell = mx.rnn.SequentialRNNCell()
    >>> cell.add(mx.rnn.LSTMCell(4, prefix="a_"))
    >>> cell.add(mx.rnn.LSTMCell(3, prefix="b_"))
    >>> outputs, states = cell.unroll(2, mx.sym.var("data"), merge_outputs=True)
    >>> outputs.infer_shape(data=(1, 2, 5))[1]
    [(1, 2, 3)]
    """

    def __init__(self, params: RNNParams | None = None) -> None:
        super().__init__(prefix="", params=params)
        self._override_cell_params = params is not None
        self._cells = []

    def add(self, cell: BaseRNNCell) -> None:
        """Add a cell at the end."""
        self._cells.append(cell)
        self._adopt(cell, "SequentialRNNCell")

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        """Do one step."""
        self._counter += 1
        last: list[Symbol] = []
        for cell in self._cells:
            if isinstance(cell, BidirectionalCell):
                raise AssertionError("A row with a BidirectionalCell cannot be stepped: use unroll")
            count, states = len(cell.state_info), list(states)
            inputs, new = cell(inputs, states[:count])
            states = states[count:]
            last.extend(new)
        return inputs, last

    def unroll(
        self,
        length: int,
        inputs: Sequenced,
        begin_state: Sequence[Symbol] | None = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
    ) -> tuple[Sequenced, list]:
        """Return outputs of the last cell, and the last states of all."""
        self.reset()
        states = list(self.begin_state() if begin_state is None else begin_state)
        last: list = []
        for i, cell in enumerate(self._cells):
            count = len(cell.state_info)
            is_last = i == len(self._cells) - 1
            inputs, new = cell.unroll(
                length,
                inputs=inputs,
                begin_state=states[:count],
                layout=layout,
                merge_outputs=merge_outputs if is_last else None,
            )
            states = states[count:]
            last.extend(new)
        return inputs, last


class DropoutCell(BaseRNNCell):
    """Dropout of what passes through; it has no state.

    Parameters
    ----------
    dropout : float
        Probability that a value is set to 0.
    prefix : str
        What the names of parameters and outputs begin with.
    params : RNNParams, optional
        Parameters that are shared with other cells.

    >>> cell = mx.rnn.DropoutCell(0.5)
    >>> outputs, states = cell.unroll(2, mx.sym.var("data"), merge_outputs=True)
    >>> outputs.infer_shape(data=(1, 2, 5))[1]
    [(1, 2, 5)]
    """

    def __init__(
        self, dropout: float, prefix: str = "dropout_", params: RNNParams | None = None
    ) -> None:
        super().__init__(prefix, params)
        self.dropout = float(dropout)

    @property
    def state_info(self) -> list[dict[str, Any]]:
        """Nothing."""
        return []

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        """Do one step."""
        if self.dropout > 0:
            inputs = symbol.Dropout(data=inputs, p=self.dropout)
        return inputs, states

    def unroll(
        self,
        length: int,
        inputs: Sequenced,
        begin_state: Sequence[Symbol] | None = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
    ) -> tuple[Sequenced, list]:
        """Return the inputs after dropout, of all steps at once if they are one symbol."""
        self.reset()
        inputs, _ = as_sequence(length, inputs, layout, merge_outputs)
        if isinstance(inputs, Symbol):
            return self(inputs, [])
        return super().unroll(length, inputs, begin_state, layout, merge_outputs)


class BidirectionalCell(_CellsOfCells):
    """Two cells over the same inputs, one forward and one backward; outputs are side by side.

    Parameters
    ----------
    l_cell, r_cell : BaseRNNCell
        The cell that reads forwards.
    params : RNNParams, optional
        Parameters that are shared with other cells.
    output_prefix : str
        What the names of outputs begin with.

    >>> cell = mx.rnn.BidirectionalCell(mx.rnn.LSTMCell(4, "l_"), mx.rnn.LSTMCell(4, "r_"))
    >>> outputs, states = cell.unroll(2, mx.sym.var("data"), merge_outputs=True)
    >>> outputs.infer_shape(data=(1, 2, 5))[1]
    [(1, 2, 8)]
    """

    def __init__(
        self,
        l_cell: BaseRNNCell,
        r_cell: BaseRNNCell,
        params: RNNParams | None = None,
        output_prefix: str = "bi_",
    ) -> None:
        super().__init__("", params=params)
        self._output_prefix = output_prefix
        self._override_cell_params = params is not None
        self._cells = [l_cell, r_cell]
        for cell in self._cells:
            self._adopt(cell, "BidirectionalCell")

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        """Refuse: the way back begins at the end."""
        raise NotImplementedError("Bidirectional cannot be stepped. Please use unroll")

    def unroll(
        self,
        length: int,
        inputs: Sequenced,
        begin_state: Sequence[Symbol] | None = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
    ) -> tuple[Sequenced, list]:
        """Return outputs, and a list with the last states of each cell."""
        self.reset()
        steps, axis = as_sequence(length, inputs, layout, False)
        states = list(self.begin_state() if begin_state is None else begin_state)
        forth, back = self._cells
        count = len(forth.state_info)
        left, left_states = forth.unroll(length, steps, states[:count], layout, merge_outputs)
        right, right_states = back.unroll(
            length, list(reversed(steps)), states[count:], layout, merge_outputs
        )
        if merge_outputs is None:
            merge_outputs = isinstance(left, Symbol) and isinstance(right, Symbol)
            left, _ = as_sequence(None, left, layout, merge_outputs)
            right, _ = as_sequence(None, right, layout, merge_outputs)
        name = self._output_prefix
        if merge_outputs:
            right = symbol.reverse(right, axis=axis)
            outputs = symbol.Concat(left, right, dim=2, name=f"{name}out")
        else:
            pairs = zip(left, reversed(list(right)), strict=True)
            outputs = [
                symbol.Concat(x, y, dim=1, name=f"{name}t{i}") for i, (x, y) in enumerate(pairs)
            ]
        return outputs, [left_states, right_states]
