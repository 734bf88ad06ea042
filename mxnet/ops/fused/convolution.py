"""A convolution in inference with the normalization, addition and activation that follow it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

from ...error import ShapeError
from ..attributes import Count, Floats, PositiveCount
from ..attributes import Shape as ShapeAttribute
from ..declare import OneAux, Op, ZeroAux, op
from ..nn.convolution import convolution, convolution_inputs, convolution_shapes, convolution_work
from ..nn.normalization import WideParameters
from ..shapes import Shape, Shapes
from .epilogues import PLAIN, bind_epilogue
from .prepared_convolution import PreparedConvolution

NORM = ("gamma", "beta", "moving_mean", "moving_var")


def fused_shapes(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    """Infer the result from data and the size of the windows; images are (N, C, H, W)."""
    _, outs = convolution_shapes(ins, outs, {**attrs, "layout": None})
    return ins, outs


@op(
    "_fused_convolution",
    optional={
        "bias": lambda a: not a["no_bias"],
        "other": lambda a: a["addition"] != "none",
        **dict.fromkeys(NORM, lambda a: a["normalized"]),
    },
    shape=fused_shapes,
    layout="channels_last",
    keeps_finite=True,
    overwritable=True,
)
def fused_convolution(
    data: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    gamma: Tensor | None = None,
    beta: Tensor | None = None,
    moving_mean: ZeroAux | None = None,
    moving_var: OneAux | None = None,
    other: Tensor | None = None,
    *,
    kernel: ShapeAttribute,
    stride: ShapeAttribute = (),
    dilate: ShapeAttribute = (),
    pad: ShapeAttribute = (),
    num_filter: PositiveCount,
    num_group: Count = 1,
    no_bias: bool = False,
    normalized: bool = False,
    eps: float = 1e-3,
    fix_gamma: bool = True,
    addition: Literal["broadcast", "none", "same_shape"] = "none",
    epilogue: Literal["clip", "leaky", "none", "relu", "sigmoid", "tanh"] = "none",
    constants: Floats = (),
    check_data: bool = True,
    check_other: bool = True,
) -> Tensor:
    """Convolve, normalize by the moving statistics, add an array and activate, in this order.

    All steps but the first are optional. `check_data` and `check_other` say whether those inputs
    may hold values that are not finite, which the specialized kernel must not hide.

    >>> x, w = mx.nd.array([[[[1, -2]]]]), mx.nd.array([[[[3]]]])
    >>> mx.nd._internal._fused_convolution(x, w, kernel=(1, 1), num_filter=1, no_bias=True,
    ...                                    epilogue="relu").asnumpy()
    array([[[[3., 0.]]]], dtype=float32)
    """
    out = convolution.function(
        data,
        weight,
        bias,
        kernel=kernel,
        stride=stride,
        dilate=dilate,
        pad=pad,
        num_filter=num_filter,
        num_group=num_group,
    )
    if normalized:
        scale = None if fix_gamma else gamma
        out = torch.batch_norm(out, scale, beta, moving_mean, moving_var, False, 0.0, eps, True)
    if other is not None:
        if addition == "same_shape" and other.shape != out.shape:
            raise ShapeError(
                f"Incompatible attr in node _fused_convolution at the input other: expected "
                f"{list(out.shape)}, got {list(other.shape)}."
            )
        out = out + other
    activate = bind_epilogue(PLAIN, epilogue, constants)
    return out if activate is None else activate(out)


class _Types(WideParameters):
    """Weight, bias and result have the type of data; the normalization's arrays a wider one."""

    def infer(self, op: Op, ins: list, outs: list, attrs: dict) -> tuple[list, list]:
        """Infer everything from the type of data (or of the result)."""
        names = op.names_of_inputs(attrs)
        norm = [i for i, name in enumerate(names) if name in NORM]
        wide, _ = super().infer(op, [ins[0], *(ins[i] for i in norm)], outs, attrs)
        data = wide[0]
        found = [data] * len(ins)
        for i, dtype in zip(norm, wide[1:], strict=True):
            found[i] = dtype
        return found, [data]


fused_convolution.type_pattern = _Types(None)


@fused_convolution.infer_inputs
def fused_convolution_inputs(
    data: Shape | None,
    weight: Shape | None,
    bias: Shape | None,
    *_: Shape | None,
    kernel: Shape,
    num_filter: int,
    num_group: int,
    **__: object,
) -> dict[str, Shape]:
    """Infer the parameters from the channels of data; the array that is added is left open."""
    found = convolution_inputs(
        data, weight, bias, kernel=kernel, num_filter=num_filter, num_group=num_group, layout=None
    )
    return {**found, **dict.fromkeys(NORM, (num_filter,))}


fused_convolution.work(convolution_work)


@fused_convolution.variant("node")
def prepare_convolution(attrs: dict, differentiable: bool) -> Callable | None:
    """Return a kernel that keeps its weights in the form that oneDNN computes with."""
    return None if differentiable else PreparedConvolution(fused_convolution.function, attrs)
