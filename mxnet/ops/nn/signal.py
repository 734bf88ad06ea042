"""Fourier transform, count sketch, and the likelihood of Hawkes processes."""

from __future__ import annotations

import torch
from torch import Tensor

from ...error import ShapeError
from ..attributes import Shape
from ..declare import op
from ..shapes import UNKNOWN


@op("_contrib_fft", precision="full")
def fft(data: Tensor, *, compute_size: int = 128) -> Tensor:
    """Compute the Fourier transform of the last axis, with interleaved real and imaginary parts.

    Parameters
    ----------
    data
        Real numbers; the transform runs along the last axis.

    >>> mx.nd.contrib.fft(mx.nd.array([[1, 0]])).asnumpy()
    array([[1., 0., 1., 0.]], dtype=float32)
    """
    return torch.view_as_real(torch.fft.fft(data)).flatten(-2)


@fft.infer_outputs
def fft_shape(data: Shape | None, **_: object) -> Shape | None:
    """The size of the last axis doubles."""
    if data is None:
        return None
    return (*data[:-1], UNKNOWN if data[-1] == UNKNOWN else data[-1] * 2)


@op("_contrib_ifft")
def ifft(data: Tensor, *, compute_size: int = 128) -> Tensor:
    """Compute the real part of the unnormalized inverse Fourier transform.

    Parameters
    ----------
    data
        Interleaved real and imaginary parts along the last axis.

    >>> mx.nd.contrib.ifft(mx.nd.array([[1, 0, 1, 0]])).asnumpy()
    array([[2., 0.]], dtype=float32)
    """
    if data.shape[-1] % 2:
        raise ShapeError(
            f"_contrib_ifft needs pairs of real and imaginary parts, got {list(data.shape)}."
        )
    pairs = data.reshape(*data.shape[:-1], -1, 2)
    return torch.fft.ifft(torch.view_as_complex(pairs), norm="forward").real.contiguous()


@ifft.infer_outputs
def ifft_shape(data: Shape | None, **_: object) -> Shape | None:
    """The size of the last axis is halved."""
    if data is None:
        return None
    return (*data[:-1], UNKNOWN if data[-1] == UNKNOWN else data[-1] // 2)


@op("_contrib_count_sketch", precision="full")
def count_sketch(
    data: Tensor, h: Tensor, s: Tensor, *, out_dim: int, processing_batch_size: int = 32
) -> Tensor:
    """Compute the count sketch: add feature i, times ``s[i]``, to element ``h[i]`` of the result.

    Parameters
    ----------
    data
        Features of shape ``(batch, features)``.
    h
        Index of each feature in the result, of shape ``(1, features)``.
    s
        Sign of each feature, 1 or -1, of shape ``(1, features)``.
    out_dim
        Number of features of the result.
    processing_batch_size
        Accepted for compatibility; has no effect.

    >>> h, s = mx.nd.array([[0, 1, 0]]), mx.nd.array([[1, -1, 1]])
    >>> mx.nd.contrib.count_sketch(mx.nd.array([[1, 2, 3]]), h, s, out_dim=2).asnumpy()
    array([[ 4., -2.]], dtype=float32)
    """
    position = h.reshape(-1).long()
    sums = data.new_zeros((*data.shape[:-1], out_dim))
    return sums.index_add(-1, position, data * s.reshape(-1))


@count_sketch.infer_inputs
def count_sketch_inputs(data: Shape | None, *_: Shape | None, **__: object) -> dict[str, Shape]:
    """One index and one sign for each feature."""
    return {} if data is None else {"h": (1, data[-1]), "s": (1, data[-1])}


@count_sketch.infer_outputs
def count_sketch_shape(
    data: Shape | None, *_: Shape | None, out_dim: int, **__: object
) -> Shape | None:
    """The last axis has size `out_dim`."""
    return None if data is None else (*data[:-1], out_dim)


@op(
    "_contrib_hawkesll",
    outputs=("output", "out_state"),
    types="T T T T T I T -> T",
    precision="full",
)
def hawkesll(
    lda: Tensor,
    alpha: Tensor,
    beta: Tensor,
    state: Tensor,
    lags: Tensor,
    marks: Tensor,
    valid_length: Tensor,
    max_time: Tensor,
) -> tuple[Tensor, Tensor]:
    """Compute the log likelihood of Hawkes processes, and their final memory.

    The intensity of mark k is ``lda_k + alpha_k beta_k s_k(t)``, where the memory ``s_k`` grows by
    one at each event and decays by ``exp(-beta_k t)``; events are `lags` apart.

    Parameters
    ----------
    lda
        Background intensities of shape ``(batch, marks)``.
    alpha
        Branching ratio of each mark.
    beta
        Decay rate of each mark.
    state
        Initial memory, of shape ``(batch, marks)``.
    lags
        Times between events, of shape ``(batch, length)``.
    marks
        Mark of each event, integers of the same shape.
    valid_length
        Number of events of each sequence.
    max_time
        End of the observation of each sequence.

    >>> one = mx.nd.ones(1)
    >>> ll, memory = mx.nd.contrib.hawkesll(one.reshape((1, 1)), 0 * one, one, mx.nd.zeros((1, 1)),
    ...     one.reshape((1, 1)), mx.nd.zeros((1, 1), dtype='int32'), one, 2 * one)
    >>> ll.asnumpy(), memory.asnumpy().round(3)
    (array([-2.], dtype=float32), array([[0.368]], dtype=float32))
    """
    memory = start = state.detach()
    count = torch.arange(lags.shape[1], device=lags.device)
    real = count < valid_length.unsqueeze(1)
    own = torch.nn.functional.one_hot(marks.long(), lda.shape[1]).to(lda.dtype)
    own = own * real.unsqueeze(-1)
    passed = (lags * real).detach()
    logs = lda.new_zeros(lda.shape[0])
    for t in range(lags.shape[1]):
        memory = memory * torch.exp(-beta * passed[:, t : t + 1])
        intensity = ((lda + alpha * beta * memory) * own[:, t]).sum(1)
        logs = logs + torch.where(real[:, t], intensity, 1.0).log()
        memory = memory + own[:, t]
    rest = (max_time - passed.sum(1)).unsqueeze(1)
    memory = memory * torch.exp(-beta * rest)
    # The decay of each memory is the expected number of excited events.
    expected = lda * max_time.unsqueeze(1) + alpha * (start + own.sum(1) - memory)
    return logs - expected.sum(1), memory.detach()


@hawkesll.infer_outputs
def hawkesll_shape(lda: Shape | None, *_: Shape | None) -> list[Shape] | None:
    """One likelihood per sequence, and one memory per sequence and mark."""
    return None if lda is None else [(lda[0],), lda]
