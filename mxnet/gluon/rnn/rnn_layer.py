"""Stacked and bidirectional recurrent layers, each one fused operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import ndarray, symbol
from ...error import InvalidValue
from ...ops.documentation import inherits_parameters
from ...util import is_np_array
from ..block import HybridBlock
from . import rnn_cell
from .base_cell import tensor_types

__all__ = ["GRU", "LSTM", "RNN"]

GATES = {"rnn_relu": 1, "rnn_tanh": 1, "lstm": 4, "gru": 3}


class _RNNLayer(HybridBlock):
    """A fused recurrent layer of the given mode.

    Each cell has its own parameters (`l0_i2h_weight`, in the reverse direction `r0_i2h_weight`),
    which are concatenated for the operator `RNN`: all weights, then all biases.

    Parameters
    ----------
    hidden_size
        Number of features of the hidden state.
    num_layers
        Number of stacked layers.
    layout
        Order of the axes: ``'TNC'`` (time first) or ``'NTC'`` (batch first).
    dropout
        Probability of dropout between layers.
    bidirectional
        Whether to run in both directions.
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
    dtype
        Data type of the parameters.
    """

    l0_i2h_weight: Any

    def __init__(
        self,
        hidden_size: int,
        num_layers: int,
        layout: str,
        dropout: float,
        bidirectional: bool,
        input_size: int,
        i2h_weight_initializer: Any,
        h2h_weight_initializer: Any,
        i2h_bias_initializer: Any,
        h2h_bias_initializer: Any,
        mode: str,
        projection_size: int | None = None,
        h2r_weight_initializer: Any = None,
        lstm_state_clip_min: float | None = None,
        lstm_state_clip_max: float | None = None,
        lstm_state_clip_nan: bool = False,
        dtype: Any = "float32",
        use_sequence_length: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        assert layout in ("TNC", "NTC"), f"Invalid layout {layout}; must be one of ['TNC' or 'NTC']"
        self._hidden_size = hidden_size
        self._projection_size = projection_size
        self._num_layers = num_layers
        self._mode = mode
        self._layout = layout
        self._dropout = dropout
        self._dir = 2 if bidirectional else 1
        self._input_size = input_size
        self._i2h_weight_initializer = i2h_weight_initializer
        self._h2h_weight_initializer = h2h_weight_initializer
        self._i2h_bias_initializer = i2h_bias_initializer
        self._h2h_bias_initializer = h2h_bias_initializer
        self._h2r_weight_initializer = h2r_weight_initializer
        self._lstm_state_clip_min = lstm_state_clip_min
        self._lstm_state_clip_max = lstm_state_clip_max
        self._lstm_state_clip_nan = lstm_state_clip_nan
        self._dtype = dtype
        self._use_sequence_length = use_sequence_length
        self._gates = GATES[mode]
        self._gives_states = True
        self._register_cells()

    def _register_cells(self) -> None:
        width = self._gates * self._hidden_size
        out = self._projection_size or self._hidden_size
        ni = self._input_size
        for layer in range(self._num_layers):
            for cell in self._cells(layer):
                rows = [
                    ("i2h_weight", (width, ni), self._i2h_weight_initializer),
                    ("h2h_weight", (width, out), self._h2h_weight_initializer),
                    ("i2h_bias", (width,), self._i2h_bias_initializer),
                    ("h2h_bias", (width,), self._h2h_bias_initializer),
                ]
                if self._projection_size:
                    shape = (self._projection_size, self._hidden_size)
                    rows.append(("h2r_weight", shape, self._h2r_weight_initializer))
                for name, shape, init in rows:
                    self._register_param(f"{cell}_{name}", shape, init, self._dtype)
            ni = out * self._dir

    def _cells(self, layer: int) -> list[str]:
        return [f"{side}{layer}" for side in ("l", "r")[: self._dir]]

    def _register_param(self, name: str, shape: tuple, init: Any, dtype: Any) -> Any:
        parameter = self.params.get(
            name, shape=shape, init=init, allow_deferred_init=True, dtype=dtype
        )
        setattr(self, name, parameter)
        return parameter

    def __repr__(self) -> str:
        shape = self.l0_i2h_weight.shape
        width = shape[1] if shape[1] else None
        text = f"{type(self).__name__}({width} -> {shape[0] // self._gates}, {self._layout}"
        if self._num_layers != 1:
            text += f", num_layers={self._num_layers}"
        if self._dropout != 0:
            text += f", dropout={self._dropout}"
        if self._dir == 2:
            text += ", bidirectional"
        return text + ")"

    def _collect_params_with_prefix(self, prefix: str = "") -> dict[str, Any]:
        """Return the parameters under the names they have in files: those of unfused cells."""
        if prefix:
            prefix += "."
        sides = {"l": ".l_cell", "r": ".r_cell"} if self._dir == 2 else {"l": ""}
        params = {}
        for name, parameter in self._reg_params.items():
            cell, _, rest = name.partition("_")
            params[f"{prefix}_unfused.{cell[1:]}{sides[cell[0]]}.{rest}"] = parameter
        return params

    def state_info(self, batch_size: int = 0) -> list[dict]:
        """Return shape and layout of each state."""
        raise NotImplementedError

    def _state(self, batch_size: int, size: int) -> dict:
        shape = (self._num_layers * self._dir, batch_size, size)
        return {"shape": shape, "__layout__": "LNC", "dtype": self._dtype}

    def _unfuse(self) -> Any:
        assert not self._projection_size, "_unfuse does not support projection layer yet!"
        assert not self._lstm_state_clip_min and not self._lstm_state_clip_max, (
            "_unfuse does not support state clipping yet!"
        )
        cell_type, options = {
            "rnn_relu": (rnn_cell.RNNCell, {"activation": "relu"}),
            "rnn_tanh": (rnn_cell.RNNCell, {"activation": "tanh"}),
            "lstm": (rnn_cell.LSTMCell, {}),
            "gru": (rnn_cell.GRUCell, {}),
        }[self._mode]
        stack = rnn_cell.HybridSequentialRNNCell(prefix=self.prefix, params=self.params)
        with stack.name_scope():
            ni = self._input_size
            for layer in range(self._num_layers):
                cells = [
                    cell_type(
                        self._hidden_size,
                        input_size=ni,
                        i2h_weight_initializer=self._i2h_weight_initializer,
                        h2h_weight_initializer=self._h2h_weight_initializer,
                        i2h_bias_initializer=self._i2h_bias_initializer,
                        h2h_bias_initializer=self._h2h_bias_initializer,
                        prefix=f"{cell}_",
                        **options,
                    )
                    for cell in self._cells(layer)
                ]
                stack.add(rnn_cell.BidirectionalCell(*cells) if self._dir == 2 else cells[0])
                if self._dropout > 0 and layer != self._num_layers - 1:
                    stack.add(rnn_cell.DropoutCell(self._dropout))
                ni = self._hidden_size * self._dir
        return stack

    def cast(self, dtype: Any) -> None:
        """Change the type of the parameters and of the initial states."""
        super().cast(dtype)
        self._dtype = dtype

    def infer_shape(self, inputs: Any, *args: Any) -> None:
        """Infer the input size, the only unknown size, from the inputs."""
        if len(inputs.shape) != 3:
            raise InvalidValue(
                f"Input data should be rank-3 tensor of dim [{self._layout}], got {inputs.shape}"
            )
        for cell in self._cells(0):
            weight = getattr(self, f"{cell}_i2h_weight")
            weight.shape = (self._gates * self._hidden_size, inputs.shape[2])

    def begin_state(
        self, batch_size: int = 0, func: Callable = ndarray.zeros, **kwargs: Any
    ) -> list:
        """Create the initial states with `func`, which is called with shape, name and `kwargs`.

        >>> [state.shape for state in mx.gluon.rnn.LSTM(3, num_layers=2).begin_state(4)]
        [(2, 4, 3), (2, 4, 3)]
        """
        states = [
            func(name=f"{self.prefix}h0_{i}", **{**info, **kwargs})
            for i, info in enumerate(self.state_info(batch_size))
        ]
        return [s.as_np_ndarray() for s in states] if is_np_array() else states

    def __call__(
        self, inputs: Any, states: Any = None, sequence_length: Any = None, **kwargs: Any
    ) -> Any:
        if self._gives_states != (states is not None):
            self._gives_states = states is not None
            self._clear_cached_op()  # the traced graph has different outputs
        if states is None:
            states = self._zero_states(inputs)
        if isinstance(states, tensor_types):
            states = [states]
        if sequence_length is None:
            return super().__call__(inputs, states, **kwargs)
        return super().__call__(inputs, states, sequence_length, **kwargs)

    def _zero_states(self, inputs: Any) -> list:
        if not isinstance(inputs, ndarray.NDArray):
            return self.begin_state(0, func=symbol.zeros)
        batch_size = inputs.shape[self._layout.find("N")]
        return self.begin_state(batch_size, ctx=inputs.ctx, dtype=inputs.dtype)

    def hybrid_forward(
        self, F: Any, inputs: Any, states: list, sequence_length: Any = None, **params: Any
    ) -> Any:
        if F is ndarray:
            self._check_states(inputs, states)
        if self._layout == "NTC":
            inputs = F.swapaxes(inputs, dim1=0, dim2=1)
        if sequence_length is not None and self._use_sequence_length:
            states = [*states, sequence_length]
        outputs, *states = F.RNN(
            inputs,
            self._packed(F, params),
            *(states if self._mode == "lstm" else self._without_memory(states)),
            use_sequence_length=self._use_sequence_length,
            state_size=self._hidden_size,
            projection_size=self._projection_size,
            num_layers=self._num_layers,
            bidirectional=self._dir == 2,
            p=self._dropout,
            state_outputs=True,
            mode=self._mode,
            lstm_state_clip_min=self._lstm_state_clip_min,
            lstm_state_clip_max=self._lstm_state_clip_max,
            lstm_state_clip_nan=self._lstm_state_clip_nan,
        )
        if self._layout == "NTC":
            outputs = F.swapaxes(outputs, dim1=0, dim2=1)
        return (outputs, states) if self._gives_states else outputs

    @staticmethod
    def _without_memory(states: list) -> list:
        """Insert None for the cell state, which only an LSTM has, before the lengths."""
        return states if len(states) == 1 else [states[0], None, *states[1:]]

    def _packed(self, F: Any, params: dict[str, Any]) -> Any:
        weights = ["i2h_weight", "h2h_weight"] + ["h2r_weight"] * bool(self._projection_size)
        order = [
            f"{cell}_{name}"
            for names in (weights, ["i2h_bias", "h2h_bias"])
            for layer in range(self._num_layers)
            for cell in self._cells(layer)
            for name in names
        ]
        flat = [params[name].reshape((-1,)) for name in order]  # of arrays, no copies
        return F._internal._rnn_param_concat(*flat, dim=0)

    def _check_states(self, inputs: Any, states: list) -> None:
        batch_size = inputs.shape[self._layout.find("N")]
        infos = self.state_info(batch_size)
        if len(states) != len(infos):
            raise InvalidValue(f"{self.name} has {len(infos)} state(s), but got {len(states)}.")
        for state, info in zip(states, infos, strict=True):
            if state.shape != info["shape"]:
                raise ValueError(
                    f"Invalid recurrent state shape. Expecting {info['shape']}, got {state.shape}."
                )


@inherits_parameters
class RNN(_RNNLayer):
    """Elman's recurrent layer with relu or tanh.

    Parameters
    ----------
    activation
        Activation function by name, such as ``'relu'`` or ``'tanh'``.

    >>> layer = mx.gluon.rnn.RNN(3, num_layers=2)
    >>> layer.initialize()
    >>> layer(nd.ones((5, 2, 4))).shape
    (5, 2, 3)
    """

    def __init__(
        self,
        hidden_size: int,
        num_layers: int = 1,
        activation: str = "relu",
        layout: str = "TNC",
        dropout: float = 0,
        bidirectional: bool = False,
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        input_size: int = 0,
        dtype: Any = "float32",
        **kwargs: Any,
    ) -> None:
        super().__init__(
            hidden_size,
            num_layers,
            layout,
            dropout,
            bidirectional,
            input_size,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
            "rnn_" + activation,
            dtype=dtype,
            **kwargs,
        )

    def state_info(self, batch_size: int = 0) -> list[dict]:
        """Return shape and layout of the hidden state."""
        return [self._state(batch_size, self._hidden_size)]


@inherits_parameters
class LSTM(_RNNLayer):
    """Long short-term memory layer, optionally with projected output.

    Parameters
    ----------
    projection_size
        Number of features that the hidden state is projected to; None means none.
    h2r_weight_initializer
        Initializer of the weight of the projection.
    state_clip_min
        Lower bound of the cell state; requires `state_clip_max`.
    state_clip_max
        Upper bound of the cell state.
    state_clip_nan
        Whether NaN in the cell state is clipped too.

    >>> layer = mx.gluon.rnn.LSTM(3, bidirectional=True)
    >>> layer.initialize()
    >>> outputs, states = layer(nd.ones((5, 2, 4)), layer.begin_state(2))
    >>> outputs.shape, [state.shape for state in states]
    ((5, 2, 6), [(2, 2, 3), (2, 2, 3)])
    """

    def __init__(
        self,
        hidden_size: int,
        num_layers: int = 1,
        layout: str = "TNC",
        dropout: float = 0,
        bidirectional: bool = False,
        input_size: int = 0,
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        projection_size: int | None = None,
        h2r_weight_initializer: Any = None,
        state_clip_min: float | None = None,
        state_clip_max: float | None = None,
        state_clip_nan: bool = False,
        dtype: Any = "float32",
        **kwargs: Any,
    ) -> None:
        super().__init__(
            hidden_size,
            num_layers,
            layout,
            dropout,
            bidirectional,
            input_size,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
            "lstm",
            projection_size,
            h2r_weight_initializer,
            state_clip_min,
            state_clip_max,
            state_clip_nan,
            dtype,
            **kwargs,
        )

    def state_info(self, batch_size: int = 0) -> list[dict]:
        """Return shape and layout of the hidden state and of the memory."""
        hidden = self._projection_size or self._hidden_size
        return [self._state(batch_size, hidden), self._state(batch_size, self._hidden_size)]


@inherits_parameters
class GRU(_RNNLayer):
    """Layer of gated recurrent units.

    >>> layer = mx.gluon.rnn.GRU(3, layout="NTC")
    >>> layer.initialize()
    >>> layer(nd.ones((2, 5, 4))).shape
    (2, 5, 3)
    """

    def __init__(
        self,
        hidden_size: int,
        num_layers: int = 1,
        layout: str = "TNC",
        dropout: float = 0,
        bidirectional: bool = False,
        input_size: int = 0,
        i2h_weight_initializer: Any = None,
        h2h_weight_initializer: Any = None,
        i2h_bias_initializer: Any = "zeros",
        h2h_bias_initializer: Any = "zeros",
        dtype: Any = "float32",
        **kwargs: Any,
    ) -> None:
        super().__init__(
            hidden_size,
            num_layers,
            layout,
            dropout,
            bidirectional,
            input_size,
            i2h_weight_initializer,
            h2h_weight_initializer,
            i2h_bias_initializer,
            h2h_bias_initializer,
            "gru",
            dtype=dtype,
            **kwargs,
        )

    def state_info(self, batch_size: int = 0) -> list[dict]:
        """Return shape and layout of the hidden state."""
        return [self._state(batch_size, self._hidden_size)]
