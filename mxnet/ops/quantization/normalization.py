"""Batch normalization of 8-bit images by moving statistics."""

from __future__ import annotations

import torch
from torch import Tensor

from ...error import MXNetError
from ..declare import OneAux, ZeroAux, op
from ..shapes import Shape
from .conversions import STEPS, _check_dtype, _check_ranges, _rounded, range_step
from .layers import OUTPUTS

NAME = "_contrib_quantized_batch_norm"


@op(NAME, outputs=OUTPUTS, types="T float32 -> int8 float32")
def quantized_batch_norm(
    data: Tensor,
    gamma: Tensor,
    beta: Tensor,
    moving_mean: ZeroAux,
    moving_var: OneAux,
    min_data: Tensor,
    max_data: Tensor,
    *,
    eps: float = 1e-3,
    momentum: float = 0.9,
    fix_gamma: bool = True,
    use_global_stats: bool = False,
    output_mean_var: bool = False,
    axis: int = 1,
    cudnn_off: bool = False,
    min_calib_range: float | None = None,
    max_calib_range: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalize 8-bit images by the moving statistics, to a calibrated range.

    Parameters
    ----------
    gamma
        Scale of each channel.
    beta
        Shift of each channel.
    moving_mean
        Mean of each channel.
    moving_var
        Variance of each channel.
    fix_gamma
        Whether gamma counts as 1.
    axis
        The axis of the channels.
    momentum, use_global_stats, output_mean_var
        Accepted for compatibility, without effect.
    min_calib_range, max_calib_range
        The calibrated range of the result, which is needed.

    >>> x, one = mx.nd.array([[[[127, 10]]]], dtype="int8"), mx.nd.ones(1)
    >>> mx.nd.contrib.quantized_batch_norm(x, one, one, 0 * one, one, -one, one,
    ...     min_calib_range=-2, max_calib_range=2)[0].asnumpy()
    array([[[[127,  68]]]], dtype=int8)
    """
    _check_dtype(NAME, data, torch.int8, torch.uint8)
    _check_ranges(NAME, min_data, max_data)
    if min_calib_range is None or max_calib_range is None:
        raise MXNetError(f"{NAME}: min_calib_range and max_calib_range are needed; calibrate it.")
    real = data.float() * range_step(data, min_data, max_data)
    shape = [1] * data.ndim
    shape[axis] = -1
    scale = (moving_var + eps).rsqrt()
    scale = scale if fix_gamma else scale * gamma
    real = (real - moving_mean.reshape(shape)) * scale.reshape(shape) + beta.reshape(shape)
    end = max(abs(min_calib_range), abs(max_calib_range))
    high = real.new_tensor([end])
    return _rounded(real * (STEPS["int8"] / end if end else 0.0), "int8"), -high, high


@quantized_batch_norm.infer_inputs
def quantized_batch_norm_inputs(
    data: Shape | None, *_: Shape | None, axis: int, **__: object
) -> dict[str, Shape]:
    """Infer a number for each channel."""
    ends = {"min_data": (1,), "max_data": (1,)}
    if data is None:
        return ends
    channels = (data[axis],)
    return {**ends, **dict.fromkeys(("gamma", "beta", "moving_mean", "moving_var"), channels)}


@quantized_batch_norm.infer_outputs
def quantized_batch_norm_outputs(
    data: Shape | None, *_: Shape | None, **__: object
) -> list[Shape] | None:
    """Infer that the result is like data."""
    return None if data is None else [data, (1,), (1,)]
