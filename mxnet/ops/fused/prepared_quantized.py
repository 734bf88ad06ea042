"""8-bit convolution and linear transformation by oneDNN, on weights that are packed once.

oneDNN computes with unsigned data. Signed data is shifted by 128, which is undone by the zero point
of oneDNN. Processors without VNNI add two products in 16 bits, which saturate unless the weights
have 7 bits: others are left to the plain kernel there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..quantization.conversions import DTYPES, STEPS, _chosen
from ..quantization.layers import step_of

try:
    _convolve = torch.ops.onednn.qconv_pointwise.default
    _pack_convolution = torch.ops.onednn.qconv_prepack.default
    _transform = torch.ops.onednn.qlinear_pointwise.default
    _pack_dense = torch.ops.onednn.qlinear_prepack.default
    CAN_PACK = torch.backends.mkldnn.is_available()
except (AttributeError, RuntimeError):  # a torch without oneDNN's 8-bit kernels
    CAN_PACK = False

SIGN_BIT = 128
SEVEN_BITS = 64
HAS_VNNI = bool(torch.cpu._is_vnni_supported())
Ranged = tuple[Tensor, Tensor, Tensor]


def is_exact(weight: Tensor) -> bool:
    """Return whether oneDNN's sums with these weights cannot saturate on this processor."""
    return HAS_VNNI or bool(weight.short().abs().amax() <= SEVEN_BITS)


class _Packed(NamedTuple):
    """Packed weights and what they were packed for."""

    tensors: tuple[Tensor | None, ...]
    versions: tuple[int | None, ...]
    shape: torch.Size
    dtype: torch.dtype
    data_step: float
    weight: Tensor
    weight_steps: Tensor
    zero_points: Tensor
    bias: Tensor | None


class _Prepared:
    """A specialized kernel of one node; subclasses pack and compute."""

    def __init__(self, plain: Callable, attrs: dict[str, Any]) -> None:
        self._plain, self._attrs = plain, attrs
        low, high = attrs["min_calib_range"], attrs["max_calib_range"]
        kind = _chosen(attrs["out_type"], low)
        end = max(abs(low), abs(high))
        self._out_step, self._out_dtype = end / STEPS[kind], DTYPES[kind]
        self._low = torch.tensor([-end if kind == "int8" else 0.0])
        self._high = torch.tensor([float(end)])
        self._packed: _Packed | None = None

    def __call__(self, data: Tensor, weight: Tensor, bias: Tensor | None = None,
                 min_data: Tensor | None = None, max_data: Tensor | None = None,
                 *ranges: Tensor | None) -> Ranged:  # fmt: skip
        """Return the 8-bit result and its range."""
        tensors = (weight, bias, *ranges)
        if data.device.type != "cpu" or not self._out_step or not self._accepts(data, weight):
            return self._plain(data, weight, bias, min_data, max_data, *ranges, **self._attrs)
        step = float(step_of(data, min_data, max_data))
        packed = self._packed
        if packed is None or not self._is_current(packed, tensors, data, step):
            if not (step and float(step_of(weight, *ranges[:2])) and is_exact(weight)):
                return self._plain(data, weight, bias, min_data, max_data, *ranges, **self._attrs)
            packed = self._packed = self._prepare(tensors, data, step)
        zero = 0
        if data.dtype is torch.int8:
            data, zero = data.view(torch.uint8).bitwise_xor(SIGN_BIT), SIGN_BIT
        return self._compute(data, zero, packed), self._low.clone(), self._high.clone()

    @staticmethod
    def _is_current(packed: _Packed, tensors: tuple, data: Tensor, step: float) -> bool:
        if packed.shape != data.shape or packed.dtype is not data.dtype or packed.data_step != step:
            return False
        return all(a is b for a, b in zip(tensors, packed.tensors, strict=True)) and (
            packed.versions == tuple(None if t is None else t._version for t in tensors)
        )

    def _prepare(self, tensors: tuple, data: Tensor, step: float) -> _Packed:
        weight, bias, *ranges = tensors
        steps = step_of(weight, *ranges[:2]).expand(weight.shape[0]).contiguous()
        zero = SIGN_BIT if data.dtype is torch.int8 else 0
        return _Packed(
            tensors,
            tuple(None if t is None else t._version for t in tensors),
            data.shape,
            data.dtype,
            step,
            self._pack(weight, steps, step, zero, data.shape),
            steps,
            torch.zeros(weight.shape[0], dtype=torch.int32),
            None if bias is None else bias.float() * step_of(bias, *ranges[2:]),
        )

    def _accepts(self, data: Tensor, weight: Tensor) -> bool:
        raise NotImplementedError

    def _pack(self, weight: Tensor, steps: Tensor, step: float, zero: int, shape: Any) -> Tensor:
        raise NotImplementedError

    def _compute(self, data: Tensor, zero: int, packed: _Packed) -> Tensor:
        raise NotImplementedError


class PreparedConvolution(_Prepared):
    """The specialized kernel of `_fused_quantized_conv`."""

    def __init__(self, plain: Callable, attrs: dict[str, Any]) -> None:
        super().__init__(plain, attrs)
        self._place = (
            list(attrs["stride"] or (1, 1)),
            list(attrs["pad"] or (0, 0)),
            list(attrs["dilate"] or (1, 1)),
            attrs["num_group"],
        )

    def _accepts(self, data: Tensor, weight: Tensor) -> bool:
        filters, groups = self._attrs["num_filter"], self._attrs["num_group"]
        return (
            data.ndim == 4
            and data.numel() > 0
            and data.dtype in (torch.int8, torch.uint8)
            and weight.shape == (filters, data.shape[1] // groups, *self._attrs["kernel"])
        )

    def _pack(self, weight: Tensor, steps: Tensor, step: float, zero: int, shape: Any) -> Tensor:
        return _pack_convolution(weight, steps, step, zero, *self._place, list(shape))

    def _compute(self, data: Tensor, zero: int, packed: _Packed) -> Tensor:
        return _convolve(
            data, packed.data_step, zero, packed.weight, packed.weight_steps, packed.zero_points,
            packed.bias, *self._place, self._out_step, 0, self._out_dtype, "none", [], "",
        )  # fmt: skip


class PreparedDense(_Prepared):
    """The specialized kernel of `_fused_quantized_fully_connected`."""

    def _accepts(self, data: Tensor, weight: Tensor) -> bool:
        if data.ndim < 2 or not data.numel() or data.dtype not in (torch.int8, torch.uint8):
            return False
        width = data[0].numel() if self._attrs["flatten"] else data.shape[-1]
        return weight.shape == (self._attrs["num_hidden"], width)

    def _pack(self, weight: Tensor, steps: Tensor, step: float, zero: int, shape: Any) -> Tensor:
        return _pack_dense(weight, None)

    def _compute(self, data: Tensor, zero: int, packed: _Packed) -> Tensor:
        if self._attrs["flatten"]:
            data = data.flatten(1)
        return _transform(
            data.contiguous(), packed.data_step, zero, packed.weight, packed.weight_steps,
            packed.zero_points, packed.bias, self._out_step, 0, self._out_dtype, "none", [], "",
        )  # fmt: skip
