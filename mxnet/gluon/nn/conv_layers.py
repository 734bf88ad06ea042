"""Convolution, transposed convolution, padding and pooling layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base import MXNetError
from ...ops.documentation import inherits_parameters
from ..block import HybridBlock
from .activations import Activation

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


Sizes = int | Sequence[int]
numeric_types = (float, int, np.generic)

CONV_LAYOUTS = {1: ("NCW",), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}
POOL_LAYOUTS = {1: ("NCW", "NWC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}


def spread(sizes: Sizes, ndim: int, name: str | None = None) -> tuple[int, ...]:
    """Return a size for each of `ndim` axes; a single number applies to all.

    >>> spread(3, 2), spread((1, 2), 2)
    ((3, 3), (1, 2))
    """
    if isinstance(sizes, numeric_types):
        return (sizes,) * ndim
    assert name is None or len(sizes) == ndim, f"{name} must be a number or a list of {ndim} ints"
    return tuple(sizes)


def check_conv_layout(layout: str, ndim: int) -> None:
    """Raise unless a convolution of `ndim` axes supports the layout."""
    layouts = CONV_LAYOUTS[ndim]
    names = " and ".join(f"'{name}'" for name in layouts)
    assert layout in layouts, f"Only supports {names} layout for now"


def check_pool_layout(layout: str, ndim: int) -> None:
    """Raise unless a pooling of `ndim` axes supports the layout."""
    layouts = POOL_LAYOUTS[ndim]
    names = " and ".join(layouts)
    assert layout in layouts, f"Only {names} layouts are valid for {ndim}D Pooling"


class _Conv(HybridBlock):
    """An N-dimensional convolution; `op_name` tells whether it is transposed.

    Parameters
    ----------
    channels
        Number of output channels.
    kernel_size
        Size of the kernel: a number, or one for each spatial axis.
    strides
        Step of the kernel: a number, or one for each spatial axis.
    padding
        Zero padding added to both sides: a number, or one for each spatial axis.
    dilation
        Distance between neighboring points of the kernel, for each spatial axis.
    groups
        Number of groups of channels that are convolved separately.
    layout
        Order of the axes.
    activation
        Activation function by name, such as ``'relu'``; None: no activation.
    use_bias
        Whether to add a bias.
    weight_initializer
        Initializer of the weight; None: use the initializer passed to `initialize`.
    bias_initializer
        Initializer of the bias.
    in_channels
        Number of input channels; 0: inferred from the first input.
    output_padding
        Number of elements added at the end of each spatial axis of the output.
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
        """Return (out, in / groups, kernel...), or (in, out / groups, ...) if transposed."""
        groups, kernel = self._kwargs["num_group"], tuple(self._kwargs["kernel"])
        if self._op_name == "Deconvolution":
            first, inner = self._in_channels, self._channels // groups
        else:
            first, inner = self._channels, self._in_channels // groups
        if self._kwargs["layout"].endswith("C"):
            return (first, *kernel, inner)
        return (first, inner, *kernel)

    def hybrid_forward(self, F: Any, x: Any, weight: Any, bias: Any = None) -> Any:
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
    """1-D convolution. Layout NCW.

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
    """2-D convolution. Layout NCHW or NHWC.

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
    """3-D convolution. Layout NCDHW or NDHWC.

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
    """Base of the transposed convolutions."""

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
    """1-D transposed convolution. Layout NCW.

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
    """2-D transposed convolution. Layout NCHW or NHWC.

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
    """3-D transposed convolution. Layout NCDHW or NDHWC.

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
    """Pad images by reflection; `padding` is a width or MXNet's eight pad widths.

    Parameters
    ----------
    padding
        Width of the border, or eight widths: before and after for each of the four axes.

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


class _Pooling(HybridBlock):
    """Base of the pooling layers.

    Parameters
    ----------
    pool_size
        Size of the window: a number, or one for each spatial axis.
    strides
        Step of the window; None: `pool_size`.
    padding
        Padding added to both sides: a number, or one for each spatial axis.
    layout
        Order of the axes.
    ceil_mode
        Whether output sizes are rounded up, to include incomplete windows.
    count_include_pad
        Whether averages include the padding.
    """

    def __init__(
        self,
        pool_size: tuple[int, ...],
        strides: Sizes | None,
        padding: Sizes,
        ceil_mode: bool,
        global_pool: bool,
        pool_type: str,
        layout: str,
        count_include_pad: bool | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if strides is None:
            strides = pool_size
        self._kwargs = {
            "kernel": pool_size,
            "stride": spread(strides, len(pool_size)),
            "pad": spread(padding, len(pool_size)),
            "global_pool": global_pool,
            "pool_type": pool_type,
            "layout": layout,
            "pooling_convention": "full" if ceil_mode else "valid",
        }
        if count_include_pad is not None:
            self._kwargs["count_include_pad"] = count_include_pad

    def _alias(self) -> str:
        return "pool"

    def hybrid_forward(self, F: Any, x: Any) -> Any:
        return F.Pooling(x, name="fwd", **self._kwargs)

    def __repr__(self) -> str:
        text = (
            "{name}(size={kernel}, stride={stride}, padding={pad}, ceil_mode={ceil_mode}, "
            "global_pool={global_pool}, pool_type={pool_type}, layout={layout})"
        )
        ceil_mode = self._kwargs["pooling_convention"] == "full"
        return text.format(name=type(self).__name__, ceil_mode=ceil_mode, **self._kwargs)


def _window(pool_size: Sizes, layout: str, ndim: int) -> tuple[int, ...]:
    check_pool_layout(layout, ndim)
    return spread(pool_size, ndim, "pool_size")


@inherits_parameters
class MaxPool1D(_Pooling):
    """1-D max pooling.

    >>> mx.gluon.nn.MaxPool1D()(nd.array([[[1, 5, 2, 3]]])).asnumpy()
    array([[[5., 3.]]], dtype=float32)
    """

    def __init__(
        self,
        pool_size: Sizes = 2,
        strides: Sizes | None = None,
        padding: Sizes = 0,
        layout: str = "NCW",
        ceil_mode: bool = False,
        **kwargs: Any,
    ) -> None:
        window = _window(pool_size, layout, 1)
        super().__init__(window, strides, padding, ceil_mode, False, "max", layout, **kwargs)


@inherits_parameters
class MaxPool2D(_Pooling):
    """2-D max pooling.

    >>> mx.gluon.nn.MaxPool2D()(nd.array([[[[1, 5], [2, 3]]]])).asnumpy()
    array([[[[5.]]]], dtype=float32)
    """

    def __init__(
        self,
        pool_size: Sizes = (2, 2),
        strides: Sizes | None = None,
        padding: Sizes = 0,
        layout: str = "NCHW",
        ceil_mode: bool = False,
        **kwargs: Any,
    ) -> None:
        window = _window(pool_size, layout, 2)
        super().__init__(window, strides, padding, ceil_mode, False, "max", layout, **kwargs)


@inherits_parameters
class MaxPool3D(_Pooling):
    """3-D max pooling.

    >>> mx.gluon.nn.MaxPool3D()(nd.ones((1, 2, 4, 4, 4))).shape
    (1, 2, 2, 2, 2)
    """

    def __init__(
        self,
        pool_size: Sizes = (2, 2, 2),
        strides: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        layout: str = "NCDHW",
        **kwargs: Any,
    ) -> None:
        window = _window(pool_size, layout, 3)
        super().__init__(window, strides, padding, ceil_mode, False, "max", layout, **kwargs)


@inherits_parameters
class AvgPool1D(_Pooling):
    """1-D average pooling.

    >>> mx.gluon.nn.AvgPool1D()(nd.array([[[1, 5, 2, 3]]])).asnumpy()
    array([[[3. , 2.5]]], dtype=float32)
    """

    def __init__(
        self,
        pool_size: Sizes = 2,
        strides: Sizes | None = None,
        padding: Sizes = 0,
        layout: str = "NCW",
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        **kwargs: Any,
    ) -> None:
        window = _window(pool_size, layout, 1)
        super().__init__(
            window, strides, padding, ceil_mode, False, "avg", layout, count_include_pad, **kwargs
        )


@inherits_parameters
class AvgPool2D(_Pooling):
    """2-D average pooling.

    >>> mx.gluon.nn.AvgPool2D()(nd.array([[[[1, 5], [2, 4]]]])).asnumpy()
    array([[[[3.]]]], dtype=float32)
    """

    def __init__(
        self,
        pool_size: Sizes = (2, 2),
        strides: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        layout: str = "NCHW",
        count_include_pad: bool = True,
        **kwargs: Any,
    ) -> None:
        window = _window(pool_size, layout, 2)
        super().__init__(
            window, strides, padding, ceil_mode, False, "avg", layout, count_include_pad, **kwargs
        )


@inherits_parameters
class AvgPool3D(_Pooling):
    """3-D average pooling.

    >>> mx.gluon.nn.AvgPool3D()(nd.ones((1, 2, 4, 4, 4))).shape
    (1, 2, 2, 2, 2)
    """

    def __init__(
        self,
        pool_size: Sizes = (2, 2, 2),
        strides: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        layout: str = "NCDHW",
        count_include_pad: bool = True,
        **kwargs: Any,
    ) -> None:
        window = _window(pool_size, layout, 3)
        super().__init__(
            window, strides, padding, ceil_mode, False, "avg", layout, count_include_pad, **kwargs
        )


class _GlobalPooling(_Pooling):
    def __init__(self, ndim: int, pool_type: str, layout: str, **kwargs: Any) -> None:
        check_pool_layout(layout, ndim)
        super().__init__((1,) * ndim, None, 0, True, True, pool_type, layout, **kwargs)


@inherits_parameters
class GlobalMaxPool1D(_GlobalPooling):
    """1-D global max pooling.

    >>> mx.gluon.nn.GlobalMaxPool1D()(nd.array([[[1, 5, 3]]])).asnumpy()
    array([[[5.]]], dtype=float32)
    """

    def __init__(self, layout: str = "NCW", **kwargs: Any) -> None:
        super().__init__(1, "max", layout, **kwargs)


@inherits_parameters
class GlobalMaxPool2D(_GlobalPooling):
    """2-D global max pooling.

    >>> mx.gluon.nn.GlobalMaxPool2D()(nd.ones((2, 3, 8, 8))).shape
    (2, 3, 1, 1)
    """

    def __init__(self, layout: str = "NCHW", **kwargs: Any) -> None:
        super().__init__(2, "max", layout, **kwargs)


@inherits_parameters
class GlobalMaxPool3D(_GlobalPooling):
    """3-D global max pooling.

    >>> mx.gluon.nn.GlobalMaxPool3D()(nd.ones((2, 3, 4, 4, 4))).shape
    (2, 3, 1, 1, 1)
    """

    def __init__(self, layout: str = "NCDHW", **kwargs: Any) -> None:
        super().__init__(3, "max", layout, **kwargs)


@inherits_parameters
class GlobalAvgPool1D(_GlobalPooling):
    """1-D global average pooling.

    >>> mx.gluon.nn.GlobalAvgPool1D()(nd.array([[[1, 5, 3]]])).asnumpy()
    array([[[3.]]], dtype=float32)
    """

    def __init__(self, layout: str = "NCW", **kwargs: Any) -> None:
        super().__init__(1, "avg", layout, **kwargs)


@inherits_parameters
class GlobalAvgPool2D(_GlobalPooling):
    """2-D global average pooling.

    >>> mx.gluon.nn.GlobalAvgPool2D()(nd.ones((2, 3, 8, 8))).shape
    (2, 3, 1, 1)
    """

    def __init__(self, layout: str = "NCHW", **kwargs: Any) -> None:
        super().__init__(2, "avg", layout, **kwargs)


@inherits_parameters
class GlobalAvgPool3D(_GlobalPooling):
    """3-D global average pooling.

    >>> mx.gluon.nn.GlobalAvgPool3D()(nd.ones((2, 3, 4, 4, 4))).shape
    (2, 3, 1, 1, 1)
    """

    def __init__(self, layout: str = "NCDHW", **kwargs: Any) -> None:
        super().__init__(3, "avg", layout, **kwargs)
