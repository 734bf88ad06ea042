"""What all recurrent cells share: states, counters and unrolling in time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import ndarray
from ...util import is_np_array
from ..block import Block, HybridBlock
from ..nn import LeakyReLU
from .sequences import (
    begin_state_like,
    format_sequence,
    last_valid_states,
    mask_sequence,
    tensor_types,
)

MODIFIED = (
    "After applying modifier cells (e.g. ZoneoutCell) the base cell cannot be called directly. "
    "Call the modifier cell instead."
)


class RecurrentCell(Block):
    """One step of a recurrent network: ``output, states = cell(input, states)``.

    Parameters
    ----------
    prefix
        What the names of parameters begin with; by default the class name and a number.
    params
        Parameters of another block, to share them.

    >>> isinstance(mx.gluon.rnn.LSTMCell(3), mx.gluon.rnn.RecurrentCell)
    True
    """

    def __init__(self, prefix: str | None = None, params: Any = None) -> None:
        super().__init__(prefix=prefix, params=params)
        self._modified = False
        self.reset()

    def reset(self) -> None:
        """Forget counters, before the cell is used for another graph."""
        self._init_counter = -1
        self._counter = -1
        for child in self._children.values():
            if isinstance(child, RecurrentCell):
                child.reset()

    def state_info(self, batch_size: int = 0) -> list[dict]:
        """Return shape and layout of each state.

        Parameters
        ----------
        batch_size
            Number of samples in a batch.
        """
        raise NotImplementedError

    def begin_state(
        self, batch_size: int = 0, func: Callable = ndarray.zeros, **kwargs: Any
    ) -> list:
        """Make the first states with `func`, which gets shape, name and `kwargs`.

        Parameters
        ----------
        batch_size
            Number of samples in a batch.
        func
            Function that makes a state of its shape.
        """
        assert not self._modified, MODIFIED
        states = []
        for info in self.state_info(batch_size):
            self._init_counter += 1
            name = f"{self._prefix}begin_state_{self._init_counter}"
            states.append(func(name=name, **{**(info or {}), **kwargs}))
        return [s.as_np_ndarray() for s in states] if is_np_array() else states

    def unroll(
        self,
        length: int,
        inputs: Any,
        begin_state: list | None = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
        valid_length: Any = None,
    ) -> tuple[Any, list]:
        """Run the cell over `length` steps.

        Parameters
        ----------
        length : int
            Number of steps.
        inputs : NDArray, Symbol or list of them
            One array with a time axis, or one array a step.
        begin_state : list, optional
            Zeros by default.
        layout : {"NTC", "TNC"}
            Axes of a merged sequence.
        merge_outputs : bool, optional
            Whether outputs come as one array; by default as is easiest.
        valid_length : NDArray or Symbol, optional
            Steps of each sample that count; outputs behind them are zero, and the states are
            those of the last step that counts.
        """
        self.reset()
        inputs, axis, F, batch_size = format_sequence(length, inputs, layout, False)
        states = begin_state_like(self, F, begin_state, inputs, batch_size)
        outputs, history = [], []
        for step in range(length):
            output, states = self(inputs[step], states)
            outputs.append(output)
            history.append(states)
        if valid_length is not None:
            states = last_valid_states(F, history, valid_length)
            outputs = mask_sequence(F, outputs, length, valid_length, axis, merge=True)
        outputs = format_sequence(length, outputs, layout, merge_outputs)[0]
        return outputs, states

    def _get_activation(self, F: Any, inputs: Any, activation: Any, **kwargs: Any) -> Any:
        """Apply an activation given by name, as a LeakyReLU block or as any callable."""
        if activation in ("tanh", "relu", "sigmoid", "softsign"):
            return getattr(F, activation)(inputs, **kwargs)
        if isinstance(activation, str):
            return F.Activation(inputs, act_type=activation, **kwargs)
        if isinstance(activation, LeakyReLU):
            return F.LeakyReLU(inputs, act_type="leaky", slope=activation._alpha, **kwargs)
        return activation(inputs)

    def forward(self, inputs: Any, states: list) -> Any:
        """Count the step, then take it.

        Parameters
        ----------
        inputs
            The inputs.
        states
            The states.
        """
        self._counter += 1
        return super().forward(inputs, states)


class HybridRecurrentCell(RecurrentCell, HybridBlock):
    """A recurrent cell that can be hybridized.

    Parameters
    ----------
    prefix
        What the names of parameters begin with; by default the class name and a number.
    params
        Parameters of another block, to share them.

    >>> isinstance(mx.gluon.rnn.LSTMCell(3), mx.gluon.rnn.HybridRecurrentCell)
    True
    """

    def __init__(self, prefix: str | None = None, params: Any = None) -> None:
        super().__init__(prefix=prefix, params=params)

    def hybrid_forward(self, F: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Take one step; each kind has its own."""
        raise NotImplementedError


__all__ = ["HybridRecurrentCell", "RecurrentCell", "tensor_types"]
