"""Validity of values prepared from tensors, such as packed weights, and of specialized kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ..._process.memory import is_exposed_storage
from ...torch_private import count_writes


class Unchanged:
    """The state of tensors from which a value was prepared.

    Torch's version counter counts writes into a tensor, its views and its detached aliases, but not
    writes through the memory's address. For memory that others can write, `holds_for` is always
    False (see `mxnet._process.memory.expose`).

    Parameters
    ----------
    tensors : the tensors, or None if absent. They are kept alive, so that no new tensor gets an old
    address.

    >>> import torch
    >>> weight = torch.ones(2)
    >>> source = Unchanged([weight, None])
    >>> source.holds_for([weight, None])
    True
    >>> _ = weight[:1].fill_(3)
    >>> source.holds_for([weight, None])
    False
    """

    __slots__ = ("_sources",)

    def __init__(self, tensors: Sequence[Tensor | None]) -> None:
        self._sources = [_Source.of(tensor) for tensor in tensors]

    @classmethod
    def of(cls, tensors: Sequence[Tensor | None]) -> Unchanged | None:
        """Return the state of tensors, or None if prepared values cannot be reused."""
        state = cls(tensors)
        return state if state.holds_for(tensors) else None

    def holds_for(self, tensors: Sequence[Tensor | None]) -> bool:
        """Return whether these are the same tensors, without writes since."""
        if len(tensors) != len(self._sources):
            return False
        for tensor, (before, version, storage) in zip(tensors, self._sources):  # noqa: B905
            if tensor is not before:
                return False
            if tensor is not None and (
                storage is None or count_writes(tensor) != version or is_exposed_storage(storage)
            ):
                return False
        return True


class _Source(NamedTuple):
    """A tensor, its version and its memory; None if unknown."""

    tensor: Tensor | None
    version: int | None = None
    storage: torch.UntypedStorage | None = None

    @classmethod
    def of(cls, tensor: Tensor | None) -> _Source:
        if tensor is None or tensor.is_inference():  # writes into these are not counted
            return cls(tensor)
        try:
            return cls(tensor, count_writes(tensor), tensor.untyped_storage())
        except NotImplementedError:  # sparse, in oneDNN's format, or without version counter
            return cls(tensor)


class Fallback(Exception):
    """Raised by a specialized kernel for values for which it would differ from its operator.

    The graph is then run again from the start with plain kernels.
    """


def require_finite(tensor: Tensor) -> None:
    """Raise `Fallback` if an element is NaN or infinite."""
    if not math.isfinite(tensor.sum()):
        raise Fallback
