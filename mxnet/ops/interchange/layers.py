"""Attention and recurrent layers with all of ONNX's options.

`RNN` runs the usual layers in one kernel; `_onnx_rnn` serves peepholes, other functions, clipped
gates and the GRU that resets before its product, one step at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import torch
from torch import Tensor
from torch.nn import functional

from ...error import MXNetError
from ..attributes import DType, Floats
from ..declare import op


def _optional(*names: str) -> dict[str, Callable[[dict], bool]]:
    """Return the presence of optional inputs: those listed in the attribute `given`."""

    def is_given(name: str) -> Callable[[dict], bool]:
        return lambda attrs: name in attrs["given"].split(",")

    return {name: is_given(name) for name in names}


def _split_heads(x: Tensor, heads: int) -> Tensor:
    """Return ``(batch, heads, length, size)`` from ``(batch, length, heads * size)``."""
    if x.ndim == 4:
        return x
    batch, length, width = x.shape
    return x.reshape(batch, length, heads, width // heads).transpose(1, 2)


def _join_heads(x: Tensor) -> Tensor:
    return x.transpose(1, 2).flatten(2)


def _allowed(
    size: tuple[int, int],
    offset: Tensor | int,
    window: tuple[int, int],
    is_causal: bool,
    device: torch.device,
) -> Tensor | None:
    """Return the positional mask of queries and keys: ``(queries, keys)`` or with a batch."""
    left, right = window
    if is_causal:
        right = 0 if right < 0 else min(right, 0)
    if left < 0 and right < 0:
        return None
    rows = torch.arange(size[0], device=device)[:, None]
    columns = torch.arange(size[1], device=device)
    if isinstance(offset, Tensor):
        rows = rows + offset.reshape(-1, 1, 1, 1)
    distance = rows + (0 if isinstance(offset, Tensor) else offset) - columns
    seen = torch.ones_like(distance, dtype=torch.bool)
    if left >= 0:
        seen &= distance <= left
    if right >= 0:
        seen &= -distance <= right
    return seen


def _bias(mask: Tensor | None, seen: Tensor | None, length: int, dtype: torch.dtype) -> Tensor:
    """Return the bias of the scores: the mask, and minus infinity for masked keys."""
    bias = torch.zeros((), dtype=dtype)
    if mask is not None:
        missing = length - mask.shape[-1]
        if mask.dtype is torch.bool:
            mask = functional.pad(mask, (0, missing), value=False)
            bias = torch.zeros_like(mask, dtype=dtype).masked_fill(~mask, -torch.inf)
        else:
            bias = functional.pad(mask.to(dtype), (0, missing), value=-torch.inf)
    if seen is not None:
        hidden = torch.zeros_like(seen, dtype=dtype).masked_fill(~seen, -torch.inf)
        bias = bias.to(hidden.device) + hidden
    return bias


@op(
    "_onnx_attention",
    types="T T T M P P I -> T",
    optional=_optional("mask", "past_key", "past_value", "lengths"),
    outputs=lambda a: a["num_outputs"],
)
def attention(
    queries: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor | None = None,
    past_key: Tensor | None = None,
    past_value: Tensor | None = None,
    lengths: Tensor | None = None,
    *,
    given: str = "",
    num_outputs: int = 1,
    q_num_heads: int = 0,
    kv_num_heads: int = 0,
    scale: float | None = None,
    is_causal: bool = False,
    softcap: float = 0.0,
    softmax_dtype: DType | None = None,
    scores_mode: int = 0,
    left_window: int = -1,
    right_window: int = -1,
) -> Tensor | tuple[Tensor, ...]:
    """Scaled dot-product attention with caches, groups of heads, windows and capped scores.

    `given` names the optional inputs. Outputs are the result, the keys and values with their
    past, and the scores: raw, capped, with the mask, or as shares by `scores_mode` 0 to 3.

    Parameters
    ----------
    queries
        Queries: ``(batch, heads, length, size)`` or ``(batch, length, heads * size)``.
    keys
        Keys, in the same form.
    values
        Values, in the same form.
    mask
        Boolean mask, or numbers added to the scores.
    past_key
        Keys of earlier steps.
    past_value
        Values of earlier steps.
    lengths
        Length of each sequence.
    given
        Comma-separated names of the given optional inputs.
    q_num_heads
        Number of heads of joined queries.
    kv_num_heads
        Number of heads of joined keys and values.
    scale
        Factor of the scores; by default one over the root of the size.
    is_causal
        Whether to mask later keys.
    softcap
        Bound of the scores; 0: none.
    softmax_dtype
        Data type of the softmax.
    scores_mode
        Type of the scores in the fourth output.
    left_window
        Window size to the left; -1: unlimited.
    right_window
        Window size to the right; -1: unlimited.

    >>> x = mx.nd.ones((1, 1, 2, 4))
    >>> mx.nd._internal._onnx_attention(x, x, x, is_causal=True).shape
    (1, 1, 2, 4)
    """
    q, k, v = (
        _split_heads(x, h)
        for x, h in ((queries, q_num_heads), (keys, kv_num_heads), (values, kv_num_heads))
    )
    if past_key is not None and past_value is not None:
        k, v = torch.cat([past_key, k], 2), torch.cat([past_value, v], 2)
    present = (k, v)
    if k.shape[1] != q.shape[1]:
        group = q.shape[1] // k.shape[1]
        k, v = (x.repeat_interleave(group, 1) for x in (k, v))
    root = (scale or q.shape[-1] ** -0.5) ** 0.5
    raw = torch.matmul(q * root, (k * root).transpose(-1, -2))
    capped = softcap * torch.tanh(raw / softcap) if softcap else raw
    offset: Tensor | int = 0 if past_key is None else past_key.shape[2]
    if lengths is not None:
        offset = lengths - q.shape[2]
    size = (q.shape[2], k.shape[2])
    seen = _allowed(size, offset, (left_window, right_window), is_causal, q.device)
    if lengths is not None:
        real = torch.arange(size[1], device=q.device) < lengths.reshape(-1, 1, 1, 1)
        seen = real if seen is None else seen & real
    masked = capped + _bias(mask, seen, size[1], q.dtype).to(q.device)
    wide = masked if softmax_dtype is None else masked.to(softmax_dtype)
    # A query without visible keys has zero weights.
    shares = torch.softmax(wide, -1).masked_fill(masked.isneginf().all(-1, True), 0).to(q.dtype)
    output = torch.matmul(shares, v)
    output = _join_heads(output) if queries.ndim == 3 else output
    outs = (output, *present, (raw, capped, masked, shares)[scores_mode])
    return output if num_outputs == 1 else outs[:num_outputs]


# -- recurrence -----------------------------------------------------------------------------

# Functions by name, with their default alpha and beta.
FUNCTIONS: dict[str, tuple[Callable[..., Tensor], float, float]] = {
    "relu": (lambda x, a, b: torch.relu(x), 0, 0),
    "tanh": (lambda x, a, b: torch.tanh(x), 0, 0),
    "sigmoid": (lambda x, a, b: torch.sigmoid(x), 0, 0),
    "affine": (lambda x, a, b: a * x + b, 1.0, 0.0),
    "leakyrelu": (lambda x, a, b: functional.leaky_relu(x, a), 0.01, 0),
    "thresholdedrelu": (lambda x, a, b: torch.where(x >= a, x, 0), 1.0, 0),
    "scaledtanh": (lambda x, a, b: a * torch.tanh(b * x), 1.0, 1.0),
    "hardsigmoid": (lambda x, a, b: (a * x + b).clamp(0, 1), 0.2, 0.5),
    "elu": (lambda x, a, b: functional.elu(x, a), 1.0, 0),
    "softsign": (lambda x, a, b: functional.softsign(x), 0, 0),
    "softplus": (lambda x, a, b: functional.softplus(x), 0, 0),
}
GATES = {"lstm": 4, "gru": 3, "rnn": 1}
Activation = Callable[[Tensor], Tensor]


def _functions(
    names: str, alphas: Sequence[float], betas: Sequence[float], limit: float
) -> list[Activation]:
    """Return the functions of the gates, which limit what they take."""
    functions: list[Activation] = []
    left, right = list(alphas), list(betas)
    for name in names.split(","):
        if name not in FUNCTIONS:
            raise MXNetError(f"_onnx_rnn: unknown function {name!r}; known are {list(FUNCTIONS)}.")
        function, alpha, beta = FUNCTIONS[name]
        alpha = left.pop(0) if alpha and left else alpha
        beta = right.pop(0) if beta and right else beta
        functions.append(_limited(function, alpha, beta, limit))
    return functions


def _limited(function: Callable[..., Tensor], a: float, b: float, limit: float) -> Activation:
    if limit <= 0:
        return lambda x: function(x, a, b)
    return lambda x: function(x.clamp(-limit, limit), a, b)


def _lstm_step(x, h, c, r, bias, f: list[Activation], peepholes: Tensor | None, options: dict):
    i, o, z, g = (x + functional.linear(h, r, bias)).chunk(4, -1)  # `z` is the forget gate
    p_o = None
    if peepholes is not None:
        p_i, p_o, p_f = peepholes.chunk(3)
        i, z = i + p_i * c, z + p_f * c
    i = f[0](i)
    z = 1 - i if options["input_forget"] else f[0](z)
    cell = z * c + i * f[1](g)
    if p_o is not None:
        o = o + p_o * cell
    return f[0](o) * f[2](cell), cell


def _gru_step(x, h, c, r, bias, f: list[Activation], peepholes: Tensor | None, options: dict):
    size = h.shape[-1]
    gates = functional.linear(h, r[: 2 * size], bias[: 2 * size])
    z, reset = f[0](x[:, : 2 * size] + gates).chunk(2, -1)
    rows, shift = r[2 * size :], bias[2 * size :]
    if options["linear_before_reset"]:
        inner = reset * functional.linear(h, rows, shift)
    else:
        inner = functional.linear(reset * h, rows, shift)
    new = f[1](x[:, 2 * size :] + inner)
    return (1 - z) * new + z * h, None


def _rnn_step(x, h, c, r, bias, f: list[Activation], peepholes: Tensor | None, options: dict):
    return f[0](x + functional.linear(h, r, bias)), None


STEPS = {"lstm": _lstm_step, "gru": _gru_step, "rnn": _rnn_step}


def _one_direction(data, lengths, weights, states, functions, options, is_reverse):
    """Run one direction; beyond a sequence's length outputs are 0 and states stay."""
    w, r, b, peepholes = weights
    half = b.shape[0] // 2
    projected = functional.linear(data, w, b[:half])
    h, c = states
    times = range(data.shape[0])
    outs: list[Tensor] = [torch.empty(0)] * data.shape[0]
    for t in reversed(times) if is_reverse else times:
        new_h, new_c = STEPS[options["kind"]](
            projected[t], h, c, r, b[half:], functions, peepholes, options
        )
        if lengths is None:
            h, c, outs[t] = new_h, new_c, new_h
            continue
        is_on = (lengths > t)[:, None]
        h = torch.where(is_on, new_h, h)
        c = c if new_c is None else torch.where(is_on, new_c, c)
        outs[t] = torch.where(is_on, new_h, 0)
    return torch.stack(outs), h, c


