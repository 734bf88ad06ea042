"""The errors of parameters."""

from __future__ import annotations

from ...error import MXNetError


class DeferredInitializationError(MXNetError):
    """A parameter was accessed before the first forward pass determined its shape."""


class ParameterError(MXNetError, AssertionError, ValueError):
    """A parameter cannot be what it is asked to be."""
