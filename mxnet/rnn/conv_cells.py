"""Cells whose linear maps are convolutions, for sequences of images."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from .. import symbol
from ..ops.documentation import inherits_parameters
from ..symbol import Symbol
from .base_cell import BaseRNNCell, RNNParams, activated
from .step_cells import gru_step, lstm_step

leaky = partial(symbol.LeakyReLU, act_type="leaky", slope=0.2)
Size = tuple[int, ...]


class BaseConvRNNCell(BaseRNNCell):
    """What convolutional cells have in common.

    Parameters
    ----------
    input_shape : tuple of int
        Shape of one step's input, with the batch.
    num_hidden : int
        Channels of the state.
    h2h_kernel
        Size of the kernel over the state; odd numbers.
    h2h_dilate
        Distance between neighboring points of the kernel over the state.
    i2h_kernel
        Size of the kernel over the input.
    i2h_stride
        Step of the kernel over the input.
    i2h_pad
        Number of zeros at both ends of the input.
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
        What the names of parameters and outputs begin with; by default the kind of cell.
    params : RNNParams, optional
        Parameters that are shared with other cells.
    conv_layout : str
        Order of the axes.

    >>> issubclass(mx.rnn.ConvLSTMCell, mx.rnn.conv_cells.BaseConvRNNCell)
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
        self._i2h = {
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
        """Return the convolutions of input and state, of all gates side by side."""
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
        """Do one step."""
        raise NotImplementedError("BaseConvRNNCell is abstract class for convolutional RNN")


@inherits_parameters
class ConvRNNCell(BaseConvRNNCell):
    """``h' = act(conv(x) + conv(h))``. Parameters as in `BaseConvRNNCell`.

    >>> cell = mx.rnn.ConvRNNCell((1, 3, 8, 8), num_hidden=4)
    >>> outputs, states = cell.unroll(2, [mx.sym.var("a"), mx.sym.var("b")])
    >>> outputs[1].infer_shape(a=(1, 3, 8, 8), b=(1, 3, 8, 8))[1]
    [(1, 4, 8, 8)]
    """

    _default_prefix = "ConvRNN_"

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        """Do one step."""
        name = self._step_name()
        i2h, h2h = self._conv_forward(inputs, states[0], name)
        output = activated(i2h + h2h, self._activation, name=f"{name}out")
        return output, [output]


@inherits_parameters
class ConvLSTMCell(BaseConvRNNCell):
    """An LSTM with convolutions. Parameters as in `BaseConvRNNCell`.

    >>> cell = mx.rnn.ConvLSTMCell((1, 3, 8, 8), num_hidden=4)
    >>> outputs, states = cell.unroll(2, [mx.sym.var("a"), mx.sym.var("b")])
    >>> outputs[1].infer_shape(a=(1, 3, 8, 8), b=(1, 3, 8, 8))[1]
    [(1, 4, 8, 8)]
    """

    _gates = ("_i", "_f", "_c", "_o")
    _states = 2
    _default_prefix = "ConvLSTM_"

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        """Do one step."""
        name = self._step_name()
        i2h, h2h = self._conv_forward(inputs, states[0], name)
        axis = self._conv_layout.find("C")
        return lstm_step(i2h + h2h, states[1], name, self._activation, axis=axis)


@inherits_parameters
class ConvGRUCell(BaseConvRNNCell):
    """A GRU with convolutions. Parameters as in `BaseConvRNNCell`.

    >>> cell = mx.rnn.ConvGRUCell((1, 3, 8, 8), num_hidden=4)
    >>> outputs, states = cell.unroll(2, [mx.sym.var("a"), mx.sym.var("b")])
    >>> outputs[1].infer_shape(a=(1, 3, 8, 8), b=(1, 3, 8, 8))[1]
    [(1, 4, 8, 8)]
    """

    _gates = ("_r", "_z", "_o")
    _default_prefix = "ConvGRU_"

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        """Do one step."""
        name = self._step_name()
        i2h, h2h = self._conv_forward(inputs, states[0], name)
        return gru_step(i2h, h2h, states[0], name, self._activation)