@op(
    "_onnx_rnn",
    types="T T T T I T -> T",
    optional=_optional("bias", "lengths", "state", "cell", "peepholes"),
    outputs=lambda a: 3 if a["kind"] == "lstm" else 2,
)
def rnn(
    data: Tensor,
    weight: Tensor,
    recurrence: Tensor,
    bias: Tensor | None = None,
    lengths: Tensor | None = None,
    state: Tensor | None = None,
    cell: Tensor | None = None,
    peepholes: Tensor | None = None,
    *,
    kind: Literal["lstm", "gru", "rnn"],
    activations: str,
    given: str = "",
    direction: Literal["forward", "reverse", "bidirectional"] = "forward",
    alphas: Floats = (),
    betas: Floats = (),
    clip: float = 0.0,
    linear_before_reset: bool = False,
    input_forget: bool = False,
) -> tuple[Tensor, ...]:
    """Run a recurrent layer over ``(time, batch, features)``.

    Weights and gates are in ONNX's order, with a first axis of directions. `activations` lists the
    functions of all directions; `given` names the optional inputs. Returns
    ``(time, directions, batch, size)`` and the last states.

    Parameters
    ----------
    recurrence
        Weights of the states.
    lengths
        Length of each sequence.
    state
        Initial states.
    cell
        Initial cell states of an LSTM.
    peepholes
        Peephole weights of an LSTM.
    kind
        Kind of layer.
    activations
        Comma-separated names of the activation functions.
    given
        Comma-separated names of the given optional inputs.
    direction
        Direction.
    alphas
        First parameters of the activation functions.
    betas
        Second parameters of the activation functions.
    clip
        Bound of the inputs of activation functions; 0: none.
    linear_before_reset
        Whether a GRU applies the reset gate after the matrix product.
    input_forget
        Whether an LSTM couples the input and forget gates.

    >>> x, w, r = mx.nd.ones((1, 1, 1)), mx.nd.zeros((1, 3, 1)), mx.nd.zeros((1, 3, 1))
    >>> h = mx.nd.ones((1, 1, 1))
    >>> out, last = mx.nd._internal._onnx_rnn(
    ...     x, w, r, state=h, kind="gru", activations="sigmoid,tanh", given="state")
    >>> last.asnumpy().ravel()
    array([0.5], dtype=float32)
    """
    directions, size = weight.shape[0], recurrence.shape[-1]
    zeros = data.new_zeros((directions, data.shape[1], size))
    start_h, start_c = zeros if state is None else state, zeros if cell is None else cell
    if bias is None:
        bias = data.new_zeros((directions, 2 * GATES[kind] * size))
    functions = _functions(activations, alphas, betas, clip)
    each = len(functions) // directions
    options = {
        "kind": kind,
        "linear_before_reset": linear_before_reset,
        "input_forget": input_forget,
    }
    runs = [
        _one_direction(
            data,
            lengths,
            (weight[d], recurrence[d], bias[d], None if peepholes is None else peepholes[d]),
            (start_h[d], start_c[d]),
            functions[d * each : (d + 1) * each],
            options,
            direction == "reverse" or d == 1,
        )
        for d in range(directions)
    ]
    outs, hs, cs = zip(*runs, strict=True)
    output = (torch.stack(outs, 1), torch.stack(hs))
    return (*output, torch.stack(cs)) if kind == "lstm" else output
