"""Rows of convolution and transposed convolution."""

from __future__ import annotations

from collections.abc import Sequence

from ..builder import UNKNOWN, Builder, Call
from ..table import row

CHANNELS_LAST = ("NWC", "NHWC", "NDHWC")


def per_axis(values: Sequence[int], default: int, rank: int) -> list[int]:
    """Return a stride, pad or dilation for every spatial axis."""
    return list(values[:rank]) or [default] * rank


def channels_first(g: Builder, x: str, rank: int) -> str:
    """Move the last axis to the second place."""
    return g.Transpose(x, perm=[0, rank - 1, *range(1, rank - 1)])


def channels_last(g: Builder, x: str, rank: int) -> str:
    """Move the second axis to the last place."""
    return g.Transpose(x, perm=[0, *range(2, rank), 1])


@row("Convolution")
def convolution(g: Builder, call: Call, x: str, weight: str, bias: str | None = None) -> str:
    """Write Conv; channels-last data is transposed around it."""
    a, rank = call.attrs, len(call.attrs["kernel"])
    is_last = a["layout"] in CHANNELS_LAST
    if is_last:
        x, weight = (channels_first(g, v, call.ndim) for v in (x, weight))
    pad = per_axis(a["pad"], 0, rank)
    made = g.Conv(
        *((x, weight, bias) if bias else (x, weight)),
        kernel_shape=list(a["kernel"]),
        strides=per_axis(a["stride"], 1, rank),
        dilations=per_axis(a["dilate"], 1, rank),
        pads=pad + pad,
        group=a["num_group"],
    )
    return channels_last(g, made, call.ndim) if is_last else made


def _crop_to_target(call: Call, spatial: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the pads and the output padding that give the wanted size."""
    a, rank = call.attrs, len(call.attrs["kernel"])
    if UNKNOWN in spatial:
        raise call.unsupported("with target_shape needs height and width as numbers.")
    strides, dilations = per_axis(a["stride"], 1, rank), per_axis(a["dilate"], 1, rank)
    full = [
        s * (n - 1) + d * (k - 1) + 1
        for n, k, s, d in zip(spatial, a["kernel"], strides, dilations, strict=True)
    ]
    surplus = [f - t for f, t in zip(full, a["target_shape"], strict=True)]
    return [(s + 1) // 2 for s in surplus], [s % 2 for s in surplus]


@row("Deconvolution")
def deconvolution(g: Builder, call: Call, x: str, weight: str, bias: str | None = None) -> str:
    """Write ConvTranspose; `target_shape` overrides `pad` and `adj`."""
    a, rank = call.attrs, len(call.attrs["kernel"])
    is_last = a["layout"] in CHANNELS_LAST
    spatial = call.shape[1:-1] if is_last else call.shape[2:]
    if is_last:
        x, weight = (channels_first(g, v, call.ndim) for v in (x, weight))
    pad, adj = per_axis(a["pad"], 0, rank), per_axis(a["adj"], 0, rank)
    if any(a["target_shape"]):
        pad, adj = _crop_to_target(call, spatial)
    made = g.ConvTranspose(
        *((x, weight, bias) if bias else (x, weight)),
        kernel_shape=list(a["kernel"]),
        strides=per_axis(a["stride"], 1, rank),
        dilations=per_axis(a["dilate"], 1, rank),
        pads=pad + pad,
        output_padding=adj,
        group=a["num_group"],
    )
    return channels_last(g, made, call.ndim) if is_last else made
