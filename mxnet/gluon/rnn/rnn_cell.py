"""`RNNCell`, `LSTMCell` and `GRUCell`; also exports the cells that combine others."""

from __future__ import annotations

from typing import Any

from ...ops.documentation import inherits_parameters
from .base_cell import (
    HybridRecurrentCell,
    RecurrentCell,
    tensor_types,  # noqa: F401
)
from .base_cell import as_list as _as_list  # noqa: F401 other packages know these from here
from .base_cell import begin_state_like as _get_begin_state  # noqa: F401
from .base_cell import format_sequence as _format_sequence  # noqa: F401
from .base_cell import mask_sequence as _mask_sequence_variable_length  # noqa: F401
from .base_cell import reverse_sequence as _reverse_sequences  # noqa: F401
from .combined_cells import (
    BidirectionalCell,
    DropoutCell,
    HybridSequentialRNNCell,
    ModifierCell,
    ResidualCell,
    SequentialRNNCell,
    ZoneoutCell,
)
from .combined_cells import _all_begin_states as _cells_begin_state  # noqa: F401
from .combined_cells import _all_states as _cells_state_info  # noqa: F401

__all__ = [
    "BidirectionalCell",
    "DropoutCell",
    "GRUCell",
    "HybridRecurrentCell",
    "HybridSequentialRNNCell",
    "LSTMCell",
    "ModifierCell",
    "RNNCell",
    "RecurrentCell",
    "ResidualCell",
    "SequentialRNNCell",
    "ZoneoutCell",
]


