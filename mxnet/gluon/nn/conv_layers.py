"""Convolution, transposed convolution and padding layers; the pooling layers show here too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...base import MXNetError
from ...ops.documentation import inherits_parameters
from ..block import HybridBlock
from .activations import Activation
from .axes import Sizes, check_conv_layout, numeric_types, spread
from .pool_layers import (
    AvgPool1D,
    AvgPool2D,
    AvgPool3D,
    GlobalAvgPool1D,
    GlobalAvgPool2D,
    GlobalAvgPool3D,
    GlobalMaxPool1D,
    GlobalMaxPool2D,
    GlobalMaxPool3D,
    MaxPool1D,
    MaxPool2D,
    MaxPool3D,
    _Pooling,  # noqa: F401 other packages build on it from here
)

__all__ = [
    "AvgPool1D",
    "AvgPool2D",
    "AvgPool3D",
    "Conv1D",
    "Conv1DTranspose",
    "Conv2D",
    "Conv2DTranspose",
    "Conv3D",
    "Conv3DTranspose",
    "GlobalAvgPool1D",
    "GlobalAvgPool2D",
    "GlobalAvgPool3D",
    "GlobalMaxPool1D",
    "GlobalMaxPool2D",
    "GlobalMaxPool3D",
    "MaxPool1D",
    "MaxPool2D",
    "MaxPool3D",
    "ReflectionPad2D",
]


class _Conv(HybridBlock):
    """A convolution of any number of axes; `op_name` says whether it is transposed.

    Parameters
    ----------
    channels
        Number of output channels.
    kernel_size
        Size of the kernel: a number, or one for each spatial axis.
    strides
        Step of the kernel: a number, or one for each spatial axis.
    padding
        Number of zeros at both ends: a number, or one for each spatial axis.
    dilation
        Distance between neighboring points of the kernel, for each spatial axis.
    groups
        Number of groups of channels that are convolved separately.
    layout
        Order of the axes.
    activation
        Activation function by name, such as ``'relu'``; None leaves the result as it is.
    use_bias
        Whether there is a bias.
    weight_initializer
        Initializer of the weight; None takes the one given to `initialize`.
    bias_initializer
        Initializer of the bias.
    in_channels
        Number of input channels; 0 waits for the first input.
    output_padding
        Number of elements added at the far end of the result, for each spatial axis.
    """

    def __init__(
        self,
        channels: int,
        kernel_size: tuple[int, ...],
        strides: Sizes,
        padding: Sizes,
        dilation: Sizes,
        groups: int,
        layout: str,
        in_channels: int = 0,
        activation: str | None = None,
        use_bias: bool = True,
        weight_initializer: Any = None,
        bias_initializer: Any = "zeros",
        op_name: str = "Convolution",
        adj: Sizes | None = None,
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        super().__init__(prefix=prefix, params=params)
        ndim = len(kernel_size)
        with self.name_scope():
            self._channels = channels
            self._in_channels = in_channels
            self._op_name = op_name
            self._kwargs = {
                "kernel": kernel_size,
                "stride": spread(strides, ndim),
                "dilate": spread(dilation, ndim),
                "pad": spread(padding, ndim),
                "num_filter": channels,
                "num_group": groups,
                "no_bias": not use_bias,
                "layout": layout,
            }
            if adj is not None:
                self._kwargs["adj"] = adj
            self._check_axes()
            self.weight = self.params.get(
                "weight",
                shape=self._weight_shape(),
                init=weight_initializer,
                allow_deferred_init=True,
            )
            self.bias = None
            if use_bias:
                self.bias = self.params.get(
                    "bias", shape=(channels,), init=bias_initializer, allow_deferred_init=True
                )
            self.act = None
            if activation is not None:
                self.act = Activation(activation, prefix=activation + "_")

    def _check_axes(self) -> None:
        kernel = self._kwargs["kernel"]
        for key, word in (("stride", "Stride"), ("dilate", "Dilate"), ("pad", "Padding")):
            if len(self._kwargs[key]) != len(kernel):
                raise MXNetError(
                    f"{word} must have the same number of dimensions with kernel_size, but "
                    f"kernel_size is set to {kernel} while {key} is {self._kwargs[key]}"
                )

    def _weight_shape(self) -> tuple[int, ...]:
        """Return (out, in / groups, kernel...), turned round when transposed, C where it stands."""
        groups, kernel = self._kwargs["num_group"], tuple(self._kwargs["kernel"])
        if self._op_name == "Deconvolution":
            first, inner = self._in_channels, self._channels // groups
        else:
            first, inner = self._channels, self._in_channels // groups
        if self._kwargs["layout"].endswith("C"):
            return (first, *kernel, inner)
        return (first, inner, *kernel)

    def hybrid_forward(self, F: Any, x: Any, weight: Any, bias: Any = None) -> Any:
        """Convolve the input."""
        convolve = getattr(F, self._op_name)
        if bias is None:
            out = convolve(x, weight, name="fwd", **self._kwargs)
        else:
            out = convolve(x, weight, bias, name="fwd", **self._kwargs)
        return out if self.act is None else self.act(out)

    def _alias(self) -> str:
        return "conv"

    def __repr__(self) -> str:
        k, shape = self._kwargs, self.weight.shape
        assert shape is not None
        ndim = len(k["kernel"])
        parts = [
            f"{shape[1] if shape[1] else None} -> {shape[0]}",
            f"kernel_size={k['kernel']}",
            f"stride={k['stride']}",
        ]
        if k["pad"] != (0,) * ndim:
            parts.append(f"padding={k['pad']}")
        if k["dilate"] != (1,) * ndim:
            parts.append(f"dilation={k['dilate']}")
        if k["num_group"] != 1:
            parts.append(f"groups={k['num_group']}")
        if self.bias is None:
            parts.append("bias=False")
        if self.act:
            parts.append(repr(self.act))
        return "{}({})".format(type(self).__name__, ", ".join(parts))


@inherits_parameters
class Conv1D(_Conv):
    """Convolve along one axis, such as time. Layout NCW.

    >>> layer = mx.gluon.nn.Conv1D(4, kernel_size=3)
    >>> layer.initialize()
    >>> layer(nd.ones((2, 5, 10))).shape
    (2, 4, 8)
    """

    def __init__(
        self,
        channels: int,
        kernel_size: Sizes,
        strides: Sizes = 1,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        layout: str = "NCW",
        activation: str | None = None,
        use_bias: bool = True,
        weight_initializer: Any = None,
        bias_initializer: Any = "zeros",
        in_channels: int = 0,
        **kwargs: Any,
    ) -> None:
        check_conv_layout(layout, 1)
        super().__init__(
            channels,
            spread(kernel_size, 1, "kernel_size"),
            strides,
            padding,
            dilation,
            groups,
            layout,
            in_channels,
            activation,
            use_bias,
            weight_initializer,
            bias_initializer,
            **kwargs,
        )


@inherits_parameters
class Conv2D(_Conv):
    """Convolve images. Layout NCHW or NHWC.

    >>> layer = mx.gluon.nn.Conv2D(4, kernel_size=3, padding=1)
    >>> layer.initialize()
    >>> layer(nd.ones((2, 3, 8, 8))).shape
    (2, 4, 8, 8)
    """

    def __init__(
        self,
        channels: int,
        kernel_size: Sizes,
        strides: Sizes = (1, 1),
        padding: Sizes = (0, 0),
        dilation: Sizes = (1, 1),
        groups: int = 1,
        layout: str = "NCHW",
        activation: str | None = None,
        use_bias: bool = True,
        weight_initializer: Any = None,
        bias_initializer: Any = "zeros",
        in_channels: int = 0,
        **kwargs: Any,
    ) -> None:
        check_conv_layout(layout, 2)
        super().__init__(
            channels,
            spread(kernel_size, 2, "kernel_size"),
            strides,
            padding,
            dilation,
            groups,
            layout,
            in_channels,
            activation,
            use_bias,
            weight_initializer,
            bias_initializer,
            **kwargs,
        )


@inherits_parameters
class Conv3D(_Conv):
    """Convolve volumes or films. Layout NCDHW or NDHWC.

    >>> layer = mx.gluon.nn.Conv3D(4, kernel_size=(1, 3, 3))
    >>> layer.initialize()
    >>> layer(nd.ones((2, 3, 5, 8, 8))).shape
    (2, 4, 5, 6, 6)
    """

    def __init__(
        self,
        channels: int,
        kernel_size: Sizes,
        strides: Sizes = (1, 1, 1),
        padding: Sizes = (0, 0, 0),
        dilation: Sizes = (1, 1, 1),
        groups: int = 1,
        layout: str = "NCDHW",
        activation: str | None = None,
        use_bias: bool = True,
        weight_initializer: Any = None,
        bias_initializer: Any = "zeros",
        in_channels: int = 0,
        **kwargs: Any,
    ) -> None:
        check_conv_layout(layout, 3)
        super().__init__(
            channels,
            spread(kernel_size, 3, "kernel_size"),
            strides,
            padding,
            dilation,
            groups,
            layout,
            in_channels,
            activation,
            use_bias,
            weight_initializer,
            bias_initializer,
            **kwargs,
        )


class _Transposed(_Conv):
    """A convolution run backwards: what was its output shape becomes the input's."""

    def __init__(
        self,
        ndim: int,
        channels: int,
        kernel_size: Sizes,
        strides: Sizes,
        padding: Sizes,
        output_padding: Sizes,
        dilation: Sizes,
        groups: int,
        layout: str,
        **kwargs: Any,
    ) -> None:
        check_conv_layout(layout, ndim)
        kernel_size = spread(kernel_size, ndim, "kernel_size")
        output_padding = spread(output_padding, ndim, "output_padding")
        super().__init__(
            channels,
            kernel_size,
            strides,
            padding,
            dilation,
            groups,
            layout,
            op_name="Deconvolution",
            adj=output_padding,
            **kwargs,
        )
        self.outpad = output_padding


