"""The errors of parameters."""

from __future__ import annotations

from ...error import MXNetError


class DeferredInitializationError(MXNetError):
    """A parameter was accessed before the first forward pass determined its shape.

    >>> layer = mx.gluon.nn.Dense(3)
    >>> layer.initialize()
    >>> try:
    ...     layer.weight.data()
    ... except mx.gluon.DeferredInitializationError:
    ...     print("its shape is known only after the first input")
    its shape is known only after the first input
    """


class ParameterError(MXNetError, AssertionError, ValueError):
    """A parameter cannot be what it is asked to be."""
