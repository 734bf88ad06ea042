"""Cells that combine or wrap other cells: stacked, bidirectional, dropout, zoneout, residual."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import ndarray, symbol
from ...ops.documentation import inherits_parameters
from ..utils import _indent
from .base_cell import (
    MODIFIED,
    HybridRecurrentCell,
    RecurrentCell,
    begin_state_like,
    format_sequence,
    mask_sequence,
    reverse_sequence,
    tensor_types,
)


def _all_states(cells: Any, batch_size: int) -> list[dict]:
    return [info for cell in cells for info in cell.state_info(batch_size)]


def _all_begin_states(cells: Any, **kwargs: Any) -> list:
    return [state for cell in cells for state in cell.begin_state(**kwargs)]


class _CellStack:
    _children: Any
    _modified: bool
    register_child: Any
    reset: Any

    def __repr__(self) -> str:
        lines = (f"({i}): {_indent(repr(cell), 2)}" for i, cell in self._children.items())
        return "{}(\n{}\n)".format(type(self).__name__, "\n".join(lines))

    def add(self, cell: RecurrentCell) -> None:
        """Append a cell."""
        self.register_child(cell)

    def state_info(self, batch_size: int = 0) -> list[dict]:
        """Return shape and layout of all states, cell by cell."""
        return _all_states(self._children.values(), batch_size)

    def begin_state(self, **kwargs: Any) -> list:
        """Create the initial states of all cells."""
        assert not self._modified, MODIFIED
        return _all_begin_states(self._children.values(), **kwargs)

    def _step(self, inputs: Any, states: list) -> tuple[Any, list]:
        next_states, position = [], 0
        assert not any(isinstance(cell, BidirectionalCell) for cell in self._children.values()), (
            "Bidirectional cannot be stepped. Please use unroll"
        )
        for cell in self._children.values():
            count = len(cell.state_info())
            inputs, state = cell(inputs, states[position : position + count])
            position += count
            next_states.extend(state)
        return inputs, next_states

    def unroll(
        self,
        length: int,
        inputs: Any,
        begin_state: list | None = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
        valid_length: Any = None,
    ) -> tuple[Any, list]:
        """Unroll cell by cell."""
        self.reset()
        inputs, _, F, batch_size = format_sequence(length, inputs, layout, None)
        first_states = begin_state_like(self, F, begin_state, inputs, batch_size)
        next_states, position = [], 0
        last = len(self._children) - 1
        for i, cell in enumerate(self._children.values()):
            count = len(cell.state_info())
            inputs, states = cell.unroll(
                length,
                inputs=inputs,
                begin_state=first_states[position : position + count],
                layout=layout,
                merge_outputs=None if i < last else merge_outputs,
                valid_length=valid_length,
            )
            position += count
            next_states.extend(states)
        return inputs, next_states

    def __getitem__(self, i: int) -> RecurrentCell:
        return self._children[str(range(len(self._children))[i])]

    def __len__(self) -> int:
        return len(self._children)


@inherits_parameters
class SequentialRNNCell(_CellStack, RecurrentCell):
    """A stack of cells.

    >>> stack = mx.gluon.rnn.SequentialRNNCell()
    >>> stack.add(mx.gluon.rnn.LSTMCell(3))
    >>> stack.add(mx.gluon.rnn.GRUCell(2))
    >>> len(stack), len(stack.state_info())
    (2, 3)
    """

    def __init__(self, prefix: str | None = None, params: Any = None) -> None:
        super().__init__(prefix=prefix, params=params)

    def __call__(self, inputs: Any, states: list) -> tuple[Any, list]:
        """Take one step."""
        self._counter += 1
        return self._step(inputs, states)

    def hybrid_forward(self, *args: Any, **kwargs: Any) -> Any:
        """Not supported: use `HybridSequentialRNNCell` for hybrid cells."""
        raise NotImplementedError


@inherits_parameters
class HybridSequentialRNNCell(_CellStack, HybridRecurrentCell):
    """A stack of hybrid cells.

    >>> stack = mx.gluon.rnn.HybridSequentialRNNCell()
    >>> stack.add(mx.gluon.rnn.LSTMCell(3))
    >>> stack.initialize()
    >>> stack(nd.ones((2, 4)), stack.begin_state(batch_size=2))[0].shape
    (2, 3)
    """

    def __init__(self, prefix: str | None = None, params: Any = None) -> None:
        super().__init__(prefix=prefix, params=params)

    def __call__(self, inputs: Any, states: list) -> tuple[Any, list]:
        """Take one step."""
        return HybridRecurrentCell.__call__(self, inputs, states)

    def hybrid_forward(self, F: Any, inputs: Any, states: list) -> tuple[Any, list]:
        """Take one step."""
        return self._step(inputs, states)


class BidirectionalCell(HybridRecurrentCell):
    """Run two cells over a sequence in both directions and concatenate their outputs.

    Parameters
    ----------
    l_cell
        The cell that reads forwards.
    r_cell
        The cell that reads backwards.
    output_prefix
        Prefix of the output names.

    >>> cell = mx.gluon.rnn.BidirectionalCell(mx.gluon.rnn.GRUCell(3), mx.gluon.rnn.GRUCell(3))
    >>> cell.initialize()
    >>> outputs, states = cell.unroll(5, nd.ones((2, 5, 4)), merge_outputs=True)
    >>> outputs.shape
    (2, 5, 6)
    """

    def __init__(
        self, l_cell: RecurrentCell, r_cell: RecurrentCell, output_prefix: str = "bi_"
    ) -> None:
        super().__init__(prefix="", params=None)
        self.register_child(l_cell, "l_cell")
        self.register_child(r_cell, "r_cell")
        self._output_prefix = output_prefix

    def __call__(self, inputs: Any, states: list) -> Any:
        """Not supported: both directions need the whole sequence."""
        raise NotImplementedError("Bidirectional cannot be stepped. Please use unroll")

    def __repr__(self) -> str:
        forward, backward = self._children["l_cell"], self._children["r_cell"]
        return f"{type(self).__name__}(forward={forward!r}, backward={backward!r})"

    def state_info(self, batch_size: int = 0) -> list[dict]:
        """Return shape and layout of the states of both cells."""
        return _all_states(self._children.values(), batch_size)

    def begin_state(self, **kwargs: Any) -> list:
        """Create the initial states of both cells."""
        assert not self._modified, MODIFIED
        return _all_begin_states(self._children.values(), **kwargs)

    def unroll(
        self,
        length: int,
        inputs: Any,
        begin_state: list | None = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
        valid_length: Any = None,
    ) -> tuple[Any, list]:
        """Unroll both cells and join their outputs step by step."""
        self.reset()
        inputs, axis, F, batch_size = format_sequence(length, inputs, layout, False)
        states = begin_state_like(self, F, begin_state, inputs, batch_size)
        cells: Any = self._children
        l_cell, r_cell = cells.values()
        split = len(l_cell.state_info(batch_size))
        options = {"layout": layout, "merge_outputs": merge_outputs, "valid_length": valid_length}
        l_outputs, l_states = l_cell.unroll(
            length, inputs=inputs, begin_state=states[:split], **options
        )
        r_outputs, r_states = r_cell.unroll(
            length,
            inputs=reverse_sequence(inputs, length, valid_length),
            begin_state=states[split:],
            **{**options, "merge_outputs": False},
        )
        r_outputs = reverse_sequence(r_outputs, length, valid_length)
        if merge_outputs is None:
            merge_outputs = isinstance(l_outputs, tensor_types)
        l_outputs = format_sequence(None, l_outputs, layout, merge_outputs)[0]
        r_outputs = format_sequence(None, r_outputs, layout, merge_outputs)[0]
        outputs = self._join(F, l_outputs, r_outputs, merge_outputs)
        if valid_length is not None:
            outputs = mask_sequence(F, outputs, length, valid_length, axis, merge_outputs)
        return outputs, l_states + r_states

    def _join(self, F: Any, left: Any, right: Any, merged: bool) -> Any:
        if merged:
            return F.concat(left, right, dim=2, name=f"{self._output_prefix}out")
        return [
            F.concat(l_step, r_step, dim=1, name=f"{self._output_prefix}t{i}")
            for i, (l_step, r_step) in enumerate(zip(left, right, strict=True))
        ]


@inherits_parameters
class DropoutCell(HybridRecurrentCell):
    """Apply dropout to the input; the cell has no state.

    Parameters
    ----------
    rate
        Probability that a value is set to 0.
    axes
        Axes along which all values share one decision.

    >>> cell = mx.gluon.rnn.DropoutCell(0.5)
    >>> cell(nd.array([[1, 2]]), [])[0].asnumpy()  # nothing falls outside training
    array([[1., 2.]], dtype=float32)
    """

    def __init__(
        self,
        rate: float,
        axes: tuple[int, ...] = (),
        prefix: str | None = None,
        params: Any = None,
    ) -> None:
        super().__init__(prefix, params)
        assert isinstance(rate, (float, int, np.generic)), "rate must be a number"
        self._rate = rate
        self._axes = axes

    def __repr__(self) -> str:
        return f"{type(self).__name__}(rate={self._rate}, axes={self._axes})"

    def state_info(self, batch_size: int = 0) -> list[dict]:
        """Return an empty list: the cell has no state."""
        return []

    def _alias(self) -> str:
        return "dropout"

    def hybrid_forward(self, F: Any, inputs: Any, states: list) -> tuple[Any, list]:
        """Take one step."""
        if self._rate > 0:
            name = f"t{self._counter}_fwd"
            inputs = F.Dropout(inputs, p=self._rate, axes=self._axes, name=name)
        return inputs, states

    def unroll(
        self,
        length: int,
        inputs: Any,
        begin_state: list | None = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
        valid_length: Any = None,
    ) -> tuple[Any, list]:
        """Apply dropout to the whole sequence if it is one array."""
        self.reset()
        inputs, _, F, _ = format_sequence(length, inputs, layout, merge_outputs)
        if isinstance(inputs, tensor_types):
            return self.hybrid_forward(F, inputs, begin_state if begin_state else [])
        return super().unroll(length, inputs, begin_state, layout, merge_outputs, valid_length=None)


class ModifierCell(HybridRecurrentCell):
    """Base of cells that wrap another cell, which can then no longer be called directly.

    Parameters
    ----------
    base_cell
        The cell to wrap.

    >>> isinstance(mx.gluon.rnn.ZoneoutCell(mx.gluon.rnn.LSTMCell(3)), mx.gluon.rnn.ModifierCell)
    True
    """

    def __init__(self, base_cell: RecurrentCell) -> None:
        assert not base_cell._modified, (
            f"Cell {base_cell.name} is already modified. One cell cannot be modified twice"
        )
        base_cell._modified = True
        super().__init__(prefix=base_cell.prefix + self._alias(), params=None)
        self.base_cell = base_cell

    @property
    def params(self) -> Any:
        """The parameters of the wrapped cell."""
        return self.base_cell.params

    def state_info(self, batch_size: int = 0) -> list[dict]:
        """Return shape and layout of the wrapped cell's states."""
        return self.base_cell.state_info(batch_size)

    def begin_state(self, func: Callable | None = None, **kwargs: Any) -> list:
        """Create the initial states.

        Without `func` they are arrays when a batch size is given and symbols otherwise.
        """
        assert not self._modified, MODIFIED
        if func is None:
            func = ndarray.zeros if kwargs.get("batch_size") else symbol.zeros
        self.base_cell._modified = False
        begin = self.base_cell.begin_state(func=func, **kwargs)
        self.base_cell._modified = True
        return begin

    def hybrid_forward(self, F: Any, inputs: Any, states: list) -> Any:
        """Take one step; implemented by subclasses."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_cell!r})"


class ZoneoutCell(ModifierCell):
    """While training, keep each output and state of the previous step with some probability.

    Parameters
    ----------
    base_cell
        The cell to wrap.
    zoneout_outputs
        Probability of keeping the previous output.
    zoneout_states
        Probability of keeping the previous state.

    >>> cell = mx.gluon.rnn.ZoneoutCell(mx.gluon.rnn.RNNCell(3), zoneout_states=0.1)
    >>> cell.initialize()
    >>> cell(nd.ones((2, 4)), [nd.zeros((2, 3))])[0].shape
    (2, 3)
    """

    def __init__(
        self,
        base_cell: RecurrentCell,
        zoneout_outputs: float = 0.0,
        zoneout_states: float = 0.0,
    ) -> None:
        assert not isinstance(base_cell, BidirectionalCell), (
            "BidirectionalCell doesn't support zoneout since it doesn't support step. "
            "Please add ZoneoutCell to the cells underneath instead."
        )
        super().__init__(base_cell)
        self.zoneout_outputs = zoneout_outputs
        self.zoneout_states = zoneout_states

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(p_out={self.zoneout_outputs}, p_state={self.zoneout_states}, "
            f"{self.base_cell!r})"
        )

    def _alias(self) -> str:
        return "zoneout"

    def reset(self) -> None:
        """Reset the counters and the last output."""
        super().reset()
        self._prev_output = None

    def hybrid_forward(self, F: Any, inputs: Any, states: list) -> tuple[Any, list]:
        """Take one step."""
        output, next_states = self.base_cell(inputs, states)

        def blend(rate: float, new: Any, old: Any) -> Any:
            if rate == 0:
                return new
            return F.where(F.Dropout(F.ones_like(new), p=rate), new, old)

        if self.zoneout_outputs != 0:
            previous = self._prev_output
            if previous is None:
                previous = F.zeros_like(output)
            output = blend(self.zoneout_outputs, output, previous)
        pairs = zip(next_states, states, strict=True)
        next_states = [blend(self.zoneout_states, new, old) for new, old in pairs]
        self._prev_output = output
        return output, next_states


class ResidualCell(ModifierCell):
    """Add the input to the output of the wrapped cell.

    Parameters
    ----------
    base_cell
        The cell to wrap.

    >>> cell = mx.gluon.rnn.ResidualCell(mx.gluon.rnn.RNNCell(4))
    >>> cell.initialize("zeros")
    >>> cell(nd.ones((1, 4)), [nd.zeros((1, 4))])[0].asnumpy()
    array([[1., 1., 1., 1.]], dtype=float32)
    """

    def hybrid_forward(self, F: Any, inputs: Any, states: list) -> tuple[Any, list]:
        """Take one step."""
        output, states = self.base_cell(inputs, states)
        return F.elemwise_add(output, inputs, name=f"t{self._counter}_fwd"), states

    def unroll(
        self,
        length: int,
        inputs: Any,
        begin_state: list | None = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
        valid_length: Any = None,
    ) -> tuple[Any, list]:
        """Unroll the wrapped cell, then add the inputs."""
        self.reset()
        self.base_cell._modified = False
        outputs, states = self.base_cell.unroll(
            length,
            inputs=inputs,
            begin_state=begin_state,
            layout=layout,
            merge_outputs=merge_outputs,
            valid_length=valid_length,
        )
        self.base_cell._modified = True
        merged = isinstance(outputs, tensor_types)
        inputs, axis, F, _ = format_sequence(length, inputs, layout, merged)
        if valid_length is not None:
            inputs = mask_sequence(F, inputs, length, valid_length, axis, merged)
        if merged:
            return F.elemwise_add(outputs, inputs), states
        pairs = zip(outputs, inputs, strict=True)
        return [F.elemwise_add(output, step) for output, step in pairs], states
