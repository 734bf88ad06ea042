"""Base of the recurrent cells: states, counters, unrolling, and sequence helpers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ... import ndarray, symbol
from ...ndarray import NDArray
from ...ops.documentation import inherits_parameters
from ...symbol import Symbol
from ...util import is_np_array
from ..block import Block, HybridBlock
from ..nn import LeakyReLU

__all__ = ["HybridRecurrentCell", "RecurrentCell", "tensor_types"]


MODIFIED = (
    "After applying modifier cells (e.g. ZoneoutCell) the base cell cannot be called directly. "
    "Call the modifier cell instead."
)


@inherits_parameters
class RecurrentCell(Block):
    """One step of a recurrent network: ``output, states = cell(input, states)``.

    >>> isinstance(mx.gluon.rnn.LSTMCell(3), mx.gluon.rnn.RecurrentCell)
    True
    """

    def __init__(self, prefix: str | None = None, params: Any = None) -> None:
        super().__init__(prefix=prefix, params=params)
        self._modified = False
        self.reset()

    def reset(self) -> None:
        """Reset the counters, before the cell is used for another graph."""
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
        """Create the initial states with `func`, which is called with shape, name and `kwargs`.

        Parameters
        ----------
        batch_size
            Number of samples in a batch.
        func
            Function that creates a state from its shape.
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
            One array with a time axis, or one array per step.
        begin_state : list, optional
            Zeros by default.
        layout : {"NTC", "TNC"}
            Axes of a merged sequence.
        merge_outputs : bool, optional
            Whether to return outputs as one array; by default the cheaper form.
        valid_length : NDArray or Symbol, optional
            Length of each sample. Outputs beyond it are zero, and the states are those of the last
            valid step.
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
        """Run one step.

        Parameters
        ----------
        inputs
            The inputs.
        states
            The states.
        """
        self._counter += 1
        return super().forward(inputs, states)


@inherits_parameters
class HybridRecurrentCell(RecurrentCell, HybridBlock):
    """A recurrent cell that can be hybridized.

    >>> isinstance(mx.gluon.rnn.LSTMCell(3), mx.gluon.rnn.HybridRecurrentCell)
    True
    """

    def __init__(self, prefix: str | None = None, params: Any = None) -> None:
        super().__init__(prefix=prefix, params=params)

    def hybrid_forward(self, F: Any, x: Any, *args: Any, **kwargs: Any) -> Any:
        """Take one step; implemented by subclasses."""
        raise NotImplementedError


tensor_types = (Symbol, NDArray)


def namespace_of(tensor: Any) -> Any:
    """Return `mx.sym` for a symbol and `mx.nd` for an array."""
    return symbol if isinstance(tensor, Symbol) else ndarray


def as_list(value: Any) -> list:
    """Return a list of one for anything that is not a list or tuple."""
    return list(value) if isinstance(value, (list, tuple)) else [value]


def format_sequence(
    length: int | None, inputs: Any, layout: str, merge: bool | None, in_layout: str | None = None
) -> tuple[Any, int, Any, int]:
    """Merge or split a sequence; return it with its time axis, namespace and batch size.

    ``merge=None`` keeps its form. The batch size of a symbol is 0 (unknown).
    """
    assert inputs is not None, (
        "unroll(inputs=None) has been deprecated. Please create input variables outside unroll."
    )
    axis, batch_axis = layout.find("T"), layout.find("N")
    in_axis = axis if in_layout is None else in_layout.find("T")
    if isinstance(inputs, tensor_types):
        return _format_merged(length, inputs, merge, axis, batch_axis, in_axis)
    assert length is None or len(inputs) == length, (
        f"unroll of length {length} was given {len(inputs)} steps"
    )
    F = namespace_of(inputs[0])
    batch_size = 0 if F is symbol else inputs[0].shape[0]
    if merge is True:
        inputs = F.stack(*inputs, axis=axis)
    return inputs, axis, F, batch_size


def _format_merged(
    length: int | None, inputs: Any, merge: bool | None, axis: int, batch_axis: int, in_axis: int
) -> tuple[Any, int, Any, int]:
    F = namespace_of(inputs)
    batch_size = 0 if F is symbol else inputs.shape[batch_axis]
    if merge is not False:
        if axis != in_axis:
            inputs = F.swapaxes(inputs, dim1=axis, dim2=in_axis)
        return inputs, axis, F, batch_size
    if F is symbol:
        assert len(inputs.list_outputs()) == 1, (
            "unroll doesn't allow grouped symbol as input. Please convert to list with "
            "list(inputs) first or let unroll handle splitting."
        )
    else:
        steps = inputs.shape[in_axis]
        assert length is None or length == steps, (
            f"unroll of length {length} was given a sequence of {steps} steps"
        )
        length = steps
    steps = F.split(inputs, axis=in_axis, num_outputs=length, squeeze_axis=1)
    return as_list(steps) if F is ndarray or length == 1 else list(steps), axis, F, batch_size


def begin_state_like(cell: Any, F: Any, begin_state: Any, inputs: Any, batch_size: int) -> Any:
    """Return the passed states, or zeros on the device of the inputs."""
    if begin_state is not None:
        return begin_state
    if F is symbol:
        return cell.begin_state(func=F.zeros, batch_size=batch_size)
    first: Any = inputs if isinstance(inputs, tensor_types) else inputs[0]
    with first.ctx:
        return cell.begin_state(func=F.zeros, batch_size=batch_size, dtype=first.dtype)


def mask_sequence(
    F: Any, data: Any, length: int, valid_length: Any, time_axis: int, merge: bool
) -> Any:
    """Set every step beyond the valid length to zero."""
    if not isinstance(data, tensor_types):
        data = F.stack(*data, axis=time_axis)
    masked = F.SequenceMask(
        data, sequence_length=valid_length, use_sequence_length=True, axis=time_axis
    )
    if merge:
        return masked
    return as_list(F.split(masked, num_outputs=length, axis=time_axis, squeeze_axis=True))


def reverse_sequence(sequence: list, length: int, valid_length: Any = None) -> list:
    """Reverse a list of steps, each sample within its valid length."""
    if valid_length is None:
        return list(reversed(sequence))
    F = namespace_of(sequence[0])
    turned = F.SequenceReverse(
        F.stack(*sequence, axis=0), sequence_length=valid_length, use_sequence_length=True
    )
    steps = F.split(turned, axis=0, num_outputs=length, squeeze_axis=True)
    return [steps] if length == 1 else list(steps)


def last_valid_states(F: Any, history: list[list], valid_length: Any) -> list:
    """Return, for each state, its value at the last valid step of each sample."""
    return [
        F.SequenceLast(
            F.stack(*values, axis=0),
            sequence_length=valid_length,
            use_sequence_length=True,
            axis=0,
        )
        for values in zip(*history, strict=True)
    ]
