"""Variational dropout, LSTM with projection, and unrolling as a loop in the graph."""

from __future__ import annotations

from typing import Any

from ....ops.documentation import inherits_parameters
from ...rnn import BidirectionalCell, HybridRecurrentCell, ModifierCell, RecurrentCell
from ...rnn.base_cell import format_sequence, mask_sequence, namespace_of, tensor_types

__all__ = ["LSTMPCell", "VariationalDropoutCell"]


class VariationalDropoutCell(ModifierCell):
    """Apply the same dropout masks to inputs, states and outputs at every step of a sequence.

    The masks are drawn at the first step after `reset`, which `unroll` calls.

    Parameters
    ----------
    base_cell
        The cell to wrap.
    drop_inputs
        Probability of dropout of the inputs; one mask serves all steps.
    drop_states
        Probability of dropout of the states; one mask serves all steps.
    drop_outputs
        Probability of dropout of the outputs; one mask serves all steps.

    >>> cell = mx.gluon.contrib.rnn.VariationalDropoutCell(mx.gluon.rnn.RNNCell(3), 0.5)
    >>> cell.initialize()
    >>> cell.unroll(4, nd.ones((2, 4, 5)), merge_outputs=True)[0].shape
    (2, 4, 3)
    """

    def __init__(
        self,
        base_cell: RecurrentCell,
        drop_inputs: float = 0.0,
        drop_states: float = 0.0,
        drop_outputs: float = 0.0,
    ) -> None:
        assert not drop_states or not isinstance(base_cell, BidirectionalCell), (
            "BidirectionalCell doesn't support variational state dropout. "
            "Please add VariationalDropoutCell to the cells underneath instead."
        )
        super().__init__(base_cell)
        self.drop_inputs = drop_inputs
        self.drop_states = drop_states
        self.drop_outputs = drop_outputs

    def _alias(self) -> str:
        return "vardrop"

    def reset(self) -> None:
        """Reset the counters and the dropout masks."""
        super().reset()
        self.drop_inputs_mask = None
        self.drop_states_mask = None
        self.drop_outputs_mask = None

    def _drop(self, F: Any, what: str, values: Any) -> Any:
        """Apply a dropout mask that is created once per sequence."""
        rate = getattr(self, what)
        if not rate:
            return values
        mask = getattr(self, what + "_mask")
        if mask is None:
            mask = F.Dropout(F.ones_like(values), p=rate)
            setattr(self, what + "_mask", mask)
        return values * mask

    def hybrid_forward(self, F: Any, inputs: Any, states: list) -> tuple[Any, list]:
        """Take one step."""
        if self.drop_states:  # states beyond the first are not outputs of the previous step
            states = [self._drop(F, "drop_states", states[0]), *states[1:]]
        inputs = self._drop(F, "drop_inputs", inputs)
        output, states = self.base_cell(inputs, states)
        return self._drop(F, "drop_outputs", output), states

    def unroll(
        self,
        length: int,
        inputs: Any,
        begin_state: list | None = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
        valid_length: Any = None,
    ) -> tuple[Any, list]:
        """Run the cell over `length` steps; outputs are merged unless ``merge_outputs=False``.

        Without dropout of states the wrapped cell's own `unroll` is used, so a cell that cannot be
        stepped, such as a `BidirectionalCell`, can be wrapped.
        """
        if self.drop_states:
            return super().unroll(length, inputs, begin_state, layout, merge_outputs, valid_length)
        self.reset()
        inputs, axis, F, _ = format_sequence(length, inputs, layout, True)
        if self.drop_inputs:
            inputs = F.Dropout(inputs, p=self.drop_inputs, axes=(axis,))
        self.base_cell._modified = False
        outputs, states = self.base_cell.unroll(
            length, inputs, begin_state, layout, merge_outputs=True, valid_length=valid_length
        )
        self.base_cell._modified = True
        if self.drop_outputs:
            outputs = F.Dropout(outputs, p=self.drop_outputs, axes=(axis,))
        outputs = format_sequence(length, outputs, layout, merge_outputs is not False)[0]
        if valid_length is not None:
            merged = isinstance(outputs, tensor_types)
            outputs = mask_sequence(F, outputs, length, valid_length, axis, merged)
        return outputs, states

    def __repr__(self) -> str:
        return f"{type(self).__name__}(p_out = {self.drop_outputs}, p_state = {self.drop_states})"