@inherits_parameters
class Conv1DTranspose(_Transposed):
    """Run a convolution of one axis backwards, to enlarge. Layout NCW.

    >>> layer = mx.gluon.nn.Conv1DTranspose(4, kernel_size=2, strides=2)
    >>> layer.initialize()
    >>> layer(nd.ones((2, 5, 10))).shape
    (2, 4, 20)
    """

    def __init__(
        self,
        channels: int,
        kernel_size: Sizes,
        strides: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        layout: str = "NCW",
        activation: str | None = None,
        use_bias: bool = True,
        weight_initializer: Any = None,
        bias_initializer: Any = "zeros",
        in_channels: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            1,
            channels,
            kernel_size,
            strides,
            padding,
            output_padding,
            dilation,
            groups,
            layout,
            in_channels=in_channels,
            activation=activation,
            use_bias=use_bias,
            weight_initializer=weight_initializer,
            bias_initializer=bias_initializer,
            **kwargs,
        )


@inherits_parameters
class Conv2DTranspose(_Transposed):
    """Run a convolution of images backwards, to enlarge. Layout NCHW or NHWC.

    >>> layer = mx.gluon.nn.Conv2DTranspose(4, kernel_size=2, strides=2)
    >>> layer.initialize()
    >>> layer(nd.ones((2, 3, 8, 8))).shape
    (2, 4, 16, 16)
    """

    def __init__(
        self,
        channels: int,
        kernel_size: Sizes,
        strides: Sizes = (1, 1),
        padding: Sizes = (0, 0),
        output_padding: Sizes = (0, 0),
        dilation: Sizes = (1, 1),
        groups: int = 1,
        layout: str = "NCHW",
        activation: str | None = None,
        use_bias: bool = True,
        weight_initializer: Any = None,
        bias_initializer: Any = "zeros",
        in_channels: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            2,
            channels,
            kernel_size,
            strides,
            padding,
            output_padding,
            dilation,
            groups,
            layout,
            in_channels=in_channels,
            activation=activation,
            use_bias=use_bias,
            weight_initializer=weight_initializer,
            bias_initializer=bias_initializer,
            **kwargs,
        )


