"""Cells made of other cells: one after the other, or one in each direction."""

from __future__ import annotations

from typing import Any

from ..utils import _indent
from .base_cell import MODIFIED, HybridRecurrentCell, RecurrentCell
from .sequences import (
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
    """What the two sequential cells share."""

    _children: Any
    _modified: bool
    register_child: Any
    reset: Any

    def __repr__(self) -> str:
        lines = (f"({i}): {_indent(repr(cell), 2)}" for i, cell in self._children.items())
        return "{}(\n{}\n)".format(type(self).__name__, "\n".join(lines))

    def add(self, cell: RecurrentCell) -> None:
        """Put a cell on top of the stack."""
        self.register_child(cell)

    def state_info(self, batch_size: int = 0) -> list[dict]:
        """Return shape and layout of all states, cell by cell."""
        return _all_states(self._children.values(), batch_size)

    def begin_state(self, **kwargs: Any) -> list:
        """Make the first states of all cells."""
        assert not self._modified, MODIFIED
        return _all_begin_states(self._children.values(), **kwargs)

    def _step(self, inputs: Any, states: list) -> tuple[Any, list]:
        """Take one step through all cells."""
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


class SequentialRNNCell(_CellStack, RecurrentCell):
    """Cells one on top of the other.

    Parameters
    ----------
    prefix
        What the names of parameters begin with; by default the class name and a number.
    params
        Parameters of another block, to share them.

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
        """Refuse: this stack is not hybrid, `HybridSequentialRNNCell` is."""
        raise NotImplementedError


class HybridSequentialRNNCell(_CellStack, HybridRecurrentCell):
    """Hybrid cells one on top of the other.

    Parameters
    ----------
    prefix
        What the names of parameters begin with; by default the class name and a number.
    params
        Parameters of another block, to share them.

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
    """Read a sequence in both directions and join what the two cells say; only unrolled.

    Parameters
    ----------
    l_cell
        The cell that reads forwards.
    r_cell
        The cell that reads backwards.
    output_prefix
        What the names of outputs begin with.

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
        """Refuse: one step alone has no second direction."""
        raise NotImplementedError("Bidirectional cannot be stepped. Please use unroll")

    def __repr__(self) -> str:
        forward, backward = self._children["l_cell"], self._children["r_cell"]
        return f"{type(self).__name__}(forward={forward!r}, backward={backward!r})"

    def state_info(self, batch_size: int = 0) -> list[dict]:
        """Return shape and layout of the states of both cells."""
        return _all_states(self._children.values(), batch_size)

    def begin_state(self, **kwargs: Any) -> list:
        """Make the first states of both cells."""
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
