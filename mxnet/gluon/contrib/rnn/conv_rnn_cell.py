"""Recurrent cells whose states are images and whose maps are convolutions."""

from __future__ import annotations

from typing import Any

from ....ops.documentation import inherits_parameters
from ...nn.axes import Sizes
from .conv_steps import _BaseConvRNNCell, _ConvGRUCell, _ConvLSTMCell, _ConvRNNCell  # noqa: F401

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


@inherits_parameters
class Conv1DRNNCell(_ConvRNNCell):
    """Recurrent cell with 1D convolutions; `input_shape` is that of one sequence with its channels.

    >>> cell = mx.gluon.contrib.rnn.Conv1DRNNCell((3, 8), 2, i2h_kernel=3, h2h_kernel=3)
    >>> cell.initialize()
    >>> output, states = cell(nd.ones((1, *(3, 8))), cell.begin_state(1))
    >>> output.shape, len(states)
    ((1, 2, 6), 1)
    """

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


@inherits_parameters
class Conv2DRNNCell(_ConvRNNCell):
    """Recurrent cell with 2D convolutions; `input_shape` is that of one image with its channels.

    >>> cell = mx.gluon.contrib.rnn.Conv2DRNNCell((3, 8, 8), 2, i2h_kernel=3, h2h_kernel=3)
    >>> cell.initialize()
    >>> output, states = cell(nd.ones((1, *(3, 8, 8))), cell.begin_state(1))
    >>> output.shape, len(states)
    ((1, 2, 6, 6), 1)
    """

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


@inherits_parameters
class Conv3DRNNCell(_ConvRNNCell):
    """Recurrent cell with 3D convolutions; `input_shape` is that of one volume with its channels.

    >>> cell = mx.gluon.contrib.rnn.Conv3DRNNCell((3, 4, 4, 4), 2, i2h_kernel=3, h2h_kernel=3)
    >>> cell.initialize()
    >>> output, states = cell(nd.ones((1, *(3, 4, 4, 4))), cell.begin_state(1))
    >>> output.shape, len(states)
    ((1, 2, 2, 2, 2), 1)
    """

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
class Conv1DLSTMCell(_ConvLSTMCell):
    """LSTM cell with 1D convolutions; `input_shape` is that of one sequence with its channels.

    >>> cell = mx.gluon.contrib.rnn.Conv1DLSTMCell((3, 8), 2, i2h_kernel=3, h2h_kernel=3)
    >>> cell.initialize()
    >>> output, states = cell(nd.ones((1, *(3, 8))), cell.begin_state(1))
    >>> output.shape, len(states)
    ((1, 2, 6), 2)
    """

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


@inherits_parameters
class Conv2DLSTMCell(_ConvLSTMCell):
    """LSTM cell with 2D convolutions; `input_shape` is that of one image with its channels.

    >>> cell = mx.gluon.contrib.rnn.Conv2DLSTMCell((3, 8, 8), 2, i2h_kernel=3, h2h_kernel=3)
    >>> cell.initialize()
    >>> output, states = cell(nd.ones((1, *(3, 8, 8))), cell.begin_state(1))
    >>> output.shape, len(states)
    ((1, 2, 6, 6), 2)
    """

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


@inherits_parameters
class Conv3DLSTMCell(_ConvLSTMCell):
    """LSTM cell with 3D convolutions; `input_shape` is that of one volume with its channels.

    >>> cell = mx.gluon.contrib.rnn.Conv3DLSTMCell((3, 4, 4, 4), 2, i2h_kernel=3, h2h_kernel=3)
    >>> cell.initialize()
    >>> output, states = cell(nd.ones((1, *(3, 4, 4, 4))), cell.begin_state(1))
    >>> output.shape, len(states)
    ((1, 2, 2, 2, 2), 2)
    """

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
class Conv1DGRUCell(_ConvGRUCell):
    """GRU cell with 1D convolutions; `input_shape` is that of one sequence with its channels.

    >>> cell = mx.gluon.contrib.rnn.Conv1DGRUCell((3, 8), 2, i2h_kernel=3, h2h_kernel=3)
    >>> cell.initialize()
    >>> output, states = cell(nd.ones((1, *(3, 8))), cell.begin_state(1))
    >>> output.shape, len(states)
    ((1, 2, 6), 1)
    """

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


@inherits_parameters
class Conv2DGRUCell(_ConvGRUCell):
    """GRU cell with 2D convolutions; `input_shape` is that of one image with its channels.

    >>> cell = mx.gluon.contrib.rnn.Conv2DGRUCell((3, 8, 8), 2, i2h_kernel=3, h2h_kernel=3)
    >>> cell.initialize()
    >>> output, states = cell(nd.ones((1, *(3, 8, 8))), cell.begin_state(1))
    >>> output.shape, len(states)
    ((1, 2, 6, 6), 1)
    """

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


@inherits_parameters
class Conv3DGRUCell(_ConvGRUCell):
    """GRU cell with 3D convolutions; `input_shape` is that of one volume with its channels.

    >>> cell = mx.gluon.contrib.rnn.Conv3DGRUCell((3, 4, 4, 4), 2, i2h_kernel=3, h2h_kernel=3)
    >>> cell.initialize()
    >>> output, states = cell(nd.ones((1, *(3, 4, 4, 4))), cell.begin_state(1))
    >>> output.shape, len(states)
    ((1, 2, 2, 2, 2), 1)
    """

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
