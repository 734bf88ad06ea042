"""`BaseRNNCell`: names, states and unrolling of all cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .. import ndarray, symbol
from ..ndarray import NDArray
from ..symbol import Symbol

Sequenced = Any  # one symbol with a time axis, or a list with one symbol per step


class RNNParams:
    """Variables by name, created on first use; cells with the same container share weights.

    Parameters
    ----------
    prefix
        Prefix of the names of parameters and outputs.

    >>> params = mx.rnn.RNNParams("lstm_")
    >>> params.get("i2h_weight") is params.get("i2h_weight")
    True
    """

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix
        self._params: dict[str, Symbol] = {}

    def get(self, name: str, **kwargs: Any) -> Symbol:
        """Return the variable ``prefix + name``."""
        name = self._prefix + name
        if name not in self._params:
            self._params[name] = symbol.Variable(name, **kwargs)
        return self._params[name]


class BaseRNNCell:
    """Base of cells: called with an input and states, a cell returns an output and new states.

    Parameters
    ----------
    prefix : str
        Prefix of the names of parameters and outputs.
    params : RNNParams, optional
        Container of parameters, to share them with other cells.

    >>> issubclass(mx.rnn.LSTMCell, mx.rnn.BaseRNNCell)
    True
    """

    _num_hidden: int

    @staticmethod
    def _get_activation(inputs: Symbol, activation: Any, **kwargs: Any) -> Symbol:
        return activated(inputs, activation, **kwargs)

    def __init__(self, prefix: str = "", params: RNNParams | None = None) -> None:
        self._own_params = params is None
        self._prefix = prefix
        self._params = RNNParams(prefix) if params is None else params
        self._modified = False
        self.reset()

    def reset(self) -> None:
        """Reset the step counter, before the cell is used in another graph."""
        self._init_counter = -1
        self._counter = -1
        for cell in getattr(self, "_cells", ()):
            cell.reset()

    def __call__(self, inputs: Symbol, states: Sequence[Symbol]) -> tuple[Symbol, list[Symbol]]:
        """Take one step."""
        raise NotImplementedError

    def _step_name(self) -> str:
        self._counter += 1
        return f"{self._prefix}t{self._counter}_"

    @property
    def params(self) -> RNNParams:
        """The parameters; the cell counts them as shared from then on."""
        self._own_params = False
        return self._params

    @property
    def state_info(self) -> list[dict[str, Any]]:
        """Shape and layout of each state; sizes of 0 are inferred from the input."""
        raise NotImplementedError

    @property
    def state_shape(self) -> list[tuple[int, ...]]:
        """Shape of each state."""
        return [info["shape"] for info in self.state_info]

    @property
    def _gate_names(self) -> Sequence[str]:
        """Names of the gates, in the order of the weights."""
        return ()

    def begin_state(self, func: Callable = symbol.zeros, **kwargs: Any) -> list[Symbol]:
        """Return the initial states.

        Parameters
        ----------
        func : callable
            Function that creates a state, such as ``mx.sym.zeros`` or ``mx.sym.Variable``.
        kwargs
            Further arguments of the function.
        """
        self._check_not_modified()
        states = []
        for info in self.state_info:
            self._init_counter += 1
            name = f"{self._prefix}begin_state_{self._init_counter}"
            states.append(func(name=name, **{**kwargs, **(info or {})}))
        return states

    def _check_not_modified(self) -> None:
        if self._modified:
            raise AssertionError(
                "After applying modifier cells (e.g. DropoutCell) the base cell cannot be called "
                "directly. Call the modifier cell instead."
            )

    def unpack_weights(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Split joint weights and biases into one weight and bias per gate.

        Parameters
        ----------
        args
            Parameters by name.
        """
        args = dict(args)
        size = self._num_hidden if self._gate_names else 0
        for group in ("i2h", "h2h") if self._gate_names else ():
            weight = args.pop(f"{self._prefix}{group}_weight")
            bias = args.pop(f"{self._prefix}{group}_bias")
            for i, gate in enumerate(self._gate_names):
                part = slice(i * size, (i + 1) * size)
                args[f"{self._prefix}{group}{gate}_weight"] = weight[part].copy()
                args[f"{self._prefix}{group}{gate}_bias"] = bias[part].copy()
        return args

    def pack_weights(self, args: Mapping[str, NDArray]) -> dict[str, NDArray]:
        """Reverse `unpack_weights`.

        Parameters
        ----------
        args
            Parameters by name.
        """
        args = dict(args)
        for group in ("i2h", "h2h") if self._gate_names else ():
            for kind in ("weight", "bias"):
                parts = [args.pop(f"{self._prefix}{group}{g}_{kind}") for g in self._gate_names]
                args[f"{self._prefix}{group}_{kind}"] = ndarray.concatenate(parts)
        return args

    def unroll(
        self,
        length: int,
        inputs: Sequenced,
        begin_state: Sequence[Symbol] | None = None,
        layout: str = "NTC",
        merge_outputs: bool | None = None,
    ) -> tuple[Sequenced, list]:
        """Unroll the cell over `length` steps; return outputs and final states.

        Parameters
        ----------
        length : int
            Number of steps.
        inputs : Symbol, or a list of one for each step
            Inputs of all steps: a symbol, or a list of symbols.
        begin_state : list of Symbol, optional
            Initial states; by default zeros.
        layout : {'NTC', 'TNC'}
            Layout of symbols with a time axis.
        merge_outputs : bool, optional
            Whether to return one symbol with a time axis (True), a list (False), or either (None).
        """
        self.reset()
        steps, _ = as_sequence(length, inputs, layout, False)
        states: Any = self.begin_state() if begin_state is None else begin_state
        outputs = []
        for step in steps:
            output, states = self(step, states)
            outputs.append(output)
        return as_sequence(length, outputs, layout, merge_outputs)[0], states


def activated(inputs: Symbol, activation: Any, **kwargs: Any) -> Symbol:
    """Apply an activation, given by name or as a function."""
    if isinstance(activation, str):
        return symbol.Activation(inputs, act_type=activation, **kwargs)
    return activation(inputs, **kwargs)


def as_sequence(
    length: int | None,
    inputs: Sequenced,
    layout: str,
    merge: bool | None,
    in_layout: str | None = None,
) -> tuple[Sequenced, int]:
    """Return ``(inputs, time_axis)``.

    The inputs are merged into one array, split into a list, or left unchanged, according to
    `merge`.
    """
    if inputs is None:
        raise AssertionError(
            "unroll(inputs=None) has been deprecated. Please create input variables outside unroll."
        )
    axis = layout.find("T")
    in_axis = axis if in_layout is None else in_layout.find("T")
    if isinstance(inputs, Symbol):
        if merge is False:
            if len(inputs.list_outputs()) != 1:
                raise AssertionError(
                    "unroll doesn't allow grouped symbol as input. Please convert to list with "
                    "list(inputs) first or let unroll handle splitting."
                )
            squeeze: Any = 1  # as in graphs of MXNet
            split = symbol.split(inputs, axis=in_axis, num_outputs=length, squeeze_axis=squeeze)
            return list(split), axis
    else:
        inputs = list(inputs)
        if length is not None and len(inputs) != length:
            raise AssertionError(f"unroll of {length} steps got {len(inputs)} inputs")
        if merge is True:
            inputs = [symbol.expand_dims(step, axis=axis) for step in inputs]
            inputs, in_axis = symbol.Concat(*inputs, dim=axis), axis
    if isinstance(inputs, Symbol) and axis != in_axis:
        inputs = symbol.swapaxes(inputs, dim1=axis, dim2=in_axis)
    return inputs, axis
