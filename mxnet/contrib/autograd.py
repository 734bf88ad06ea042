"""The original API of automatic differentiation; use `mx.autograd` in new code.

>>> square = mx.contrib.autograd.grad(lambda x: x * x)
>>> square(mx.nd.array([3.0]))[0].asnumpy()
array([6.], dtype=float32)
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from .. import autograd as _autograd
from ..base import string_types
from ..ndarray import NDArray, zeros_like

__all__ = [
    "TrainingStateScope",
    "backward",
    "compute_gradient",
    "grad",
    "grad_and_loss",
    "mark_variables",
    "set_is_training",
    "string_types",
    "test_section",
    "train_section",
]


def set_is_training(is_train: bool) -> bool:
    """Switch training mode and recording together; return the previous training mode.

    Parameters
    ----------
    is_train
        Whether to train and record from now on.

    >>> previous = mx.contrib.autograd.set_is_training(True)
    >>> mx.contrib.autograd.set_is_training(previous)
    True
    """
    previous = _autograd.set_training(is_train)
    _autograd.set_recording(is_train)
    return previous


class TrainingStateScope:
    """A scope that sets training mode and recording together.

    Parameters
    ----------
    enter_state
        Whether to train and record.

    >>> with mx.contrib.autograd.TrainingStateScope(True):
    ...     mx.autograd.is_recording()
    True
    """

    def __init__(self, enter_state: bool) -> None:
        self._enter_state = enter_state
        self._scopes: list[Any] = []

    def __enter__(self) -> None:
        state = self._enter_state
        scope = _autograd.record() if state else _autograd.pause()
        scope.__enter__()
        self._scopes.append(scope)

    def __exit__(self, *exc: object) -> None:
        self._scopes.pop().__exit__(*exc)


def train_section() -> TrainingStateScope:
    """Return a scope for training: operators are recorded.

    >>> with mx.contrib.autograd.train_section():
    ...     mx.autograd.is_recording()
    True
    """
    return TrainingStateScope(True)


def test_section() -> TrainingStateScope:
    """Return a scope for prediction inside a training one: nothing is recorded.

    >>> with mx.contrib.autograd.test_section():
    ...     mx.autograd.is_training()
    False
    """
    return TrainingStateScope(False)


vars(test_section)["__test__"] = False  # not a test, for pytest, whatever its name begins with


def mark_variables(
    variables: Sequence[NDArray],
    gradients: Sequence[NDArray],
    grad_reqs: str | Sequence[str] = "write",
) -> None:
    """Make `backward` write the gradients of variables into the given arrays.

    Parameters
    ----------
    variables
        Arrays to differentiate with respect to.
    gradients
        Gradient arrays, of the same shapes.
    grad_reqs
        How to store gradients, for all or for each: ``'write'``, ``'add'`` or ``'null'``.

    >>> mx.contrib.autograd.mark_variables([mx.nd.ones(2)], [mx.nd.zeros(2)])
    """
    _autograd.mark_variables(variables, gradients, grad_reqs)


def backward(
    outputs: Sequence[NDArray],
    out_grads: Sequence[NDArray | None] | None = None,
    retain_graph: bool = False,
) -> None:
    """Compute the gradients of the outputs with respect to the marked variables.

    Parameters
    ----------
    outputs
        The outputs to differentiate.
    out_grads
        Gradients of the outputs; by default ones.
    retain_graph
        Whether to keep the graph for another backward pass.

    >>> x, dx = mx.nd.array([3.0]), mx.nd.zeros(1)
    >>> mx.contrib.autograd.mark_variables([x], [dx])
    >>> with mx.contrib.autograd.train_section():
    ...     y = x * x
    >>> mx.contrib.autograd.backward([y])
    >>> dx.asscalar()
    np.float32(6.0)
    """
    if not isinstance(outputs, list | tuple):
        raise AssertionError("outputs must be a list or tuple of NDArrays")
    _autograd.backward(list(outputs), out_grads, retain_graph)


def compute_gradient(outputs: Sequence[NDArray]) -> None:
    """Compute the gradients of the outputs; the same as `backward`.

    Parameters
    ----------
    outputs
        The outputs to differentiate.

    >>> x, dx = mx.nd.array([3.0]), mx.nd.zeros(1)
    >>> mx.contrib.autograd.mark_variables([x], [dx])
    >>> with mx.contrib.autograd.train_section():
    ...     y = x * x
    >>> mx.contrib.autograd.compute_gradient([y])
    >>> dx.asscalar()
    np.float32(6.0)
    """
    backward(outputs)


def grad_and_loss(func: Callable[..., Any], argnum: int | Sequence[int] | None = None) -> Callable:
    """Return a function that returns the gradients of `func` and its value.

    Parameters
    ----------
    func
        Function of arrays.
    argnum
        The positions of the arguments to differentiate by; by default all.

    >>> f = mx.contrib.autograd.grad_and_loss(lambda x, y: x * y, argnum=0)
    >>> grads, loss = f(mx.nd.array([2.0]), mx.nd.array([5.0]))
    >>> grads[0].asscalar(), loss.asscalar()
    (np.float32(5.0), np.float32(10.0))
    """

    @functools.wraps(func)
    def wrapped(*args: NDArray) -> tuple[list[NDArray], Any]:
        chosen = range(len(args)) if argnum is None else argnum
        variables = [args[i] for i in ([chosen] if isinstance(chosen, int) else chosen)]
        for each in variables:
            if not isinstance(each, NDArray):
                raise AssertionError("type of autograd input should NDArray.")
        grads = [zeros_like(each) for each in variables]
        mark_variables(variables, grads)
        with train_section():
            outputs = func(*args)
        compute_gradient([outputs] if isinstance(outputs, NDArray) else outputs)
        return grads, outputs

    return wrapped


def grad(func: Callable[..., Any], argnum: int | Sequence[int] | None = None) -> Callable:
    """Return a function that returns the gradients of `func`.

    Parameters
    ----------
    func
        Function of arrays.
    argnum
        Position, or positions, of the arguments to differentiate by; by default all.

    >>> mx.contrib.autograd.grad(lambda x: x * x)(mx.nd.array([3.0]))[0].asscalar()
    np.float32(6.0)
    """
    both = grad_and_loss(func, argnum)

    @functools.wraps(both)
    def wrapped(*args: NDArray) -> list[NDArray]:
        return both(*args)[0]

    return wrapped
