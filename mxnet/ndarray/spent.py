"""Backward uses a graph up: arrays that were members of it go on as constants.

Old programs lean on this. A recurrent net's state goes from batch to batch without being cut
(``for s in state: s.detach()`` cuts nothing), and backward still ends at the batch's border.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from torch import Tensor

from .storage import plain, recorded


def release(heads: Sequence[Tensor]) -> None:
    """Take the living arrays of graphs that backward from these heads has used up out of them."""
    starts = {head.grad_fn for head in heads}
    reached = functools.cache(lambda: _reachable(starts))
    for _ in range(len(recorded)):
        reference = recorded.popleft()
        array = reference()
        if array is None or array._tracked is None or array._tracked.grad_fn is None:
            continue
        node = array._tracked.grad_fn
        spent = node in starts or _is_spent(node)
        if spent or (spent is None and node in reached()):
            plain(array)
            array._tracked = None
        else:
            recorded.append(reference)


def _is_spent(node: Any) -> bool | None:
    """Return whether torch has freed the graph below a node; None if no node there tells.

    A node tells by the tensors that it saved. Of an operator made of several nodes with several
    results, backward may have come through one result only; hence the look at the nodes below.
    """
    seen, waiting = {node}, [node]
    for current in waiting:
        if (found := _is_freed(current)) is not None:
            return found
        for below, _ in current.next_functions:
            if below is not None and below not in seen:
                seen.add(below)
                waiting.append(below)
    return None


@functools.cache
def _saved_names(kind: type) -> tuple[str, ...]:
    names = [name for name in dir(kind) if name.startswith("_saved_")]
    return (*names, *(["saved_tensors"] if hasattr(kind, "saved_tensors") else []))


def _is_freed(node: Any) -> bool | None:
    for name in _saved_names(type(node)):
        try:
            saved = getattr(node, name)
        except RuntimeError as error:
            if "second time" in str(error):
                return True
            continue
        if isinstance(saved, Tensor) or (isinstance(saved, tuple) and _has_tensor(saved)):
            return False
    return None


def _has_tensor(saved: tuple) -> bool:
    return any(isinstance(s, Tensor) for s in saved)


def _reachable(starts: set) -> set:
    seen, waiting = set(starts), list(starts)
    while waiting:
        for below, _ in waiting.pop().next_functions:
            if below is not None and below not in seen:
                seen.add(below)
                waiting.append(below)
    return seen
