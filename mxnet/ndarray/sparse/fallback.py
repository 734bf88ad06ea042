"""The warning that a sparse array is handled in its dense form, issued once for each case."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from ... import env
from ...base import users_stacklevel
from ...ops.attributes import to_string

_warned: set[str] = set()
_ADVICE = (
    "The result is right, but it takes the memory and time of dense arrays. Set the environment "
    "variable MXNET_STORAGE_FALLBACK_LOG_VERBOSE to 0 to suppress this warning."
)


def _tell(what: str) -> None:
    if what in _warned or not env.get("MXNET_STORAGE_FALLBACK_LOG_VERBOSE"):
        return
    _warned.add(what)
    warnings.warn(f"{what}\n{_ADVICE}", UserWarning, stacklevel=users_stacklevel())


def warn_of_operator(
    name: str, given: Sequence[str], made: Sequence[str], attrs: Mapping[str, Any]
) -> None:
    """Warn that an operator has no kernel for these storage types."""
    params = ", ".join(f"{k}={to_string(v)}" for k, v in attrs.items())
    _tell(
        f"Storage type fallback detected: operator = {name}, input storage types = "
        f"[{', '.join(given)}], output storage types = [{', '.join(made)}], params = {{{params}}}."
    )


def warn_of_copy(given: str, made: str) -> None:
    """Warn that a copy between storage types makes a temporary dense or sparse array."""
    _tell(f"Storage fallback detected: copy from {given} storage type to {made} storage type.")
