"""Deformable convolutions: the offset of each kernel point is learned."""

from __future__ import annotations

from typing import Any

from ....ops.documentation import inherits_parameters
from ...block import HybridBlock
from ...nn import Activation
from ...nn.conv_layers import Sizes, spread

__all__ = ["DeformableConvolution", "ModulatedDeformableConvolution"]


@inherits_parameters
class _Deformable(HybridBlock):
    """Base of both layers; `planes` values are predicted for each point of the kernel.

    Parameters
    ----------
    channels
        Number of output channels.
    kernel_size
        Size of the kernel, for each spatial axis.
    strides
        Step of the kernel, for each spatial axis.
    padding
        Zero padding added to both sides, for each spatial axis.
    dilation
        Distance between neighboring points of the kernel, for each spatial axis.
    groups
        Number of groups of channels that are convolved separately.
    num_deformable_group
        Number of groups of channels that share offsets.
    layout
        Order of the axes.
    use_bias
        Whether to add a bias.
    in_channels
        Number of input channels; 0: inferred from the first input.
    activation
        Activation function by name, such as ``'relu'``; None: no activation.
    weight_initializer
        Initializer of the weight; None: use the initializer passed to `initialize`.
    bias_initializer
        Initializer of the bias.
    offset_weight_initializer
        Initializer of the weight that computes the offsets.
    offset_bias_initializer
        Initializer of the bias that computes the offsets.
    offset_use_bias
        Whether that convolution has a bias.
    op_name
        Name of the operator.
    adj
        Accepted for compatibility; has no effect.
    """

    planes = 2
    offset_first = True  # create parameters in MXNet's order

    def __init__(
        self,
        channels: int,
        kernel_size: Sizes = (1, 1),
        strides: Sizes = (1, 1),
        padding: Sizes = (0, 0),
        dilation: Sizes = (1, 1),
        groups: int = 1,
        num_deformable_group: int = 1,
        layout: str = "NCHW",
        use_bias: bool = True,
        in_channels: int = 0,
        activation: str | None = None,
        weight_initializer: Any = None,
        bias_initializer: Any = "zeros",
        offset_weight_initializer: Any = "zeros",
        offset_bias_initializer: Any = "zeros",
        offset_use_bias: bool = True,
        op_name: str = "DeformableConvolution",
        adj: Sizes | None = None,
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        super().__init__(prefix=prefix, params=params)
        assert layout in ("NCHW", "NHWC"), f"Only supports NCHW and NHWC layout, got {layout}"
        kernel = spread(kernel_size, 2)
        shared = {
            "kernel": kernel,
            "stride": spread(strides, 2),
            "dilate": spread(dilation, 2),
            "pad": spread(padding, 2),
            "num_group": groups,
            "layout": layout,
        }
        if adj is not None:
            shared["adj"] = adj
        offset_channels = self.planes * kernel[0] * kernel[1] * num_deformable_group
        self._channels = channels
        self._in_channels = in_channels
        self._op_name = op_name
        self._kwargs_offset = {
            **shared,
            "num_filter": offset_channels,
            "no_bias": not offset_use_bias,
        }
        self._kwargs_deformable_conv = {
            **shared,
            "num_filter": channels,
            "num_deformable_group": num_deformable_group,
            "no_bias": not use_bias,
        }
        offset = (
            "offset",
            self._weight_shape(offset_channels, in_channels // groups),
            offset_weight_initializer,
            offset_bias_initializer if offset_use_bias else None,
        )
        main = (
            "deformable_conv",
            self._weight_shape(channels, 0),
            weight_initializer,
            bias_initializer if use_bias else None,
        )
        with self.name_scope():
            for rows in (offset, main) if self.offset_first else (main, offset):
                self._parameters(*rows)
            self.act = Activation(activation, prefix=activation + "_") if activation else None

    def _weight_shape(self, out: int, inner: int) -> tuple[int, ...]:
        kernel = self._kwargs_offset["kernel"]
        if self._kwargs_offset["layout"] == "NHWC":
            return (out, *kernel, inner)
        return (out, inner, *kernel)

    def _parameters(self, name: str, shape: tuple, weight_init: Any, bias_init: Any) -> None:
        weight = self.params.get(
            f"{name}_weight", shape=shape, init=weight_init, allow_deferred_init=True
        )
        setattr(self, f"{name}_weight", weight)
        bias = None
        if bias_init is not None:
            bias = self.params.get(
                f"{name}_bias", shape=shape[:1], init=bias_init, allow_deferred_init=True
            )
        setattr(self, f"{name}_bias", bias)

    def _offset(self, F: Any, x: Any, weight: Any, bias: Any) -> Any:
        inputs = (x, weight) if bias is None else (x, weight, bias)
        return F.Convolution(*inputs, cudnn_off=True, **self._kwargs_offset)

    def _finish(self, F: Any, inputs: tuple, bias: Any) -> Any:
        if bias is not None:
            inputs = (*inputs, bias)
        convolve = getattr(F.contrib, self._op_name)
        out = convolve(*inputs, name="fwd", **self._kwargs_deformable_conv)
        return out if self.act is None else self.act(out)


@inherits_parameters
class DeformableConvolution(_Deformable):
    """Convolution whose kernel points are moved by learned offsets, initially zero.

    >>> layer = mx.gluon.contrib.cnn.DeformableConvolution(4, (3, 3), padding=(1, 1))
    >>> layer.initialize()
    >>> layer(nd.ones((1, 2, 5, 5))).shape
    (1, 4, 5, 5)
    """

    def _alias(self) -> str:
        return "deformable_conv"

    def hybrid_forward(
        self,
        F: Any,
        x: Any,
        offset_weight: Any,
        deformable_conv_weight: Any,
        offset_bias: Any = None,
        deformable_conv_bias: Any = None,
    ) -> Any:
        """Convolve the input."""
        offset = self._offset(F, x, offset_weight, offset_bias)
        return self._finish(F, (x, offset, deformable_conv_weight), deformable_conv_bias)

    deformable_conv_weight: Any
    deformable_conv_bias: Any

    def __repr__(self) -> str:
        k, shape = self._kwargs_deformable_conv, self.deformable_conv_weight.shape
        parts = [
            f"{shape[1] if shape[1] else None} -> {shape[0]}",
            f"kernel_size={k['kernel']}",
            f"stride={k['stride']}",
        ]
        if k["pad"] != (0, 0):
            parts.append(f"padding={k['pad']}")
        if k["dilate"] != (1, 1):
            parts.append(f"dilation={k['dilate']}")
        if k["num_group"] != 1:
            parts.append(f"groups={k['num_group']}")
        if self.deformable_conv_bias is None:
            parts.append("bias=False")
        if self.act:
            parts.append(repr(self.act))
        return "{}({})".format(type(self).__name__, ", ".join(parts))


@inherits_parameters
class ModulatedDeformableConvolution(_Deformable):
    """Deformable convolution that also multiplies each kernel point by a weight from 0 to 2.

    >>> layer = mx.gluon.contrib.cnn.ModulatedDeformableConvolution(4, (3, 3))
    >>> layer.initialize()
    >>> layer(nd.ones((1, 2, 5, 5))).shape
    (1, 4, 3, 3)
    """

    planes = 3
    offset_first = False

    def __init__(
        self,
        channels: int,
        kernel_size: Sizes = (1, 1),
        strides: Sizes = (1, 1),
        padding: Sizes = (0, 0),
        dilation: Sizes = (1, 1),
        groups: int = 1,
        num_deformable_group: int = 1,
        layout: str = "NCHW",
        use_bias: bool = True,
        in_channels: int = 0,
        activation: str | None = None,
        weight_initializer: Any = None,
        bias_initializer: Any = "zeros",
        offset_weight_initializer: Any = "zeros",
        offset_bias_initializer: Any = "zeros",
        offset_use_bias: bool = True,
        op_name: str = "ModulatedDeformableConvolution",
        adj: Sizes | None = None,
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        super().__init__(
            channels,
            kernel_size,
            strides,
            padding,
            dilation,
            groups,
            num_deformable_group,
            layout,
            use_bias,
            in_channels,
            activation,
            weight_initializer,
            bias_initializer,
            offset_weight_initializer,
            offset_bias_initializer,
            offset_use_bias,
            op_name,
            adj,
            prefix,
            params,
        )

    def _alias(self) -> str:
        return "modulated_deformable_conv"

    def hybrid_forward(
        self,
        F: Any,
        x: Any,
        offset_weight: Any,
        deformable_conv_weight: Any,
        offset_bias: Any = None,
        deformable_conv_bias: Any = None,
    ) -> Any:
        """Convolve the input."""
        planes = self._offset(F, x, offset_weight, offset_bias)
        split = self._kwargs_offset["num_filter"] * 2 // 3
        offset = F.slice_axis(planes, axis=1, begin=0, end=split)
        mask = F.slice_axis(planes, axis=1, begin=split, end=None)
        mask = F.sigmoid(mask) * 2
        return self._finish(F, (x, offset, mask, deformable_conv_weight), deformable_conv_bias)
