"""When values prepared from tensors, such as packed weights, and special kernels may be used."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ..._process.memory import is_exposed_storage
from ...torch_private import count_writes


class Unchanged:
    """Tensors as they were when something was made from them.

    Torch counts the writes into a tensor, its views and its detached copies, but not those by
    others that know the memory's address. What is made of memory that others can write must be made
    again for each use, so `holds_for` is never true for it (see `mxnet._process.memory.expose`).

    Parameters
    ----------
    tensors : the tensors, None where one is absent. They are kept alive: a new tensor cannot be
        taken for an old one that had its address.

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
        """Return the state of tensors, or None if nothing made of them can be used again."""
        state = cls(tensors)
        return state if state.holds_for(tensors) else None

    def holds_for(self, tensors: Sequence[Tensor | None]) -> bool:
        """Return whether these are the same tensors, and nobody can have written into them."""
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
    """One tensor, the number of writes into it, and its memory; None where that is not known."""

    tensor: Tensor | None
    version: int | None = None
    storage: torch.UntypedStorage | None = None

    @classmethod
    def of(cls, tensor: Tensor | None) -> _Source:
        if tensor is None or tensor.is_inference():  # torch does not count writes into these
            return cls(tensor)
        try:
            return cls(tensor, count_writes(tensor), tensor.untyped_storage())
        except NotImplementedError:  # sparse, in oneDNN's own order, or not counted
            return cls(tensor)


class Fallback(Exception):
    """A specialized kernel met values for which it differs from its operator.

    Whoever runs the graph runs it again from the start with plain kernels.
    """


def require_finite(tensor: Tensor) -> None:
    """Raise `Fallback` if an element is NaN or infinite."""
    if not math.isfinite(tensor.sum()):
        raise Fallback