@inherits_parameters
class Conv3DTranspose(_Transposed):
    """Run a convolution of volumes backwards, to enlarge. Layout NCDHW or NDHWC.

    >>> layer = mx.gluon.nn.Conv3DTranspose(4, kernel_size=2, strides=2)
    >>> layer.initialize()
    >>> layer(nd.ones((1, 3, 2, 2, 2))).shape
    (1, 4, 4, 4, 4)
    """

    def __init__(
        self,
        channels: int,
        kernel_size: Sizes,
        strides: Sizes = (1, 1, 1),
        padding: Sizes = (0, 0, 0),
        output_padding: Sizes = (0, 0, 0),
        dilation: Sizes = (1, 1, 1),
        groups: int = 1,
        layout: str = "NCDHW",
        activation: str | None = None,
        use_bias: bool = True,
        weight_initializer: Any = None,
        bias_initializer: Any = "zeros",
        in_channels: int = 0,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            3,
            channels,
            kernel_size,
            strides,
            padding,
            output_padding,
            dilation,
            groups,
            layout,
            in_channels=in_channels,
            activation=activation,
            use_bias=use_bias,
            weight_initializer=weight_initializer,
            bias_initializer=bias_initializer,
            **kwargs,
        )


class ReflectionPad2D(HybridBlock):
    """Widen images by their mirror image; `padding` is a width or MXNet's eight pad widths.

    Parameters
    ----------
    padding
        Width of the border, or eight widths: two for each axis, batch and channels first.

    >>> mx.gluon.nn.ReflectionPad2D(1)(nd.array([[[[1, 2], [3, 4]]]])).asnumpy()[0, 0, 0]
    array([4., 3., 4., 3.], dtype=float32)
    """

    def __init__(self, padding: int | Sequence[int] = 0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if isinstance(padding, numeric_types):
            padding = (0, 0, 0, 0, padding, padding, padding, padding)
        assert len(padding) == 8, f"padding must be a number or a list of 8 ints, got {padding}"
        self._padding = padding

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        """Pad the input."""
        return F.pad(x, mode="reflect", pad_width=self._padding)