@inherits_parameters
class LSTMPCell(HybridRecurrentCell):
    """LSTM whose output is projected to `projection_size` before it is fed back.

    Parameters
    ----------
    hidden_size
        Number of features of the hidden state.
    projection_size
        Number of features that the hidden state is projected to.
    i2h_weight_initializer
        Initializer of the weight of the input.
    h2h_weight_initializer
        Initializer of the weight of the hidden state.
    h2r_weight_initializer
        Initializer of the weight of the projection.
    i2h_bias_initializer
        Initializer of the bias of the input.
    h2h_bias_initializer
        Initializer of the bias of the hidden state.
    input_size
        Number of input features; 0: inferred from the first input.

    >>> cell = mx.gluon.contrib.rnn.LSTMPCell(4, projection_size=2)
    >>> cell.initialize()
    >>> output, states = cell(nd.ones((1, 3)), cell.begin_state(batch_size=1))
    >>> output.shape, [state.shape for state in states]
    ((1, 2), [(1, 2), (1, 4)])
    """

    def __init__(
        self,
        hidden_size: int,
        projection_size: int,
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        h2r_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        input_size: int = 0,
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        super().__init__(prefix=prefix, params=params)
        self._hidden_size = hidden_size
        self._input_size = input_size
        self._projection_size = projection_size
        width = 4 * hidden_size
        for name, shape, init in (
            ("i2h_weight", (width, input_size), i2h_weight_initializer),
            ("h2h_weight", (width, projection_size), h2h_weight_initializer),
            ("h2r_weight", (projection_size, hidden_size), h2r_weight_initializer),
            ("i2h_bias", (width,), i2h_bias_initializer),
            ("h2h_bias", (width,), h2h_bias_initializer),
        ):
            parameter = self.params.get(name, shape=shape, init=init, allow_deferred_init=True)
            setattr(self, name, parameter)

    def state_info(self, batch_size: int = 0) -> list[dict]:
        """Return shape and layout of the projected state and of the memory."""
        return [
            {"shape": (batch_size, size), "__layout__": "NC"}
            for size in (self._projection_size, self._hidden_size)
        ]

    def _alias(self) -> str:
        return "lstmp"

    i2h_weight: Any
    h2r_weight: Any

    def __repr__(self) -> str:
        width, size = self.i2h_weight.shape
        return (
            f"{type(self).__name__}({size if size else None} -> {width} -> "
            f"{self.h2r_weight.shape[0]})"
        )

    def hybrid_forward(
        self,
        F: Any,
        inputs: Any,
        states: list,
        i2h_weight: Any,
        h2h_weight: Any,
        h2r_weight: Any,
        i2h_bias: Any,
        h2h_bias: Any,
    ) -> tuple[Any, list]:
        """Take one step."""
        step = f"t{self._counter}_"
        width = 4 * self._hidden_size
        i2h = F.FullyConnected(inputs, i2h_weight, i2h_bias, num_hidden=width, name=step + "i2h")
        h2h = F.FullyConnected(states[0], h2h_weight, h2h_bias, num_hidden=width, name=step + "h2h")
        gates = F.SliceChannel(i2h + h2h, num_outputs=4, name=step + "slice")
        i = F.Activation(gates[0], act_type="sigmoid", name=step + "i")
        f = F.Activation(gates[1], act_type="sigmoid", name=step + "f")
        g = F.Activation(gates[2], act_type="tanh", name=step + "c")
        o = F.Activation(gates[3], act_type="sigmoid", name=step + "o")
        memory = F.elemwise_add(f * states[1], i * g, name=step + "state")
        bent = F.Activation(memory, act_type="tanh")
        hidden = F.elemwise_mul(o, bent, name=step + "hidden")
        output = F.FullyConnected(
            hidden, h2r_weight, num_hidden=self._projection_size, no_bias=True, name=step + "out"
        )
        return output, [output, memory]


def dynamic_unroll(
    cell: RecurrentCell,
    inputs: Any,
    begin_state: list,
    drop_inputs: float = 0,
    drop_outputs: float = 0,
    layout: str = "TNC",
    valid_length: Any = None,
) -> tuple[Any, list]:
    """Run a cell over a sequence of any length, as a loop in the graph.

    >>> cell = mx.gluon.rnn.RNNCell(3)
    >>> cell.initialize()
    >>> unroll = mx.gluon.contrib.rnn.rnn_cell.dynamic_unroll
    >>> unroll(cell, nd.ones((4, 2, 5)), cell.begin_state(2))[0].shape
    (4, 2, 3)
    """
    F = namespace_of(inputs)
    axis = layout.find("T")
    if axis not in (0, 1):
        raise ValueError(f"layout {layout!r} is not supported: TNC or NTC is needed")
    if axis == 1:
        inputs = F.swapaxes(inputs, dim1=0, dim2=1)
    if drop_inputs:
        inputs = F.Dropout(inputs, p=drop_inputs, axes=(0,))
    if valid_length is None:
        outputs, states = F.contrib.foreach(cell, inputs, begin_state)
    else:
        outputs, states = _masked_loop(F, cell, inputs, begin_state, valid_length)
    if drop_outputs:
        outputs = F.Dropout(outputs, p=drop_outputs, axes=(0,))
    if axis == 1:
        outputs = F.swapaxes(outputs, dim1=0, dim2=1)
    if valid_length is not None:
        outputs = F.SequenceMask(
            outputs, sequence_length=valid_length, use_sequence_length=True, axis=axis
        )
    return outputs, states


def _masked_loop(
    F: Any, cell: RecurrentCell, inputs: Any, begin_state: list, valid_length: Any
) -> tuple[Any, list]:
    """Run the loop with a step counter as a state; states are frozen after the valid length."""

    def body(x: Any, states: list) -> tuple[Any, list]:
        *states, step = states
        output, new_states = cell(x, states)
        counts = F.broadcast_lesser(step, valid_length)
        masked = [F.where(counts, new, old) for new, old in zip(new_states, states, strict=True)]
        return output, [*masked, step + 1]

    start = F.zeros_like(valid_length)
    outputs, states = F.contrib.foreach(body, inputs, [*begin_state, start])
    return outputs, states[:-1]
