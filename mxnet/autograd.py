"""Automatic differentiation: record a computation, then run it backward.

>>> x = mx.nd.array([1.0, 2.0])
>>> x.attach_grad()
>>> with mx.autograd.record():
...     y = (x * x).sum()
>>> y.backward()
>>> x.grad.asnumpy()
array([2., 4.], dtype=float32)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch

from .base import string_types
from .error import InvalidValue, MXNetError
from .ndarray import NDArray
from .ops.interpreters import active
from .runtime.anomaly import detect_anomaly
from .runtime.array import current, plain, wrap, wrap_plain
from .runtime.gradients import (
    attach,
    differentiate,
    recorded_node,
    run_backward,
    running_user_code,
)
from .runtime.recording import (
    Session,
    Step,
    StepKind,
    backward_mode,
    record_step,
    state,
)
from .runtime.tracing import traced_entry
from .torch_private import set_grad_enabled

__all__ = [
    "Function",
    "backward",
    "detect_anomaly",
    "get_symbol",
    "grad",
    "is_recording",
    "is_training",
    "mark_variables",
    "pause",
    "predict_mode",
    "record",
    "set_recording",
    "set_training",
    "string_types",
    "train_mode",
]


class _Scope:
    """Sets recording and training mode (None: unchanged), and restores them at the end."""

    __slots__ = ("_previous", "_recording", "_training")

    def __init__(self, recording: bool | None, training: bool | None) -> None:
        self._recording, self._training = recording, training

    def __enter__(self) -> None:
        recording, enabled = self._recording, torch.is_grad_enabled()
        self._previous = (state.session, state.training, enabled)
        if recording is not None:
            _switch_recording(recording)
            if enabled != recording:
                set_grad_enabled(recording)
        if self._training is not None:
            state.training = self._training

    def __exit__(self, *exc: object) -> None:
        session, state.training, enabled = self._previous
        if (session is None) is not (state.session is None):
            _switch_recording(session is not None)
            if session is not None and not session.finished:
                state.session = session  # resume the interrupted recording
        if self._recording is not None:
            set_grad_enabled(enabled)


def _switch_recording(recording: bool) -> None:
    if (state.session is not None) != recording:
        if recording:
            state.session = Session()
            active.append(None)
        else:
            state.session = None
            active.pop()


def record(train_mode: bool = True) -> _Scope:
    """Return a scope in which operators are recorded, by default in training mode.

    Parameters
    ----------
    train_mode
        Whether Dropout, BatchNorm and similar layers behave as in training.

    >>> x = mx.nd.array([3.0])
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     y = x * x
    >>> y.backward()
    >>> x.grad.asscalar()
    np.float32(6.0)
    """
    return _Scope(True, train_mode)


def pause(train_mode: bool = False) -> _Scope:
    """Return a scope in which nothing is recorded.

    Parameters
    ----------
    train_mode
        Whether Dropout, BatchNorm and similar layers behave as in training.

    >>> with mx.autograd.record(), mx.autograd.pause():
    ...     mx.autograd.is_recording()
    False
    """
    return _Scope(False, train_mode)


def train_mode() -> _Scope:
    """Return a scope in which Dropout, BatchNorm and similar layers behave as in training.

    >>> with mx.autograd.train_mode():
    ...     mx.autograd.is_training()
    True
    """
    return _Scope(None, True)


def predict_mode() -> _Scope:
    """Return a scope in which Dropout, BatchNorm and similar layers behave as in prediction.

    >>> with mx.autograd.record(), mx.autograd.predict_mode():
    ...     mx.autograd.is_training()
    False
    """
    return _Scope(None, False)


def is_recording() -> bool:
    """Return whether operators are being recorded in this thread.

    >>> mx.autograd.is_recording()
    False
    """
    return state.recording


def is_training() -> bool:
    """Return whether this thread is in training mode.

    >>> mx.autograd.is_training()
    False
    """
    return state.training


def set_recording(is_recording: bool) -> bool:
    """Set whether to record; return the previous setting.

    Parameters
    ----------
    is_recording
        Whether to record from now on.

    >>> previous = mx.autograd.set_recording(True)
    >>> mx.autograd.set_recording(previous)
    True
    """
    previous = state.recording
    _switch_recording(bool(is_recording))
    if is_recording:
        set_grad_enabled(True)
    return previous


def set_training(train_mode: bool) -> bool:
    """Set the training mode; return the previous mode.

    Parameters
    ----------
    train_mode
        Whether to be in training mode from now on.

    >>> previous = mx.autograd.set_training(True)
    >>> mx.autograd.set_training(previous)
    True
    """
    previous, state.training = state.training, bool(train_mode)
    return previous


def mark_variables(
    variables: NDArray | Sequence[NDArray],
    gradients: NDArray | Sequence[NDArray],
    grad_reqs: str | Sequence[str] = "write",
) -> None:
    """Make backward write the gradients of variables into the given arrays.

    Parameters
    ----------
    variables
        An array, or a list of arrays, to differentiate with respect to.
    gradients
        Gradient arrays, of the same shapes.
    grad_reqs
        How to store gradients, for all or for each: ``'write'``, ``'add'`` or ``'null'``.

    >>> x, dx = mx.nd.array([3.0]), mx.nd.zeros(1)
    >>> mx.autograd.mark_variables(x, dx)
    >>> with mx.autograd.record():
    ...     y = x * x
    >>> y.backward()
    >>> dx.asscalar()
    np.float32(6.0)
    """
    if isinstance(variables, NDArray):
        variables, gradients = [variables], [cast("NDArray", gradients)]
    if isinstance(grad_reqs, str):
        grad_reqs = [grad_reqs] * len(variables)
    for variable, gradient, req in zip(variables, gradients, grad_reqs, strict=True):
        attach(variable, req, target=gradient)


def _as_list(
    heads: NDArray | Sequence[NDArray], head_grads: Any
) -> tuple[list[NDArray], list[NDArray | None] | None]:
    if isinstance(heads, NDArray):
        heads = [heads]
        head_grads = None if head_grads is None else [head_grads]
        if head_grads is not None and isinstance(head_grads[0], list | tuple):
            head_grads = list(head_grads[0])
    return list(heads), None if head_grads is None else list(head_grads)


def backward(
    heads: NDArray | Sequence[NDArray],
    head_grads: NDArray | Sequence[NDArray | None] | None = None,
    retain_graph: bool = False,
    train_mode: bool = True,
) -> None:
    """Compute the gradients of the heads with respect to all arrays with `attach_grad`.

    Parameters
    ----------
    heads
        The outputs to differentiate: an array, or a list of arrays.
    head_grads
        Gradients of the heads; by default ones.
    retain_graph
        Whether to keep the graph for another backward pass.
    train_mode
        Mode of `Function.backward`; operators use the mode of the recording.

    >>> x = mx.nd.array([3.0])
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     y, z = x * x, 2 * x
    >>> mx.autograd.backward([y, z])
    >>> x.grad.asscalar()
    np.float32(8.0)
    """
    heads, head_grads = _as_list(heads, head_grads)
    if train_mode == state.backward_training:
        run_backward(heads, head_grads, retain_graph)
        return
    with backward_mode(train_mode):
        run_backward(heads, head_grads, retain_graph)


def grad(
    heads: NDArray | Sequence[NDArray],
    variables: NDArray | Sequence[NDArray],
    head_grads: NDArray | Sequence[NDArray | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    train_mode: bool = True,
) -> list[NDArray]:
    """Return a list of gradients; with `create_graph` they can be differentiated again.

    For a single variable it is a list of one array.

    Parameters
    ----------
    heads
        The outputs to differentiate: an array, or a list of arrays.
    variables
        What to differentiate with respect to: an array, or a list of arrays.
    head_grads
        Gradients of the heads; by default ones.
    retain_graph
        Whether to keep the graph; by default only with `create_graph`.
    create_graph
        Whether to record the gradients, so that they can be differentiated again.
    train_mode
        Mode of `Function.backward`; operators use the mode of the recording.

    >>> x = mx.nd.array([2.0])
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     y = x ** 3
    ...     dy = mx.autograd.grad(y, x, create_graph=True)[0]
    >>> dy.backward()
    >>> x.grad.asnumpy()
    array([12.], dtype=float32)
    """
    heads, head_grads = _as_list(heads, head_grads)
    variables = [variables] if isinstance(variables, NDArray) else list(variables)
    if not variables:
        raise InvalidValue("autograd.grad: variables cannot be an empty list.")
    keep = create_graph if retain_graph is None else retain_graph
    with backward_mode(train_mode):
        return differentiate(heads, variables, head_grads, keep, create_graph)


def get_symbol(x: NDArray) -> Any:
    """Return the recorded computation of an array as a Symbol.

    Parameters
    ----------
    x
        An array computed inside `record()`, before backward.

    >>> x = mx.nd.array([2.0])
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     y = mx.nd.exp(x) * x
    >>> symbol = mx.autograd.get_symbol(y)
    >>> symbol.list_arguments(), symbol.get_internals().list_outputs()
    (['var0'], ['var0', 'node_0_output', 'node_1_output'])
    """
    from .symbol import Symbol  # lazy import: symbols are a sibling of this module

    if not isinstance(x, NDArray):
        raise TypeError(f"autograd.get_symbol takes an NDArray, not {type(x).__name__}.")
    node = recorded_node(x)
    if node is None:
        raise MXNetError(
            "autograd.get_symbol: NDArray is not part of a computation graph. Did you forget to "
            "turn on recording?"
        )
    return Symbol([traced_entry(node)])


class _Bridge(torch.autograd.Function):
    """Adds a user's `Function` to torch's graph."""

    @staticmethod
    def forward(ctx: Any, function: Function, inputs: Sequence[NDArray], *tensors: Any) -> Any:
        with pause(state.training):
            outputs = function.forward(*inputs)
        ctx.function = function
        ctx.classes = [type(i) for i in inputs if isinstance(i, NDArray)]
        function._single = isinstance(outputs, NDArray)
        outputs = (outputs,) if function._single else tuple(outputs)
        return tuple(plain(o).data for o in outputs)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple:
        cls = ctx.classes[0] if ctx.classes else NDArray
        with pause(state.backward_training), running_user_code():
            # Pass copies to the user's code, because torch's buffers may share memory.
            own = [g.clone(memory_format=torch.contiguous_format) for g in grads]
            gradients = ctx.function.backward(*(wrap_plain(cls, g) for g in own))
        gradients = (gradients,) if isinstance(gradients, NDArray) else tuple(gradients)
        if len(gradients) != len(ctx.classes):
            raise MXNetError(
                f"{type(ctx.function).__name__}.backward returned {len(gradients)} gradients, but "
                f"forward had {len(ctx.classes)} array inputs: return one for each."
            )
        return (None, None, *(None if g is None else plain(g).clone() for g in gradients))


class Function:
    """A differentiable function with a user-defined gradient.

    >>> class Sigmoid(mx.autograd.Function):
    ...     def forward(self, x):
    ...         y = 1 / (1 + mx.nd.exp(-x))
    ...         self.save_for_backward(y)
    ...         return y
    ...     def backward(self, dy):
    ...         y, = self.saved_tensors
    ...         return dy * y * (1 - y)
    >>> x = mx.nd.array([0.0])
    >>> x.attach_grad()
    >>> with mx.autograd.record():
    ...     y = Sigmoid()(x)
    >>> y.backward()
    >>> x.grad.asnumpy()
    array([0.25], dtype=float32)
    """

    saved_tensors: tuple = ()  # arrays of `save_for_backward`; may also be assigned
    _used = False
    _single = True

    def save_for_backward(self, *args: Any) -> None:
        """Save arrays for `backward`, which reads them from `saved_tensors`.

        Parameters
        ----------
        args
            The arrays.
        """
        self.saved_tensors = args

    def __call__(self, *inputs: Any) -> Any:
        """Run `forward`; inside `record()` with `backward` as its gradient."""
        if self._used:  # a second call would overwrite the saved arrays
            raise InvalidValue(
                "Each Function instance can only be called once. Please create another instance: "
                f"{type(self).__name__}()(...)."
            )
        self._used = True
        session = state.session
        if session is None:
            return self.forward(*inputs)
        session.runs_user_code = True
        arrays = [i for i in inputs if isinstance(i, NDArray)]
        tensors = _Bridge.apply(self, inputs, *(current(a) for a in arrays))
        cls = type(arrays[0]) if arrays else NDArray
        outputs = [wrap(cls, t, arrays[0]._ctx if arrays else None) for t in tensors]
        result = outputs[0] if self._single else outputs
        record_step(result, Step(StepKind.FUNCTION, [a.shape for a in outputs]), arrays)
        return result

    def forward(self, *inputs: Any) -> Any:
        """Compute the outputs; subclasses define this.

        Parameters
        ----------
        inputs
            The inputs.
        """
        raise NotImplementedError(f"{type(self).__name__} must define forward(self, *inputs)")

    def backward(self, *output_grads: Any) -> Any:
        """Compute the gradients of the inputs from those of the outputs; subclasses define this.

        Parameters
        ----------
        output_grads
            Gradients of the outputs.
        """
        raise NotImplementedError(f"{type(self).__name__} must define backward(self, *grads)")
