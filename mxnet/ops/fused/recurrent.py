"""The recurrent operator on separate weights, as Gluon's layers have them."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from ..attributes import Count
from ..declare import OpContext, op
from ..nn.sequences.recurrent import output_names, rnn, rnn_outputs, rnn_work, unpacked
from ..shapes import Shapes


def _shapes(ins: Shapes, outs: Shapes, attrs: dict) -> tuple[Shapes, Shapes]:
    return ins, rnn_outputs(*ins, **attrs) or outs


@op("_rnn_unpacked", count="num_args", outputs=output_names, shape=_shapes, random=True)
def rnn_unpacked(
    *data: Tensor,
    num_states: Count,
    state_size: Count,
    num_layers: Count,
    bidirectional: bool = False,
    mode: Literal["gru", "lstm", "rnn_relu", "rnn_tanh"],
    p: float = 0.0,
    state_outputs: bool = False,
    projection_size: int | None = None,
    lstm_state_clip_min: float | None = None,
    lstm_state_clip_max: float | None = None,
    lstm_state_clip_nan: bool = False,
    use_sequence_length: bool = False,
    run: OpContext,
) -> Tensor | tuple[Tensor, ...]:
    """Run `RNN` on data, `num_states` states and lengths, then weights in the packed order.

    >>> x, h, zero = mx.nd.ones((2, 1, 1)), mx.nd.zeros((1, 1, 1)), mx.nd.zeros((1,))
    >>> weights = [mx.nd.ones((1, 1)), mx.nd.zeros((1, 1)), zero, zero]
    >>> mx.nd._internal._rnn_unpacked(x, h, *weights, num_states=1, state_size=1, num_layers=1,
    ...                               mode='rnn_relu').asnumpy().ravel()
    array([1., 1.], dtype=float32)
    """
    sequence, states, packed = data[0], data[1 : 1 + num_states], data[1 + num_states :]
    attrs = {
        "state_size": state_size,
        "num_layers": num_layers,
        "bidirectional": bidirectional,
        "mode": mode,
        "projection_size": projection_size,
    }
    weights = unpacked(packed, sequence.shape[-1], attrs)
    if weights is None:  # another order of sizes than Gluon's, or a mistake
        weights = torch.cat([w.reshape(-1) for w in packed])
    return rnn.function(
        sequence,
        weights,
        *states,
        **attrs,
        p=p,
        state_outputs=state_outputs,
        lstm_state_clip_min=lstm_state_clip_min,
        lstm_state_clip_max=lstm_state_clip_max,
        lstm_state_clip_nan=lstm_state_clip_nan,
        use_sequence_length=use_sequence_length,
        run=run,
    )


rnn_unpacked.work(rnn_work)
