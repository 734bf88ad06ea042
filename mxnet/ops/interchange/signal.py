"""Fourier transforms of real and complex signals; complex numbers are a last axis of size 2."""

from __future__ import annotations

import torch
from torch import Tensor

from ..declare import op


def _as_complex(data: Tensor) -> Tensor:
    """Return complex numbers from a last axis of size 1 or 2."""
    if data.shape[-1] == 2:
        return torch.view_as_complex(data.contiguous())
    return data.squeeze(-1)


@op("_onnx_dft")
def dft(
    data: Tensor,
    *,
    axis: int = -2,
    length: int | None = None,
    inverse: bool = False,
    onesided: bool = False,
) -> Tensor:
    """Discrete Fourier transform along an axis; `onesided` keeps, or takes, half of it.

    Parameters
    ----------
    length
        Number of elements to transform; the axis is cut or padded with 0.
    inverse
        Whether to go back from frequencies.
    onesided
        Whether only the first half of the frequencies is meant.

    >>> x = mx.nd.ones((1, 4, 1))
    >>> mx.nd._internal._onnx_dft(x, axis=1).asnumpy()[0, :, 0]
    array([4., 0., 0., 0.], dtype=float32)
    """
    at = axis % data.ndim
    values = _as_complex(data)
    if inverse and onesided:
        return torch.fft.irfft(values, length, at).unsqueeze(-1)
    if onesided:
        made = torch.fft.rfft(values, length, at)
    else:
        made = (torch.fft.ifft if inverse else torch.fft.fft)(values, length, at)
    return torch.view_as_real(made).clone()


@op("_onnx_stft", optional={"window": lambda a: a["has_window"]})
def stft(
    data: Tensor,
    window: Tensor | None = None,
    *,
    frame_step: int,
    frame_length: int,
    onesided: bool = True,
    has_window: bool = False,
) -> Tensor:
    """Fourier transforms of frames: ``(batch, frames, frequencies, 2)``.

    Parameters
    ----------
    window
        Factors of the elements of a frame.
    frame_step
        Elements between frames.
    frame_length
        Elements of a frame.
    onesided
        Whether only the first half of the frequencies is meant.
    has_window
        Whether `window` is given.

    >>> x = mx.nd.ones((1, 8, 1))
    >>> mx.nd._internal._onnx_stft(x, frame_step=4, frame_length=4).shape
    (1, 2, 3, 2)
    """
    frames = _as_complex(data).unfold(1, frame_length, frame_step)
    if window is not None:
        frames = frames * window
    made = torch.fft.rfft(frames) if onesided else torch.fft.fft(frames)
    return torch.view_as_real(made).clone()
