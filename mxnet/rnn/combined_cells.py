"""Cells that combine or modify other cells, and the fused cell."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import initializer as init
from .. import ndarray, symbol
from ..ndarray import NDArray
from ..symbol import Symbol
from .base_cell import BaseRNNCell, RNNParams, Sequenced, as_sequence
from .step_cells import GRUCell, LSTMCell, RNNCell


class _CellsOfCells(BaseRNNCell):
    """Base of cells that consist of other cells."""

    _cells: list[BaseRNNCell]
    _override_cell_params: bool

    @property
    def state_info(self) -> list[dict[str, Any]]:
        """Shape and layout of each state of all cells."""
        return [info for cell in self._cells for info in cell.state_info]

    def begin_state(self, func: Callable = symbol.zeros, **kwargs: Any) -> list[Symbol]:
        """Return the initial states of all cells."""
        self._check_not_modified()
        return [s for cell in self._cells for s in cell.begin_state(func=func, **kwargs)]

    def unpack_weights(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Split joint weights and biases into one weight and bias per gate and cell."""
        for cell in self._cells:
            args = cell.unpack_weights(args)
        return dict(args)

    def pack_weights(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Reverse `unpack_weights`."""
        for cell in self._cells:
            args = cell.pack_weights(args)
        return dict(args)

    def _adopt(self, cell: BaseRNNCell, kind: str) -> None:
        """Share parameters between a cell and this one."""
        if self._override_cell_params:
            if not cell._own_params:
                raise AssertionError(f"Either specify params for {kind} or child cells, not both.")
            cell.params._params.update(self.params._params)
        self.params._params.update(cell.params._params)


class SequentialRNNCell(_CellsOfCells):
    """A chain of cells, each on the outputs of the previous one.

    Parameters
    ----------
    params : RNNParams, optional
        Container of parameters, to share them with other cells.

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
        """Append a cell."""
        self._cells.append(cell)
        self._adopt(cell, "SequentialRNNCell")

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        """Take one step."""
        self._counter += 1
        last: list[Symbol] = []
        for cell in self._cells:
            if isinstance(cell, BidirectionalCell):
                raise AssertionError(
                    "A chain with a BidirectionalCell cannot be stepped: use unroll"
                )
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
        """Return the outputs of the last cell, and the final states of all cells."""
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
    """Applies dropout to its inputs; it has no state.

    Parameters
    ----------
    dropout : float
        Probability of setting an element to 0.
    prefix : str
        Prefix of the names of parameters and outputs.
    params : RNNParams, optional
        Container of parameters, to share them with other cells.

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
        """Empty: the cell has no state."""
        return []

    def __call__(self, inputs: Symbol, states: Any) -> tuple[Symbol, list[Symbol]]:
        """Take one step."""
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
        """Apply dropout to the inputs, in one call if they are one symbol."""
        self.reset()
        inputs, _ = as_sequence(length, inputs, layout, merge_outputs)
        if isinstance(inputs, Symbol):
            return self(inputs, [])
        return super().unroll(length, inputs, begin_state, layout, merge_outputs)


class BidirectionalCell(_CellsOfCells):
    """Runs two cells over the inputs, forward and backward, and concatenates their outputs.

    Parameters
    ----------
    l_cell, r_cell : BaseRNNCell
        The forward and the backward cell.
    params : RNNParams, optional
        Container of parameters, to share them with other cells.
    output_prefix : str
        Prefix of the output names.

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
        """Not supported: the backward direction starts at the end."""
        raise NotImplementedError("Bidirectional cannot be stepped. Please use unroll")

    def unroll(
        self,
        length: int,
        inputs: Sequenced,
        begin_state: Sequence[Symbol] | None = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
    ) -> tuple[Sequenced, list]:
        """Return the outputs, and a list of the final states of each cell."""
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


class ModifierCell(BaseRNNCell):
    """Base of cells that wrap another cell, which is then used only through the wrapper.

    Parameters
    ----------
    base_cell : BaseRNNCell
        The cell to wrap.

    >>> issubclass(mx.rnn.ZoneoutCell, mx.rnn.ModifierCell)
    True
    """

    def __init__(self, base_cell: BaseRNNCell) -> None:
        super().__init__()
        base_cell._modified = True
        self.base_cell = base_cell

    @property
    def params(self) -> RNNParams:
        """The parameters of the wrapped cell."""
        self._own_params = False
        return self.base_cell.params

    @property
    def state_info(self) -> list[dict[str, Any]]:
        """Shape and layout of each state of the wrapped cell."""
        return self.base_cell.state_info

    def begin_state(  # pyright: ignore[reportIncompatibleMethodOverride] (as in MXNet)
        self, init_sym: Callable = symbol.zeros, func: Callable | None = None, **kwargs: Any
    ) -> list[Symbol]:
        """Return the initial states of the wrapped cell; `func` is an alias of `init_sym`."""
        self._check_not_modified()
        self.base_cell._modified = False
        try:
            return self.base_cell.begin_state(func=func or init_sym, **kwargs)
        finally:
            self.base_cell._modified = True

    def unpack_weights(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Call the wrapped cell's method."""
        return self.base_cell.unpack_weights(args)

    def pack_weights(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Call the wrapped cell's method."""
        return self.base_cell.pack_weights(args)

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        """Take one step."""
        raise NotImplementedError


class ZoneoutCell(ModifierCell):
    """Randomly keeps outputs and states of the previous step in training.

    Parameters
    ----------
    base_cell : BaseRNNCell
        The cell to wrap.
    zoneout_outputs, zoneout_states : float
        Probabilities of keeping the previous value.

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
        """Reset the last output; the wrapped cell is not reset."""
        super().reset()
        self.prev_output = None

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        """Take one step."""
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
    """Return the old value with probability `p`, else the new one."""
    return symbol.where(symbol.Dropout(symbol.ones_like(new), p=p), new, old)


class ResidualCell(ModifierCell):
    """Adds the input to the output.

    Parameters
    ----------
    base_cell : BaseRNNCell
        The cell to wrap.

    >>> cell = mx.rnn.ResidualCell(mx.rnn.RNNCell(5))
    >>> outputs, states = cell.unroll(2, mx.sym.var("data"), merge_outputs=True)
    >>> outputs.infer_shape(data=(1, 2, 5))[1]
    [(1, 2, 5)]
    """

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        """Take one step."""
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
        """Return the outputs with the inputs added, and the final states."""
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


GATES = {
    "rnn_relu": [""],
    "rnn_tanh": [""],
    "lstm": ["_i", "_f", "_c", "_o"],
    "gru": ["_r", "_z", "_o"],
}


class FusedRNNCell(BaseRNNCell):
    """Stacked layers of one type, run by the fused operator `RNN`.

    Parameters
    ----------
    num_hidden, num_layers : int
        Number of features of the hidden state.
    mode : {'rnn_relu', 'rnn_tanh', 'lstm', 'gru'}
        Type of cell.
    bidirectional : bool
        Whether to run in both directions.
    dropout : float
        Probability of dropout between layers.
    get_next_state : bool
        Whether `unroll` returns the final states.
    forget_bias : float
        Initial bias of the forget gates of an LSTM.
    prefix : str
        Prefix of the names; by default the mode.
    params : RNNParams, optional
        Container of parameters, to share them with other cells.

    >>> cell = mx.rnn.FusedRNNCell(4, num_layers=2, mode="gru")
    >>> outputs, states = cell.unroll(2, mx.sym.var("data"), layout="TNC", merge_outputs=True)
    >>> outputs.infer_shape(data=(2, 1, 5))[1]
    [(2, 1, 4)]
    """

    def __init__(
        self,
        num_hidden: int,
        num_layers: int = 1,
        mode: str = "lstm",
        bidirectional: bool = False,
        dropout: float = 0.0,
        get_next_state: bool = False,
        forget_bias: float = 1.0,
        prefix: str | None = None,
        params: RNNParams | None = None,
    ) -> None:
        if mode not in GATES:
            raise ValueError(f"Unknown mode {mode!r}: use one of {', '.join(GATES)}")
        super().__init__(prefix=f"{mode}_" if prefix is None else prefix, params=params)
        self._num_hidden, self._num_layers, self._mode = num_hidden, num_layers, mode
        self._bidirectional, self._dropout = bidirectional, dropout
        self._get_next_state = get_next_state
        self._directions = ["l", "r"] if bidirectional else ["l"]
        packed = init.FusedRNN(None, num_hidden, num_layers, mode, bidirectional, forget_bias)
        self._parameter = self._params.get("parameters", init=packed)
        self._parameter_name = str(self._parameter.name)

    @property
    def state_info(self) -> list[dict[str, Any]]:
        """Shape and layout of each state."""
        shape = (len(self._directions) * self._num_layers, 0, self._num_hidden)
        count = 2 if self._mode == "lstm" else 1
        return [{"shape": shape, "__layout__": "LNC"} for _ in range(count)]

    @property
    def _gate_names(self) -> list[str]:
        return GATES[self._mode]

    @property
    def _num_gates(self) -> int:
        return len(self._gate_names)

    def _parts(self, array: NDArray, input_size: int) -> dict[str, NDArray]:
        """Return views of the packed parameter: all weights, then all biases, gate by gate."""
        hidden, wide = self._num_hidden, self._num_hidden * len(self._directions)
        shapes: dict[str, tuple[int, ...]] = {}
        cells = [(i, f"{self._prefix}{d}{i}") for i in range(self._num_layers)
                 for d in self._directions]  # fmt: skip
        for layer, cell in cells:
            for group, width in (("i2h", wide if layer else input_size), ("h2h", hidden)):
                for gate in self._gate_names:
                    shapes[f"{cell}_{group}{gate}_weight"] = (hidden, width)
        for _, cell in cells:
            for group in ("i2h", "h2h"):
                for gate in self._gate_names:
                    shapes[f"{cell}_{group}{gate}_bias"] = (hidden,)
        parts, start = {}, 0
        for name, shape in shapes.items():
            size = hidden * (shape[1] if len(shape) > 1 else 1)
            parts[name] = array[start : start + size].reshape(shape)
            start += size
        if start != array.size:
            raise ValueError(f"{array.size} parameters do not match this RNN, which has {start}")
        return parts

    def _rows(self) -> int:
        return len(self._directions) * self._num_hidden * self._num_gates

    def _deeper(self) -> int:
        """Return the number of weights and biases per unit in the layers above the first."""
        hidden = self._num_hidden
        return (self._num_layers - 1) * (hidden * len(self._directions) + hidden + 2)

    def unpack_weights(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Split the packed parameter into one weight and bias per layer, direction and gate."""
        args = dict(args)
        array = args.pop(self._parameter_name)
        input_size = array.size // self._rows() - self._deeper() - self._num_hidden - 2
        args.update((name, x.copy()) for name, x in self._parts(array, input_size).items())
        return args

    def pack_weights(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Reverse `unpack_weights`."""
        args = dict(args)
        first = args[f"{self._prefix}l0_i2h{self._gate_names[0]}_weight"]
        input_size = first.shape[1]
        total = (input_size + self._num_hidden + 2 + self._deeper()) * self._rows()
        array = ndarray.zeros((total,), ctx=first.context, dtype=first.dtype)
        for name, part in self._parts(array, input_size).items():
            part[:] = args.pop(name)
        args[self._parameter_name] = array
        return args

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        """Not supported: the operator runs all steps."""
        raise NotImplementedError("FusedRNNCell cannot be stepped. Please use unroll")

    def unroll(
        self,
        length: int,
        inputs: Sequenced,
        begin_state: Sequence[Symbol] | None = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
    ) -> tuple[Sequenced, list]:
        """Return the outputs of `length` steps, and with `get_next_state` the final states."""
        self.reset()
        inputs, axis = as_sequence(length, inputs, layout, True)
        if axis == 1:
            warnings.warn(
                "NTC layout detected. Consider using TNC for FusedRNNCell for faster speed",
                stacklevel=2,
            )
            inputs = symbol.swapaxes(inputs, dim1=0, dim2=1)
        elif axis != 0:
            raise AssertionError(f"Unsupported layout {layout}")
        states = self.begin_state() if begin_state is None else begin_state
        names = ("state", "state_cell") if self._mode == "lstm" else ("state",)
        rnn = symbol.RNN(
            data=inputs,
            parameters=self._parameter,
            state_size=self._num_hidden,
            num_layers=self._num_layers,
            bidirectional=self._bidirectional,
            p=self._dropout,
            state_outputs=self._get_next_state,
            mode=self._mode,
            name=f"{self._prefix}rnn",
            **dict(zip(names, states, strict=True)),
        )
        outputs, *last = list(rnn) if self._get_next_state else [rnn]
        if axis == 1:
            outputs = symbol.swapaxes(outputs, dim1=0, dim2=1)
        return as_sequence(length, outputs, layout, merge_outputs)[0], last

    def unfuse(self) -> SequentialRNNCell:
        """Return an equivalent stack of unfused cells."""
        make = {
            "rnn_relu": lambda p: RNNCell(self._num_hidden, activation="relu", prefix=p),
            "rnn_tanh": lambda p: RNNCell(self._num_hidden, activation="tanh", prefix=p),
            "lstm": lambda p: LSTMCell(self._num_hidden, prefix=p),
            "gru": lambda p: GRUCell(self._num_hidden, prefix=p),
        }[self._mode]
        stack = SequentialRNNCell()
        for i in range(self._num_layers):
            left = make(f"{self._prefix}l{i}_")
            if self._bidirectional:
                right = make(f"{self._prefix}r{i}_")
                name = f"{self._prefix}bi_l{i}_"
                stack.add(BidirectionalCell(left, right, output_prefix=name))
            else:
                stack.add(left)
            if self._dropout > 0 and i != self._num_layers - 1:
                stack.add(DropoutCell(self._dropout, prefix=f"{self._prefix}_dropout{i}_"))
        return stack