@inherits_parameters
class _GatedCell(HybridRecurrentCell):
    """A cell with input-to-hidden and hidden-to-hidden weights for `gates` gates.

    Parameters
    ----------
    hidden_size
        Number of features of the hidden state.
    activation
        Activation function by name, such as ``'relu'`` or ``'tanh'``.
    i2h_weight_initializer
        Initializer of the weight of the input.
    h2h_weight_initializer
        Initializer of the weight of the hidden state.
    i2h_bias_initializer
        Initializer of the bias of the input.
    h2h_bias_initializer
        Initializer of the bias of the hidden state.
    input_size
        Number of input features; 0: inferred from the first input.
    """

    gates = 1
    i2h_weight: Any

    def __init__(
        self,
        hidden_size: int,
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        input_size: int = 0,
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        super().__init__(prefix=prefix, params=params)
        self._hidden_size = hidden_size
        self._input_size = input_size
        width = self.gates * hidden_size
        for name, shape, init in (
            ("i2h_weight", (width, input_size), i2h_weight_initializer),
            ("h2h_weight", (width, hidden_size), h2h_weight_initializer),
            ("i2h_bias", (width,), i2h_bias_initializer),
            ("h2h_bias", (width,), h2h_bias_initializer),
        ):
            parameter = self.params.get(name, shape=shape, init=init, allow_deferred_init=True)
            setattr(self, name, parameter)

    def state_info(self, batch_size: int = 0) -> list[dict]:
        """Return shape and layout of the hidden state."""
        return [{"shape": (batch_size, self._hidden_size), "__layout__": "NC"}]

    def _project(
        self, F: Any, inputs: Any, hidden: Any, step: str, weights: tuple
    ) -> tuple[Any, Any]:
        i2h_weight, h2h_weight, i2h_bias, h2h_bias = weights
        width = self.gates * self._hidden_size
        i2h = F.FullyConnected(inputs, i2h_weight, i2h_bias, num_hidden=width, name=step + "i2h")
        h2h = F.FullyConnected(hidden, h2h_weight, h2h_bias, num_hidden=width, name=step + "h2h")
        return i2h, h2h

    def __repr__(self) -> str:
        shape = self.i2h_weight.shape
        return f"{type(self).__name__}({shape[1] if shape[1] else None} -> {shape[0]})"


@inherits_parameters
class RNNCell(_GatedCell):
    """Elman's cell: ``h' = activation(W_ih x + b_ih + W_hh h + b_hh)``.

    >>> cell = mx.gluon.rnn.RNNCell(3)
    >>> cell.initialize()
    >>> output, states = cell(nd.ones((2, 4)), cell.begin_state(batch_size=2))
    >>> output.shape, len(states)
    ((2, 3), 1)
    """

    def __init__(
        self,
        hidden_size: int,
        activation: Any = "tanh",
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        input_size: int = 0,
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        super().__init__(
            hidden_size,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
            input_size,
            prefix,
            params,
        )
        self._activation = activation

    def _alias(self) -> str:
        return "rnn"

    def hybrid_forward(
        self,
        F: Any,
        inputs: Any,
        states: list,
        i2h_weight: Any,
        h2h_weight: Any,
        i2h_bias: Any,
        h2h_bias: Any,
    ) -> tuple[Any, list]:
        """Take one step."""
        step = f"t{self._counter}_"
        weights = (i2h_weight, h2h_weight, i2h_bias, h2h_bias)
        i2h, h2h = self._project(F, inputs, states[0], step, weights)
        total = F.elemwise_add(i2h, h2h, name=step + "plus0")
        output = self._get_activation(F, total, self._activation, name=step + "out")
        return output, [output]

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, {self._activation})"


@inherits_parameters
class LSTMCell(_GatedCell):
    """Long short-term memory, gates in the order input, forget, candidate, output.

    ``c' = f * c + i * g``;  ``h' = o * tanh(c')``

    Parameters
    ----------
    recurrent_activation
        Activation function of the gates.

    >>> cell = mx.gluon.rnn.LSTMCell(3)
    >>> cell.initialize()
    >>> output, states = cell(nd.ones((2, 4)), cell.begin_state(batch_size=2))
    >>> output.shape, len(states)
    ((2, 3), 2)
    """

    gates = 4

    def __init__(
        self,
        hidden_size: int,
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        input_size: int = 0,
        prefix: str | None = None,
        params: Any = None,
        activation: Any = "tanh",
        recurrent_activation: Any = "sigmoid",
    ) -> None:
        super().__init__(
            hidden_size,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
            input_size,
            prefix,
            params,
        )
        self._activation = activation
        self._recurrent_activation = recurrent_activation

    def state_info(self, batch_size: int = 0) -> list[dict]:
        """Return shape and layout of the hidden state and of the memory."""
        return super().state_info(batch_size) + super().state_info(batch_size)

    def _alias(self) -> str:
        return "lstm"

    def hybrid_forward(
        self,
        F: Any,
        inputs: Any,
        states: list,
        i2h_weight: Any,
        h2h_weight: Any,
        i2h_bias: Any,
        h2h_bias: Any,
    ) -> tuple[Any, list]:
        """Take one step."""
        step = f"t{self._counter}_"
        weights = (i2h_weight, h2h_weight, i2h_bias, h2h_bias)
        i2h, h2h = self._project(F, inputs, states[0], step, weights)
        gates = F.elemwise_add(i2h, h2h, name=step + "plus0")
        i, f, g, o = F.SliceChannel(gates, num_outputs=4, name=step + "slice")
        i = self._get_activation(F, i, self._recurrent_activation, name=step + "i")
        f = self._get_activation(F, f, self._recurrent_activation, name=step + "f")
        g = self._get_activation(F, g, self._activation, name=step + "c")
        o = self._get_activation(F, o, self._recurrent_activation, name=step + "o")
        old = F.elemwise_mul(f, states[1], name=step + "mul0")
        new = F.elemwise_mul(i, g, name=step + "mul1")
        memory = F.elemwise_add(old, new, name=step + "state")
        bent = F.Activation(memory, act_type=self._activation, name=step + "activation0")
        hidden = F.elemwise_mul(o, bent, name=step + "out")
        return hidden, [hidden, memory]


@inherits_parameters
class GRUCell(_GatedCell):
    """Gated recurrent unit, gates in the order reset, update, candidate.

    ``n = tanh(W_in x + b_in + r * (W_hn h + b_hn))``;  ``h' = (1 - z) * n + z * h``

    >>> cell = mx.gluon.rnn.GRUCell(3)
    >>> cell.initialize()
    >>> output, states = cell(nd.ones((2, 4)), cell.begin_state(batch_size=2))
    >>> output.shape, len(states)
    ((2, 3), 1)
    """

    gates = 3

    def _alias(self) -> str:
        return "gru"

    def hybrid_forward(
        self,
        F: Any,
        inputs: Any,
        states: list,
        i2h_weight: Any,
        h2h_weight: Any,
        i2h_bias: Any,
        h2h_bias: Any,
    ) -> tuple[Any, list]:
        """Take one step."""
        step = f"t{self._counter}_"
        previous = states[0]
        weights = (i2h_weight, h2h_weight, i2h_bias, h2h_bias)
        i2h, h2h = self._project(F, inputs, previous, step, weights)
        i2h_r, i2h_z, i2h_n = F.SliceChannel(i2h, num_outputs=3, name=step + "i2h_slice")
        h2h_r, h2h_z, h2h_n = F.SliceChannel(h2h, num_outputs=3, name=step + "h2h_slice")
        reset = F.elemwise_add(i2h_r, h2h_r, name=step + "plus0")
        reset = F.Activation(reset, act_type="sigmoid", name=step + "r_act")
        update = F.elemwise_add(i2h_z, h2h_z, name=step + "plus1")
        update = F.Activation(update, act_type="sigmoid", name=step + "z_act")
        candidate = F.elemwise_mul(reset, h2h_n, name=step + "mul0")
        candidate = F.elemwise_add(i2h_n, candidate, name=step + "plus2")
        candidate = F.Activation(candidate, act_type="tanh", name=step + "h_act")
        ones = F.ones_like(update, name=step + "ones_like0")
        share = F.elemwise_sub(ones, update, name=step + "minus0")
        written = F.elemwise_mul(share, candidate, name=step + "mul1")
        old = F.elemwise_mul(update, previous, name=step + "mul20")
        output = F.elemwise_add(written, old, name=step + "out")
        return output, [output]
