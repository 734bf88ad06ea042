"""`FusedRNNCell`: stacked layers as one operator, with all weights in one parameter."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from .. import initializer as init
from .. import ndarray, symbol
from ..ndarray import NDArray
from ..symbol import Symbol
from .base_cell import BaseRNNCell, RNNParams, Sequenced, as_sequence
from .stacked_cells import BidirectionalCell, DropoutCell, SequentialRNNCell
from .step_cells import GRUCell, LSTMCell, RNNCell

GATES = {
    "rnn_relu": [""],
    "rnn_tanh": [""],
    "lstm": ["_i", "_f", "_c", "_o"],
    "gru": ["_r", "_z", "_o"],
}


class FusedRNNCell(BaseRNNCell):
    """Layers of one kind, unrolled at once by the operator `RNN`.

    Parameters
    ----------
    num_hidden, num_layers : int
        Number of features of the hidden state.
    mode : {'rnn_relu', 'rnn_tanh', 'lstm', 'gru'}
        Kind of cell.
    bidirectional : bool
        Whether a second direction reads the sequence backwards.
    dropout : float
        Between layers.
    get_next_state : bool
        Whether `unroll` returns the last states.
    forget_bias : float
        First value of an LSTM's forget gate's bias.
    prefix : str
        By default the mode.
    params : RNNParams, optional
        Parameters that are shared with other cells.

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
        found, start = {}, 0
        for name, shape in shapes.items():
            size = hidden * (shape[1] if len(shape) > 1 else 1)
            found[name] = array[start : start + size].reshape(shape)
            start += size
        if start != array.size:
            raise ValueError(f"{array.size} parameters do not make this RNN, which has {start}")
        return found

    def _rows(self) -> int:
        return len(self._directions) * self._num_hidden * self._num_gates

    def _deeper(self) -> int:
        """Return what the layers above the first have in each row: weights and biases."""
        hidden = self._num_hidden
        return (self._num_layers - 1) * (hidden * len(self._directions) + hidden + 2)

    def unpack_weights(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Return parameters with one weight and bias for each layer, direction and gate."""
        args = dict(args)
        array = args.pop(self._parameter.name)
        input_size = array.size // self._rows() - self._deeper() - self._num_hidden - 2
        args.update((name, x.copy()) for name, x in self._parts(array, input_size).items())
        return args

    def pack_weights(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Do the reverse of `unpack_weights`."""
        args = dict(args)
        first = args[f"{self._prefix}l0_i2h{self._gate_names[0]}_weight"]
        input_size = first.shape[1]
        total = (input_size + self._num_hidden + 2 + self._deeper()) * self._rows()
        array = ndarray.zeros((total,), ctx=first.context, dtype=first.dtype)
        for name, part in self._parts(array, input_size).items():
            part[:] = args.pop(name)
        args[self._parameter.name] = array
        return args

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        """Refuse: all steps are one operator."""
        raise NotImplementedError("FusedRNNCell cannot be stepped. Please use unroll")

    def unroll(
        self,
        length: int,
        inputs: Sequenced,
        begin_state: Sequence[Symbol] | None = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
    ) -> tuple[Sequenced, list]:
        """Return outputs of so many steps, and with `get_next_state` the last states."""
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
        """Return the same layers as cells that do single steps."""
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
