"""Recurrent cells with convolutions in place of dense layers; their states are images."""

from __future__ import annotations

from typing import Any

from ....ops.documentation import inherits_parameters
from ...nn.conv_layers import Sizes, numeric_types
from ...rnn import HybridRecurrentCell

__all__ = [
    "Conv1DGRUCell",
    "Conv1DLSTMCell",
    "Conv1DRNNCell",
    "Conv2DGRUCell",
    "Conv2DLSTMCell",
    "Conv2DRNNCell",
    "Conv3DGRUCell",
    "Conv3DLSTMCell",
    "Conv3DRNNCell",
]


def _out_size(sizes: tuple[int, ...], kernel: tuple, pad: tuple, dilate: tuple) -> tuple[int, ...]:
    """Return the size of a convolved image; unknown (0) stays unknown."""
    return tuple(
        size + 2 * p - d * (k - 1) if size else 0
        for size, k, p, d in zip(sizes, kernel, pad, dilate, strict=True)
    )


@inherits_parameters
class _BaseConvRNNCell(HybridRecurrentCell):
    """A cell with convolutions from input to hidden and from hidden to hidden.

    Parameters
    ----------
    input_shape
        Shape of one input without the batch, such as ``(channels, height, width)``.
    hidden_channels
        Number of channels of the hidden state.
    i2h_kernel
        Size of the kernel over the input: a number, or one for each spatial axis.
    h2h_kernel
        Size of the kernel over the hidden state; odd numbers.
    i2h_pad
        Zero padding added to both sides of the input, for each spatial axis.
    i2h_dilate
        Distance between neighboring points of the kernel over the input.
    h2h_dilate
        Distance between neighboring points of the kernel over the hidden state.
    i2h_weight_initializer
        Initializer of the weight of the input.
    h2h_weight_initializer
        Initializer of the weight of the hidden state.
    i2h_bias_initializer
        Initializer of the bias of the input.
    h2h_bias_initializer
        Initializer of the bias of the hidden state.
    conv_layout
        Order of the axes, such as ``'NCHW'``.
    activation
        Activation function by name, such as ``'relu'`` or ``'tanh'``.
    """

    gates = 1

    def __init__(
        self,
        input_shape: tuple[int, ...],
        hidden_channels: int,
        i2h_kernel: Sizes,
        h2h_kernel: Sizes,
        i2h_pad: Sizes,
        i2h_dilate: Sizes,
        h2h_dilate: Sizes,
        i2h_weight_initializer: Any,
        h2h_weight_initializer: Any,
        i2h_bias_initializer: Any,
        h2h_bias_initializer: Any,
        dims: int,
        conv_layout: str,
        activation: Any,
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        super().__init__(prefix=prefix, params=params)
        self._hidden_channels = hidden_channels
        self._input_shape = input_shape
        self._conv_layout = conv_layout
        self._activation = activation

        def spread(sizes: Sizes) -> tuple[int, ...]:
            if isinstance(sizes, numeric_types):
                return (sizes,) * dims
            assert len(sizes) == dims, (
                f"For {dims}D convolution, the convolution settings can only be either int or "
                f"list/tuple of length {dims}"
            )
            return tuple(sizes)

        self._i2h_kernel = spread(i2h_kernel)
        self._stride = (1,) * dims
        self._i2h_pad = spread(i2h_pad)
        self._i2h_dilate = spread(i2h_dilate)
        self._h2h_kernel = spread(h2h_kernel)
        assert all(k % 2 == 1 for k in self._h2h_kernel), (
            f"Only support odd number, get h2h_kernel= {h2h_kernel}"
        )
        self._h2h_dilate = spread(h2h_dilate)
        self._h2h_pad = tuple(
            d * (k - 1) // 2 for d, k in zip(self._h2h_dilate, self._h2h_kernel, strict=True)
        )
        self._channel_axis = conv_layout.find("C")
        i2h_shape, h2h_shape = self._decide_shapes()
        width = hidden_channels * self.gates
        for name, shape, init in (
            ("i2h_weight", i2h_shape, i2h_weight_initializer),
            ("h2h_weight", h2h_shape, h2h_weight_initializer),
            ("i2h_bias", (width,), i2h_bias_initializer),
            ("h2h_bias", (width,), h2h_bias_initializer),
        ):
            parameter = self.params.get(name, shape=shape, init=init, allow_deferred_init=True)
            setattr(self, name, parameter)

    def _decide_shapes(self) -> tuple[tuple, tuple]:
        width = self._hidden_channels * self.gates
        first = self._channel_axis == 1

        def placed(channels: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
            return (channels, *sizes) if first else (*sizes, channels)

        self._in_channels = self._input_shape[0 if first else -1]
        sizes = self._input_shape[1:] if first else self._input_shape[:-1]
        out = _out_size(sizes, self._i2h_kernel, self._i2h_pad, self._i2h_dilate)
        self._state_shape = placed(self._hidden_channels, out)
        return (
            (width, *placed(self._in_channels, self._i2h_kernel)),
            (width, *placed(self._hidden_channels, self._h2h_kernel)),
        )

    def state_info(self, batch_size: int = 0) -> list[dict]:
        """Return shape and layout of the hidden state."""
        return [{"shape": (batch_size, *self._state_shape), "__layout__": self._conv_layout}]

    def _convolve(
        self, F: Any, inputs: Any, hidden: Any, step: str, weights: tuple
    ) -> tuple[Any, Any]:
        i2h_weight, h2h_weight, i2h_bias, h2h_bias = weights
        common = {
            "num_filter": self._hidden_channels * self.gates,
            "stride": self._stride,
            "layout": self._conv_layout,
        }
        i2h = F.Convolution(
            inputs,
            i2h_weight,
            i2h_bias,
            kernel=self._i2h_kernel,
            pad=self._i2h_pad,
            dilate=self._i2h_dilate,
            name=step + "i2h",
            **common,
        )
        h2h = F.Convolution(
            hidden,
            h2h_weight,
            h2h_bias,
            kernel=self._h2h_kernel,
            pad=self._h2h_pad,
            dilate=self._h2h_dilate,
            name=step + "h2h",
            **common,
        )
        return i2h, h2h

    i2h_weight: Any

    def __repr__(self) -> str:
        out, size = self.i2h_weight.shape[0], self._in_channels
        return f"{type(self).__name__}({size} -> {out}, {self._activation}, {self._conv_layout})"


class _ConvRNNCell(_BaseConvRNNCell):
    """``h' = activation(W_ih * x + b_ih + W_hh * h + b_hh)``, with convolutions."""

    def _alias(self) -> str:
        return "conv_rnn"

    def hybrid_forward(
        self,
        F: Any,
        inputs: Any,
        states: list,
        i2h_weight: Any,
        h2h_weight: Any,
        i2h_bias: Any,
        h2h_bias: Any,
    ) -> tuple[Any, list]:
        step = f"t{self._counter}_"
        weights = (i2h_weight, h2h_weight, i2h_bias, h2h_bias)
        i2h, h2h = self._convolve(F, inputs, states[0], step, weights)
        output = self._get_activation(F, i2h + h2h, self._activation, name=step + "out")
        return output, [output]


class _ConvLSTMCell(_BaseConvRNNCell):
    """LSTM with convolutions, gates in the order input, forget, candidate, output."""

    gates = 4

    def _alias(self) -> str:
        return "conv_lstm"

    def state_info(self, batch_size: int = 0) -> list[dict]:
        """Return shape and layout of the hidden state and of the memory."""
        return super().state_info(batch_size) + super().state_info(batch_size)

    def hybrid_forward(
        self,
        F: Any,
        inputs: Any,
        states: list,
        i2h_weight: Any,
        h2h_weight: Any,
        i2h_bias: Any,
        h2h_bias: Any,
    ) -> tuple[Any, list]:
        step = f"t{self._counter}_"
        weights = (i2h_weight, h2h_weight, i2h_bias, h2h_bias)
        i2h, h2h = self._convolve(F, inputs, states[0], step, weights)
        gates = F.SliceChannel(
            i2h + h2h, num_outputs=4, axis=self._channel_axis, name=step + "slice"
        )
        i = F.Activation(gates[0], act_type="sigmoid", name=step + "i")
        f = F.Activation(gates[1], act_type="sigmoid", name=step + "f")
        g = self._get_activation(F, gates[2], self._activation, name=step + "c")
        o = F.Activation(gates[3], act_type="sigmoid", name=step + "o")
        memory = F.elemwise_add(f * states[1], i * g, name=step + "state")
        bent = self._get_activation(F, memory, self._activation)
        hidden = F.elemwise_mul(o, bent, name=step + "out")
        return hidden, [hidden, memory]


class _ConvGRUCell(_BaseConvRNNCell):
    """GRU with convolutions, gates in the order reset, update, candidate."""

    gates = 3

    def _alias(self) -> str:
        return "conv_gru"

    def hybrid_forward(
        self,
        F: Any,
        inputs: Any,
        states: list,
        i2h_weight: Any,
        h2h_weight: Any,
        i2h_bias: Any,
        h2h_bias: Any,
    ) -> tuple[Any, list]:
        step = f"t{self._counter}_"
        weights = (i2h_weight, h2h_weight, i2h_bias, h2h_bias)
        i2h, h2h = self._convolve(F, inputs, states[0], step, weights)
        split = {"num_outputs": 3, "axis": self._channel_axis}
        i2h_r, i2h_z, i2h_n = F.SliceChannel(i2h, name=step + "i2h_slice", **split)
        h2h_r, h2h_z, h2h_n = F.SliceChannel(h2h, name=step + "h2h_slice", **split)
        reset = F.Activation(i2h_r + h2h_r, act_type="sigmoid", name=step + "r_act")
        update = F.Activation(i2h_z + h2h_z, act_type="sigmoid", name=step + "z_act")
        candidate = self._get_activation(
            F, i2h_n + reset * h2h_n, self._activation, name=step + "h_act"
        )
        output = F.elemwise_add((1.0 - update) * candidate, update * states[0], name=step + "out")
        return output, [output]


class _1D(_BaseConvRNNCell):
    def __init__(
        self,
        input_shape: tuple[int, ...],
        hidden_channels: int,
        i2h_kernel: Sizes,
        h2h_kernel: Sizes,
        i2h_pad: Sizes = (0,),
        i2h_dilate: Sizes = (1,),
        h2h_dilate: Sizes = (1,),
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        conv_layout: str = "NCW",
        activation: Any = "tanh",
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        super().__init__(
            input_shape,
            hidden_channels,
            i2h_kernel,
            h2h_kernel,
            i2h_pad,
            i2h_dilate,
            h2h_dilate,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
            1,
            conv_layout,
            activation,
            prefix,
            params,
        )


class _2D(_BaseConvRNNCell):
    def __init__(
        self,
        input_shape: tuple[int, ...],
        hidden_channels: int,
        i2h_kernel: Sizes,
        h2h_kernel: Sizes,
        i2h_pad: Sizes = (0, 0),
        i2h_dilate: Sizes = (1, 1),
        h2h_dilate: Sizes = (1, 1),
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        conv_layout: str = "NCHW",
        activation: Any = "tanh",
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        super().__init__(
            input_shape,
            hidden_channels,
            i2h_kernel,
            h2h_kernel,
            i2h_pad,
            i2h_dilate,
            h2h_dilate,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
            2,
            conv_layout,
            activation,
            prefix,
            params,
        )


class _3D(_BaseConvRNNCell):
    def __init__(
        self,
        input_shape: tuple[int, ...],
        hidden_channels: int,
        i2h_kernel: Sizes,
        h2h_kernel: Sizes,
        i2h_pad: Sizes = (0, 0, 0),
        i2h_dilate: Sizes = (1, 1, 1),
        h2h_dilate: Sizes = (1, 1, 1),
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        conv_layout: str = "NCDHW",
        activation: Any = "tanh",
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        super().__init__(
            input_shape,
            hidden_channels,
            i2h_kernel,
            h2h_kernel,
            i2h_pad,
            i2h_dilate,
            h2h_dilate,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
            3,
            conv_layout,
            activation,
            prefix,
            params,
        )


@inherits_parameters
class Conv1DRNNCell(_1D, _ConvRNNCell):
    """Recurrent cell with 1D convolutions; `input_shape` is (channels, width).

    >>> cell = mx.gluon.contrib.rnn.Conv1DRNNCell((3, 8), 2, i2h_kernel=3, h2h_kernel=3)
    >>> cell.initialize()
    >>> output, states = cell(nd.ones((1, *(3, 8))), cell.begin_state(1))
    >>> output.shape, len(states)
    ((1, 2, 6), 1)
    """


@inherits_parameters
class Conv2DRNNCell(_2D, _ConvRNNCell):
    """Recurrent cell with 2D convolutions; `input_shape` is (channels, height, width).

    >>> cell = mx.gluon.contrib.rnn.Conv2DRNNCell((3, 8, 8), 2, i2h_kernel=3, h2h_kernel=3)
    >>> cell.initialize()
    >>> output, states = cell(nd.ones((1, *(3, 8, 8))), cell.begin_state(1))
    >>> output.shape, len(states)
    ((1, 2, 6, 6), 1)
    """


@inherits_parameters
class Conv3DRNNCell(_3D, _ConvRNNCell):
    """Recurrent cell with 3D convolutions; `input_shape` is (channels, depth, height, width).

    >>> cell = mx.gluon.contrib.rnn.Conv3DRNNCell((3, 4, 4, 4), 2, i2h_kernel=3, h2h_kernel=3)
    >>> cell.initialize()
    >>> output, states = cell(nd.ones((1, *(3, 4, 4, 4))), cell.begin_state(1))
    >>> output.shape, len(states)
    ((1, 2, 2, 2, 2), 1)
    """


@inherits_parameters
class Conv1DLSTMCell(_1D, _ConvLSTMCell):
    """LSTM cell with 1D convolutions; `input_shape` is (channels, width).

    >>> cell = mx.gluon.contrib.rnn.Conv1DLSTMCell((3, 8), 2, i2h_kernel=3, h2h_kernel=3)
    >>> cell.initialize()
    >>> output, states = cell(nd.ones((1, *(3, 8))), cell.begin_state(1))
    >>> output.shape, len(states)
    ((1, 2, 6), 2)
    """


@inherits_parameters
class Conv2DLSTMCell(_2D, _ConvLSTMCell):
    """LSTM cell with 2D convolutions; `input_shape` is (channels, height, width).

    >>> cell = mx.gluon.contrib.rnn.Conv2DLSTMCell((3, 8, 8), 2, i2h_kernel=3, h2h_kernel=3)
    >>> cell.initialize()
    >>> output, states = cell(nd.ones((1, *(3, 8, 8))), cell.begin_state(1))
    >>> output.shape, len(states)
    ((1, 2, 6, 6), 2)
    """


@inherits_parameters
class Conv3DLSTMCell(_3D, _ConvLSTMCell):
    """LSTM cell with 3D convolutions; `input_shape` is (channels, depth, height, width).

    >>> cell = mx.gluon.contrib.rnn.Conv3DLSTMCell((3, 4, 4, 4), 2, i2h_kernel=3, h2h_kernel=3)
    >>> cell.initialize()
    >>> output, states = cell(nd.ones((1, *(3, 4, 4, 4))), cell.begin_state(1))
    >>> output.shape, len(states)
    ((1, 2, 2, 2, 2), 2)
    """


@inherits_parameters
class Conv1DGRUCell(_1D, _ConvGRUCell):
    """GRU cell with 1D convolutions; `input_shape` is (channels, width).

    >>> cell = mx.gluon.contrib.rnn.Conv1DGRUCell((3, 8), 2, i2h_kernel=3, h2h_kernel=3)
    >>> cell.initialize()
    >>> output, states = cell(nd.ones((1, *(3, 8))), cell.begin_state(1))
    >>> output.shape, len(states)
    ((1, 2, 6), 1)
    """


@inherits_parameters
class Conv2DGRUCell(_2D, _ConvGRUCell):
    """GRU cell with 2D convolutions; `input_shape` is (channels, height, width).

    >>> cell = mx.gluon.contrib.rnn.Conv2DGRUCell((3, 8, 8), 2, i2h_kernel=3, h2h_kernel=3)
    >>> cell.initialize()
    >>> output, states = cell(nd.ones((1, *(3, 8, 8))), cell.begin_state(1))
    >>> output.shape, len(states)
    ((1, 2, 6, 6), 1)
    """


@inherits_parameters
class Conv3DGRUCell(_3D, _ConvGRUCell):
    """GRU cell with 3D convolutions; `input_shape` is (channels, depth, height, width).

    >>> cell = mx.gluon.contrib.rnn.Conv3DGRUCell((3, 4, 4, 4), 2, i2h_kernel=3, h2h_kernel=3)
    >>> cell.initialize()
    >>> output, states = cell(nd.ones((1, *(3, 4, 4, 4))), cell.begin_state(1))
    >>> output.shape, len(states)
    ((1, 2, 2, 2, 2), 1)
    """
