"""Plain, LSTM and GRU cells, with linear transformations or convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from .. import initializer as init
from .. import symbol
from ..ops.documentation import inherits_parameters
from ..symbol import Symbol
from .base_cell import BaseRNNCell, RNNParams, activated


class _StepCell(BaseRNNCell):
    _gates: tuple[str, ...] = ("",)
    _states = 1

    def __init__(
        self, num_hidden: int, prefix: str, params: RNNParams | None, bias_init: Any = None
    ) -> None:
        super().__init__(prefix=prefix, params=params)
        self._num_hidden = num_hidden
        options = {} if bias_init is None else {"init": bias_init}
        self._iW = self.params.get("i2h_weight")
        self._iB = self.params.get("i2h_bias", **options)
        self._hW = self.params.get("h2h_weight")
        self._hB = self.params.get("h2h_bias")
        self._own_params = params is None

    @property
    def state_info(self) -> list[dict[str, Any]]:
        """Shape and layout of each state."""
        return [{"shape": (0, self._num_hidden), "__layout__": "NC"} for _ in range(self._states)]

    @property
    def _gate_names(self) -> Sequence[str]:
        return self._gates

    def _linear(self, inputs: Symbol, state: Symbol, name: str) -> tuple[Symbol, Symbol]:
        size = self._num_hidden * len(self._gates)
        i2h = symbol.FullyConnected(
            data=inputs, weight=self._iW, bias=self._iB, num_hidden=size, name=f"{name}i2h"
        )
        h2h = symbol.FullyConnected(
            data=state, weight=self._hW, bias=self._hB, num_hidden=size, name=f"{name}h2h"
        )
        return i2h, h2h


class RNNCell(_StepCell):
    """``h' = act(W x + U h + b)``.

    Parameters
    ----------
    num_hidden : int
        Number of features of the hidden state.
    activation : str or callable
        Activation function by name, or a function of symbols.
    prefix : str
        Prefix of the names of parameters and outputs.
    params : RNNParams, optional
        Container of parameters, to share them with other cells.

    >>> cell = mx.rnn.RNNCell(4)
    >>> outputs, states = cell.unroll(3, mx.sym.var("data"), merge_outputs=True)
    >>> outputs.infer_shape(data=(2, 3, 5))[1]
    [(2, 3, 4)]
    """

    def __init__(
        self,
        num_hidden: int,
        activation: Any = "tanh",
        prefix: str = "rnn_",
        params: RNNParams | None = None,
    ) -> None:
        super().__init__(num_hidden, prefix, params)
        self._activation = activation

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        """Take one step."""
        name = self._step_name()
        i2h, h2h = self._linear(inputs, states[0], name)
        output = activated(i2h + h2h, self._activation, name=f"{name}out")
        return output, [output]


class LSTMCell(_StepCell):
    """``c' = f * c + i * g``; ``h' = o * tanh(c')``, with gates i, f, g, o of ``W x + U h + b``.

    Parameters
    ----------
    num_hidden : int
        Number of features of the hidden state.
    prefix : str
        Prefix of the names of parameters and outputs.
    params : RNNParams, optional
        Container of parameters, to share them with other cells.
    forget_bias : float
        Initial bias of the forget gate.

    >>> cell = mx.rnn.LSTMCell(4)
    >>> outputs, states = cell.unroll(3, mx.sym.var("data"), merge_outputs=True)
    >>> outputs.infer_shape(data=(2, 3, 5))[1]
    [(2, 3, 4)]
    """

    _gates = ("_i", "_f", "_c", "_o")
    _states = 2

    def __init__(
        self,
        num_hidden: int,
        prefix: str = "lstm_",
        params: RNNParams | None = None,
        forget_bias: float = 1.0,
    ) -> None:
        super().__init__(num_hidden, prefix, params, init.LSTMBias(forget_bias=forget_bias))

    @property
    def _gate_names(self) -> list[str]:
        return list(self._gates)

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        """Take one step."""
        name = self._step_name()
        i2h, h2h = self._linear(inputs, states[0], name)
        return lstm_step(i2h + h2h, states[1], name, "tanh")


def lstm_step(
    gates: Symbol, cell: Symbol, name: str, activation: Any, **slicing: Any
) -> tuple[Symbol, list[Symbol]]:
    """Return output and states of an LSTM from its gates before activation."""
    i, f, c, o = symbol.SliceChannel(gates, num_outputs=4, name=f"{name}slice", **slicing)
    i = symbol.Activation(i, act_type="sigmoid", name=f"{name}i")
    f = symbol.Activation(f, act_type="sigmoid", name=f"{name}f")
    c = activated(c, activation, name=f"{name}c")
    o = symbol.Activation(o, act_type="sigmoid", name=f"{name}o")
    old, new = f * cell, i * c
    next_cell = symbol._internal._plus(old, new, name=f"{name}state")
    output = symbol._internal._mul(o, activated(next_cell, activation), name=f"{name}out")
    return output, [output, next_cell]


class GRUCell(_StepCell):
    """``h' = (1 - z) * tanh(W x + b + r * (U h + c)) + z * h``, with gates r and z.

    Parameters
    ----------
    num_hidden : int
        Number of features of the hidden state.
    prefix : str
        Prefix of the names of parameters and outputs.
    params : RNNParams, optional
        Container of parameters, to share them with other cells.

    >>> cell = mx.rnn.GRUCell(4)
    >>> outputs, states = cell.unroll(3, mx.sym.var("data"), merge_outputs=True)
    >>> outputs.infer_shape(data=(2, 3, 5))[1]
    [(2, 3, 4)]
    """

    _gates = ("_r", "_z", "_o")

    def __init__(
        self, num_hidden: int, prefix: str = "gru_", params: RNNParams | None = None
    ) -> None:
        super().__init__(num_hidden, prefix, params)

    @property
    def _gate_names(self) -> list[str]:
        return list(self._gates)

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        """Take one step."""
        name = self._step_name()
        i2h, h2h = self._linear(inputs, states[0], f"{name}_")  # two underscores, as in MXNet
        return gru_step(i2h, h2h, states[0], name, "tanh")


def gru_step(
    i2h: Symbol, h2h: Symbol, state: Symbol, name: str, activation: Any
) -> tuple[Symbol, list[Symbol]]:
    """Return output and state of a GRU from its gates before activation."""
    i2h_r, i2h_z, i2h_h = symbol.SliceChannel(i2h, num_outputs=3, name=f"{name}_i2h_slice")
    h2h_r, h2h_z, h2h_h = symbol.SliceChannel(h2h, num_outputs=3, name=f"{name}_h2h_slice")
    r = symbol.Activation(i2h_r + h2h_r, act_type="sigmoid", name=f"{name}_r_act")
    z = symbol.Activation(i2h_z + h2h_z, act_type="sigmoid", name=f"{name}_z_act")
    candidate = activated(i2h_h + r * h2h_h, activation, name=f"{name}_h_act")
    output = symbol._internal._plus((1.0 - z) * candidate, z * state, name=f"{name}out")
    return output, [output]


leaky = partial(symbol.LeakyReLU, act_type="leaky", slope=0.2)
Size = tuple[int, ...]


class BaseConvRNNCell(BaseRNNCell):
    """Base of convolutional cells.

    Parameters
    ----------
    input_shape : tuple of int
        Shape of one step's input, with the batch.
    num_hidden : int
        Number of channels of the state.
    h2h_kernel
        Size of the kernel over the state; odd numbers.
    h2h_dilate
        Distance between neighboring points of the kernel over the state.
    i2h_kernel
        Size of the kernel over the input.
    i2h_stride
        Step of the kernel over the input.
    i2h_pad
        Zero padding added to both sides of the input.
    i2h_dilate
        Distance between neighboring points of the kernel over the input.
    i2h_weight_initializer
        Initializer of the weight of the input.
    h2h_weight_initializer
        Initializer of the weight of the state.
    i2h_bias_initializer
        Initializer of the bias of the input.
    h2h_bias_initializer
        Initializer of the bias of the state.
    activation : str or callable
        Activation function by name, or a function of symbols.
    prefix : str
        Prefix of the names of parameters and outputs; by default the type of cell.
    params : RNNParams, optional
        Container of parameters, to share them with other cells.
    conv_layout : str
        Order of the axes.

    >>> issubclass(mx.rnn.ConvLSTMCell, mx.rnn.BaseConvRNNCell)
    True
    """

    _gates: tuple[str, ...] = ("",)
    _states = 1
    _default_prefix = ""

    def __init__(
        self,
        input_shape: Size,
        num_hidden: int,
        h2h_kernel: Size = (3, 3),
        h2h_dilate: Size = (1, 1),
        i2h_kernel: Size = (3, 3),
        i2h_stride: Size = (1, 1),
        i2h_pad: Size = (1, 1),
        i2h_dilate: Size = (1, 1),
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        activation: Any = leaky,
        prefix: str | None = None,
        params: RNNParams | None = None,
        conv_layout: str = "NCHW",
    ) -> None:
        super().__init__(prefix=self._default_prefix if prefix is None else prefix, params=params)
        if any(size % 2 == 0 for size in h2h_kernel):
            raise AssertionError(f"Only support odd number, get h2h_kernel= {h2h_kernel!s}")
        self._input_shape, self._num_hidden = input_shape, num_hidden
        self._h2h_kernel, self._h2h_dilate = h2h_kernel, h2h_dilate
        pads = zip(h2h_kernel, h2h_dilate, strict=True)
        self._h2h_pad = tuple(dilate * (size - 1) // 2 for size, dilate in pads)
        self._i2h: dict[str, Any] = {
            "kernel": i2h_kernel, "stride": i2h_stride, "pad": i2h_pad, "dilate": i2h_dilate
        }  # fmt: skip
        self._conv_layout, self._activation = conv_layout, activation
        shown = symbol.Convolution(
            symbol.Variable("data"), num_filter=num_hidden, layout=conv_layout, **self._i2h
        )
        self._state_shape = (0, *shown.infer_shape(data=input_shape)[1][0][1:])
        self._iW = self._params.get("i2h_weight", init=i2h_weight_initializer)
        self._hW = self._params.get("h2h_weight", init=h2h_weight_initializer)
        self._iB = self._params.get("i2h_bias", init=i2h_bias_initializer)
        self._hB = self._params.get("h2h_bias", init=h2h_bias_initializer)

    @property
    def state_info(self) -> list[dict[str, Any]]:
        """Shape and layout of each state."""
        one = {"shape": self._state_shape, "__layout__": self._conv_layout}
        return [dict(one) for _ in range(self._states)]

    @property
    def _gate_names(self) -> Sequence[str]:
        return self._gates if self._gates == ("",) else list(self._gates)

    @property
    def _num_gates(self) -> int:
        return len(self._gates)

    def _conv_forward(self, inputs: Symbol, state: Symbol, name: str) -> tuple[Symbol, Symbol]:
        count, layout = self._num_hidden * self._num_gates, self._conv_layout
        i2h = symbol.Convolution(
            name=f"{name}i2h", data=inputs, num_filter=count, weight=self._iW, bias=self._iB,
            layout=layout, **self._i2h,
        )  # fmt: skip
        h2h = symbol.Convolution(
            name=f"{name}h2h", data=state, num_filter=count, weight=self._hW, bias=self._hB,
            layout=layout, kernel=self._h2h_kernel, dilate=self._h2h_dilate, pad=self._h2h_pad,
            stride=(1,) * len(self._h2h_kernel),
        )  # fmt: skip
        return i2h, h2h

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        """Take one step."""
        raise NotImplementedError("BaseConvRNNCell is abstract class for convolutional RNN")


@inherits_parameters
class ConvRNNCell(BaseConvRNNCell):
    """``h' = act(conv(x) + conv(h))``. See `BaseConvRNNCell` for the parameters.

    >>> cell = mx.rnn.ConvRNNCell((1, 3, 8, 8), num_hidden=4)
    >>> outputs, states = cell.unroll(2, [mx.sym.var("a"), mx.sym.var("b")])
    >>> outputs[1].infer_shape(a=(1, 3, 8, 8), b=(1, 3, 8, 8))[1]
    [(1, 4, 8, 8)]
    """

    _default_prefix = "ConvRNN_"

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        """Take one step."""
        name = self._step_name()
        i2h, h2h = self._conv_forward(inputs, states[0], name)
        output = activated(i2h + h2h, self._activation, name=f"{name}out")
        return output, [output]


@inherits_parameters
class ConvLSTMCell(BaseConvRNNCell):
    """An LSTM with convolutions. See `BaseConvRNNCell` for the parameters.

    >>> cell = mx.rnn.ConvLSTMCell((1, 3, 8, 8), num_hidden=4)
    >>> outputs, states = cell.unroll(2, [mx.sym.var("a"), mx.sym.var("b")])
    >>> outputs[1].infer_shape(a=(1, 3, 8, 8), b=(1, 3, 8, 8))[1]
    [(1, 4, 8, 8)]
    """

    _gates = ("_i", "_f", "_c", "_o")
    _states = 2
    _default_prefix = "ConvLSTM_"

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        """Take one step."""
        name = self._step_name()
        i2h, h2h = self._conv_forward(inputs, states[0], name)
        axis = self._conv_layout.find("C")
        return lstm_step(i2h + h2h, states[1], name, self._activation, axis=axis)


@inherits_parameters
class ConvGRUCell(BaseConvRNNCell):
    """A GRU with convolutions. See `BaseConvRNNCell` for the parameters.

    >>> cell = mx.rnn.ConvGRUCell((1, 3, 8, 8), num_hidden=4)
    >>> outputs, states = cell.unroll(2, [mx.sym.var("a"), mx.sym.var("b")])
    >>> outputs[1].infer_shape(a=(1, 3, 8, 8), b=(1, 3, 8, 8))[1]
    [(1, 4, 8, 8)]
    """

    _gates = ("_r", "_z", "_o")
    _default_prefix = "ConvGRU_"

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        """Take one step."""
        name = self._step_name()
        i2h, h2h = self._conv_forward(inputs, states[0], name)
        return gru_step(i2h, h2h, states[0], name, self._activation)
